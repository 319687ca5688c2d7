"""The vectorised core of aggregation: arrays of responses x criteria in, values with bounds out."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.plan import Bools, Floats, Node, Plan, check_floor

__all__ = ["Aggregated", "Outcome", "State", "aggregate_arrays", "combine", "floor_of", "node_values", "reachable"]


class State(enum.IntEnum):
    """What is known of one verdict."""

    OK = 0
    NOT_APPLICABLE = 1
    UNKNOWN = 2
    UNKNOWN_BY_RESPONSE = 3


class Outcome(enum.IntEnum):
    """What became of one response."""

    OK = 0
    UNSCORED = 1
    VETOED = 2
    FLOORED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Aggregated:
    """The values of N responses.

    Attributes:
        value: (N,) the reward, NaN where there is none.
        low, high: (N,) bounds over all completions of the unknown verdicts, NaN where no criterion counts.
        coverage: (N,) share of the weight with a known verdict, in [0, 1].
        fired: (N, K) the veto criteria that fired.
        outcome: (N,) of `Outcome`.
    """

    value: Floats
    low: Floats
    high: Floats
    coverage: Floats
    fired: Bools
    outcome: NDArray[np.int8]


class _Given:
    """The verdicts of N responses as masks, evidence filled where there is none to read."""

    def __init__(self, options: Aggregation, plan: Plan, evidence: Floats, states: NDArray[np.int8]) -> None:
        self.known: Bools = states == State.OK
        self.absent: Bools = states == State.NOT_APPLICABLE
        self.unknown: Bools = ~(self.known | self.absent)
        stays = options.not_applicable == "no_credit"
        self.present: Bools = np.ones_like(self.known) if stays else ~self.absent
        self.filled: Floats = np.where(self.known, evidence, _without_credit(options, plan))


def aggregate_arrays(options: Aggregation, plan: Plan, evidence: Floats, states: NDArray[np.int8]) -> Aggregated:
    """Combine the verdicts of N responses on the K criteria of one rubric.

    Args:
        options: how.
        plan: the rubric, from `make_plan(options, rubric)`.
        evidence: (N, K) scores or probabilities in [0, 1]; ignored (NaN allowed) where there is no verdict.
        states: (N, K) of `State`.

    The bounds are exact over completions in which each unknown verdict takes some score (that an unknown criterion
    might have turned out not to apply is not considered). `raise` policies leave NaN: raising is the caller's.
    Raises ConfigError where the floor is in use and above a value that a response can get without it.
    """
    given = _Given(options, plan, evidence, states)
    known, unknown, present, filled = given.known, given.unknown, given.present, given.filled
    any_unknown = bool(unknown.any())
    worst = plan.worst
    low = _finish(options, combine(options, plan, np.where(unknown, worst, filled), present))
    high = low
    if any_unknown:
        high = _finish(options, combine(options, plan, np.where(unknown, 1.0 - worst, filled), present))

    met = filled >= options.threshold
    fired = known & plan.vetoes & (met ^ plan.rewards)
    vetoed = fired.any(axis=1)
    veto_unknown = (unknown & plan.vetoes).any(axis=1)
    floor = floor_of(options, plan)
    defined = ~np.isnan(high)
    low = np.where(vetoed | (veto_unknown & defined), floor, low)
    high = np.where(vetoed, floor, high)

    coverage = _coverage(plan, known, given.absent)
    # No completion can change a value whose bounds meet: it is known although some verdicts are not.
    value = np.where(low == high, low, np.nan)
    outcome = np.where(vetoed, Outcome.VETOED, Outcome.OK).astype(np.int8)
    if any_unknown:
        by_response = np.isnan(value) & (states == State.UNKNOWN_BY_RESPONSE).any(axis=1)
        if options.response_failures == "floor":
            value = np.where(by_response, floor, value)
            outcome[by_response] = Outcome.FLOORED
        if options.missing in ("skip", "pessimistic"):
            guess = low
            if options.missing == "skip":
                guess = _finish(options, combine(options, plan, filled, present, present & ~unknown))
            covered = coverage >= (options.min_coverage or 1.0)
            value = np.where(np.isnan(value) & ~by_response & ~veto_unknown & covered, guess, value)
    outcome[np.isnan(value)] = Outcome.UNSCORED
    return Aggregated(value, low, high, coverage, fired, outcome)


def combine(
    options: Aggregation, plan: Plan, evidence: Floats, present: Bools, counted: Bools | None = None
) -> Floats:
    """Known evidence (N, K) combined, before `scale`, `shift` and `clip`; NaN where nothing is left to divide by.

    `present` says which criteria belong to the rubric of a row, `counted` (all present by default) which of them
    enter the sums: the two differ only where unknown verdicts are skipped.
    """
    counted = present if counted is None else counted
    if options.combine in ("weighted_sum", "mean", "nested"):
        return _Tree(options, plan, _values(options, evidence), present, counted).value(plan.root)[0]
    if options.combine == "minimum":
        low, high = options.domain
        values = _values(options, evidence)
        worth = np.where(plan.rewards, values, low + high - values)
        weighty = counted & (plan.weights > 0.0)
        least = np.where(weighty, worth, np.inf).min(axis=1)
        return np.where(weighty.any(axis=1), least, np.nan)
    whole = _all_or_nothing(options, plan, evidence, counted)
    if options.combine == "all_or_nothing":
        return whole
    rest = _Tree(options, plan, _values(options, evidence), present, counted).value(plan.root)[0]
    return options.hybrid_share * whole + (1.0 - options.hybrid_share) * rest


def node_values(
    options: Aggregation, plan: Plan, evidence: Floats, states: NDArray[np.int8]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Lower and upper bounds (N,) of every group of a nested rubric by id, the rubric itself under `ROOT`.

    They meet where no unknown verdict matters; NaN is a group that has no weight to divide by.
    """
    given = _Given(options, plan, evidence, states)
    bounds: list[dict[str, Floats]] = []
    for unknown in (plan.worst, 1.0 - plan.worst):
        values = _values(options, np.where(given.unknown, unknown, given.filled))
        tree = _Tree(options, plan, values, given.present, given.present)
        tree.value(plan.root)
        bounds.append(tree.found)
    return bounds[0], bounds[1]


def reachable(options: Aggregation, plan: Plan) -> tuple[float, float]:
    """Lowest and highest value that this rubric can reach without a veto; NaN where it has no weight at all.

    Where criteria with a condition may be left out, the low end is a lower bound and need not be attained.
    """
    everything = np.ones((1, len(plan.ids)), dtype=np.bool_)
    worst, best = plan.worst[None, :], 1.0 - plan.worst[None, :]
    low = float(_finish(options, combine(options, plan, worst, everything))[0])
    high = float(_finish(options, combine(options, plan, best, everything))[0])
    if plan.conditional.any() and options.not_applicable == "exclude" and not np.isnan(low):
        if options.combine in ("weighted_sum", "mean", "nested", "hybrid"):
            low = min(low, options.finish(_lower_bound(options, plan, plan.root)))
    return low, high


def floor_of(options: Aggregation, plan: Plan) -> float:
    """The value of a vetoed response, NaN where there can be none.

    Raises ConfigError when it is above a value that is reachable without a veto.
    """
    if plan.floor is not None:
        return plan.floor
    if not plan.vetoes.any() and options.response_failures != "floor":
        return np.nan
    lowest = reachable(options, plan)[0]
    if options.floor is None:
        return options.finish(options.domain[0]) if np.isnan(lowest) else lowest
    if not np.isnan(lowest):
        check_floor(options.floor, lowest)
    return options.floor


def _values(options: Aggregation, evidence: Floats) -> Floats:
    if options.value == "binary":
        return (evidence >= options.threshold).astype(np.float64)
    if options.value == "ternary":
        return np.floor(2.0 * evidence + 0.5) / 2.0
    if options.value == "signed":
        return 2.0 * evidence - 1.0
    return evidence


def _without_credit(options: Aggregation, plan: Plan) -> Floats:
    """Evidence with which a criterion that does not apply earns and costs nothing."""
    if options.value == "signed" and options.combine in ("weighted_sum", "mean", "nested"):
        return np.full(len(plan.ids), 0.5)
    return np.where(plan.rewards | (options.polarity != "credit"), 0.0, 1.0)


def _finish(options: Aggregation, combined: Floats) -> Floats:
    value = options.scale * combined + options.shift
    return value if options.clip is None else np.clip(value, *options.clip)


def _all_or_nothing(options: Aggregation, plan: Plan, evidence: Floats, counted: Bools) -> Floats:
    passed = (evidence >= options.threshold) == plan.rewards
    weighty = counted & (plan.weights > 0.0)
    return np.where(weighty.any(axis=1), (passed | ~weighty).all(axis=1).astype(np.float64), np.nan)


def _coverage(plan: Plan, known: Bools, absent: Bools) -> Floats:
    weights = plan.weights if plan.weights.any() else np.ones_like(plan.weights)
    total = np.where(absent, 0.0, weights).sum(axis=1)
    have = np.where(known, weights, 0.0).sum(axis=1)
    return np.divide(have, total, out=np.ones_like(total), where=total > 0.0)


class _Tree:
    """Weighted sums of the nodes of one rubric, bottom up; flat rubrics are a tree of one node."""

    def __init__(self, options: Aggregation, plan: Plan, values: Floats, present: Bools, counted: Bools) -> None:
        self.options = options
        self.plan = plan
        self.values = values
        self.present = present
        self.counted = counted
        self.found: dict[str, Floats] = {}

    def value(self, node: Node) -> tuple[Floats, Bools]:
        """Value (N,) of a node, NaN where undefined, and whether anything in it could earn, skipped or not."""
        columns = np.array(node.leaves, dtype=np.intp)
        whole = len(columns) == self.values.shape[1]
        values = self.values if whole else self.values[:, columns]
        known = self.counted if whole else self.counted[:, columns]
        present = self.present if whole else self.present[:, columns]
        earning = self.plan.earning[columns]
        total = np.where(known, self.plan.slope[columns] * values + self.plan.offset[columns], 0.0).sum(axis=1)
        divisor = np.where(known, earning, 0.0).sum(axis=1)
        earnable: Bools = np.any(present & (earning > 0.0), axis=1)
        for group in node.groups:
            inner, alive = self.value(group)
            usable = ~np.isnan(inner)
            total = total + np.where(usable, group.weight * inner, 0.0)
            divisor = divisor + np.where(usable, group.weight, 0.0)
            earnable = earnable | ((alive | usable) & (group.weight > 0.0))
        result = np.where(earnable, self._divided(total, divisor), np.nan)
        if not earnable.all():
            result = np.where(earnable, result, self._penalties_alone(columns, values, known, total))
        self.found[node.id] = result
        return result, earnable

    def _divided(self, total: Floats, divisor: Floats) -> Floats:
        if self.options.denominator == "none":
            return np.where(divisor > 0.0, total, np.nan)
        least = 1.0 if self.options.denominator == "positive_or_one" else 0.0
        nothing = np.full_like(total, np.nan)
        return np.divide(total, np.maximum(divisor, least), out=nothing, where=divisor > 0.0)

    def _penalties_alone(self, columns: NDArray[np.intp], values: Floats, known: Bools, total: Floats) -> Floats:
        """The value of a node in which nothing can earn: what `only_negative` says."""
        options, plan = self.options, self.plan
        weights = np.where(known & ~plan.rewards[columns], plan.weights[columns], 0.0)
        weight = weights.sum(axis=1)
        nothing = np.full_like(total, np.nan)
        if options.polarity == "no_credit":
            return nothing
        if options.denominator in ("none", "positive_or_one") or options.only_negative == "unit":
            return np.where(weight > 0.0, total, np.nan)
        if options.only_negative == "undefined":
            return nothing
        mirrored = (weights * (sum(options.domain) - values)).sum(axis=1)
        return np.divide(mirrored, weight, out=nothing, where=weight > 0.0)


def _lower_bound(options: Aggregation, plan: Plan, node: Node) -> float:
    """A value that the node cannot fall below, whichever of its conditional criteria are left out."""
    low = options.domain[0]
    total = 0.0
    sure = 0.0  # what is in the denominator in any case
    spare: list[float] = []  # what may be left out of it
    for leaf in node.leaves:
        worst = low if plan.rewards[leaf] else options.domain[1]
        total += min(0.0, float(plan.slope[leaf]) * worst + float(plan.offset[leaf]))
        earning = float(plan.earning[leaf])
        if plan.conditional[leaf]:
            spare.append(earning)
        else:
            sure += earning
    for group in node.groups:
        total += min(0.0, group.weight * _lower_bound(options, plan, group))
        spare.append(group.weight)
    divisor = sure or min((weight for weight in spare if weight > 0.0), default=1.0)
    if options.denominator == "positive_or_one":
        divisor = max(divisor, 1.0)
    if options.denominator == "none":
        divisor = 1.0
    candidates = [total / divisor, low]
    if not sure and options.only_negative == "unit":
        candidates.append(total)
    return min(candidates)
