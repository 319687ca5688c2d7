"""`rubricate train sft`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.training.conftest import WriteRows
from typer.testing import CliRunner

from rubricate.cli.train_command import train_app

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

QUICK = ["run.max_steps=2", "run.eval_every=2", "run.log_every=1", "data.sheets=3", "data.max_tokens=4000"]


def sets(*changes: str) -> list[str]:
    return [part for change in changes for part in ("--set", change)]


def test_a_judge_from_ones_own_labels(tmp_path: Path, labels: Path) -> None:
    out = tmp_path / "run"
    command = ["sft", "tiny", "--judge-from", str(labels), "--out", str(out), *sets(*QUICK)]
    result = CliRunner().invoke(train_app, command)
    assert result.exit_code == 0, result.output
    assert f"--judge bundle:{out / 'judge'}" in result.stdout and "held out, trained" in result.stdout
    data = json.loads((out / "run.json").read_text(encoding="utf-8"))["data"]
    # 8 of 12 prompts are trained on, 50 times, beside the 3 generated responses; 2 are evaluated on
    assert (data["train"]["responses"], data["held_out"]["responses"]) == (3 + 8 * 50, 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tinny"], "did you mean tiny?"),
        (["tiny", "--set", "run.sed=1"], "did you mean run.seed?"),
        (["tiny", "--judge-from", "nowhere.jsonl"], "there is no such file"),
        (["paper", "--set", "data.train=[rows.jsonl]"], "there is no local model"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch, write_rows: WriteRows, arguments: list[str], says: str
) -> None:
    path = write_rows([{"prompt": "a", "completion": "b"}])
    monkeypatch.chdir(path.parent)
    result = CliRunner().invoke(train_app, ["sft", *arguments, "--out", "run"])
    assert result.exit_code == 2
    assert says in result.stderr and "Traceback" not in result.output
