"""Sheets: a prompt and a response with labelled criteria, both answers equally often whichever way one cuts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.calibrated import Labelled
from rubricate.rubrics import Criterion
from rubricate.training.checks.banks import Banks, load_banks
from rubricate.training.checks.compose import Settings, compose
from rubricate.training.checks.draft import Draft
from rubricate.training.checks.instructions import instruct
from rubricate.training.checks.kinds import UNSEEN_KINDS, offers
from rubricate.training.checks.offers import Offer, fill_in

__all__ = ["HIDDEN", "Split", "make_sheets", "masked_sheets", "sheets_of"]

Split = Literal["train", "held_out", "unseen_kinds"]
Mask = Literal["criterion", "response"]
HIDDEN = "(hidden)"
"""What stands in a masked control for the text that the judge may not see."""
SLACK = 2
"""By how many the answers of a margin may differ."""
SKIPPED = 0.4
"""Share of the turns that topics in other languages than English let pass, so that most checks are in English."""
LENGTHS = (60, 85, 110, 140)
"""Numbers of words between which both answers of every kind are equally frequent."""
WANTED = {"states": 6.0, "both": 1.5, "either": 1.5, "but_not": 1.5, "and": 3.0, "or": 2.0, "follows_all": 2.0}
"""How many times as often as others a kind is asked about."""
_MOST = {"states": 4, "both": 2, "either": 2, "but_not": 2}


@dataclass(slots=True)
class _Tally:
    """How often what was asked so far: answers met less answers unmet, by margin and by wording.

    Margins are a kind and form of wording with a size of argument, with a language, with each thing that it speaks
    of, and, where the kind is not about length, with a length of the response: otherwise a trait would be known by
    the long responses that have room for it.
    """

    margins: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    texts: Counter[str] = field(default_factory=Counter[str])
    forms: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    asked: int = 0
    length: str = ""

    def of(self, offer: Offer) -> list[tuple[str, ...]]:
        """The margins of an offer, for the response at hand."""
        kind, form = offer.kind, offer.form
        found = [(kind, form, "size", offer.bucket), (kind, form, "language", offer.language)]
        if offer.family != "length":
            found.append((kind, form, "length", self.length))
        found += [(kind, form, "part", part) for part in offer.parts]
        return found

    def value(self, offer: Offer, margins: Sequence[tuple[str, ...]], rng: random.Random) -> float:
        """How much an offer is wanted: where its answer is in want, and its kind and form are rare."""
        mean = max(1.0, self.asked / max(1, len(self.forms)))
        often = self.forms[offer.kind, offer.form] / (mean * WANTED.get(offer.kind, 1.0))
        level = sum(self.margins[margin] for margin in margins) / len(margins)
        # What was asked before always is in want of one answer: unless that counts less than being rare, the forms
        # that came first would go on for ever.
        return (-level if offer.met else level) - 2.0 * often + offer.weight + 1.5 * rng.random()

    def allows(self, offer: Offer) -> bool:
        """Whether asking it keeps all its margins level."""
        sign = 1 if offer.met else -1
        return all(sign * self.margins[margin] < SLACK for margin in self.of(offer))

    def take(self, offer: Offer, rng: random.Random) -> str:
        """Count an offer, and choose the wording that is most in want of its answer."""
        sign = 1 if offer.met else -1
        for margin in self.of(offer):
            self.margins[margin] += sign
        self.forms[offer.kind, offer.form] += 1
        self.asked += 1
        text = min(offer.texts, key=lambda text: (sign * self.texts[text], rng.random()))
        self.texts[text] += sign
        return text


def _choose(found: Sequence[Offer], count: int, tally: _Tally, rng: random.Random) -> Iterator[tuple[Offer, str]]:
    """The most wanted offers, nothing twice, met and unmet in turn as far as there are both."""
    ranked = sorted(found, key=lambda offer: tally.value(offer, tally.of(offer), rng), reverse=True)
    sides = {met: [offer for offer in ranked if offer.met == met] for met in (True, False)}
    level = 0
    keys: set[str] = set()
    kinds: Counter[str] = Counter()
    for _ in range(count):
        met = level < 0 if level else rng.random() < 0.5
        offer = _next(sides[met], keys, kinds, tally)
        if offer is None and level == 0:
            met = not met
            offer = _next(sides[met], keys, kinds, tally)
        if offer is None:
            return
        level += 1 if met else -1
        keys.add(offer.key)
        kinds[offer.kind] += 1
        yield offer, tally.take(offer, rng)


def _next(side: list[Offer], keys: set[str], kinds: Counter[str], tally: _Tally) -> Offer | None:
    while side:
        offer = side.pop(0)
        if offer.key not in keys and kinds[offer.kind] < _MOST.get(offer.kind, 1) and tally.allows(offer):
            return offer
    return None


def _criteria(
    draft: Draft, found: Sequence[Offer], count: int, tally: _Tally, rng: random.Random
) -> list[tuple[Criterion, bool]]:
    tally.length = str(sum(len(draft.measured.words) > edge for edge in LENGTHS))
    chosen = list(_choose(found, count, tally, rng))
    rng.shuffle(chosen)
    return [
        (
            Criterion(
                id=f"c{number}",
                text=fill_in(text, offer.fill),
                tags=(offer.family, offer.kind, offer.form),
            ),
            offer.met,
        )
        for number, (offer, text) in enumerate(chosen, 1)
    ]


def drafts(banks: Banks, rng: random.Random, settings: Settings) -> Iterator[Draft]:
    """Drafts without end; every topic in turn, in a new order each round, those that are not English less often."""
    if not banks.topics:
        raise ConfigError("there are no topics to make checks of", hint="load_banks reads a folder of them")
    level: Counter[tuple[str, str]] = Counter()
    while True:
        for topic in rng.sample(banks.topics, len(banks.topics)):
            if topic.language != "en" and rng.random() < SKIPPED:
                continue
            yield instruct(compose(topic, banks, rng, settings), banks, rng, level, never=UNSEEN_KINDS)


def make_sheets(
    n: int,
    *,
    seed: int,
    split: Split = "train",
    checks_per_response: int = 10,
    kinds: Collection[str] | None = None,
    without: Collection[str] = (),
    masked: Mask | None = None,
    banks: Banks | None = None,
) -> list[Labelled]:
    """Labelled criteria of `n` prompts and responses, those of one response together, in a fixed order per seed.

    Labels follow from how the response was put together, or code decides them on its text. Within every kind, form
    of wording and size of argument, both answers are equally frequent, and so they are within every response, as
    far as it offers both. A response may have fewer criteria than asked for.

    Args:
        n: number of responses.
        split: `train`; `held_out` with topics and phrases that training never sees; `unseen_kinds` with these and
            only kinds of criteria that the other two never ask about (`UNSEEN_KINDS`).
        checks_per_response: criteria of each response.
        kinds: ask about these kinds only.
        without: ask about all kinds but these, such as `COUNTED_KINDS`.
        masked: a control in which the text of each criterion, or of each response, is `HIDDEN`: nothing better
            than chance can be had from it.
        banks: texts; None takes those of the package.

    Criteria have the tags (family, kind, form), the form being `plain` or `negated`. Raises ConfigError for an
    unknown split or kind.
    """
    whole = banks or load_banks()
    allowed = allowed_kinds(whole, split, kinds) - allowed_kinds(whole, split, without)
    part = whole.part(held_out=split != "train")
    rng = random.Random(f"{split} {seed}")
    settings = Settings(boost=allowed if len(allowed) < 20 else frozenset())
    tally = _Tally()
    made: list[Labelled] = []
    for number, draft in zip(range(n), drafts(part, rng, settings), strict=False):
        found = offers(draft, part, rng, allowed)
        rollout = Rollout(draft.prompt, draft.response, draft.reference, id=f"{split}-{seed}-{number}")
        made += [
            Labelled(rollout, criterion, met)
            for criterion, met in _criteria(draft, found, checks_per_response, tally, rng)
        ]
    return made if masked is None else masked_sheets(made, masked)


def all_kinds(banks: Banks) -> frozenset[str]:
    """Every kind that there are wordings of."""
    return frozenset(kind for _, kind in (*banks.forms, *banks.traits))


def allowed_kinds(banks: Banks, split: Split, kinds: Collection[str] | None = None) -> frozenset[str]:
    """The kinds that a split asks about, within some; raises ConfigError for an unknown split or kind."""
    if split not in ("train", "held_out", "unseen_kinds"):
        raise ConfigError(f"there is no split {split!r}", hint="train, held_out or unseen_kinds")
    known = all_kinds(banks)
    side = known & UNSEEN_KINDS if split == "unseen_kinds" else known - UNSEEN_KINDS
    if kinds is None:
        return side
    unknown = sorted(set(kinds) - known)
    if unknown:
        raise ConfigError(f"there is no kind {unknown[0]!r}", hint=f"known: {', '.join(sorted(known))}")
    return side & frozenset(kinds)


def masked_sheets(made: Sequence[Labelled], masked: Mask) -> list[Labelled]:
    """The same labels with one text hidden: what a judge still gets right, it gets from the other one alone."""
    if masked == "criterion":
        return [replace(item, criterion=item.criterion.model_copy(update={"text": HIDDEN})) for item in made]
    rollouts: dict[int, Rollout] = {}
    for item in made:
        rollouts.setdefault(id(item.rollout), replace(item.rollout, response=HIDDEN))
    return [replace(item, rollout=rollouts[id(item.rollout)]) for item in made]


def sheets_of(made: Sequence[Labelled]) -> list[list[Labelled]]:
    """The criteria of each response, in order."""
    sheets: list[list[Labelled]] = []
    for item in made:
        if not sheets or sheets[-1][0].rollout is not item.rollout:
            sheets.append([])
        sheets[-1].append(item)
    return sheets
