"""Running checks: verdicts, independence of texts, limits, threads, event loops, cancellation, other machines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubricate.errors import ConfigError, MissingExtraError
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

needs_filter = pytest.mark.skipif(bool(unsupported_reason()), reason=unsupported_reason() or "a sandbox is there")

WORDS = """
import re
from collections import Counter
from typing import List

LIMIT: int = 3

def words(text: str) -> List[str]:
    return re.findall(r"[a-z]+", text.lower())

def verify_requirement(text: str) -> bool:
    counts = Counter()
    for word in words(text):
        counts[word] += 1
    total = 0
    for _, count in counts.items():
        total += count
    print(f"{total} words")
    return total >= LIMIT
"""
LOOP = "def verify_requirement(text):\n    while True:\n        pass\n"


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


def children() -> set[str]:
    """Processes that this one has started and that are still there, zombies too."""
    found: set[str] = set()
    for entry in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found |= set(entry.read_text().split())
    return found


@needs_filter
def test_a_check_as_models_write_it_gives_verdicts_in_order() -> None:
    results = run_checks(WORDS, ["one two three", "one", "a a a a"], seconds=30.0)
    assert [result.met for result in results] == [True, False, True]
    assert all(result.failure is None and result.message == "" for result in results)


USES = {
    "json": ("import json", "json.loads(text)['a'] == 1", '{"a": 1}', '{"a": 2}'),
    "json errors": (
        "import json\ndef ok(text):\n    try:\n        json.loads(text)\n    except json.JSONDecodeError:\n"
        "        return False\n    return True",
        "ok(text)",
        "[]",
        "[",
    ),
    "unpacking": ("", "[b for a, b in [tuple(text.split())]][0] == 'b'", "a b", "a c"),
    "dates": (
        "from datetime import datetime",
        "datetime.strptime(text, '%Y-%m-%d').day == 3",
        "2020-01-03",
        "2020-01-04",
    ),
    "star arguments": ("", "max(*text.split()) == 'b'", "a b", "a a"),
    "a substitution": ("import re", "re.sub('a', lambda m: m.group().upper(), text) == 'A'", "a", "b"),
    "numbers": ("import math", "math.isclose(float(text), math.pi, abs_tol=0.01)", "3.14", "3.2"),
    "characters": ("import unicodedata", "unicodedata.category(text[0]) == 'Lu'", "A", "a"),
    "text": ("import string", "all(c in string.ascii_lowercase for c in text)", "abc", "aBc"),
    "sorted by a method": ("", "sorted(text.split(), key=str.lower) == text.split()", "a B c", "b A"),
    "encodings": ("", "len(text.encode('utf-8')) == 2", "\u00e9", "e"),
    "formatted dates": (
        "import datetime",
        "datetime.date.fromisoformat(text).strftime('%d') == '03'",
        "2020-01-03",
        "2020-01-04",
    ),
    "broken json": (
        "import json\ndef ok(text):\n    try:\n        return bool(json.loads(text))\n"
        "    except ValueError:\n        return False",
        "ok(text)",
        '{"a": 1}',
        '{"a" 1}',
    ),
    "templates": ("import re", r"re.sub(r'(a)(b)', r'\2\g<1>', text) == 'ba'", "ab", "aa"),
    "counting": ("from collections import Counter", "Counter(text).most_common(1)[0][0] == 'a'", "aab", "bba"),
    "wrapping": ("import textwrap", "len(textwrap.wrap(text, 10)) == 2", "hello big world", "hello"),
    "digits": ("import json", "json.dumps({'a': text}, indent=1).count('1') == 1", "1", "2"),
    "groups": ("from itertools import groupby", "max(len(list(g)) for _, g in groupby(text)) < 3", "aab", "aaab"),
}


@needs_filter
@pytest.mark.parametrize(("head", "test", "yes", "no"), USES.values(), ids=USES.keys())
def test_what_checks_commonly_use_works(head: str, test: str, yes: str, no: str) -> None:
    source = f"{head}\ndef verify_requirement(text):\n    return {test}\n"
    first, second = run_checks(source, [yes, no], seconds=30.0)
    assert (first, second.failure) == (CheckResult(True, seconds=first.seconds), None), (first, second)
    assert second.met is False


@needs_filter
def test_texts_arrive_as_they_are() -> None:
    @settings(max_examples=5, deadline=None)
    @given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1, max_size=20))
    def check(texts: list[str]) -> None:
        source = f"def verify_requirement(text):\n    return text in {texts!r}\n"
        assert all(result.met for result in run_checks(source, texts, seconds=30.0))
        assert not any(result.met for result in run_checks(source, ["".join(texts) + "x"], seconds=30.0))

    check()


@needs_filter
def test_a_long_text_goes_through() -> None:
    source = "def verify_requirement(text):\n    return len(text) == 3000000\n"
    assert run_check(source, "\u00e9" * 3_000_000, seconds=30.0).met is True


@needs_filter
def test_nothing_is_carried_from_one_text_to_the_next() -> None:
    source = """
seen = []
def verify_requirement(text):
    seen.append(text)
    return len(seen) == 1
"""
    assert [result.met for result in run_checks(source, ["a", "b", "c"], seconds=30.0)] == [True, True, True]


@needs_filter
def test_a_failure_leaves_the_other_texts_their_verdicts() -> None:
    source = """
import re
def verify_requirement(text):
    if text == "loop":
        while True:
            pass
    if text == "memory":
        return len("x" * 10 ** 10) > 0
    if text == "raise":
        return 1 / 0 > 0
    return text == "yes"
"""
    results = run_checks(source, ["yes", "loop", "no", "memory", "raise", "yes"], seconds=1.0)
    assert [result.met for result in results] == [True, None, False, None, None, True]
    failures = [result.failure for result in results if result.failure]
    assert failures == [CheckFailure.TIMEOUT, CheckFailure.MEMORY, CheckFailure.ERROR]
    assert "ZeroDivisionError, line 10" in results[4].message


@needs_filter
@pytest.mark.parametrize(
    "source",
    ["def other(text):\n    return True\n", "verify_requirement = 1\n", "def f(:\n", "\x00", "return True"],
)
def test_a_source_without_the_function_is_a_failure_for_every_text(source: str) -> None:
    results = run_checks(source, ["a", "b"], seconds=30.0)
    assert [(result.met, result.failure) for result in results] == [(None, CheckFailure.SOURCE)] * 2


@needs_filter
def test_the_order_of_sets_is_the_same_in_every_run() -> None:
    source = "def verify_requirement(text):\n    return list(set(text.split())) == {}\n"
    words = " ".join(f"w{n}" for n in range(50))
    orders = [run_check(source.format(sorted(words.split())), words, seconds=30.0).met for _ in range(3)]
    assert len(set(orders)) == 1


def test_limits_out_of_range_are_errors() -> None:
    for seconds in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="seconds"):
            run_check(WORDS, "a", seconds=seconds)
    with pytest.raises(ConfigError, match="memory"):
        run_check(WORDS, "a", memory=1000)
    with pytest.raises(ConfigError, match="too long"):
        run_check("#" * 200_000, "a")
    with pytest.raises(ConfigError, match="no bound"):
        limit_processes(0)
    with pytest.raises(ValueError, match="met, not met, or failed"):
        CheckResult(None)


@needs_filter
def test_the_memory_limit_is_the_one_asked_for() -> None:
    source = "def verify_requirement(text):\n    return len(b'x' * (100 * 2 ** 20)) > 0\n"
    assert run_check(source, "", seconds=30.0, memory=512 * 2**20).met is True
    assert run_check(source, "", seconds=30.0, memory=96 * 2**20).failure is CheckFailure.MEMORY


def test_elsewhere_it_is_refused_unless_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    (result,) = run_checks(WORDS, ["a b c"], seconds=30.0)
    assert (result.met, result.failure) == (None, CheckFailure.UNSUPPORTED)
    assert "darwin" in result.message
    assert "unsafe_without_seccomp=True" in result.message
    (result,) = run_checks(WORDS, ["a b c"], seconds=30.0, unsafe_without_seccomp=True)
    assert result.met is True
    (result,) = run_checks(LOOP, ["a"], seconds=0.3, unsafe_without_seccomp=True)
    assert result.failure is CheckFailure.TIMEOUT


@needs_filter
def test_asking_for_the_unsafe_way_changes_nothing_where_there_is_a_filter() -> None:
    job = process.Job("import os\ndef f(text):\n    os.open('/', 0)\n", "f", ("a",), unsafe=True, restricted=False)
    (result,) = process.converse(job, process.Limits(30.0, 60.0, 256 * 2**20))
    assert "PermissionError" in result.message


def test_an_unknown_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ARCHITECTURES", {})
    monkeypatch.setattr(sys, "platform", "linux")
    assert run_check(WORDS, "a").failure is CheckFailure.UNSUPPORTED


def test_an_interpreter_that_cannot_start_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "unsupported_reason", lambda: "")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert run_check(WORDS, "a").failure is CheckFailure.START
    monkeypatch.setattr(sys, "executable", "/bin/false")
    result = run_check(WORDS, "a")
    assert result.failure is CheckFailure.START
    assert "status" in result.message


def test_without_restrictedpython_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    process.boot_code.cache_clear()
    monkeypatch.setattr(process, "unsupported_reason", lambda: "")

    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(MissingExtraError, match="sandbox"):
        run_check(WORDS, "a")


@needs_filter
def test_threads_may_check_at_the_same_time() -> None:
    def one(text: str) -> bool | None:
        return run_check(WORDS, text, seconds=30.0).met

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(one, ["a b c", "a"] * 4))
    assert results == [True, False] * 4


@needs_filter
async def test_the_event_loop_goes_on_while_a_check_runs() -> None:
    checking = asyncio.create_task(run_checks_async(LOOP, ["a"], seconds=0.4))
    turns = 0
    while not checking.done():
        turns += 1
        await asyncio.sleep(0)
    assert (await checking)[0].failure is CheckFailure.TIMEOUT
    assert turns > 100


@needs_filter
async def test_no_more_processes_than_allowed_run_at_a_time() -> None:
    limit_processes(2)
    try:
        checks = [asyncio.create_task(run_checks_async(LOOP, ["a"], seconds=0.2)) for _ in range(5)]
        most = 0
        while not all(check.done() for check in checks):
            most = max(most, len(children()))
            await asyncio.sleep(0)
        results = await asyncio.gather(*checks)
        assert [result.failure for (result,) in results] == [CheckFailure.TIMEOUT] * 5
    finally:
        limit_processes(None)
    assert 1 <= most <= 2


@needs_filter
async def test_a_cancelled_check_leaves_no_process() -> None:
    checks = [asyncio.create_task(run_checks_async(LOOP, ["a"], seconds=500.0)) for _ in range(20)]
    while not children():
        await asyncio.sleep(0)
    begun = time.monotonic()
    for check in checks:
        check.cancel()
    ended = await asyncio.gather(*checks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    assert children() == set()
    assert time.monotonic() - begun < 30.0


@needs_filter
def test_loops_in_several_threads_share_the_bound() -> None:
    def one(text: str) -> bool | None:
        return asyncio.run(run_checks_async(WORDS, [text], seconds=30.0))[0].met

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, ["a b c", "a", "a b c d", ""])) == [True, False, True, False]


@needs_filter
def test_a_forked_process_can_check() -> None:
    assert run_check(WORDS, "a b c", seconds=30.0).met is True
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(sender, b"y" if run_check(WORDS, "a b c", seconds=30.0).met else b"n")
        os._exit(0)
    os.close(sender)
    assert os.read(receiver, 1) == b"y"
    os.waitpid(pid, 0)
    os.close(receiver)
