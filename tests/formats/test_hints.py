"""Mistakes that people make often, and what the errors tell them to do."""

from __future__ import annotations

import decimal
import json
from pathlib import Path

import pytest

from rubricate.errors import FormatError
from rubricate.rubrics.formats import load_rubric, load_rubrics, parse_rubric, save_rubrics


def refused(value: object, **options: str) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_rubric(value, **options)  # pyright: ignore[reportArgumentType] - the options are texts
    return caught.value


def native(**fields: object) -> FormatError:
    return refused({"criteria": [{"id": "a", "text": "x", **fields}]})


def test_problems_are_counted_once() -> None:
    assert "more problem" not in str(native(polarity="negative"))
    assert str(native(polarity="negative", kind="x")).count("(and 1 more problem)") == 1
    assert "(and 2 more problems)" in str(native(polarity="negative", kind="x", importance="y"))
    assert "at least 1 item" not in str(native(scale={"type": "ordinal", "levels": []}))


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"scale": ["bad", "ok"]}, '{"type": "numeric", "low": 0, "high": 10}'),
        ({"scale": {"min": 0, "max": 10}}, '{"type": "numeric", "low": 0, "high": 10}'),
        ({"scale": {"type": "ordinal", "levels": ["bad", "ok"]}}, '{"label": "bad", "value": 0}'),
        ({"verifier": "words"}, '{"name": "words", "args": {"max": 20}}'),
        ({"verifier": {"name": "words", "max": 20}}, '{"name": "words", "args": {"max": 20}}'),
    ],
)
def test_fields_that_are_objects_have_an_example(fields: dict[str, object], hint: str) -> None:
    error = native(**fields)
    assert hint in error.hint
    shown = error.hint.removeprefix("such as ").split(", or ")
    name = next(iter(fields))
    for example in shown:
        assert parse_rubric([{"text": "x", name: json.loads(example)}])


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ({"criterion": [{"text": "x"}]}, "'criteria' by 'criterion'"),
        ({"Criterion": "x", "Points": 5}, "'criterion' by 'Criterion', 'points' by 'Points'"),
        ({"Text": "x", "Weight": 5}, "'text' by 'Text', 'weight' by 'Weight'"),
        ({"rubrics": [{"criterion": "x", "point": 5}]}, "'points' by 'point'"),
        ("1) Short? (100/100)\n2) Snow? (importance: 60)", "end it with (importance: 75/100)"),
        ("1. Short\n2. Right", "[Hard Rule] or [Principle] (openrubrics)"),
        ({"ground_truth": "{'query': 'q', 'rubrics': []}"}, "double quotes around keys"),
    ],
)
def test_names_that_were_meant_are_suggested(value: object, hint: str) -> None:
    assert hint in refused(value).hint


def test_a_weight_that_is_not_there() -> None:
    assert "'c1' has none" in str(refused({"rubrics": [{"criterion": "x", "point": 5}]}))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "text;weight\nx;1,5\n", "separated by semicolons, not commas"),
        ("a.csv", "sep=;\ntext;weight\nx;1\n", "separated by semicolons, not commas"),
        ("a.csv", "text\tweight\nx\t1\n", "separated by tabs, not commas"),
        ("a.tsv", "text;weight\nx;1\n", "separated by semicolons, not tabs"),
        ("a.csv", "text,weight,,\nx,1,,\n", "column 3 has no name"),
    ],
)
def test_tables_of_spreadsheets(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=words) as caught:
        load_rubrics(tmp_path / name)
    assert caught.value.line == 1
    assert caught.value.hint


def test_decimals_and_repeated_columns_of_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    weights = arrow.array([decimal.Decimal("1.5"), decimal.Decimal("0.10")])
    parquet.write_table(arrow.table({"text": ["A.", "B."], "weight": weights}), tmp_path / "a.parquet")
    assert [c.weight for c in load_rubric(tmp_path / "a.parquet").criteria] == [1.5, 0.1]
    twice = arrow.table([arrow.array(["A."]), arrow.array(["B."])], names=["text", "text"])
    parquet.write_table(twice, tmp_path / "b.parquet")
    with pytest.raises(FormatError, match="two columns have this name") as caught:
        load_rubrics(tmp_path / "b.parquet")
    assert caught.value.field == "text"


@pytest.mark.parametrize("number", ["010", "1:30", "-1:30.5", "1_0:00"])
def test_numbers_that_yaml_reads_in_two_ways(tmp_path: Path, number: str) -> None:
    (tmp_path / "a.yaml").write_text(f"- text: Is short.\n  weight: {number}\n")
    with pytest.raises(FormatError, match="is another number in YAML 1.1") as caught:
        load_rubrics(tmp_path / "a.yaml")
    assert (caught.value.line, caught.value.field.endswith("weight")) == (2, True)
    (tmp_path / "a.yaml").write_text(f"- text: '{number}'\n  weight: 10\n- text: b\n  weight: 0.5\n")
    assert [c.weight for c in load_rubric(tmp_path / "a.yaml").criteria] == [10, 0.5]


def test_numbers_in_the_column_idx_stay_numbers_in_csv(tmp_path: Path) -> None:
    record: dict[str, object] = {"idx": 1, "criteria": "Is it right?"}
    record |= {f"score{level}_description": "." for level in range(1, 6)}
    save_rubrics(parse_rubric(record), tmp_path / "a.csv", "prometheus")
    assert load_rubric(tmp_path / "a.csv").metadata == {"idx": 1}


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "x.json").symlink_to("gone.json")
    with pytest.raises(FormatError, match="link to a file that is not there") as caught:
        load_rubrics(tmp_path / "x.json")
    assert "gone.json" in caught.value.hint


def test_rows_are_counted_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rubric_id,text\nr,A.\nr,B.\n")
    (note,) = load_rubrics(tmp_path / "a.csv").notes
    assert note.message == "2 rows are criteria of 1 rubric"
