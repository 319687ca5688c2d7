"""How values of criteria are read: verdicts out of words, scores out of numbers, and what speaks against one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rubricate.judges.parsing.behind import relabelled, speaks_against, stated
from rubricate.judges.parsing.marks import Mark, outcome
from rubricate.judges.parsing.numbers import Scale
from rubricate.judges.parsing.score import score_marks
from rubricate.judges.parsing.text import plain, sentences
from rubricate.judges.parsing.verdict import takes_back, text_marks, verdict_labels
from rubricate.judges.parsing.vocabulary import Unreadable, Vocabulary, vocabulary_of

__all__ = ["Domain", "score_domain", "verdict_domain"]

T = TypeVar("T")
_NUMBER = re.compile(r"\W{0,3}\d+(?:[.,]\d+)? ?(?:(?:/|out of) ?\d+|points?)?\W{0,3}")


@dataclass(frozen=True, slots=True)
class Domain(Generic[T]):
    """How the values of an id are read.

    Attributes:
        read: a value of a field.
        section: a passage that is all about this criterion.
        contradicted: whether a reason takes a value back.
        opposed: whether what `said_of` gives of a criterion speaks against its value.
        is_value: whether a text is a value of some criterion.
    """

    read: Callable[[str, object], T | Unreadable]
    section: Callable[[str, str], T | Unreadable]
    contradicted: Callable[[str, T, str], bool]
    opposed: Callable[[str, T, str], bool]
    is_value: Callable[[str], bool]


def verdict_domain(words: Mapping[str, Vocabulary], key: str) -> Domain[str]:
    """Verdicts by id, each in its own words; `key` is the label that was asked for."""
    finder = verdict_labels(key)

    def section(id: str, text: str) -> str | Unreadable:
        found = outcome(text_marks(text, words[id], finder))
        if found is not Unreadable.UNKNOWN:
            return found
        said = [words[id].exact(sentence.text) for sentence in sentences(text)]
        return outcome([Mark(value) for value in said if value is not Unreadable.UNKNOWN])

    def contradicted(id: str, value: str, reason: str) -> bool:
        return takes_back(reason, value, words[id], finder)

    def opposed(id: str, value: str, said: str) -> bool:
        return speaks_against(said, value, words[id], finder)

    def is_value(text: str) -> bool:
        return any(isinstance(one.exact(text), str) for one in {id(one): one for one in words.values()}.values())

    return Domain(lambda id, value: words[id].read(value), section, contradicted, opposed, is_value)


def score_domain(
    scales: Mapping[str, tuple[float, float]], integer: bool, choices: Sequence[str], key: str
) -> Domain[float | str]:
    """Scores by id, each on its own scale, or one of the choices beside it."""
    ranges = {id: Scale(low, high, integer) for id, (low, high) in scales.items()}
    words = vocabulary_of(choices) if choices else None

    def read(id: str, value: object) -> float | str | Unreadable:
        if words is not None and not isinstance(value, bool | int | float):
            label = words.read(value)
            if isinstance(label, str):
                return label
        return ranges[id].read(value)

    def section(id: str, text: str) -> float | str | Unreadable:
        found = outcome(score_marks(text, ranges[id], key))
        return read(id, text.strip()) if found is Unreadable.UNKNOWN else found

    def contradicted(id: str, value: float | str, reason: str) -> bool:
        said = outcome(score_marks(plain(reason), ranges[id], key, strict=True))
        return isinstance(said, float) and said != value

    def opposed(id: str, value: float | str, said: str) -> bool:
        marks = score_marks(relabelled(said, key.replace("_", " ")), ranges[id], key, after=True)
        given = [mark.value for mark in marks if mark.value is not Unreadable.UNKNOWN]
        given += [read(id, text) for text, denied in stated(said) if _NUMBER.fullmatch(text) and not denied]
        return any(one != value for one in given)

    return Domain(read, section, contradicted, opposed, lambda text: _NUMBER.fullmatch(text) is not None)
