"""RubricHub: rows as its data set and its pipeline have them; texts of our own.

Fields as teqkilla/RubricHub writes them (data_synthesis_final at d21dc07 and 40dfd1f) and code that reads
sojuL/RubricHub_v1 (EnvCommons/RubricHub at 00f711f).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rubrics import extra, record_returns, relaxed, rubric_returns, rubrics, texts, words

from rubricate.data.io import Row
from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Polarity, Rubric, VerifierSpec
from rubricate.rubrics.formats import (
    Note,
    convert,
    detect,
    dump_rubrics,
    load_rubrics,
    parse_rubric,
    rubric_from_row,
    save_rubrics,
)

LLM: dict[str, object] = {"function": "", "parameters": {"count": None}, "verifier": "llm"}
RULE: dict[str, object] = LLM | {
    "function": "ParagraphChecker",
    "parameters": {"count": 2.0, "word": None},
    "verifier": "rule",
}
ITEMS: list[object] = [
    {"criterion": "Asks since when it hurts.", "points": 8, "tags": LLM},
    {"criterion": "paragraphs:two", "points": 10.0, "tags": RULE},
    {"criterion": "Recommends opioids.", "points": -5, "tags": LLM},
]
PROMPT: list[object] = [{"role": "user", "content": "My back hurts."}]
MODEL: dict[str, object] = {"ground_truth": "", "rubrics": ITEMS, "style": "rubric"}
ROW: dict[str, object] = {
    "prompt": PROMPT,
    "data_source": "Medical",
    "ability": "Medical",
    "reward_model": MODEL,
    "extra_info": {"prompt": PROMPT, "reward_model": MODEL},
    "Rubrics": ITEMS,
}
PLAIN: list[object] = [{"criterion": "Names a cause.", "points": 7}, {"criterion": "Is short.", "points": 0}]
STEP: list[object] = [
    {"title": "Names Cause", "description": "Names a cause.", "weight": 7},
    {"title": "Names Cause", "description": "Names a second cause.", "weight": 3},
]
STEPS: dict[str, object] = {
    "question": "Why?",
    "id": "",
    "__source_index__": 0,
    "reference": "Because.",
    "rubrics_a": STEP,
    "merged_rubrics": STEP,
    "augmented_rubrics": [{"title": "Depth", "description": "Says how much each adds.", "weight": 9}],
}
FINE_TUNING: dict[str, object] = {
    "source": "s",
    "query": "Why?",
    "answer": "Because.",
    "sample_id": "7",
    "rubrics": ITEMS,
    "rubric_score": 0.5,
    "rubric_judge_details": [{"score": 1}],
}
NO_STEP: list[object] = []

RECORDS: list[dict[str, object]] = [
    ROW,
    {"prompt": PROMPT, "reward_model": MODEL, "Rubrics": ITEMS},
    {"prompt": PROMPT, "Rubrics": PLAIN, "id": "r1"},
    {"prompt": PROMPT, "Rubrics": None, "reward_model": {"rubrics": PLAIN}},
    {"reward_model": {"style": "rubric", "rubrics": PLAIN, "ground_truth": "42"}, "prompt": PROMPT, "id": 3},
    {"Rubrics": PLAIN, "reward_model": {"rubrics": [{"criterion": "unused", "points": 1}]}},
    {"Rubrics": PLAIN, "reward_model": {"style": "rule", "ground_truth": "42"}},
    {
        "Rubrics": [
            {"points": 1, "criterion": "c", "tags": ["axis:a"]},
            {"criterion": "d", "points": 2, "tags": None},
        ]
    },
    FINE_TUNING,
    STEPS,
    STEPS | {"augmented_rubrics": NO_STEP},
    {"question": "Why?", "augmented_rubrics": STEP, "x": 1},
]


@pytest.mark.parametrize("record", RECORDS)
def test_every_layout_is_detected_and_written_back(record: dict[str, object]) -> None:
    rubric = record_returns(record, "rubrichub")
    (written,) = dump_rubrics(rubric, "rubrichub")
    assert json.dumps(written) == json.dumps(record)
    assert parse_rubric(written) == rubric


def test_a_row_of_the_data() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(ROW, notes=notes)
    assert rubric.ids == ("c1", "c2", "c3")
    assert [(c.weight, c.polarity.value) for c in rubric.criteria] == [
        (8.0, "reward"),
        (10.0, "reward"),
        (5.0, "penalty"),
    ]
    assert rubric["c2"].verifier == VerifierSpec(name="ParagraphChecker", args={"count": 2.0})
    assert rubric["c1"].verifier is None
    assert rubric.metadata["ability"] == "Medical"
    assert [(note.kind, note.field) for note in notes] == [("layout", "Rubrics")]
    assert "ParagraphChecker" in notes[0].message


def test_a_change_reaches_every_copy_of_the_list() -> None:
    rubric = parse_rubric(ROW)
    kept = rubric.model_copy(update={"criteria": rubric.criteria[:1]})
    (record,) = dump_rubrics(kept, "rubrichub")
    model = {"ground_truth": "", "rubrics": ITEMS[:1], "style": "rubric"}
    assert record["Rubrics"] == ITEMS[:1]
    assert record["reward_model"] == model
    assert record["extra_info"] == {"prompt": PROMPT, "reward_model": model}


def test_a_copy_that_differs_is_noted_and_kept() -> None:
    notes: list[Note] = []
    other = {"rubrics": PLAIN}
    rubric = parse_rubric({"Rubrics": PLAIN[:1], "reward_model": other}, notes=notes)
    assert len(rubric) == 1
    assert [(note.kind, note.field) for note in notes] == [("layout", "reward_model.rubrics")]
    assert dump_rubrics(rubric, "rubrichub")[0]["reward_model"] == other


def test_a_verifier_that_changes_is_written() -> None:
    rubric = parse_rubric(ROW)
    judge, code, _ = rubric.criteria
    changed = [
        judge.model_copy(update={"verifier": VerifierSpec(name="has", args={"word": "x"})}),
        code.model_copy(update={"verifier": None}),
    ]
    (record,) = dump_rubrics(rubric.model_copy(update={"criteria": tuple(changed)}), "rubrichub")
    again = parse_rubric(record)
    assert [c.verifier for c in again.criteria] == [changed[0].verifier, None]


def test_the_pipeline_s_steps_are_one_rubric() -> None:
    rubric = parse_rubric(STEPS)
    assert rubric.ids == ("names-cause", "names-cause-2", "depth")
    assert [c.weight for c in rubric.criteria] == [7.0, 3.0, 9.0]
    assert rubric.metadata["rubrics_a"] == STEP


def test_named_it_reads_what_looks_like_other_formats() -> None:
    export: dict[str, object] = {"question": "Why?", "id": "1", "rubrics": PLAIN}
    assert detect(export) == detect(PLAIN) == "healthbench"
    rubric = parse_rubric(export, format="rubrichub")
    assert dump_rubrics(rubric, "rubrichub") == [export]
    assert detect(STEP) == "rar"
    assert parse_rubric(STEP, format="rubrichub").ids == ("names-cause", "names-cause-2")
    assert dump_rubrics(parse_rubric(PLAIN, format="rubrichub"), "rubrichub") == [{"rubrics": PLAIN}]
    assert detect(ITEMS) == "rubrichub"


def test_a_row_with_a_response_brings_its_rubric() -> None:
    rubric = rubric_from_row(Row("f", 1, FINE_TUNING))
    assert rubric is not None
    assert len(rubric) == 3


def test_rubrics_from_elsewhere(tmp_path: Path) -> None:
    source, target = tmp_path / "rar.jsonl", tmp_path / "rows.jsonl"
    item = {"title": "Dose", "description": "Names the dose.", "weight": 3}
    source.write_text(json.dumps({"question": "How much?", "rubric": [item]}) + "\n")
    convert(source, target, to_format="rubrichub")
    entries = [{"title": "Dose", "criterion": "Names the dose.", "points": 3}]
    assert json.loads(target.read_text()) == {
        "prompt": [{"role": "user", "content": "How much?"}],
        "reward_model": {"ground_truth": "", "rubrics": entries, "style": "rubric"},
        "Rubrics": entries,
    }


def test_yaml_has_no_references(tmp_path: Path) -> None:
    path = tmp_path / "rows.yaml"
    rubric = parse_rubric(json.loads(json.dumps(ROW)))
    save_rubrics(rubric, path, "rubrichub")
    assert "&id" not in path.read_text()
    assert load_rubrics(path).rubrics == (rubric,)


def test_parquet_and_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    save_rubrics([parse_rubric(ROW), parse_rubric(ROW)], path, "rubrichub")
    found = load_rubrics(path)
    assert found.format == "rubrichub"
    assert [r.fingerprint for r in found.rubrics] == [parse_rubric(ROW).fingerprint] * 2


def test_losses() -> None:
    both = Criterion(id="a", text="A.", tags=("x",), verifier=VerifierSpec(name="v"))
    with pytest.raises(FormatError, match=r"tags beside a verifier \(a\)"):
        dump_rubrics(Rubric(criteria=(both,)), "rubrichub")
    null = Criterion(id="a", text="A.", verifier=VerifierSpec(name="v", args={"n": None}))
    with pytest.raises(FormatError, match=r"arguments of verifiers that are null \(a\)"):
        dump_rubrics(Rubric(criteria=(null,)), "rubrichub")
    taken = Criterion(id="a", text="A.", metadata={"points": 3})
    with pytest.raises(FormatError, match=r"name of a field \(a\)"):
        dump_rubrics(Rubric(criteria=(taken,)), "rubrichub")
    with pytest.raises(FormatError, match=r"metadata\.Rubrics of the rubric"):
        dump_rubrics(Rubric(criteria=(Criterion(id="a", text="A."),), metadata={"Rubrics": 1}), "rubrichub")


def row(*entries: Mapping[str, object]) -> dict[str, object]:
    items: list[object] = [{"criterion": "c", "points": 1} | dict(entry) for entry in entries]
    return {"prompt": PROMPT, "Rubrics": items}


def rule(**fields: object) -> dict[str, object]:
    return row({"tags": RULE | fields})


def step(**fields: object) -> dict[str, object]:
    item: dict[str, object] = {"title": "t", "description": "d", "weight": 1} | fields
    return {"merged_rubrics": [item], "augmented_rubrics": NO_STEP}


MISTAKES: list[tuple[dict[str, object], str, str]] = [
    (row({}, {"points": True}), "Rubrics[1].points", "'c2' has true"),
    (row({"points": "5"}), "Rubrics[0].points", "the text '5'"),
    (row({"points": None}), "Rubrics[0].points", "null"),
    (row({"points": float("nan")}), "Rubrics[0].points", "NaN"),
    (row({"criterion": " "}), "Rubrics[0].criterion", "blank"),
    (row({"criterion": 5}), "Rubrics[0].criterion", "int"),
    (row({"id": "a"}, {"id": "a"}), "Rubrics.criteria", "more than once: a"),
    (row({"title": 1}), "Rubrics[0].title", "int"),
    (row({"tags": "x"}), "Rubrics[0].tags", "list of tags or an object"),
    (row({"tags": ["a", 1]}), "Rubrics[0].tags[1]", "int"),
    (rule(function=" "), "Rubrics[0].tags.function", "blank"),
    (rule(function=None), "Rubrics[0].tags.function", "NoneType"),
    (rule(parameters=[1]), "Rubrics[0].tags.parameters", "list"),
    (row({"rubrichub:text": 1}), "Rubrics[0].rubrichub:text", "reserved"),
    (row() | {"rubrichub:lists": 1}, "rubrichub:lists", "reserved"),
    (row(), "Rubrics", "at least one"),
    ({"Rubrics": "x"}, "Rubrics", "expected a list"),
    ({"Rubrics": ["x"]}, "Rubrics[0]", "str"),
    ({"Rubrics": [{"points": 1}]}, "Rubrics[0].criterion", "missing"),
    ({"Rubrics": [{"criterion": "c"}]}, "Rubrics[0].points", "none"),
    ({"reward_model": {"rubrics": [{"criterion": "c"}]}}, "reward_model.rubrics[0].points", "none"),
    ({"reward_model": {"rubrics": {}}}, "reward_model.rubrics", "expected a list"),
    (step(weight=True), "merged_rubrics[0].weight", "'t' has true"),
    (step(description=""), "merged_rubrics[0].description", "blank"),
    ({"merged_rubrics": NO_STEP, "augmented_rubrics": NO_STEP}, "merged_rubrics", "at least one"),
    ({"merged_rubrics": STEP, "augmented_rubrics": 3}, "augmented_rubrics", "expected a list"),
]


@pytest.mark.parametrize(("value", "field", "words_"), MISTAKES)
def test_mistakes_are_named(value: dict[str, object], field: str, words_: str) -> None:
    assert detect(value) == "rubrichub"
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words_ in str(caught.value)


def test_mistakes_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps(row({}, {'points': 'x'}))}\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.line, caught.value.field) == (2, "Rubrics[1].points")


def test_a_record_without_a_list_is_named() -> None:
    with pytest.raises(FormatError, match="Rubrics"):
        parse_rubric({"prompt": PROMPT}, format="rubrichub")


POINTS = st.integers(-10, 10) | st.floats(-10, 10).map(lambda value: value + 0.0)
TAGS: list[object] = [LLM, RULE, {"axis": "accuracy"}, ["a"], [], None]


@st.composite
def entries(draw: st.DrawFn, text: str = "criterion", weight: str = "points") -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for _ in range(draw(st.integers(1, 3))):
        item: dict[str, object] = {text: draw(words), weight: draw(POINTS)} | draw(extra)
        item |= draw(
            st.fixed_dictionaries({}, optional={"title": texts, "tags": st.sampled_from(TAGS), "id": words})
        )
        made.append({key: item[key] for key in draw(st.permutations(sorted(item)))})
    ids = [item["id"] for item in made if "id" in item]
    return made if len(set(map(str, ids))) == len(ids) else made[:1]


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    items: object = draw(entries())
    model: dict[str, object] = {
        "ground_truth": draw(st.sampled_from(["", "42"])),
        "rubrics": items,
        "style": "rubric",
    }
    layouts: list[dict[str, object]] = [
        {"Rubrics": items},
        {"reward_model": model},
        {"Rubrics": items, "reward_model": model},
        {"Rubrics": items, "reward_model": model, "extra_info": {"reward_model": model}},
        {"merged_rubrics": draw(entries("description", "weight")), "augmented_rubrics": NO_STEP},
        {"augmented_rubrics": draw(entries("description", "weight"))},
    ]
    record = draw(st.sampled_from(layouts)) | {"prompt": PROMPT} | draw(extra)
    return {key: record[key] for key in draw(st.permutations(sorted(record)))}


@relaxed
@given(records())
def test_records_return(record: dict[str, object]) -> None:
    rubric = record_returns(record, "rubrichub")
    (written,) = dump_rubrics(rubric, "rubrichub")
    assert json.dumps(written) == json.dumps(record)
    assert parse_rubric(written) == rubric


@relaxed
@given(rubrics(), st.sampled_from([(), ("a",), ("axis:a", "")]), st.none() | words)
def test_rubrics_return(rubric: Rubric, tags: tuple[str, ...], verifier: str | None) -> None:
    spec = None if verifier is None else VerifierSpec(name=verifier, args={"count": 2})
    changes = {"tags": tags, "verifier": spec}
    criteria = tuple(criterion.model_copy(update=changes) for criterion in rubric.criteria)
    held = rubric_returns(rubric.model_copy(update={"criteria": criteria}), "rubrichub")
    plain = all(
        not c.veto
        and c.channel is None
        and c.scale.type == "binary"
        and (c.polarity is Polarity.REWARD or c.weight)
        for c in criteria
    )
    assert held == (plain and not (tags and spec))
