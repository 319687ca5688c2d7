"""Requests that are being asked: who wants the same answer meanwhile waits for it, on any thread or event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from rubricate.chat.base import Completion
from rubricate.errors import ChatError

__all__ = ["Flight", "Flights"]


class Flight:
    """A request that is being asked. `None` lands where its asker gave up: who waits asks for himself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], object]] = []
        self._landed = False
        self.outcome: Completion | ChatError | None = None

    def land(self, outcome: Completion | ChatError | None) -> None:
        """Let everybody know; the first outcome holds."""
        with self._lock:
            if self._landed:
                return
            self.outcome, self._landed = outcome, True
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    async def wait(self) -> Completion | ChatError | None:
        """The outcome, awaited from any loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not future.done():
                future.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(finish)

        with self._lock:
            if self._landed:
                return self.outcome
            self._waiting.append(wake)
        await future
        return self.outcome


class Flights:
    """The flights of a process by request key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: dict[str, Flight] = {}

    def claim(self, key: str) -> Flight | None:
        """The flight of a request that is being asked, or None: then the caller is to ask, and to `land` it."""
        with self._lock:
            found = self._flying.get(key)
            if found is None:
                self._flying[key] = Flight()
            return found

    def land(self, key: str, outcome: Completion | ChatError | None) -> None:
        """End the flight that the caller has claimed."""
        with self._lock:
            flight = self._flying.pop(key, None)
        if flight is not None:
            flight.land(outcome)
