"""What aggregation needs of a rubric, as arrays: effective weights, signs, vetoes, the tree of groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError
from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rubrics import Criterion, Polarity, Rubric

__all__ = ["ROOT", "Node", "Plan", "make_plan", "select"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ROOT = ""
"""Id of the outermost node, which is the rubric itself."""


@dataclass(frozen=True, slots=True)
class Node:
    """A group of a nested rubric: its weight among its siblings, the columns of its criteria, its inner groups."""

    id: str
    weight: float
    leaves: tuple[int, ...]
    groups: tuple[Node, ...]

    def walk(self) -> Iterable[Node]:
        """This node and all below it, parents first."""
        yield self
        for group in self.groups:
            yield from group.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A rubric as arrays of length K, in rubric order, under one aggregation.

    Attributes:
        ids: criterion ids.
        weights: effective weights, >= 0.
        rewards: True for reward criteria, False for penalties.
        vetoes: True for veto criteria.
        conditional: True for criteria with a condition, which may turn out not to apply.
        slope, offset: the contribution of a criterion of value v is slope * v + offset.
        earning: what each criterion adds to the denominator.
        root: the tree of groups; flat rubrics have the root alone.
        floor: the value of a vetoed response, where it has been worked out.
    """

    ids: tuple[str, ...]
    weights: Floats
    rewards: Bools
    vetoes: Bools
    conditional: Bools
    slope: Floats
    offset: Floats
    earning: Floats
    root: Node
    floor: float | None = None

    @property
    def worst(self) -> Floats:
        """The evidence that is worst for the response: unmet reward criteria, met penalties."""
        return np.where(self.rewards, 0.0, 1.0)


def make_plan(options: Aggregation, rubric: Rubric) -> Plan:
    """The arrays of a rubric. Raises ConfigError for a criterion without the importance or kind it needs."""
    criteria = rubric.criteria
    weights = np.array([options.weight_of(criterion) for criterion in criteria], dtype=np.float64)
    heaviest = max([float(weights.max()), *(group.weight for group in rubric.groups)])
    if heaviest > 1e300 / (len(criteria) + len(rubric.groups)):
        raise ConfigError("the weights are so large that their sum is not finite", hint="use smaller weights")
    if options.combine == "mean":
        weights = np.where(weights > 0.0, 1.0, 0.0)
    rewards = np.array([criterion.polarity is Polarity.REWARD for criterion in criteria], dtype=np.bool_)
    slope, offset, earning = _terms(options, weights, rewards)
    return Plan(
        ids=rubric.ids,
        weights=weights,
        rewards=rewards,
        vetoes=np.array([criterion.veto for criterion in criteria], dtype=np.bool_),
        conditional=np.array([criterion.condition is not None for criterion in criteria], dtype=np.bool_),
        slope=slope,
        offset=offset,
        earning=earning,
        root=_tree(rubric) if options.combine == "nested" else Node(ROOT, 1.0, tuple(range(len(criteria))), ()),
    )


def select(plan: Plan, columns: NDArray[np.intp]) -> Plan:
    """The plan of some of the criteria, as for a channel; groups keep those of their criteria."""
    place = {int(column): index for index, column in enumerate(columns)}
    return Plan(
        ids=tuple(plan.ids[int(column)] for column in columns),
        weights=plan.weights[columns],
        rewards=plan.rewards[columns],
        vetoes=plan.vetoes[columns],
        conditional=plan.conditional[columns],
        slope=plan.slope[columns],
        offset=plan.offset[columns],
        earning=plan.earning[columns],
        root=_prune(plan.root, place),
    )


def _terms(options: Aggregation, weights: Floats, rewards: Bools) -> tuple[Floats, Floats, Floats]:
    low, high = options.domain
    zero = np.zeros_like(weights)
    if options.polarity == "credit":
        return np.where(rewards, weights, -weights), np.where(rewards, 0.0, weights * (low + high)), weights
    if options.polarity == "no_credit":
        earning = np.where(rewards, weights, 0.0)
        return earning, zero, earning
    earning = weights if options.denominator == "absolute" else np.where(rewards, weights, 0.0)
    return np.where(rewards, weights, -weights), zero, earning


def _tree(rubric: Rubric) -> Node:
    leaves: dict[str, list[int]] = {ROOT: []}
    inner: dict[str, list[str]] = {ROOT: []}
    weights = {group.id: group.weight for group in rubric.groups}
    for group in rubric.groups:
        leaves[group.id], inner[group.id] = [], []
        inner[group.path[-1] if group.path else ROOT].append(group.id)
    for index, criterion in enumerate(rubric.criteria):
        leaves[_group_of(criterion)].append(index)

    def build(name: str, weight: float) -> Node:
        groups = tuple(build(child, weights[child]) for child in inner[name])
        return Node(name, weight, tuple(leaves[name]), groups)

    return build(ROOT, 1.0)


def _group_of(criterion: Criterion) -> str:
    return criterion.path[-1] if criterion.path else ROOT


def _prune(node: Node, place: dict[int, int]) -> Node:
    groups = tuple(_prune(group, place) for group in node.groups)
    return Node(
        node.id,
        node.weight,
        tuple(place[leaf] for leaf in node.leaves if leaf in place),
        tuple(group for group in groups if group.leaves or group.groups),
    )


def check_floor(floor: float, lowest: float) -> None:
    """Raise ConfigError where a veto would pay: where its floor is above a value that the rubric can reach."""
    if floor > lowest:
        raise ConfigError(
            f"the floor {floor:g} is above {lowest:g}, which a response without a veto can get",
            hint=f"use a floor of at most {lowest:g}, or None for the lowest value",
        )
