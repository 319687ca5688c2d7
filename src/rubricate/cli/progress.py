"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__ = ["progress"]

Step = Callable[[int], None]
EVERY = 10.0
"""Seconds between two plain lines."""


@contextmanager
def progress(total: int, *, done: int = 0, quiet: bool = False) -> Generator[Step, None, None]:
    """Show how far `total` items have come, with rate and time left, while the block runs.

    The value is a function that takes the number of items newly done. `done` of them were done before; they do not
    count in the rate.
    """
    if quiet:
        yield lambda step: None
    elif sys.stderr.isatty():
        with _bar(total, done) as step:
            yield step
    else:
        yield _Lines(total, done).step


@contextmanager
def _bar(total: int, done: int) -> Generator[Step, None, None]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_rate(task.speed) if task.speed else "")

    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("scoring", total=total, completed=done)
        yield lambda step: bar.advance(task, step)


class _Lines:
    """Plain lines for logs: at the start, every few seconds, at the end."""

    def __init__(self, total: int, done: int) -> None:
        self.total = total
        self.before = self.done = done
        self.began = self.shown = time.monotonic()
        if done:
            self._print(f"{done} of {total} responses are in the journal already")

    def step(self, count: int) -> None:
        self.done += count
        now = time.monotonic()
        if now - self.shown < EVERY and self.done < self.total:
            return
        self.shown = now
        rate = (self.done - self.before) / max(now - self.began, 1e-9)
        left = (self.total - self.done) / rate if rate else 0.0
        self._print(f"{self.done} of {self.total} responses, {_rate(rate)}, {_clock(left)} left")

    def _print(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def _rate(rate: float) -> str:
    return f"{rate:.1f} a second" if rate >= 1 or not rate else f"{1 / rate:.1f} s each"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
