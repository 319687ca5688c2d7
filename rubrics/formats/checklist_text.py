"""RLCF's checklists as texts: numbered with importances, or bullets with weights as its generator writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.common import number
from rubricate.rubrics.formats.prometheus import is_score_text
from rubricate.rubrics.formats.tagged_text import has_tag

__all__ = ["Question", "has_importances", "is_checklist_text", "read_checklist", "write_checklist"]

_IMPORTANCE = re.compile(r"\(\s*importance\s*:(?P<inner>[^()\n]*)\)", re.I)
_OUT_OF_100 = re.compile(r"\s*(?P<weight>\d+(?:\.\d+)?)\s*/\s*100\s*")
_NUMBER = re.compile(r"^[ \t]*(?P<number>\d{1,3})[.)](?=\s|[^\W\d])[ \t]*", re.M)
_SAME_LINE = re.compile(r"[ \t]+(?P<number>\d{1,3})[.)][ \t]+")
_BULLET = re.compile(r"^[ \t]*(?:[-*•][ \t]+|[-•](?=[^\W\d]))", re.M)
# A run of marks is only tried from its start, or long ones would take quadratic time.
_HEADING = re.compile(r"(?<![*#_ \t])[*#_ \t]*Key Criteria Questions[*_ \t]*:[*_ \t]*", re.I)
_WEIGHT = re.compile(r"\(\s*(?:weight\s*:\s*)?(?P<weight>\d+(?:\.\d+)?)(?:\s*/\s*100)?\s*\)[\"”'.\s]*\Z", re.I)
_QUESTION = re.compile(r"^[ \t]*[-*•][ \t][^\n]*\?\s*\(\d{1,3}\)[\"”]?[ \t\r]*$", re.M)
_END = "<END>"
# What is left of an importance, or of a weight at the end of a line, that could not be read as one.
_BROKEN = re.compile(r"\(\s*imp|\d\s*/\s*\d+\s*\)?[ \t\r]*$(?=\s*\S)", re.I | re.M)
_SECOND = re.compile(r"\(\s*\d+(?:\.\d+)?(?:\s*/\s*100)?\s*\)[\"”]?[ \t\r]*(?:\n|[-*•][ \t])")
_JSON = re.compile(r"\s*[{\[]")


@dataclass(frozen=True, slots=True)
class Question:
    """One item of a checklist: its text and its weight, usually 0 to 100."""

    text: str
    weight: float


def is_checklist_text(text: str) -> bool:
    """Whether a text looks like a checklist in either way of writing; tagged lists and JSON are none."""
    if _JSON.match(text) or has_tag(text) or is_score_text(text):
        return False
    return any(pattern.search(text) for pattern in (_IMPORTANCE, _HEADING, _QUESTION))


def has_importances(text: str) -> bool:
    """Whether a text is numbered with importances, rather than bullets with weights."""
    return _IMPORTANCE.search(text) is not None


def read_checklist(text: str, place: Place) -> list[Question]:
    """The items of a text.

    Read with a note, kind `layout`: text before the list, and after its end mark; numbers that are skipped or
    repeated. An item runs up to its importance, so numbers inside it, which begin with 1 again, are part of it.

    Raises FormatError, with item and line, for an item without text or without a weight that is a number, and for
    text between items; and for a text without any item, such as "None".
    """
    remarks: list[str] = []
    if not text.strip():
        raise place.error("the text is blank")
    read = _numbered if has_importances(text) else _bulleted
    found = list(read(text, place, remarks))
    if not found:
        hint = 'write items as "1) Is it short? (importance: 100/100)" or "- Is it short? (100)"'
        raise place.error("no item of a checklist in this text", hint=hint)
    for remark in remarks:
        place.note("layout", remark)
    return found


def write_checklist(items: Sequence[Question], *, bullets: bool = False) -> str:
    """The plain text of a checklist: numbered with importances, or the generator's bullets between their marks."""
    if bullets:
        lines = [f"- {item.text} ({_shown(item.weight)})" for item in items]
        return "\n".join(["Key Criteria Questions:", *lines, _END])
    return "\n".join(
        f"{index}) {item.text} (importance: {_shown(item.weight)}/100)" for index, item in enumerate(items, start=1)
    )


def _shown(weight: float) -> str:
    """A weight in plain digits, never as 1e-05."""
    return str(number(weight)) if "e" not in str(number(weight)) else f"{weight:.20f}".rstrip("0").rstrip(".")


def _name(index: int, text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"item {index + 1} (line {line} of the text)"


# Numbered, with importances


def _numbered(text: str, place: Place, remarks: list[str]) -> Iterator[Question]:
    begin = 0
    numbers: list[str] = []
    for index, end in enumerate(_IMPORTANCE.finditer(text)):
        start = _start(text, index, begin, end.start(), place, remarks)
        name = _name(index, text, start.start())
        body = text[start.end() : end.start()]
        _check_inner(body, name, place)
        given = _OUT_OF_100.fullmatch(end["inner"])
        if given is None:
            hint = "write it as (importance: 75/100)"
            raise place.error(f"{name} has the importance {end['inner'].strip()!r}", hint=hint)
        if _BROKEN.search(body):
            hint = "write it as (importance: 75/100), once, at the end of the item"
            raise place.error(f"{name} has an importance that cannot be read", hint=hint)
        if not body.strip():
            raise place.error(f"{name} has no text")
        numbers.append(start.groupdict().get("number") or str(index + 1))
        yield Question(body.strip(), float(given["weight"]))
        begin = end.end()
    rest = text[begin:].strip(" \t\r\n.;,")
    if rest:
        name = _name(len(numbers), text, text.index(rest, begin))
        raise place.error(f"{name} has no importance: {rest[:40]!r}", hint="end it with (importance: 75/100)")
    if numbers != [str(index + 1) for index in range(len(numbers))]:
        remarks.append(f"the items are numbered {', '.join(numbers)}")


def _start(text: str, index: int, begin: int, end: int, place: Place, remarks: list[str]) -> re.Match[str]:
    """The number or bullet of the item between two places of the text."""
    found = [match for pattern in (_NUMBER, _BULLET) if (match := pattern.search(text, begin, end))]
    first = min(found, key=lambda match: match.start(), default=None)
    same_line = _SAME_LINE.match(text, begin, end) if index else None
    start = same_line or first
    if start is None:
        name = _name(index, text, begin if index == 0 else end)
        raise place.error(f"{name} has no number", hint='write items as "1) Is it short? (importance: 100/100)"')
    before = text[begin : start.start()].strip(" \t\r\n.;,")
    if before and index:
        name = _name(index - 1, text, begin)
        raise place.error(f"{name} goes on after its importance: {before[:40]!r}", hint="put the importance last")
    if before:
        remarks.append("the text before the list is no criterion")
    return start


def _check_inner(body: str, name: str, place: Place) -> None:
    """Raises FormatError for numbers inside an item that are no list of its own, from 1: the next item's."""
    inner = [int(found["number"]) for found in _NUMBER.finditer(body)]
    if inner != list(range(1, len(inner) + 1)):
        raise place.error(f"{name} has no importance", hint="end it with (importance: 75/100)")


# Bullets, as they are generated


def _bulleted(text: str, place: Place, remarks: list[str]) -> Iterator[Question]:
    stop = text.find(_END)
    if stop >= 0 and text[stop + len(_END) :].strip():
        remarks.append(f"the text after {_END} is no criterion")
    stop = len(text) if stop < 0 else stop
    headings = list(_HEADING.finditer(text, 0, stop))
    begin = headings[-1].end() if headings else 0
    bullets = list(_BULLET.finditer(text, begin, stop))
    if not bullets:
        return
    if headings and text[: headings[-1].start()].strip() or text[begin : bullets[0].start()].strip():
        remarks.append("the text before the list is no criterion")
    ends = [bullet.start() for bullet in bullets[1:]] + [stop]
    for index, (bullet, end) in enumerate(zip(bullets, ends, strict=True)):
        name = _name(index, text, bullet.start())
        body = text[bullet.end() : end].rstrip()
        weight = _WEIGHT.search(body)
        if weight is None:
            raise place.error(f"{name} does not end with a weight: {body[-40:]!r}", hint="end it with (75)")
        if _SECOND.search(body[: weight.start()]):
            raise place.error(f"{name} has two weights", hint='begin every item with "- "')
        if not body[: weight.start()].strip():
            raise place.error(f"{name} has no text")
        yield Question(body[: weight.start()].strip(), float(weight["weight"]))
