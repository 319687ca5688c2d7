"""Reading the structure of a Markdown response: fences, headings, list items, tables, blocks of prose."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "Fence",
    "Heading",
    "Item",
    "Table",
    "blocks",
    "fences",
    "headings",
    "items",
    "lines_of",
    "prose",
    "tables",
]


def lines_of(text: str) -> list[str]:
    """The lines of a text, whatever ends them (\\n, \\r\\n or \\r)."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced code block.

    Attributes:
        language: first word of the info string, in lower case; empty where there is none.
        body: the code, less the indentation of the fence.
        first, last: line numbers of its fences, from 0; `last` is the end of the text for an open one.
        closed: whether the closing fence is there.
    """

    language: str
    body: str
    first: int
    last: int
    closed: bool


_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")


def fences(text: str) -> list[Fence]:
    """The fenced code blocks of a text (CommonMark 0.31, section 4.5), indented or in lists and quotes, too."""
    lines = lines_of(text)
    found: list[Fence] = []
    number = 0
    while number < len(lines):
        opening = _opening(lines[number])
        if opening is None:
            number += 1
            continue
        indent, mark, language = opening
        end = number + 1
        while end < len(lines) and not _closes(lines[end], mark):
            end += 1
        body = "\n".join(_dedent(line, indent) for line in lines[number + 1 : end])
        found.append(Fence(language, body, number, min(end, len(lines) - 1), end < len(lines)))
        number = end + 1
    return found


def _opening(line: str) -> tuple[int, str, str] | None:
    """Indentation, mark and language of an opening fence. By hand: as one pattern it is quadratic in blanks."""
    text = line.lstrip(" \t>")
    marker = _MARKER.match(text)
    if marker is not None:
        text = text[marker.end() :]
    if not text.startswith(("```", "~~~")):
        return None
    rest = text.lstrip(text[0])
    if text[0] == "`" and "`" in rest:
        return None
    info = rest.split(maxsplit=1)
    language = info[0].strip("{}.").lower() if info else ""
    return len(line) - len(text), text[: len(text) - len(rest)], language


def _closes(line: str, mark: str) -> bool:
    text = line.strip().lstrip("> \t")
    return len(text) >= len(mark) and not text.strip(mark[0])


def _dedent(line: str, width: int) -> str:
    blank = len(line) - len(line.lstrip(" \t>"))
    return line[min(blank, width) :]


def prose(text: str) -> list[str]:
    """The lines of a text; those of fenced code blocks are made empty, so that line numbers stay."""
    lines = lines_of(text)
    for fence in fences(text):
        for number in range(fence.first, fence.last + 1):
            lines[number] = ""
    return lines


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its level (1 to 6) and its text."""

    level: int
    title: str


_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?", re.DOTALL)
_BOLD = re.compile(r"(?:\*\*|__)([^*_\n]+)(?:\*\*|__):?")


def headings(text: str, *, bold: bool = False) -> list[Heading]:
    """Headings outside code, `#` and underlined ones; with `bold`, lines bold as a whole too, as level 6."""
    lines = prose(text)
    found: list[Heading] = []
    for number, line in enumerate(lines):
        atx = _ATX.fullmatch(line)
        if atx is not None:
            title = (atx[2] or "").strip()
            found.append(Heading(len(atx[1]), _closing_marks(title)))
        elif number and _is_underline(line) and _is_plain(lines[number - 1]):
            found.append(Heading(1 if line.lstrip()[0] == "=" else 2, lines[number - 1].strip()))
        elif bold and (strong := _BOLD.fullmatch(line.strip())) is not None:
            found.append(Heading(6, strong[1].strip()))
    return found


def _closing_marks(title: str) -> str:
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def _is_underline(line: str) -> bool:
    mark = line.strip()
    return bool(mark) and len(line) - len(line.lstrip(" ")) < 4 and (not mark.strip("=") or not mark.strip("-"))


def _is_plain(line: str) -> bool:
    """Whether a line can carry a heading's underline: it is text, not a list item, table row, quote or heading."""
    text = line.strip()
    return (
        bool(text) and "|" not in text and text[0] not in ">#" and _item(line) is None and not _is_underline(line)
    )


@dataclass(frozen=True, slots=True)
class Item:
    """A list item: its text, its number (None for a bullet) and the columns it is indented by."""

    text: str
    number: int | None
    indent: int


_BULLET = re.compile(r"(?:[-*+–][ \t]+|[•◦‣▪●・][ \t]*)(\S.*)", re.DOTALL)
_NUMBER = re.compile(r"[(（]?(\d{1,9})(?:[.)][ \t]+|[．）、][ \t]*)(\S.*)", re.DOTALL)


def items(text: str) -> list[Item]:
    """List items outside code, in order.

    A bullet is `-`, `*`, `+` or `–` and a blank, or one of • ◦ ‣ ▪ ● ・; a number is digits, a full stop or
    closing bracket, and a blank (none is needed after ． ） 、). `3.5 cups`, an empty item and a rule such as
    `* * *` are none.
    """
    return [found for line in prose(text) if (found := _item(line)) is not None]


def _item(line: str) -> Item | None:
    text = line.lstrip(" \t\u3000")
    if not text or (text[0] in "-*_" and not text.replace(" ", "").replace("\t", "").strip(text[0])):
        return None
    indent = len(line[: len(line) - len(text)].expandtabs(4))
    bullet = _BULLET.fullmatch(text)
    if bullet is not None:
        return Item(bullet[1].rstrip(), None, indent)
    number = _NUMBER.fullmatch(text)
    return Item(number[2].rstrip(), int(number[1]), indent) if number is not None else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its header cells and its body rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(text: str) -> list[Table]:
    """Pipe tables outside code (GitHub Flavored Markdown, section 4.10).

    The row of dashes must have as many cells as the header. Rows end at a line without a pipe.
    """
    lines = prose(text)
    found: list[Table] = []
    number = 1
    while number < len(lines):
        header = cells(lines[number - 1]) if "|" in lines[number - 1] else ()
        rule = cells(lines[number]) if header else ()
        if not header or len(header) != len(rule) or not all(map(_is_rule, rule)):
            number += 1
            continue
        end = number + 1
        while end < len(lines) and "|" in lines[end]:
            end += 1
        found.append(Table(header, tuple(cells(line) for line in lines[number + 1 : end])))
        number = end + 1
    return found


def cells(line: str) -> tuple[str, ...]:
    """The cells of a table row; a pipe after a backslash does not part them."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner))


def _is_rule(cell: str) -> bool:
    return bool(cell.removeprefix(":").removesuffix(":")) and not cell.removeprefix(":").removesuffix(":").strip(
        "-"
    )


def blocks(text: str) -> list[str]:
    """Pieces of running text: paragraphs and list items, without headings, tables, rules and fenced code."""
    lines = prose(text)
    found: list[list[str]] = []
    fresh = True
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        underlined = _is_underline(after) and _is_plain(line)
        if not line.strip() or underlined or _is_underline(line) or _ATX.fullmatch(line) or _is_row(line):
            fresh = True
            continue
        item = _item(line)
        if item is not None or fresh:
            found.append([])
        found[-1].append(line.strip() if item is None else item.text)
        fresh = False
    return ["\n".join(block) for block in found]


def _is_row(line: str) -> bool:
    text = line.strip()
    return len(text) > 1 and text[0] == "|" and text[-1] == "|"
