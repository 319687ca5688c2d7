"""Files of rubrics: detection, mixed files, rubric columns, conversion, and what is lost on the way."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rubricate.data.io import Row, read_rows, write_jsonl, write_parquet
from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import (
    convert,
    detect,
    dump_rubrics,
    formats,
    get_format,
    load_rubric,
    load_rubrics,
    parse_rubric,
    register_format,
    rubric_from_row,
    save_rubrics,
)

RAR: dict[str, object] = {
    "question": "q",
    "rubric": [{"title": "T", "description": "Essential Criteria: d.", "weight": -2}],
}
HEALTH: dict[str, object] = {
    "prompt": [{"role": "user", "content": "p"}],
    "rubrics": [{"criterion": "c", "points": -3, "tags": []}],
}


ALL = """
    advancedif drtulu flat healthbench multichallenge native openinstruct openrubrics paperbench prometheus rar rbr
    rlcf rubrichub rubricjudge tail
"""


def test_the_formats_are_known() -> None:
    assert formats() == ALL.split()
    with pytest.raises(ConfigError, match="did you mean healthbench"):
        get_format("healthbnech")
    with pytest.raises(ConfigError, match="exists already"):
        register_format(dataclasses.replace(get_format("rar"), name="native"))


def test_what_fits_none_or_several_is_refused() -> None:
    with pytest.raises(FormatError, match="the fields name, score") as caught:
        detect({"name": "x", "score": 3})
    assert all(name in caught.value.hint for name in formats())
    with pytest.raises(FormatError, match="healthbench, rar") as caught:
        detect(RAR | HEALTH)
    assert "format='healthbench'" in caught.value.hint
    nothing: list[object] = [3, None, [], {}, [[]]]
    for value in nothing:
        with pytest.raises(FormatError, match="no known rubric format"):
            parse_rubric(value)
    with pytest.raises(FormatError, match="split into criteria"):
        parse_rubric("The answer should be polite.")
    assert parse_rubric(RAR | HEALTH, format="rar").ids == ("t",)


def test_rows_of_different_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [RAR, RAR, HEALTH])
    with pytest.raises(FormatError, match="looks like healthbench, the rows before it like rar") as caught:
        load_rubrics(path)
    assert caught.value.line == 3
    with pytest.raises(FormatError) as caught:
        load_rubrics(path, format="rar")
    assert (caught.value.line, caught.value.field) == (3, "rubrics[0].weight")


def test_rows_that_are_criteria_make_one_rubric(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"text": "one", "weight": 2}, {"id": "x", "text": "two"}])
    found = load_rubrics(tmp_path / "a.jsonl")
    assert [rubric.ids for rubric in found.rubrics] == [("c1", "x")]
    assert "2" in found.notes[0].message
    (tmp_path / "b.yaml").write_text("- Is polite.\n- Is short.\n")
    assert [c.text for c in load_rubric(tmp_path / "b.yaml").criteria] == ["Is polite.", "Is short."]
    (tmp_path / "c.jsonl").write_text('{"text": "one"}\n{"text": "two", "weight": -1}\n')
    with pytest.raises(FormatError) as caught:
        load_rubrics(tmp_path / "c.jsonl")
    assert (caught.value.line, caught.value.field) == (2, "[1].weight")


def test_bad_weights_of_a_file_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"id": "a", "weight": NaN}, {"id": "b", "weight": -2}, {"id": "c", "weight": 1e999}]')
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert caught.value.detail == "weight must be finite numbers: 'a' has NaN, 'c' has Infinity"


def test_public_cases_of_weights(shared: Callable[[str], Path], tmp_path: Path) -> None:
    checked = 0
    for row in read_rows(shared("judge_outputs") / "cases.jsonl"):
        case = json.loads(json.dumps(row.record))  # untyped from here on
        if case["input"]["schema"] != "rubric_load":
            continue
        path = tmp_path / f"{case['id']}.{case['input']['format']}"
        path.write_text(case["input"]["rubric_text"])
        with pytest.raises(FormatError) as caught:
            load_rubrics(path)
        bad = caught.value.detail.split(": ", 1)[1]
        accepted = [case["expected"]["bad"], case["expected"].get("or", {}).get("bad")]
        assert [part.split("'")[1] for part in bad.split(", ")] in accepted
        checked += 1
    assert checked == 2


def test_a_rubric_in_a_column_keeps_the_other_columns(tmp_path: Path) -> None:
    native = json.dumps([{"text": "Is polite."}])
    write_parquet(tmp_path / "a.parquet", [{"prompt": "p", "rubric": native}])
    (rubric,) = load_rubrics(tmp_path / "a.parquet").rubrics
    assert (rubric.ids, rubric.metadata) == (("c1",), {"prompt": "p"})
    broken = [{"prompt": "p", "rubric": native}, {"prompt": "q", "rubric": '[{"text": 3}]'}]
    write_parquet(tmp_path / "b.parquet", broken)
    with pytest.raises(FormatError) as caught:
        load_rubrics(tmp_path / "b.parquet", format="native")
    assert (caught.value.line, caught.value.field) == (2, "rubric[0].text")


def test_numbers_that_are_none_are_refused_in_the_other_columns_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for column, number in (("score", "NaN"), ("usage", '{"cost": [1, -Infinity]}')):
        path.write_text(f'{{"rubric": ["Is polite."], "{column}": {number}}}\n')
        with pytest.raises(FormatError, match="is not a number|no number|not a number") as caught:
            load_rubrics(path)
        assert (caught.value.line, caught.value.field.split(".")[0]) == (1, column)


def test_rubrics_of_rows_that_are_scored() -> None:
    row = Row("a.jsonl", 3, {"prompt": "p", "response": "r", "rubric": RAR["rubric"]})
    rubric = rubric_from_row(row)
    assert rubric is not None
    assert (rubric.ids, rubric.metadata) == (("t",), {})
    assert rubric_from_row(Row("a.jsonl", 3, {"prompt": "p", "response": "r", "rubric": None})) is None
    with pytest.raises(FormatError) as caught:
        rubric_from_row(Row("a.jsonl", 3, {"rubric": [{"text": "t", "weight": -1}]}))
    assert (caught.value.line, caught.value.field) == (3, "rubric[0].weight")


def test_parquet_of_a_data_set(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", [RAR, RAR])
    found = load_rubrics(tmp_path / "a.parquet")
    assert (found.format, dump_rubrics(found.rubrics, "rar")) == ("rar", [RAR, RAR])


def test_one_rubric_is_wanted(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [RAR, RAR])
    with pytest.raises(FormatError, match="found 2"):
        load_rubric(tmp_path / "a.jsonl")


RICH = Rubric(
    criteria=(
        Criterion(id="a", text="A.", veto=True, condition="if asked"),
        Criterion(id="b", text="B.", veto=True, polarity=Polarity.PENALTY),
    ),
    version="3",
)


@pytest.mark.parametrize("name", ["rar", "healthbench"])
def test_what_would_be_lost_is_refused_or_noted(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(FormatError, match=r"veto \(a, b\); condition \(a\); version \(3\)"):
        save_rubrics(RICH, path, name)
    assert not path.exists()
    notes = save_rubrics(RICH, path, name, lossy=True)
    assert [note.kind for note in notes] == ["lossy"]
    assert [c.polarity for c in load_rubric(path).criteria] == [Polarity.REWARD, Polarity.PENALTY]


def test_metadata_that_has_the_name_of_a_field_is_no_field() -> None:
    rubric = parse_rubric([{"text": "t", "metadata": {"points": 3, "weight": 4}}])
    with pytest.raises(FormatError, match=r"metadata\.points"):
        dump_rubrics(rubric, "healthbench")
    with pytest.raises(FormatError, match=r"metadata\.weight"):
        dump_rubrics(rubric, "rar")


def test_a_penalty_without_weight_has_no_sign() -> None:
    rubric = parse_rubric([{"text": "t", "weight": 0, "polarity": "penalty"}])
    for name in ("rar", "healthbench"):
        with pytest.raises(FormatError, match="polarity of weight 0"):
            dump_rubrics(rubric, name)


def test_convert_and_back(tmp_path: Path) -> None:
    source, native, back = tmp_path / "a.json", tmp_path / "b.yaml", tmp_path / "c.jsonl"
    source.write_text(json.dumps([RAR]))
    done = convert(source, native)
    assert (done.count, done.read_as, done.written_as, done.notes) == (1, "rar", "native", ())
    convert(native, back, to_format="rar")
    assert [row.record for row in read_rows(back)] == [RAR]


def test_the_prompt_moves_to_the_column_of_the_target(tmp_path: Path) -> None:
    source, target = tmp_path / "a.json", tmp_path / "b.jsonl"
    source.write_text(json.dumps(RAR))
    convert(source, target, to_format="healthbench", lossy=True)
    (row,) = read_rows(target)
    assert row.record["prompt"] == [{"role": "user", "content": "q"}]
    assert "question" not in row.record
    source.write_text(json.dumps(HEALTH))
    convert(source, target, to_format="rar")
    (row,) = read_rows(target)
    assert row.record == {"question": "p", "rubric": [{"description": "c", "weight": -3}]}
    turns = [{"role": "user", "content": "p"}, {"role": "assistant", "content": "a"}]
    source.write_text(json.dumps(HEALTH | {"prompt": turns}))
    convert(source, target, to_format="rar")
    (row,) = read_rows(target)
    assert row.record["prompt"] == turns


def test_a_failed_conversion_writes_nothing(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [RAR, RAR | {"rubric": [{"description": "d", "weight": "1"}]}])
    with pytest.raises(FormatError, match="the text '1'"):
        convert(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()
