"""Checklists (RLCF): candidates in the prompt, weights, the universal requirement, both forms of answers."""

from __future__ import annotations

import json
import re

import pytest

from rubricate.chat.mock import MockModel
from rubricate.errors import ConfigError
from rubricate.rubrics import BinaryScale, NumericScale, Polarity
from rubricate.rubrics.formats import dump_rubrics, parse_rubric
from rubricate.rubrics.generators.base import NoteKind
from rubricate.rubrics.generators.checklist import UNIVERSAL_TEXT, ChecklistGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.types import FailureKind

SOURCE = Source(
    "Write a haiku about rain.",
    reference="Rain on the tin roof...",
    candidates=("An ode.", "A haiku.", "A limerick.", "Prose.", "A fifth."),
    id="h",
)
GOOD = [
    {"question": "Does the response have three lines?", "weight": 100},
    {"question": "Is the poem of the response about rain?", "weight": 75},
]


def answer(*items: object) -> str:
    return json.dumps({"questions": items})


async def test_candidates_and_reference_are_shown_and_evidence_is_kept() -> None:
    model = MockModel(answer(*GOOD))
    made = await ChecklistGenerator(model).generate(SOURCE)
    text = model.requests[0].messages[-1].content
    for number, candidate in enumerate(SOURCE.candidates[:4], start=1):
        assert re.search(rf"<candidate\w*_{number}-\w+>\n{re.escape(str(candidate))}\n", text)
    assert "A fifth." not in text and "Rain on the tin roof" in text
    assert (model.requests[0].temperature, model.requests[0].top_p, model.requests[0].max_tokens) == (
        0.0,
        0.9,
        1024,
    )
    assert made.rubric is not None and [one.weight for one in made.rubric.criteria] == [100, 75, 100]
    assert all(one.polarity is Polarity.REWARD for one in made.rubric.criteria)
    assert made.rubric.criteria[0].scale == NumericScale(low=0, high=100, integer=True)
    provenance = made.rubric.criteria[0].provenance
    assert provenance is not None and provenance.generator == "checklist"
    assert [piece.partition(":")[0] for piece in provenance.evidence] == ["reference", *["candidate"] * 4]


async def test_the_universal_requirement_comes_last_and_can_be_left_out() -> None:
    made = await ChecklistGenerator(MockModel(answer(*GOOD)), mode="direct").generate(SOURCE)
    assert made.rubric is not None
    last = made.rubric.criteria[-1]
    assert last.text == UNIVERSAL_TEXT and last.weight == 100 and last.tags == ("universal",)
    bare = await ChecklistGenerator(MockModel(answer(*GOOD)), mode="direct", universal=False).generate(SOURCE)
    assert bare.rubric is not None and len(bare.rubric) == 2
    (row,) = dump_rubrics([made.rubric], "rlcf", lossy=True)
    again = parse_rubric(row, format="rlcf")
    assert [(one.text, one.weight, one.tags) for one in again.criteria] == [
        (one.text, one.weight, one.tags) for one in made.rubric.criteria
    ]


async def test_direct_mode_shows_no_candidates_and_needs_none() -> None:
    model = MockModel(answer(*GOOD))
    made = await ChecklistGenerator(model, mode="direct", reference="none", scale="binary").generate(SOURCE)
    assert "An ode." not in model.requests[0].text() and "tin roof" not in model.requests[0].text()
    assert made.rubric is not None and made.rubric.criteria[0].scale == BinaryScale()
    with pytest.raises(ConfigError, match="needs candidate responses"):
        await ChecklistGenerator(model).generate(Source("Q?"))
    with pytest.raises(ConfigError, match="needs a reference answer"):
        await ChecklistGenerator(model, mode="direct", reference="required").generate(Source("Q?"))


async def test_the_published_text_is_read_too() -> None:
    text = "Key Criteria Questions:\n- Does the response have three lines? (100)\n- Is it about rain? (75)\n<END>"
    made = await ChecklistGenerator(MockModel(text), mode="direct", universal=False).generate(SOURCE)
    assert made.rubric is not None
    assert [(one.text, one.weight) for one in made.rubric.criteria] == [
        ("Does the response have three lines?", 100.0),
        ("Is it about rain?", 75.0),
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"question": "Is it short?", "weight": 101}, "0 to 100"),
        ({"question": "Is it short?", "weight": True}, "0 to 100"),
        ({"question": "Is it short?"}, "missing"),
        ({"question": "It is short.", "weight": 50}, "no question"),
        ({"weight": 50}, "no object"),
        ({"question": "Does the response have three lines?", "weight": 1}, "says the same as another criterion"),
        ({"question": "Does it also meet the above criterion?", "weight": 50}, "other criteria"),
    ],
)
async def test_a_bad_question_is_asked_for_again_and_then_dropped(bad: object, reason: str) -> None:
    model = MockModel([answer(*GOOD, bad), answer(bad), answer(bad)])
    made = await ChecklistGenerator(model, mode="direct", universal=False).generate(SOURCE)
    assert made.rubric is not None and len(made.rubric) == 2 and made.usage.calls == 3
    assert [note.kind for note in made.notes] == [NoteKind.REASKED, NoteKind.REASKED, NoteKind.DROPPED]
    assert reason in made.notes[-1].reason
    assert reason in model.requests[1].messages[-1].content


async def test_a_checklist_without_weight_is_none() -> None:
    idle = answer({"question": "Is it short?", "weight": 0})
    made = await ChecklistGenerator(MockModel(idle), mode="direct").generate(SOURCE)
    assert made.rubric is None and made.failure is not None
    assert made.failure.message == "all weights are 0" and made.failure.kind is FailureKind.OUT_OF_RANGE
