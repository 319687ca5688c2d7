"""Rules about weights and vetoes (family W)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rubricate.rubrics.criterion import Importance, Polarity
from rubricate.rubrics.linting.base import Found, Severity, Subject, rule
from rubricate.rubrics.rubric import Group

__all__: list[str] = []

RANGES: Mapping[str, tuple[float, float]] = {
    "healthbench": (0, 10),
    "rar": (0, 5),
    "rlcf": (0, 100),
    "tail": (1, 3),
}
"""Weights that the formats' papers speak of, signs apart: HealthBench (2505.08775) ±1 to 10, RaR (2507.17746) 5 to
-2, RLCF (2507.18624) 0 to 100, Chasing the Tail (2509.21500) 1 to 3."""


@rule("W301", "no-positive-weight", Severity.ERROR)
def no_positive_weight(subject: Subject) -> Iterator[Found]:
    """No criterion can earn anything.

    Every criterion with a weight is a penalty: the best a response can do is not to lose, and presets that divide
    by the sum of positive weights have nothing to divide by.

    Fix: add what a good response does, or reword penalties as what it does (and make them rewards).
    """
    weights = [c for c in subject.criteria if c.weight > 0]
    if weights and all(c.polarity is Polarity.PENALTY for c in weights):
        message = "no criterion has a positive weight that counts for the response"
        yield Found((), message, "add at least one criterion of polarity reward with a weight above 0")


@rule("W302", "all-weights-zero", Severity.ERROR)
def all_zero(subject: Subject) -> Iterator[Found]:
    """All weights of a rubric, or of what a group holds, are 0.

    A weighted mean over them divides by 0: there is no reward, or the group has no score.

    Fix: give at least one of them a weight above 0, or remove the group.
    """
    if not subject.rubric.groups:
        if all(c.weight == 0 for c in subject.criteria):
            yield Found((), "all weights are 0", "give at least one criterion a weight above 0")
        return
    for group, weights in _held(subject):
        if weights and not any(weights):
            name = f"all {len(weights)} children of the group {group.id!r} have the weight 0"
            yield Found((group.id,), name, "give at least one of them a weight above 0, or remove the group")


@rule("W303", "dominant-weight", parameters=("dominant_share",))
def dominant(subject: Subject) -> Iterator[Found]:
    """One weight is nearly the whole sum (more than 95% among its siblings).

    The reward is that criterion's verdict; the others are paid for and decide nothing. Often a slip: 100 for 10.

    Fix: lower the weight, or make the criterion a veto if it really decides alone.
    """
    for indices in subject.siblings:
        weights = [(subject.criteria[index].weight, subject.criteria[index].id) for index in indices]
        path = subject.criteria[indices[0]].path
        weights += [(group.weight, group.id) for group in subject.rubric.groups if group.path == path]
        total = sum(weight for weight, _ in weights)
        top, name = max(weights)
        if sum(weight > 0 for weight, _ in weights) > 1 and top / total > subject.limits.dominant_share:
            rest = (total - top) / (len(weights) - 1)
            yield Found(
                (name,),
                f"its weight {top:g} is {100 * top / total:.1f}% of the sum {total:g}, the others hardly count",
                f"lower it (the others weigh {rest:.3g} on average), or set veto=true if it decides alone",
            )


@rule("W304", "weight-out-of-range")
def out_of_range(subject: Subject) -> Iterator[Found]:
    """A weight lies outside the range of its format.

    RLCF weighs from 0 to 100, HealthBench from -10 to 10, RaR from -2 to 5, Chasing the Tail from 1 to 3. A weight
    beyond is mostly a slip, and shifts every reward of its prompt.

    Fix: bring it into the range.
    """
    bounds = RANGES.get(subject.format)
    if bounds is None:
        return
    low, high = bounds
    for criterion in subject.criteria:
        if not low <= criterion.weight <= high:
            message = (
                f"the weight {criterion.weight:g} is outside the range {low:g} to {high:g} of {subject.format}"
            )
            nearest = low if criterion.weight < low else high
            yield Found((criterion.id,), message, f"bring it into the range, such as {nearest:g}")


@rule("W305", "weight-zero", Severity.INFO)
def zero(subject: Subject) -> Iterator[Found]:
    """A criterion weighs nothing and is no veto.

    It is judged and paid for, and changes no reward.

    Fix: give it a weight, make it a veto, or remove it.
    """
    if not any(c.weight for c in subject.criteria):
        return
    for criterion in subject.criteria:
        if criterion.weight == 0 and not criterion.veto:
            yield Found((criterion.id,), "it weighs 0 and is no veto", "give it a weight, or remove it")


@rule("W306", "group-counts-for-nothing")
def idle_group(subject: Subject) -> Iterator[Found]:
    """A group weighs 0, or holds no criterion.

    All that it holds is judged and changes no reward; an empty group has no score at all.

    Fix: give the group a weight, or remove it with what it holds.
    """
    used = {name for criterion in subject.criteria for name in criterion.path}
    for group in subject.rubric.groups:
        if group.id not in used:
            yield Found((group.id,), "the group holds no criterion", "remove it, or move criteria into it")
        elif group.weight == 0:
            message = "the group weighs 0: what it holds changes no reward"
            yield Found((group.id,), message, "give it a weight above 0, or remove it")


@rule("W307", "veto-on-optional")
def optional_veto(subject: Subject) -> Iterator[Found]:
    """A veto on a criterion that is called optional.

    A veto sets the reward to the floor when its verdict is adverse; what is optional cannot be that important.

    Fix: remove the veto, or call the criterion essential.
    """
    for criterion in subject.criteria:
        if criterion.veto and criterion.importance is Importance.OPTIONAL:
            message = "it is optional, and yet a veto that sets the reward to the floor"
            yield Found((criterion.id,), message, 'remove the veto, or set importance="essential"')


@rule("W308", "weight-against-importance")
def against_importance(subject: Subject) -> Iterator[Found]:
    """An optional criterion weighs more than every essential one of its rubric.

    Category and number contradict each other, and presets that weigh by category (RaR) give another reward than
    those that weigh by number.

    Fix: swap the weights, or change the category.
    """
    essential = [c.weight for c in subject.criteria if c.importance is Importance.ESSENTIAL]
    for criterion in subject.criteria:
        if essential and criterion.importance is Importance.OPTIONAL and criterion.weight > max(essential):
            message = (
                f"it is optional and weighs {criterion.weight:g}, more than the essential ones ({max(essential):g})"
            )
            yield Found((criterion.id,), message, f"give it a weight below {min(essential):g}")


def _held(subject: Subject) -> Iterator[tuple[Group, list[float]]]:
    """Each group with the weights of what it directly holds."""
    held: dict[str, list[float]] = {}
    for node in (*subject.rubric.groups, *subject.criteria):
        if node.path:
            held.setdefault(node.path[-1], []).append(node.weight)
    for group in subject.rubric.groups:
        yield group, held.get(group.id, [])
