"""The sandbox under faults: no descriptors left, forks beside it, the parent killed, garbage between texts."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rubricate.errors import ConfigError
from rubricate.judges.sandbox import (
    CheckFailure,
    CheckResult,
    limit_processes,
    process,
    run_check,
    run_checks,
    run_checks_async,
    unsupported_reason,
)
from rubricate.judges.sandbox.process import Job, Limits, converse

pytestmark = pytest.mark.skipif(bool(unsupported_reason()), reason=unsupported_reason() or "a sandbox is there")

SAYS_A = "def verify_requirement(text):\n    return text == 'a'\n"
LIMITS = Limits(30.0, 60.0, 256 * 2**20)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def few_descriptors(count: int) -> Generator[None]:
    """Room for so many more descriptors."""
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + count + 1, old[1]))
    held: list[int] = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        while count and held:
            os.close(held.pop())
            count -= 1
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


def test_cycles_of_one_text_do_not_fill_the_memory_of_the_next() -> None:
    source = """
def verify_requirement(text):
    held = ["a" * (120 * 2 ** 20)]
    held.append(held)
    return len(held) == 2
"""
    assert [result.met for result in run_checks(source, ["a", "b", "c", "d"], seconds=30.0)] == [True] * 4


def test_what_a_cycle_raises_at_its_end_is_of_the_text_that_made_it() -> None:
    source = """
def waiting(held):
    try:
        yield 1
    finally:
        1 / 0

def verify_requirement(text):
    if text == "first":
        held = []
        held.append(waiting(held))
        next(held[0])
        return True
    return len([[] for i in range(300000)]) > 2
"""
    first, *others = run_checks(source, ["first", "b", "c"], seconds=30.0)
    assert first.failure is CheckFailure.ERROR
    assert [result.met for result in others] == [True, True]


async def test_many_that_wait_need_no_descriptors() -> None:
    limit_processes(2)
    before = descriptors()
    try:
        with few_descriptors(30):
            found = await asyncio.gather(*(run_checks_async(SAYS_A, ["a"], seconds=60.0) for _ in range(24)))
    finally:
        limit_processes(None)
    assert [result.met for (result,) in found] == [True] * 24
    assert descriptors() == before


async def test_many_that_wait_are_cancelled_without_a_process() -> None:
    limit_processes(1)
    loop = "def verify_requirement(text):\n    while True:\n        pass\n"
    before = descriptors()
    try:
        checks = [asyncio.create_task(run_checks_async(loop, ["a"], seconds=500.0)) for _ in range(10)]
        while descriptors() == before:
            await asyncio.sleep(0)
        for check in checks:
            check.cancel()
        ended = await asyncio.gather(*checks, return_exceptions=True)
    finally:
        limit_processes(None)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    assert descriptors() == before


def test_without_descriptors_there_is_a_failure_and_none_is_lost() -> None:
    assert run_check(SAYS_A, "a", seconds=30.0).met is True
    before = descriptors()
    found: list[CheckResult] = []
    for count in range(12):
        with few_descriptors(count):
            found.append(run_check(SAYS_A, "a", seconds=30.0))
    assert descriptors() == before
    assert {result.failure for result in found} == {CheckFailure.START, None}
    assert all(result.met is True or result.message for result in found)


def test_a_selector_that_cannot_be_made_is_a_failure_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("selectors.DefaultSelector", none_left)
    first, second = run_checks(SAYS_A, ["a", "b"])
    assert first == second == CheckResult(None, CheckFailure.START, first.message)
    assert "Too many open files" in first.message


def test_an_interpreter_without_a_path_of_its_own_is_a_failure_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", None)
    result = run_check(SAYS_A, "a")
    assert result.failure is CheckFailure.START
    assert "sys.executable" in result.message


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """`hold("in")` keeps a second end of every sandbox's input open, as a process that is forked meanwhile does;
    `hold("out")` one of its output."""
    held: list[int] = []
    start: Callable[[], subprocess.Popen[bytes]] = vars(process)["_start"]

    def keep(which: str) -> None:
        def started() -> subprocess.Popen[bytes]:
            child = start()
            assert child.stdin is not None
            if which == "in":
                held.append(os.dup(child.stdin.fileno()))
            else:
                held.append(os.open(f"/proc/{child.pid}/fd/1", os.O_WRONLY))
            return child

        monkeypatch.setattr(process, "_start", started)

    yield keep
    for descriptor in held:
        os.close(descriptor)


@pytest.mark.parametrize("which", ["in", "out"])
def test_pipes_that_another_process_holds_open_hold_nothing_up(hold: Callable[[str], None], which: str) -> None:
    hold(which)
    first, second = run_checks(SAYS_A, ["a", "b"], seconds=600.0)
    assert (first.met, second.met) == (True, False)
    crash = Job("import os\ndef f(text):\n    os._exit(3)\n", "f", ("a",), restricted=False)
    (result,) = converse(crash, Limits(600.0, 600.0, 256 * 2**20))
    assert (result.failure, "status 3" in result.message) == (CheckFailure.CRASH, True)


def test_without_a_descriptor_of_processes_the_end_of_output_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert [result.met for result in run_checks(SAYS_A, ["a", "b"], seconds=30.0)] == [True, False]


@pytest.mark.parametrize("seconds", [1e6, 1e10, 1e300])
def test_times_that_no_clock_can_wait_for_are_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match="seconds"):
        run_check(SAYS_A, "a", seconds=seconds)


def test_more_memory_than_there_can_be_is_refused() -> None:
    assert run_check(SAYS_A, "a", seconds=80_000.0, memory=2**46).met is True
    for memory in (2**62, 2**63, 2**70):
        with pytest.raises(ConfigError, match="memory"):
            run_check(SAYS_A, "a", memory=memory)


PARENT = """
import sys, threading
from rubricate.judges.sandbox import run_check
loop = "def verify_requirement(text):\\n    while True:\\n        pass\\n"
for _ in range(2):
    threading.Thread(target=run_check, args=(loop, "a"), kwargs={"seconds": 3000.0}).start()
"""


def children(pid: int) -> set[int]:
    found: set[int] = set()
    for entry in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found |= {int(child) for child in entry.read_text().split()}
    return found


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_checks_end_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT])
    try:
        while len(born := children(parent.pid)) < 2:
            assert parent.poll() is None
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    until = time.monotonic() + 30.0
    while any(running(child) for child in born) and time.monotonic() < until:
        os.sched_yield()
    assert not [child for child in born if running(child)]
