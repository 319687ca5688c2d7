"""HealthBench: signed points, tags, axes as channels.

Fields as openai/simple-evals reads them (healthbench_eval.py, ee3b031).
"""

from __future__ import annotations

import pytest

from rubricate.errors import FormatError
from rubricate.rubrics import Polarity
from rubricate.rubrics.formats import Note, detect, dump_rubrics, parse_rubric

RECORD: dict[str, object] = {
    "prompt_id": "p-1",
    "prompt": [{"role": "user", "content": "My head hurts."}],
    "rubrics": [
        {"criterion": "Asks how long.", "points": 7, "tags": ["level:example", "axis:context_awareness"]},
        {"criterion": "Recommends opioids.", "points": -9, "tags": ["level:example", "axis:accuracy"]},
        {"criterion": "Is kind.", "points": 2, "tags": []},
    ],
    "example_tags": ["theme:context_seeking"],
    "ideal_completions_data": None,
    "canary": "c",
}


def test_a_row_becomes_a_rubric_and_a_row_again() -> None:
    rubric = parse_rubric(RECORD)
    assert detect(RECORD) == "healthbench"
    assert (rubric.id, rubric.ids) == ("p-1", ("c1", "c2", "c3"))
    assert [(c.weight, c.polarity, c.channel) for c in rubric.criteria] == [
        (7.0, Polarity.REWARD, "context_awareness"),
        (9.0, Polarity.PENALTY, "accuracy"),
        (2.0, Polarity.REWARD, None),
    ]
    assert rubric["c1"].tags == ("level:example", "axis:context_awareness")
    assert rubric.metadata["example_tags"] == ["theme:context_seeking"]
    assert dump_rubrics(rubric, "healthbench") == [RECORD]


def test_an_axis_is_written_for_a_channel_without_one() -> None:
    rubric = parse_rubric([{"text": "t", "channel": "style", "tags": ["x"]}])
    (record,) = dump_rubrics(rubric, "healthbench")
    assert record["rubrics"] == [{"criterion": "t", "points": 1, "tags": ["x", "axis:style"]}]
    other = parse_rubric([{"text": "t", "channel": "style", "tags": ["axis:accuracy"]}])
    with pytest.raises(FormatError, match="channel, which differs"):
        dump_rubrics(other, "healthbench")


def test_a_penalty_that_is_worded_well_is_noted() -> None:
    notes: list[Note] = []
    parse_rubric([{"criterion": "Avoids opioids.", "points": -9, "tags": ["axis:a", "axis:b"]}], notes=notes)
    assert [note.kind for note in notes] == ["layout", "polarity"]


@pytest.mark.parametrize(
    ("item", "field", "words"),
    [
        ({"points": None}, "rubrics[0].points", "'c1' has null"),
        ({"points": "7"}, "rubrics[0].points", "the text '7'"),
        ({"criterion": ""}, "rubrics[0].criterion", "blank"),
        ({"tags": "axis:x"}, "rubrics[0].tags", "list of tags"),
        ({"tags": ["a", 1]}, "rubrics[0].tags[1]", "int"),
    ],
)
def test_mistakes_are_named(item: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric({"rubrics": [{"criterion": "c", "points": 1} | item]})
    assert caught.value.field == field
    assert words in str(caught.value)
