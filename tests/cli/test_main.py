"""The entry points: quick to import, one version, help for every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Start

HEAVY = ("torch", "transformers", "openai", "aiohttp", "numpy", "pydantic", "jinja2", "pyarrow")

PROBE = """
import sys
from rubricate.cli import main
try:
    main(["--help"])
except SystemExit as stop:
    assert not stop.code, stop.code
print(*[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY)], capture_output=True, text=True, check=True
    )
    assert done.stderr.split() == []
    assert "score" in done.stdout and "convert" in done.stdout and "demo" in done.stdout


@pytest.mark.parametrize("command", ["score", "convert", "demo"])
def test_every_option_has_help(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    options = [line for line in result.stdout.splitlines() if line.strip().startswith("--")]
    assert options


def test_the_score_command_says_how_it_resumes(run: Run) -> None:
    text = " ".join(run("score", "--help").stdout.split())
    assert "are tried again when the command is run again" in text
    assert "Exit codes: 0 all scored, 1 some not, 2 bad input, 130 stopped." in text


def test_version(run: Run) -> None:
    assert run("--version").stdout.startswith("rubricate ")


def test_module_and_script_are_the_same(start: Start) -> None:
    with start("--version") as process:
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert out.startswith("rubricate ")


def test_a_wrong_option_is_a_usage_error(run: Run) -> None:
    assert run("score", "x.jsonl", "--judge", "none", "--no-such-option").exit_code == 2


def test_nothing_is_left_in_the_folder_by_help(run: Run) -> None:
    run("--help")
    assert not list(Path().iterdir())
