"""The pool of a recursive decomposition: criteria with the scores of every response, judged once each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.data.records import Rollout
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.filters.judging import RubricJudge, verdicts_of
from rubricate.rubrics.filters.table import ScoreTable
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, Usage

__all__ = ["Pool", "Scored", "joined", "usable"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scored:
    """A criterion with what a pool does by it.

    Attributes:
        criterion: the criterion.
        scores: float64 of shape (responses,), in [0, 1], NaN where the judgement failed or does not apply.
        failed, absent: how many judgements failed, and how many say that it does not apply.
        depth: 0 for a criterion that was there at first, else one more than its parent's.
    """

    criterion: Criterion
    scores: Array
    failed: int = 0
    absent: int = 0
    depth: int = 0

    def meeting(self, threshold: float) -> list[int]:
        """Places of the responses that are known to meet it."""
        return [place for place, score in enumerate(self.scores) if score >= threshold]


class Pool:
    """Responses, and the judge that scores them.

    Attributes:
        usage: what judging has cost.
        failure: the first judgement that failed, None where none did.
    """

    def __init__(self, judge: RubricJudge, rollouts: Sequence[Rollout]) -> None:
        self.judge = judge
        self.rollouts = tuple(rollouts)
        self.usage = Usage()
        self.failure: Failure | None = None

    async def score(self, criteria: Sequence[Criterion], depth: int = 0) -> list[Scored]:
        """The criteria with their scores, in order."""
        named = [one.model_copy(update={"id": f"n{place}"}) for place, one in enumerate(criteria)]
        rubric = Rubric(criteria=tuple(named))
        said = await asyncio.gather(*(verdicts_of(self.judge, rollout, rubric) for rollout in self.rollouts))
        self.usage += sum((one.usage for one in said), Usage())
        failures = [verdict.failure for one in said for verdict in one.verdicts if verdict.failure is not None]
        self.failure = self.failure or next(iter(failures), None)
        table = ScoreTable.from_verdicts(rubric.ids, [[one.verdicts] for one in said])
        return [
            Scored(one, table.means(name), *table.missing(name), depth)
            for one, name in zip(criteria, rubric.ids, strict=True)
        ]


def joined(items: Sequence[Scored], ids: Sequence[str]) -> ScoreTable:
    """The table of these criteria under these ids."""
    scores = np.stack([one.scores for one in items], axis=1)[:, :, None]
    failed = np.array([one.failed for one in items], dtype=np.int64)
    return ScoreTable(tuple(ids), scores, failed, np.array([one.absent for one in items], dtype=np.int64))


def usable(items: Sequence[Scored], min_known: int) -> list[Scored]:
    """The criteria of which each two have scores of `min_known` responses in common; those known least go first."""
    left = list(items)
    while left:
        known = ~np.isnan(np.stack([one.scores for one in left], axis=1))
        common = known.T.astype(np.int64) @ known.astype(np.int64)
        if common.min() >= min_known:
            return left
        left.pop(int(np.diag(common).argmin()))
    return left
