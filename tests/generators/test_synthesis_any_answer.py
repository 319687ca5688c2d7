"""Whatever a model answers, methods that decompose, ground, merge and mine give a rubric or a typed failure."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.base import ChatModel
from rubricate.chat.mock import MockModel
from rubricate.embed import MockEmbedder
from rubricate.judges import ScriptedJudge
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.generators.base import Generated
from rubricate.rubrics.generators.hacking import HackingGenerator
from rubricate.rubrics.generators.merge import MergeGenerator
from rubricate.rubrics.generators.policy import PolicyGenerator
from rubricate.rubrics.generators.policy_text import parse_policy
from rubricate.rubrics.generators.recursive import RecursiveGenerator
from rubricate.rubrics.generators.search import SearchGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis import RubiconGenerator
from rubricate.search import Bm25Retriever, Passage

RUBRICS = tuple(
    Rubric(criteria=(Criterion(id="a", text=f"The response names the {word} dose."),))
    for word in ("daily", "whole")
)
SOURCE = Source(
    "How much of it?", candidates=("one", "two", "three", "four"), labels=(1, 2, 3, 99), rubrics=RUBRICS, id="s"
)
POLICY = parse_policy("Name the dose.\n\nNever guess the dose.\n")
NOTES = Bm25Retriever([Passage("How much: the dose is two a day.", "n")])

MAKERS: dict[str, Callable[[ChatModel], Generated]] = {
    "recursive": lambda model: RecursiveGenerator(model, ScriptedJudge(), least=1, max_attempts=2).generate_sync(
        Source(SOURCE.prompt, candidates=SOURCE.candidates)
    ),
    "policy": lambda model: PolicyGenerator(model, POLICY, max_attempts=2).generate_from_sync(),
    "policy of a prompt": lambda model: PolicyGenerator(model, POLICY, max_attempts=2).generate_sync(SOURCE),
    "search": lambda model: SearchGenerator(model, NOTES, least_critical=1, max_attempts=2).generate_sync(SOURCE),
    "merge": lambda model: MergeGenerator(model, MockEmbedder(), cosine=0.1, max_attempts=2).generate_sync(SOURCE),
    "rubicon": lambda model: RubiconGenerator(model, least=1, max_attempts=2).generate_sync(SOURCE),
    "hacking": lambda model: HackingGenerator(model, ScriptedJudge(), max_attempts=2).generate_from_sync([SOURCE]),
}

texts = st.sampled_from(
    [
        "The response names the dose.",
        "required",
        "forbidden",
        "1",
        "P1",
        "Name the dose.",
        "same",
        "the dose is two",
        "",
    ]
) | st.text(max_size=20)
numbers = st.integers(-2, 120) | st.floats(allow_nan=True)
values = texts | st.none() | st.booleans() | numbers | st.lists(texts | numbers, max_size=2)
fields = st.sampled_from(
    [
        "title",
        "name",
        "criterion",
        "description",
        "clause",
        "quote",
        "category",
        "weight",
        "tiers",
        "new",
        "overlap",
    ]
    + [
        "closest",
        "conflict",
        "pair",
        "relation",
        "keep",
        "Ingredient",
        "Handle",
        "Specifics",
        "examples",
        "patterns",
    ]
)
items = st.dictionaries(
    fields, values | st.lists(st.dictionaries(fields, values, max_size=3), max_size=2), max_size=8
)
lists = st.lists(items | values, max_size=4)
names = [
    "criteria",
    "checks",
    "set_aside",
    "queries",
    "Answer Critical",
    "Context",
    "decisions",
    "dimensions",
    "patterns",
]
objects = st.dictionaries(st.sampled_from(names), lists | values, max_size=3)
answers = st.one_of(texts, st.one_of(lists, objects).map(json.dumps), objects.map(json.dumps).map(lambda t: t[:-3]))


@pytest.mark.parametrize("method", MAKERS)
@given(script=st.lists(answers, min_size=1, max_size=4))
def test_a_rubric_or_a_failure(method: str, script: list[str]) -> None:
    made = MAKERS[method](MockModel(script, repeat=True))
    assert (made.rubric is None) == (made.failure is not None)
    json.dumps(dict(made.extra), allow_nan=False)
    if made.rubric is not None:
        assert all(one.provenance is not None and one.provenance.generator for one in made.rubric.criteria)
        made.rubric.model_dump_json()
