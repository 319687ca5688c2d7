"""A draft with what its criteria are worded with: the languages, the points met and unmet, the wordings."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from rubricate.training.checks.banks import Banks, Point
from rubricate.training.checks.draft import Draft
from rubricate.training.checks.offers import Offer, two_forms

__all__ = ["Known"]

_SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "en": ("The response", "The response", "The response", "The answer", "The text", "The reply"),
    "de": ("Die Antwort", "Die Antwort", "Der Text"),
    "fr": ("La réponse", "La réponse"),
    "es": ("La respuesta", "La respuesta"),
    "it": ("La risposta", "La risposta"),
    "pt": ("A resposta", "A resposta"),
    "nl": ("Het antwoord", "De tekst"),
}
_TASK_NOUNS: Mapping[str, str] = {
    "email": "The email",
    "letter": "The letter",
    "review": "The review",
    "story": "The story",
    "recipe": "The recipe",
    "summary": "The summary",
    "plan": "The plan",
    "application": "The application",
}


class Known:
    """A draft, the banks, and the language that its criteria are worded in.

    Attributes:
        kinds: the kinds that are wanted.
        true, false: the points that are known to be stated, and not to be, with wordings in the language; both
            shuffled, but points of which there is a near miss come first among the false ones.
    """

    def __init__(
        self, draft: Draft, banks: Banks, language: str, rng: random.Random, kinds: Collection[str] = ()
    ) -> None:
        self.draft = draft
        self.banks = banks
        self.language = language
        self.rng = rng
        self.kinds = kinds
        self.true: list[Point] = []
        self.false: list[Point] = []
        for point in draft.topic.points:
            state = draft.states(point)
            if state is not None and all(point.phrases(language, own=draft.topic.language)):
                (self.true if state else self.false).append(point)
        rng.shuffle(self.true)
        rng.shuffle(self.false)
        self.false.sort(key=lambda point: point.id not in draft.missed)

    def asks(self, kind: str) -> bool:
        """Whether a kind of form is wanted and the language has wordings of it."""
        return kind in self.kinds and (self.language, kind) in self.banks.forms

    def ask(
        self,
        kind: str,
        met: bool,
        *,
        key: str = "",
        bucket: str = "",
        fill: Mapping[str, str] | None = None,
        weight: float = 0.0,
        parts: tuple[str, ...] = (),
    ) -> list[Offer]:
        """The offers of a kind with that answer; none where `asks` says no."""
        if not self.asks(kind):
            return []
        form = self.banks.forms[self.language, kind]
        return two_forms(form, met, key=key, bucket=bucket, fill=fill, weight=weight, parts=parts)

    def names(self, *points: Point) -> tuple[str, ...]:
        """Names of points that no other topic has."""
        return tuple(f"{self.draft.topic.id} {point.id}" for point in points)

    def fill(self, **points: Point) -> dict[str, str]:
        """What fills the places of a wording: a subject, and phrases for the points, plain and denied."""
        own = self.draft.topic.language
        subject = self.rng.choice(_SUBJECTS.get(self.language, _SUBJECTS["en"]))
        if self.language == "en" and self.draft.topic.task in _TASK_NOUNS and self.rng.random() < 0.3:
            subject = _TASK_NOUNS[self.draft.topic.task]
        filled = {"the": subject}
        for name, point in points.items():
            about, denied = point.phrases(self.language, own=own)
            filled[name] = self.rng.choice(about)
            filled["not_" + name] = self.rng.choice(denied)
        return filled
