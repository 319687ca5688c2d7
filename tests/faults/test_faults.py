"""Scoring against a misbehaving server, as `benchmarks/faults.py` does it: no score may be wrong in silence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rubricate.narrow import as_array, as_number, as_object

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
AT_10_PERCENT = (
    "malformed 10%",
    "HTTP 429 and 500 10%",
    "verdict missing 10%",
    "off vocabulary 10%",
    "cut at max_tokens 10%",
    "empty 10%",
    "contradiction 10%",
    "connection lost or body broken 10%",
    "hang 10%, a time limit a try",
)
OTHERS = (
    "none",
    "HTTP 429 and 500 50%",
    "hang 10%, deadline 2 s",
    "all of them at once, 20%",
    "nothing but HTTP 429 and 500",
)
JUDGES = ("reasoned", "one-call", "logprob")

Outcomes = Mapping[tuple[str, str], Mapping[str, object]]


def number(outcome: Mapping[str, object], name: str) -> float:
    value = as_number(outcome[name])
    assert value is not None
    return value


def unscored(outcome: Mapping[str, object]) -> Mapping[str, object]:
    return as_object(outcome["why"]) or {}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What the benchmark reports, by scenario and judge."""
    path = tmp_path_factory.mktemp("faults") / "faults.json"
    command = [sys.executable, "-W", "error", str(SCRIPT), "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert path.exists(), done.stderr
    record = as_object(json.loads(path.read_text(encoding="utf-8"))) or {}
    items = [as_object(item) or {} for item in as_array(record["outcomes"]) or ()]
    return {(str(item["scenario"]), str(item["judge"])): item for item in items}


def test_every_scenario_ran(outcomes: Outcomes) -> None:
    assert {scenario for scenario, _ in outcomes} == {*AT_10_PERCENT, *OTHERS}
    assert {judge for _, judge in outcomes} == set(JUDGES)
    assert all(number(outcome, "total") == 50 for outcome in outcomes.values())


def test_without_faults_every_score_is_exact(outcomes: Outcomes) -> None:
    assert [number(outcomes["none", judge], "right") for judge in JUDGES] == [50, 50, 50]


def test_no_score_is_wrong_without_a_flag_and_no_failure_is_a_zero(outcomes: Outcomes) -> None:
    for key, outcome in outcomes.items():
        found = {name: number(outcome, name) for name in ("wrong", "wrong_flagged", "wrong_verdicts", "zeros")}
        assert found == {"wrong": 0, "wrong_flagged": 0, "wrong_verdicts": 0, "zeros": 0}, key


def test_what_is_unscored_says_why(outcomes: Outcomes) -> None:
    for key, outcome in outcomes.items():
        missing = number(outcome, "total") - number(outcome, "right")
        assert number(outcome, "untyped") == 0, key
        assert sum(number(unscored(outcome), kind) for kind in unscored(outcome)) == missing, key


@pytest.mark.parametrize("scenario", AT_10_PERCENT)
def test_95_percent_are_scored_when_a_tenth_of_the_requests_fail(outcomes: Outcomes, scenario: str) -> None:
    for judge in JUDGES:
        if (scenario, judge) in outcomes:
            assert number(outcomes[scenario, judge], "right") >= 0.95 * 50, judge


def test_requests_that_hang_do_not_break_the_deadline(outcomes: Outcomes) -> None:
    for judge in JUDGES:
        outcome = outcomes["hang 10%, deadline 2 s", judge]
        assert number(outcome, "wall") <= 2.0 + 0.5
        assert set(unscored(outcome)) <= {"deadline"}
        assert number(outcome, "right") > 0  # what was answered in time is kept


def test_a_dead_server_gives_failures_of_the_infrastructure(outcomes: Outcomes) -> None:
    for judge in JUDGES:
        outcome = outcomes["nothing but HTTP 429 and 500", judge]
        assert number(outcome, "right") == 0
        assert set(unscored(outcome)) <= {"server", "rate_limit", "circuit_open"}
