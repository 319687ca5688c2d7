"""From the verdicts on one response, or on many, to values: explicit aggregation, implicit, and nested groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError, UnscoredError
from rubricate.narrow import as_number
from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.arrays import Aggregated, Outcome, State, aggregate_arrays, node_values, reachable
from rubricate.rewardmodels.plan import Floats, Plan, check_floor, make_plan
from rubricate.rewardmodels.presets import resolve
from rubricate.rewardmodels.verdicts import align, fired, to_arrays, why_none
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, RewardStatus, Status, Verdict

__all__ = [
    "NodeScore",
    "Score",
    "aggregate",
    "aggregate_many",
    "check_mode",
    "clipped_mean",
    "node_scores",
    "score_verdicts",
    "value_range",
    "wants_raise",
]

_STATUS = {
    Outcome.OK: RewardStatus.OK,
    Outcome.UNSCORED: RewardStatus.UNSCORED,
    Outcome.VETOED: RewardStatus.VETOED,
    Outcome.FLOORED: RewardStatus.FLOORED,
}


@dataclass(frozen=True, slots=True)
class Score:
    """The value of one response under one aggregation; the fields are those of `Reward`."""

    value: float | None
    status: RewardStatus = RewardStatus.OK
    coverage: float = 1.0
    bounds: tuple[float, float] | None = None
    vetoed_by: tuple[str, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class NodeScore:
    """The score of one node of a nested rubric: None where a verdict is missing that could change it.

    `bounds` hold for all completions; they are None for a node that has no weight to divide by.
    """

    value: float | None
    bounds: tuple[float, float] | None


def aggregate(
    aggregation: Aggregation | str,
    rubric: Rubric,
    judged: Judgement | Sequence[Verdict],
    *,
    plan: Plan | None = None,
) -> Score:
    """The value of one response.

    Args:
        aggregation: options, or the name of a preset.
        rubric: what was judged.
        judged: the verdicts, in any order, or a judgement; implicit mode needs a judgement with `overall`.
        plan: `make_plan(aggregation, rubric)` where it is at hand.

    Verdicts that are missing count as failed, and contradictory ones for one criterion as ambiguous. Raises
    UnscoredError where the options say `raise`, ConfigError where the judgement does not go with the mode.
    """
    options = resolve(aggregation)
    judgement = judged if isinstance(judged, Judgement) else Judgement(tuple(judged))
    check_mode(options, judgement)
    explicit = options.mode == "explicit"
    verdicts = align(rubric, judgement.verdicts) if explicit else judgement.verdicts
    score = score_verdicts(options, plan or make_plan(options, rubric), verdicts, judgement.overall)
    if wants_raise(options, score, verdicts, judgement.overall):
        raise UnscoredError(score.failure.message if score.failure else "", hint="score the response again")
    return score


def aggregate_many(
    aggregation: Aggregation | str, rubric: Rubric, evidence: Floats, states: NDArray[np.int8] | None = None
) -> Aggregated:
    """The values of many responses to one rubric, vectorised: millions of verdicts a second.

    Args:
        aggregation: options in explicit mode, or the name of a preset.
        rubric: K criteria.
        evidence: (N, K) scores or probabilities in [0, 1], in rubric order; NaN is an unknown verdict.
        states: (N, K) of `State`; by default OK, and UNKNOWN where the evidence is NaN.

    Raises ConfigError for wrong shapes and values outside [0, 1].
    """
    options = resolve(aggregation)
    if options.mode != "explicit":
        raise ConfigError("only explicit aggregation combines verdicts on criteria")
    if evidence.ndim != 2 or evidence.shape[1] != len(rubric):
        raise ConfigError(f"evidence has the shape {evidence.shape}; the rubric asks for (N, {len(rubric)})")
    if states is None:
        states = np.where(np.isnan(evidence), State.UNKNOWN, State.OK).astype(np.int8)
    if states.shape != evidence.shape:
        raise ConfigError(f"states have the shape {states.shape}, evidence {evidence.shape}")
    wrong = (states == State.OK) & ~((evidence >= 0.0) & (evidence <= 1.0))
    if wrong.any():
        row, column = (int(index[0]) for index in np.nonzero(wrong))
        raise ConfigError(f"row {row}, criterion {rubric.ids[column]!r}: {evidence[row, column]} is outside [0, 1]")
    return aggregate_arrays(options, make_plan(options, rubric), evidence, states)


def check_mode(options: Aggregation, judgement: Judgement) -> None:
    """Raise ConfigError where a judge of whole rubrics meets an aggregation of criteria."""
    if options.mode == "explicit" and judgement.overall is not None and not judgement.verdicts:
        raise ConfigError(
            "the judge gave one verdict on the whole rubric, and the aggregation needs one a criterion",
            hint="use aggregation='rar_implicit', or a judge of criteria",
        )


def score_verdicts(
    options: Aggregation, plan: Plan, verdicts: Sequence[Verdict], overall: Verdict | None = None
) -> Score:
    """The value of verdicts that stand in the order of the plan's columns. Never raises UnscoredError."""
    if options.mode == "implicit":
        return _implicit(options, plan, verdicts, overall)
    result = aggregate_arrays(options, plan, *to_arrays(options, verdicts))
    outcome = Outcome(int(result.outcome[0]))
    value, low, high = float(result.value[0]), float(result.low[0]), float(result.high[0])
    if math.isinf(low) or math.isinf(high):
        raise ConfigError("scale or shift is so large that the value is not finite", hint="use smaller ones")
    return Score(
        None if math.isnan(value) else value,
        _STATUS[outcome],
        float(result.coverage[0]),
        None if math.isnan(low) or math.isnan(high) else (low, high),
        tuple(plan.ids[int(column)] for column in np.nonzero(result.fired[0])[0]),
        why_none(verdicts) if outcome in (Outcome.UNSCORED, Outcome.FLOORED) else None,
    )


def wants_raise(
    options: Aggregation, score: Score, verdicts: Sequence[Verdict], overall: Verdict | None = None
) -> bool:
    """Whether a response has no value for a reason for which the options say `raise`."""
    if score.value is not None:
        return False
    told = verdicts if overall is None else [*verdicts, overall]
    causes = {verdict.failure.cause for verdict in told if verdict.failure is not None}
    by_response = FailureCause.RESPONSE in causes
    otherwise = FailureCause.INFRASTRUCTURE in causes or not by_response
    return (by_response and options.response_failures == "raise") or (otherwise and options.missing == "raise")


def node_scores(
    rubric: Rubric, verdicts: Sequence[Verdict], aggregation: Aggregation | str = "paperbench"
) -> dict[str, NodeScore]:
    """The score of every group of a nested rubric, by group id, and of the whole rubric under the id "".

    Each is the weighted mean of what the group directly holds (PaperBench). A group without any weight inside, or
    in which nothing applies, has no score and is left out of its parent's mean; an unknown verdict leaves every
    group above it without a value, but with bounds.
    """
    options = resolve(aggregation)
    if options.combine != "nested":
        raise ConfigError(f"node scores need combine='nested', not {options.combine!r}")
    plan = make_plan(options, rubric)
    lows, highs = node_values(options, plan, *to_arrays(options, align(rubric, verdicts)))
    scores: dict[str, NodeScore] = {}
    for name, values in lows.items():
        low, high = options.finish(float(values[0])), options.finish(float(highs[name][0]))
        if math.isnan(low):
            scores[name] = NodeScore(None, None)
        else:
            scores[name] = NodeScore(low if low == high else None, (low, high))
    return scores


def value_range(aggregation: Aggregation | str, rubric: Rubric) -> tuple[float, float]:
    """Lowest and highest reward that a response can get under this rubric, vetoes included.

    Raises ConfigError for a rubric in which no criterion has weight.
    """
    options = resolve(aggregation)
    if options.mode == "implicit":
        low, high = _implicit_range(options)
        return (low if options.floor is None else min(low, options.floor)), high
    plan = make_plan(options, rubric)
    low, high = reachable(options, plan)
    if math.isnan(low):
        raise ConfigError("no criterion of this rubric has any weight to divide by")
    if plan.vetoes.any() and options.floor is not None:
        low = min(low, options.floor)
    return low, high


def clipped_mean(values: Iterable[float | None], low: float = 0.0, high: float = 1.0) -> float | None:
    """Mean over the values that are there, clipped to [low, high]; None when none is.

    HealthBench clips the mean over a data set, never the single example (openai/simple-evals).
    """
    there = [value for value in values if value is not None]
    return min(max(math.fsum(there) / len(there), low), high) if there else None


def _implicit_range(options: Aggregation) -> tuple[float, float]:
    lowest = options.rating_scale[0] / options.rating_scale[1] if options.normaliser == "over_max" else 0.0
    return options.finish(lowest), options.finish(1.0)


def _implicit(options: Aggregation, plan: Plan, verdicts: Sequence[Verdict], overall: Verdict | None) -> Score:
    """The judge's verdict on the whole rubric as value; vetoes count where there are verdicts on their criteria."""
    low, high = _implicit_range(options)
    floor = low if options.floor is None else options.floor
    check_floor(floor, low)
    vetoed_by = fired(options, plan, verdicts)
    if vetoed_by:
        return Score(floor, RewardStatus.VETOED, 1.0, (floor, floor), vetoed_by)
    value, failure = _overall_value(options, overall)
    bounds = (low, high) if value is None else (value, value)
    vetoes = {name for name, veto in zip(plan.ids, plan.vetoes, strict=True) if veto}
    open_vetoes = [v for v in verdicts if v.status is Status.FAILED and v.criterion_id in vetoes]
    if open_vetoes:
        value, failure, bounds = None, why_none(open_vetoes), (floor, bounds[1])
    coverage = 0.0 if value is None else 1.0
    if failure is None:
        return Score(value, RewardStatus.OK, coverage, bounds)
    if failure.cause is FailureCause.RESPONSE and options.response_failures == "floor":
        return Score(floor, RewardStatus.FLOORED, coverage, bounds, failure=failure)
    return Score(None, RewardStatus.UNSCORED, coverage, bounds, failure=failure)


def _overall_value(options: Aggregation, overall: Verdict | None) -> tuple[float | None, Failure | None]:
    if overall is None:
        return None, _broken(FailureKind.INCOMPLETE, "the judge gave no verdict on the whole rubric")
    if overall.score is None:
        return None, overall.failure or _broken(FailureKind.INCOMPLETE, "the judge says the rubric does not apply")
    if options.normaliser == "score":
        return options.finish(overall.score), None
    rating = as_number(overall.raw)
    if rating is None:
        return None, _broken(FailureKind.UNPARSABLE, f"there is no rating to normalise, but {overall.raw!r}")
    try:
        return options.finish(options.normalise_rating(rating)), None
    except ValueError as error:
        return None, _broken(FailureKind.OUT_OF_RANGE, str(error))


def _broken(kind: FailureKind, message: str) -> Failure:
    return Failure(kind, FailureCause.INFRASTRUCTURE, message)
