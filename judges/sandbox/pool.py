"""Running checks in the sandbox: from any thread, or from an event loop without holding it; few at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from rubricate.errors import ConfigError
from rubricate.judges.sandbox.process import Cancelled, Job, Limits, Wake, converse
from rubricate.judges.sandbox.results import CheckResult

__all__ = ["FUNCTION", "MEMORY", "SECONDS", "limit_processes", "run_check", "run_checks", "run_checks_async"]

FUNCTION = "verify_requirement"
"""Name of the function that a check defines (as RLCF's are called)."""

SECONDS = 5.0
"""Default wall time of one check of one text."""

MEMORY = 256 * 2**20
"""Default address space of one check, in bytes. A bare interpreter with its libraries takes about a tenth."""

_START_SECONDS = 60.0
_LONGEST_SECONDS = 86_400.0
_LEAST_MEMORY, _MOST_MEMORY = 64 * 2**20, 2**47  # no address space is larger
_LONGEST_SOURCE = 100_000


class _Pool:
    """The threads that wait for sandbox processes, and the bound on those processes."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.slots = threading.BoundedSemaphore(processes)
        self.threads = ThreadPoolExecutor(processes, thread_name_prefix="rubricate-sandbox")


def _usual() -> int:
    return min(max(os.cpu_count() or 1, 2), 8)


_pool = _Pool(_usual())


def limit_processes(count: int | None) -> None:
    """At most so many sandbox processes at a time, in this process. The default, None, is one a core, from 2 to 8.

    Checks that run or wait already keep the bound they had. Raises ConfigError for less than 1.
    """
    global _pool
    if count is not None and count < 1:
        raise ConfigError(f"{count} sandbox processes are no bound", hint="use 1 or more")
    old, _pool = _pool, _Pool(count or _usual())
    old.threads.shutdown(wait=False)


def _after_fork() -> None:
    global _pool
    _pool = _Pool(_pool.processes)  # the threads and whoever held a slot did not come along


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_check(
    source: str,
    text: str,
    *,
    function: str = FUNCTION,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    unsafe_without_seccomp: bool = False,
) -> CheckResult:
    """Run untrusted `source` in the sandbox and call its `function` on one text. See `run_checks`."""
    return run_checks(
        source,
        [text],
        function=function,
        seconds=seconds,
        memory=memory,
        unsafe_without_seccomp=unsafe_without_seccomp,
    )[0]


def run_checks(
    source: str,
    texts: Sequence[str],
    *,
    function: str = FUNCTION,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    unsafe_without_seccomp: bool = False,
) -> list[CheckResult]:
    """Run untrusted `source` in the sandbox and call its `function` on each text. Blocks; safe from any thread.

    The check runs in an interpreter of its own without environment, open files or the right to a system call that
    reaches beyond the process, under RestrictedPython, with façades of a few modules. The source runs anew, with
    new globals, for every text. All texts share a process until one fails; the next then get a new one. Code that
    broke both the language layer and nothing else could carry something from one text to the next or lie about its
    verdict; as it writes its own verdicts anyway, that gains it nothing.

    Args:
        source: Python source that defines `function`, a function of one text that returns True or False.
        function: its name.
        seconds: wall time for each text, a day at most; the interpreter's start is not counted.
        memory: address space in bytes, at least 64 MiB.
        unsafe_without_seccomp: where there is no system call filter (macOS, other machines), run all the same, with
            RestrictedPython and resource limits alone. Known to be escapable; only for source that you trust.

    Returns one result a text, in order; everything that goes wrong in the check is in its result.

    Raises ConfigError for limits out of range and MissingExtraError without RestrictedPython.
    """
    return _run(_job(source, texts, function, unsafe_without_seccomp), _limits(seconds, memory), _pool, None)


async def run_checks_async(
    source: str,
    texts: Sequence[str],
    *,
    function: str = FUNCTION,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    unsafe_without_seccomp: bool = False,
) -> list[CheckResult]:
    """As `run_checks`, without holding the event loop. Cancelled, it ends its process first."""
    job, limits = _job(source, texts, function, unsafe_without_seccomp), _limits(seconds, memory)
    pool, wake = _pool, Wake()
    try:
        future = pool.threads.submit(_run, job, limits, pool, wake)
    except RuntimeError:  # the interpreter is about to exit
        wake.close()
        raise
    future.add_done_callback(lambda _: wake.close())
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            wake.request()
            with contextlib.suppress(Cancelled):
                await waiting
        raise


def _job(source: str, texts: Sequence[str], function: str, unsafe: bool) -> Job:
    if len(source) > _LONGEST_SOURCE:
        raise ConfigError(f"a check of {len(source)} characters is too long, at most {_LONGEST_SOURCE} are taken")
    return Job(source, function, tuple(texts), unsafe=unsafe)


def _limits(seconds: float, memory: int) -> Limits:
    if not 0.0 < seconds <= _LONGEST_SECONDS:
        raise ConfigError(f"seconds is {seconds}", hint="use a time above 0, a day at most")
    if not _LEAST_MEMORY <= memory <= _MOST_MEMORY:
        hint = f"an interpreter needs {_LEAST_MEMORY} or more, and {_MOST_MEMORY} is the most there can be"
        raise ConfigError(f"memory is {memory} bytes", hint=hint)
    return Limits(seconds, _START_SECONDS, memory)


def _run(job: Job, limits: Limits, pool: _Pool, wake: Wake | None) -> list[CheckResult]:
    results: list[CheckResult] = []
    while len(results) < len(job.texts):
        rest = Job(job.source, job.function, job.texts[len(results) :], job.unsafe, job.restricted)
        with pool.slots:
            if wake is not None and wake.requested:
                raise Cancelled
            results += converse(rest, limits, wake)
    return results
