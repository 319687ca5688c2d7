"""`rubricate score --record`, and its replay elsewhere: the same bytes, without the model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Start, Write, records

from rubricate.cli.journal import journal_path
from rubricate.cli.records import parse_reward
from rubricate.types import FailureKind

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "data" / "samples"
RUBRIC = SAMPLES / "quickstart-rubric.json"

# Runs the command of the copy in which it lies, in a process that can open no connection.
OFFLINE = """
import socket, sys

def refuse(*_):
    raise OSError("no network here")

socket.socket.connect = socket.socket.connect_ex = refuse
import rubricate
assert rubricate.__file__.startswith(sys.argv.pop(1)), rubricate.__file__
from rubricate.cli import main
sys.exit(main())
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The bundled rows, two of them twice."""
    lines = (SAMPLES / "quickstart.jsonl").read_text("utf-8").splitlines()
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines, *lines[:2]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Answers that depend on when they are asked for; one criterion's calls are refused, and one is cut."""
    path = tmp_path / "script.jsonl"
    lines: list[dict[str, object]] = [
        {"match": "blames", "error": "request", "text": "refused for good", "times": 3},
        {"p_yes": 0.9},
        {"p_yes": 0.2},
        {"text": "cut", "finish": "length"},
        {"p_yes": 0.6},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def elsewhere(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command offline, in a copy of this repository."""
    copy = tmp_path / "copy"
    if not copy.exists():
        names = ("src", "data", "judges", "prompts", "rewardmodels", "rubrics", "training")
        for name in names:
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-c", OFFLINE, str(copy), *(str(argument) for argument in arguments)]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "HOME": str(tmp_path / "home")}
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_recorded_run_replays_elsewhere_with_the_same_bytes(
    data: Path, script: Path, run: Run, tmp_path: Path
) -> None:
    name = f"mock:{script}?failure_rate=0.3&seed=4"
    common = (data, "--rubric", RUBRIC, "--mode", "logprob", "--prices", "1,2", "--quiet")
    out, page, recording = tmp_path / "a.jsonl", tmp_path / "a.html", tmp_path / "r.jsonl"
    first = run("score", *common, "--judge", name, "--record", recording, "--out", out, "--page", page)
    assert first.exit_code == 1, first.output
    rewards = [parse_reward(record) for record in records(out)]
    assert {reward.failure.kind if reward.failure else None for reward in rewards} >= {None, FailureKind.REQUEST}
    assert max(reward.usage.calls for reward in rewards) > 2  # two criteria are the model's: retries are in it
    script.unlink()
    out_2, page_2 = tmp_path / "b.jsonl", tmp_path / "b.html"
    again = elsewhere(
        tmp_path, "score", *common, "--judge", f"replay:{recording}", "--out", out_2, "--page", page_2,
        "--concurrency", "2",
    )  # fmt: skip
    assert again.returncode == 1, again.stderr
    assert out.read_bytes() == out_2.read_bytes()
    assert page.read_bytes() == page_2.read_bytes()


def test_a_run_that_was_killed_and_resumed_replays_as_a_whole(
    data: Path, script: Path, run: Run, start: Start, tmp_path: Path
) -> None:
    out, recording = tmp_path / "a.jsonl", tmp_path / "r.jsonl"
    arguments = (
        "score", data, "--rubric", RUBRIC, "--mode", "logprob", "--judge", f"mock:{script}?latency=0.05",
        "--record", recording, "--out", out, "--concurrency", "3", "--quiet",
    )  # fmt: skip
    process = start(*arguments)
    until = time.monotonic() + 60
    while not (recording.exists() and recording.read_bytes().count(b"\n") > 8):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with open(recording, "ab") as file:
        file.write(b'{"key":"a line that was being written')
    done = len(journal_path(out).read_text("utf-8").splitlines()) - 1
    assert 0 < done < 8
    resumed = run(*arguments)
    assert resumed.exit_code in (0, 1) and len(records(out)) == 8, resumed.output
    if journal_path(out).exists():  # what was refused for good is tried once more, and recorded again
        assert run(*arguments).exit_code in (0, 1)
    again = run(
        "score", data, "--rubric", RUBRIC, "--mode", "logprob", "--judge", f"replay:{recording}",
        "--out", tmp_path / "b.jsonl", "--quiet",
    )  # fmt: skip
    assert len(records(tmp_path / "b.jsonl")) == 8, again.output
    assert out.read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_the_mode_follows_the_recorded_models_name(data: Path, run: Run, tmp_path: Path) -> None:
    recording = tmp_path / "r.jsonl"
    common = (data, "--rubric", RUBRIC, "--quiet")
    assert run("score", *common, "--judge", "mock:yes", "--mode", "logprob", "--record", recording).exit_code == 0
    recording.write_text(recording.read_text("utf-8").replace('"name":"mock:yes"', '"name":"local:tiny"'), "utf-8")
    out = tmp_path / "b.jsonl"
    again = run("score", *common, "--judge", f"replay:{recording}", "--out", out)
    assert again.exit_code == 0, again.output
    assert "LogprobJudge(local:tiny)" in out.read_text("utf-8")


def test_what_a_recording_lacks_is_said_before_anything_is_written(
    data: Path, rubric: Path, run: Run, tmp_path: Path
) -> None:
    recording = tmp_path / "r.jsonl"
    common = (data, "--quiet", "--mode", "logprob")
    assert run("score", *common, "--rubric", RUBRIC, "--judge", "mock:yes", "--record", recording).exit_code == 0
    before = sorted(tmp_path.iterdir())
    other = (*common, "--rubric", rubric, "--judge", f"replay:{recording}", "--out", tmp_path / "b.jsonl")
    refused = run("score", *other)
    assert refused.exit_code == 2
    assert (
        "lacks 8 of 8 requests, the first for line 1" in refused.stderr and "record the run anew" in refused.stderr
    )
    assert sorted(tmp_path.iterdir()) == before
    dry = run("score", *other, "--dry-run")
    assert dry.exit_code == 0 and dry.stdout.splitlines()[-1].split()[-1] == "8"


def test_what_it_lacks_later_ends_the_run(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    recording = tmp_path / "r.jsonl"
    rows = write("d.jsonl", {"prompt": "p", "response": "r"})
    judge = write("judge.jsonl", {"text": "nothing of use"})
    common = ("score", rows, "--rubric", rubric, "--quiet")
    assert run(*common, "--judge", f"mock:{judge}", "--record", recording).exit_code == 1
    lines = recording.read_text("utf-8").splitlines()
    assert len(lines) == 6  # head, model, and four attempts
    recording.write_text("\n".join(lines[:4]) + "\n", "utf-8")
    ended = run(*common, "--judge", f"replay:{recording}", "--out", tmp_path / "b.jsonl")
    assert ended.exit_code == 2 and "holds no answer to this request" in ended.stderr
    assert not (tmp_path / "b.jsonl").exists()


def test_a_recording_is_whole_or_refused(data: Path, run: Run, tmp_path: Path) -> None:
    recording, out = tmp_path / "r.jsonl", tmp_path / "o.jsonl"
    common = ("score", data, "--rubric", RUBRIC, "--mode", "logprob", "--quiet", "--out", out)
    failing = (*common, "--judge", "mock:yes?failure_rate=1", "--deadline", "0.05")
    assert run(*failing).exit_code == 1  # the journal stays, for another try
    refused = run(*failing, "--record", recording)
    assert refused.exit_code == 2 and "was not recorded" in refused.stderr and not recording.exists()
    assert run(*failing, "--record", recording, "--restart").exit_code == 1
    left_out = run(*failing)
    assert left_out.exit_code == 2 and "record: " in left_out.stderr
    assert run(*failing, "--record", recording).exit_code == 1
    journal_path(out).unlink()
    out.unlink()
    there = run(*failing, "--record", recording)
    assert there.exit_code == 2 and "exists already" in there.stderr


@pytest.mark.parametrize("target", ["rows.jsonl", "o.jsonl", "o.jsonl.journal", "page.html", "none/r.jsonl"])
def test_a_recording_takes_the_place_of_nothing_else(data: Path, run: Run, tmp_path: Path, target: str) -> None:
    before = data.read_bytes()
    result = run(
        "score", data, "--rubric", RUBRIC, "--judge", "mock:yes", "--out", tmp_path / "o.jsonl",
        "--page", tmp_path / "page.html", "--record", tmp_path / target, "--restart", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 2 and target.split("/")[0] in result.stderr
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--judge", "none", "--record", "r.jsonl"), "no answers to keep"),
        (("--judge", "none", "--cache"), "no answers to keep"),
        (("--judge", "replay:r.jsonl", "--cache"), "takes no cache"),
        (("--judge", "replay:none.jsonl"), "cannot be read"),
        (("--judge", "replay:rows.jsonl"), "no recording"),
        (("--judge", "replay:"), "file is missing"),
    ],
)
def test_options_that_do_not_go_together(data: Path, run: Run, options: tuple[str, ...], said: str) -> None:
    result = run("score", data, "--rubric", RUBRIC, "--quiet", *options)
    assert result.exit_code == 2 and said in result.stderr + str(result.exception)
    assert "Traceback" not in result.output
