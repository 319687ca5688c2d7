"""Pairs: two responses to one prompt and a rubric of which one fulfils more, for pairwise judges."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rubricate.data.records import Preference
from rubricate.rubrics import Criterion, Rubric
from rubricate.training.checks.banks import Banks, load_banks
from rubricate.training.checks.compose import Settings, compose
from rubricate.training.checks.draft import Draft
from rubricate.training.checks.kinds import offers
from rubricate.training.checks.offers import Offer, fill_in
from rubricate.training.checks.sheets import Split, allowed_kinds

__all__ = ["Pair", "make_pairs"]

_CANDIDATES = 5
"""Drafts among which the one that is nearest in length becomes the other response."""
_WITH_ARGUMENTS = frozenset(
    {
        "words_max",
        "words_min",
        "words_range",
        "sentences_max",
        "sentences_min",
        "paragraphs_exact",
        "list_length",
        "starts_with",
        "ends_with",
        "contains_word",
        "contains_phrase",
        "word_count",
        "in_language",
    }
)
_ABOUT_ONE = frozenset({"content", "compound", "instruction", "completeness", "reference"})
"""Families whose questions are made up for one response."""
_FAULTS = frozenset(
    {
        "rude",
        "sarcastic",
        "condescending",
        "moralising",
        "threatening",
        "flattery",
        "overconfidence",
        "refuses",
        "self_praise",
        "addresses_grader",
        "own_process",
        "clickbait",
        "advert",
        "urgency",
        "urges_to_buy",
        "filler",
        "mild_violence",
        "personal_data",
        "vague",
        "repetition",
        "repeated_sentence",
        "cut_off",
        "placeholder",
        "aside",
        "mixed_language",
        "jargon",
        "pessimistic",
        "slang",
    }
)
"""Kinds that nobody asks for: a rubric asks for their absence."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two responses, of which the chosen one fulfils more criteria of the rubric.

    Attributes:
        preference: the prompt and both responses.
        rubric: three to six criteria of equal weight.
        chosen_met, rejected_met: whether each meets each criterion, in rubric order.
    """

    preference: Preference
    rubric: Rubric
    chosen_met: tuple[bool, ...]
    rejected_met: tuple[bool, ...]


def _names(found: Sequence[Offer]) -> dict[tuple[str, str, str, str], Offer]:
    """Offers that mean the same of any draft of the topic, by what they ask."""
    return {(offer.kind, offer.form, offer.key, offer.language): offer for offer in found if _fits(offer)}


def _fits(offer: Offer) -> bool:
    """Whether a rubric would ask for it, and it means the same of both responses."""
    if offer.kind in _FAULTS:
        return offer.form == "negated"
    if offer.kind in ("states", "on_topic"):
        return offer.form == "plain"
    return offer.kind not in _WITH_ARGUMENTS and offer.family not in _ABOUT_ONE


def _mates(topic_drafts: Sequence[Draft]) -> tuple[Draft, Draft]:
    """The first draft and that of the others which is nearest in length."""
    first, *others = topic_drafts
    length = len(first.measured.words)
    return first, min(others, key=lambda draft: abs(len(draft.measured.words) - length))


def _choose(
    one: dict[tuple[str, str, str, str], Offer], two: dict[tuple[str, str, str, str], Offer], rng: random.Random
) -> list[tuple[Offer, bool, bool]] | None:
    """Three to six common questions of which the first draft fulfils more than the second, or None.

    Every fourth time or so the second draft has the better of one of them.
    """
    shared = [(one[name], one[name].met, two[name].met) for name in one if name in two]
    # What a response says comes first: that is what most rubrics ask about.
    shared.sort(key=lambda item: rng.random() - 0.35 * (item[0].kind == "states"))
    once: dict[str, tuple[Offer, bool, bool]] = {}
    for item in shared:
        once.setdefault(item[0].key, item)
    better = [item for item in once.values() if item[1] and not item[2]]
    worse = [item for item in once.values() if item[2] and not item[1]]
    same = [item for item in once.values() if item[1] == item[2]]
    against = worse[:1] if len(better) > 1 and rng.random() < 0.3 else []
    ahead = better[: len(against) + rng.choice((1, 1, 2, 3))]
    chosen = [*ahead, *against]
    chosen += same[: max(0, rng.choice((3, 4, 4, 5, 6)) - len(chosen))]
    if len(ahead) <= len(against) or len(chosen) < 3:
        return None
    rng.shuffle(chosen)
    return chosen


def _pairs(banks: Banks, kinds: frozenset[str], settings: Settings, rng: random.Random) -> Iterator[Pair]:
    while True:
        for topic in rng.sample(banks.topics, len(banks.topics)):
            one, two = _mates([compose(topic, banks, rng, settings) for _ in range(_CANDIDATES)])
            found = [_names(offers(draft, banks, rng, kinds)) for draft in (one, two)]
            chosen = _choose(found[0], found[1], rng)
            if chosen is None or one.response == two.response:
                continue
            criteria = tuple(
                Criterion(
                    id=f"c{number}",
                    text=fill_in(rng.choice(offer.texts), offer.fill),
                    tags=(offer.family, offer.kind, offer.form),
                )
                for number, (offer, _, _) in enumerate(chosen, 1)
            )
            yield Pair(
                Preference(one.prompt, one.response, two.response),
                Rubric(criteria=criteria),
                tuple(item[1] for item in chosen),
                tuple(item[2] for item in chosen),
            )


def make_pairs(n: int, *, seed: int, split: Split = "held_out", banks: Banks | None = None) -> list[Pair]:
    """`n` pairs of responses of similar length; deterministic.

    Args:
        split: as `make_sheets` takes it; `unseen_kinds` has few criteria a pair in common, so it takes longer.
    """
    whole = banks or load_banks()
    kinds = allowed_kinds(whole, split)
    rng = random.Random(f"pairs {split} {seed}")
    settings = Settings(
        boost=kinds if split == "unseen_kinds" else frozenset(), off_topic=0.02, other_language=0.01
    )
    made = _pairs(whole.part(held_out=split != "train"), kinds, settings, rng)
    return [pair for _, pair in zip(range(n), made, strict=False)]
