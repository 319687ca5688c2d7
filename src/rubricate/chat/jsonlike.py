"""Reading of JSON as models write it: strictly first, then with the usual faults repaired.

Repaired are Python literals, single and typographic quotes, unescaped quotes and line breaks inside strings, LaTeX
backslashes, comments, trailing and missing commas, bare words, and objects that were cut. A value that the cut may
have shortened is dropped, never completed.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

__all__ = ["Broken", "Conflict", "Piece", "read_repaired", "read_strict"]

_DEPTH = 60
_KEY_LENGTH = 200


class Broken(Exception):
    """Internal: the text at this place is not JSON, however leniently read."""

    def __init__(self, position: int, *, deep: bool = False) -> None:
        super().__init__(position)
        self.position = position
        self.deep = deep


@dataclass(frozen=True, slots=True)
class Conflict:
    """The values of a key that occurs several times in one object, where they differ."""

    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A value read, where it ends in the text, and whether it was closed."""

    value: object
    end: int
    complete: bool = True


def _merge(pairs: list[tuple[str, object]]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for key, value in pairs:
        if key not in merged:
            merged[key] = value
            continue
        before = merged[key]
        values = before.values if isinstance(before, Conflict) else (before,)
        # Compared by their written form: True equals 1 in Python, and NaN not even itself.
        if repr(value) not in {repr(one) for one in values}:
            merged[key] = Conflict((*values, value))
    return merged


def _integer(digits: str) -> object:
    return int(digits) if len(digits) < 400 else math.copysign(math.inf, -1 if digits.startswith("-") else 1)


_STRICT = json.JSONDecoder(object_pairs_hook=_merge, parse_int=_integer)


def read_strict(text: str, start: int = 0) -> Piece:
    """The JSON value at `start`. Raises Broken, with the place where the trouble is."""
    try:
        value, end = _STRICT.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise Broken(error.pos) from None
    except RecursionError:
        raise Broken(start + 1000, deep=True) from None
    return Piece(value, end)


_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|#[^\n]*)*")
_BARE = re.compile(r"[^\s,:{}\[\]\"'\u201c\u201d]+(?: +[^\s,:{}\[\]\"'\u201c\u201d/#]+)*")
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_CLOSERS = {
    '"': '"',
    "'": "'",
    "\u201c": '\u201d\u201c"',
    "\u201d": "\u201d",
    "\u201e": '\u201c\u201d"',
    "\u2018": "\u2019",
}
_STOPS = {opening: re.compile(rf"[\\{closers}]") for opening, closers in _CLOSERS.items()}
_AFTER_KEY = re.compile(r"\s*:")
_NEXT_MEMBER = re.compile(
    r"\s*(?:[\"'\u201c\u201d\u201e\u2018][^\"'\u201c\u201d\u2019\n]{1,60}[\"'\u201d\u201c\u2019]"
    r"|[A-Za-z_]\w{0,40})\s*:"
)
_NEXT_ITEM = re.compile(r"\s*(?:[\"'\u201c\u201e\u2018{\[\d\]-]|true|false|null|True|False|None|\Z)")
_CLOSING = re.compile(r"\s*(?:[}\]]|\Z|//|/\*|```)|[ \t]*\n[ \t]*\n")
_COMMA = re.compile(r"\s*,")
_LITERALS: dict[str, object] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    "null": None,
    "None": None,
    "Null": None,
    "NULL": None,
    "undefined": None,
    "NaN": math.nan,
    "nan": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "inf": math.inf,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_VALID_ESCAPE = re.compile(r"u[0-9a-fA-F]{4}|[ntrbf/\\\"']")


_MISSING = object()


class _Reader:
    """One lenient pass over the text from an opening brace or bracket."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.complete = True

    def skip(self) -> str:
        """Move over blanks and comments; the next character, empty at the end."""
        match = _SKIP.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> object:
        """The value here, `_MISSING` when the text ends within it."""
        if depth > _DEPTH:
            raise Broken(self.at, deep=True)
        sign = self.skip()
        if sign == "{":
            return self.members(depth)
        if sign == "[":
            return self.items(depth)
        if sign in _CLOSERS and sign:
            return self.string(in_object=True)
        return self.bare()

    def members(self, depth: int) -> dict[str, object]:
        self.at += 1
        pairs: list[tuple[str, object]] = []
        while True:
            sign = self.skip()
            if sign in ("}", ""):
                self._close(sign)
                return _merge(pairs)
            if sign == ",":
                self.at += 1
                continue
            key = self.key(bool(pairs))
            if key is None:
                return _merge(pairs)
            value = self.value(depth + 1)
            if value is _MISSING:
                self.complete = False
                return _merge(pairs)
            pairs.append((key, value))
            if not self.complete:
                return _merge(pairs)

    def key(self, stop_quietly: bool) -> str | None:
        """The key here and its colon. None ends an object that lacks its brace (only after a first member)."""
        start = self.at
        sign = self.text[self.at]
        if sign in _CLOSERS:
            found = self.string(in_object=True, key=True)
        else:
            match = _KEY.match(self.text, self.at)
            found = match.group() if match else None
            self.at = match.end() if match else self.at
        if isinstance(found, str) and self.skip() == ":":
            self.at += 1
            return found
        if stop_quietly or not self.text[self.at : self.at + 1]:
            self.at, self.complete = start, False
            return None
        raise Broken(start)

    def items(self, depth: int) -> list[object]:
        self.at += 1
        found: list[object] = []
        while True:
            sign = self.skip()
            if sign in ("]", ""):
                self._close(sign)
                return found
            if sign == ",":
                self.at += 1
                continue
            if sign in ":}":
                raise Broken(self.at)
            value = self.string(in_object=False) if sign in _CLOSERS else self.value(depth + 1)
            if value is _MISSING:
                self.complete = False
                return found
            found.append(value)
            if not self.complete:
                return found

    def _close(self, sign: str) -> None:
        self.at += len(sign)
        self.complete = self.complete and bool(sign)

    def string(self, *, in_object: bool, key: bool = False) -> object:
        """The string here. A quote ends it only where what follows can follow a string."""
        start = self.at + 1
        stops = _STOPS[self.text[self.at]]
        at = start
        end = min(len(self.text), start + _KEY_LENGTH) if key else len(self.text)
        while True:
            match = stops.search(self.text, at, end)
            if match is None:
                self.at = end
                return _MISSING
            if match.group() == "\\":
                at = match.end() + 1
                continue
            if self._ends_string(match.end(), in_object=in_object, key=key):
                self.at = match.end()
                return _unescape(self.text[start : match.start()])
            at = match.end()

    def _ends_string(self, after: int, *, in_object: bool, key: bool) -> bool:
        text = self.text
        if key:
            return _AFTER_KEY.match(text, after) is not None
        if _CLOSING.match(text, after):
            return True
        comma = _COMMA.match(text, after)
        if comma is None:
            # A comma may be missing in front of the next member.
            return in_object and _NEXT_MEMBER.match(text, after) is not None
        after = comma.end()
        if _CLOSING.match(text, after):
            return True
        return (_NEXT_MEMBER if in_object else _NEXT_ITEM).match(text, after) is not None

    def bare(self) -> object:
        match = _BARE.match(self.text, self.at)
        if match is None:
            raise Broken(self.at)
        word = match.group()
        self.at = match.end()
        if word in _LITERALS:
            return _LITERALS[word]
        if self.at == len(self.text):
            return _MISSING
        if _NUMBER.match(word):
            return _number(word)
        return word


def _number(word: str) -> object:
    return _integer(word) if word.lstrip("+-").isdigit() else float(word)


def _unescape(raw: str) -> str:
    if "\\" not in raw:
        return raw
    # One impossible escape shows that backslashes are meant literally (LaTeX): then \t in \tan is no tab either.
    literal = any(not _VALID_ESCAPE.match(match.group(1)) for match in _ESCAPE.finditer(raw))

    def replace(match: re.Match[str]) -> str:
        body = match.group(1)
        if body in ('"', "\\", "'") or (not literal and body in _ESCAPES):
            return _ESCAPES[body]
        if body[0] == "u" and len(body) == 5:
            return chr(int(body[1:], 16))
        return "\n" if body == "n" and not raw[match.end() : match.end() + 1].isalpha() else match.group()

    return _ESCAPE.sub(replace, raw)


def read_repaired(text: str, start: int) -> Piece:
    """The object or list at `start`, leniently read. Raises Broken when it is neither."""
    reader = _Reader(text)
    reader.at = start
    value = reader.value(0)
    if value is _MISSING:
        raise Broken(len(text))
    return Piece(value, reader.at, reader.complete)
