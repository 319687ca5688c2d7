"""Verdicts as aggregation reads them: one a criterion, as arrays, with the reason where one is missing."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.arrays import State
from rubricate.rewardmodels.plan import Floats, Plan
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Status, Verdict

__all__ = ["align", "evidence_of", "fired", "to_arrays", "why_none"]

log = logging.getLogger(__name__)


def align(rubric: Rubric, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """One verdict for each criterion, in rubric order, whatever a judge returned.

    A missing one becomes a failed verdict of kind `incomplete`, two that differ one of kind `ambiguous`, and one
    whose probability is none `out_of_range`; verdicts on criteria that nobody asked for are dropped and logged.
    """
    verdicts = [_sound(verdict) for verdict in verdicts]
    if tuple(verdict.criterion_id for verdict in verdicts) == rubric.ids:
        return tuple(verdicts)
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        known = found.setdefault(verdict.criterion_id, verdict)
        if (known.status, known.score) != (verdict.status, verdict.score):
            why = Failure(
                FailureKind.AMBIGUOUS, FailureCause.INFRASTRUCTURE, "the judge gave contradictory verdicts"
            )
            found[verdict.criterion_id] = Verdict.failed(verdict.criterion_id, why, judge=verdict.judge)
    extra = set(found).difference(rubric.ids)
    if extra:
        log.warning("dropped verdicts on criteria that are not in the rubric: %s", ", ".join(sorted(extra)))
    missing = _broken(FailureKind.INCOMPLETE, "the judge gave no verdict")
    return tuple(found.get(name) or Verdict.failed(name, missing) for name in rubric.ids)


def to_arrays(options: Aggregation, verdicts: Sequence[Verdict]) -> tuple[Floats, NDArray[np.int8]]:
    """Evidence and states of one response, each of shape (1, K)."""
    evidence = np.array([[evidence_of(options, verdict) for verdict in verdicts]], dtype=np.float64)
    states = np.array([[_state(verdict) for verdict in verdicts]], dtype=np.int8)
    return evidence, states


def evidence_of(options: Aggregation, verdict: Verdict) -> float:
    """Score or probability in [0, 1], NaN where the verdict has none."""
    if verdict.score is None:
        return math.nan
    if options.evidence == "probability" and verdict.probability is not None:
        return verdict.probability
    return verdict.score


def fired(options: Aggregation, plan: Plan, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Ids of the veto criteria with an adverse verdict: reward criteria not met, penalties met."""
    columns = {name: index for index, name in enumerate(plan.ids) if plan.vetoes[index]}
    adverse: list[str] = []
    for verdict in verdicts:
        column = columns.get(verdict.criterion_id)
        if column is None or verdict.score is None:
            continue
        if (evidence_of(options, verdict) >= options.threshold) != bool(plan.rewards[column]):
            adverse.append(verdict.criterion_id)
    return tuple(adverse)


def why_none(verdicts: Sequence[Verdict]) -> Failure:
    """Why there is no value: the first failure, one that the response caused before all others."""
    failed = [(verdict.criterion_id, verdict.failure) for verdict in verdicts if verdict.failure is not None]
    if not failed:
        return _broken(FailureKind.INCOMPLETE, "no criterion that applies has weight to divide by")
    name, first = next((pair for pair in failed if pair[1].cause is FailureCause.RESPONSE), failed[0])
    message = f"{len(failed)} of {len(verdicts)} verdicts failed; {name!r}: {first.message or first.kind.value}"
    return Failure(first.kind, first.cause, message, any(failure.retryable for _, failure in failed))


def _state(verdict: Verdict) -> State:
    if verdict.status is Status.OK:
        return State.OK
    if verdict.status is Status.NOT_APPLICABLE:
        return State.NOT_APPLICABLE
    by_response = verdict.failure is not None and verdict.failure.cause is FailureCause.RESPONSE
    return State.UNKNOWN_BY_RESPONSE if by_response else State.UNKNOWN


def _sound(verdict: Verdict) -> Verdict:
    if verdict.probability is None or 0.0 <= verdict.probability <= 1.0:
        return verdict
    why = _broken(FailureKind.OUT_OF_RANGE, f"the judge's probability {verdict.probability} is outside [0, 1]")
    return Verdict.failed(verdict.criterion_id, why, judge=verdict.judge, reason=verdict.reason)


def _broken(kind: FailureKind, message: str) -> Failure:
    return Failure(kind, FailureCause.INFRASTRUCTURE, message)
