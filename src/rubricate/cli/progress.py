"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Step", "no_step", "progress"]

EVERY = 10.0
"""Seconds between two plain lines."""


class Step(Protocol):
    """Takes the number of items newly done; `before` says that an earlier run did them."""

    def __call__(self, count: int, *, before: bool = False) -> None: ...


def no_step(count: int, *, before: bool = False) -> None:
    """A step that shows nothing."""


def _nothing() -> str:
    return ""


@contextmanager
def progress(
    total: int,
    *,
    quiet: bool = False,
    doing: str = "scoring",
    items: str = "responses",
    more: Callable[[], str] = _nothing,
) -> Generator[Step, None, None]:
    """Show how far `total` items have come, with rate and time left, while the block runs.

    Args:
        total: number of items.
        quiet: show nothing.
        doing, items: what is done, and to what.
        more: what else is to be shown, such as the cost so far.

    Rate and time left are those of this run as a whole: what was done before does not count in them, and a burst of
    items that end together does not make them jump.
    """
    if quiet:
        yield no_step
    elif sys.stderr.isatty():
        with _bar(total, doing, more) as step:
            yield step
    else:
        yield _Lines(total, items, more).step


class _Pace:
    """What is done, by this run and before it, and how fast."""

    def __init__(self, total: int, more: Callable[[], str]) -> None:
        self.total = total
        self.more = more
        self.done = self.new = 0
        self.began = time.monotonic()

    def add(self, count: int, before: bool) -> None:
        self.done += count
        self.new += 0 if before else count

    def text(self, now: float) -> str:
        """Rate, time left and what else there is; empty before this run has done anything."""
        if not self.new:
            return ""
        rate = self.new / max(now - self.began, 1e-9)
        left = self.total - self.done
        more = self.more()
        return _rate(rate) + (f", {_clock(left / rate)} left" if left else "") + (f", {more}" if more else "")


@contextmanager
def _bar(total: int, doing: str, more: Callable[[], str]) -> Generator[Step, None, None]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    pace = _Pace(total, more)

    class Pace(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(pace.text(time.monotonic()))

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), Pace())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(doing, total=total)

        def step(count: int, *, before: bool = False) -> None:
            pace.add(count, before)
            bar.advance(task, count)

        yield step


class _Lines:
    """Plain lines for logs: every few seconds, and at the end."""

    def __init__(self, total: int, items: str, more: Callable[[], str]) -> None:
        self.pace = _Pace(total, more)
        self.items = items
        self.shown = self.pace.began

    def step(self, count: int, *, before: bool = False) -> None:
        self.pace.add(count, before)
        now = time.monotonic()
        if now - self.shown < EVERY and self.pace.done < self.pace.total:
            return
        self.shown = now
        text = self.pace.text(now)
        of = f"{self.pace.done} of {self.pace.total} {self.items}"
        print(f"{of}, {text}" if text else of, file=sys.stderr, flush=True)


def _rate(rate: float) -> str:
    return f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
