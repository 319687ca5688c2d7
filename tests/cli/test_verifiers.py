"""`rubricate verifiers`: every check is listed, and every example it gives is one that the check takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from rubricate.judges.verifiers import IFEVAL_INSTRUCTIONS, check_verifier, verifier_names

OWN = """
from rubricate import verifier
from rubricate.judges.verifiers import Check, Input, VerifierArgs


class Args(VerifierArgs):
    most: int


@verifier("mine:questions", Args)
def questions(given: Input, args: Args) -> Check:
    \"\"\"Asks at most so many questions.\"\"\"
    return Check(given.response.count("?") <= args.most)
"""


def test_all_are_listed_with_what_they_check(run: Run) -> None:
    result = run("verifiers")
    assert result.exit_code == 0, result.output
    listed = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert set(verifier_names()) <= listed.keys()
    assert "number of words" in listed["words"]


@pytest.mark.parametrize(
    "name", [name for name in verifier_names() if not name.startswith(("mine:", "my:", "test"))]
)
def test_one_is_explained_by_an_example_that_it_takes(name: str, run: Run) -> None:
    result = run("verifiers", name)
    assert result.exit_code == 0, result.output
    example = json.loads(result.stdout.split('"verifier": ')[1])
    assert example["name"] == name
    if name in ("language", "generated", "schema", "occurrences") or name in IFEVAL_INSTRUCTIONS:
        return  # three dots are no language, no code, no schema; and of two arguments one is needed
    check_verifier(name, example["args"])


def test_ones_own_are_explained_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    result = run("verifiers", "mine:questions", "--import", "own.py")
    assert result.exit_code == 0, result.output
    assert "most: integer, required" in result.stdout


def test_a_name_that_is_none_gets_the_nearest(run: Run) -> None:
    result = run("verifiers", "wrods")
    assert result.exit_code == 2
    assert "did you mean words" in result.stderr
