"""Types for judging responses against one another: votes, comparisons, scores of a group, rankings.

None always means "not known". It never becomes a number here, and whoever turns it into one must say how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from rubricate.types import Failure, Status, Usage

__all__ = ["Comparison", "GroupScores", "Order", "Pairing", "Preferred", "Ranking", "Vote", "ranks_of"]

Preferred = Literal["first", "second", "tie"]
"""Which of two responses is better. `first` is the one that the caller named first, however they were shown."""

Order = Literal["given", "swapped"]
"""How the two responses were shown: as the caller named them, or the other way round."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One reply of a judge about two responses.

    Attributes:
        order: how the responses were shown.
        sample: number of the sample in that order, from 0.
        winner: which response it prefers, already mapped back to the caller's order; None where `failure` says why.
        failure: set when there is no winner, and only then.
        probability: P(first is better) in [0, 1] where the judge gives one.
        strength: how clearly, where the reply's format says so: 0 tie, 1 better, 2 much better.
        reason: what the judge gives as its reason. "A" is the response it saw first.
        ahead: who is ahead on a criterion, by criterion id, where the judge goes through them.
        notes: further parts of the reply by name, such as `gatekeeper` (Rubric-RM), `type` and `rubric` (RM-R1).
        reply: the text of the reply, "" where there was none.
    """

    order: Order
    sample: int
    winner: Preferred | None
    failure: Failure | None = None
    probability: float | None = None
    strength: int | None = None
    reason: str = ""
    ahead: Mapping[str, Preferred] = field(default_factory=dict[str, Preferred])
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    reply: str = ""

    def __post_init__(self) -> None:
        if (self.winner is None) != (self.failure is not None):
            raise ValueError("a vote has either a winner or a failure")
        _check_probability(self.probability)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a judge says of two responses to one prompt.

    Attributes:
        winner: `first`, `second` or `tie`; None unless status is `ok`.
        status: `ok` or `failed`.
        failure: set when status is `failed`, and only then.
        probability: P(first is better) in [0, 1] where the judge gives one, the mean of both orders; None where
            it does not, or where one order is missing.
        consistent: whether both orders named the same winner (or both a tie); None where not both were read.
        votes: every reply that counted or failed, by order and sample.
        reason: the reason of the first vote for the winner, or of the first vote.
        usage: what it cost, failed replies included.
        judge: name of the judge.
    """

    winner: Preferred | None
    status: Status = Status.OK
    failure: Failure | None = None
    probability: float | None = None
    consistent: bool | None = None
    votes: tuple[Vote, ...] = ()
    reason: str = ""
    usage: Usage = Usage()
    judge: str = ""

    def __post_init__(self) -> None:
        if self.status is Status.NOT_APPLICABLE:
            raise ValueError("a comparison is ok or failed")
        if (self.status is Status.OK) != (self.winner is not None):
            raise ValueError("a winner goes with status ok and with no other")
        if (self.status is Status.FAILED) != (self.failure is not None):
            raise ValueError("a failure goes with status failed and with no other")
        _check_probability(self.probability)

    @classmethod
    def failed(
        cls, failure: Failure, *, votes: tuple[Vote, ...] = (), usage: Usage | None = None, judge: str = ""
    ) -> Comparison:
        """A comparison that could not be had."""
        return cls(None, Status.FAILED, failure, votes=votes, usage=usage or Usage(), judge=judge)

    def swapped(self) -> Comparison:
        """The same comparison with first and second exchanged."""
        return replace(
            self,
            winner=None if self.winner is None else _OTHER[self.winner],
            probability=_complement(self.probability),
            votes=tuple(_swapped(vote) for vote in self.votes),
        )


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Scores of several responses to one prompt, from a judge that saw them together.

    Attributes:
        scores: rollout id to score in [`low`, `high`], None where `failures` says why. Ids in the caller's order.
        failures: rollout id to failure, for the ids without a score and no others.
        low, high: ends of the scale. A sum over k samples has a k times larger scale.
        reasons: rollout id to the judge's reason, where it gave one.
        samples: replies that the scores are made of.
        failed_samples: replies that were asked for and left out, since they failed.
        dropped_samples: readable replies that a filter left out.
        usage: what it cost.
        judge: name of the judge.
    """

    scores: Mapping[str, float | None]
    failures: Mapping[str, Failure] = field(default_factory=dict[str, Failure])
    low: float = 0.0
    high: float = 1.0
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    samples: int = 1
    failed_samples: int = 0
    dropped_samples: int = 0
    usage: Usage = Usage()
    judge: str = ""

    def __post_init__(self) -> None:
        _check_failures(self.scores, self.failures)
        for id, score in self.scores.items():
            if score is not None and not self.low <= score <= self.high:
                raise ValueError(f"rollout {id!r}: score {score} is outside [{self.low}, {self.high}]")

    @property
    def ranks(self) -> dict[str, float | None]:
        """Rollout id to rank: 1 is best, ties share the mean of their ranks, None stays None."""
        return ranks_of(self.scores)


@dataclass(frozen=True, slots=True)
class Pairing:
    """A comparison and the rollouts it is about."""

    first: str
    second: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of several responses to one prompt, made of pairwise comparisons.

    Attributes:
        scores: rollout id to rating, in the unit that `rating` names; None where `failures` says why.
        failures: rollout id to failure, for the ids without a rating and no others.
        rating: `net-win-rate` ((wins - losses) / valid comparisons, in [-1, 1]) or `bradley-terry` (natural
            log-strength, mean 0).
        pairings: every comparison, failed ones included.
        usage: what it cost.
        judge: name of the judge.
    """

    scores: Mapping[str, float | None]
    failures: Mapping[str, Failure] = field(default_factory=dict[str, Failure])
    rating: str = "net-win-rate"
    pairings: tuple[Pairing, ...] = ()
    usage: Usage = Usage()
    judge: str = ""

    def __post_init__(self) -> None:
        _check_failures(self.scores, self.failures)

    @property
    def ranks(self) -> dict[str, float | None]:
        """Rollout id to rank: 1 is best, ties share the mean of their ranks, None stays None."""
        return ranks_of(self.scores)


def ranks_of(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    """Ranks of scores among those that are there: 1 is the highest score, ties share the mean of their ranks."""
    there = [score for score in scores.values() if score is not None]
    return {id: None if score is None else _rank(score, there) for id, score in scores.items()}


def _rank(score: float, there: list[float]) -> float:
    above = sum(other > score for other in there)
    equal = sum(other == score for other in there)
    return above + (equal + 1) / 2


_OTHER: Mapping[Preferred, Preferred] = {"first": "second", "second": "first", "tie": "tie"}


def _swapped(vote: Vote) -> Vote:
    return replace(
        vote,
        order="swapped" if vote.order == "given" else "given",
        winner=None if vote.winner is None else _OTHER[vote.winner],
        probability=_complement(vote.probability),
        ahead={id: _OTHER[side] for id, side in vote.ahead.items()},
    )


def _complement(probability: float | None) -> float | None:
    return None if probability is None else 1.0 - probability


def _check_probability(probability: float | None) -> None:
    if probability is not None and not 0.0 <= probability <= 1.0:
        raise ValueError(f"probability {probability} is outside [0, 1]")


def _check_failures(scores: Mapping[str, float | None], failures: Mapping[str, Failure]) -> None:
    without = {id for id, score in scores.items() if score is None}
    if without != set(failures):
        wrong = sorted(without ^ set(failures))
        raise ValueError(f"a failure goes with a missing score and with no other: {', '.join(wrong)}")
