"""Rules about words that contradict a criterion's sign (family P). English only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rubricate.rubrics.criterion import Criterion, Importance, Polarity
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.common import note_polarity
from rubricate.rubrics.linting.base import Found, Severity, Subject, rule

__all__ = ["as_error"]

_SUBJECT = r"\W*(?:(?:the |this )?(?:response|answer|model|assistant|output|reply|text|it)\s+)?"
_GOOD = re.compile(
    _SUBJECT + r"(?:should not|shouldn't|must not|mustn't|may not|never\b|is free (?:of|from)|contains? no\b|"
    r"(?:correctly|accurately|properly|successfully|appropriately|safely|politely)\s+[a-z]+s\b|"
    r"(?:provides?|gives?|contains?|offers?|includes?)\s+(?:an?\s+|the\s+)?(?:accurate|correct|complete|helpful|"
    r"appropriate|polite|thorough|valid)\s|"
    r"(?:does not|doesn't|do not)\s+(?:contain|include|use|make|invent|reveal|encourage|promote)\s+(?:\w+\s+){0,2}?"
    r"(?:offensive|harmful|errors?|mistakes?|jargon|hallucinat\w+|misleading|toxic|hate|slurs?|false|incorrect)\b)",
    re.I,
)
_ERROR = re.compile(
    _SUBJECT + r"(?:fails? to|neglects?\b|overlooks?\b|omits?\b|hallucinates?\b|fabricates?\b|misstates?\b|"
    r"misrepresents?\b|misleads?\b|(?:incorrectly|wrongly|falsely|mistakenly|erroneously|inaccurately)\s+[a-z]+|"
    r"(?:contains?|includes?|makes?|has|introduces?)\s+(?:an?\s+|any\s+|some\s+|many\s+|several\s+|serious\s+)*"
    r"(?:(?:factual|grammatical|spelling|logical|calculation|major|obvious|clear|incorrect|false|misleading)\s+)+"
    r"(?:errors?|mistakes?|claims?|statements?|information|facts?|inaccurac(?:y|ies)|fallac(?:y|ies))|"
    r"(?:contains?|includes?|makes?|gives?|provides?|offers?|states?)\s+(?:an?\s+|any\s+|some\s+)?"
    r"(?:hallucinated|fabricated|invented|made-up|incorrect|wrong|false|misleading|inaccurate)\s+\w+|"
    r"(?:contains?|includes?|makes?|has)\s+(?:errors|mistakes|inaccuracies|hallucinations)|"
    r"is (?:incorrect|wrong|misleading|inaccurate|rude|off[- ]topic|incoherent|offensive|harmful))",
    re.I,
)
_NEGATIVE = re.compile(
    _SUBJECT
    + r"(?:does not|doesn't|do not|is not|isn't|should not|must not|avoids?\b|should avoid|must avoid|refrains?\b|"
    r"never\b|contains? no\b|without\b|omits\b)",
    re.I,
)


def _noted(criterion: Criterion) -> bool:
    """Whether the reader's own check finds the sign and the words at odds."""
    place = Place()
    note_polarity(criterion, place, pitfall=criterion.importance is Importance.PITFALL)
    return bool(place.notes)


@rule("P201", "penalised-virtue", Severity.ERROR)
def penalised_virtue(subject: Subject) -> Iterator[Found]:
    """A penalty describes good behaviour: `Avoids jargon` with a negative weight.

    A verdict says whether the criterion is met; a response that does avoid jargon loses. It comes from pitfalls
    that are worded as what a good response does and yet carry a minus sign.

    Fix: make it a reward (a positive weight), or word it as the error.
    """
    for criterion in subject.criteria:
        if criterion.polarity is Polarity.PENALTY and (_noted(criterion) or _GOOD.match(criterion.text)):
            message = "it is a penalty, yet describes good behaviour: a response that meets it loses"
            fix = f'make it a reward of weight {criterion.weight:g}, or word the error: "{as_error(criterion)}"'
            yield Found((criterion.id,), message, fix)


@rule("P202", "rewarded-error", Severity.ERROR)
def rewarded_error(subject: Subject) -> Iterator[Found]:
    """A reward describes an error: `Fails to mention the dose` with a positive weight.

    A response that makes the error gains. It comes from pitfalls whose minus sign was lost.

    Fix: make it a penalty (a negative weight), or word it as what a good response does.
    """
    for criterion in subject.criteria:
        if criterion.polarity is Polarity.REWARD and (_noted(criterion) or _ERROR.match(criterion.text)):
            message = "it is a reward, yet describes an error: a response that makes it gains"
            fix = f"make it a penalty of weight {criterion.weight:g}, or word it as what a good response does"
            yield Found((criterion.id,), message, fix)


@rule("P203", "negative-wording", Severity.INFO)
def negative_wording(subject: Subject) -> Iterator[Found]:
    """A reward is worded as what the response does not do.

    Judges err more often on negations, and an empty response meets the criterion.

    Fix: say what the response does instead, or make the error a penalty.
    """
    for criterion in subject.criteria:
        text = criterion.text
        if criterion.polarity is Polarity.REWARD and criterion.verifier is None and _NEGATIVE.match(text):
            if not (_noted(criterion) or _ERROR.match(text)):
                message = "it is met by what the response does not do, so by an empty response too"
                yield Found((criterion.id,), message, "say what the response does instead, or penalise the error")


_FLIPS = (
    (re.compile(r"(?i)\bavoids? (?:the )?(?:use of|using) "), "uses "),
    (re.compile(r"(?i)\bavoids? (?=\w+ing\b)"), "does the following: "),
    (re.compile(r"(?i)\bavoids? "), "contains "),
    (re.compile(r"(?i)\b(?:should|must) not "), "does what it must not: "),
    (re.compile(r"(?i)\bis free (?:of|from) "), "contains "),
    (re.compile(r"(?i)\bcontains? no "), "contains "),
    (re.compile(r"(?i)\brefrains? from "), "does the following: "),
)


def as_error(criterion: Criterion) -> str:
    """The text turned into the error, as far as that is mechanical."""
    text = criterion.text.strip()
    for pattern, other in _FLIPS:
        flipped, count = pattern.subn(other, text, count=1)
        if count:
            return flipped[:1].upper() + flipped[1:]
    return f"Fails in this: {text}"
