"""What can be known to be wrong with a rubric before anything is spent on it."""

from __future__ import annotations

from rubricate.cli.inputs import Unit
from rubricate.data.records import Rollout
from rubricate.errors import FormatError, RubricateError
from rubricate.rewardmodels import Aggregation, value_range
from rubricate.rubrics import Rubric
from rubricate.types import Judge

__all__ = ["RubricCheck"]

REMEMBERED = 10_000


class RubricCheck:
    """Checks the rubric of a response: weights that the aggregation can use, criteria that the judge can decide.

    Calling it raises FormatError with the row's line; a rubric that was checked is not checked again.
    """

    def __init__(self, judge: Judge[Rollout, Rubric], aggregation: Aggregation) -> None:
        self._judge = judge
        self._aggregation = aggregation
        self._seen: set[str] = set()

    def __call__(self, unit: Unit, source: str) -> None:
        name = unit.rubric.fingerprint
        if name in self._seen:
            return
        try:
            value_range(self._aggregation, unit.rubric)
            self._judge.check(unit.rubric)
        except RubricateError as error:
            raise FormatError(
                error.message, source=source, line=unit.line, field="rubric", hint=error.hint
            ) from None
        if len(self._seen) >= REMEMBERED:
            self._seen.clear()
        self._seen.add(name)
