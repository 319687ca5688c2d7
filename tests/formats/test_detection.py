"""Detection: every sample looks like its own format and like no other, however it is stored."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from format_samples import LISTS, RECORDS, TEXTS

from rubricate.data.io import Row, write_json, write_jsonl, write_text
from rubricate.errors import FormatError
from rubricate.rubrics.formats import detect, formats, load_rubrics, parse_rubric, rubric_from_row
from rubricate.rubrics.formats.base import candidates

SAMPLES = [(name, record) for name, records in RECORDS.items() for record in records]
VALUES: list[tuple[str, object]] = [*SAMPLES, *LISTS.items(), *TEXTS.items()]
IDS = [f"{name}-{type(value).__name__}-{index}" for index, (name, value) in enumerate(VALUES)]


def test_there_is_a_sample_of_every_format() -> None:
    assert sorted(RECORDS) == formats()


@pytest.mark.parametrize(("name", "value"), VALUES, ids=IDS)
def test_a_sample_looks_like_its_format_and_no_other(name: str, value: object) -> None:
    assert candidates(value) == [name]
    assert detect(value) == name
    assert parse_rubric(value) == parse_rubric(value, format=name)


@pytest.mark.parametrize(("name", "value"), VALUES, ids=IDS)
def test_a_sample_in_a_column_is_found(name: str, value: object, tmp_path: Path) -> None:
    for stored in (value, value if isinstance(value, str) else json.dumps(value)):
        row: dict[str, object] = {"number": 1, "response": "r", "rubric": stored}
        found = rubric_from_row(Row("a.jsonl", 1, row))
        assert found is not None
        assert found.criteria == parse_rubric(value).criteria
        write_jsonl(tmp_path / "a.jsonl", [row])
        loaded = load_rubrics(tmp_path / "a.jsonl")
        assert loaded.rubrics[0].criteria == found.criteria


@pytest.mark.parametrize(("name", "record"), SAMPLES)
def test_a_row_that_is_a_record_gives_its_rubric(name: str, record: dict[str, object]) -> None:
    more: dict[str, object] = {} if name == "flat" else {"answered_by": "m"}  # the rows are a flat record's all
    for row in (Row("a.jsonl", 1, more | record), Row("a.jsonl", 1, record | more)):
        found = rubric_from_row(row)
        assert found is not None
        assert found.fingerprint == parse_rubric(record).fingerprint


@pytest.mark.parametrize(("name", "record"), SAMPLES)
def test_more_columns_change_nothing(name: str, record: dict[str, object]) -> None:
    more: dict[str, object] = {"id": 7, "source": "s", "response": "r", "score": 0.5, "tags": ["x"], "model": "m"}
    assert candidates({**more, **record}) == ([] if name == "flat" else [name])


@pytest.mark.parametrize(("name", "values"), LISTS.items())
def test_rows_that_are_criteria_are_found(name: str, values: list[object], tmp_path: Path) -> None:
    for file, write in (("a.jsonl", write_jsonl), ("a.json", write_json)):
        write(tmp_path / file, values)  # pyright: ignore[reportArgumentType] - the values are records
        found = load_rubrics(tmp_path / file)
        assert (found.format, len(found.rubrics)) == (name, 1)


@pytest.mark.parametrize(("name", "text"), TEXTS.items())
def test_a_text_file_is_a_rubric(name: str, text: str, tmp_path: Path) -> None:
    for file in ("a.txt", "a.md"):
        write_text(tmp_path / file, text + "\n")
        found = load_rubrics(tmp_path / file)
        assert found.format == name
        assert found.rubrics[0].criteria == parse_rubric(text).criteria


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("openrubrics", "[Hard Rule] Be polite.", "list"),
        ("rlcf", "[1] Is it polite?", "importance|item|question"),
        ("prometheus", "[Is it right?]\nScore 1: no", "Score 5"),
        ("prometheus", "{Is it right?}", "Score 5"),
    ],
)
def test_a_text_that_is_no_rubric_gets_the_error_of_its_format(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    write_text(tmp_path / "a.txt", text)
    with pytest.raises(FormatError, match=words) as caught:
        load_rubrics(tmp_path / "a.txt", format=name)
    assert "JSON" not in str(caught.value)
    with pytest.raises(FormatError, match="the text is no JSON that can be read"):
        parse_rubric('[{"text": ', format=name)


def test_a_text_file_without_a_rubric_is_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "Be polite.\nBe short.\n")
    with pytest.raises(FormatError, match="split into criteria") as caught:
        load_rubrics(tmp_path / "a.txt")
    assert caught.value.source == str(tmp_path / "a.txt")


def test_pairs_are_a_checklist_of_rlcf(tmp_path: Path) -> None:
    asked: list[tuple[str, float]] = [("Does it name scattering?", 100), ("Is it short?", 40)]
    pairs: list[object] = [list(pair) for pair in asked]
    (tmp_path / "a.json").write_text(json.dumps(pairs))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    assert candidates(pairs) == ["rlcf"]
    for rubric in (
        parse_rubric(pairs),
        parse_rubric(json.dumps(pairs)),
        parse_rubric({"prompt": "p", "rubric": pairs}),
        *load_rubrics(tmp_path / "a.json").rubrics,
        *load_rubrics(tmp_path / "a.jsonl").rubrics,
        *load_rubrics(tmp_path / "a.jsonl", format="rlcf").rubrics,
    ):
        assert [(c.text, c.weight) for c in rubric.criteria] == asked
    with pytest.raises(FormatError, match="the text 'high'") as caught:
        parse_rubric([*pairs, ["Is it right?", "high"]])
    assert caught.value.field == "[2][1]"
    assert candidates(["Is it short?", "Is it right?"]) == ["native"]
    assert candidates([["Is it short?", "Is it right?"]]) == []


def test_files_of_two_formats_are_told_apart(tmp_path: Path) -> None:
    samples = [(name, records[0]) for name, records in RECORDS.items() if name != "flat"]
    for (one, first), (other, second) in itertools.combinations(samples, 2):
        write_jsonl(tmp_path / "a.jsonl", [first, second])
        with pytest.raises(FormatError, match=f"looks like {other}, the rows before it like {one}") as caught:
            load_rubrics(tmp_path / "a.jsonl")
        assert caught.value.line == 2
