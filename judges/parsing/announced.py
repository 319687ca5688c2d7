"""Values that a passage announces, by a label ("Verdict: met") or a closing tag, and what takes the last back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.labels import Hit, LabelFinder, find_tags
from rubricate.judges.parsing.marks import MOST_MARKS, Mark, Standing
from rubricate.judges.parsing.text import mask_quotes
from rubricate.judges.parsing.vocabulary import Unreadable, as_known

__all__ = ["announced", "unquoted"]

Read = str | Unreadable
_FREE = 40_000
"""So many characters of values, and four times the passage's, are read; labels that crowd more have no value."""


def unquoted(text: str, exact: Callable[[str], Read]) -> str:
    """The text with quoted words masked, except where the quotation is nothing but one of the values."""
    return mask_quotes(
        text, lambda inner: len(inner) < 60 and inner[0] not in "[\\" and isinstance(exact(inner), str)
    )


def announced(
    text: str,
    finder: LabelFinder,
    *,
    strong: Sequence[str],
    read: Callable[[Hit], Read | None],
    exact: Callable[[str], Read],
    corrected: Callable[[str], Read | None],
    part: int = 0,
    after: bool = False,
) -> list[Mark[str]]:
    """The values that a passage announces, in order.

    Args:
        text: plain text, quotations masked.
        finder: the labels.
        strong: nouns whose label counts even where the value cannot be read.
        read: the value after a label; None where the label does not count.
        exact: the value that a text spells, and nothing else.
        corrected: what a correction changes the value to; None where it speaks of something else.
        part: part of the reply.
        after: a value stands in front of the passage.
    """
    marks: list[Mark[str]] = []
    since = 0
    known: dict[tuple[str, bool, str], Read | None] = {}  # a judge that runs in a loop repeats itself
    left = 4 * len(text) + _FREE
    for count, hit in enumerate(finder.find(text)):
        key = (hit.noun, hit.qualified, hit.value)
        if key not in known:
            known[key] = read(hit)
            left -= len(hit.value)
        if count == MOST_MARKS or left < 0:
            return [Mark(Unreadable.AMBIGUOUS, part=part)]
        value = known[key]
        if value is None or value is Unreadable.PLACEHOLDER:
            continue
        if value is Unreadable.UNKNOWN and not (hit.colon and hit.noun in strong and len(hit.value.strip()) < 40):
            continue
        correction = hit.correction or cues.CORRECTS.search(text, since, hit.start) is not None
        marks.append(Mark(value, hit.standing, correction and bool(marks), part, hit.start))
        since = hit.end
    for value, start in find_tags(text, lambda inner: as_known(exact(inner))):
        marks.append(Mark(value, Standing.PLAIN, False, part, start))
        since = max(since, start)
    marks.sort(key=lambda mark: mark.at)
    if marks or after:
        for said in cues.corrections(text[since:]):
            value = corrected(said)
            if value is not None:
                marks.append(Mark(value, Standing.FINAL, True, part, len(text)))
    return marks
