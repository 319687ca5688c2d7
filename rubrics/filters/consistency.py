"""Preference-label consistency: a rubric stays where a judge that uses it names the preferred response."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from rubricate.comparisons import Comparison, Order, Vote
from rubricate.data.records import Preference, Rollout
from rubricate.data.turns import prompt_of
from rubricate.errors import ConfigError, RubricateError
from rubricate.failures import failure_of
from rubricate.rubrics.filters.base import Case, Filtered, Outcome, Trace, Unknown, check_unknown, collected, each
from rubricate.rubrics.filters.rules import Action, quotation
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Usage, fingerprint

__all__ = ["Counting", "LabelConsistency", "PairJudgeLike", "Used", "hold_out"]

Counting = Literal["orders", "pairs"]
"""What accuracy is a share of: judgements, one an order of a pair; or pairs, right where both orders are."""

Used = Literal["pairs", "held_out"]
"""Which pairs a rubric is checked on: those it was written from, or those its generator did not see."""

_ORDERS: tuple[Order, ...] = get_args(Order)


class PairJudgeLike(Protocol):
    """A judge that compares two responses to one prompt by a rubric. Never raises for a judgement that failed.

    `both_orders` says whether a comparison is made in both orders already; otherwise it is asked for twice.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def both_orders(self) -> bool: ...

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        """Which of the two is better by the rubric."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of one pair in one order: right, wrong (a tie too), or None where the judgement failed."""

    pair: Preference
    order: Order
    right: bool | None
    reply: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Score:
    """How often a rubric leads to the label: `right` of `known`; `failed` judgements; pairs whose orders differ."""

    right: int
    known: int
    failed: int
    split: int
    pairs: int

    @property
    def accuracy(self) -> float:
        """Right among the known, in [0, 1]."""
        return self.right / self.known


@dataclass(frozen=True, slots=True)
class _Checked:
    """A rubric's answers on some pairs, and what they cost."""

    answers: tuple[_Answer, ...]
    usage: Usage


class LabelConsistency:
    """Keeps rubrics by which a judge names the preferred response, pair by pair and in both orders.

    OpenRubrics (2510.07743): a rubric stays where the mean accuracy over its pairs is at least tau. A tie is not
    right. Judgements that failed are left out. The judge's replies that are right, by rubrics that stay, are in
    `Filtered.traces`: rows to train a judge on.

    A rubric written from a pair can carry the pair's label, and a judge at chance keeps about half of all rubrics;
    one that always names the first keeps all at tau = 0.5 where orders are counted. So the same check is made with
    permuted rubrics, each given to the pairs of another prompt: `label_consistency.permuted_keep_rate` stands
    beside `label_consistency.keep_rate`, and only what is above it speaks for the rubrics. Rubrics all of whose
    pairs the two orders decide differently are flagged, and criteria that quote a chosen response.

    Args:
        judge: compares two responses by a rubric.
        tau: lowest accuracy, in [0, 1].
        counting: what it is a share of.
        use: which pairs it is taken over.
        min_known: judgements (for `orders`) or pairs needed; None is 2 or 1: both orders of one pair.
        control: rubrics in the permuted check at most; None for all, 0 for no check.
        seed: of the permutation.
        quote_words: words in a row, in a chosen response and not in its rejected one or prompt, that are a
            quotation; None looks for none.
        quoting: flag such criteria, or drop them.
        unknown: what becomes of rubrics without enough judgements.
        concurrency: rubrics that are checked at the same time.

    Raises ConfigError for options outside their ranges.
    """

    def __init__(
        self,
        judge: PairJudgeLike,
        *,
        tau: float = 0.5,
        counting: Counting = "orders",
        use: Used = "pairs",
        min_known: int | None = None,
        control: int | None = None,
        seed: int = 0,
        quote_words: int | None = 6,
        quoting: Action = "flag",
        unknown: Unknown = "drop",
        concurrency: int = 16,
        name: str = "label_consistency",
    ) -> None:
        check_unknown(unknown)
        for value, known in ((counting, Counting), (use, Used), (quoting, Action)):
            if value not in get_args(known):
                raise ConfigError(f"there is no option {value!r}", hint=f"use one of {', '.join(get_args(known))}")
        if not 0.0 <= tau <= 1.0:
            raise ConfigError(f"tau is {tau}", hint="an accuracy is in [0, 1]")
        least = (2 if counting == "orders" else 1) if min_known is None else min_known
        if least < 1 or concurrency < 1 or (quote_words is not None and quote_words < 1):
            raise ConfigError("min_known, quote_words and concurrency are 1 or more")
        if control is not None and control < 0:
            raise ConfigError(f"control is {control}", hint="use a number of rubrics, 0 for none, None for all")
        self.judge = judge
        self.tau = tau
        self.counting: Counting = counting
        self.use: Used = use
        self.min_known = least
        self.control = control
        self.seed = seed
        self.quote_words = quote_words
        self.quoting: Action = quoting
        self.unknown: Unknown = unknown
        self.concurrency = concurrency
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of the judge and the options."""
        names = ("tau", "counting", "use", "min_known", "control", "seed", "quote_words", "quoting", "unknown")
        options = {name: getattr(self, name) for name in names}
        return fingerprint(["label consistency", self.judge.fingerprint, options])

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order."""

        async def check(item: tuple[Rubric, Sequence[Preference]]) -> _Checked:
            return await self._check(*item)

        own = await each(check, [(case.rubric, self._pairs(case)) for case in cases], self.concurrency)
        partners = self._partners(cases)
        others = [(cases[other].rubric, self._pairs(cases[place])) for place, other in partners]
        permuted = await each(check, others, self.concurrency)
        outcomes = [self._outcome(place, case, own[place]) for place, case in enumerate(cases)]
        figures = self._figures([self._score(one.answers) for one in own], "")
        figures |= self._figures([self._score(one.answers) for one in permuted], "permuted_")
        result = collected(outcomes, figures)
        return replace(result, usage=result.usage + sum((one.usage for one in permuted), Usage()))

    def _pairs(self, case: Case) -> tuple[Preference, ...]:
        return case.pairs if self.use == "pairs" else case.held_out

    # Judging

    async def _check(self, rubric: Rubric, pairs: Sequence[Preference]) -> _Checked:
        found = await asyncio.gather(*(self._answers(rubric, pair) for pair in pairs))
        answers = tuple(answer for one in found for answer in one.answers)
        return _Checked(answers, sum((one.usage for one in found), Usage()))

    async def _answers(self, rubric: Rubric, pair: Preference) -> _Checked:
        chosen = Rollout(pair.prompt, pair.chosen, pair.reference, id="chosen")
        rejected = Rollout(pair.prompt, pair.rejected, pair.reference, id="rejected")
        if self.judge.both_orders:
            both = await self._compare(chosen, rejected, rubric)
            return _Checked(tuple(_answer(pair, order, both) for order in _ORDERS), both.usage)
        given, swapped = await asyncio.gather(
            self._compare(chosen, rejected, rubric), self._compare(rejected, chosen, rubric)
        )
        answers = (
            replace(_answer(pair, None, given), order="given"),
            replace(_answer(pair, None, swapped.swapped()), order="swapped"),
        )
        return _Checked(answers, given.usage + swapped.usage)

    async def _compare(self, first: Rollout, second: Rollout, rubric: Rubric) -> Comparison:
        try:
            return await self.judge.compare(first, second, rubric)
        except RubricateError as error:
            return Comparison.failed(failure_of(error), judge=self.judge.name)

    def _partners(self, cases: Sequence[Case]) -> list[tuple[int, int]]:
        """Place of a case, and that of the case with another prompt whose rubric its pairs are judged by.

        The cases are dealt in a circle, and each gets the next one's rubric: no rubric is used twice where all
        prompts differ.
        """
        if self.control == 0:
            return []
        circle = [place for place, case in enumerate(cases) if self._pairs(case)]
        random.Random(self.seed).shuffle(circle)
        found = list[tuple[int, int]]()
        for at, place in enumerate(circle):
            prompts = {pair.prompt for pair in self._pairs(cases[place])} | {cases[place].prompt}
            rest = circle[at + 1 :] + circle[:at]
            other = next((o for o in rest if not prompts & _prompts(cases[o])), None)
            if other is not None:
                found.append((place, other))
        return found if self.control is None else found[: self.control]

    # Deciding

    def _score(self, answers: Sequence[_Answer]) -> _Score:
        by_pair = [answers[at : at + 2] for at in range(0, len(answers), 2)]
        split = sum({one.right for one in pair} == {True, False} for pair in by_pair)
        known = [one.right for one in answers if one.right is not None]
        if self.counting == "pairs":
            together = [_both(pair) for pair in by_pair]
            known = [right for right in together if right is not None]
        failed = sum(one.right is None for one in answers)
        return _Score(sum(known), len(known), failed, split, len(by_pair))

    def _outcome(self, place: int, case: Case, checked: _Checked) -> Outcome:
        outcome = Outcome(self.name, place, case, self.unknown)
        outcome.usage = checked.usage
        score = self._score(checked.answers)
        counts = {"known": score.known, "failed": score.failed, "pairs": score.pairs}
        if score.known < self.min_known:
            reason = "too few judgements succeeded" if score.pairs else "there is no pair to check it on"
            outcome.not_known("", reason, **counts)
        elif score.accuracy < self.tau:
            reason = f"a judge that uses it names the preferred response less often than {self.tau:g}"
            outcome.drop_rubric(reason, accuracy=score.accuracy, split=score.split, **counts)
        else:
            outcome.traces = [
                Trace(place, one.pair, case.rubric, one.order, one.reply, one.reason)
                for one in checked.answers
                if one.right
            ]
            if score.split == score.pairs:
                reason = "the order of the responses, not the rubric, decides each of its pairs"
                outcome.flag("", reason, accuracy=score.accuracy, split=score.split, **counts)
        self._quotes(outcome, case)
        return outcome

    def _quotes(self, outcome: Outcome, case: Case) -> None:
        if self.quote_words is None:
            return
        say = outcome.drop if self.quoting == "drop" else outcome.flag
        for criterion in case.rubric.criteria:
            for pair in case.pairs:
                known = [pair.rejected, prompt_of(pair.prompt)]
                run = quotation(criterion.text, pair.chosen, known, self.quote_words)
                if run:
                    say(criterion.id, f'it quotes the chosen response: "{run[:120]}"', words=len(run.split()))
                    break

    def _figures(self, scores: Sequence[_Score], kind: str) -> dict[str, float | None]:
        """Keep rate and mean accuracy of the rubrics of which enough is known, and how many these are."""
        known = [score for score in scores if score.known >= self.min_known]
        kept = sum(score.accuracy >= self.tau for score in known)
        pairs = sum(score.pairs for score in known)
        count = len(known)
        return {
            f"{self.name}.{kind}keep_rate": kept / count if count else None,
            f"{self.name}.{kind}accuracy": sum(score.accuracy for score in known) / count if count else None,
            f"{self.name}.{kind}split_rate": sum(score.split for score in known) / pairs if pairs else None,
            f"{self.name}.{kind}rubrics": float(count),
        }


def _prompts(case: Case) -> set[object]:
    return {case.prompt, *(pair.prompt for pair in case.pairs), *(pair.prompt for pair in case.held_out)}


def _both(pair: Sequence[_Answer]) -> bool | None:
    """Whether both orders are right; None where that is open, since one failed and the other is right."""
    said = [one.right for one in pair]
    return False if False in said else None if None in said else True


def _answer(pair: Preference, order: Order | None, comparison: Comparison) -> _Answer:
    """What a comparison, with the chosen response as first, says in one order; None takes all votes there are.

    The strict majority of the votes that could be read counts, and none is not right. A judge without votes (one
    that scores each response alone) says the same in both orders.
    """
    place: Order = order or "given"
    votes = [vote for vote in comparison.votes if order is None or vote.order == order]
    if not comparison.votes:
        right = None if comparison.winner is None else comparison.winner == "first"
        return _Answer(pair, place, right, reason=comparison.reason)
    read = [vote for vote in votes if vote.winner is not None]
    if not read:
        return _Answer(pair, place, None)
    firsts: list[Vote] = [vote for vote in read if vote.winner == "first"]
    right = 2 * len(firsts) > len(read)
    told = firsts[0] if right else read[0]
    return _Answer(pair, place, right, told.reply, told.reason)


def hold_out(
    pairs: Sequence[Preference], *, share: float = 0.5, seed: int = 0
) -> tuple[tuple[Preference, ...], tuple[Preference, ...]]:
    """Pairs to write a rubric from, and pairs to check it on, in their order; which is which depends on the texts.

    Equal pairs stay together. Both parts have at least one pair where there are two that differ; a single pair is
    for writing.

    Args:
        pairs: of one prompt.
        share: of the pairs that are held out, in (0, 1).
        seed: of the draw.

    Raises ConfigError for a share outside (0, 1).
    """
    if not 0.0 < share < 1.0:
        raise ConfigError(f"share is {share}", hint="use a share between 0 and 1")
    keys = [fingerprint([seed, pair.chosen, pair.rejected]) for pair in pairs]
    distinct = sorted(set(keys))
    if len(distinct) < 2:
        return tuple(pairs), ()
    out = set(distinct[: min(max(round(share * len(distinct)), 1), len(distinct) - 1)])
    written = tuple(pair for pair, key in zip(pairs, keys, strict=True) if key not in out)
    checked = tuple(pair for pair, key in zip(pairs, keys, strict=True) if key in out)
    return written, checked
