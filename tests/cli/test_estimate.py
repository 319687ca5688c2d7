"""The estimate: it counts the prompts that a run then really sends, by mode, and asks nobody."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from rubricate.chat import MockModel
from rubricate.cli.estimate import estimate
from rubricate.cli.inputs import Inputs
from rubricate.errors import RequestError
from rubricate.judges import build_judge

CRITERIA = [
    {"id": "short", "text": "Short.", "verifier": {"name": "words", "args": {"max": 5}}},
    *({"id": f"c{n}", "text": "It is kind " * n} for n in range(1, 5)),
    {"id": "when", "text": "It is dated.", "condition": "it is a letter"},
]
ROW = {"prompt": "Write a letter. " * 9, "response": "Dear Sir. " * 40, "rubric": {"criteria": CRITERIA}}


@pytest.mark.parametrize(
    ("mode", "per_call", "calls"),
    [("logprob", 1, 6), ("reasoned", 1, 5), ("reasoned", None, 2), ("holistic", 1, 1), ("likert", 1, 1)],
)
def test_it_counts_what_the_judge_sends(tmp_path: Path, mode: str, per_call: int | None, calls: int) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    (unit,) = Inputs(path)
    model = MockModel(fail=lambda index: RequestError("no"))
    judge = build_judge(model, mode=mode, criteria_per_call=per_call)
    asyncio.run(judge.judge(unit.rollout, unit.rubric))
    sent = sum(len(request.text()) for request in model.requests)
    found = estimate([unit], lambda like: build_judge(like, mode=mode, criteria_per_call=per_call), model)
    assert found.calls == len(model.requests) == calls
    assert found.tokens == pytest.approx(sent / 4, abs=2 * calls)  # and the words that an answer begins with


def test_modes_differ_in_a_dry_run(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    found: list[int] = []
    for mode in ("logprob", "reasoned"):
        result = run("score", path, "--judge", "mock:yes", "--mode", mode, "--dry-run")
        assert result.exit_code == 0, result.output
        (line,) = (line for line in result.stdout.splitlines() if line.startswith("prompt tokens"))
        found.append(int(line.split()[-1].replace(",", "")))
    assert found[0] < found[1]


def test_without_a_model_nothing_is_asked(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    result = run("score", path, "--judge", "none", "--dry-run")
    assert [line.split()[-1] for line in result.stdout.splitlines()][-2:] == ["0", "0"]
