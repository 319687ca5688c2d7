"""open-instruct's rows for its rubric verifier.

Fields as RubricVerifier in allenai/open-instruct reads them (open_instruct/ground_truth_utils.py; rubrics/ at
06b596f and 9bf051e).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rubrics import extra, record_returns, relaxed, rubric_returns, rubrics, texts, words

from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import convert, detect, dump_rubrics, load_rubrics, parse_rubric
from rubricate.rubrics.formats.tulu import TERNARY

ITEMS: list[object] = [
    {"description": "Names the leaf's pigment.", "weight": 1.0, "title": "Pigment"},
    {"description": "Says where the oxygen goes.", "weight": 0.5},
    {"description": "Confuses it with breathing.", "weight": -1.0, "title": "Confusion"},
]
PAYLOAD: dict[str, object] = {"query": "How do leaves feed?", "rubrics": ITEMS}
ROW: dict[str, object] = {
    "messages": [{"role": "user", "content": "How do leaves feed?"}],
    "ground_truth": json.dumps(PAYLOAD),
    "dataset": "rubric",
}
WHOLE = json.dumps(PAYLOAD).replace("1.0", "1")
"""As written by a format that does not know that a number had a decimal point."""

MIXED: list[object] = [
    {"rubric_item": "Names the leaf's pigment.", "type": "Pigment"},
    {"Ingredient": "Say where the oxygen goes.", "Handle": "Oxygen", "Specifics": []},
    {"description": "Is short.", "title": "Length"},
]

ROWS: list[dict[str, object]] = [
    ROW,
    {"id": "r1"} | ROW | {"ground_truth": json.dumps(PAYLOAD | {"rubrics_types": ["persistent"] * 3})},
    {"dataset": "Rubric", "ground_truth": json.dumps(PAYLOAD, separators=(",", ":")), "source": "made up"},
    ROW | {"ground_truth": PAYLOAD},
    ROW | {"ground_truth": ["42", json.dumps(PAYLOAD)], "dataset": ["math", "rubric"]},
    ROW | {"ground_truth": json.dumps({"Question": "q", "rubrics": MIXED, "note": 1})},
    ROW | {"ground_truth": json.dumps(PAYLOAD, indent=2), "id": 5},
]


@pytest.mark.parametrize("record", ROWS)
def test_rows_are_detected_and_written_back(record: dict[str, object]) -> None:
    rubric = record_returns(record, "openinstruct")
    (written,) = dump_rubrics(rubric, "openinstruct")
    assert written == record
    assert parse_rubric(written) == rubric


def test_a_plain_row_needs_no_marks() -> None:
    rubric = parse_rubric(ROW)
    assert rubric.metadata == {"messages": ROW["messages"]}
    assert rubric.ids == ("pigment", "c2", "confusion")
    assert [(c.weight, c.polarity.value) for c in rubric.criteria] == [
        (1.0, "reward"),
        (0.5, "reward"),
        (1.0, "penalty"),
    ]
    assert [rubric.criteria[0].normalise(score) for score in (0, 1, 2)] == [0.0, 0.5, 1.0]


def test_the_query_is_the_last_thing_the_user_said() -> None:
    turns = [("system", "Be brief."), ("user", "Hi."), ("assistant", "Hi."), ("user", "How do leaves feed?")]
    messages: list[object] = [{"role": role, "content": content} for role, content in turns]
    rubric = parse_rubric(ROW | {"messages": messages})
    assert rubric.metadata == {"messages": messages}
    assert dump_rubrics(rubric, "openinstruct") == [ROW | {"messages": messages}]


def test_a_missing_weight_is_1_and_the_text_has_three_names() -> None:
    rubric = parse_rubric(ROW | {"ground_truth": {"query": "q", "rubrics": MIXED}})
    assert rubric.ids == ("pigment", "oxygen", "length")
    assert [c.weight for c in rubric.criteria] == [1.0, 1.0, 1.0]
    assert [c.text for c in rubric.criteria][1] == "Say where the oxygen goes."
    heavier = [c.model_copy(update={"weight": 2.0}) for c in rubric.criteria]
    (record,) = dump_rubrics(rubric.model_copy(update={"criteria": tuple(heavier)}), "openinstruct")
    assert [c.weight for c in parse_rubric(record).criteria] == [2.0, 2.0, 2.0]


def test_types_are_tags() -> None:
    types = ["persistent", "persistent", "evolving"]
    rubric = parse_rubric(ROW | {"ground_truth": json.dumps(PAYLOAD | {"rubrics_types": types})})
    assert [c.tags for c in rubric.criteria] == [("persistent",), ("persistent",), ("evolving",)]


def test_a_rubric_from_elsewhere_becomes_a_row_to_train_on(tmp_path: Path) -> None:
    source, target = tmp_path / "rar.jsonl", tmp_path / "rows.jsonl"
    item = {"title": "Dose", "description": "Names the dose.", "weight": 3}
    source.write_text(json.dumps({"question": "How much?", "rubric": [item]}) + "\n")
    with pytest.raises(FormatError, match=r"scale, which is 0, 1, 2 here \(dose\)"):
        convert(source, target, to_format="openinstruct")
    convert(source, target, to_format="openinstruct", lossy=True)
    assert json.loads(target.read_text()) == {
        "messages": [{"role": "user", "content": "How much?"}],
        "ground_truth": '{"query": "How much?", "rubrics": [{"description": "Names the dose.", "weight": 3, '
        '"title": "Dose"}]}',
        "dataset": "rubric",
    }


def test_metadata_that_would_be_overwritten_is_said_to_be_lost() -> None:
    criterion = Criterion(id="a", text="A.", scale=TERNARY)
    with pytest.raises(FormatError, match=r"metadata\.ground_truth of the rubric"):
        dump_rubrics(Rubric(criteria=(criterion,), metadata={"ground_truth": "42"}), "openinstruct")


def row(*entries: Mapping[str, object], **fields: object) -> dict[str, object]:
    """A row whose text has entries that are right but for these."""
    items = [{"description": "d", "weight": 1} | dict(entry) for entry in entries]
    return ROW | {"ground_truth": json.dumps({"query": "q", "rubrics": items} | fields)}


INSIDE = "ground_truth.rubrics"
MISTAKES: list[tuple[dict[str, object], str, str]] = [
    (row({}, {"weight": True}), f"{INSIDE}[1].weight", "'c2' has true"),
    (row({"title": "T", "weight": "5"}), f"{INSIDE}[0].weight", "'T' has the text '5'"),
    (row({"weight": None}), f"{INSIDE}[0].weight", "null"),
    (row({"weight": float("nan")}), f"{INSIDE}[0].weight", "NaN"),
    (row({"x": float("nan")}), f"{INSIDE}[0].x", "NaN"),
    (row({"description": ""}), f"{INSIDE}[0].description", "blank"),
    (row({}, rubrics=[{"weight": 1}]), f"{INSIDE}[0].description", "missing"),
    (row({}, rubrics=[{"rubric_item": None}]), f"{INSIDE}[0].rubric_item", "NoneType"),
    (row({}, rubrics=[{"rubric_item": "r", "type": 1}]), f"{INSIDE}[0].type", "int"),
    (row({"openinstruct:text": 1}), f"{INSIDE}[0].openinstruct:text", "reserved"),
    (row(), INSIDE, "at least one"),
    (row({}, rubrics={}), INSIDE, "expected a list"),
    (row({}, {}, rubrics_types=["persistent"]), "ground_truth.rubrics_types", "2 types"),
    (row({}, rubrics_types=[" "]), "ground_truth.rubrics_types[0]", "a type is a text"),
    (ROW | {"ground_truth": "42"}, "ground_truth", "expected an object"),
    (ROW | {"ground_truth": "forty-two"}, "ground_truth", "no JSON"),
    (ROW | {"ground_truth": '{"rubrics": [1,]}'}, "ground_truth", "not valid JSON"),
    (ROW | {"ground_truth": None}, "ground_truth", "expected an object"),
    (ROW | {"ground_truth": '{"query": "q"}'}, INSIDE, "missing"),
    (ROW | {"ground_truth": ["4", "{}"], "dataset": ["math", "rubric"]}, "ground_truth[1].rubrics", "missing"),
    (ROW | {"openinstruct:order": 1}, "openinstruct:order", "reserved"),
]


@pytest.mark.parametrize(("value", "field", "words_"), MISTAKES)
def test_mistakes_are_named(value: dict[str, object], field: str, words_: str) -> None:
    assert detect(value) == "openinstruct"
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words_ in str(caught.value)


def test_mistakes_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps(row({'weight': 'x'}))}\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.line, caught.value.field) == (2, "ground_truth.rubrics[0].weight")


def test_named_it_reads_a_row_of_another_verifier_and_keeps_its_name() -> None:
    record = ROW | {"dataset": "general_rubric"}
    assert detect(record) == "drtulu"
    rubric = parse_rubric(record, format="openinstruct")
    assert dump_rubrics(rubric, "openinstruct") == [record]
    bare = {key: part for key, part in ROW.items() if key != "dataset"}
    assert dump_rubrics(parse_rubric(bare, format="openinstruct"), "openinstruct") == [bare]
    with pytest.raises(FormatError, match="ground_truth"):
        parse_rubric({"messages": []}, format="openinstruct")


def test_rows_of_dr_tulu_become_rows_of_this_verifier(tmp_path: Path) -> None:
    source, target, back = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    source.write_text(json.dumps(ROW | {"dataset": "general_rubric", "source": "s"}) + "\n")
    with pytest.raises(FormatError, match=r"metadata\.dataset of the rubric"):
        convert(source, target, to_format="openinstruct")
    convert(source, target, to_format="openinstruct", lossy=True)
    assert json.loads(target.read_text()) == ROW | {"ground_truth": WHOLE, "source": "s"}
    found = convert(target, back, to_format="drtulu")
    assert found.read_as == "openinstruct"
    assert load_rubrics(back).rubrics[0].fingerprint == load_rubrics(source).rubrics[0].fingerprint


def test_a_bare_list_can_be_named() -> None:
    rubric = parse_rubric(MIXED, format="openinstruct")
    assert rubric.ids == ("pigment", "oxygen", "length")
    with pytest.raises(FormatError, match="at least one"):
        parse_rubric([], format="openinstruct")


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    items: list[dict[str, object]] = []
    for _ in range(draw(st.integers(1, 3))):
        text, title = draw(
            st.sampled_from([("description", "title"), ("rubric_item", "type"), ("Ingredient", "Handle")])
        )
        item: dict[str, object] = {text: draw(words)} | draw(extra)
        item |= draw(
            st.fixed_dictionaries({}, optional={title: texts, "weight": st.integers(-3, 3) | st.floats(1, 3)})
        )
        items.append({key: item[key] for key in draw(st.permutations(sorted(item)))})
    payload: dict[str, object] = {"query": draw(texts), "rubrics": items} | draw(extra)
    payload |= draw(st.sampled_from([{}, {"rubrics_types": ["evolving"] * len(items)}]))
    style = draw(st.sampled_from(["text", "utf8", "object", "list"]))
    text = json.dumps(payload, ensure_ascii=style != "utf8")
    cell: object = {"object": payload, "list": [text]}.get(style, text)
    names: object = draw(st.sampled_from(["rubric", "RUBRIC"]))
    record: dict[str, object] = {"ground_truth": cell, "dataset": [names] if style == "list" else names}
    content: object = draw(texts)
    record |= draw(st.sampled_from([{}, {"messages": [{"role": "user", "content": content}]}])) | draw(extra)
    return {key: record[key] for key in draw(st.permutations(sorted(record)))}


@relaxed
@given(rows())
def test_records_return(record: dict[str, object]) -> None:
    rubric = record_returns(record, "openinstruct")
    (written,) = dump_rubrics(rubric, "openinstruct")
    assert written["ground_truth"] == record["ground_truth"]
    assert parse_rubric(written) == rubric


@relaxed
@given(rubrics(), st.booleans(), st.sampled_from([(), ("persistent",)]))
def test_rubrics_return(rubric: Rubric, three: bool, tags: tuple[str, ...]) -> None:
    changes = {"scale": TERNARY, "tags": tags} if three else {"tags": tags}
    criteria = tuple(criterion.model_copy(update=changes) for criterion in rubric.criteria)
    held = rubric_returns(rubric.model_copy(update={"criteria": criteria}), "openinstruct")
    plain = all(not c.veto and c.channel is None and (c.polarity is Polarity.REWARD or c.weight) for c in criteria)
    assert held == (three and plain)
