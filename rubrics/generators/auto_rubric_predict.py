"""Whether a judge that uses a rubric predicts a label: of pairs, of a ranking, or a score of each response."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, Protocol

from rubricate.comparisons import GroupScores
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, RubricateError
from rubricate.failures import failure, failure_of
from rubricate.rubrics.filters.consistency import PairJudgeLike
from rubricate.rubrics.filters.judging import RubricJudge, verdicts_of
from rubricate.rubrics.generators.base import Need
from rubricate.rubrics.generators.contrastive_pairs import BothOrders, compare_both, ranking_of
from rubricate.rubrics.generators.source import Source, text_of
from rubricate.rubrics.generators.tail_scoring import weighted_score
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureKind, Judgement, Usage, fingerprint

__all__ = [
    "GroupJudgeLike",
    "Labelled",
    "PairPredictor",
    "Prediction",
    "Predictor",
    "RankPredictor",
    "ScorePredictor",
]


class GroupJudgeLike(Protocol):
    """A judge that scores the responses to one prompt together, by rollout id; higher is better."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def score_group(self, rollouts: Sequence[Rollout], rubric: Rubric | None = None) -> GroupScores:
        """A score a rollout, None where it failed."""
        ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """A response as the writer of a rubric sees it: with its label in words."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """Whether a rubric leads a judge to the label.

    Attributes:
        right: None where `failure` says why nothing was predicted.
        said: where the judge was wrong and why, for whoever revises the rubric. May quote responses.
        accuracy: share of the pairs, or of the responses, that were predicted right, in [0, 1].
    """

    right: bool | None
    said: str = ""
    accuracy: float | None = None
    failure: Failure | None = None
    usage: Usage = Usage()

    def __post_init__(self) -> None:
        if (self.right is None) != (self.failure is not None):
            raise ValueError("a prediction is there, or a failure says why not")


class Predictor(abc.ABC):
    """Has a judge predict the label of a source by a rubric.

    Attributes:
        name: for people.
        needs: what a source must have.
        uses: what else it looks at.
    """

    name: str = ""
    needs: frozenset[Need] = frozenset()
    uses: frozenset[Need] = frozenset()

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Of the judge and the options."""

    @abc.abstractmethod
    def labelled(self, source: Source) -> list[Labelled]:
        """The responses that are predicted, with their labels. Raises ConfigError where there is no label."""

    @abc.abstractmethod
    async def predict(self, source: Source, rubric: Rubric) -> Prediction:
        """What the judge predicts. A judgement that failed leaves no prediction."""


def _no_label(name: str, source: Source, hint: str) -> ConfigError:
    row = f" (row {source.id})" if source.id else ""
    return ConfigError(f"{name} has no label to predict in this source{row}", hint=hint)


class PairPredictor(Predictor):
    """Right where the judge prefers the chosen response of every pair of the source, in both orders.

    Args:
        judge: compares two responses by a rubric.
    """

    name = "pairs"
    needs = frozenset({Need.PAIR})

    def __init__(self, judge: PairJudgeLike) -> None:
        self.judge = judge

    @property
    def fingerprint(self) -> str:
        return fingerprint(["pairs", self.judge.fingerprint])

    def labelled(self, source: Source) -> list[Labelled]:
        """Chosen and rejected, pair by pair."""
        if not source.pairs:
            raise _no_label(self.name, source, "give a pair")
        several = len(source.pairs) > 1
        return [
            Labelled(f"Pair {number}, {label}" if several else label[0].upper() + label[1:], text)
            for number, pair in enumerate(source.pairs, start=1)
            for label, text in (("preferred", pair.chosen), ("not preferred", pair.rejected))
        ]

    async def predict(self, source: Source, rubric: Rubric) -> Prediction:
        """Both orders of each pair."""
        pairs = [
            (
                Rollout(p.prompt, p.chosen, p.reference, "chosen"),
                Rollout(p.prompt, p.rejected, p.reference, "rejected"),
            )
            for p in source.pairs
        ]
        found = await asyncio.gather(*(compare_both(self.judge, one, two, rubric) for one, two in pairs))
        usage = sum((one.usage for one in found), Usage())
        why = next((one.failure for one in found if one.failure is not None), None)
        if why is not None:
            return Prediction(None, failure=why, usage=usage)
        wrong = [self._told(number, one) for number, one in enumerate(found, start=1) if one.winner != "first"]
        return Prediction(not wrong, "\n".join(wrong), 1.0 - len(wrong) / len(found), usage=usage)

    def _told(self, number: int, said: BothOrders) -> str:
        if said.consistent is False:
            verdict = "the judge named another one when the order of the responses was changed"
        elif said.winner == "tie":
            verdict = "the judge found both equally good"
        else:
            verdict = "the judge preferred the response that is not preferred"
        return f"Pair {number}: {verdict}." + (f" Its reason: {said.reason}" if said.reason else "")


class RankPredictor(Predictor):
    """Right where a judge that sees the group scores each response above every one of a worse rank.

    Args:
        judge: scores a group by a rubric.
    """

    name = "ranking"
    uses = frozenset({Need.RANKED, Need.CANDIDATES, Need.LABELS})

    def __init__(self, judge: GroupJudgeLike) -> None:
        self.judge = judge

    @property
    def fingerprint(self) -> str:
        return fingerprint(["ranking", self.judge.fingerprint])

    def labelled(self, source: Source) -> list[Labelled]:
        """The ranking, best first."""
        return _ranks(self.name, source)

    async def predict(self, source: Source, rubric: Rubric) -> Prediction:
        """One call of the judge."""
        ranking = ranking_of(source)
        rollouts = source.rollouts([one.text for one in ranking])
        try:
            found = await self.judge.score_group(rollouts, rubric)
        except RubricateError as error:
            return Prediction(None, failure=failure_of(error))
        why = next(iter(found.failures.values()), None)
        scores = [found.scores.get(one.id) for one in rollouts]
        known = [score for score in scores if score is not None]
        if why is not None or len(known) < len(scores):
            why = why or failure(FailureKind.INCOMPLETE, "a response has no score", retryable=True)
            return Prediction(None, failure=why, usage=found.usage)
        reasons = [found.reasons.get(one.id, "") for one in rollouts]
        return replace(_ordered([one.rank for one in ranking], known, reasons), usage=found.usage)


class ScorePredictor(Predictor):
    """Right where the scores of a judge that sees each response alone are in order, or hit their labels.

    A score is the judge's overall verdict where it gives one, or else the weighted mean of its verdicts. A response
    of which a verdict failed has none, and then nothing is predicted.

    Args:
        judge: judges a response by a rubric.
        compare: `order`: each response above every one of a worse rank; `label`: each score within `tolerance` of
            its label, as pointwise samples of Auto-Rubric are checked.
        low, high: ends of the labels' scale for `label`; a score s stands for low + s (high - low).
        tolerance: in units of the labels, exclusive; .5 means that the score, rounded, is the whole-number label.

    Raises ConfigError for options outside their ranges.
    """

    def __init__(
        self,
        judge: RubricJudge,
        *,
        compare: Literal["order", "label"] = "order",
        low: float = 0.0,
        high: float = 1.0,
        tolerance: float = 0.5,
    ) -> None:
        if compare not in ("order", "label"):
            raise ConfigError(f"compare is {compare!r}", hint="use order or label")
        if not low < high or not tolerance > 0.0:
            raise ConfigError(
                f"low is {low}, high {high}, tolerance {tolerance}", hint="low < high, and a tolerance above 0"
            )
        self.judge = judge
        self.compare = compare
        self.low, self.high, self.tolerance = low, high, tolerance
        self.name = f"scores, by {compare}"
        self.needs = frozenset({Need.LABELS} if compare == "label" else ())
        self.uses = frozenset({Need.RANKED, Need.CANDIDATES, Need.LABELS})

    @property
    def fingerprint(self) -> str:
        return fingerprint(["scores", self.judge.fingerprint, self.compare, self.low, self.high, self.tolerance])

    def labelled(self, source: Source) -> list[Labelled]:
        """The ranking, or each candidate with its label."""
        if self.compare == "order":
            return _ranks(self.name, source)
        if not source.labels:
            raise _no_label(self.name, source, "columns candidates and labels")
        beyond = next((label for label in source.labels if not self.low <= label <= self.high), None)
        if beyond is not None:
            raise ConfigError(
                f"the label {beyond:g} is outside {self.low:g} to {self.high:g}", hint="set low and high"
            )
        return [
            Labelled(f"Score {label:g} ({self.low:g} to {self.high:g})", text_of(one))
            for one, label in zip(source.candidates, source.labels, strict=True)
        ]

    async def predict(self, source: Source, rubric: Rubric) -> Prediction:
        """Each response judged alone."""
        by_label = self.compare == "label"
        ranking = () if by_label else ranking_of(source)
        rollouts = source.rollouts(source.candidates if by_label else [one.text for one in ranking])
        said = await asyncio.gather(*(verdicts_of(self.judge, one, rubric) for one in rollouts))
        usage = sum((one.usage for one in said), Usage())
        scores, why = list[float](), None
        for one in said:
            score, failed = _score(rubric, one)
            scores.append(score)
            why = why or failed
        if why is not None:
            return Prediction(None, failure=why, usage=usage)
        reasons = ["; ".join(v.reason for v in (one.overall, *one.verdicts) if v and v.reason) for one in said]
        if not by_label:
            return replace(_ordered([one.rank for one in ranking], scores, reasons), usage=usage)
        found = [self.low + score * (self.high - self.low) for score in scores]
        told = [
            f"Response {number}: the judge's score is {score:.3g}, not {label:g}." + _because(reason)
            for number, (score, label, reason) in enumerate(
                zip(found, source.labels, reasons, strict=True), start=1
            )
            if not abs(score - label) < self.tolerance
        ]
        return Prediction(not told, "\n".join(told), 1.0 - len(told) / len(found), usage=usage)


def _ranks(name: str, source: Source) -> list[Labelled]:
    ranking = ranking_of(source)
    if len({one.rank for one in ranking}) < 2:
        raise _no_label(name, source, "column ranked, or candidates and labels that differ")
    return [Labelled(f"Rank {one.rank}" + (" (best)" if one.rank == 1 else ""), one.text) for one in ranking]


def _score(rubric: Rubric, judgement: Judgement) -> tuple[float, Failure | None]:
    """The score by one judgement, in [0, 1] for rewards; or 0.0, which does not count, with the failure."""
    overall = judgement.overall
    if overall is not None:
        return (overall.score, None) if overall.score is not None else (0.0, overall.failure or _unknown())
    scored = weighted_score(rubric, judgement)
    if scored.score is not None and scored.coverage == 1.0:
        return scored.score, None
    return 0.0, next((one.failure for one in judgement.verdicts if one.failure is not None), None) or _unknown()


def _unknown() -> Failure:
    return failure(FailureKind.INCOMPLETE, "a response has no score", retryable=True)


def _ordered(ranks: Sequence[int], scores: Sequence[float], reasons: Sequence[str]) -> Prediction:
    """Every pair of different ranks must have its scores in that order; equal scores are wrong."""
    pairs = [(a, b) for a, b in combinations(range(len(ranks)), 2) if ranks[a] < ranks[b]]
    wrong = [(a, b) for a, b in pairs if not scores[a] > scores[b]]
    told = [
        f"Response {a + 1} (rank {ranks[a]}) got {scores[a]:.3g}, and response {b + 1} (rank {ranks[b]}) got "
        f"{scores[b]:.3g}; it should be less."
        for a, b in wrong
    ]
    involved = sorted({place for pair in wrong for place in pair})
    told += [f"Response {place + 1}:{_because(reasons[place])}" for place in involved if reasons[place]]
    return Prediction(not wrong, "\n".join(told), 1.0 - len(wrong) / len(pairs))


def _because(reason: str) -> str:
    return f" Its reason: {reason}" if reason else ""
