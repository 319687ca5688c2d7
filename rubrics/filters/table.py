"""Scores of a pool of responses by a rubric's criteria, repeats included, and the statistics filters take of them.

A score that is missing (the judgement failed, or the criterion does not apply) is NaN in the arrays, is left out of
every statistic, and is counted. It is never a 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError
from rubricate.types import Status, Usage, Verdict

__all__ = ["ScoreTable", "correlation", "excess_variance", "permutation_p", "spread"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreTable:
    """Scores of a pool.

    Attributes:
        ids: the criteria's ids.
        scores: float64 of shape (responses, criteria, repeats), in [0, 1], NaN where there is no score.
        failed: int of shape (criteria,): judgements that failed.
        not_applicable: int of shape (criteria,): judgements that say that the criterion does not apply.
        judge: name of the judge.
        usage: what the judging cost.

    Raises ConfigError for shapes that do not fit one another and for scores outside [0, 1].
    """

    ids: tuple[str, ...]
    scores: Array
    failed: NDArray[np.int64]
    not_applicable: NDArray[np.int64]
    judge: str = ""
    usage: Usage = Usage()

    def __post_init__(self) -> None:
        width = len(self.ids)
        if self.scores.ndim != 3 or self.scores.shape[1] != width:
            raise ConfigError(
                f"scores have the shape (responses, {width} criteria, repeats), not {self.scores.shape}"
            )
        if self.failed.shape != (width,) or self.not_applicable.shape != (width,):
            raise ConfigError(f"failed and not_applicable have one count for each of {width} criteria")
        known = self.scores[~np.isnan(self.scores)]
        if known.size and not (known.min() >= 0.0 and known.max() <= 1.0):
            raise ConfigError("scores are in [0, 1], or NaN where there is none")

    @classmethod
    def from_verdicts(
        cls,
        ids: Sequence[str],
        verdicts: Sequence[Sequence[Sequence[Verdict]]],
        *,
        judge: str = "",
        usage: Usage | None = None,
    ) -> ScoreTable:
        """The table of `verdicts[response][repeat]`, each a judgement's verdicts in any order.

        A criterion without a verdict in a judgement counts as failed there.
        """
        repeats = max((len(row) for row in verdicts), default=0)
        scores = np.full((len(verdicts), len(ids), repeats), np.nan)
        failed = np.zeros(len(ids), dtype=np.int64)
        absent = np.zeros(len(ids), dtype=np.int64)
        for response, row in enumerate(verdicts):
            for repeat, said in enumerate(row):
                found = {verdict.criterion_id: verdict for verdict in said}
                for place, name in enumerate(ids):
                    verdict = found.get(name)
                    if verdict is not None and verdict.score is not None:
                        scores[response, place, repeat] = verdict.score
                    elif verdict is not None and verdict.status is Status.NOT_APPLICABLE:
                        absent[place] += 1
                    else:
                        failed[place] += 1
        return cls(tuple(ids), scores, failed, absent, judge, usage or Usage())

    def covers(self, ids: Sequence[str], responses: int, repeats: int = 1) -> bool:
        """Whether it has scores of all these criteria for so many responses, from so many repeats or more."""
        shape = self.scores.shape
        return set(ids) <= set(self.ids) and shape[0] == responses and shape[2] >= repeats

    def of(self, criterion_id: str) -> Array:
        """Scores of one criterion, of shape (responses, repeats). Raises ConfigError for an id it does not have."""
        return self.scores[:, self._place(criterion_id), :]

    def means(self, criterion_id: str) -> Array:
        """For each response the mean of its known repeats, NaN where none is known; of shape (responses,)."""
        return row_means(self.of(criterion_id))

    def missing(self, criterion_id: str) -> tuple[int, int]:
        """How many judgements of a criterion failed, and how many say that it does not apply."""
        place = self._place(criterion_id)
        return int(self.failed[place]), int(self.not_applicable[place])

    def _place(self, criterion_id: str) -> int:
        if criterion_id not in self.ids:
            raise ConfigError(f"the table has no criterion {criterion_id!r}")
        return self.ids.index(criterion_id)


def row_means(scores: Array) -> Array:
    """Mean of the known values of each row, NaN for a row without any."""
    known = ~np.isnan(scores)
    counts = known.sum(axis=1)
    sums = np.where(known, scores, 0.0).sum(axis=1)
    return np.divide(sums, counts, out=np.full(len(scores), np.nan), where=counts > 0)


def spread(values: Array) -> float | None:
    """Population standard deviation (ddof 0, as DR Tulu takes it, 2511.19399) of the known values, >= 0.

    None where fewer than two are known. Equal values give exactly 0.
    """
    known = values[~np.isnan(values)]
    if known.size < 2:
        return None
    return 0.0 if np.ptp(known) == 0 else float(known.std())


def excess_variance(scores: Array) -> tuple[float, float] | None:
    """Variance between responses beyond what repeats of one judgement vary, and the variance between repeats.

    Ours: the estimator of the between-groups variance in the one-way random-effects analysis of variance (method of
    moments; Searle, Casella, McCulloch, "Variance Components", section 3.6, for unequal numbers),

        (MSB - MSW) / n0,   n0 = (N - sum n_i^2 / N) / (a - 1),

    which is unbiased: the plain variance of the responses' means is too large by MSW / n0 on average. Estimates
    below 0 are given as 0.

    Args:
        scores: of shape (responses, repeats), NaN where unknown.

    Returns (excess, within), both >= 0; None where fewer than two responses have a score, or none has two.
    """
    counts = (~np.isnan(scores)).sum(axis=1)
    rows, counts = scores[counts > 0], counts[counts > 0]
    groups, total = len(rows), int(counts.sum())
    if groups < 2 or total <= groups:
        return None
    means = row_means(rows)
    grand = float(np.nansum(rows)) / total
    within = float(np.nansum((rows - means[:, None]) ** 2)) / (total - groups)
    between = float((counts * (means - grand) ** 2).sum()) / (groups - 1)
    n0 = (total - float((counts**2).sum()) / total) / (groups - 1)
    return max((between - within) / n0, 0.0), within


def permutation_p(scores: Array, *, permutations: int = 999, seed: int = 0) -> float | None:
    """Chance that repeats dealt out to the responses at random vary as much between responses as they do here.

    Ours: a permutation test of "which response was judged makes no difference", with the variation between
    responses, sum n_i (mean_i - mean)^2, as statistic; (1 + as large) / (1 + permutations), which is never 0.

    Args:
        scores: of shape (responses, repeats), NaN where unknown.
        permutations: how many are drawn.
        seed: of the draw.

    Returns a probability in (0, 1], or None where `excess_variance` is None too.
    """
    if excess_variance(scores) is None:
        return None
    counts = (~np.isnan(scores)).sum(axis=1)
    counts = counts[counts > 0]
    values = scores[~np.isnan(scores)]  # row by row
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    rng = np.random.default_rng(seed)
    drawn = rng.permuted(np.broadcast_to(values, (permutations, values.size)), axis=1)
    every = np.vstack((values[None, :], drawn))
    sums = np.add.reduceat(every, starts, axis=1)
    varies = (sums**2 / counts).sum(axis=1)  # the grand mean is the same for all
    as_large = int((varies[1:] >= varies[0] - 1e-9 * max(1.0, abs(float(varies[0])))).sum())
    return (1 + as_large) / (1 + permutations)


def correlation(a: Array, b: Array) -> tuple[float | None, int]:
    """Pearson's correlation in [-1, 1] over the places where both are known, and how many these are.

    None where fewer than two are, or one of the two does not vary there.
    """
    both = ~(np.isnan(a) | np.isnan(b))
    x, y = a[both], b[both]
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None, int(x.size)
    x, y = x - x.mean(), y - y.mean()
    value = float((x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum()))
    return min(max(value, -1.0), 1.0), int(both.sum())
