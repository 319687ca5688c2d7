"""One cache and several processes: nothing lost or torn, by concurrency, by `kill -9`, or by a full disk."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rubricate.chat import AnswerCache, cache_contents

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX systems")

# Asks for the texts FIRST..LAST, prints each when it has been answered, and says at the end what it counted.
WORKER = """
import asyncio, sys
from rubricate.chat import AnswerCache, ChatRequest, Message, MockModel, connect

path, first, last, lanes = sys.argv[1], *map(int, sys.argv[2:5])
cache = AnswerCache(path)
model = connect(MockModel(lambda request: request.messages[0].content * 200), cache=cache)

async def lane(numbers):
    for number in numbers:
        answer = await model.complete(ChatRequest((Message("user", f"{number:05d} "),)))
        assert answer.text == f"{number:05d} " * 200, answer.text
        print(number, flush=True)

async def main():
    await asyncio.gather(*(lane(range(first + at, last, lanes)) for at in range(lanes)))

try:
    asyncio.run(main())
except Exception as error:
    print("error", type(error).__name__, error, flush=True)
stats = cache.stats
print("stats", stats.hits, stats.misses, stats.stored, stats.dropped, flush=True)
"""


def start(path: Path, first: int, last: int, lanes: int = 4, before: str = "") -> subprocess.Popen[str]:
    arguments = [str(path), str(first), str(last), str(lanes)]
    return subprocess.Popen(
        [sys.executable, "-c", before + WORKER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert err == ""
    return out.splitlines()


def check(path: Path, numbers: Sequence[int]) -> None:
    """The file is sound, and every one of these answers is in it, whole."""
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        texts = {json.loads(value)["text"] for (value,) in db.execute("SELECT value FROM answers")}
    db.close()
    assert texts >= {f"{number:05d} " * 200 for number in numbers}


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_one_cache(tmp_path: Path, processes: int) -> None:
    path, each, common = tmp_path / "c.sqlite", 60, 40
    # The last `common` texts of one are the first of the next.
    spans = [(at * (each - common), at * (each - common) + each) for at in range(processes)]
    running = [start(path, *span) for span in spans]
    outputs = [finish(process) for process in running]
    counts = [[int(number) for number in lines[-1].split()[1:]] for lines in outputs]
    wanted = set[int]().union(*(range(*span) for span in spans))
    check(path, sorted(wanted))
    found = cache_contents(path)
    assert found.answers == len(wanted)
    for span, lines, (hits, misses, stored, dropped) in zip(spans, outputs, counts, strict=True):
        assert sorted(int(line) for line in lines[:-1]) == list(range(*span))
        assert hits + misses == each and stored == misses and dropped == 0
    assert sum(misses for _, misses, _, _ in counts) >= len(wanted)
    assert [line for line in finish(start(path, 0, max(wanted) + 1)) if "stats" in line] == [
        f"stats {len(wanted)} 0 0 0"
    ]


@pytest.mark.parametrize("seed", range(4))
def test_what_was_answered_outlives_kill_9(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "c.sqlite"
    process = start(path, 0, 100_000)
    assert process.stdout is not None and process.stderr is not None
    answered: list[int] = []
    for _ in range(random.Random(seed).randrange(1, 300)):
        answered.append(int(process.stdout.readline()))
    process.send_signal(signal.SIGKILL)
    answered += [int(line) for line in process.stdout.read().splitlines()[:-1]]  # printed before it died
    process.stdout.close()
    process.stderr.close()
    process.wait()
    assert answered
    check(path, answered)
    cache = AnswerCache(path)
    try:
        assert len(cache.look_up([_key_of(path, number) for number in answered])) == len(answered)
    finally:
        cache.close()
    assert finish(start(path, 0, max(answered) + 1))[-1].startswith("stats ")


def _key_of(path: Path, number: int) -> str:
    """The key under which the worker's answer lies."""
    with sqlite3.connect(path) as db:
        query = "SELECT key FROM answers WHERE instr(value, ?)"
        (found,) = db.execute(query, (f"{number:05d} ".encode(),)).fetchone()
    db.close()
    return found.hex()


LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
"""


def test_a_file_that_may_not_grow_is_an_error_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    lines = finish(start(path, 0, 5000, lanes=1, before=LIMIT))
    answered = [int(line) for line in lines if line.isdecimal()]
    (error,) = [line for line in lines if line.startswith("error")]
    assert "ConfigError" in error and str(path) in error and "disk may be full" in error
    assert 5 < len(answered) < 5000
    check(path, answered[:-1])  # the last one was returned, and could not be kept
    assert cache_contents(path).answers >= len(answered) - 1


def test_a_full_file_system_is_an_error_and_no_damage(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        lines = finish(start(place / "c.sqlite", 0, 5000, lanes=1))
        answered = [int(line) for line in lines if line.isdecimal()]
        (error,) = [line for line in lines if line.startswith("error")]
        assert "ConfigError" in error and "disk may be full" in error
        check(place / "c.sqlite", answered[:-1])
    finally:
        subprocess.run(["umount", str(place)], check=True)


FORK = """
import asyncio, os, sys
from rubricate.chat import AnswerCache, ChatRequest, Message, MockModel, connect

model = connect(MockModel("yes"), cache=AnswerCache(sys.argv[1]))
calls = lambda text: asyncio.run(model.complete(ChatRequest((Message("user", text),)))).usage.calls
print(calls("a"), flush=True)
pid = os.fork()
print(calls("a"), calls("child" if pid == 0 else "parent"), flush=True)
if pid:
    os.waitpid(pid, 0)
    print(calls("child"))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_opens_the_file_anew(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path / "c.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.stderr) == (["1", "0", "1", "0", "1", "0"], "")
