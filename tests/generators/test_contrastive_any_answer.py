"""Whatever a model answers, generators that contrast and revise give a rubric of their rules or a typed failure."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from filter_cases import RulePairJudge
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.base import ChatModel
from rubricate.chat.mock import MockModel
from rubricate.comparisons import Preferred
from rubricate.data.records import Preference
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.generators.auto_rubric import AutoRubricGenerator
from rubricate.rubrics.generators.auto_rubric_predict import PairPredictor
from rubricate.rubrics.generators.auto_rubric_themes import ThemesGenerator
from rubricate.rubrics.generators.base import Generator
from rubricate.rubrics.generators.contrastive import ContrastiveGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.tail import TailGenerator

START = Rubric(criteria=(Criterion(id="c", text="The response is kind."),))
SOURCE = Source(
    "Why?", pairs=(Preference("Why?", "So.", "No."),), candidates=("So.", "No."), rubrics=(START,), id="s"
)


def first_named(prompt: str, first: str, second: str, text: str) -> Preferred | None:
    return "first" if first == "So." else "second"


MAKERS: dict[str, Callable[[ChatModel], Generator]] = {
    "json": lambda model: ContrastiveGenerator(model, max_attempts=2),
    "list": lambda model: ContrastiveGenerator(model, form="list", max_attempts=2),
    "auto": lambda model: AutoRubricGenerator(model, PairPredictor(RulePairJudge(first_named)), max_attempts=2),
    "themes": lambda model: ThemesGenerator(model, max_attempts=2),
    "tail": lambda model: TailGenerator(model, mode="single", least=1, max_attempts=2),
}

texts = st.sampled_from(
    [
        "The response is short.",
        "The response is kind. [Principle]",
        "1. The response is short. [Hard Rule]\n2. The response is",
        "The other response is short.",
        "",
        "{{ task }}",
    ]
) | st.text(max_size=30)
values = texts | st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.lists(texts, max_size=2)
keys = st.sampled_from(["text", "kind", "criterion", "weight", "theme", "tips"])
items = st.dictionaries(keys, values, max_size=6) | values
lists = st.lists(items, max_size=5)
objects = st.dictionaries(st.sampled_from(["criteria", "rubrics", "categories"]), lists, max_size=2)
answers = st.one_of(
    texts, st.one_of(lists, objects, values).map(json.dumps), objects.map(json.dumps).map(lambda t: t[:-3])
)


@pytest.mark.parametrize("method", MAKERS)
@given(first=answers, second=answers)
def test_a_rubric_or_a_failure(method: str, first: str, second: str) -> None:
    model = MockModel([first, second])
    made = MAKERS[method](model).generate_sync(SOURCE)
    assert (made.rubric is None) == (made.failure is not None)
    assert 1 <= len(model.requests) <= 2
    if made.rubric is not None:
        assert all(one.provenance is not None and one.provenance.generator for one in made.rubric.criteria)
        assert not any("other response" in one.text for one in made.rubric.criteria if method != "themes")
        if method in ("json", "list"):
            assert all(one.kind is not None and not one.text.endswith("]") for one in made.rubric.criteria)
        if method == "tail":
            assert all(one.weight in (1.0, 2.0, 3.0) for one in made.rubric.criteria)
