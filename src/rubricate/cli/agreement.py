"""How far verdicts and rewards agree with gold labels, with intervals, and what that means in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.judges.calibration import auc

__all__ = [
    "Agreement",
    "Interval",
    "Labelled",
    "agreement",
    "balanced_accuracy",
    "in_words",
    "rank_agreement",
    "wilson",
]

Z = 1.959964
"""Two-sided 95% quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95% interval; NaN where the data cannot give one."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A verdict beside its gold label.

    Attributes:
        group: what the verdict belongs to (its prompt); verdicts of a group are not independent.
        score: in [0, 1], None for a failed verdict.
        gold: whether the criterion is met.
    """

    group: str
    score: float | None
    gold: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """Verdicts against gold labels.

    Attributes:
        verdicts: number with a score.
        failed: number without; they are in no figure below.
        accuracy: share on the right side of 0.5, with the Wilson interval.
        balanced: mean of the accuracies on met and on unmet criteria; 0.5 is chance.
        auc: chance that a met criterion gets a higher score than an unmet one, ties half; 0.5 is chance.
        says_met: share of verdicts of at least 0.5.
        gold_met: share of gold labels that are met, among the verdicts with a score.
    """

    verdicts: int
    failed: int
    accuracy: Interval
    balanced: Interval
    auc: Interval
    says_met: float
    gold_met: float


def wilson(hits: int, total: int) -> Interval:
    """Share hits / total with its 95% Wilson score interval (Wilson 1927)."""
    if total == 0:
        return Interval(math.nan, math.nan, math.nan)
    share = hits / total
    scale = 1.0 + Z**2 / total
    middle = (share + Z**2 / (2 * total)) / scale
    half = Z * math.sqrt(share * (1 - share) / total + Z**2 / (4 * total**2)) / scale
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def balanced_accuracy(scores: NDArray[np.float64], gold: NDArray[np.bool_]) -> float:
    """Mean of the shares of met and of unmet criteria on the right side of 0.5; NaN for one class only."""
    if gold.all() or not gold.any():
        return math.nan
    says = scores >= 0.5
    return float((says[gold].mean() + (~says[~gold]).mean()) / 2.0)


def agreement(items: Sequence[Labelled], *, resamples: int = 2000, seed: int = 0) -> Agreement:
    """Agreement of verdicts with gold labels.

    Balanced accuracy and AUC have percentile bootstrap intervals over whole groups, since verdicts on one prompt
    are not independent.
    """
    known = [item for item in items if item.score is not None]
    scores = np.array([item.score for item in known], dtype=np.float64)
    gold = np.array([item.gold for item in known], dtype=np.bool_)
    hits = int(((scores >= 0.5) == gold).sum())
    groups = [item.group for item in known]

    def interval(measure: Callable[[NDArray[np.float64], NDArray[np.bool_]], float]) -> Interval:
        return _bootstrap(lambda rows: measure(scores[rows], gold[rows]), groups, resamples, seed)

    return Agreement(
        verdicts=len(known),
        failed=len(items) - len(known),
        accuracy=wilson(hits, len(known)),
        balanced=interval(balanced_accuracy),
        auc=interval(auc),
        says_met=float((scores >= 0.5).mean()) if known else math.nan,
        gold_met=float(gold.mean()) if known else math.nan,
    )


def rank_agreement(
    rewards: Sequence[tuple[str, float | None, float | None]], *, resamples: int = 2000, seed: int = 0
) -> tuple[Interval, int]:
    """Share of pairs of responses to one prompt that two rewards put in the same order, and the number of pairs.

    Args:
        rewards: (prompt, reward, gold reward) of each response. Pairs with an unknown reward, or with equal gold
            rewards, are left out; a tie of the reward counts half. 0.5 is chance.
    """
    points: list[float] = []
    groups: list[str] = []
    for index, (group, mine, gold) in enumerate(rewards):
        for other, their, their_gold in rewards[index + 1 :]:
            if other != group or mine is None or their is None or gold is None or their_gold is None:
                continue
            if gold != their_gold:
                points.append(0.5 if mine == their else float((mine > their) == (gold > their_gold)))
                groups.append(group)
    values = np.array(points, dtype=np.float64)
    mean = _bootstrap(lambda rows: float(values[rows].mean()) if rows.size else math.nan, groups, resamples, seed)
    return mean, len(points)


def _bootstrap(
    measure: Callable[[NDArray[np.intp]], float], groups: Sequence[str], resamples: int, seed: int
) -> Interval:
    """Percentile bootstrap over groups. Resamples in which the measure is undefined are left out."""
    members: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    parts = [np.array(rows, dtype=np.intp) for rows in members.values()]
    value = measure(np.arange(len(groups), dtype=np.intp))
    if len(parts) < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan)
    rng = np.random.default_rng(seed)
    drawn = [
        measure(np.concatenate([parts[int(pick)] for pick in rng.integers(len(parts), size=len(parts))]))
        for _ in range(resamples)
    ]
    there = np.array([draw for draw in drawn if not math.isnan(draw)], dtype=np.float64)
    if not there.size:
        return Interval(value, math.nan, math.nan)
    low, high = (float(end) for end in np.quantile(there, (0.025, 0.975)))
    return Interval(value, low, high)


def in_words(judge: str, found: Agreement) -> str:
    """One or two plain sentences on how good a judge is, from its AUC and the AUC's interval."""
    if found.verdicts == 0:
        return f"{judge} gave no verdict that could be used."
    area = found.auc
    if math.isnan(area.value) or math.isnan(area.low):
        return f"There are too few gold labels to say how good {judge} is."
    figures = (
        f"AUC {area.value:.2f}, 95% interval {area.low:.2f} to {area.high:.2f}, where 0.50 is guessing; "
        f"it says 'met' to {found.says_met:.0%} of the checks, of which {found.gold_met:.0%} are met"
    )
    if area.low <= 0.5 <= area.high:
        return (
            f"On these labels {judge} judges no better than chance ({figures}). "
            "Its verdicts show how the parts work together; do not train on them."
        )
    if area.high < 0.5:
        return f"On these labels {judge} judges worse than chance ({figures}). Do not use it."
    if area.value < 0.65:
        return (
            f"On these labels {judge} is hardly better than chance ({figures}). "
            "Its verdicts show how the parts work together; do not train on them."
        )
    words = "very well" if area.low >= 0.95 else "well" if area.low >= 0.85 else "fairly" if area.low >= 0.7 else ""
    if not words:
        return (
            f"On these labels {judge} is better than chance, but weak ({figures}). "
            "Use it for trials, not for rewards that matter."
        )
    return f"On these labels {judge} tells met from unmet criteria {words} ({figures})."
