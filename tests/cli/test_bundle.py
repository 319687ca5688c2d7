"""Scoring with a saved judge: its model, options and calibration come from the folder, and nothing else may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Write

from rubricate.chat import connect
from rubricate.judges import LogprobJudge
from rubricate.judges.bundle import save_bundle
from rubricate.judges.calibrated import Calibrated
from rubricate.judges.calibration import fit_calibration

CRITERIA = [
    {"id": "kind", "text": "Is kind."},
    {"id": "short", "text": "Short.", "verifier": {"name": "words", "args": {"max": 5}}},
]
ROW = {"prompt": "Write.", "response": "Dear Sir.", "rubric": {"criteria": CRITERIA}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    judge = LogprobJudge(connect("mock:p=0.8"))
    probabilities, labels = [0.8, 0.6] * 20, [True, False, True, False, False, False, True, True] * 5
    calibration = fit_calibration(judge, probabilities, labels)
    return save_bundle(Calibrated(judge, calibration), tmp_path / "strict").path


def verdicts(path: Path) -> dict[str, float]:
    (line,) = path.read_text(encoding="utf-8").splitlines()
    return {verdict["criterion_id"]: verdict["score"] for verdict in json.loads(line)["verdicts"]}


def test_a_saved_judge_scores_as_it_was_calibrated(saved: Path, write: Write, run: Run, tmp_path: Path) -> None:
    data = write("d.jsonl", ROW)
    dry = run("score", data, "--judge", f"bundle:{saved}", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "calls, without retries" in dry.stdout
    result = run("score", data, "--judge", f"bundle:{saved}", "--out", tmp_path / "o.jsonl", "--cache", "--quiet")
    assert result.exit_code == 0, result.output
    found = verdicts(tmp_path / "o.jsonl")
    assert found["short"] == 1.0  # by code
    assert 0.0 < found["kind"] < 0.8  # the model says 0.8, the calibration knows better


@pytest.mark.parametrize("option", [("--mode", "reasoned"), ("--view", "trajectory"), ("--criteria-per-call", "2")])
def test_what_the_folder_settles_is_refused(option: tuple[str, str], saved: Path, write: Write, run: Run) -> None:
    result = run("score", write("d.jsonl", ROW), "--judge", f"bundle:{saved}", *option)
    assert result.exit_code == 2
    assert "a bundle holds its own" in result.stderr and "--mode" in result.stderr


def test_a_folder_that_was_changed_is_refused(saved: Path, write: Write, run: Run) -> None:
    prompt = saved / "prompt.jinja2"
    prompt.write_text(prompt.read_text(encoding="utf-8") + "\n{# more #}\n", encoding="utf-8")
    result = run("score", write("d.jsonl", ROW), "--judge", f"bundle:{saved}")
    assert result.exit_code == 2
    assert "prompt.jinja2" in result.stderr


def test_an_unknown_name_is_refused(write: Write, run: Run) -> None:
    result = run("score", write("d.jsonl", ROW), "--judge", "bundle:nowhere")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
