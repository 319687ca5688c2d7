"""Kinds that follow from the traits of a draft, and compounds of traits, form and content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rubricate.training.checks.banks import Trait
from rubricate.training.checks.known import Known
from rubricate.training.checks.offers import Offer, clauses, two_forms

__all__ = ["compounds", "traits"]

_GUARDS: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "apology": r"\bsorry\b|apolog|\bpardon|forgiv",
        "thanks": r"\bthank|grateful|appreciat",
        "first_person": r"\b(?:I|me|my|mine|myself)\b",
        "first_plural": r"\b(?:we|us|our|ours|let's)\b",
        "second_person": r"\b(?:you|your|yours|yourself)\b",
        "date": r"\b(?:1[5-9]|20)\d\d\b|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
        "statistics": r"\d|per cent|percent|\bhalf\b|\bthird\b|quarter",
        "rhetorical_question": r"\?",
        "asks_clarifying": r"\?",
        "warning": r"\bwarn|danger|careful|caution|never\b|\brisk|poison|\btoxic|harm",
        "example": r"for example|for instance|such as|e\.g\.",
        "analogy": r"\blike an?\b|\bas if\b|similar to",
        "opinion": r"\bI (?:think|believe|find|would)|in my (?:view|opinion)",
        "disclaimer": r"\blawyer|\bdoctor|professional|\badvice\b",
    }.items()
}
"""What in a topic's own sentences might pass for a trait: then nothing is asked about it."""
_PERSONAL = frozenset({"email", "letter", "review", "story", "dialogue", "application", "product", "complaint"})
_DOUBTFUL_IN_PERSONAL = frozenset(
    {
        "opinion", "anecdote", "names_person", "by_name", "second_person", "first_person", "first_plural", "advert",
        "call_to_action", "offers_help", "thanks", "apology", "formal", "informal", "greeting", "next_steps",
        "history", "enthusiastic", "humour", "metaphor", "urges_to_buy", "own_process", "asks_clarifying",
        "empathetic", "encouraging", "pessimistic", "flattery", "date", "urgency", "self_praise", "warning",
    }
)  # fmt: skip


def traits(known: Known) -> list[Offer]:
    """Plain and negated offers of every trait of which something is known."""
    found: list[Offer] = []
    for trait in _of_language(known):
        state = _state(known, trait)
        worded = _worded(known, trait)
        if state is not None and worded is not None:
            near = trait.kind in known.draft.traits and not state
            found += two_forms(worded, state, weight=0.5 if near else 0.0)
    return found


def _of_language(known: Known) -> list[Trait]:
    language = known.draft.language
    return [trait for (name, _), trait in known.banks.traits.items() if name == language]


def _worded(known: Known, trait: Trait) -> Trait | None:
    """The trait with wordings in the language that is asked in."""
    found = trait.worded(known.language)
    return known.banks.traits.get((known.language, trait.kind)) if found is None else found


def _state(known: Known, trait: Trait) -> bool | None:
    """Whether the draft has the trait; None where another phrase, a mark or the topic makes that doubtful."""
    draft = known.draft
    if draft.traits.get(trait.kind):
        return True
    if trait.kind in draft.muted:
        return None
    if trait.kind in _DOUBTFUL_IN_PERSONAL and draft.topic.task in _PERSONAL:
        return None
    guard = _GUARDS.get(trait.kind)
    if guard is None or trait.kind in draft.traits:
        return False
    return None if guard.search(draft.response) else False


@dataclass(frozen=True, slots=True)
class _Clause:
    """A verb phrase and whether it is true of the response."""

    text: str
    met: bool
    key: str


def _clauses(known: Known) -> list[_Clause]:
    """Verb phrases of the draft's traits, form and points; a few of each, of both answers."""
    rng, draft, banks = known.rng, known.draft, known.banks
    found: list[_Clause] = []
    entries = [(trait, state) for trait in _of_language(known) if (state := _state(known, trait)) is not None]
    there = [entry for entry in entries if entry[1]]
    for trait, state in [*there[:2], *rng.sample(entries, min(2, len(entries)))]:
        found += _both_ways(known, clauses(trait, False), clauses(trait, True), state, trait.kind)
    for kind, met in _simple_forms(known):
        form = banks.forms.get(("en", kind))
        if form is not None:
            found += _both_ways(known, clauses(form, False), clauses(form, True), met, kind)
    for point in [*known.true[:1], *known.false[:1]]:
        fill = known.fill(a=point)
        met = draft.states(point) is True
        found += _both_ways(known, [fill["a"]], [fill["not_a"]], met, f"states {point.id}")
    return found


def _simple_forms(known: Known) -> list[tuple[str, bool]]:
    """Two marks of form that need no argument."""
    measured = known.draft.measured
    marks = {
        "bullets": measured.bullets > 0,
        "numbered": measured.numbered > 0,
        "headings": measured.headings,
        "bold": measured.bold,
        "exclamation": "!" in known.draft.response,
        "emoji": measured.emoji,
        "no_commas": "," not in known.draft.response,
    }
    true = [kind for kind, met in marks.items() if met]
    false = [kind for kind, met in marks.items() if not met]
    return [(known.rng.choice(kinds), met) for kinds, met in ((true, True), (false, False)) if kinds]


def _both_ways(known: Known, plain: list[str], denied: list[str], met: bool, key: str) -> list[_Clause]:
    options = [(texts, answer) for texts, answer in ((plain, met), (denied, not met)) if texts]
    if not options:
        return []
    texts, answer = known.rng.choice(options)
    return [_Clause(known.rng.choice(texts), answer, key)]


def compounds(known: Known) -> list[Offer]:
    """Two verb phrases of different kinds joined by `and` or `or`, in all four combinations of truth."""
    if known.language != "en" or known.draft.language != "en":
        return []
    pool = _clauses(known)
    known.rng.shuffle(pool)
    found: list[Offer] = []
    for a, b in ((True, True), (True, False), (False, True), (False, False)):
        one = next((item for item in pool if item.met == a), None)
        two = next((item for item in pool if item.met == b and one is not None and item.key != one.key), None)
        if one is None or two is None:
            continue
        fill = {"a": one.text, "b": two.text}
        found += known.ask("and", a and b, key=f"and {one.key} {two.key}", fill=fill)
        found += known.ask("or", a or b, key=f"or {one.key} {two.key}", fill=fill)
    return found
