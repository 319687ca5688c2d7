"""RLCF's checklists. Fields and texts as viswavi/RLCF 643ebee writes them.

`data/requirement_generation/write_requirements.py` for rows of pairs and for what the generator says,
`data/generate_wildchat_openrlhf_dataset.py` for the rows of viswavi/wildchecklists.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics import BinaryScale, Criterion, NumericScale, Polarity, Rubric
from rubricate.rubrics.formats import Note, Place, convert, detect, dump_rubrics, load_rubrics, parse_rubric
from rubricate.rubrics.formats.rlcf import FORMAT, SCALE

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

UNIVERSAL = "Does the response satisfy the following two criteria:\n1) It keeps to the point.\n2) Its tone fits."
PAIRS: list[object] = [["Is the text a haiku?", 100.0], ["Is it about snow?", 75.0], [UNIVERSAL, 100]]
TEXT = (
    "1) Is the text a haiku? (importance: 100/100)\n"
    f"2) {UNIVERSAL} (importance: 100/100)\n"
    "3) Is it about snow? (importance: 75/100)"
)
GENERATED = "Key Criteria Questions:\n- Is the text a haiku? (100)\n- Is it about snow? (75)\n<END>"
WORKING_ROW: dict[str, object] = {
    "instruction": "Write a haiku about snow",
    "raw_response": "Three lines are asked for.\n\n" + GENERATED,
    "requirements": PAIRS,
    "orig_row": {"conversations": []},
    "orig_row_idx": 4,
    "source_file": "shard_0.json",
}
DPO_ROW: dict[str, object] = {
    "prompt": "Write a haiku about snow",
    "chosen": [{"content": "Write a haiku about snow", "role": "user"}, {"content": "a", "role": "assistant"}],
    "rejected": [{"content": "Write a haiku about snow", "role": "user"}, {"content": "b", "role": "assistant"}],
    "chosen_score": 0.9,
    "rejected_score": 0.25,
    "requirements": TEXT,
}
COLUMNS_ROW: dict[str, object] = {
    "prompt": "p",
    "chosen": "a",
    "rejected": "b",
    "requirements": ["Is the text a haiku?", "Is it about snow?"],
    "importances": [100, 75],
}


def test_rows_of_pairs() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(WORKING_ROW, notes=notes)
    assert detect(WORKING_ROW) == "rlcf"
    assert notes == []
    assert rubric.ids == ("c1", "c2", "c3")
    assert [c.weight for c in rubric.criteria] == [100, 75, 100]
    assert [c.scale for c in rubric.criteria] == [NumericScale(low=0, high=100, integer=True)] * 3
    assert {c.polarity for c in rubric.criteria} == {Polarity.REWARD}
    assert [c.tags for c in rubric.criteria] == [(), (), ("universal",)]
    assert rubric.metadata["source_file"] == "shard_0.json"
    (written,) = dump_rubrics(rubric, "rlcf")
    assert written == WORKING_ROW
    assert list(written) == list(WORKING_ROW)


def test_rows_of_the_data_set() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(DPO_ROW, notes=notes)
    assert detect(DPO_ROW) == "rlcf"
    assert notes == []
    assert [c.text for c in rubric.criteria] == ["Is the text a haiku?", UNIVERSAL, "Is it about snow?"]
    assert [(c.weight, c.tags) for c in rubric.criteria] == [(100, ()), (100, ("universal",)), (75, ())]
    assert json.dumps(dump_rubrics(rubric, "rlcf")) == json.dumps([DPO_ROW])


def test_rows_with_two_columns() -> None:
    rubric = parse_rubric(COLUMNS_ROW)
    assert [(c.text, c.weight) for c in rubric.criteria] == [
        ("Is the text a haiku?", 100),
        ("Is it about snow?", 75),
    ]
    assert json.dumps(dump_rubrics(rubric, "rlcf")) == json.dumps([COLUMNS_ROW])


@pytest.mark.parametrize("text", [TEXT, GENERATED])
def test_texts_alone(text: str) -> None:
    rubric = parse_rubric(text)
    assert detect(text) == "rlcf"
    assert dump_rubrics(rubric, "rlcf") == [{"requirements": text}]
    assert parse_rubric({"requirements": text}) == rubric


def test_pairs_alone_are_read_by_name() -> None:
    rubric = parse_rubric(PAIRS, format="rlcf")
    assert dump_rubrics(rubric, "rlcf") == [{"requirements": PAIRS}]


def test_yes_no_questions_by_option() -> None:
    rubric = parse_rubric(DPO_ROW, scale="binary")
    assert [c.scale for c in rubric.criteria] == [BinaryScale()] * 3
    with pytest.raises(FormatError, match=r"scale \(c1, c2, c3\)"):
        dump_rubrics(rubric, "rlcf")
    assert dump_rubrics(rubric, "rlcf", lossy=True) == [DPO_ROW]
    with pytest.raises(ConfigError, match="0-100, binary"):
        parse_rubric(DPO_ROW, scale="percent")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Reasoning:\nshort.\n\n" + GENERATED, "before the list"),
        (GENERATED + "\nMore.", "after <END>"),
        (GENERATED.replace("(75)", '(75)"'), ""),
        (GENERATED.replace("<END>", "").replace("- ", "* "), ""),
        ("- Is the text a haiku? (100)\n\n- Is it\n  about snow? (75/100)", ""),
        ("1) Is the text a haiku? (importance: 100/100)\n3) Is it about snow? (Importance: 75 / 100)\n", "1, 3"),
        (
            "Here:\n1. Is the text a haiku? (importance: 100/100)\n2. Is it about snow? (importance: 75/100)",
            "before",
        ),
        ("* Is the text a haiku? (importance: 100/100)\n* Is it about snow? (importance: 75/100)", ""),
        ("1) Is the text a haiku? (importance: 100/100) 2) Is it about snow? (importance: 75/100).", ""),
    ],
)
def test_other_ways_of_writing_a_checklist(text: str, words: str) -> None:
    notes: list[Note] = []
    rubric = parse_rubric(text, notes=notes)
    assert [(" ".join(c.text.split()), c.weight) for c in rubric.criteria] == [
        ("Is the text a haiku?", 100),
        ("Is it about snow?", 75),
    ]
    assert words in " ".join(note.message for note in notes)
    assert bool(notes) == bool(words)
    assert dump_rubrics(rubric, "rlcf") == [{"requirements": text}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1) Is it a? (importance: high/100)", "item 1 (line 1 of the text) has the importance 'high/100'"),
        ("1) Is it a? (importance: 50)", "has the importance '50'"),
        ("1) Is it a? (importance: 50/100)\n2) Is it b?", "item 2 (line 2 of the text) has no importance"),
        ("1) Is it a?\n2) Is it b? (importance: 50/100)", "item 1 (line 1 of the text) has no importance"),
        (f"1) Is it a?\n2) {UNIVERSAL} (importance: 100/100)", "item 1 (line 1 of the text) has no importance"),
        ("1) Is it a? (importance: 50/100) x\n2) Is it b? (importance: 50/100)", "goes on after its importance"),
        ("Is it a? (importance: 50/100)", "item 1 (line 1 of the text) has no number"),
        ("1) (importance: 50/100)", "has no text"),
        (
            f"2) {UNIVERSAL} (importance: 100/10\n3) Is it b? (importance: 50/100)",
            "item 1 (line 1 of the text) has an",
        ),
        (f"2) {UNIVERSAL} (importnce: 9/100)\n3) Is it b? (importance: 50/100)", "that cannot be read"),
        ("- Is it a? (100)\nIs it b? (50)\n<END>", "item 1 (line 1 of the text) has two weights"),
        (
            "Key Criteria Questions:\n- Is it a? (100) - Is it b? (50)",
            "item 1 (line 2 of the text) has two weights",
        ),
        (
            "Key Criteria Questions:\n- Is it a? (100)\n- Is it b?\n<END>",
            "item 2 (line 3 of the text) does not end",
        ),
        ("Key Criteria Questions:\n- Is it a? (high)", "item 1 (line 2 of the text) does not end with a weight"),
        ("Key Criteria Questions:\n- (50)", "has no text"),
        ("Key Criteria Questions:\nNone\n<END>", "no item of a checklist"),
    ],
)
def test_what_cannot_be_read_names_item_and_line(text: str, words: str) -> None:
    for value, field in ((text, ""), (DPO_ROW | {"requirements": text}, "requirements")):
        with pytest.raises(FormatError) as caught:
            parse_rubric(value)
        assert words in str(caught.value)
        assert caught.value.field == field


@pytest.mark.parametrize(
    ("requirements", "field", "words"),
    [
        ([["q", 1], ["q", True]], "requirements[1][1]", "'c2' has true"),
        ([["q", "100"]], "requirements[0][1]", "the text '100'"),
        ([["q", -5]], "requirements[0][1]", "negative"),
        ([["q", float("nan")]], "requirements[0][1]", "NaN"),
        ([["q", None]], "requirements[0][1]", "null"),
        ([["q"]], "requirements[0]", "a list of 1"),
        ([["q", 1, 2]], "requirements[0]", "a list of 3"),
        ([["q", 1], "q"], "requirements[1]", "got str"),
        ([["", 1]], "requirements[0][0]", "blank"),
        ([[5, 1]], "requirements[0][0]", "int"),
        ([], "requirements", "at least one"),
        ("", "requirements", "blank"),
        ("Be good.", "requirements", "no item of a checklist"),
    ],
)
def test_wrong_values_are_named(requirements: object, field: str, words: str, tmp_path: Path) -> None:
    record = DPO_ROW | {"requirements": requirements}
    with pytest.raises(FormatError) as caught:
        parse_rubric(record)
    assert caught.value.field == field
    assert words in str(caught.value)
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(DPO_ROW) + "\n" + json.dumps(record) + "\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.line, caught.value.field) == (2, field)


def test_wrong_columns_are_named() -> None:
    for change, field, words in (
        ({"importances": [100]}, "importances", "1 importances for 2 requirements"),
        ({"importances": 5}, "importances", "expected a list"),
        ({"importances": [100, "x"]}, "importances[1]", "'x'"),
        ({"requirements": ["q", None]}, "requirements[1]", "NoneType"),
        ({"rlcf:text": "x"}, "rlcf:text", "reserved"),
    ):
        with pytest.raises(FormatError) as caught:
            parse_rubric(COLUMNS_ROW | change)
        assert caught.value.field == field
        assert words in str(caught.value)
    for value, words in (({"prompt": "p"}, "missing"), ({"requirements": 5}, "got int"), (5, "got int")):
        with pytest.raises(FormatError, match=words):
            FORMAT.parse(value, Place(), {})


def test_weights_above_a_hundred_are_noted() -> None:
    notes: list[Note] = []
    parse_rubric({"requirements": [["a?", 100], ["b?", 150]]}, notes=notes)
    assert [(note.kind, note.criterion_id) for note in notes] == [("weights", "c2")]


def test_what_is_something_else() -> None:
    tree: dict[str, object] = {
        "id": "r",
        "requirements": "1) a (importance: 5/100)",
        "weight": 1,
        "sub_tasks": None,
    }
    assert detect(tree) == "paperbench"
    assert detect("1. The response ends with (importance: 5/100). [Hard Rule]") == "openrubrics"
    assert not FORMAT.fits("- Bring milk.\n- Bring bread.")
    assert not FORMAT.fits({"requirements": "Be good."})
    assert not FORMAT.fits({"requirements": ["python>=3.11"]})


def test_a_changed_rubric_is_written_anew_in_its_layout() -> None:
    rubric = parse_rubric(DPO_ROW | {"requirements": "Here:\n" + TEXT})
    changed = rubric.model_copy(update={"criteria": rubric.criteria[:1]})
    assert dump_rubrics(changed, "rlcf")[0]["requirements"] == "1) Is the text a haiku? (importance: 100/100)"
    generated = parse_rubric("Reasons.\n" + GENERATED)
    changed = generated.model_copy(update={"criteria": generated.criteria[:1]})
    assert dump_rubrics(changed, "rlcf")[0]["requirements"] == (
        "Key Criteria Questions:\n- Is the text a haiku? (100)\n<END>"
    )
    spoilt = rubric.criteria[0].model_copy(update={"text": "Is it\n2) short?"})
    with pytest.raises(FormatError, match="would be read as another one"):
        dump_rubrics(rubric.model_copy(update={"criteria": (spoilt,)}), "rlcf")


def test_rubrics_from_elsewhere(tmp_path: Path) -> None:
    plain = Rubric(criteria=(Criterion(id="c1", text="Is it short?", weight=50, scale=SCALE),))
    assert dump_rubrics(plain, "rlcf") == [{"requirements": [["Is it short?", 50]]}]
    other = Criterion(id="x", text="Is it short?", tags=("a",), channel="style", metadata={"k": 1})
    with pytest.raises(FormatError) as caught:
        dump_rubrics(Rubric(criteria=(other,)), "rlcf")
    for words in ("id (x)", "scale (x)", "tags (x)", "channel (x)", "metadata.k"):
        assert words in str(caught.value)
    bad = Criterion(id="lies", text="Does it lie?", polarity=Polarity.PENALTY)
    with pytest.raises(FormatError, match="no penalties.*'lies'"):
        dump_rubrics(Rubric(criteria=(bad,)), "rlcf", lossy=True)
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"question": "q?", "rubric": [{"description": "Is it d?", "weight": 1}]}))
    convert(source, target, to_format="rlcf", lossy=True)
    assert json.loads(target.read_text()) == {"prompt": "q?", "requirements": [["Is it d?", 1]]}


@pytest.mark.parametrize("unit", ["*", "_ ", "- ", "(", "(5) ", "? ", "\n1)", "1) x (importance: 5/100) ", " \n"])
@pytest.mark.parametrize("start", ["1) Is it? (importance: 5/100) ", "Key Criteria Questions:\n- Is it? "])
def test_long_texts_take_no_quadratic_time(unit: str, start: str) -> None:
    started = time.process_time()
    try:
        parse_rubric(start + unit * (60_000 // len(unit)), format="rlcf")
    except FormatError:
        pass
    assert time.process_time() - started < 5


question = st.text("ab ?.é漢()-*1\n", min_size=1, max_size=12).filter(lambda value: bool(value.strip()))
weight = st.integers(0, 120) | st.floats(0, 100)
extra = st.dictionaries(st.text("abc", min_size=1, max_size=4).map("x_{}".format), st.none() | question, max_size=2)


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    items = draw(st.lists(st.tuples(question, weight), min_size=1, max_size=4))
    layout = draw(st.sampled_from(["pairs", "columns", "text", "generated"]))
    record: dict[str, object] = {"requirements": [list(item) for item in items]}
    if layout == "columns":
        record = {"requirements": [text for text, _ in items], "importances": [number for _, number in items]}
    elif layout == "text":
        end = draw(st.sampled_from(["\n", "\n\n", " "]))
        record["requirements"] = end.join(
            f"{index}) {text} (importance: {number:.2f}/100)" for index, (text, number) in enumerate(items, start=1)
        )
    elif layout == "generated":
        lines = "\n".join(f"- {text} ({number:.1f})" for text, number in items)
        record["requirements"] = draw(st.sampled_from(["", "Why.\nKey Criteria Questions:\n"])) + lines
    record |= draw(extra)
    if draw(st.booleans()):
        record["id"] = draw(question | st.integers())
    return {key: record[key] for key in draw(st.permutations(list(record)))}


@relaxed
@given(records())
def test_any_record_that_can_be_read_comes_back_as_it_was(record: dict[str, object]) -> None:
    try:
        rubric = parse_rubric(record, format="rlcf")
    except FormatError:
        assert isinstance(record["requirements"], str), "pairs and columns are always read"
        return
    (written,) = dump_rubrics(rubric, "rlcf")
    assert written == record
    assert list(written) == list(record)
    assert parse_rubric(written, format="rlcf") == rubric
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric


@relaxed
@given(
    st.lists(st.tuples(question, weight), min_size=1, max_size=4),
    extra,
    st.sampled_from([None, "text", "generated", "columns"]),
)
def test_any_rubric_without_losses_comes_back_as_it_was(
    entries: list[tuple[str, float]], metadata: dict[str, object], layout: str | None
) -> None:
    criteria = tuple(
        Criterion(id=f"c{index + 1}", text=text, weight=number, scale=SCALE)
        for index, (text, number) in enumerate(entries)
    )
    marks: dict[str, object] = {} if layout is None else {"rlcf:layout": layout}
    rubric = Rubric(criteria=criteria, metadata=metadata | marks)
    if FORMAT.losses(rubric):
        return
    try:
        (record,) = dump_rubrics(rubric, "rlcf")
    except FormatError as error:
        assert layout in ("text", "generated")
        assert "read as another one" in str(error)
        return
    assert parse_rubric(record, format="rlcf") == rubric
