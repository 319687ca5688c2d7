"""A judge whose probabilities are calibrated, and the gathering of what a calibration is fitted to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge, failure
from rubricate.judges.calibration import Calibration
from rubricate.judges.members import ask, summed
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import FailureKind, Judgement, Usage, Verdict, fingerprint

__all__ = ["Calibrated", "Labelled", "LabelledProbabilities", "gather_probabilities"]


class Calibrated(CriteriaJudge):
    """A judge whose P(met) goes through a calibration that was fitted for it.

    Where a verdict's score is its probability (log-probability judges, means of samples), the score follows; a
    score that is none, such as a majority's, stays. Verdicts without a probability stay as they are. The reason
    names the probability before.

    Args:
        judge: the judge.
        calibration: fitted to this judge's probabilities by `fit_calibration`.
        fitted_for: fingerprint of one more judge whose calibration is accepted, for the same judge on another back
            end, whose probabilities differ a little. Reasons then say that it was fitted elsewhere.

    Raises ConfigError where the calibration was fitted for another judge: another model, prompt, view or option.
    """

    def __init__(
        self, judge: CriteriaJudge, calibration: Calibration, *, name: str = "", fitted_for: str = ""
    ) -> None:
        if calibration.judge not in (judge.fingerprint, fitted_for):
            raise ConfigError(
                f"this calibration was fitted for another judge than {judge.name} "
                f"(fingerprint {calibration.judge}, this one has {judge.fingerprint})",
                hint="fit one for this judge; model, prompt, view and every option count",
            )
        self.inner = judge
        self.calibration = calibration
        self.view = judge.view
        self.name = name or f"calibrated({judge.name})"
        self._elsewhere = ", fitted on another back end" if calibration.judge != judge.fingerprint else ""

    @property
    def fingerprint(self) -> str:
        """Of the judge and the calibration."""
        return fingerprint(["calibrated", self.inner.fingerprint, self.calibration.fingerprint])

    def check(self, rubric: Rubric) -> None:
        """Raises what the judge's own check raises."""
        self.inner.check(rubric)

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        judgement = await self.inner.judge_criteria(rollout, criteria)
        return replace(judgement, verdicts=tuple(self._calibrated(verdict) for verdict in judgement.verdicts))

    def _calibrated(self, verdict: Verdict) -> Verdict:
        before = verdict.probability
        if before is None or verdict.score is None:
            return verdict
        if not 0.0 <= before <= 1.0:
            why = failure(FailureKind.INTERNAL, f"the judge gave {before} as a probability")
            return Verdict.failed(verdict.criterion_id, why, judge=verdict.judge, reason=verdict.reason)
        after = self.calibration(before)
        score = after if verdict.score == before else verdict.score
        reason = f"{verdict.reason} [P {before:.3f} before calibration{self._elsewhere}]".lstrip()
        return replace(verdict, score=score, probability=after, reason=reason)

    async def aclose(self) -> None:
        """Close the judge."""
        await self.inner.aclose()


@dataclass(frozen=True, slots=True)
class Labelled:
    """A criterion of which it is known whether the response meets it."""

    rollout: Rollout
    criterion: Criterion
    met: bool


@dataclass(frozen=True, slots=True)
class LabelledProbabilities:
    """What a judge said of labelled criteria, for `fit_calibration`.

    Attributes:
        probabilities: P(met) of each verdict that has one.
        labels: whether that criterion is met.
        groups: number of the rollout of each, from 0.
        left_out: verdicts without a probability: failed, not applicable, or from a judge that gives none.
        usage: what asking cost.
    """

    probabilities: tuple[float, ...]
    labels: tuple[bool, ...]
    groups: tuple[int, ...]
    left_out: int
    usage: Usage


async def gather_probabilities(
    judge: CriteriaJudge, labelled: Sequence[Labelled], *, concurrency: int = 16
) -> LabelledProbabilities:
    """Ask a judge about labelled criteria, those of one rollout together.

    Args:
        concurrency: rollouts asked about at the same time.
    """
    parts: dict[int, list[Labelled]] = {}
    rollouts: list[Rollout] = []
    known: dict[tuple[object, object, str | None], int] = {}
    for item in labelled:
        key = (item.rollout.prompt, item.rollout.response, item.rollout.reference)
        group = known.setdefault(key, len(known))
        if group == len(rollouts):
            rollouts.append(item.rollout)
        parts.setdefault(group, []).append(item)
    gate = asyncio.Semaphore(concurrency)

    async def asked(group: int) -> Judgement:
        async with gate:
            # ids of one rollout's criteria may come from several rubrics: its own numbers keep them apart
            criteria = [item.criterion.model_copy(update={"id": f"c{n}"}) for n, item in enumerate(parts[group])]
            return await ask(judge, rollouts[group], criteria)

    judgements = await asyncio.gather(*(asked(group) for group in parts))
    told = [
        (verdict.probability, item.met, group)
        for (group, items), judgement in zip(parts.items(), judgements, strict=True)
        for item, verdict in zip(items, judgement.verdicts, strict=True)
    ]
    kept = [(p, met, group) for p, met, group in told if p is not None]
    return LabelledProbabilities(
        tuple(p for p, _, _ in kept),
        tuple(met for _, met, _ in kept),
        tuple(group for _, _, group in kept),
        len(told) - len(kept),
        summed(judgements),
    )
