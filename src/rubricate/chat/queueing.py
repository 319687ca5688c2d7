"""The queue of a limiter: calls that wait for their turn, on any event loop of any thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass

from rubricate.chat.timing import wake_up

__all__ = ["Waiter", "leave", "wake_head"]


@dataclass(eq=False, slots=True)
class Waiter:
    """A call in the queue. Only its own task takes a permit, so a cancelled one cannot lose any."""

    thread: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None] | None = None
    queued: bool = False

    def wake(self) -> bool:
        """Let the waiter look again. False when its event loop has stopped. Called under the limiter's lock."""
        if self.future is None:
            return True
        try:
            if self.thread == threading.get_ident():
                wake_up(self.future)
            else:
                self.loop.call_soon_threadsafe(wake_up, self.future)
        except RuntimeError:
            return False
        return self.loop.is_running()


def wake_head(queue: deque[Waiter]) -> None:
    """Let the first waiter look again; those whose event loop has stopped are taken out."""
    while queue and not queue[0].wake():
        # Its event loop has stopped. If that ever runs again, the waiter looks again and comes back.
        queue.popleft().queued = False


def leave(queue: deque[Waiter], waiter: Waiter) -> None:
    """Take a waiter out, whether it has its permit or gives up."""
    if waiter.queued:
        queue.remove(waiter)
        waiter.queued = False
