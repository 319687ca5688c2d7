"""One client per event loop, made when first needed and closed with the loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["PerLoop"]

T = TypeVar("T")

_PATIENCE = 1.0


@dataclass(slots=True)
class _Held(Generic[T]):
    """The clients of one process. Apart from PerLoop, so that they can be closed when that is collected."""

    close: Callable[[T], Awaitable[None]]
    pid: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    clients: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T, None]]] = field(
        default_factory=dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T, None]]]
    )


# Clients of a parent process. Closing them in the child would disturb the parent's connections.
_ABANDONED: list[object] = []


class PerLoop(Generic[T]):
    """Clients that belong to the event loop they were made on, such as HTTP sessions.

    `asyncio.run` and its like close a client together with its loop: it lives in an asynchronous generator, which
    the loop finishes when it shuts down. A client is closed, too, when its PerLoop is collected. A forked child
    starts without clients. Not pickled: make a new one.

    Args:
        make: makes a client on the running loop.
        close: closes one, on its own loop.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._held = self._fresh(close)

    def _fresh(self, close: Callable[[T], Awaitable[None]]) -> _Held[T]:
        held = _Held[T](close)
        weakref.finalize(self, _close_all, held).atexit = False
        return held

    def _current(self) -> _Held[T]:
        if self._held.pid != os.getpid():
            _ABANDONED.append(self._held)
            self._held = self._fresh(self._held.close)
        return self._held

    async def get(self) -> T:
        """The running loop's client."""
        held, loop = self._current(), asyncio.get_running_loop()
        found = held.clients.get(loop)
        if found is not None:
            return found[0]
        client = self._make()
        keeper = _keep(held, loop, client)
        await anext(keeper)  # does not suspend: no second task comes in between
        with held.lock:
            for other in [other for other in held.clients if other.is_closed()]:
                del held.clients[other]
            held.clients[loop] = client, keeper
        return client

    async def aclose(self) -> None:
        """Close every client: that of this loop, and those of loops running on other threads.

        A loop that is busy, or that itself waits for this call (a notebook's, in a sync `close`), is not waited for
        longer than a second: it closes its client when it is free. Who asks for a client meanwhile gets a new one.
        """
        here = asyncio.get_running_loop()
        closing: list[asyncio.Future[None]] = []
        held = self._current()
        with held.lock:
            clients = {loop: client for loop, client in held.clients.items() if loop.is_running()}
            held.clients = {loop: client for loop, client in held.clients.items() if loop not in clients}
        for loop, (_, keeper) in clients.items():
            if loop is here:
                await keeper.aclose()
            else:
                closing.append(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_finish(keeper), loop)))
        if closing:
            done, _ = await asyncio.wait(closing, timeout=_PATIENCE)
            for future in done:
                future.result()


async def _keep(held: _Held[T], loop: asyncio.AbstractEventLoop, client: T) -> AsyncGenerator[T, None]:
    try:
        yield client
    finally:
        with held.lock:
            if loop in held.clients and held.clients[loop][0] is client:
                del held.clients[loop]
        await held.close(client)


async def _finish(keeper: AsyncGenerator[T, None]) -> None:
    await keeper.aclose()


def _close_all(held: _Held[T]) -> None:
    """Close the clients of a PerLoop that is gone, each on its own loop."""
    if held.pid != os.getpid():
        _ABANDONED.append(held)
        return
    for loop, (_, keeper) in list(held.clients.items()):
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(_start, loop, keeper)


def _start(loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[T, None]) -> None:
    task = loop.create_task(_finish(keeper))
    _RUNNING.add(task)
    task.add_done_callback(_RUNNING.discard)


_RUNNING: set[asyncio.Task[None]] = set()  # the loop alone would let its tasks be collected
