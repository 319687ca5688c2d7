"""TOML whose values are plain JSON: dates become texts, NaN is refused, and every value has its line.

The parser of the standard library tells no lines, so a scanner of our own finds them in texts that it has taken.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from rubricate.data.values import Path, field_name, walk
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object

__all__ = ["ROWS", "TomlLines", "split_toml", "toml_text"]

ROWS = "rows"
"""A document that holds nothing but an array of this name holds several values; any other document is one."""

_WHERE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def split_toml(text: str, *, source: str = "", allow_nonfinite: bool = False) -> Iterator[tuple[int, object, Path]]:
    """The values of a TOML document, with line and path: the document, or the tables of its only array `rows`.

    TOML has no lists of tables at its top, so that several records are written as `[[rows]]`. Raises FormatError,
    with line and field, for what is not TOML, for NaN and infinities unless allowed, and for too deep nesting.
    """
    document = _plain(_parsed(text, source))
    fields = as_object(document) or {}
    if not fields:
        return
    lines = TomlLines(text)
    for path, problem in walk(document):
        if not (allow_nonfinite and "not a number" in problem):
            hint = "leave the key out where the value is not known" if "not a number" in problem else ""
            raise FormatError(
                f"the value {problem}", source=source, line=lines.line(path), field=field_name(path), hint=hint
            )
    rows = as_array(fields.get(ROWS))
    if rows is None or len(fields) > 1 or not all(as_object(row) is not None for row in rows):
        yield lines.line(()) or 1, document, ()
        return
    for index, row in enumerate(rows):
        place: Path = (ROWS, index)
        yield lines.line(place) or 1, row, place


def _parsed(text: str, source: str) -> object:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        found = _WHERE.search(said)
        message = said[: found.start()] if found else said
        line = int(found[1]) if found and found[1] else max(len(text.rstrip().split("\n")), 1)
        message += f" (column {found[2]})" if found and found[2] else " (at the end of the text)" if found else ""
        message = message[:1].lower() + message[1:]
        raise FormatError(f"not valid TOML: {message}", source=source, line=line, hint=_hint(message)) from None
    except RecursionError:
        raise FormatError("the value is nested too deeply", source=source) from None
    except ValueError as error:  # a whole number of too many digits
        long = re.search(r"[0-9_]{4000,}", text)
        line = text.count("\n", 0, long.start()) + 1 if long else None
        raise FormatError(f"not readable: {error}", source=source, line=line) from None


def _hint(message: str) -> str:
    if "invalid value" in message:
        return (
            'TOML wants texts in double quotes, and has no null: leave the key out, or write "" for an empty text'
        )
    return ""


def _plain(value: object) -> object:
    todo: list[tuple[dict[str, object] | list[object], str | int, object]] = []
    holder: list[object] = [value]
    todo.append((holder, 0, value))
    while todo:  # no recursion: the parser builds tables of any depth out of dotted keys
        into, key, item = todo.pop()
        fields, listed = as_object(item), as_array(item)
        made: object = item.isoformat() if isinstance(item, datetime.date | datetime.time) else item
        if fields is not None:
            table: dict[str, object] = dict(fields)
            todo += [(table, name, part) for name, part in table.items()]
            made = table
        elif listed is not None:
            array = list(listed)
            todo += [(array, index, part) for index, part in enumerate(array)]
            made = array
        if isinstance(into, dict):
            into[str(key)] = made
        else:
            into[int(key)] = made
    return holder[0]


# Lines


class _Node:
    """A value of the document: the line on which it starts, and its parts."""

    __slots__ = ("line", "parts")

    def __init__(self, line: int) -> None:
        self.line = line
        self.parts: dict[str | int, _Node] = {}

    def child(self, key: str | int, line: int) -> _Node:
        return self.parts.setdefault(key, _Node(line))


class TomlLines:
    """The lines of the values of a TOML text, which is read once."""

    def __init__(self, text: str) -> None:
        self._root: _Node | None
        try:
            self._root = _Scanner(text).document()
        except (ValueError, IndexError, RecursionError):
            self._root = None

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line, from 1, of the value at `path`, or as far along the path as the document goes.

        A table starts at its heading, or where its first key stands. None where the text is not valid TOML.
        """
        node = self._root
        for part in path:
            inner = node.parts.get(part) if node is not None else None
            if inner is None:
                break
            node = inner
        return node.line if node is not None else None


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"'[^'\n]*'")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LONG = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|' + r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.S)
_OTHER = re.compile(r"[^,\]}#\r\n]+")


class _Scanner:
    """Walks through a text that is valid TOML. What it does not expect is a ValueError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted, self._line = 0, 1

    def document(self) -> _Node:
        self._skip(_BLANK)
        root = table = _Node(self._here())
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._heading(root)
            else:
                self._pair(table)
            self._skip(_BLANK)
        return root

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"unexpected text at {self._at}")
        self._at = found.end()
        return found[0]

    def _expect(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise ValueError(f"expected {mark} at {self._at}")
        self._at += len(mark)

    def _heading(self, root: _Node) -> _Node:
        line = self._here()
        closing = "]]" if self._text.startswith("[[", self._at) else "]"
        self._at += len(closing)
        keys = self._keys()
        self._expect(closing)
        node = _last(root)
        for key in keys[:-1]:
            node = _last(node.child(key, line))
        node = node.child(keys[-1], line)
        return node.child(len(node.parts), line) if closing == "]]" else node

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            keys.append(self._key())
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _key(self) -> str:
        mark = self._text[self._at]
        if mark == "'":
            return self._skip(_LITERAL)[1:-1]
        if mark == '"':
            (key,) = tomllib.loads(f"{self._skip(_BASIC)} = 0")
            return key
        return self._skip(_BARE)

    def _pair(self, table: _Node) -> None:
        line = self._here()
        keys = self._keys()
        self._expect("=")
        self._skip(_SPACE)
        node = table
        for key in keys:
            node = node.child(key, line)
        self._value(node)

    def _value(self, node: _Node) -> None:
        text, at = self._text, self._at
        if text.startswith(('"""', "'''"), at):
            self._skip(_LONG)
        elif text[at] in "\"'":
            self._skip(_BASIC if text[at] == '"' else _LITERAL)
        elif text[at] == "[":
            self._array(node)
        elif text[at] == "{":
            self._inline(node)
        else:
            self._skip(_OTHER)

    def _array(self, node: _Node) -> None:
        self._expect("[")
        self._skip(_BLANK)
        while not self._text.startswith("]", self._at):
            self._value(node.child(len(node.parts), self._here()))
            self._skip(_BLANK)
            if self._text.startswith(",", self._at):
                self._at += 1
                self._skip(_BLANK)
        self._at += 1

    def _inline(self, node: _Node) -> None:
        self._expect("{")
        self._skip(_BLANK)
        while not self._text.startswith("}", self._at):
            self._pair(node)
            self._skip(_BLANK)
            if self._text.startswith(",", self._at):
                self._at += 1
                self._skip(_BLANK)
        self._at += 1


def _last(node: _Node) -> _Node:
    """The table that a heading's key means: of an array of tables, its last one."""
    return node.parts[len(node.parts) - 1] if 0 in node.parts else node


def toml_text(value: Mapping[str, object], *, source: str = "") -> str:
    """A record as TOML text that `split_toml` reads back as it was, apart from the order of its keys.

    Raises FormatError, with the field, for null and for halves of surrogate pairs, which TOML has not. Values that
    JSON cannot hold are not checked.
    """
    import tomli_w

    todo: list[tuple[Path, object]] = [((), value)]
    while todo:
        path, item = todo.pop()
        fields, listed = as_object(item), as_array(item)
        if item is None:
            hint = "leave the field out, or write .json or .yaml"
            raise FormatError("TOML has no null", source=source, field=field_name(path), hint=hint)
        todo += [((*path, key), part) for key, part in (fields or {}).items()][::-1]
        todo += [((*path, index), part) for index, part in enumerate(listed or ())][::-1]
    for path, problem in walk(value):
        raise FormatError(f"the value {problem}", source=source, field=field_name(path))
    return tomli_w.dumps(value)
