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


def test_the_last_line_is_shown_and_counts_what_was_done_before(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(10, done=4) as step:
        for _ in range(6):
            step(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "4 of 10 responses are in the journal already"
    assert lines[-1].startswith("10 of 10 responses")
    assert len(lines) == 2  # quicker than a line's interval


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
