"""Pairs and rankings of a source, judging a pair in both orders, and what criteria may not take from responses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rubricate.comparisons import Comparison, Preferred
from rubricate.data.records import Preference, Rollout
from rubricate.errors import RubricateError
from rubricate.failures import failure, failure_of
from rubricate.rubrics.filters.base import Case
from rubricate.rubrics.filters.consistency import PairJudgeLike, hold_out
from rubricate.rubrics.filters.rules import quotation
from rubricate.rubrics.generators.source import Source, text_of
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureKind, Usage

__all__ = [
    "BothOrders",
    "Ranked",
    "compare_both",
    "contrast_case",
    "hold_out_pairs",
    "induced_pairs",
    "ranking_of",
    "response_fault",
]


_ORDERS = {"given", "swapped"}


@dataclass(frozen=True, slots=True)
class Ranked:
    """A response and its rank: 1 is best, and responses that are equally good share one."""

    rank: int
    text: str


def ranking_of(source: Source) -> tuple[Ranked, ...]:
    """The responses of a source, best first: `ranked`, or else the labelled candidates; empty where neither is."""
    if source.ranked:
        return tuple(Ranked(place, text_of(one)) for place, one in enumerate(source.ranked, start=1))
    levels = sorted(set(source.labels), reverse=True)
    found = [
        Ranked(levels.index(label) + 1, text_of(one))
        for one, label in zip(source.candidates, source.labels, strict=False)
    ]
    return tuple(sorted(found, key=lambda one: one.rank))


def induced_pairs(source: Source) -> tuple[Preference, ...]:
    """The source's pairs, and those that its ranking induces, each once; equal ranks and equal texts make none."""
    made = [
        Preference(source.prompt, better.text, worse.text, source.reference, source.id)
        for better, worse in combinations(ranking_of(source), 2)
        if better.rank < worse.rank and better.text != worse.text
    ]
    found = {(pair.chosen, pair.rejected): pair for pair in [*made, *source.pairs]}
    return tuple(found.values())


def contrast_case(source: Source, rubric: Rubric, *, held_out: Sequence[Preference] = ()) -> Case:
    """A rubric that was written from a source, as filters take it: with every pair it can be checked on."""
    return Case(
        rubric,
        source.prompt,
        source.reference,
        source.id,
        induced_pairs(source),
        tuple(held_out),
        tuple(source.rollouts()),
    )


def hold_out_pairs(source: Source, *, share: float = 0.5, seed: int = 0) -> tuple[Source, tuple[Preference, ...]]:
    """The source with the pairs to write from alone, and those to check on; see `filters.hold_out`.

    Only `pairs` are divided: a ranking stays whole. Raises ConfigError for a share outside (0, 1).
    """
    written, checked = hold_out(source.pairs, share=share, seed=seed)
    return replace(source, pairs=written), checked


@dataclass(frozen=True, slots=True)
class BothOrders:
    """What a judge says of two responses when it sees them in both orders.

    Attributes:
        winner: `tie` also where the orders disagree; None where `failure` says why.
        consistent: whether both orders name the same; None where that is not known.
        reason: a judge's reason.
    """

    winner: Preferred | None
    failure: Failure | None = None
    consistent: bool | None = None
    reason: str = ""
    usage: Usage = Usage()


async def compare_both(judge: PairJudgeLike, first: Rollout, second: Rollout, rubric: Rubric) -> BothOrders:
    """Compare in both orders; with one call of a judge that does so itself, else with two.

    A winner needs both orders: where one of them failed there is none, and a failure.
    """
    if judge.both_orders:
        said = await _compare(judge, first, second, rubric)
        if said.winner is None:
            return BothOrders(None, said.failure, usage=said.usage)
        if said.votes and {vote.order for vote in said.votes if vote.winner is not None} != _ORDERS:
            why = failure(FailureKind.INCOMPLETE, "the judgement of one order failed", retryable=True)
            return BothOrders(None, why, usage=said.usage)
        winner: Preferred = "tie" if said.consistent is False else said.winner
        return BothOrders(winner, None, said.consistent, said.reason, said.usage)
    given, swapped = await asyncio.gather(
        _compare(judge, first, second, rubric), _compare(judge, second, first, rubric)
    )
    usage, back = given.usage + swapped.usage, swapped.swapped()
    if given.winner is None or back.winner is None:
        return BothOrders(None, given.failure or back.failure, usage=usage)
    same = given.winner == back.winner
    return BothOrders(given.winner if same else "tie", None, same, given.reason, usage)


async def _compare(judge: PairJudgeLike, first: Rollout, second: Rollout, rubric: Rubric) -> Comparison:
    try:
        return await judge.compare(first, second, rubric)
    except RubricateError as error:
        return Comparison.failed(failure_of(error), judge=judge.name)


_POINTS = re.compile(
    r"\bResponse \d+\b|\b[Rr]esponses? [A-H]\b"
    r"|\b(?:preferred|chosen|rejected|other|better|worse|candidate|(?:higher|lower)[- ]ranked) responses?\b"
)


def response_fault(text: str, responses: Sequence[str], prompt: str, words: int | None) -> str:
    """Why a criterion that was written from responses cannot be judged without them, "" where it can.

    Args:
        text: the criterion's.
        responses: what its writer saw.
        prompt: what its judge sees too.
        words: words in a row, in one response and neither in another nor in the prompt, that are a quotation; None
            looks for none.
    """
    pointing = _POINTS.search(text)
    if pointing:
        return f'it points at a response that its judge does not see ("{pointing[0]}")'
    for place, response in enumerate(responses if words is not None else ()):
        others = [one for at, one in enumerate(responses) if at != place and one != response]
        run = quotation(text, response, [prompt, *others], words or 1)
        if run:
            return f'it copies the words of one response ("{run[:80]}")'
    return ""
