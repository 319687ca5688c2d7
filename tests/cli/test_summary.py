"""The summary: means leave out what is unknown, and standard errors know that rows of a prompt belong together."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.cli.summary import Mean, Tally, table
from rubricate.types import Failure, FailureCause, FailureKind, Reward, RewardStatus, Usage, Verdict

AWAY = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "away", retryable=True)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=20))
def test_with_single_rows_the_error_is_the_usual_one(values: list[float]) -> None:
    mean = Mean()
    for index, value in enumerate(values):
        mean.add(value, index)
    assert mean.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert mean.error == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-6)


def test_copies_within_a_prompt_do_not_make_the_mean_more_certain() -> None:
    once, copied = Mean(), Mean()
    for index, value in enumerate([0.1, 0.9, 0.4, 0.7]):
        once.add(value, index)
        for _ in range(50):
            copied.add(value, index)
    assert copied.error == pytest.approx(once.error)


def test_one_prompt_gives_no_error() -> None:
    mean = Mean()
    mean.add(0.2, "p")
    mean.add(0.4, "p")
    assert math.isnan(mean.error)
    assert str(mean) == "0.300"


def test_unscored_rows_are_counted_by_cause_and_in_no_mean() -> None:
    tally = Tally()
    ok = Reward(0.5, channels={"style": 0.5, "facts": None}, usage=Usage(calls=3, prompt_tokens=30))
    tally.add(ok, 1)
    tally.add(Reward(None, RewardStatus.UNSCORED, {"style": None, "facts": None}, failure=AWAY), 2)
    lines = dict(tally.lines(seconds=2.0))
    assert lines["responses"] == "2"
    assert lines["unscored"] == "1"
    assert lines["  infrastructure: server"] == "1"
    assert lines["mean reward ± standard error"] == "0.500"
    assert lines["  channel style"] == "0.500"
    assert "  channel facts" not in lines
    assert lines["model calls"] == "3"


def test_vetoes_are_counted_by_criterion() -> None:
    tally = Tally()
    for row in range(3):
        tally.add(Reward(0.0, RewardStatus.VETOED, vetoed_by=("secrets",)), row)
    lines = dict(tally.lines())
    assert (lines["vetoed"], lines["  by secrets"]) == ("3", "3")


def test_failed_verdicts_are_counted_even_where_there_is_a_reward() -> None:
    tally = Tally()
    tally.add(Reward(0.5, verdicts=(Verdict("a", 1.0), Verdict.failed("b", AWAY))), 1)
    assert dict(tally.lines())["failed verdicts"] == "1 of 2"


def test_the_table_lines_up() -> None:
    lines = table([("a", "1"), ("longer", "22")]).split("\n")
    assert lines == ["a        1", "longer  22"]


def unscored(kind: FailureKind, *messages: str) -> Reward:
    verdicts = [
        Verdict.failed(f"c{n}", Failure(kind, FailureCause.INFRASTRUCTURE, text)) for n, text in enumerate(messages)
    ]
    why = Failure(kind, FailureCause.INFRASTRUCTURE, "all verdicts failed")
    return Reward(None, RewardStatus.UNSCORED, verdicts=tuple(verdicts), failure=why)


def test_the_first_message_of_each_cause_is_told_with_its_hint() -> None:
    tally = Tally()
    tally.add(unscored(FailureKind.REQUEST, "there is no API key\n  hint: set SOME_KEY", "another"), 1)
    tally.add(unscored(FailureKind.REQUEST, "later"), 2)
    tally.add(unscored(FailureKind.BUDGET, "word \n" * 100), 3)
    first, second, hint = tally.reasons()
    assert first.startswith("infrastructure: budget: word word") and first.endswith("…") and len(first) < 200
    assert (second, hint) == ("infrastructure: request: there is no API key", "  hint: set SOME_KEY")


def test_refused_calls_are_explained_by_what_failed_before() -> None:
    tally = Tally()
    tally.add(unscored(FailureKind.CIRCUIT_OPEN, "8 calls in a row failed"), 1)
    assert tally.reasons() == ["infrastructure: circuit_open: 8 calls in a row failed"]
    tally.add(unscored(FailureKind.SERVER, "no connection"), 2)
    assert tally.reasons()[0] == "infrastructure: circuit_open: no connection"


def test_the_last_error_is_what_is_told_of_refused_calls() -> None:
    tally = Tally()
    message = "8 calls failed; calls are refused (the last error was: no connection)\n  hint: start it"
    tally.add(unscored(FailureKind.CIRCUIT_OPEN, message), 1)
    assert tally.reasons() == ["infrastructure: circuit_open: no connection", "  hint: start it"]
