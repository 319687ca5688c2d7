"""Runs that are killed, stopped by a budget or by a server: each row once, no answer asked for twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.generate.conftest import Run, Start, arguments, calls, lines, make_rows, records

COUNT, AT_ONCE = 2000, 16


def test_a_run_that_is_killed_twice_has_each_row_once_and_repeats_calls_in_flight_alone(
    start: Start, run: Run, tmp_path: Path
) -> None:
    command = arguments(make_rows(tmp_path / "rows.jsonl", COUNT), "--concurrency", AT_ONCE)
    for at in ("500", "900"):
        killed = start({"DIE_AT": at}, *command)
        assert killed.returncode == -9, killed.stderr
        assert not (tmp_path / "out").exists()
    last = start({}, *command)
    assert last.returncode == 0, last.stderr
    assert "rows done" in last.stderr

    asked = Counter(calls())
    # Every tenth row's first answer is bad and asked for again; every fiftieth's stays bad.
    needed = {(n, 0) for n in range(COUNT)} | {(n, 1) for n in range(COUNT) if n % 10 == 0 or n % 50 == 49}
    assert set(asked) == needed
    repeated = sum(asked.values()) - len(needed)
    assert 2 <= repeated <= 2 * AT_ONCE  # at least the calls that killed

    written, dropped = records(tmp_path / "out"), lines(tmp_path / "out" / "dropped.jsonl")
    assert [row["id"] for row in written] == [str(n + 1) for n in range(COUNT) if n % 50 != 49]
    assert [row["row"] for row in dropped] == [n + 1 for n in range(COUNT) if n % 50 == 49]
    assert not (tmp_path / "out.journal").exists()
    assert not list(tmp_path.glob("out.answers*"))

    # A run that nobody disturbs gives the same files.
    command[command.index("out")] = "calm"
    assert run(*command, "--quiet").exit_code == 0
    for name in ("data/train-00000-of-00001.jsonl", "dropped.jsonl"):
        assert (tmp_path / "calm" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_a_run_that_is_stopped_says_how_to_go_on(start: Start, tmp_path: Path) -> None:
    command = arguments(make_rows(tmp_path / "rows.jsonl", 200), "--concurrency", 4)
    stopped = start({"DIE_AT": "60", "DIE_BY": "SIGINT"}, *command)
    assert stopped.returncode == 130, stopped.stderr
    assert "Run the same command again to go on" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert start({}, *command).returncode == 0
    asked = Counter(calls())
    assert sum(asked.values()) - len(asked) <= 4
    assert len(records(tmp_path / "out")) == 196


def test_a_budget_ends_the_run_before_it_is_passed_and_a_larger_one_goes_on(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 40)
    tokens = ["--set", "steps.0.options.max_tokens=60"]
    usual = arguments(rows, "--prices", "1000,1000", "--quiet", "--concurrency", 4, *tokens)
    first = run(*usual, "--budget", "2.0")  # an answer costs 0.15
    assert first.exit_code == 1
    assert "stopped: the budget would be passed" in first.stderr
    paid = len(calls())
    assert 0 < 0.15 * paid <= 2.0
    some = records(tmp_path / "out")
    assert 0 < len(some) < 40
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["rows"] == 40
    assert report["written"] == len(some)
    assert len(some) + report["worth_another_run"] == 40

    again = run(*usual, "--budget", "2.0")
    assert again.exit_code in (1, 2)
    assert 0.15 * len(calls()) <= 2.0  # what was spent before counts

    last = run(*usual, "--budget", "20.0")
    assert last.exit_code == 0, last.output
    asked = Counter(calls())
    assert set(asked.values()) == {1}
    assert len(records(tmp_path / "out")) == 40
    assert not (tmp_path / "out.journal").exists()


def test_a_server_that_is_gone_ends_the_run_and_the_next_asks_for_the_rest(start: Start, tmp_path: Path) -> None:
    command = arguments(make_rows(tmp_path / "rows.jsonl", 300), "--concurrency", 4)
    first = start({"FAIL_FROM": "100"}, *command)
    assert first.returncode == 1, first.stderr
    assert "rows all failed: the server is gone" in first.stderr
    assert len(calls()) < 150  # it did not go on with the other rows
    last = start({}, *command)
    assert last.returncode == 0, last.stderr
    answered = Counter(calls()[:99]) & Counter(calls()[99:])
    failed = Counter(calls()[99:])
    assert all(failed[key] == 1 for key in answered) or not answered
    assert len(records(tmp_path / "out")) == 300 - 6


def test_a_model_that_refuses_everything_is_an_error(start: Start, tmp_path: Path) -> None:
    refused = start({"REFUSE": "1"}, *arguments(make_rows(tmp_path / "rows.jsonl", 100)))
    assert refused.returncode == 2
    assert "refused each of the first 20 rows: wrong key" in refused.stderr


def test_another_method_does_not_go_on_with_these_rows(run: Run, start: Start, tmp_path: Path) -> None:
    command = arguments(make_rows(tmp_path / "rows.jsonl", 30), "--quiet")
    assert start({"DIE_AT": "20"}, *command).returncode == -9
    other = run(*command, "--option", "most=9")
    assert other.exit_code == 2
    assert "made with other settings: steps.step 1.fingerprint" in other.stderr
    anew = run(*command, "--option", "most=9", "--restart")
    assert anew.exit_code == 0, anew.output
    assert len(records(tmp_path / "out")) == 30
