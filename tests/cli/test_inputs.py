"""Inputs: rubrics from a file, a column, or both; groups; a survey that finds what is wrong before any call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from rubricate.cli.checks import RubricCheck
from rubricate.cli.inputs import Inputs
from rubricate.errors import FormatError, RubricateError
from rubricate.judges import build_judge
from rubricate.rewardmodels import preset

CODE = {"id": "short", "text": "Short.", "channel": "format", "verifier": {"name": "words", "args": {"max": 5}}}
ASKED = {"id": "kind", "text": "Kind.", "channel": "style"}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rubric_file(path: Path, *criteria: object) -> Path:
    path.write_text(json.dumps({"id": "r", "criteria": list(criteria)}), encoding="utf-8")
    return path


def test_a_group_is_one_row_of_several_responses(tmp_path: Path) -> None:
    data = write(
        tmp_path / "d.jsonl",
        {"id": "a", "prompt": "p", "responses": ["x", "y"], "rubric": {"criteria": [CODE]}},
        {"id": "b", "prompt": "p", "response": "z", "rubric": {"criteria": [CODE, ASKED]}},
    )
    units = list(Inputs(data))
    assert [(unit.number, unit.line, unit.rollout.id) for unit in units] == [
        (0, 1, "a#0"),
        (1, 1, "a#1"),
        (2, 2, "b"),
    ]
    survey = Inputs(data).survey()
    assert (survey.rows, survey.responses, survey.code, survey.model) == (2, 3, 3, 1)
    assert list(survey.channels) == ["format", "style"]


def test_file_and_column_add_up(tmp_path: Path) -> None:
    data = write(tmp_path / "d.jsonl", {"prompt": "p", "response": "x", "mine": {"criteria": [ASKED]}})
    rubric = rubric_file(tmp_path / "r.json", CODE)
    assert next(iter(Inputs(data, rubric=rubric, column="mine"))).rubric.ids == ("short", "kind")
    assert next(iter(Inputs(data, rubric=rubric))).rubric.ids == ("short",)


def test_no_rubric_names_line_and_columns(tmp_path: Path) -> None:
    data = write(tmp_path / "d.jsonl", {"prompt": "p", "response": "x", "note": 1})
    with pytest.raises(FormatError, match="d.jsonl:1") as caught:
        list(Inputs(data))
    assert "--rubric" in caught.value.hint and "note" in caught.value.hint


def test_a_missing_column_names_line_and_field(tmp_path: Path) -> None:
    rows = [{"prompt": "p", "response": "x", "mine": {"criteria": [ASKED]}}, {"prompt": "p", "response": "x"}]
    with pytest.raises(FormatError, match=r"d.jsonl:2, field 'mine'"):
        list(Inputs(write(tmp_path / "d.jsonl", *rows), column="mine"))


def test_columns_can_be_chosen_and_rows_limited(tmp_path: Path) -> None:
    rows = [{"ask": f"p{n}", "say": "x"} for n in range(5)]
    data = write(tmp_path / "d.jsonl", *rows)
    inputs = Inputs(
        data, rubric=rubric_file(tmp_path / "r.json", CODE), columns={"prompt": "ask", "response": "say"}, limit=2
    )
    assert [unit.rollout.prompt for unit in inputs] == ["p0", "p1"]


@pytest.mark.parametrize(
    ("criterion", "says"),
    [
        ({**CODE, "verifier": {"name": "wrods"}}, "wrods"),
        ({**CODE, "verifier": {"name": "words", "args": {"max": "many"}}}, "'short'"),
        ({**CODE, "verifier": {"name": "words", "args": {"maximum": 3}}}, "maximum"),
        ({**CODE, "weight": 0}, "weight"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_found_in_the_survey(tmp_path: Path, criterion: object, says: str) -> None:
    data = write(
        tmp_path / "d.jsonl",
        {"prompt": "p", "response": "x", "rubric": {"criteria": [CODE]}},
        {"prompt": "p", "response": "x", "rubric": {"criteria": [criterion]}},
    )
    with pytest.raises(RubricateError, match=says) as caught:
        Inputs(data).survey(check=RubricCheck(build_judge(None), preset("weighted")))
    assert "d.jsonl:2" in caught.value.message


def test_gold_labels_go_with_their_responses(tmp_path: Path) -> None:
    rubric = {"criteria": [ASKED]}
    data = write(
        tmp_path / "d.jsonl",
        {"prompt": "p", "responses": ["x", "y"], "rubric": rubric, "gold": [{"kind": True}, {"kind": False}]},
        {"prompt": "p", "response": "x", "rubric": rubric, "gold": {"kind": True}},
        {"prompt": "p", "response": "x", "rubric": rubric, "gold": "an answer"},
        {"prompt": "p", "response": "x", "rubric": rubric},
    )
    assert [unit.gold for unit in Inputs(data)] == [{"kind": True}, {"kind": False}, {"kind": True}, None, None]


def test_a_null_rubric_is_called_null(tmp_path: Path) -> None:
    data = write(tmp_path / "d.jsonl", {"prompt": "p", "response": "x", "rubric": None})
    for inputs in (Inputs(data), Inputs(data, column="rubric")):
        with pytest.raises(FormatError, match=r"d.jsonl:1, field 'rubric': the column is null"):
            list(inputs)


def test_a_fault_in_the_shared_rubric_is_not_blamed_on_the_data(tmp_path: Path, run: Run) -> None:
    data = write(tmp_path / "d.jsonl", {"prompt": "p", "response": "x", "mine": {"criteria": [ASKED]}})
    rubric = rubric_file(tmp_path / "r.json", {**CODE, "verifier": {"name": "word"}})
    for more in ((), ("--rubric-column", "mine")):
        result = run("score", data, "--rubric", rubric, "--judge", "none", *more)
        assert result.exit_code == 2
        assert "r.json: criterion 'short': there is no verifier named 'word'" in result.stderr
        assert "d.jsonl" not in result.stderr


def test_a_fault_in_a_rows_own_rubric_is_still_that_rows(tmp_path: Path, run: Run) -> None:
    bad = {"criteria": [{**CODE, "id": "mine", "verifier": {"name": "word"}}]}
    data = write(tmp_path / "d.jsonl", {"prompt": "p", "response": "x", "mine": bad})
    rubric = rubric_file(tmp_path / "r.json", CODE)
    result = run("score", data, "--rubric", rubric, "--rubric-column", "mine", "--judge", "none")
    assert result.exit_code == 2
    assert "d.jsonl:1, field 'rubric': criterion 'mine'" in result.stderr
    assert "--import" in result.stderr
