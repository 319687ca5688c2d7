"""Shared by the tests of the command line: small data, and the command run in this process or in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rubricate.cli.app import app

Write = Callable[..., Path]
Run = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default outputs go to the test's own folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("name.jsonl", {...}, {...})` makes a file of rows and gives its path."""

    def make(name: str, *rows: Mapping[str, object]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return make


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    """A rubric with one criterion for code and one for a model."""
    path = tmp_path / "rubric.json"
    criteria = [
        {
            "id": "short",
            "text": "It is short.",
            "channel": "format",
            "verifier": {"name": "words", "args": {"max": 3}},
        },
        {"id": "kind", "text": "It is kind.", "channel": "style"},
    ]
    path.write_text(json.dumps({"id": "r", "criteria": criteria}), encoding="utf-8")
    return path


@pytest.fixture
def run() -> Run:
    """`run("score", ...)` runs the command in this process."""

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def start() -> Start:
    """`start("score", ...)` starts the command as a process of its own."""

    def begin(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "rubricate", *(str(argument) for argument in arguments)]
        pipes = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipes, stderr=pipes, text=True, env=os.environ | {"NO_COLOR": "1"})

    return begin


def records(path: Path) -> Sequence[dict[str, object]]:
    """The records of an output file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
