"""Deadlines that every wait of a call keeps, and the clock that limiters read and tests turn by hand."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from rubricate.errors import ConfigError

__all__ = [
    "SYSTEM_CLOCK",
    "Clock",
    "ManualClock",
    "SystemClock",
    "deadline",
    "remaining",
    "settle",
    "sleep",
    "wake_up",
]


class Clock(Protocol):
    """Time in seconds from an arbitrary zero, and timers on the running event loop."""

    def now(self) -> float: ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        """Call `callback` after `seconds`, on the event loop that runs now. Returns what cancels it."""
        ...


class SystemClock:
    """The monotonic clock of the machine."""

    def now(self) -> float:
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        return asyncio.get_running_loop().call_later(seconds, callback).cancel


SYSTEM_CLOCK = SystemClock()


class ManualClock:
    """A clock for tests: time passes in `advance` and `run` only. Use it from one event loop."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._cancelled: set[int] = set()
        self._serial = 0

    def now(self) -> float:
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Callable[[], object]:
        self._serial += 1
        serial = self._serial
        heapq.heappush(self._timers, (self._now + max(seconds, 0.0), serial, callback))
        return lambda: self._cancelled.add(serial)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass and call what is due, in order."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._now, serial, callback = heapq.heappop(self._timers)
            if serial not in self._cancelled:
                callback()
            self._cancelled.discard(serial)
        self._now = end

    async def run(self, seconds: float, *, step: float = 0.1) -> None:
        """Let `seconds` pass in steps, and the tasks that wait for them go on after each."""
        await settle()
        for _ in range(round(seconds / step)):
            self.advance(step)
            await settle()


async def settle(turns: int = 25) -> None:
    """Give every ready task of the loop that many turns. For tests with a ManualClock."""
    for _ in range(turns):
        await asyncio.sleep(0)


def wake_up(future: asyncio.Future[None]) -> None:
    """Finish a future that someone waits for, unless it is finished."""
    if not future.done():
        future.set_result(None)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait `seconds` of that clock."""
    future = asyncio.get_running_loop().create_future()
    cancel = clock.call_later(seconds, lambda: wake_up(future))
    try:
        await future
    finally:
        cancel()


@dataclass(frozen=True, slots=True)
class _Deadline:
    at: float
    clock: Clock

    def left(self) -> float:
        return self.at - self.clock.now()


_CURRENT: ContextVar[_Deadline | None] = ContextVar("rubricate_deadline", default=None)


@contextmanager
def deadline(seconds: float | None, *, clock: Clock = SYSTEM_CLOCK) -> Generator[None, None, None]:
    """Every model call in this block, and in tasks started in it, ends within `seconds`.

    A call that has not ended by then raises DeadlineError: in the queue, between retries, or waiting for the
    server. Blocks nest, and the earlier deadline holds. None sets no deadline.

    Raises ConfigError when `seconds` is negative or not a number.
    """
    if seconds is None:
        yield
        return
    if not seconds >= 0:
        raise ConfigError(f"a deadline must be at least 0 seconds, not {seconds!r}")
    new, outer = _Deadline(clock.now() + seconds, clock), _CURRENT.get()
    token = _CURRENT.set(new if outer is None or new.left() < outer.left() else outer)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def remaining() -> float | None:
    """Seconds until the deadline that holds here, never negative, or None where there is none."""
    current = _CURRENT.get()
    return None if current is None else max(current.left(), 0.0)
