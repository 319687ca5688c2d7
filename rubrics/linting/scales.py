"""Rules about the levels of a scale (family S)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rubricate.rubrics.criterion import Criterion, Level, OrdinalScale
from rubricate.rubrics.linting.base import Found, Severity, Subject, rule
from rubricate.rubrics.linting.words import Text

__all__: list[str] = []

_HIGH = re.compile(
    r"\b(?:perfect(?:ly)?|flawless(?:ly)?|excellent(?:ly)?|fully|outstanding|exceptional(?:ly)?|"
    r"thorough(?:ly)?|complete(?:ly)?|"
    r"all (?:of )?the|comprehensive(?:ly)?|accurate(?:ly)?|clear(?:ly)?|correct(?:ly)?|no errors?|"
    r"without errors?)\b",
    re.I,
)
_LOW = re.compile(
    r"\b(?:fails?|lacks?|missing|misses|incorrect(?:ly)?|wrong(?:ly)?|poor(?:ly)?|irrelevant|does not|no attempt|"
    r"inaccurate|unclear|ignores?|omits?|many errors|serious errors|incoherent|unable|neglects?|barely|nothing)\b",
    re.I,
)
_SCORE = re.compile(r"\W*(?:score|level|rating|grade)\s*(?:of\s*)?(\d+)\b(?:\s*[:\-.)]|\s*$)", re.I)


def _scales(subject: Subject) -> Iterator[tuple[Criterion, tuple[Level, ...]]]:
    for criterion in subject.criteria:
        if isinstance(criterion.scale, OrdinalScale):
            yield criterion, criterion.scale.levels


def _key(level: Level) -> tuple[str, ...]:
    return Text(level.description).words


@rule("S801", "equal-levels", Severity.ERROR)
def equal_levels(subject: Subject) -> Iterator[Found]:
    """Two levels of a scale have the same description.

    No judge can tell them apart, and the difference in reward between them is chance.

    Fix: say what the better level has that the other has not, or drop one level.
    """
    for criterion, levels in _scales(subject):
        first: dict[tuple[str, ...], Level] = {}
        for level in levels:
            key = _key(level)
            kept = first.setdefault(key, level) if key else level
            if kept is not level:
                message = f"the levels {kept.label!r} and {level.label!r} have the same description"
                fix = f"say what {level.label!r} has that {kept.label!r} has not, or drop one of them"
                yield Found((criterion.id,), message, fix)


@rule("S802", "empty-level")
def empty_level(subject: Subject) -> Iterator[Found]:
    """Some levels of a scale are described and others are not, or none of four and more is.

    Judges prefer the levels that they know something about; where none is described, each has its own scale.

    Fix: describe every level.
    """
    for criterion, levels in _scales(subject):
        empty = [level.label for level in levels if not level.description.strip()]
        if empty and len(empty) < len(levels):
            message = f"no description for the level{'s' if len(empty) > 1 else ''} {', '.join(empty)}"
            yield Found((criterion.id,), message, "describe every level")
        elif empty and len(levels) > 3 and all(level.label.lstrip("-").isdigit() for level in levels):
            message = f"none of the {len(levels)} levels is described"
            yield Found((criterion.id,), message, "describe every level, or use a binary scale", Severity.INFO)


@rule("S803", "levels-out-of-order", Severity.ERROR)
def out_of_order(subject: Subject) -> Iterator[Found]:
    """The descriptions seem to stand in the wrong order: the lowest one praises, the highest one blames.

    Scales are written worst first; a reversed one rewards the worst responses. Also reported: a description that
    names the score of another level (`Score 5: …` at 1).

    Fix: reverse the levels, so that the worst comes first.
    """
    for criterion, levels in _scales(subject):
        named = [
            (level, int(found[1])) for level in levels if (found := _SCORE.match(level.description)) is not None
        ]
        wrong = [(level, score) for level, score in named if float(score) != level.value]
        if wrong and len(named) == len(levels):
            level, score = wrong[0]
            message = f"the description of the level {level.label!r} begins with the score {score}"
            yield Found((criterion.id,), message, "move each description to its own level")
        elif _praises(levels[0].description) and _blames(levels[-1].description):
            message = (
                f"the lowest level, {levels[0].label!r}, praises, and the highest, {levels[-1].label!r}, blames"
            )
            yield Found((criterion.id,), message, "reverse the descriptions: the worst comes first")


def _praises(text: str) -> bool:
    return bool(_HIGH.search(text)) and not _LOW.search(text)


def _blames(text: str) -> bool:
    return bool(_LOW.search(text)) and not _HIGH.search(text)


@rule("S804", "levels-alike", Severity.INFO)
def levels_alike(subject: Subject) -> Iterator[Found]:
    """Neighbouring levels differ in words such as `clearly` or in inflection alone.

    Judges take one for the other.

    Fix: say what the better level has that the other has not.
    """
    for criterion, levels in _scales(subject):
        for low, high in zip(levels, levels[1:], strict=False):
            one, two = Text(low.description), Text(high.description)
            differ = one.words != two.words and one.negative == two.negative
            if differ and len(one.core) > 3 and one.core == two.core and one.names == two.names:
                fix = f"say what {high.label!r} has that {low.label!r} has not"
                yield Found((criterion.id,), f"the levels {low.label!r} and {high.label!r} hardly differ", fix)
