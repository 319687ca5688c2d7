"""What the formats rely on in the objects they build."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rubricate.rubrics import Criterion, Rubric


def test_a_changed_copy_has_its_own_fingerprint() -> None:
    rubric = Rubric(criteria=(Criterion(id="a", text="t"),))
    before = rubric.fingerprint
    assert rubric.model_copy(update={"criteria": (Criterion(id="a", text="u"),)}).fingerprint != before
    assert rubric.model_copy(update={"metadata": {"a": 1}}).fingerprint == before


@pytest.mark.parametrize("weight", [True, "5", float("nan"), float("inf"), -1, None])
def test_a_weight_is_a_finite_number(weight: object) -> None:
    with pytest.raises(ValidationError):
        Criterion.model_validate({"id": "a", "text": "t", "weight": weight})
