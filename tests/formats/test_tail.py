"""Chasing the Tail. Field names and types: cards of JunkaiZ/Rubrics and faezeb/chasing-the-tail-complete."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import Note, convert, detect, dump_rubrics, load_rubrics, parse_rubric

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ITEMS: list[object] = [
    {"criterion": "Does the response name the dose?", "weight": 3},
    {"criterion": "The response warns of bleeding.", "weight": 2},
    {"criterion": "The response is shorter than 200 words.", "weight": 1},
]
RECORD: dict[str, object] = {
    "prompt": "How much aspirin?",
    "rubrics": ITEMS,
    "number_of_criteria": 3,
    "total_weight": 6,
}
# The columns of the larger copy, in its order.
COPY: dict[str, object] = {
    "custom_id": "health-1",
    "model_name": "some-model",
    "messages": [{"role": "user", "content": "How much aspirin?"}],
    "prompt": "How much aspirin?",
    "number_of_criteria": 3,
    "rubrics": ITEMS,
    "total_weight": 6,
    "domain": "health",
}


def items(*entries: Mapping[str, object]) -> Sequence[object]:
    return [{"criterion": "c", "weight": 1} | dict(entry) for entry in entries]


def same(first: object, second: object) -> bool:
    """Equal, the order of the fields included."""
    return json.dumps(first) == json.dumps(second)


@pytest.mark.parametrize("record", [RECORD, COPY])
def test_a_row_becomes_a_rubric_and_a_row_again(record: dict[str, object]) -> None:
    notes: list[Note] = []
    rubric = parse_rubric(record, notes=notes)
    assert detect(record) == "tail"
    assert notes == []
    assert rubric.ids == ("c1", "c2", "c3")
    assert [c.weight for c in rubric.criteria] == [3, 2, 1]
    assert {c.polarity for c in rubric.criteria} == {Polarity.REWARD}
    assert rubric.metadata["prompt"] == "How much aspirin?"
    assert same(dump_rubrics(rubric, "tail"), [record])


def test_a_list_alone_becomes_a_record_with_counts() -> None:
    rubric = parse_rubric(ITEMS)
    assert dump_rubrics(rubric, "tail") == [{"rubrics": ITEMS, "number_of_criteria": 3, "total_weight": 6}]
    assert parse_rubric(json.dumps(ITEMS)) == rubric


def test_wrong_counts_are_noted_kept_and_renewed_once_the_list_has_changed() -> None:
    record = RECORD | {"number_of_criteria": 7, "total_weight": 5}
    notes: list[Note] = []
    rubric = parse_rubric(record, notes=notes)
    assert [(note.kind, note.field) for note in notes] == [
        ("layout", "number_of_criteria"),
        ("layout", "total_weight"),
    ]
    assert "7 is stated, the list makes 3" in str(notes[0])
    assert same(dump_rubrics(rubric, "tail"), [record])
    shorter = rubric.model_copy(update={"criteria": rubric.criteria[:2]})
    assert dump_rubrics(shorter, "tail") == [
        {"prompt": "How much aspirin?", "rubrics": ITEMS[:2], "number_of_criteria": 2, "total_weight": 5}
    ]


def test_rows_without_counts_or_with_null_in_them_come_back_so() -> None:
    bare: dict[str, object] = {"prompt": "p", "rubrics": ITEMS}
    for record in (bare, RECORD | {"total_weight": None}):
        notes: list[Note] = []
        rubric = parse_rubric(record, notes=notes)
        assert notes == []
        assert same(dump_rubrics(rubric, "tail"), [record])


def test_weights_beyond_three_are_noted() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(items({"weight": 5}, {}, {"weight": 1.5}, {"weight": 0}), notes=notes)
    assert [(note.kind, note.field, note.criterion_id) for note in notes] == [
        ("weights", "[0].weight", "c1"),
        ("weights", "[2].weight", "c3"),
        ("weights", "[3].weight", "c4"),
    ]
    assert dump_rubrics(rubric, "tail")[0]["total_weight"] == 7.5


def test_the_authors_working_files_are_read_by_name() -> None:
    record = {
        "id": "p1",
        "prompt": "p",
        "criteria": [
            {"local_id": "c1", "criterion": "Is it short?", "weight": 2},
            {"local_id": "c2", "criterion": "Is it true?", "weight": 3},
        ],
    }
    rubric = parse_rubric(record, format="tail")
    assert rubric.id == "p1"
    assert same(dump_rubrics(rubric, "tail"), [record])
    assert parse_rubric(dump_rubrics(rubric, "tail")[0], format="tail") == rubric


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        (items({}, {"weight": True}), "[1].weight", "'c2' has true"),
        (items({"weight": "3"}), "[0].weight", "the text '3'"),
        (items({"weight": -1}), "[0].weight", "negative"),
        (items({"weight": float("nan")}), "[0].weight", "NaN"),
        (items({"weight": None}), "[0].weight", "null"),
        ([{"criterion": "c"}], "[0].weight", "none"),
        (items({"criterion": ""}), "[0].criterion", "blank"),
        (items({}, {"criterion": 5}), "[1].criterion", "int"),
        (RECORD | {"rubrics": [*items({}), {"weight": 1}]}, "rubrics[1].criterion", "missing"),
        (RECORD | {"rubrics": [*items({}), "text"]}, "rubrics[1]", "str"),
        (items({"tail:order": 1}), "[0].tail:order", "reserved"),
        (items({"id": "a"}, {"id": "a"}), "criteria", "more than once: a"),
        (RECORD | {"number_of_criteria": "3"}, "number_of_criteria", "expected a number, got '3'"),
        (RECORD | {"total_weight": True}, "total_weight", "expected a number"),
        (RECORD | {"rubrics": [*items({}), {"criterion": "c", "weight": "x"}]}, "rubrics[1].weight", "'x'"),
        (RECORD | {"tail:counts": 1}, "tail:counts", "reserved"),
    ],
)
def test_mistakes_are_named(value: object, field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words in str(caught.value)


def test_a_list_that_is_no_list_or_empty() -> None:
    empty: list[object] = []
    with pytest.raises(FormatError, match=r"rubrics.*at least one"):
        parse_rubric(RECORD | {"rubrics": empty}, format="tail")
    with pytest.raises(FormatError, match=r"rubrics.*expected a list"):
        parse_rubric(RECORD | {"rubrics": 5}, format="tail")
    with pytest.raises(FormatError, match=r"rubrics.*missing"):
        parse_rubric({"prompt": "p"}, format="tail")


def test_errors_name_the_line_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    wrong = RECORD | {"rubrics": [{"criterion": "c", "weight": "high"}]}
    path.write_text(json.dumps(RECORD) + "\n" + json.dumps(wrong) + "\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.line, caught.value.field) == (2, "rubrics[0].weight")


def test_healthbench_is_another_format() -> None:
    assert detect([{"criterion": "c", "points": 1, "tags": ["a"]}]) == "healthbench"
    assert detect({"rubrics": [{"criterion": "c", "points": 1, "weight": 1}]}) == "healthbench"
    assert detect([{"criterion": "c"}]) == "tail"


def test_penalties_are_refused_and_what_is_not_held_is_named() -> None:
    bad = Criterion(id="lies", text="States a falsehood.", polarity=Polarity.PENALTY)
    with pytest.raises(FormatError, match="no penalties.*'lies'"):
        dump_rubrics(Rubric(criteria=(bad,)), "tail", lossy=True)
    good = Criterion(id="short", text="Is short.", channel="style", tags=("a",))
    with pytest.raises(FormatError, match=r"channel \(short\); tags \(short\)"):
        dump_rubrics(Rubric(criteria=(good,)), "tail")
    assert dump_rubrics(Rubric(criteria=(good,)), "tail", lossy=True) == [
        {
            "rubrics": [{"id": "short", "criterion": "Is short.", "weight": 1}],
            "number_of_criteria": 1,
            "total_weight": 1,
        }
    ]


def test_the_prompt_moves_where_another_format_has_it(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"question": "q?", "rubric": [{"description": "d", "weight": 2}]}))
    convert(source, target, to_format="tail")
    record = json.loads(target.read_text())
    assert record["prompt"] == "q?"
    assert record["rubrics"] == [{"criterion": "d", "weight": 2}]


words = st.text("ab Z.é漢\n", min_size=1, max_size=12).filter(lambda value: bool(value.strip()))
extra = st.dictionaries(st.text("abc", min_size=1, max_size=4).map("x_{}".format), st.none() | words, max_size=2)


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    listed: list[object] = []
    names = draw(st.lists(words, max_size=4, unique=True))
    for index in range(draw(st.integers(1, 4))):
        item: dict[str, object] = {"criterion": draw(words), "weight": draw(st.integers(0, 5) | st.floats(0, 9))}
        item |= draw(extra) | ({"id": names[index]} if index < len(names) else {})
        listed.append({key: item[key] for key in draw(st.permutations(list(item)))})
    record: dict[str, object] = {"rubrics": listed}
    record |= draw(extra)
    for name in ("number_of_criteria", "total_weight", "prompt", "id"):
        if draw(st.booleans()):
            record[name] = draw(st.integers(0, 20) | st.none())
    return {key: record[key] for key in draw(st.permutations(list(record)))}


@relaxed
@given(records())
def test_any_record_comes_back_as_it_was(record: dict[str, object]) -> None:
    rubric = parse_rubric(record)
    (written,) = dump_rubrics(rubric, "tail")
    assert written == record
    assert list(written) == list(record)
    assert parse_rubric(written) == rubric
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric


@relaxed
@given(
    st.lists(st.tuples(words, words, st.floats(0, 9)), min_size=1, max_size=4, unique_by=lambda entry: entry[0]),
    words | st.just(""),
    extra,
)
def test_any_rubric_without_losses_comes_back_as_it_was(
    entries: list[tuple[str, str, float]], name: str, metadata: dict[str, object]
) -> None:
    criteria = tuple(Criterion(id=own, text=text, weight=weight) for own, text, weight in entries)
    rubric = Rubric(criteria=criteria, id=name, metadata=metadata)
    again = parse_rubric(dump_rubrics(rubric, "tail")[0])
    assert [(c.id, c.text, c.weight) for c in again.criteria] == [(c.id, c.text, c.weight) for c in criteria]
    assert (again.id, again.fingerprint) == (rubric.id, rubric.fingerprint)
    assert again.metadata == metadata


def test_an_item_may_have_a_description_besides() -> None:
    items: list[object] = [{"criterion": "Is short.", "weight": 1, "description": "At most two lines."}]
    record: dict[str, object] = {"rubrics": items, "number_of_criteria": 1, "total_weight": 1}
    assert detect(record) == "tail"
    assert dump_rubrics(parse_rubric(record), "tail") == [record]
    assert dump_rubrics(parse_rubric(record, format="tail"), "tail") == [record]
