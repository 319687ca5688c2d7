"""`rubricate convert`: what it writes, notes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Write

from rubricate.rubrics.formats import formats

RAR = {
    "question": "Why is the sky blue?",
    "rubric": [
        {"title": "Cause", "description": "Essential Criteria: Names Rayleigh scattering.", "weight": 5},
        {"title": "Myth", "description": "Pitfall Criteria: Says that the sea is reflected.", "weight": -1},
    ],
}
VETO = {"criteria": [{"id": "a", "text": "A.", "veto": True, "weight": 2}]}


def test_rar_becomes_native_with_its_polarity(write: Write, run: Run, tmp_path: Path) -> None:
    target = tmp_path / "native.json"
    result = run("convert", write("rar.jsonl", RAR), target, "--from", "rar")
    assert result.exit_code == 0, result.output
    assert "1 rubric read as rar, written as native" in result.stdout
    criteria = json.loads(target.read_text(encoding="utf-8"))["criteria"]
    assert [criterion.get("polarity", "reward") for criterion in criteria] == ["reward", "penalty"]


def test_what_a_format_cannot_hold_needs_lossy(write: Write, run: Run, tmp_path: Path) -> None:
    source, target = write("native.jsonl", VETO), tmp_path / "hb.jsonl"
    refused = run("convert", source, target, "--to", "healthbench")
    assert refused.exit_code == 2
    assert "veto" in refused.stderr and "--lossy" in refused.stderr
    assert not target.exists()
    allowed = run("convert", source, target, "--to", "healthbench", "--lossy")
    assert allowed.exit_code == 0, allowed.output
    assert "note (lossy)" in allowed.stderr
    assert target.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("missing.jsonl", "o.jsonl"), "no such file"),
        (("native.jsonl", "o.jsonl", "--to", "rubrix"), "rubrix"),
        (("native.jsonl", "native.jsonl"), "to be read"),
        (("broken.jsonl", "o.jsonl"), "broken.jsonl:1"),
    ],
)
def test_bad_input(write: Write, run: Run, arguments: tuple[str, ...], says: str) -> None:
    write("native.jsonl", VETO)
    write("broken.jsonl", {"criteria": [{"id": "a", "text": "A.", "weight": "heavy"}]})
    result = run("convert", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not Path("o.jsonl").exists()


def test_options_of_the_format_are_given_by_name(write: Write, run: Run, tmp_path: Path) -> None:
    source, target = write("rar.jsonl", RAR), tmp_path / "native.json"
    assert run("convert", source, target, "-o", "weights=paper").exit_code == 0
    criteria = json.loads(target.read_text(encoding="utf-8"))["criteria"]
    assert [criterion.get("weight", 1.0) for criterion in criteria] == [1.0, 0.9]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("weights", "'weights' is not NAME=VALUE"),
        ("weights=", "'weights=' is not NAME=VALUE"),
        ("weight=paper", "no format has an option 'weight'"),
        ("lossy=1", "no format has an option 'lossy'"),
        ("weights=papers", "no value 'papers'"),
        ("response_type=x", "the format 'rar' has no option 'response_type'"),
    ],
)
def test_wrong_options_are_refused(given: str, said: str, write: Write, run: Run, tmp_path: Path) -> None:
    target = tmp_path / "native.json"
    result = run("convert", write("rar.jsonl", RAR), target, "--option", given)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not target.exists()


def test_the_help_names_every_format(run: Run) -> None:
    shown = run("convert", "--help").output
    assert [name for name in formats() if name not in shown] == []
