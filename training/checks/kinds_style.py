"""Kinds that follow from the traits of a draft, and compounds of traits, form and content."""

from __future__ import annotations

from dataclasses import dataclass

from rubricate.training.checks.banks import Trait
from rubricate.training.checks.guards import doubtful
from rubricate.training.checks.known import Known
from rubricate.training.checks.offers import Offer, clauses, two_forms

__all__ = ["compounds", "traits"]


_ABSENT = 12
"""How many of the traits of which no phrase is in are looked at."""


def traits(known: Known) -> list[Offer]:
    """Plain and negated offers of traits: of every one that is in or nearly missed, and of some that are not."""
    found: list[Offer] = []
    entries = [trait for trait in _of_language(known) if trait.kind in known.kinds]
    named = [trait for trait in entries if trait.kind in known.draft.traits]
    others = [trait for trait in entries if trait.kind not in known.draft.traits]
    for trait in [*named, *known.rng.sample(others, min(_ABSENT, len(others)))]:
        worded = _worded(known, trait)
        state = None if worded is None else _state(known, trait)
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
    if trait.kind in draft.muted or doubtful(trait.kind, trait.language, draft.topic.task, draft.matter):
        return None
    return False


@dataclass(frozen=True, slots=True)
class _Clause:
    """A verb phrase and whether it is true of the response."""

    text: str
    met: bool
    key: str
    part: str


def _clauses(known: Known) -> list[_Clause]:
    """Verb phrases of the draft's traits, form and points; a few of each, of both answers."""
    rng, draft, banks = known.rng, known.draft, known.banks
    found: list[_Clause] = []
    entries = [trait for trait in _of_language(known) if trait.kind in known.kinds]
    there = [trait for trait in entries if trait.kind in draft.traits]
    for trait in [*rng.sample(there, min(2, len(there))), *rng.sample(entries, min(3, len(entries)))]:
        state = _state(known, trait)
        if state is None:
            continue
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
    name = f"{known.draft.topic.id} {key}" if key.startswith("states") else key
    return [_Clause(known.rng.choice(texts), answer, key, f"{name} {texts is plain}")]


def compounds(known: Known) -> list[Offer]:
    """Two verb phrases of different kinds joined by `and` or `or`, in all four combinations of truth."""
    if known.language != "en" or known.draft.language != "en" or not (known.asks("and") or known.asks("or")):
        return []
    pool = _clauses(known)
    known.rng.shuffle(pool)
    found: list[Offer] = []
    for a, b in ((True, True), (True, False), (False, True), (False, False)):
        one = next((item for item in pool if item.met == a), None)
        two = next((item for item in pool if item.met == b and one is not None and item.key != one.key), None)
        if one is None or two is None:
            continue
        fill, parts = {"a": one.text, "b": two.text}, (one.part, two.part)
        found += known.ask("and", a and b, key=f"and {one.key} {two.key}", fill=fill, parts=parts)
        found += known.ask("or", a or b, key=f"or {one.key} {two.key}", fill=fill, parts=parts)
    return found
