"""Strict JSON: NaN, Infinity and repeated keys are refused, and every error knows its line and field."""

from __future__ import annotations

import bisect
import json
import math
import re
from collections.abc import Iterator, Sequence
from json.decoder import JSONDecodeError

from rubricate.data.values import Path, field_name, spoken, walk
from rubricate.errors import FormatError

__all__ = ["JsonLines", "parse_json", "split_json"]


class _Refused(ValueError):
    """A value that the JSON grammar or the json module admits, and we do not."""

    def __init__(self, message: str, *, key: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.hint = hint


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(
                    f"the key {key!r} occurs twice in one object",
                    key=key,
                    hint="keep one of them; readers disagree",
                )
            seen.add(key)
    return record


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"{spoken(value)} is not a number in JSON", hint="write null for a value that is not known")
    return value


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite)
_LENIENT = json.JSONDecoder(object_pairs_hook=_unique)


def parse_json(text: str, *, source: str = "", line: int | None = 1, allow_nonfinite: bool = False) -> object:
    """The value of a JSON text.

    Args:
        text: one JSON document.
        source: name for error messages.
        line: line of the source at which the text starts; None where it has no line.
        allow_nonfinite: let NaN and the infinities pass, for callers that name them better themselves.

    Raises FormatError for broken JSON, NaN or Infinity, a key that occurs twice in an object, a number with too
    many digits, and nesting that is too deep.
    """
    try:
        return (_LENIENT if allow_nonfinite else _STRICT).decode(text)
    except (ValueError, RecursionError) as error:
        raise _explained(error, text, source, line, 0) from None


def _explained(
    error: ValueError | RecursionError, text: str, source: str, line: int | None, start: int
) -> FormatError:
    """A FormatError for what the decoder raised on the document that begins at `start` of the text."""
    if isinstance(error, JSONDecodeError):
        place = None if line is None else line + error.lineno - 1
        message = f"not valid JSON: {error.msg} (column {error.colno})"
        return FormatError(message, source=source, line=place, hint=_syntax_hint(error, text))
    if isinstance(error, _Refused):
        field = error.key or _first_nonfinite(text, start)
        return FormatError(str(error), source=source, line=line, field=field, hint=error.hint)
    if isinstance(error, RecursionError):
        return FormatError("the value is nested too deeply", source=source, line=line)
    return FormatError(f"not readable: {error}", source=source, line=line)


def _syntax_hint(error: JSONDecodeError, text: str) -> str:
    if error.msg == "Extra data":
        return "several values follow one another; if each line is one object, name the file .jsonl"
    if error.pos >= len(text.rstrip()):
        return "the text ends too early"
    if text[error.pos] == "'" or "property name" in error.msg:
        return "JSON wants double quotes around keys and texts, and no comma before a closing bracket"
    return ""


def _first_nonfinite(text: str, start: int) -> str:
    try:
        value = _decode_at(_LENIENT, text, start)[0]
    except (ValueError, RecursionError):
        return ""
    return next((field_name(path) for path, problem in walk(value) if "not a number" in problem), "")


def _decode_at(decoder: json.JSONDecoder, text: str, start: int) -> tuple[object, int]:
    value: object
    value, end = decoder.raw_decode(text, start)
    return value, end


def _skip(text: str, position: int, extra: str = "") -> int:
    blank = " \t\r\n" + extra
    while position < len(text) and text[position] in blank:
        position += 1
    return position


def split_json(text: str, *, source: str = "", allow_nonfinite: bool = False) -> Iterator[tuple[int, object, Path]]:
    """The values of a JSON document: each element of a list, or the one object, with line and path.

    Elements are decoded one at a time. Raises FormatError as `parse_json` does, at the element's own line.
    """
    decoder = _LENIENT if allow_nonfinite else _STRICT
    position = _skip(text, 0)
    if position >= len(text):
        return
    if text[position] != "[":
        yield (
            text.count("\n", 0, position) + 1,
            parse_json(text, source=source, allow_nonfinite=allow_nonfinite),
            (),
        )
        return
    line, counted, index = 1, 0, 0
    position = _skip(text, position + 1)
    while text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = _decode_at(decoder, text, position)
        except JSONDecodeError as error:
            raise _explained(error, text, source, 1, 0) from None
        except (ValueError, RecursionError) as error:
            raise _explained(error, text, source, line, position) from None
        yield line, value, (index,)
        index += 1
        position = _after_element(text, position, source)
    _require_end(text, _skip(text, position + 1), source)


def _after_element(text: str, position: int, source: str) -> int:
    """The position of the next element, or of the closing bracket."""
    position = _skip(text, position)
    if text[position : position + 1] == ",":
        after = _skip(text, position + 1)
        if text[after : after + 1] != "]":
            return after
        raise _explained(JSONDecodeError("Illegal trailing comma", text, position), text, source, 1, 0)
    if text[position : position + 1] != "]":
        raise _explained(JSONDecodeError("Expecting ',' or ']'", text, position), text, source, 1, 0)
    return position


def _require_end(text: str, position: int, source: str) -> None:
    if position < len(text):
        raise _explained(JSONDecodeError("Extra data", text, position), text, source, 1, 0)


class JsonLines:
    """The lines of the values of a JSON text. What a question leads through is read once, and remembered."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._inside: dict[int, dict[str | int, int]] = {}
        self._breaks = [found.start() for found in re.finditer("\n", text)]

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line, from 1, on which the value at `path` starts, or as far along it as the document goes.

        None where the text is not valid JSON. It is for messages: nothing is checked.
        """
        position = _skip(self._text, 0)
        try:
            for part in path:
                inner = self._parts(position).get(part)
                if inner is None:
                    break
                position = inner
        except (ValueError, IndexError, RecursionError):
            return None
        return bisect.bisect_left(self._breaks, position) + 1

    def _parts(self, start: int) -> dict[str | int, int]:
        """Where the parts of the object or list that begins at `start` stand."""
        found = self._inside.get(start)
        if found is None:
            found = self._inside[start] = dict[str | int, int]()
            for key, position in self._walk(start):
                found.setdefault(key, position)
        return found

    def _walk(self, start: int) -> Iterator[tuple[str | int, int]]:
        text, opening = self._text, self._text[start]
        if opening not in "[{":
            return
        position, index = _skip(text, start + 1), 0
        while text[position] not in "]}":
            key: object = index
            if opening == "{":
                key, position = _decode_at(_LENIENT, text, position)
                position = _skip(text, position, ":")
            if isinstance(key, str | int):
                yield key, position
            _, position = _decode_at(_LENIENT, text, position)
            position, index = _skip(text, position, ","), index + 1
