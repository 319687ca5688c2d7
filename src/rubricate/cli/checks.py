"""What can be known to be wrong with a rubric before anything is spent on it."""

from __future__ import annotations

from pydantic import ValidationError

from rubricate.cli.inputs import Unit
from rubricate.errors import FormatError, RubricateError
from rubricate.judges.verifiers import get_verifier
from rubricate.rewardmodels import Aggregation, value_range
from rubricate.rubrics import Criterion

__all__ = ["RubricCheck"]

REMEMBERED = 10_000


class RubricCheck:
    """Checks the rubric of a response: weights that the aggregation can use, verifiers that exist and take their
    arguments.

    Calling it raises FormatError with the row's line; a rubric that was checked is not checked again.
    """

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._seen: set[str] = set()

    def __call__(self, unit: Unit, source: str) -> None:
        name = unit.rubric.fingerprint
        if name in self._seen:
            return
        try:
            value_range(self._aggregation, unit.rubric)
            for criterion in unit.rubric.criteria:
                _check_verifier(criterion)
        except RubricateError as error:
            message = error.message or "cannot be used"
            raise FormatError(message, source=source, line=unit.line, field="rubric", hint=error.hint) from None
        if len(self._seen) >= REMEMBERED:
            self._seen.clear()
        self._seen.add(name)


def _check_verifier(criterion: Criterion) -> None:
    if criterion.verifier is None:
        return
    found = get_verifier(criterion.verifier.name)
    try:
        found.args.model_validate(criterion.verifier.args)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise FormatError(
            f"criterion {criterion.id!r}: verifier {found.name!r}"
            + (f", argument {field!r}" if field else "")
            + f": {first['msg']}"
        ) from None
