"""The bridge from sync code to the one background loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator

import pytest

from rubricate.bridge import on_bridge, run_sync

NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=0)


async def where() -> tuple[int, int]:
    await asyncio.sleep(0)
    return threading.get_ident(), id(asyncio.get_running_loop())


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_all_calls_share_one_loop_on_another_thread() -> None:
    first, second = run_sync(where()), run_sync(where())
    assert first == second
    assert first[0] != threading.get_ident()
    others = list[tuple[int, int]]()
    thread = threading.Thread(target=lambda: others.append(run_sync(where())))
    thread.start()
    thread.join(10)
    assert others == [first]


async def test_sync_code_inside_a_running_loop_and_await_from_it() -> None:
    assert run_sync(where()) == await on_bridge(where())
    assert (await on_bridge(where()))[0] != threading.get_ident()


def test_sync_code_called_from_the_bridge_itself() -> None:
    async def outer() -> list[int]:
        def sync_inner() -> list[int]:
            async def middle() -> list[int]:
                return [threading.get_ident(), run_sync(where())[0], (await on_bridge(where()))[0]]

            return run_sync(middle())

        return [threading.get_ident(), *sync_inner()]

    one, two, three, four = run_sync(outer())
    assert len({one, two, three}) == 3
    assert four == two


def test_exceptions_come_through() -> None:
    with pytest.raises(ZeroDivisionError, match="boom"):
        run_sync(fail(ZeroDivisionError("boom")))
    for lethal in (SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(type(lethal)):
            run_sync(fail(lethal))
    assert run_sync(asyncio.sleep(0, 5)) == 5  # the loop has survived


def test_context_variables_are_the_callers() -> None:
    async def read_and_set() -> int:
        found = NUMBER.get()
        NUMBER.set(99)
        return found

    token = NUMBER.set(7)
    try:
        assert run_sync(read_and_set()) == 7
        assert NUMBER.get() == 7
    finally:
        NUMBER.reset(token)


async def test_cancelling_the_awaiter_cancels_the_work() -> None:
    began, ended = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(on_bridge(work()))
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 10)


async def test_work_cancelled_before_it_begins_leaves_no_warning() -> None:
    for _ in range(20):
        task = asyncio.create_task(on_bridge(asyncio.sleep(60)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await on_bridge(asyncio.sleep(0, 5)) == 5


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_keyboard_interrupt_cancels_the_work() -> None:
    began, ended = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    def interrupt() -> None:
        began.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_sync(work())
    thread.join(10)
    assert ended.is_set()


EXIT = """
import asyncio, os, sys, threading, time
from rubricate.bridge import run_sync

async def held():
    try:
        yield 1
    finally:
        await asyncio.sleep(0)
        print("closed", flush=True)

async def start():
    keeper = held()
    await anext(keeper)
    keep.append(keeper)
    asyncio.get_running_loop().create_task(asyncio.sleep(60))
    await asyncio.to_thread(time.sleep, 0)

keep = []
run_sync(start())
"""


def test_interpreter_exit_closes_clients_without_warnings() -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", EXIT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "closed", "")


def test_exit_is_quick_while_work_runs() -> None:
    code = (
        "import asyncio, threading\nfrom rubricate.bridge import run_sync\nbegan = threading.Event()\n"
        "async def work():\n    began.set()\n    await asyncio.sleep(600)\n"
        "threading.Thread(target=lambda: run_sync(work()), daemon=True).start()\nbegan.wait(10)\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_bridge_of_its_own() -> None:
    run_sync(where())
    child = os.fork()
    if child == 0:
        try:
            run_sync(where())
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run_sync(asyncio.sleep(0, 5)) == 5


async def test_generators_made_on_the_bridge_may_be_dropped() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)

    async def first() -> int:
        return await anext(numbers())

    assert await on_bridge(first()) == 1
