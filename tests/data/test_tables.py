"""Tables: CSV cells that hold more than texts, and Parquet that gives back exactly what was written."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubricate.data.cells import Cell, read_cells, settled, written_cells
from rubricate.data.io import read_rows, write_csv, write_parquet
from rubricate.data.writing import json_text
from rubricate.errors import FormatError
from rubricate.narrow import as_object

# A loaded machine is no fault of the code; each example writes its own file over the last one.
relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        ("n", "5", 5),
        ("n", "-0.5", -0.5),
        ("n", "true", True),
        ("n", "null", None),
        ("n", "True", "True"),
        ("n", "007", "007"),
        ("n", "1.10", "1.10"),
        ("n", "1e3", "1e3"),
        ("n", "nan", "nan"),
        ("n", "NaN", "NaN"),
        ("n", "9" * 5000, "9" * 5000),
        ("n", " [1, 2]", [1, 2]),
        ("n", '{"a": null}', {"a": None}),
        ("n", "[draft] text", "[draft] text"),
        ("n", '"quoted"', '"quoted"'),
        ("n", '"5"', "5"),
        ("n", '"\\"5\\""', '"5"'),
        ("n", '""', ""),
        ("n", '"', '"'),
        ("weight", "1e3", 1000.0),
        ("weight", " 2", 2),
        ("points", "-2", -2),
        ("weight", "nan", "nan"),
        ("weight", "true", True),
        ("prompt", "5", "5"),
        ("prompt", "null", "null"),
        ("prompt", '[{"role": "user"}]', [{"role": "user"}]),
        ("id", "5", 5),
        ("prompt_id", "5.0", 5.0),
        ("text", "[1]", "[1]"),
        ("text", "5", "5"),
        ("text", '""', ""),
        ("text", '"a"', '"a"'),
    ],
)
def test_what_a_cell_holds(column: str, cell: str, value: object) -> None:
    found = settled(read_cells({column: cell}, ["text"])[column])
    assert (found, type(found)) == (value, type(value))


def test_numbers_stay_texts_until_nobody_wants_a_text() -> None:
    cells = read_cells({"note": "5", "gone": "", "id": "5", "weight": "5"})
    assert cells == {"note": "5", "id": 5, "weight": 5}
    assert isinstance(cells["note"], Cell)
    assert settled({"a": [cells["note"]]}) == {"a": [5]}
    assert str(Cell("x")) == "x"


def test_json_that_is_not_allowed_is_named() -> None:
    with pytest.raises(FormatError, match="occurs twice") as caught:
        read_cells({"rubric": '[{"a": 1, "a": 2}]'})
    assert caught.value.field == "rubric.a"
    with pytest.raises(FormatError, match="nested too deeply") as caught:
        read_cells({"rubric": "[" * 100_000})
    assert caught.value.field == "rubric"


def test_numbers_in_columns_of_texts_cannot_be_written() -> None:
    assert written_cells({"prompt": 5, "text": 5, "note": 5, "input": None}, ["text"])[1] == [
        "prompt",
        "text",
        "input",
    ]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [
        "5",
        "true",
        '"5"',
        '""',
        "",
        "[1]",
        "{",
        " 1",
        "1.10",
        "a\r\nb",
        "\r",
        ",",
        "\ufeff",
        " x ",
        '"',
        "null",
        "1e3",
    ]
)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
names = st.sampled_from(["id", "weight", "note", "x,y", 'q"', "n\n", "text", "prompt", "\ufeffb", "rubric_id", "c"])


def exact(value: object) -> str:
    return json.dumps(value, sort_keys=True)


@relaxed
@given(st.dictionaries(names, values, max_size=4))
def test_cells_give_back_what_was_written(record: dict[str, object]) -> None:
    cells, lost = written_cells(record, ["text"])
    found = settled(read_cells(cells, ["text"]))
    held = {name: value for name, value in record.items() if name not in lost}
    if isinstance(held.get("text"), list | dict):
        held["text"] = json_text(held["text"])  # a column of texts holds the JSON of anything else
    assert exact(found) == exact(held)


@relaxed
@given(st.dictionaries(names, texts, max_size=4))
def test_cells_of_others_are_written_as_they_were(row: dict[str, str]) -> None:
    found = settled(read_cells(row))
    again = settled(read_cells(written_cells(as_object(found) or {})[0]))
    assert exact(again) == exact(found)


@relaxed
@given(
    rows=st.lists(
        st.dictionaries(names.filter(lambda n: n == n.strip()), texts, min_size=1), min_size=1, max_size=3
    )
)
def test_csv_gives_back_its_texts(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path_factory.getbasetemp() / f"texts{ending}"
        assert write_csv(path, rows, delimiter=delimiter) == len(rows)
        wanted = [{name: row.get(name, "") for name in columns} for row in rows]
        assert [row.record for row in read_rows(path)] == wanted


def test_long_cells_are_read(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", [{"a": "x" * 500_000}])
    assert [len(str(row.record["a"])) for row in read_rows(tmp_path / "a.csv")] == [500_000]


def test_what_csv_cannot_hold_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    bad: list[tuple[dict[str, object], str]] = [
        ({"a": float("nan")}, "NaN"),
        ({" a": 1}, "the name ' a'"),
        ({"": 1}, "the name ''"),
        ({"a": "cut \ud83d"}, "surrogate"),
        ({}, "at least one column"),
    ]
    for record, words in bad:
        with pytest.raises(FormatError, match=words):
            write_csv(path, [record])
    assert not path.exists()


@relaxed
@given(
    rows=st.lists(st.dictionaries(st.sampled_from("abc"), values, min_size=1, max_size=3), min_size=1, max_size=4)
)
def test_exact_parquet_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "exact.parquet"
    write_parquet(path, rows, exact=True)
    assert [exact(row.record) for row in read_rows(path)] == [exact(row) for row in rows]


def test_exact_parquet_keeps_what_arrow_can_hold_as_columns(tmp_path: Path) -> None:
    parquet = importlib.import_module("pyarrow.parquet")

    rows: list[dict[str, object]] = [{"id": "a", "items": [{"n": 1, "t": "x"}], "odd": 1}]
    rows.append({"id": "b", "items": [], "odd": "1"})
    write_parquet(tmp_path / "a.parquet", rows, exact=True)
    schema = parquet.read_schema(tmp_path / "a.parquet")
    assert [str(schema.field(name).type) for name in ("id", "odd")] == ["string", "string"]
    assert str(schema.field("items").type).startswith("list<")
    assert [row.record for row in read_rows(tmp_path / "a.parquet")] == rows


def test_broken_json_in_such_a_column_is_named(tmp_path: Path) -> None:
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")

    table = arrow.table({"odd": ["1", "{"]})
    note = {b"rubricate.layout": b'{"json": ["odd"]}'}
    parquet.write_table(table.replace_schema_metadata(note), tmp_path / "a.parquet")
    with pytest.raises(FormatError, match="JSON texts") as caught:
        list(read_rows(tmp_path / "a.parquet"))
    assert (caught.value.line, caught.value.field) == (2, "odd")
    broken = table.replace_schema_metadata({b"rubricate.layout": b"no json"})
    parquet.write_table(broken, tmp_path / "b.parquet")
    assert [row.record for row in read_rows(tmp_path / "b.parquet")] == [{"odd": "1"}, {"odd": "{"}]
