"""The jury: several judges on each criterion at the same time, one verdict by a rule that is chosen by name."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge, failure
from rubricate.judges.members import ask, in_words, is_outage, probability_of, summed, vote
from rubricate.rubrics import BinaryScale, Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureKind, Judgement, Status, Verdict, fingerprint

__all__ = ["RULES", "TIES", "Ballot", "Jury", "Poll", "mean_agreement"]

T = TypeVar("T")

RULES = ("mean", "median", "majority", "weighted", "unanimous")
TIES = ("fail", "adverse", "met", "unmet")

_EVEN = 1e-9  # shares closer than this are a tie: weights such as 0.1 + 0.2 are no exact sums


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a jury's members said of one criterion.

    Attributes:
        criterion_id: the criterion's id.
        verdict: the jury's verdict.
        votes: each member's own verdict by the member's name, failed ones included.
        agreement: share of the usable votes that went to the most common one, in (0, 1]; None where fewer than two
            members voted.
    """

    criterion_id: str
    verdict: Verdict
    votes: Mapping[str, Verdict]
    agreement: float | None


@dataclass(frozen=True, slots=True)
class Poll:
    """A jury's judgement with the votes that it was made of, one ballot a criterion, in order."""

    judgement: Judgement
    ballots: tuple[Ballot, ...]


def mean_agreement(ballots: Iterable[Ballot]) -> tuple[float | None, int]:
    """Mean agreement over the criteria on which at least two members voted, and how many these are.

    A criterion with one vote agrees with itself and would only raise the mean. None where there is no other.
    """
    shares = [ballot.agreement for ballot in ballots if ballot.agreement is not None]
    return (math.fsum(shares) / len(shares) if shares else None), len(shares)


class Jury(CriteriaJudge):
    """Asks all members about every criterion, at the same time, and combines what they say.

    A member that fails leaves the vote and is named in the reason. With fewer usable votes than `quorum` the
    verdict failed, and the response is to blame only where the votes that an outage took would not have been
    enough; so it is with a tie that a vote which an outage took could have broken, whatever `ties` says (but not
    under `unanimous`, where one more vote makes no agreement). `poll` gives every member's verdict and the
    agreement; the verdict's reason says both in words.

    Members vote on whether a criterion applies first: it does not where more (by weight) say so than do not.

    Args:
        judges: the members. Two of the same name are told apart by a number.
        rule: `mean` or `median` of the scores; `majority` (a member, a vote) or `weighted` (votes count their
            weight): the vote with more than half; `unanimous`: the vote that all usable members gave. A score on a
            binary criterion votes `met` above 0.5, `unmet` below.
        weights: one a member, finite and > 0. Needed by `weighted`, taken by `mean`, refused by the other rules.
        ties: where no vote has enough: `fail` (the verdict failed, kind `ambiguous`), `adverse` (the vote that is
            worse for the response), `met` or `unmet` (the highest or lowest vote given).
        quorum: usable votes needed; by default more than half of the members.

    The verdict's probability, on binary criteria, is the (weighted) mean of the members' P(met), or scores where
    they give none: a vote share, not a calibrated probability.

    Raises ConfigError for options that do not fit.
    """

    def __init__(
        self,
        judges: Sequence[CriteriaJudge],
        *,
        rule: str = "majority",
        weights: Sequence[float] | None = None,
        ties: str = "fail",
        quorum: int | None = None,
        name: str = "",
    ) -> None:
        if not judges:
            raise ConfigError("a jury needs at least one judge")
        if rule not in RULES:
            raise ConfigError(f"there is no jury rule {rule!r}", hint=f"use one of {', '.join(RULES)}")
        if ties not in TIES:
            raise ConfigError(f"there is no rule for ties called {ties!r}", hint=f"use one of {', '.join(TIES)}")
        self.judges = tuple(judges)
        self.rule = rule
        self.weights = _weights(rule, weights, len(judges))
        self.ties = ties
        self.quorum = len(judges) // 2 + 1 if quorum is None else quorum
        if not 1 <= self.quorum <= len(judges):
            raise ConfigError(f"quorum is {quorum} with {len(judges)} judges", hint=f"use 1 to {len(judges)}")
        self.members = _names(judges)
        self.view = judges[0].view
        self.name = name or f"jury({', '.join(self.members)})"

    @property
    def fingerprint(self) -> str:
        """Of the members, in order, and the options."""
        members = [judge.fingerprint for judge in self.judges]
        return fingerprint(["jury", members, self.rule, list(self.weights), self.ties, self.quorum])

    def check(self, rubric: Rubric) -> None:
        """Raises what a member's own check raises."""
        for judge in self.judges:
            judge.check(rubric)

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        return (await self.poll(rollout, criteria)).judgement

    async def poll(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Poll:
        """The judgement, and for each criterion who said what."""
        judgements = await asyncio.gather(*(ask(judge, rollout, criteria) for judge in self.judges))
        ballots = tuple(
            self._count(criterion, [judgement.verdicts[index] for judgement in judgements])
            for index, criterion in enumerate(criteria)
        )
        verdicts = tuple(ballot.verdict for ballot in ballots)
        return Poll(Judgement(verdicts, usage=summed(judgements)), ballots)

    def _count(self, criterion: Criterion, said: Sequence[Verdict]) -> Ballot:
        votes = dict(zip(self.members, said, strict=True))
        usable = [(v, w) for v, w in zip(said, self.weights, strict=True) if v.status is not Status.FAILED]
        shares = _shares([(_choice(criterion, v), 1.0) for v, _ in usable])
        agreement = max(shares.values()) if len(usable) > 1 else None
        told = self._told(criterion, votes, agreement)
        if len(usable) < self.quorum:
            why = self._below_quorum(said, len(usable), told)
            verdict = Verdict.failed(criterion.id, why, judge=self.name, reason=told)
        else:
            out = next((v.failure for v in said if v.failure is not None and is_outage(v.failure)), None)
            verdict = self._verdict(criterion, usable, told, out)
        return Ballot(criterion.id, verdict, votes, agreement)

    def _verdict(
        self, criterion: Criterion, usable: Sequence[tuple[Verdict, float]], told: str, out: Failure | None
    ) -> Verdict:
        """The verdict of the usable votes. `out` is a failure that took a vote through no fault of the response."""
        ties = "fail" if out is not None else self.ties  # a tie that a missing vote would have broken is none
        scored = [(v.score, w) for v, w in usable if v.score is not None]
        applies = math.fsum(w for _, w in scored) / math.fsum(w for _, w in usable)
        if applies < 0.5 - _EVEN:
            return Verdict.not_applicable(criterion.id, judge=self.name, reason=told)
        unanimous = self.rule == "unanimous"
        if unanimous:  # one more vote would not make them agree
            ties, out = self.ties, None
        if ties == "fail" and (applies < 0.5 + _EVEN or (unanimous and len(scored) < len(usable))):
            return self._tied(criterion, "whether the criterion applies", told, out)
        score = self._score(criterion, scored, ties)
        if score is None:
            return self._tied(criterion, "the verdict", told, out)
        odds = [(p, w) for v, w in usable if (p := probability_of(v)) is not None]
        probability = _mean(odds) if isinstance(criterion.scale, BinaryScale) else None
        return Verdict(criterion.id, score, probability=probability, reason=told, judge=self.name)

    def _score(self, criterion: Criterion, scored: Sequence[tuple[float, float]], ties: str) -> float | None:
        """The score by the rule; None for a tie that is to fail."""
        if self.rule == "mean":
            return _mean(scored)
        if self.rule == "median":
            ranked = sorted(score for score, _ in scored)
            return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2
        shares = _shares([(vote(criterion, score), weight) for score, weight in scored])
        if self.rule == "unanimous":
            won = [choice for choice in shares if len(shares) == 1]
        else:
            won = [choice for choice, share in shares.items() if share > 0.5 + _EVEN]
        if won:
            return won[0]
        if ties == "fail":
            return None
        low = ties == "unmet" or (ties == "adverse" and criterion.polarity is Polarity.REWARD)
        return min(shares) if low else max(shares)

    def _tied(self, criterion: Criterion, on: str, told: str, out: Failure | None) -> Verdict:
        message = f"the jury is not decided on {on}: {told}"
        why = failure(FailureKind.AMBIGUOUS, message)
        if out is not None:
            why = failure(out.kind, f"{message}; a vote is missing: {out.message}", retryable=out.retryable)
        return Verdict.failed(criterion.id, why, judge=self.name, reason=told)

    def _below_quorum(self, said: Sequence[Verdict], usable: int, told: str) -> Failure:
        """The failure of a vote with too few voters. Where those that an outage took would have been enough, the
        outage is to blame; else the first that the response broke."""
        failures = [verdict.failure for verdict in said if verdict.failure is not None]
        outages = [why for why in failures if is_outage(why)]
        broken = [why for why in failures if not is_outage(why)]
        blamed = outages[0] if usable + len(outages) >= self.quorum else broken[0]
        causes = "; ".join(
            f"{name}: {verdict.failure.message}"
            for name, verdict in zip(self.members, said, strict=True)
            if verdict.failure is not None
        )
        message = f"{usable} of {len(said)} judges could vote, {self.quorum} are needed ({causes})"
        return failure(blamed.kind, message, retryable=any(why.retryable for why in failures))

    def _told(self, criterion: Criterion, votes: Mapping[str, Verdict], agreement: float | None) -> str:
        """Who said what, those that are missing first."""
        down = [name for name, verdict in votes.items() if verdict.failure is not None]
        head = f"{len(votes) - len(down)} of {len(votes)} judges voted"
        head += f" (without {', '.join(down)})" if down else ""
        head += f", {agreement:.0%} agree" if agreement is not None else ""
        return f"{head}: " + "; ".join(
            f"{name}: {in_words(criterion, verdict)}{f' ({_short(verdict.reason)})' if verdict.reason else ''}"
            for name, verdict in votes.items()
        )

    async def aclose(self) -> None:
        """Close every member."""
        for judge in self.judges:
            await judge.aclose()


def _weights(rule: str, weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    if weights is None:
        if rule == "weighted":
            raise ConfigError("the jury rule 'weighted' needs weights", hint="give one weight a judge")
        return (1.0,) * count
    if rule not in ("weighted", "mean"):
        raise ConfigError(f"the jury rule {rule!r} takes no weights", hint="use the rule 'weighted' or 'mean'")
    if len(weights) != count:
        raise ConfigError(f"there are {len(weights)} weights for {count} judges", hint="give one weight a judge")
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ConfigError(f"weights are {list(weights)}", hint="use finite numbers > 0; leave out a judge instead")
    return tuple(float(weight) for weight in weights)


def _names(judges: Sequence[CriteriaJudge]) -> tuple[str, ...]:
    """Names that differ."""
    names = [judge.name for judge in judges]
    return tuple(f"{n}#{names[:i].count(n) + 1}" if names.count(n) > 1 else n for i, n in enumerate(names))


def _choice(criterion: Criterion, verdict: Verdict) -> float | None:
    return None if verdict.score is None else vote(criterion, verdict.score)


def _shares(votes: Sequence[tuple[T, float]]) -> dict[T, float]:
    """Share of the weight that went to each vote."""
    total = math.fsum(weight for _, weight in votes)
    shares: dict[T, float] = {}
    for choice, weight in votes:
        shares[choice] = shares.get(choice, 0.0) + weight / total
    return shares


def _mean(scored: Sequence[tuple[float, float]]) -> float:
    mean = math.fsum(score * weight for score, weight in scored) / math.fsum(weight for _, weight in scored)
    return min(max(mean, 0.0), 1.0)


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= 200 else f"{line[:199]}…"
