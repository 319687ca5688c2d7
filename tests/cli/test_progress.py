"""Progress: plain lines where nobody watches, a bar on a terminal, nothing when it is not wanted."""

from __future__ import annotations

import io
import sys

import pytest

from rubricate.cli import progress as module
from rubricate.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_was_done_before_counts_in_no_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 0.1, 15.0, 20.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    with progress(60) as step:
        step(56, before=True)
        step(2)
        step(2)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "58 of 60 responses, 7.5 s each, 0:15 left"
    assert last == "60 of 60 responses, 5.0 s each"


def test_where_all_was_done_before_there_is_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(3) as step:
        step(3, before=True)
    assert capsys.readouterr().err == "3 of 3 responses\n"


def test_a_slow_run_shows_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 20.0, 40.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    with progress(1000) as step:
        step(10)
        step(30)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "10 of 1000 responses, 2.0 s each, 33:00 left"
    assert second == "40 of 1000 responses, 1.0 a second, 16:00 left"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(1, quiet=True) as step:
        step(1)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress(3) as step:
        for _ in range(3):
            step(1)
    assert "3/3" in terminal.getvalue()
