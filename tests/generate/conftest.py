"""Shared by the tests of `rubricate generate`: rows, a model that logs its calls, and the command itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from rubricate.cli.generate_command import generate

Run = Callable[..., Result]
Start = Callable[..., "subprocess.CompletedProcess[str]"]

MODEL = '''
"""A chat model that logs every call, answers by what the prompt holds, and can kill its process."""
import asyncio, json, os, re, signal
from pathlib import Path
from rubricate.chat.base import Capabilities, ChatModel, Completion
from rubricate.chat.limits import Limits
from rubricate.chat.registry import BackEnd, register_back_end
from rubricate.errors import RequestError, ServerError
from rubricate.types import Usage, fingerprint

CRITERIA = [
    {"title": "Cause", "description": "Essential Criteria: The response names scattering as the cause."},
    {"title": "Colour", "description": "Important Criteria: The response says which colour is scattered most."},
    {"title": "Sea", "description": "Pitfall Criteria: Claims that the sea paints the sky."},
]

class Logging(ChatModel):
    def __init__(self, spec):
        self.name = f"logged:{spec}"
        self.log = Path(spec)
        self.die_at = int(os.environ.get("DIE_AT", "0"))
        self.fail_from = int(os.environ.get("FAIL_FROM", "0"))
        self.refuse = bool(os.environ.get("REFUSE"))
        self.calls = 0

    @property
    def fingerprint(self):
        return fingerprint("logged")

    @property
    def capabilities(self):
        return Capabilities(json_schema=True)

    def say(self, what):
        with open(self.log, "ab", buffering=0) as file:
            file.write(json.dumps(what).encode() + b"\\n")

    async def complete(self, request):
        text = request.messages[-1].content
        number = int(re.search(r"thing (\\d+)", text)[1])
        self.calls += 1
        self.say(["asked", number, request.sample])
        if self.die_at and self.calls == self.die_at:
            os.kill(os.getpid(), getattr(signal, os.environ.get("DIE_BY", "SIGKILL")))
        if self.refuse:
            raise RequestError("wrong key", status=401)
        if self.fail_from and self.calls >= self.fail_from:
            raise ServerError("the server is gone", status=503, retryable=False)
        for _ in range(number % 7):
            await asyncio.sleep(0)
        criteria = CRITERIA
        if number % 10 == 0 and request.sample == 0:
            criteria = CRITERIA[:1]
        if number % 50 == 49:
            criteria = CRITERIA[:1]
        reply = json.dumps({"criteria": criteria})
        return Completion(reply, usage=Usage(1, 100, 50))

register_back_end(BackEnd("logged", lambda: Logging, "logged:/LOG", Limits(concurrency=None, max_attempts=1)))
'''


@pytest.fixture(autouse=True)
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default outputs go to the test's own folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logged_model.py").write_text(MODEL)


def make_rows(path: Path, count: int, **more: object) -> Path:
    """A file of rows with a prompt and a reference answer, with no ids."""
    rows = [
        {"prompt": f"Explain thing {n}: why is the sky blue there?", "reference": f"Scattering {n}.", **more}
        for n in range(count)
    ]
    return write(path, rows)


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def records(folder: Path) -> list[dict[str, object]]:
    """All rows of a data set, in the order of its shards."""
    files = sorted((folder / "data").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def arguments(rows: Path, *more: object) -> list[str]:
    """The usual command: three criteria are enough, the model logs to `calls`."""
    usual = [
        "--in",
        rows,
        "--out",
        "out",
        "--method",
        "reference",
        "--option",
        "least=3",
        "--option",
        "max_attempts=2",
    ]
    model = ["--model", f"logged:{Path('calls').absolute()}", "--import", Path("logged_model.py").absolute()]
    return [str(one) for one in (*usual, *model, *more)]


def calls(path: Path = Path("calls")) -> list[tuple[int, int]]:
    """Row and sample of each call, in order."""
    if not path.exists():
        return []
    return [(int(line[1]), int(line[2])) for line in map(json.loads, path.read_text().splitlines())]


@pytest.fixture
def run() -> Run:
    """`run(*arguments)` runs the command in this process."""
    app = typer.Typer()
    app.command()(generate)

    def call(*given: object) -> Result:
        return CliRunner().invoke(app, [str(one) for one in given])

    return call


@pytest.fixture
def start() -> Start:
    """`start(environment, *arguments)` runs the command in a process of its own, to its end."""
    code = "import typer; from rubricate.cli.generate_command import generate; typer.run(generate)"

    def begin(environment: Mapping[str, str], *given: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *(str(one) for one in given)]
        changed = os.environ | {"NO_COLOR": "1"} | dict(environment)
        return subprocess.run(command, capture_output=True, text=True, env=changed, timeout=300, check=False)

    return begin
