"""Reading numbered lists whose items close with [Hard Rule] or [Principle], as language models write them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rubricate.rubrics.criterion import CriterionKind
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.prometheus import is_score_text

__all__ = ["TAGS", "TextItem", "has_tag", "is_tagged_list", "read_tagged_list"]

TAGS: Mapping[CriterionKind, str] = {
    CriterionKind.HARD_RULE: "[Hard Rule]",
    CriterionKind.PRINCIPLE: "[Principle]",
}
"""The tag of each kind, as it is written."""

_MARKER = (
    r"(?:>[ \t]*)?(?:\#{1,6}[ \t]+)?(?:[-*+•][ \t]+)?(?:\*\*|__)?\(?"
    r"(?P<number>\d{1,3})(?:\\?(?P<delimiter>[.):]))(?:\*\*|__)?(?=\s|[^\W\d]|[\"'“‘`*_(\[\\])"
)
# Emphasis round a tag belongs to it. A run is only tried from its start, or long ones would take quadratic time.
_TAG = re.compile(r"(?<![*_`])[*_`]*\\?\[[\s*_]*(?P<kind>hard[\s_-]*rules?|principles?)[\s*_]*\\?\][*_`]*", re.I)
_NUMBERED = re.compile(rf"^(?P<indent>[ \t]*){_MARKER}", re.M)
_SAME_LINE = re.compile(rf"{_TAG.pattern}[.;,]?[ \t]+(?P<start>{_MARKER})", re.I)
_BULLET = re.compile(r"^(?P<indent>[ \t]*)(?:>[ \t]*)?[-*+•][ \t]+(?=\S)", re.M)
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.S)
_MARKUP = re.compile(r"\s*(?:#.*|(?:\*\*|__)[^*_]+(?:\*\*|__):?|[-*_]{3,}|```\w*|</?\w+>)\s*")
_BRACKETS = re.compile(r"\[([^\[\]\n]{3,24})\]")
_LAST_BRACKETS = re.compile(r"\[[A-Za-z][^\[\]\n]{0,40}\]\W*\Z")
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\"\d-]|\]))")


@dataclass(frozen=True, slots=True)
class TextItem:
    """One item of a list.

    Attributes:
        text: what is asked, without number and tag; runs of white space are one space.
        kind: what the tag says; None where there is no tag.
        number: the number that the text gives it, None for a bullet.
        index: its place in the list, from 0.
        line: line of the text that it begins in, from 1.
    """

    text: str
    kind: CriterionKind | None
    number: int | None
    index: int
    line: int

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return _name(self.index, self.line)


@dataclass(frozen=True, slots=True)
class _Start:
    """Where an item's marker and its text begin, its number, and the number's way of writing."""

    at: int
    body: int
    indent: int
    number: int | None = None
    delimiter: str = ""


def _name(index: int, line: int) -> str:
    return f"item {index + 1} (line {line} of the text)"


def has_tag(text: str) -> bool:
    """Whether [Hard Rule] or [Principle] occurs in a text."""
    return _TAG.search(text) is not None


def is_tagged_list(text: str) -> bool:
    """Whether a text looks like such a list: a tag, and an item. JSON and Prometheus' score texts are none."""
    if not has_tag(text) or _JSON.match(text) or is_score_text(text):
        return False
    return bool(_starts(text)) or "the response" in text.lower()


def read_tagged_list(text: str, place: Place) -> list[TextItem]:
    """The items of a text.

    Read with a note, kind `layout`: text before the list, after it, and under headings or after blank lines inside
    it; numbers that are skipped or repeated; bullets; an item without a tag; a tag in front of its item; items that
    do not open with "The response". Numbers further indented than the first, or written in another way (`1)` under
    `1.`), are part of their item.

    Raises FormatError, with item and line, for a text without a tag or a list; an item without text, with several
    tags, a misspelt or unknown one, or words after its tag; an item without a tag whose end is not clear; tags that
    stand as headings, or outside the list.
    """
    if not has_tag(text):
        hint = "the items of this format close with [Hard Rule] or [Principle]"
        raise place.error("no tag anywhere in this text", hint=hint)
    starts = _starts(text)
    if not starts:
        raise place.error("no numbered list in this text", hint='write items as "1. The response ... [Hard Rule]"')
    remarks: list[str] = []
    first = text[_thinking(text) : starts[0].at]
    _check_before(first, text, place)
    if first.strip():
        remarks.append("the text before the list is no criterion")
    ends = [start.at for start in starts[1:]] + [len(text)]
    items = [
        _item(text, index, start, end, place, remarks)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    for remark in [*remarks, *_remarks(items)]:
        place.note("layout", remark)
    return items


# Finding the items


def _thinking(text: str) -> int:
    found = _THINKING.match(text)
    return found.end() if found else 0


def _starts(text: str) -> list[_Start]:
    """Where the items begin: at numbers, or at bullets where there is no number."""
    begin = _thinking(text)
    found = [
        _Start(m.start(), m.end(), len(m["indent"].expandtabs()), int(m["number"]), m["delimiter"])
        for m in _NUMBERED.finditer(text, begin)
    ]
    if not found:
        bullets = [_Start(m.start(), m.end(), len(m["indent"].expandtabs())) for m in _BULLET.finditer(text, begin)]
        return [start for start in bullets if start.indent <= bullets[0].indent + 1]
    found += [
        _Start(m.start("start"), m.end(), found[0].indent, int(m["number"]), m["delimiter"])
        for m in _SAME_LINE.finditer(text, found[0].body)
    ]
    found.sort(key=lambda start: start.at)
    outer = found[0].indent + 1
    return [start for start in found if start.indent <= outer and start.delimiter == found[0].delimiter]


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _check_before(before: str, text: str, place: Place) -> None:
    """Raises FormatError for tags before the list that head it, or that close an item without a number."""
    for found in _TAG.finditer(before):
        begin, end = before.rfind("\n", 0, found.start()) + 1, before.find("\n", found.end())
        left = before[begin : found.start()].strip(" \t#*_:>-")
        right = before[found.end() : end if end >= 0 else len(before)].strip(" \t#*_:.-")
        if right:
            continue  # a legend: the tag, and what it means
        line = _line(text, _thinking(text) + found.start())
        if left:
            raise place.error(f"line {line} of the text has a tag but no number", hint="number every item")
        hint = "close each item with its own tag"
        raise place.error(f"line {line} of the text is a tag that stands as a heading", hint=hint)


# Reading one item


def _item(text: str, index: int, start: _Start, end: int, place: Place, remarks: list[str]) -> TextItem:
    line = _line(text, start.at)
    name = _name(index, line)
    chunk = text[start.body : end]
    tags = list(_TAG.finditer(chunk))
    if len(tags) > 1:
        hint = "an item has one tag, at its end; is a number missing, or written in another way than the first?"
        raise place.error(f"{name} has {len(tags)} tags", hint=hint)
    if not tags:
        body, kind = _untagged(chunk, name, place), None
        remarks.append(f"{name} has no tag")
    else:
        body = _tagged(chunk, tags[0], name, place, remarks)
        kind = CriterionKind.HARD_RULE if tags[0]["kind"][0] in "hH" else CriterionKind.PRINCIPLE
    body = _unwrapped(" ".join(body.split()))
    if not body:
        raise place.error(f"{name} has no text")
    _check_brackets(body, kind, name, place)
    return TextItem(body, kind, start.number, index, line)


def _check_brackets(body: str, kind: CriterionKind | None, name: str, place: Place) -> None:
    """Raises FormatError for brackets that look like a misspelt tag, or like an unknown one."""
    known = [tag.strip("[]").lower() for tag in TAGS.values()]
    for found in _BRACKETS.finditer(body):
        if difflib.get_close_matches(found[1].lower(), known, n=1, cutoff=0.75):
            raise place.error(f"{name} has {found[0]!r}, which looks like a misspelt tag", hint="correct it")
    unknown = _LAST_BRACKETS.search(body) if kind is None else None
    if unknown:
        hint = "the tags of this format are [Hard Rule] and [Principle]"
        raise place.error(f"{name} ends with {unknown[0]!r}, which is none of the tags", hint=hint)


def _untagged(chunk: str, name: str, place: Place) -> str:
    lines = chunk.strip().split("\n")
    if any(not line.strip() or _MARKUP.fullmatch(line) for line in lines):
        raise place.error(f"{name} has no tag, so where it ends is not clear", hint="close it with a tag")
    return chunk


def _tagged(chunk: str, tag: re.Match[str], name: str, place: Place, remarks: list[str]) -> str:
    """The text of an item with one tag; what follows the tag must be clearly no part of it."""
    before, rest = chunk[: tag.start()], chunk[tag.end() :]
    if not before.strip():
        remarks.append(f"{name} has its tag in front")
        before, rest = _paragraph(rest.lstrip(" \t:*_-–—"))
    same_line, _, later = rest.partition("\n")
    if same_line.strip(" \t\r*_`.;,"):
        words = same_line.strip()
        raise place.error(f"{name} goes on after its tag: {words[:40]!r}", hint="put the tag at its end")
    lines = later.split("\n")
    filled = next((number for number, line in enumerate(lines) if line.strip()), None)
    if filled is not None:
        if filled == 0 and not _MARKUP.fullmatch(lines[0]):
            words = lines[0].strip()
            hint = "put the tag at its end, or a blank line after it"
            raise place.error(f"{name} goes on in the line after its tag: {words[:40]!r}", hint=hint)
        remarks.append(f"the text after {name} is no criterion")
    return before


def _paragraph(text: str) -> tuple[str, str]:
    """The lines up to a blank one or a heading, and the rest."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number and (not line.strip() or _MARKUP.fullmatch(line)):
            return "\n".join(lines[:number]), "\n" + "\n".join(lines[number:])
    return text, ""


def _unwrapped(body: str) -> str:
    """The text without half a pair of ** that the number or the tag was inside of."""
    if body.count("**") % 2:
        body = body.removeprefix("**") if body.startswith("**") else body.removesuffix("**")
    return body.strip()


def _remarks(items: Sequence[TextItem]) -> list[str]:
    """What there is to say about all items together."""
    remarks: list[str] = []
    numbers = [item.number for item in items]
    if numbers[0] is None:
        remarks.append("the items have bullets, not numbers")
    elif numbers != list(range(1, len(items) + 1)):
        remarks.append(f"the items are numbered {', '.join(map(str, numbers))}")
    other = [f"c{item.index + 1}" for item in items if not re.match(r"\W*the response\b", item.text, re.I)]
    if other:
        remarks.append(f'not opening with "The response": {", ".join(other)}')
    return remarks
