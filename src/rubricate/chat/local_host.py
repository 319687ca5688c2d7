"""A model in memory and its one worker thread, shared by everything in the process that asks for it."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.local_source import Source
from rubricate.errors import ChatError, RubricateError

__all__ = ["Host", "LocalOptions", "Work", "host_for", "resolved_dtype"]


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How a local model is loaded and run.

    Attributes:
        adapter: directory of a PEFT adapter, None for the base model as it is.
        dtype: `float32`, `bfloat16`, or `auto` (float32 on the CPU, bfloat16 on a GPU).
        device: `auto` (the GPU where there is one), `cpu`, `cuda`, `cuda:1`.
        threads: CPU threads of the worker thread, None for torch's default.
        max_batch_tokens: bound on rows x (prompt + answer) tokens of one batch.
        max_cache_bytes: bound on the memory for keys and values: half of it for the prompts at work and what a pass
            over them needs (estimated), half for prefixes that are kept in case they come again. A prompt that
            needs more runs alone, in small steps.
    """

    adapter: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    threads: int | None = None
    max_batch_tokens: int = 8192
    max_cache_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Work:
    """Requests that arrived together.

    Attributes:
        requests: in the caller's order.
        wanted: whether the caller still waits.
        deliver: takes the answers, in the order of the requests, from the worker thread.
        fail: takes the error that befell all of them.
    """

    requests: Sequence[ChatRequest]
    wanted: Callable[[], bool]
    deliver: Callable[[list[Completion | ChatError]], None]
    fail: Callable[[Exception], None]


class Runner(Protocol):
    """What answers: the engine, named here without torch."""

    @property
    def context(self) -> int | None: ...

    def run(self, works: Sequence[Work]) -> None: ...


class Host:
    """Takes work from any thread and event loop, and runs it on one model in one thread.

    The model is loaded for the first piece of work. While the worker is busy, what arrives is collected and forms
    the next batch.
    """

    def __init__(self, source: Source, options: LocalOptions, name: str) -> None:
        self.pid = os.getpid()
        self.context: int | None = None
        self.users: weakref.WeakSet[object] = weakref.WeakSet()
        self._source = source
        self._options = options
        self._name = name
        self._lock = threading.Lock()
        self._queue: deque[Work] = deque()
        self._busy = False
        self._runner: Runner | None = None
        self._executor: ThreadPoolExecutor | None = None

    def put(self, work: Work) -> None:
        """Queue work. It runs at the next `start`, or at once where the worker is busy already."""
        with self._lock:
            self._queue.append(work)

    def start(self) -> None:
        """Set the worker on the queue, if it is not at it. Where there can be no worker, what waits fails."""
        with self._lock:
            if self._busy or not self._queue:
                return
            self._busy = True
            try:
                self._thread().submit(self._drain)
            except RuntimeError as error:  # no thread can be started, or the interpreter is about to exit
                trouble, self._busy, self._executor = error, False, None
                works = list(self._queue)
                self._queue.clear()
            else:
                return
        _fail(works, trouble, self._name)

    def leave(self, user: object) -> Future[None] | None:
        """`user` is done with the model. Its memory is freed, after the queued work, when no user is left."""
        self.users.discard(user)
        with self._lock:
            if self.users or self._executor is None:
                return None
            executor, self._executor = self._executor, None
            freed = executor.submit(self._free)
            executor.shutdown(wait=False)
            return freed

    def _thread(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="rubricate-local")
        return self._executor

    def _drain(self) -> None:
        while works := self._next():
            try:
                runner = self._ready()
            except Exception as error:
                with self._lock:
                    works += self._queue
                    self._queue.clear()
                _fail(works, error, self._name)
                continue
            try:
                runner.run(works)
            except Exception as error:
                _fail(works, error, self._name)

    def _next(self) -> list[Work]:
        """Everything that waits and is still wanted: the engine finds out what of it begins alike."""
        with self._lock:
            works = [work for work in self._queue if work.wanted()]
            self._queue.clear()
            self._busy = bool(works)
            return works

    def _ready(self) -> Runner:
        runner = self._runner  # an executor that is on its way out may free it at any moment
        if runner is None:
            _let_threads_sleep()
            from rubricate.chat.local_engine import open_engine

            self._runner = runner = open_engine(self._source, self._options, self._name)
            self.context = runner.context
        return runner

    def _free(self) -> None:
        import gc

        self._runner = None
        gc.collect()
        if self._options.device != "cpu":
            from rubricate.chat.local_load import empty_cache

            empty_cache()


def _fail(works: Sequence[Work], error: Exception, name: str) -> None:
    """Our own errors say what to do; others become a ChatError, so that a judge can record them."""
    if not isinstance(error, RubricateError):
        cause, error = error, ChatError(f"the local model failed: {error!r}", provider=name)
        error.__cause__ = cause
    for work in works:
        work.fail(error)


_hosts: weakref.WeakValueDictionary[tuple[Source, LocalOptions], Host] = weakref.WeakValueDictionary()
_hosts_lock = threading.Lock()


def host_for(source: Source, options: LocalOptions, name: str, user: object) -> Host:
    """The host of these weights and options in this process, made where there is none."""
    with _hosts_lock:
        host = _hosts.get((source, options))
        if host is None:
            host = _hosts[source, options] = Host(source, options, name)
        host.users.add(user)
        return host


def _after_fork() -> None:
    # a forked child has the parent's hosts without their threads, and perhaps the lock in another thread's hands
    global _hosts, _hosts_lock
    _hosts = weakref.WeakValueDictionary()
    _hosts_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _let_threads_sleep() -> None:
    """Ask OpenMP that threads which wait for one another sleep. It reads this once, when torch is first imported.

    By default they spin. Where other programs use the cores too, that multiplies the time: measured on two cores at
    a load of 7, a rubric took 24 s and with sleeping threads 4 s.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def resolved_dtype(options: LocalOptions) -> str:
    """The dtype that `options` come to on this machine, `float32` or `bfloat16`."""
    if options.dtype != "auto":
        return options.dtype
    device = options.device
    if device == "auto":
        _let_threads_sleep()
        from rubricate.chat.local_load import pick_device

        device = pick_device("auto")
    return "float32" if device == "cpu" else "bfloat16"
