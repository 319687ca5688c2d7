"""Clients per event loop: closing them never waits for a loop that waits for the closing."""

from __future__ import annotations

import asyncio
import threading

from rubricate.bridge import run_sync
from rubricate.chat.perloop import PerLoop


class Clients:
    """Makes numbered clients and notes which were closed."""

    def __init__(self) -> None:
        self.made = 0
        self.closed: list[int] = []
        self.held: PerLoop[int] = PerLoop(self._make, self._close)

    def _make(self) -> int:
        self.made += 1
        return self.made

    async def _close(self, client: int) -> None:
        self.closed.append(client)


def test_a_sync_close_inside_a_running_loop_that_has_a_client_ends() -> None:
    clients, ended = Clients(), threading.Event()

    async def notebook() -> None:
        assert await clients.held.get() == 1
        run_sync(clients.held.aclose())
        assert await clients.held.get() == 2  # not the one that is about to be closed
        while not clients.closed:
            await asyncio.sleep(0)
        assert (clients.closed, await clients.held.get()) == ([1], 2)
        ended.set()

    threading.Thread(target=lambda: asyncio.run(notebook()), daemon=True).start()
    assert ended.wait(20.0)


async def test_closing_reaches_the_client_of_a_loop_on_another_thread() -> None:
    clients = Clients()
    ready, leave = threading.Event(), asyncio.Event()
    other = asyncio.new_event_loop()

    async def stay() -> None:
        await clients.held.get()
        ready.set()
        await leave.wait()

    thread = threading.Thread(target=lambda: other.run_until_complete(stay()), daemon=True)
    thread.start()
    await asyncio.to_thread(ready.wait)
    await clients.held.get()
    await clients.held.aclose()
    assert sorted(clients.closed) == [1, 2]
    other.call_soon_threadsafe(leave.set)
    await asyncio.to_thread(thread.join)
    other.close()
