"""AdvancedIF. Fields and layers: README, processor.py and sample data of facebookresearch/AdvancedIF."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rubrics import changes, extra, record_returns, relaxed, rubric_returns, rubrics, survives, texts, words

from rubricate.errors import FormatError
from rubricate.narrow import as_object
from rubricate.rewardmodels import aggregate
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import detect, dump_rubrics, load_rubrics, parse_rubric
from rubricate.rubrics.formats.advancedif import AGGREGATION
from rubricate.types import Verdict

MESSAGES = [
    {"role": "system", "content": "Answer in haiku."},
    {"role": "user", "content": "Sing of the café."},
]
QUESTIONS = ["Is it a haiku?", 'Does it say "café"?']
ROW: dict[str, object] = {
    "conversation_history": json.dumps(MESSAGES),
    "benchmark_name": "system_steerability_v2",
    "prompt_metadata": json.dumps({"rubrics": json.dumps(QUESTIONS)}),
}


def row(metadata: object) -> dict[str, object]:
    return ROW | {"prompt_metadata": metadata}


def test_a_row_becomes_a_rubric_and_the_same_row_byte_for_byte() -> None:
    rubric = record_returns(ROW, "advancedif")
    assert [(c.id, c.text, c.weight, c.polarity) for c in rubric.criteria] == [
        ("c1", QUESTIONS[0], 1.0, Polarity.REWARD),
        ("c2", QUESTIONS[1], 1.0, Polarity.REWARD),
    ]
    assert rubric.metadata == {"conversation_history": MESSAGES, "benchmark_name": "system_steerability_v2"}


def test_all_of_the_questions_decide() -> None:
    rubric = parse_rubric(ROW)
    for first, second, reward in [(1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)]:
        assert aggregate(AGGREGATION, rubric, [Verdict("c1", first), Verdict("c2", second)]).value == reward


LAYOUTS: list[dict[str, object]] = [
    row({"rubrics": QUESTIONS}),
    row({"rubrics": json.dumps(QUESTIONS)}),
    row(json.dumps({"rubrics": QUESTIONS})),
    row(json.dumps({"z": [1.0], "rubrics": json.dumps(QUESTIONS, indent=2), "s": "é"}, ensure_ascii=False)),
    ROW | {"conversation_history": MESSAGES},
    ROW | {"conversation_history": json.dumps(MESSAGES, ensure_ascii=False, separators=(",", ":"))},
    ROW | {"conversation_history": None},
    ROW | {"response": '[{"role": "assistant", "content": "x"}]', "id": 5},
    {"response": "x", "prompt_metadata": ROW["prompt_metadata"]},
    dict(reversed(ROW.items())),
]


@pytest.mark.parametrize("record", LAYOUTS)
def test_every_layer_is_text_or_the_value_itself(record: dict[str, object]) -> None:
    assert [c.text for c in record_returns(record, "advancedif").criteria] == QUESTIONS


@pytest.mark.parametrize("record", LAYOUTS)
def test_what_has_changed_is_written_in_the_layers_it_came_in(record: dict[str, object]) -> None:
    rubric = parse_rubric(record)
    shorter = rubric.model_copy(update={"criteria": rubric.criteria[:1]})
    (written,) = dump_rubrics(shorter, "advancedif")
    assert list(written) == list(record)
    assert parse_rubric(written).criteria == rubric.criteria[:1]
    for name, part in record.items():
        if name != "prompt_metadata":
            assert written[name] == part
    assert shape(written["prompt_metadata"]) == shape(record["prompt_metadata"])


def shape(value: object) -> list[object]:
    """What the layers are made of: the type of the outer one, its keys, and the types of their values."""
    fields = as_object(json.loads(value) if isinstance(value, str) else value) or {}
    return [type(value), *((name, type(part)) for name, part in fields.items())]


def test_changed_messages_are_written_as_text_again() -> None:
    rubric = parse_rubric(ROW)
    changed = rubric.model_copy(update={"metadata": rubric.metadata | {"conversation_history": MESSAGES[1:]}})
    (written,) = dump_rubrics(changed, "advancedif")
    assert written == ROW | {"conversation_history": json.dumps(MESSAGES[1:])}
    worded = rubric.model_copy(update={"metadata": {"conversation_history": "Hi."}})
    with pytest.raises(FormatError, match="message of the user"):
        dump_rubrics(worded, "advancedif")
    (written,) = dump_rubrics(worded, "advancedif", lossy=True)
    assert written["conversation_history"] == '[{"role": "user", "content": "Hi."}]'


def test_a_csv_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = [ROW, row(json.dumps({"rubrics": ["Is it short?"], "n": 1}))]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        writer.writerows(rows)
    found = load_rubrics(path)
    assert (found.format, len(found.rubrics)) == ("advancedif", 2)
    assert [c.text for rubric in found.rubrics for c in rubric.criteria] == [*QUESTIONS, "Is it short?"]
    assert found.rubrics[0].metadata["conversation_history"] == MESSAGES


def test_penalties_are_refused() -> None:
    rubric = Rubric(criteria=(Criterion(id="c1", text="t", polarity=Polarity.PENALTY),))
    with pytest.raises(FormatError, match="no penalties"):
        dump_rubrics(rubric, "advancedif", lossy=True)


def test_other_records_with_such_a_column_are_not_taken_for_it() -> None:
    item = {"title": "t", "description": "d", "weight": 1}
    assert detect({"rubric": [item], "prompt_metadata": '{"rubrics": "[]"}'}) == "rar"
    assert detect({"prompt_metadata": {"rubrics": 3}}) == "advancedif"
    with pytest.raises(FormatError, match="no known rubric format"):
        detect({"prompt_metadata": {"source": "x"}})


def history(value: object) -> dict[str, object]:
    return ROW | {"conversation_history": value}


@pytest.mark.parametrize(
    ("record", "field", "words"),
    [
        (row('{"rubrics": "["}'), "prompt_metadata.rubrics", "no JSON that can be read"),
        (row('{"rubrics": '), "prompt_metadata", "no JSON that can be read"),
        (row("plain words"), "prompt_metadata", "no JSON that can be read"),
        (row("[]"), "prompt_metadata", "expected an object"),
        (row(5), "prompt_metadata", "expected an object"),
        (row("{}"), "prompt_metadata.rubrics", "missing"),
        (row({"rubrics": "{}"}), "prompt_metadata.rubrics", "expected a list of questions"),
        (row({"rubrics": None}), "prompt_metadata.rubrics", "expected a list of questions"),
        (row({"rubrics": "[]"}), "prompt_metadata.rubrics", "at least one"),
        (row({"rubrics": '["a", 3]'}), "prompt_metadata.rubrics[1]", "expected text, got int"),
        (row({"rubrics": ["a", True]}), "prompt_metadata.rubrics[1]", "expected text, got bool"),
        (row({"rubrics": ["a", " "]}), "prompt_metadata.rubrics[1]", "blank"),
        (row({"rubrics": '["a", "\\ud800"]'}), "prompt_metadata.rubrics[1]", "surrogate"),
        (row('{"rubrics": "[]", "rubrics": "[]"}'), "prompt_metadata.rubrics", "occurs twice"),
        (row('{"rubrics": ["a"], "x": {"y": NaN}}'), "prompt_metadata.x.y", "NaN"),
        (history("[]"), "conversation_history", "list of messages"),
        (history("Hi."), "conversation_history", "no JSON that can be read"),
        (history('["Hi."]'), "conversation_history[0]", "expected a message"),
        (history('[{"role": "user"}]'), "conversation_history[0].content", "missing"),
        (history([{"role": 1, "content": "c"}]), "conversation_history[0].role", "expected text, got int"),
        (ROW | {"advancedif:order": 1}, "advancedif:order", "reserved"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, record: dict[str, object], field: str, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.field, caught.value.line) == (field, 2)
    assert words in str(caught.value)


def test_a_missing_layer_is_named() -> None:
    with pytest.raises(FormatError, match="missing") as caught:
        parse_rubric({"conversation_history": "[]"}, format="advancedif")
    assert caught.value.field == "prompt_metadata"


@st.composite
def layered(draw: st.DrawFn, value: object) -> object:
    """The value itself, or JSON text of it, spaced and escaped in some way."""
    if draw(st.booleans()):
        return value
    return json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    inner = draw(layered(draw(st.lists(words, min_size=1, max_size=4))))
    outer: dict[str, object] = draw(extra) | {"rubrics": inner}
    record = draw(extra) | {"prompt_metadata": draw(layered(outer)), "benchmark_name": draw(texts)}
    if draw(st.booleans()):
        message = st.fixed_dictionaries({"role": texts, "content": texts}, optional={"x": texts})
        record["conversation_history"] = draw(layered(draw(st.lists(message, min_size=1, max_size=2))))
    return {name: record[name] for name in draw(st.permutations(list(record)))}


@relaxed
@given(rows())
def test_made_rows_return(record: dict[str, object]) -> None:
    record_returns(record, "advancedif")


@relaxed
@given(rubrics())
def test_made_rubrics_return(rubric: Rubric) -> None:
    rubric_returns(rubric, "advancedif")


@relaxed
@given(changes(ROW))
def test_no_change_to_a_record_breaks_the_reader(value: object) -> None:
    survives(value, "advancedif")
