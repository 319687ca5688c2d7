"""Trained generators (Rubric-RM): the request alone in, a tagged list out."""

from __future__ import annotations

import pytest

from rubricate.chat.mock import MockModel
from rubricate.errors import ConfigError
from rubricate.prompts import Prompt
from rubricate.rubrics import CriterionKind
from rubricate.rubrics.generators.base import NoteKind
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.trained import TrainedGenerator
from rubricate.types import FailureKind

LIST = (
    "1. The response has at most three sentences. [Hard Rule]\n"
    "2. The response explains before it concludes. [Principle]"
)
SOURCE = Source("Explain rain.", reference="SECRET", candidates=("SECRET too",), id="r")


async def test_the_request_alone_goes_in_and_tags_become_kinds() -> None:
    model = MockModel(f"<think>Let me see.</think>\n{LIST}")
    made = await TrainedGenerator(model).generate(SOURCE)
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["user"]
    assert "Request:\nExplain rain.\n\nRubric:" in request.messages[0].content and "SECRET" not in request.text()
    assert (request.temperature, request.max_tokens, request.json_schema) == (0.0, 1024, None)
    assert made.rubric is not None
    assert [one.kind for one in made.rubric.criteria] == [CriterionKind.HARD_RULE, CriterionKind.PRINCIPLE]
    assert [one.weight for one in made.rubric.criteria] == [1, 1]
    assert made.rubric.criteria[0].text == "The response has at most three sentences."
    assert made.rubric.criteria[0].provenance is not None
    assert made.rubric.criteria[0].provenance.generator == "trained"


async def test_arrow_weights() -> None:
    made = await TrainedGenerator(MockModel(LIST), weights="arrow").generate(SOURCE)
    assert made.rubric is not None and [one.weight for one in made.rubric.criteria] == [3, 1]
    with pytest.raises(ConfigError, match="weights"):
        TrainedGenerator(MockModel(LIST), weights="heavy")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("bad", ["No rubric.", "1. The response is short.\n2. The response is right. [Principle]"])
async def test_a_broken_form_is_asked_for_again_in_the_same_words(bad: str) -> None:
    model = MockModel([bad, LIST])
    made = await TrainedGenerator(model).generate(SOURCE)
    assert made.rubric is not None and [note.kind for note in made.notes] == [NoteKind.REASKED]
    first, second = model.requests
    assert first.messages == second.messages
    assert (second.temperature, second.sample) == (0.7, 1)


async def test_items_are_dropped_by_checks_and_counts_are_kept() -> None:
    pointing = LIST + "\n3. The response meets the above criteria. [Principle]"
    made = await TrainedGenerator(MockModel(pointing), checks=("R401",)).generate(SOURCE)
    assert made.rubric is not None and len(made.rubric) == 2
    assert made.notes[-1].kind is NoteKind.DROPPED
    few = await TrainedGenerator(MockModel(pointing), checks=("R401",), least=3, max_attempts=2).generate(SOURCE)
    assert few.rubric is None and few.failure is not None and few.failure.kind is FailureKind.INCOMPLETE
    assert few.usage.calls == 2
    many = await TrainedGenerator(MockModel(LIST), most=1).generate(SOURCE)
    assert many.failure is not None and many.failure.kind is FailureKind.OUT_OF_RANGE


async def test_the_models_own_words_and_fences() -> None:
    prompt = Prompt(
        "own",
        "{% block system %}S{% endblock %}{% block shared %}T: {{ task }}{% endblock %}"
        "{% block item %}{% endblock %}",
    )
    model = MockModel(LIST)
    made = await TrainedGenerator(model, prompt=prompt, fenced=True).generate(SOURCE)
    assert model.requests[0].messages[0].content == "S"
    assert "T: <task-" in model.requests[0].messages[1].content
    assert made.rubric is not None and made.rubric.criteria[0].provenance is not None
    assert made.rubric.criteria[0].provenance.prompt_fingerprint == prompt.fingerprint
