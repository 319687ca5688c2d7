"""What can be known to be wrong with a rubric before anything is spent on it."""

from __future__ import annotations

from pathlib import Path

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

    Calling it raises FormatError with the row's line, or with the file of the shared rubric where the fault lies in
    that; a rubric that was checked is not checked again.

    Args:
        judge, aggregation: what the rubrics are for.
        shared: the rubric that holds for every row, and its file.
    """

    def __init__(
        self,
        judge: Judge[Rollout, Rubric],
        aggregation: Aggregation,
        *,
        shared: tuple[Rubric, Path] | None = None,
    ) -> None:
        self._judge = judge
        self._aggregation = aggregation
        self._shared = shared
        self._seen: set[str] = set()

    def __call__(self, unit: Unit, source: str) -> None:
        name = unit.rubric.fingerprint
        if name in self._seen:
            return
        error = self._fault(unit.rubric)
        if error is not None:
            hint = _in_options(error)
            if self._shared is not None and self._lies_in(self._shared[0], error):
                raise FormatError(error.message, source=str(self._shared[1]), hint=hint)
            raise FormatError(error.message, source=source, line=unit.line, field="rubric", hint=hint)
        if len(self._seen) >= REMEMBERED:
            self._seen.clear()
        self._seen.add(name)

    def _fault(self, rubric: Rubric) -> RubricateError | None:
        try:
            value_range(self._aggregation, rubric)
            self._judge.check(rubric)
        except RubricateError as error:
            return error
        return None

    def _lies_in(self, shared: Rubric, error: RubricateError) -> bool:
        alone = self._fault(shared)
        return alone is not None and alone.message == error.message


def _in_options(error: RubricateError) -> str:
    """The hint, with the command's options in place of the library's arguments."""
    if "weight_default" in error.hint:
        return (
            "set it in the rubric, give such criteria a weight with --weight-default X, or take the criteria's own "
            "weights with --aggregation weighted"
        )
    if "no verifier named" in error.message:
        return f"{error.hint}; your own verifiers need --import FILE".lstrip("; ")
    return error.hint
