"""The one bridge between sync callers and async code: a background event loop that lasts as long as the process."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["on_bridge", "run_sync"]

T = TypeVar("T")

_CLOSE_SECONDS = 5.0


@dataclass(slots=True)
class _Job(Generic[T]):
    """A coroutine to run, in a copy of the context in which the job was made.

    Cancelling the future of its result cancels the coroutine; `ended` is set when that has come to its end.
    """

    work: Coroutine[object, object, T]
    future: Future[T] = field(default_factory=Future[T])
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    ended: threading.Event = field(default_factory=threading.Event)
    started: bool = False

    def end(self) -> None:
        self.work.close()  # for one that was cancelled before it began; a finished one does not mind
        self.future.cancel()
        self.ended.set()


class _Bridge:
    """An event loop on a daemon thread. `inner` serves sync calls that are made from that very thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.inner: _Bridge | None = None
        self.thread = threading.Thread(target=self._serve, name="rubricate-bridge", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def start(self, job: _Job[T]) -> None:
        """Run a job's coroutine on this loop."""

        def begin() -> None:
            task = self.loop.create_task(_finish(job), context=job.context)
            task.add_done_callback(lambda _: job.end())
            job.future.add_done_callback(lambda done: self._cancel(task) if done.cancelled() else None)

        job.started = True
        self.loop.call_soon_threadsafe(begin)

    def _cancel(self, task: asyncio.Task[None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the task with it
            self.loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """Cancel what runs, close what clients hold, end the thread."""
        if self.inner is not None:
            self.inner.close()
        ending = asyncio.run_coroutine_threadsafe(_wind_up(), self.loop)
        with contextlib.suppress(TimeoutError):
            ending.result(_CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_CLOSE_SECONDS)
        if not self.thread.is_alive():
            self.loop.close()


async def _finish(job: _Job[T]) -> None:
    """Run the coroutine to its end and hand what comes of it to the future. Raises nothing itself.

    A KeyboardInterrupt or SystemExit that left a task would end the loop under everyone else.
    """
    with contextlib.suppress(InvalidStateError):  # the caller has given up waiting
        try:
            result = await job.work
        except asyncio.CancelledError:
            job.future.cancel()
        except BaseException as error:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)


async def _wind_up() -> None:
    loop = asyncio.get_running_loop()
    tasks = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    with contextlib.suppress(RuntimeError):  # no thread can be started at interpreter exit, and none is needed
        await loop.shutdown_default_executor()


class _Holder:
    """The process's bridge, made when first needed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bridge: _Bridge | None = None
        self.lost: list[_Bridge | None] = []

    def here(self) -> _Bridge | None:
        """The bridge on whose thread the caller runs, None for any other thread."""
        bridge = self.bridge
        while bridge is not None and bridge.thread is not threading.current_thread():
            bridge = bridge.inner
        return bridge

    def get(self) -> _Bridge:
        """A bridge that the caller's thread may wait for."""
        here = self.here()
        with self.lock:
            if here is not None:
                if here.inner is None:
                    here.inner = _Bridge()
                return here.inner
            if self.bridge is None or not self.bridge.thread.is_alive():
                self.bridge = _Bridge()
            return self.bridge

    def close(self) -> None:
        with self.lock:
            bridge, self.bridge = self.bridge, None
        if bridge is not None and bridge.thread.is_alive():
            bridge.close()

    def after_fork(self) -> None:
        # The child has the parent's loop without its thread. It is kept unused: closing it would touch what the
        # parent still uses.
        self.lost.append(self.bridge)
        self.lock, self.bridge = threading.Lock(), None


_holder = _Holder()
atexit.register(_holder.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_holder.after_fork)


def run_sync(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine from sync code and give its result, or raise what it raises.

    It runs on the process's background event loop, so clients and their connections outlive the call, and the
    caller may itself sit inside a running loop, as in a notebook or a trainer. Context variables are those of the
    caller. KeyboardInterrupt, and any other interruption of the wait, cancels the coroutine.
    """
    job = _Job(work)
    try:
        # An interrupt may come at any point in here; the coroutine then may have begun or not.
        _holder.get().start(job)
        return job.future.result()
    finally:
        if not job.future.done():
            job.future.cancel()
            if job.started:
                job.ended.wait(_CLOSE_SECONDS)
            else:
                job.work.close()


async def on_bridge(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on the same background loop and await it from any other loop. Cancellation goes through."""
    if _holder.here() is not None:
        return await work
    job = _Job(work)
    _holder.get().start(job)
    return await asyncio.wrap_future(job.future)
