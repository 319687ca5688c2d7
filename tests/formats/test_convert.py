"""From one format to another: the prompt goes to its place, notes of the old format stay, nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from format_samples import RECORDS
from hypothesis import given
from made_rubrics import relaxed, rubrics

from rubricate.data.io import read_rows, write_jsonl
from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import (
    convert,
    dump_rubrics,
    formats,
    get_format,
    load_rubric,
    load_rubrics,
    parse_rubric,
)
from rubricate.rubrics.formats.base import Note

TURNS: list[object] = [{"role": "user", "content": "Why is the sky blue?"}]
ASKED = "Why is the sky blue?"
LONG: list[object] = [*TURNS, {"role": "assistant", "content": "So."}, {"role": "user", "content": "Why?"}]

LAYOUTS = [
    (name, index) for name in RECORDS for index in range(len(RECORDS[name])) if name not in ("flat", "native")
]


def converted(folder: Path, record: dict[str, object], source: str, target: str) -> dict[str, object]:
    """The record that a conversion writes, or its first row."""
    write_jsonl(folder / "a.jsonl", [record])
    convert(folder / "a.jsonl", folder / "b.jsonl", from_format=source, to_format=target, lossy=True)
    return dict(next(iter(read_rows(folder / "b.jsonl"))).record)


@pytest.mark.parametrize(("name", "index"), LAYOUTS)
@pytest.mark.parametrize("kind", ["jsonl", "yaml"])
def test_native_gives_every_record_back(tmp_path: Path, name: str, index: int, kind: str) -> None:
    record = RECORDS[name][index]
    write_jsonl(tmp_path / "a.jsonl", [record])
    convert(tmp_path / "a.jsonl", tmp_path / f"b.{kind}", from_format=name)
    convert(tmp_path / f"b.{kind}", tmp_path / "c.jsonl", to_format=name)
    (row,) = read_rows(tmp_path / "c.jsonl")
    assert row.record == record


def test_native_gives_the_rows_of_a_table_back(tmp_path: Path) -> None:
    text = "rubric_id,criterion,points,note\ns,Is short.,2,5\nr,Is right.,-1,007\ns,Is polite.,1,\n"
    (tmp_path / "a.csv").write_text(text)
    convert(tmp_path / "a.csv", tmp_path / "b.jsonl")
    convert(tmp_path / "b.jsonl", tmp_path / "c.csv", to_format="flat")
    lines = text.splitlines()
    assert (tmp_path / "c.csv").read_text().splitlines() == [lines[0], lines[1], lines[3], lines[2]]


@pytest.mark.parametrize(("name", "index"), LAYOUTS)
@pytest.mark.parametrize("through", ["", "native", "flat"])
def test_no_marks_reach_another_format(tmp_path: Path, name: str, index: int, through: str) -> None:
    source = tmp_path / "a.jsonl"
    write_jsonl(source, [RECORDS[name][index]])
    if through:
        convert(source, tmp_path / "native.jsonl", from_format=name, to_format=through)
        source = tmp_path / "native.jsonl"
    for target in formats():
        if target in (name, "native", through):
            continue
        try:
            convert(source, tmp_path / "b.jsonl", to_format=target, lossy=True)
        except FormatError:
            continue  # such as several criteria in a format of one
        assert f'"{name}:' not in (tmp_path / "b.jsonl").read_text(), target


def test_what_stays_behind_is_noted_once(tmp_path: Path) -> None:
    rar = {"question": "q", "rubric": [{"description": "Essential Criteria: d.", "weight": 1}]}
    write_jsonl(tmp_path / "a.jsonl", [rar, rar])
    notes = convert(tmp_path / "a.jsonl", tmp_path / "b.jsonl", to_format="flat").notes
    assert [note.kind for note in notes] == ["layout"]
    assert "rar:prefix; native keeps it" in notes[0].message
    assert convert(tmp_path / "a.jsonl", tmp_path / "b.jsonl", to_format="native").notes == ()


CELL = RECORDS["drtulu"][0]

PROMPTS: list[tuple[str, dict[str, object], str, str, object]] = [
    ("drtulu", RECORDS["drtulu"][1], "rar", "question", ASKED),
    ("drtulu", RECORDS["drtulu"][1], "openinstruct", "messages", TURNS),
    ("drtulu", CELL, "rar", "question", ASKED),
    ("drtulu", CELL | {"messages": LONG}, "rar", "question", ASKED),  # the query in the cell
    ("drtulu", {"ground_truth": CELL["ground_truth"]}, "healthbench", "prompt", TURNS),
    ("drtulu", {"ground_truth": CELL["ground_truth"]}, "flat", "prompt", ASKED),
    ("drtulu", RECORDS["drtulu"][2], "rar", "question", "Why?"),
    ("drtulu", RECORDS["drtulu"][3], "rubrichub", "prompt", [{"role": "user", "content": "Why?"}]),
    ("openinstruct", RECORDS["openinstruct"][0], "rar", "question", ASKED),
    ("openinstruct", RECORDS["openinstruct"][0], "drtulu", "query", ASKED),
    ("openinstruct", RECORDS["openinstruct"][0], "flat", "messages", TURNS),
    ("advancedif", RECORDS["advancedif"][0], "openrubrics", "instruction", ASKED),
    ("advancedif", RECORDS["advancedif"][0], "healthbench", "prompt", TURNS),
    ("advancedif", RECORDS["advancedif"][0] | {"conversation_history": LONG}, "rar", "conversation_history", LONG),
    ("multichallenge", RECORDS["multichallenge"][0], "rar", "question", ASKED),
    ("multichallenge", RECORDS["multichallenge"][1], "tail", "prompt", ASKED),
    ("rubrichub", RECORDS["rubrichub"][1], "healthbench", "prompt", [{"role": "user", "content": "Why?"}]),
    ("rlcf", RECORDS["rlcf"][0], "advancedif", "conversation_history", '[{"role": "user", "content": "Why?"}]'),
    ("rar", RECORDS["rar"][0], "multichallenge", "CONVERSATION", [{"role": "user", "content": "Why?"}]),
    ("prometheus", RECORDS["prometheus"][0], "rar", "question", "Why?"),
    ("native", {"metadata": {"CONVERSATION": TURNS}, "criteria": ["Is short."]}, "rar", "question", ASKED),
    ("native", {"metadata": {"query": ASKED}, "criteria": ["Is short."]}, "rbr", "prompt", TURNS),
]


@pytest.mark.parametrize(("source", "record", "target", "field", "prompt"), PROMPTS)
def test_the_prompt_goes_to_its_column(
    tmp_path: Path, source: str, record: dict[str, object], target: str, field: str, prompt: object
) -> None:
    if target == "multichallenge":
        record = record | {"rubric": [{"description": "Is it short?", "weight": 1}]}
    written = converted(tmp_path, record, source, target)
    assert written[field] == prompt
    asked = get_format(source).prompt
    assert not asked or asked == field or asked not in written


@pytest.mark.parametrize(
    "turns",
    [
        LONG,
        [{"role": "system", "content": "Be brief."}],
        [{"role": "user", "content": "Why?", "name": "Ann"}],
        [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}],
    ],
)
def test_a_prompt_that_is_no_single_text_stays_where_it_was(tmp_path: Path, turns: list[object]) -> None:
    record = RECORDS["healthbench"][0] | {"prompt": turns}
    written = converted(tmp_path, record, "healthbench", "rar")
    assert (written["prompt"], "question" in written) == (turns, False)


def test_ids_that_another_format_wrote_do_not_block_the_way_back(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [RECORDS["rbr"][0]])
    for target in ("healthbench", "tail", "rubrichub"):
        convert(tmp_path / "a.jsonl", tmp_path / "b.jsonl", to_format=target)
        convert(tmp_path / "b.jsonl", tmp_path / "c.jsonl", to_format="rbr")
        assert load_rubric(tmp_path / "c.jsonl").criteria == load_rubric(tmp_path / "a.jsonl").criteria


# What a format would change is said


@relaxed
@given(rubrics())
def test_what_is_written_without_losses_is_read_as_it_was(rubric: Rubric) -> None:
    for name in formats():
        try:
            (record,) = dump_rubrics(rubric, name)
        except FormatError:
            continue
        again = parse_rubric(json.loads(json.dumps(record)), format=name)
        if name == "healthbench":  # has a tag for the channel
            tags = [c.tags if c.channel is None else (*c.tags, f"axis:{c.channel}") for c in rubric.criteria]
            assert [c.tags for c in again.criteria] == tags
            bare = [c.model_copy(update={"tags": ()}) for c in again.criteria]
            again = again.model_copy(update={"criteria": tuple(bare)})
        criteria: list[Criterion] = []
        for read, given_ in zip(again.criteria, rubric.criteria, strict=True):
            added = {key: part for key, part in read.metadata.items() if key not in given_.metadata}
            assert set(added) <= {"id", "title"} and all(part == read.id for part in added.values())
            criteria.append(read.model_copy(update={"metadata": given_.metadata}))
        assert again.model_copy(update={"criteria": tuple(criteria)}) == rubric
        assert parse_rubric(record) == parse_rubric(record, format=name)


def test_ids_of_criteria_reach_the_formats_that_have_ids() -> None:
    rubric = parse_rubric(
        [{"id": "first", "text": "Is short.", "weight": 2}, {"id": "second", "text": "Is right."}]
    )
    for name in ("flat", "healthbench", "rar", "rbr", "rubrichub", "rubricjudge", "tail"):
        (record,) = dump_rubrics(rubric, name)
        assert parse_rubric(record, format=name).ids == rubric.ids


@pytest.mark.parametrize(
    ("name", "record", "said"),
    [
        ("rar", {"criteria": [{"id": "a", "text": "Essential Criteria: foo"}]}, r"text \(a\), .*importance \(a\)"),
        ("paperbench", {"criteria": [{"id": "a", "text": "t", "channel": ""}], "id": "a"}, r"channel \(a\)"),
        ("paperbench", {"criteria": ["one", "two"]}, "2 nodes at the top"),
        ("paperbench", {"criteria": ["one"]}, r"id that is not set: .* \(c1\)"),
        ("healthbench", {"criteria": ["one"], "metadata": {"prompt_id": 3}}, "these fields of rubric 1: id, which"),
        ("tail", {"criteria": ["one"], "id": "r", "metadata": {"id": "x"}}, r"metadata\.id of the rubric"),
        ("rubrichub", {"criteria": ["one"], "id": "r", "metadata": {"id": "x"}}, r"metadata\.id of the rubric"),
        ("rbr", {"criteria": ["one"], "id": "r", "metadata": {"id": "x"}}, r"metadata\.id of the rubric"),
    ],
)
def test_what_would_be_read_otherwise_is_lost(name: str, record: dict[str, object], said: str) -> None:
    rubric = parse_rubric(record, format="native")
    with pytest.raises(FormatError, match=said):
        dump_rubrics(rubric, name)
    notes: list[Note] = []
    dump_rubrics(rubric, name, lossy=True, notes=notes)
    assert "lossy" in [note.kind for note in notes]


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("paperbench", {"criteria": ["one", "two"], "id": " "}),
        ("advancedif", {"criteria": ["one"], "metadata": {"rubrics": 3}}),
    ],
)
def test_what_nobody_could_read_again_is_refused(name: str, record: dict[str, object]) -> None:
    rubric = parse_rubric(record, format="native")
    with pytest.raises(FormatError):
        dump_rubrics(rubric, name)
    with pytest.raises(FormatError, match="could read it again|cannot hold these"):
        dump_rubrics(rubric, name, lossy=True)


# Kinds of files


def test_layers_of_json_text_stay_texts_in_csv(tmp_path: Path) -> None:
    for name in ("advancedif", "drtulu", "openinstruct"):
        record = RECORDS[name][0]
        cells = {key: part if isinstance(part, str) else json.dumps(part) for key, part in record.items()}
        # Not as we would write it: the text is to stay as it is.
        layer = "prompt_metadata" if name == "advancedif" else "ground_truth"
        cells[layer] = cells[layer].replace(": ", ":  ", 1)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(cells), lineterminator="\n")
        writer.writeheader()
        writer.writerow(cells)
        (tmp_path / "a.csv").write_text(text.getvalue())
        found = load_rubrics(tmp_path / "a.csv")
        assert found.format == name
        convert(tmp_path / "a.csv", tmp_path / "b.csv", to_format=name)
        ((back,), (given,)) = (
            list(csv.DictReader(io.StringIO((tmp_path / file).read_text()))) for file in ("b.csv", "a.csv")
        )
        assert back[layer] == given[layer]
        assert load_rubric(tmp_path / "b.csv") == found.rubrics[0]


def test_a_list_of_verifiers_in_a_cell(tmp_path: Path) -> None:
    record = RECORDS["openinstruct"][1]
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    notes = convert(tmp_path / "a.jsonl", tmp_path / "b.csv", to_format="openinstruct").notes
    assert [(note.kind, note.field) for note in notes] == [("layout", "ground_truth")]
    (rubric,) = load_rubrics(tmp_path / "b.csv").rubrics
    assert rubric.fingerprint == parse_rubric(record).fingerprint
    (written,) = dump_rubrics(rubric, "openinstruct")
    assert json.loads(str(written["ground_truth"])) == record["ground_truth"]
    fewer = rubric.model_copy(update={"criteria": rubric.criteria[:1]})
    (written,) = dump_rubrics(fewer, "openinstruct")
    assert json.loads(str(written["ground_truth"]))[0] == "42"
    assert len(parse_rubric(written)) == 1


def test_null_columns_are_left_out_of_toml(tmp_path: Path) -> None:
    tree: dict[str, object] = {"id": "a", "requirements": "R.", "weight": 1, "sub_tasks": [], "task_category": None}
    root: dict[str, object] = {
        "id": "r",
        "requirements": "R.",
        "weight": 1,
        "sub_tasks": [tree],
        "task_category": None,
    }
    (tmp_path / "a.json").write_text(json.dumps(root))
    notes = convert(tmp_path / "a.json", tmp_path / "b.toml", to_format="paperbench").notes
    assert [note.kind for note in notes] == ["layout"]
    assert "no null: task_category, sub_tasks[0].task_category" in notes[0].message
    back, given = load_rubric(tmp_path / "b.toml"), load_rubric(tmp_path / "a.json")
    assert [c.metadata for c in back.criteria] == [{}]
    assert (back.ids, [g.id for g in back.groups]) == (given.ids, ["r"])
    # A null inside a value is no missing column.
    (tmp_path / "a.json").write_text(json.dumps(root | {"x": {"y": None}}))
    with pytest.raises(FormatError, match="TOML has no null"):
        convert(tmp_path / "a.json", tmp_path / "c.toml", to_format="paperbench")
    assert not (tmp_path / "c.toml").exists()
