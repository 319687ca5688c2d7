"""Whatever a model answers, a generator gives a rubric that keeps to its rules, or a typed failure."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.base import ChatModel
from rubricate.chat.mock import MockModel
from rubricate.rubrics.generators.base import Generator
from rubricate.rubrics.generators.checklist import ChecklistGenerator
from rubricate.rubrics.generators.dynamic import CarmoGenerator, PrinciplesGenerator
from rubricate.rubrics.generators.reference import ReferenceGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.trained import TrainedGenerator

SOURCE = Source("How do vaccines work?", reference="By training.", candidates=("a", "b"), id="s")

MAKERS: dict[str, Callable[[ChatModel], Generator]] = {
    "reference": lambda model: ReferenceGenerator(model, least=1, max_attempts=2),
    "numeric": lambda model: ReferenceGenerator(model, least=1, weights="anchored", max_attempts=2),
    "checklist": lambda model: ChecklistGenerator(model, max_attempts=2),
    "carmo": lambda model: CarmoGenerator(model, least=1, max_attempts=2),
    "principles": lambda model: PrinciplesGenerator(model, least=1, max_attempts=2),
    "trained": lambda model: TrainedGenerator(model, max_attempts=2),
}

texts = st.sampled_from(
    [
        "Essential Criteria: The response names the dose.",
        "Pitfall Criteria: Avoids naming the dose.",
        "Optional Criteria: ",
        "Does it name the dose?",
        "1. The response is short. [Hard Rule]",
        "",
        "{{ task }}",
    ]
) | st.text(max_size=30)
values = (
    texts
    | st.none()
    | st.booleans()
    | st.integers(-200, 200)
    | st.floats(allow_nan=True)
    | st.lists(texts, max_size=2)
)
keys = st.sampled_from(["title", "description", "weight", "question", "name", "questions"])
items = st.dictionaries(keys, values, max_size=6) | values
lists = st.lists(items, max_size=5)
objects = st.dictionaries(st.sampled_from(["criteria", "questions", "principles"]), lists, max_size=2)
answers = st.one_of(
    texts, st.one_of(lists, objects, values).map(json.dumps), objects.map(json.dumps).map(lambda t: t[:-3])
)


@pytest.mark.parametrize("method", MAKERS)
@given(first=answers, second=answers)
def test_a_rubric_or_a_failure(method: str, first: str, second: str) -> None:
    generator = MAKERS[method](MockModel([first, second]))
    made = generator.generate_sync(SOURCE)
    assert (made.rubric is None) == (made.failure is not None)
    assert 1 <= made.usage.calls <= 2
    if made.rubric is not None:
        assert all(one.provenance is not None and one.provenance.generator for one in made.rubric.criteria)
        if method in ("reference", "numeric"):
            assert not any("Criteria:" in one.text for one in made.rubric.criteria)
