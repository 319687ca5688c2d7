"""DR Tulu: data rows, the two generators' outputs, the buffer.

Fields as rlresearch/dr-tulu has them (convert_rar_data.py at 208887e, longform_rubric_rewards.py and
rubric_utils.py under open_instruct/search_rewards), and code that reads rl-research/dr-tulu-rl-data.
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
from rubricate.rubrics import Criterion, Importance, Polarity, Rubric
from rubricate.rubrics.formats import Note, convert, detect, dump_rubrics, load_rubrics, parse_rubric
from rubricate.rubrics.formats.tulu import TERNARY

ITEMS: list[object] = [
    {"description": "Names two causes of the decline.", "title": "Causes", "weight": 2},
    {"description": "Cites a survey for each cause.", "title": "Surveys", "weight": 1.0},
    {"description": "Invents a citation.", "title": "Invented", "weight": -1.0},
]
PAYLOAD: dict[str, object] = {
    "query": "Why do bees decline?",
    "rubrics": ITEMS,
    "rubrics_types": ["persistent", "persistent", "evolving"],
}
ROW: dict[str, object] = {
    "source": "made up",
    "question_type": "long_form",
    "messages": [{"content": "Why do bees decline?", "role": "user"}],
    "ground_truth": json.dumps(PAYLOAD),
    "dataset": "general_rubric",
}
EVOLVING: dict[str, object] = {
    "question": "Why do bees decline?",
    "positive_rubrics": [{"description": "Weighs the causes.", "title": "Weighing"}],
    "negative_rubrics": [{"description": "Repeats the question.", "title": "Padding"}],
}
PERSISTENT: dict[str, object] = {
    "Question": "Why do bees decline?",
    "Answer Critical": [
        {"Ingredient": "Name pesticides.", "Handle": "Pesticides", "Specifics": [{"Text": "t", "Citation": "1"}]}
    ],
    "Valuable": [{"Ingredient": "Give figures.", "Handle": "Figures", "Specifics": []}],
    "Context": [{"Ingredient": "Say when it began.", "Handle": "History", "Specifics": []}],
}
BUFFER: dict[str, object] = {
    "active_rubrics": [ITEMS[2]],
    "inactive_rubrics": [{"description": "Is long.", "weight": 1.0, "title": "Length"}],
    "persistent_rubrics": ITEMS[:2],
    "static_rubrics": ITEMS[:2],
}


LAYOUTS: list[dict[str, object]] = [
    PAYLOAD,
    ROW,
    ROW | {"ground_truth": PAYLOAD},
    ROW | {"ground_truth": [json.dumps(PAYLOAD)], "dataset": ["general_rubric"], "id": "r1"},
    ROW | {"ground_truth": ["42", json.dumps(PAYLOAD)]},
    {"ground_truth": json.dumps(PAYLOAD, indent=2), "id": 7},
    {"ground_truth": json.dumps(PERSISTENT, separators=(",", ":"))},
    {"ground_truth": json.dumps(PAYLOAD | {"query": "é"}, ensure_ascii=False)},
    {"rubrics": ITEMS, "query": "", "rubrics_types": None},
    {"rubrics": ITEMS, "rubrics_types": ["evolving"] * 3},
    {"Question": "", "rubrics": ITEMS},
    EVOLVING,
    EVOLVING | {"positive_rubrics": []},
    {"negative_rubrics": EVOLVING["negative_rubrics"]},
    PERSISTENT,
    BUFFER,
    {"id": "Why?"} | BUFFER,
]


@pytest.mark.parametrize("record", LAYOUTS)
def test_every_layout_is_detected_and_written_back(record: dict[str, object]) -> None:
    rubric = record_returns(record, "drtulu")
    assert {criterion.scale.type for criterion in rubric.criteria} == {"ordinal"}
    assert parse_rubric(dump_rubrics(rubric, "drtulu")[0]) == rubric


def test_numbers_keep_their_kind_inside_the_text() -> None:
    (record,) = dump_rubrics(parse_rubric(ROW), "drtulu")
    assert record["ground_truth"] == ROW["ground_truth"]


def test_a_row_of_the_data() -> None:
    rubric = parse_rubric(ROW)
    assert rubric.ids == ("causes", "surveys", "invented")
    assert [c.weight for c in rubric.criteria] == [2.0, 1.0, 1.0]
    assert [c.polarity.value for c in rubric.criteria] == ["reward", "reward", "penalty"]
    assert [c.tags for c in rubric.criteria] == [("persistent",), ("persistent",), ("evolving",)]
    assert [rubric.criteria[0].normalise(score) for score in (0, 1, 2)] == [0.0, 0.5, 1.0]
    assert rubric.metadata["messages"] == ROW["messages"]


def test_the_evolving_generator_gives_rewards_and_penalties_of_weight_1() -> None:
    rubric = parse_rubric(EVOLVING)
    assert [(c.id, c.weight, c.polarity) for c in rubric.criteria] == [
        ("weighing", 1.0, Polarity.REWARD),
        ("padding", 1.0, Polarity.PENALTY),
    ]
    assert {c.tags for c in rubric.criteria} == {("evolving",)}


def test_of_the_persistent_generator_only_what_is_answer_critical_counts() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(PERSISTENT, notes=notes)
    assert [(c.id, c.weight, c.importance) for c in rubric.criteria] == [
        ("pesticides", 1.0, Importance.ESSENTIAL),
        ("figures", 0.0, Importance.IMPORTANT),
        ("history", 0.0, Importance.OPTIONAL),
    ]
    assert rubric["pesticides"].metadata["Specifics"] == [{"Text": "t", "Citation": "1"}]
    assert [note.kind for note in notes] == ["weights"]
    notes.clear()
    empty: list[object] = []
    parse_rubric(PERSISTENT | {"Valuable": empty, "Context": empty}, notes=notes)
    assert notes == []


def test_the_buffer_holds_what_is_in_force() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(BUFFER, notes=notes)
    assert [(c.id, c.tags) for c in rubric.criteria] == [
        ("causes", ("persistent",)),
        ("surveys", ("persistent",)),
        ("invented", ("evolving",)),
    ]
    assert [(note.kind, note.field) for note in notes] == [("layout", "inactive_rubrics")]


def test_a_file_of_the_buffer_is_read_by_query(tmp_path: Path) -> None:
    path = tmp_path / "buffer.json"
    path.write_text(json.dumps({"Why?": BUFFER, "How?": BUFFER}))
    found = load_rubrics(path)
    assert found.format == "drtulu"
    assert [rubric.id for rubric in found.rubrics] == ["Why?", "How?"]


@pytest.mark.parametrize("record", [EVOLVING, PERSISTENT, BUFFER, {"ground_truth": json.dumps(PERSISTENT)}])
def test_a_rubric_that_outgrows_its_layout_becomes_a_list(record: dict[str, object]) -> None:
    rubric = parse_rubric(record)
    changed = [c.model_copy(update={"weight": 3.5, "importance": None, "tags": ("mine",)}) for c in rubric.criteria]
    grown = rubric.model_copy(update={"criteria": tuple(changed)})
    (written,) = dump_rubrics(grown, "drtulu")
    again = parse_rubric(written)
    assert again.fingerprint == grown.fingerprint
    assert again.ids == rubric.ids
    text = json.dumps(written)
    assert "Why do bees decline?" in text or record is BUFFER
    assert not any(name in text for name in ("positive_rubrics", "Answer Critical", '"active_rubrics"'))


def test_other_rubrics_need_the_three_levels() -> None:
    binary = Rubric(criteria=(Criterion(id="a", text="A."),))
    with pytest.raises(FormatError, match=r"scale, which is 0, 1, 2 here \(a\)"):
        dump_rubrics(binary, "drtulu")
    notes: list[Note] = []
    (record,) = dump_rubrics(binary, "drtulu", lossy=True, notes=notes)
    assert record == {"query": "", "rubrics": [{"id": "a", "description": "A.", "weight": 1}]}
    assert [note.kind for note in notes] == ["lossy"]


def test_tags_that_are_no_types_are_said_to_be_lost() -> None:
    criteria = [
        Criterion(id=name, text=name, scale=TERNARY, tags=tags) for name, tags in [("a", ("x",)), ("b", ())]
    ]
    with pytest.raises(FormatError, match=r"tags, unless each has one \(a\)"):
        dump_rubrics(Rubric(criteria=tuple(criteria)), "drtulu")


@pytest.mark.parametrize("name", ["rubrics", "rubrics_types", "positive_rubrics", "Answer Critical"])
def test_columns_that_would_be_read_as_rubrics_are_said_to_be_lost(name: str) -> None:
    rubric = Rubric(criteria=(Criterion(id="a", text="A.", scale=TERNARY),), metadata={name: ["x"], "kept": 1})
    with pytest.raises(FormatError, match=f"metadata.{name} of the rubric"):
        dump_rubrics(rubric, "drtulu")
    (record,) = dump_rubrics(rubric, "drtulu", lossy=True)
    assert parse_rubric(record).metadata == {"kept": 1}


def test_the_prompt_moves_in(tmp_path: Path) -> None:
    source, target = tmp_path / "rar.jsonl", tmp_path / "drtulu.jsonl"
    item = {"title": "T", "description": "Names it.", "weight": -2}
    source.write_text(json.dumps({"question": "Which?", "rubric": [item]}) + "\n")
    convert(source, target, to_format="drtulu", lossy=True)
    record = json.loads(target.read_text())
    assert record["query"] == "Which?"
    assert [entry["weight"] for entry in record["rubrics"]] == [-2]
    assert detect(record) == "drtulu"


def row(*entries: Mapping[str, object], **fields: object) -> dict[str, object]:
    """A row whose text has entries that are right but for these."""
    items = [{"description": "d", "weight": 1} | dict(entry) for entry in entries]
    return ROW | {"ground_truth": json.dumps({"query": "q", "rubrics": items} | fields)}


INSIDE = "ground_truth.rubrics"


MISTAKES: list[tuple[dict[str, object], str, str]] = [
    (row({}, {}, {"weight": True}), f"{INSIDE}[2].weight", "'c3' has true"),
    (row({"title": "T", "weight": "5"}), f"{INSIDE}[0].weight", "'T' has the text '5'"),
    (row({"weight": None}), f"{INSIDE}[0].weight", "null"),
    (row({}, {"weight": float("nan")}), f"{INSIDE}[1].weight", "NaN"),
    (row({"weight": float("-inf")}), f"{INSIDE}[0].weight", "-Infinity"),
    (row({"x": float("inf")}), f"{INSIDE}[0].x", "Infinity"),
    (row({"description": " "}), f"{INSIDE}[0].description", "blank"),
    (row({"description": 5}), f"{INSIDE}[0].description", "int"),
    (row({"title": 5}), f"{INSIDE}[0].title", "int"),
    (row({"id": "a"}, {"id": "a"}), "ground_truth.criteria", "more than once: a"),
    (row({"drtulu:text": "x"}), f"{INSIDE}[0].drtulu:text", "reserved"),
    (row(), INSIDE, "at least one"),
    (row({}, rubrics="x"), INSIDE, "expected a list"),
    (row({}, rubrics=["text"]), f"{INSIDE}[0]", "str"),
    (row({}, rubrics_types=["persistent"] * 2), "ground_truth.rubrics_types", "1 types"),
    (row({}, rubrics_types="persistent"), "ground_truth.rubrics_types", "a str"),
    (row({}, rubrics_types=[1]), "ground_truth.rubrics_types[0]", "a type is a text"),
    (row({}, {}, rubrics=[{"description": "d"}]), f"{INSIDE}[0].weight", "none"),
    (row({}, rubrics=[{"weight": 1}]), f"{INSIDE}[0].description", "missing"),
    (ROW | {"ground_truth": "{'query': 'q'}"}, "ground_truth", "no JSON"),
    (ROW | {"ground_truth": '{"rubrics": [}'}, "ground_truth", "column 14"),
    (ROW | {"ground_truth": '{"rubrics": [], "rubrics": []}'}, "ground_truth", "twice"),
    (
        ROW | {"ground_truth": '{"rubrics": [{"description": "\\ud800", "weight": 1}]}'},
        f"{INSIDE}[0].description",
        "surrogate",
    ),
    (ROW | {"ground_truth": "[1]"}, "ground_truth[0]", "expected an object"),
    (ROW | {"ground_truth": 42}, "ground_truth", "expected an object"),
    (ROW | {"ground_truth": None}, "ground_truth", "expected an object"),
    (ROW | {"ground_truth": []}, "ground_truth", "no rubrics in this list"),
    (ROW | {"ground_truth": "{}"}, INSIDE, "missing"),
    (ROW | {"drtulu:x": 1}, "drtulu:x", "reserved"),
    ({"query": "q", "rubrics": [{"description": "d", "weight": False}]}, "rubrics[0].weight", "false"),
    (EVOLVING | {"positive_rubrics": [], "negative_rubrics": []}, "positive_rubrics", "at least one"),
    (EVOLVING | {"positive_rubrics": None}, "positive_rubrics", "NoneType"),
    (EVOLVING | {"positive_rubrics": [{"description": "d", "weight": 2}]}, "positive_rubrics[0].weight", "own"),
    (EVOLVING | {"negative_rubrics": [{"title": "t"}]}, "negative_rubrics[0].description", "missing"),
    (PERSISTENT | {"Valuable": [{"Ingredient": ""}]}, "Valuable[0].Ingredient", "blank"),
    (PERSISTENT | {"Context": [{"Ingredient": "i", "Handle": 3}]}, "Context[0].Handle", "int"),
    (PERSISTENT | {"Answer Critical": "x"}, "Answer Critical", "str"),
    (BUFFER | {"active_rubrics": [{"description": "d"}]}, "active_rubrics[0].weight", "none"),
    (BUFFER | {"active_rubrics": [], "persistent_rubrics": []}, "persistent_rubrics", "at least one"),
]


@pytest.mark.parametrize(("value", "field", "words_"), MISTAKES)
def test_mistakes_are_named(value: dict[str, object], field: str, words_: str) -> None:
    assert detect(value) == "drtulu"
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words_ in str(caught.value)


def test_mistakes_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps(row({}, {'weight': 'x'}))}\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.line, caught.value.field) == (2, "ground_truth.rubrics[1].weight")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (ROW | {"dataset": "rubric"}, "openinstruct"),
        (ROW | {"dataset": ["math", "Rubric"], "ground_truth": ["4", ROW["ground_truth"]]}, "openinstruct"),
        ({"query": "q", "rubrics": []}, "healthbench"),
        ({"query": "q", "rubrics": [{"criterion": "c", "points": 1}]}, "healthbench"),
        (ITEMS, "rar"),
        ({"question": "q", "rubric": ITEMS}, "rar"),
    ],
)
def test_what_looks_alike_is_another_format(value: object, name: str) -> None:
    assert detect(value) == name


def test_a_reference_answer_is_no_rubric() -> None:
    for value in ("42", '{"answer": 42}', ["4"], 42, None, {"answer": 1}):
        with pytest.raises(FormatError):
            detect({"messages": [], "ground_truth": value, "dataset": "math"})


def test_a_bare_list_can_be_named() -> None:
    rubric = parse_rubric(ITEMS, format="drtulu")
    assert rubric.ids == ("causes", "surveys", "invented")
    assert dump_rubrics(rubric, "drtulu") == [{"query": "", "rubrics": ITEMS}]
    with pytest.raises(FormatError, match="has none"):
        parse_rubric([{"description": "d"}], format="drtulu")


WEIGHTS = st.integers(-10, 10) | st.floats(-10, 10).map(lambda value: value + 0.0)


@st.composite
def entries(draw: st.DrawFn, *, weighted: bool = True) -> list[dict[str, object]]:
    """Entries with titles or without, their fields in any order."""
    made: list[dict[str, object]] = []
    for _ in range(draw(st.integers(1, 3))):
        item: dict[str, object] = {"description": draw(words)} | draw(extra)
        if draw(st.booleans()):
            item["title"] = draw(texts)
        if weighted:
            item["weight"] = draw(WEIGHTS)
        made.append({key: item[key] for key in draw(st.permutations(sorted(item)))})
    return made


@st.composite
def payloads(draw: st.DrawFn) -> dict[str, object]:
    items = draw(entries())
    types = [draw(st.sampled_from(["persistent", "evolving", "adaptive"])) for _ in items]
    record: dict[str, object] = {"query": draw(texts), "rubrics": items} | draw(extra)
    record |= draw(st.sampled_from([{}, {"rubrics_types": types}]))
    return {key: record[key] for key in draw(st.permutations(sorted(record)))}


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    payload = draw(payloads() | st.fixed_dictionaries({"Question": texts, "Answer Critical": ingredients(1)}))
    style = draw(st.sampled_from(["text", "utf8", "indented", "object", "list"]))
    text = json.dumps(payload, ensure_ascii=style != "utf8", indent=1 if style == "indented" else None)
    cell: object = {"object": payload, "list": [text]}.get(style, text)
    record: dict[str, object] = {"ground_truth": cell, "source": "s"} | draw(extra)
    record |= draw(st.sampled_from([{}, {"dataset": "general_rubric"}]))
    return {key: record[key] for key in draw(st.permutations(sorted(record)))}


def ingredients(least: int) -> st.SearchStrategy[object]:
    entry: dict[str, st.SearchStrategy[object]] = {"Ingredient": words, "Handle": texts}
    return st.lists(st.fixed_dictionaries(entry), min_size=least, max_size=3).map(list[object])


LISTS: list[dict[str, st.SearchStrategy[object]]] = [
    {"question": texts, "positive_rubrics": entries(weighted=False)},
    {"negative_rubrics": entries(weighted=False), "positive_rubrics": st.just(list[object]())},
    {"Question": texts, "Answer Critical": ingredients(1), "Context": ingredients(0)},
    {"active_rubrics": entries(), "persistent_rubrics": entries(), "inactive_rubrics": extra},
]
generated: st.SearchStrategy[dict[str, object]] = st.one_of([st.fixed_dictionaries(fields) for fields in LISTS])


@relaxed
@given(payloads() | rows() | generated)
def test_records_return(record: dict[str, object]) -> None:
    rubric = record_returns(record, "drtulu")
    (written,) = dump_rubrics(rubric, "drtulu")
    assert parse_rubric(written) == rubric
    if isinstance(record.get("ground_truth"), str):
        assert written["ground_truth"] == record["ground_truth"]


def ternary(rubric: Rubric, tags: tuple[str, ...]) -> Rubric:
    criteria = [criterion.model_copy(update={"scale": TERNARY, "tags": tags}) for criterion in rubric.criteria]
    return rubric.model_copy(update={"criteria": tuple(criteria)})


@relaxed
@given(rubrics(), st.booleans(), st.sampled_from([(), ("persistent",), ("a", "b")]))
def test_rubrics_return(rubric: Rubric, three: bool, tags: tuple[str, ...]) -> None:
    held = rubric_returns(ternary(rubric, tags) if three else rubric, "drtulu")
    plain = all(
        not c.veto and c.channel is None and (c.polarity is Polarity.REWARD or c.weight) for c in rubric.criteria
    )
    assert held == (three and plain and len(tags) < 2)
