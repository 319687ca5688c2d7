"""Marks: places in a reply where a verdict stands, and the rule that picks the one that counts."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.vocabulary import Unreadable

__all__ = ["MOST_MARKS", "Mark", "Standing", "decide", "outcome", "refuse_if_refused", "unreadable"]

T = TypeVar("T")
MOST_MARKS = 2000
"""More verdicts than this in one reply are a judge that runs in a loop, not an answer."""


class Standing(enum.IntEnum):
    """How a verdict is announced: as a draft, without a word, or as the final one."""

    DRAFT = 0
    PLAIN = 1
    FINAL = 2


@dataclass(frozen=True, slots=True)
class Mark(Generic[T]):
    """A verdict, score or preference found in a reply.

    Attributes:
        value: what was read, or why it cannot be.
        standing: how it is announced.
        correction: it is marked as a correction of what stood before.
        part, at: where it stands: index of the part of the reply, and offset in it.
    """

    value: T | Unreadable
    standing: Standing = Standing.PLAIN
    correction: bool = False
    part: int = 0
    at: int = 0


def outcome(marks: Sequence[Mark[T]]) -> T | Unreadable:
    """The value that counts among marks in the order of the reply.

    A later one replaces an earlier one if it is a correction, or final where the earlier one is not. Different
    values of equal standing are AMBIGUOUS. Drafts count only against other drafts, and alone not at all.
    """
    firm = [mark for mark in marks if mark.standing is not Standing.DRAFT]
    if not firm:
        return Unreadable.UNKNOWN
    if len(firm) > MOST_MARKS:
        return Unreadable.AMBIGUOUS
    current = firm[0]
    for mark in firm[1:]:
        if mark.correction or mark.standing > current.standing:
            current = mark
        elif not isinstance(mark.value, Unreadable) and mark.value == current.value:
            continue
        elif isinstance(mark.value, Unreadable) and mark.value is current.value:
            continue
        else:
            current = replace(current, value=Unreadable.AMBIGUOUS)
    return current.value


_MESSAGES = {
    Unreadable.UNKNOWN: "the reply holds no readable {what}",
    Unreadable.AMBIGUOUS: "the reply does not settle on one {what}",
    Unreadable.OUT_OF_RANGE: "the {what} in the reply is outside the scale",
    Unreadable.PLACEHOLDER: "the reply holds no readable {what}",
}


def decide(marks: Sequence[Mark[T]], reply: str, what: str) -> T:
    """The value that counts. Raises ParseError when there is none."""
    value = outcome(marks)
    if isinstance(value, Unreadable):
        raise unreadable(value, reply, what)
    return value


def refuse_if_refused(texts: Sequence[str], reply: str) -> None:
    """Raise ParseError when a text opens with a refusal: a verdict after it is a default, not a judgement."""
    if any(cues.is_strong_refusal(text) for text in texts):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reply)


def unreadable(why: Unreadable, reply: str, what: str) -> ParseError:
    """The error that says why there is no value."""
    kind = "unparsable" if why is Unreadable.PLACEHOLDER else why.value
    return ParseError(_MESSAGES[why].format(what=what), kind=kind, reply=reply)
