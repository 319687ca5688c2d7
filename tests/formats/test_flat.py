"""Flat tables: a criterion a row, many rubrics in a file, and cells of CSV that are right or errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.data.io import read_rows, write_jsonl, write_parquet
from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import (
    convert,
    detect,
    dump_rubrics,
    load_rubric,
    load_rubrics,
    parse_rubric,
    save_rubrics,
)

TABLE = """\
rubric_id,prompt,criterion_id,criterion,points,channel,veto,tags,source
r1,Say hello.,polite,Is polite.,3,style,,"[""tone""]",manual
r2,Count to 3.,,"Counts, to 3.",1e1,accuracy,true,,7
r1,Say hello.,rude,Is rude.,-2.5,style,FALSE,,manual
"""


def write(folder: Path, text: str, name: str = "a.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_rows_of_a_rubric_need_not_be_adjacent(tmp_path: Path) -> None:
    found = load_rubrics(write(tmp_path, TABLE))
    first, second = found.rubrics
    assert found.format == "flat"
    assert (first.id, first.ids, second.id, second.ids) == ("r1", ("polite", "rude"), "r2", ("c1",))
    assert (first.metadata["prompt"], second.metadata["prompt"]) == ("Say hello.", "Count to 3.")
    assert [c.sign * c.weight for c in (*first.criteria, *second.criteria)] == [3, -2.5, 10]
    assert [c.veto for c in (*first.criteria, *second.criteria)] == [False, False, True]
    assert (first.criteria[0].tags, first.criteria[0].channel) == (("tone",), "style")
    assert [c.metadata for c in first.criteria] == [{"source": "manual"}, {"source": "manual"}]
    assert second.criteria[0].metadata == {"source": 7}
    assert [place.exact_line() for place in found.places[0].values()] == [2, 4]


def test_a_table_is_written_back_as_it_was(tmp_path: Path) -> None:
    table = TABLE.replace("1e1", "10").replace("FALSE", "false")
    source, target = write(tmp_path, table), tmp_path / "b.csv"
    convert(source, target, to_format="flat")
    assert sorted(target.read_text().splitlines()) == sorted(table.splitlines())
    convert(source, tmp_path / "b.json")
    convert(tmp_path / "b.json", tmp_path / "c.csv", to_format="flat")
    assert (tmp_path / "c.csv").read_text() == target.read_text()


def test_prompts_keep_rubrics_apart_where_there_is_no_id(tmp_path: Path) -> None:
    table = "question,text\na?,One.\nb?,Two.\na?,Three.\n"
    found = load_rubrics(write(tmp_path, table))
    assert [[c.text for c in rubric.criteria] for rubric in found.rubrics] == [["One.", "Three."], ["Two."]]
    assert [rubric.id for rubric in found.rubrics] == ["", ""]
    save_rubrics(found.rubrics, tmp_path / "b.csv", "flat")
    assert (tmp_path / "b.csv").read_text() == "question,text\na?,One.\na?,Three.\nb?,Two.\n"


def test_a_table_without_a_grouping_column_is_one_rubric(tmp_path: Path) -> None:
    rubric = load_rubric(write(tmp_path, "text\tweight\tveto\nIs polite.\t2\t\nIs short.\t0.5\ttrue\n", "a.tsv"))
    assert [(c.id, c.weight, c.veto) for c in rubric.criteria] == [("c1", 2, False), ("c2", 0.5, True)]
    assert [c.weight for c in load_rubric(write(tmp_path, "criterion,polarity\nRude.,penalty\n")).criteria] == [1]
    named = load_rubric(write(tmp_path, "text\n12\ntrue\n"))
    assert [c.text for c in named.criteria] == ["12", "true"]


@pytest.mark.parametrize("cell", ["1e3", "1000", "1000.0", " 1000"])
def test_numbers_in_cells_are_weights(tmp_path: Path, cell: str) -> None:
    assert load_rubric(write(tmp_path, f"text,weight\nA.,{cell}\n")).criteria[0].weight == 1000
    rar = load_rubrics(write(tmp_path, f"title,description,weight\nT,A.,{cell}\n"))
    assert (rar.format, rar.rubrics[0].criteria[0].weight) == ("rar", 1000)


@pytest.mark.parametrize(
    "cell", ["nan", "NaN", "true", "", "inf", "-1", "0x10", "1_000", "one", "1,", '"""2"""', "[]"]
)
@pytest.mark.parametrize("header", ["text,weight", "rubric_id,criterion,weight"])
def test_cells_that_are_no_weight_are_named(tmp_path: Path, header: str, cell: str) -> None:
    start = "r," * header.count("rubric_id") + "A.,"
    path = write(tmp_path, f"{header}\n{start}1\n{start}{cell}\n")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert caught.value.line == 3
    assert "weight" in caught.value.field or "cells" in caught.value.detail
    assert str(path) in str(caught.value)


WRONG = [
    ("rubric_id,text\nr,A.\n,B.\n", 3, "rubric_id", "which rubric"),
    ("prompt,text\np,A.\n,B.\n", 3, "prompt", "which rubric"),
    ("rubric_id,text\nr,A.\nr,\n", 3, "text", "missing"),
    ("rubric_id,text\nr,A.\nr, \n", 3, "text", "blank"),
    ("rubric_id,id,text\nr,a,A.\nq,a,A.\nr,a,B.\n", 4, "id", "occurs twice"),
    ("rubric_id,text,criterion\nr,A.,\nr,,B.\n", 3, "criterion", "both hold the text"),
    ("rubric_id,text,veto\nr,A.,yes\n", 2, "veto", "true or false, got 'yes'"),
    ("rubric_id,text,veto\nr,A.,1\n", 2, "veto", "true or false, got '1'"),
    ("rubric_id,text,polarity\nr,A.,bad\n", 2, "polarity", "'reward' or 'penalty'"),
    ("rubric_id,text,importance\nr,A.,huge\n", 2, "importance", "'essential'"),
    ("rubric_id,text,kind\nr,A.,rule\n", 2, "kind", "'hard_rule'"),
    ("rubric_id,text,tags\nr,A.,tone\n", 2, "tags", '["a", "b"]'),
    ("rubric_id,text,tags\nr,A.,[1]\n", 2, "tags[0]", "string"),
    ('rubric_id,text,path\nr,A.,"[""g""]"\n', 2, "", "not declared"),
    ('rubric_id,text,scale\nr,A.,"{""type"": ""ordinal""}"\n', 2, "scale.levels", "required"),
    ('rubric_id,text,verifier\nr,A.,"{""name"": ""x"", ""arg"": 1}"\n', 2, "verifier.arg", "not permitted"),
    ('rubric_id,text,metadata\nr,A.,"{""a"": 1, ""a"": 2}"\n', 2, "metadata.a", "occurs twice"),
    ("rubric_id,text,metadata\nr,A.,[]\n", 2, "metadata", "expected an object"),
    ("rubric_id,text,points,polarity\nr,A.,-1,reward\n", 2, "polarity", "below 0"),
    ("rubric_id,text,points,polarity\nr,A.,1,penalty\n", 2, "polarity", "above 0"),
    ("rubric_id,prompt,text\nr,p,A.\nr,q,B.\n", 3, "prompt", "differ"),
    ("rubric_id,text,rubric_scope\nr,A.,all\n", 2, "rubric_scope", "'instance'"),
    ("rubric_id,text,rubric_metadata\nr,A.,3\n", 2, "rubric_metadata", "expected"),
    ('rubric_id,text,rubric_groups\nr,A.,"[{""text"": ""x""}]"\n', 2, "rubric_groups[0].id", "required"),
    ("rubric_id,text,flat:given\nr,A.,x\n", 2, "flat:given", "reserved"),
]


@pytest.mark.parametrize(("table", "line", "field", "words"), WRONG)
def test_what_is_wrong_is_named(tmp_path: Path, table: str, line: int, field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_rubrics(write(tmp_path, table))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert words in str(caught.value)


def test_a_weight_that_only_some_rows_have_is_an_error(tmp_path: Path) -> None:
    write_jsonl(
        tmp_path / "a.jsonl", [{"rubric_id": "r", "text": "A.", "weight": 2}, {"rubric_id": "r", "text": "B."}]
    )
    with pytest.raises(FormatError, match="'c2' has none") as caught:
        load_rubrics(tmp_path / "a.jsonl")
    assert caught.value.line == 2


def test_texts_are_no_numbers_outside_csv(tmp_path: Path) -> None:
    for row in ({"weight": "2"}, {"veto": "true"}, {"text": 5}):
        write_jsonl(tmp_path / "a.jsonl", [{"rubric_id": "r", "text": "A.", **row}])
        with pytest.raises(FormatError):
            load_rubrics(tmp_path / "a.jsonl")


def test_rubrics_without_ids_or_with_the_same_are_kept_apart(tmp_path: Path) -> None:
    rubrics = [
        Rubric(criteria=(Criterion(id="a", text=f"Is number {n}."),), id=name)
        for n, name in enumerate(["", "x", "x", "rubric-1", ""])
    ]
    for name in ("a.csv", "a.jsonl", "a.json", "a.toml", "a.parquet", "a.yaml", "a.tsv"):
        save_rubrics(rubrics, tmp_path / name, "flat")
        found = load_rubrics(tmp_path / name)
        assert (found.format, list(found.rubrics)) == ("flat", rubrics)
    ids = [row.record["rubric_id"] for row in read_rows(tmp_path / "a.csv")]
    assert len(set(ids)) == 5


def test_a_changed_rubric_is_written_with_its_columns(tmp_path: Path) -> None:
    rubric = load_rubrics(write(tmp_path, TABLE)).rubrics[0]
    changed = rubric.criteria[1].model_copy(update={"weight": 0, "polarity": Polarity.PENALTY, "veto": True})
    rubric = rubric.model_copy(update={"criteria": (rubric.criteria[0], changed)})
    (record,) = dump_rubrics(rubric, "flat")
    assert parse_rubric(record).criteria == rubric.criteria
    save_rubrics(rubric, tmp_path / "b.csv", "flat")
    header = (tmp_path / "b.csv").read_text().splitlines()[0]
    assert header.startswith("rubric_id,prompt,criterion_id,criterion,points,")


def test_parquet_without_our_notes_is_read_too(tmp_path: Path) -> None:
    rows = [
        {"rubric_id": "r", "text": "A.", "weight": 1.0, "veto": None, "tags": ["x"]},
        {"rubric_id": "r", "text": "B.", "weight": 2.0, "veto": True, "tags": None},
    ]
    write_parquet(tmp_path / "a.parquet", rows)
    rubric = load_rubric(tmp_path / "a.parquet")
    assert [(c.veto, c.tags, c.metadata) for c in rubric.criteria] == [(False, ("x",), {}), (True, (), {})]
    save_rubrics(rubric, tmp_path / "b.jsonl", "flat")
    assert [row.record for row in read_rows(tmp_path / "b.jsonl")] == rows


def test_rows_of_other_formats_stay_theirs() -> None:
    assert detect([{"text": "A.", "weight": 1, "polarity": "penalty"}]) == "native"
    assert detect([{"title": "T", "description": "A.", "weight": 1}]) == "rar"
    assert detect([{"criterion": "A.", "points": 1}]) == "healthbench"
    assert detect([{"criterion": "A.", "weight": 1}]) == "tail"
    assert detect([{"criterion": "A.", "weight": 1, "polarity": "penalty"}]) == "flat"
    assert detect([{"description": "A.", "weight": 1, "rubric_id": "r"}]) == "flat"
    assert detect([{"criterion": "A.", "points": 1, "prompt": "p"}]) == "flat"
    assert detect([{"text": "A.", "polarity": "penalty", "source": "s"}]) == "flat"
    assert detect({"rows": [{"text": "A."}]}) == "flat"


def test_rows_of_several_rubrics_are_no_value(tmp_path: Path) -> None:
    rows = [{"rubric_id": "a", "text": "A."}, {"rubric_id": "b", "text": "B."}]
    with pytest.raises(FormatError, match="several rubrics"):
        parse_rubric(rows)
    with pytest.raises(FormatError, match="one field"):
        parse_rubric({"rows": rows, "id": "x"}, format="flat")
    with pytest.raises(FormatError, match="this field is missing"):
        parse_rubric({"criteria": []}, format="flat")


def test_toml_moves_columns_of_tables_in_some_rows_only(tmp_path: Path) -> None:
    criteria: list[object] = [
        {"id": "a", "text": "A.", "kind": "hard_rule"},
        {"id": "b", "text": "B.", "verifier": {"name": "v", "args": {}}, "condition": "if asked"},
    ]
    rubric = parse_rubric({"criteria": criteria, "scope": "task"}, format="native")
    save_rubrics(rubric, tmp_path / "a.toml", "flat")
    assert load_rubric(tmp_path / "a.toml") == rubric


def test_ten_thousand_rows_are_read_in_order(tmp_path: Path) -> None:
    rows = "".join(f"r{n % 100},Is number {n}.,{n}\n" for n in range(10_000))
    found = load_rubrics(write(tmp_path, "rubric_id,text,weight\n" + rows))
    assert [len(rubric) for rubric in found.rubrics] == [100] * 100
    assert found.rubrics[7].criteria[3].weight == 307
    assert found.places[7]["c4"].exact_line() == 309


keys = st.sampled_from(["note", "n", "source"])
values = (
    st.none() | st.integers(-5, 5) | st.sampled_from(["x", "5", "true", "", "[1]", '"q"', "1.10"]) | st.booleans()
)


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rows of one rubric in any of the layouts that people write."""
    text, weight = (
        draw(st.sampled_from(["text", "criterion", "description"])),
        draw(st.sampled_from(["weight", "points"])),
    )
    low = -5 if weight == "points" else 0
    given = draw(
        st.lists(st.sampled_from(["id", weight, "veto", "kind", "tags", "channel", "prompt"]), unique=True)
    )
    makers: dict[str, st.SearchStrategy[object]] = {
        weight: st.integers(low, 5),
        "veto": st.booleans() | st.none(),
        "kind": st.sampled_from(["hard_rule", None]),
        "tags": st.lists(st.sampled_from(["a", "5"]), max_size=2) | st.just('["j"]'),
        "channel": st.sampled_from(["style", "5", ""]),
    }
    found: list[dict[str, object]] = []
    for index in range(draw(st.integers(1, 3))):
        row: dict[str, object] = {"rubric_id": "r"}
        for name in given:
            row[name] = draw(makers[name]) if name in makers else f"{name}{index}" if name == "id" else "p"
        found.append(row | {text: draw(st.sampled_from(["A.", "5", "[x"]))} | draw(st.dictionaries(keys, values)))
    return found


@given(rows())
def test_rows_come_back_as_they_were(table: list[dict[str, object]]) -> None:
    rubric = parse_rubric(table, format="flat")
    (record,) = dump_rubrics(rubric, "flat")
    assert record == {"rows": table}
    assert [list(row) for row in table if set(row) == set(table[0])][0] == list(table[0])
    assert parse_rubric(record, format="flat") == rubric
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric
