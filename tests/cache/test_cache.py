"""The answer cache in one process: what is kept, what is asked, what is counted, what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rubricate.chat import (
    AnswerCache,
    Cached,
    ChatModel,
    ChatRequest,
    Completion,
    Finish,
    Limits,
    Message,
    MockModel,
    Scripted,
    cache_contents,
    clear_cache,
    connect,
    deadline,
    default_cache_path,
)
from rubricate.chat.cache_contents import add_answers, export_answers
from rubricate.chat.recording import recorded_entries
from rubricate.chat.timing import settle
from rubricate.errors import ChatError, ConfigError, DeadlineError, ServerError
from rubricate.types import Usage


def ask(text: str, **more: object) -> ChatRequest:
    return replace(ChatRequest((Message("user", text),)), **more)  # type: ignore[arg-type]  # by name


def cached(tmp_path: Path, mock: ChatModel, **options: object) -> Cached:
    found = connect(mock, cache=AnswerCache(tmp_path / "c.sqlite", **options))  # type: ignore[arg-type]  # by name
    assert isinstance(found, Cached)
    return found


class Gated(MockModel):
    """Its first call waits for `gate`, and then raises `error` where there is one."""

    def __init__(self, error: ChatError | None = None) -> None:
        super().__init__("yes")
        self.error = error
        self.begun, self.gate = asyncio.Event(), asyncio.Event()

    async def complete(self, request: ChatRequest) -> Completion:
        first = not self.requests
        answer = await super().complete(request)
        if first:
            self.begun.set()
            await self.gate.wait()
            if self.error is not None:
                raise self.error
        return answer


class Batches(MockModel):
    """Answers batches in a way of its own, and notes them."""

    def __init__(self) -> None:
        super().__init__("yes")
        self.batches: list[int] = []

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        self.batches.append(len(requests))
        return await super().complete_many(requests)


async def test_an_answer_is_paid_for_once(tmp_path: Path) -> None:
    mock = MockModel(lambda request: request.messages[0].content.upper())
    model = cached(tmp_path, mock)
    first, second = await model.complete(ask("a")), await model.complete(ask("a"))
    assert first.text == second.text == "A" and len(mock.requests) == 1
    assert first.usage.calls == 1
    assert second.usage == Usage()  # nothing was paid now
    stats = model.cache.stats
    assert (stats.hits, stats.misses, stats.stored, stats.saved) == (1, 1, 1, first.usage)


async def test_answers_outlive_the_process_that_paid(tmp_path: Path) -> None:
    await cached(tmp_path, MockModel("yes")).complete(ask("a"))
    gc.collect()
    mock = MockModel("yes")
    assert (await cached(tmp_path, mock).complete(ask("a"))).text == "yes"
    assert mock.requests == []


async def test_samples_are_answers_of_their_own(tmp_path: Path) -> None:
    mock = MockModel([str(n) for n in range(25)])
    model = cached(tmp_path, mock)
    asked = [ask("a", temperature=1.0, sample=n) for n in range(25)]
    texts = {(await model.complete(request)).text for request in asked}
    assert len(texts) == 25
    assert {(await model.complete(request)).text for request in asked} == texts
    assert len(mock.requests) == 25


async def test_models_do_not_share_answers(tmp_path: Path) -> None:
    yes, no = cached(tmp_path, MockModel("yes")), cached(tmp_path, MockModel("no"))
    assert [(await model.complete(ask("a"))).text for model in (yes, no, yes, no)] == ["yes", "no"] * 2


async def test_the_rest_of_a_batch_goes_on_together(tmp_path: Path) -> None:
    mock = Batches()
    model = cached(tmp_path, mock)
    await model.complete_many([ask("b"), ask("d")])
    answers = await model.complete_many([ask(text) for text in "abcdea"])
    assert mock.batches == [2, 3]
    assert [isinstance(answer, Completion) and answer.usage.calls for answer in answers] == [1, 0, 1, 0, 1, 0]
    assert await model.complete_many([]) == []


async def test_errors_and_empty_answers_are_asked_again(tmp_path: Path) -> None:
    mock = MockModel([ServerError("down"), "", "yes"])
    model = connect(mock, limits=Limits(max_attempts=1), cache=tmp_path / "c.sqlite")
    with pytest.raises(ServerError):
        await model.complete(ask("a"))
    assert [(await model.complete(ask("a"))).text for _ in range(3)] == ["", "yes", "yes"]


@pytest.mark.parametrize(
    "line", [Scripted("cut", finish=Finish.LENGTH), Scripted(refusal="no"), Scripted(finish=Finish.CONTENT_FILTER)]
)
async def test_cut_refused_and_filtered_answers_are_kept(tmp_path: Path, line: Scripted) -> None:
    mock = MockModel([line])
    model = cached(tmp_path, mock)
    first, second = await model.complete(ask("a")), await model.complete(ask("a"))
    assert second == replace(first, usage=Usage()) and second.outcome == first.outcome


async def test_what_is_asked_at_once_is_asked_once(tmp_path: Path) -> None:
    mock = MockModel("yes", latency=0.01)
    model = cached(tmp_path, mock)
    one, many, three = await asyncio.gather(
        model.complete(ask("a")), model.complete_many([ask("b"), ask("a")]), model.complete(ask("b"))
    )
    assert len(mock.requests) == 2
    answers = [one, three, *(answer for answer in many if isinstance(answer, Completion))]
    assert sum(answer.usage.calls for answer in answers) == 2  # paid once, and said once
    assert (model.cache.stats.shared, model.cache.stats.misses) == (2, 2)


def test_what_is_asked_at_once_on_several_loops_is_asked_once(tmp_path: Path) -> None:
    mock = MockModel("yes", latency=0.05)
    model = cached(tmp_path, mock)
    barrier, texts = threading.Barrier(4), list[str]()

    def work() -> None:
        async def go() -> None:
            barrier.wait()
            texts.append((await model.complete(ask("a"))).text)

        asyncio.run(go())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["yes"] * 4 and len(mock.requests) == 1


async def test_who_waits_asks_when_the_asker_gives_up(tmp_path: Path) -> None:
    mock = Gated()
    model = cached(tmp_path, mock)
    first = asyncio.ensure_future(model.complete(ask("a")))
    await mock.begun.wait()
    second = asyncio.ensure_future(model.complete(ask("a")))
    await settle()
    first.cancel()
    assert (await second).text == "yes"
    assert len(mock.requests) == 2
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_another_callers_deadline_is_not_ours(tmp_path: Path) -> None:
    mock = Gated(DeadlineError("too late"))
    model = cached(tmp_path, mock)
    first = asyncio.ensure_future(model.complete(ask("a")))
    await mock.begun.wait()
    second = asyncio.ensure_future(model.complete(ask("a")))
    await settle()
    mock.gate.set()
    assert (await second).text == "yes"
    with pytest.raises(DeadlineError, match="too late"):
        await first


async def test_who_waits_keeps_his_own_deadline(tmp_path: Path) -> None:
    mock = Gated()
    model = cached(tmp_path, mock)
    first = asyncio.ensure_future(model.complete(ask("a")))
    await mock.begun.wait()
    with deadline(0.0), pytest.raises(DeadlineError, match="same answer"):
        await model.complete(ask("a"))
    mock.gate.set()
    assert (await first).text == "yes"


async def test_an_error_is_shared_by_those_who_wait(tmp_path: Path) -> None:
    mock = MockModel([ServerError("down")], latency=0.005)
    model = connect(mock, limits=Limits(max_attempts=1), cache=tmp_path / "c.sqlite")
    results = await asyncio.gather(*(model.complete(ask("a")) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [ServerError] * 3 and len(mock.requests) == 1


async def test_a_found_answer_takes_no_permit_and_no_budget(tmp_path: Path) -> None:
    limits = Limits(max_tokens_total=1100, max_attempts=1)
    model = connect(MockModel("yes"), limits=limits, cache=tmp_path / "c.sqlite")
    for _ in range(50):
        assert (await model.complete(ask("a"))).text == "yes"


async def test_the_size_is_kept_and_the_least_used_go_first(tmp_path: Path) -> None:
    bound = 200_000
    model = cached(tmp_path, MockModel(lambda request: request.messages[0].content * 500), max_bytes=bound)
    await model.complete(ask("keep"))
    for n in range(300):
        await model.complete(ask(f"{n:04d}"))
        if n % 5 == 0:
            await model.complete(ask("keep"))  # used again and again
    stats, found = model.cache.stats, cache_contents(model.cache.path)
    assert found.used_bytes <= bound and found.answers == 301 - stats.evicted
    assert found.answers > 30
    hits = stats.hits
    await model.complete(ask("keep"))
    await model.complete(ask("0299"))
    assert model.cache.stats.hits == hits + 2
    await model.complete(ask("0001"))
    assert model.cache.stats.hits == hits + 2  # long gone


async def test_a_cache_pickles_as_its_place(tmp_path: Path) -> None:
    model = cached(tmp_path, MockModel("yes"), max_bytes=12_345_678)
    await model.complete(ask("a"))
    copy: Cached = pickle.loads(pickle.dumps(model))
    assert (copy.cache.path, copy.cache.max_bytes) == (model.cache.path, 12_345_678)
    assert (await copy.complete(ask("a"))).usage == Usage()


async def test_closing_is_not_the_end(tmp_path: Path) -> None:
    model = cached(tmp_path, MockModel(["yes"]))
    await model.complete(ask("a"))
    await model.aclose()
    model.cache.close()
    model.cache.close()
    assert (await model.complete(ask("a"))).text == "yes"


def test_the_default_place_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUBRICATE_CACHE", str(tmp_path / "new"))
    assert default_cache_path() == tmp_path / "new" / "answers.sqlite"
    cache = AnswerCache()
    cache.open()
    assert default_cache_path().is_file()
    other = AnswerCache(tmp_path / "slip" / "c.sqlite")
    with pytest.raises(ConfigError, match="cannot be opened"):
        other.open()
    assert not (tmp_path / "slip").exists()


@pytest.mark.parametrize(
    "content", [b"this is a text file, not a database" * 40, b"SQLite format 3\x00" + b"\xff" * 5000]
)
async def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)
    mock = MockModel("yes")
    with pytest.raises(ConfigError, match="c.sqlite") as raised:
        await connect(mock, cache=path).complete(ask("a"))
    assert "move it away or delete it" in raised.value.hint
    assert path.read_bytes() == content and mock.requests == []


async def test_damage_in_the_middle_is_an_error_too(tmp_path: Path) -> None:
    model = cached(tmp_path, MockModel("yes" * 3000))
    for n in range(20):
        await model.complete(ask(str(n)))
    path = model.cache.path
    model.cache.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xee" * (len(whole) - 8192))
    with pytest.raises(ConfigError, match="is damaged"):
        for n in range(20):
            await model.complete(ask(str(n)))


def test_other_programs_databases_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(ConfigError, match="another program's"):
        AnswerCache(path).open()


def test_another_version_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    AnswerCache(path).open()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(ConfigError, match="version 7") as raised:
        AnswerCache(path).open()
    assert "name another file" in raised.value.hint


async def test_a_locked_file_passes_answers_on_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = cached(tmp_path, MockModel("yes"), busy_timeout=0.01)
    await model.complete(ask("a"))
    holder = sqlite3.connect(model.cache.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        for n in range(3):
            assert (await model.complete(ask(str(n)))).text == "yes"
        assert (await model.complete(ask("a"))).usage == Usage()  # reading goes on
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert model.cache.stats.dropped == 3
    assert sum("locked by another process" in record.message for record in caplog.records) == 1
    await model.complete(ask("b"))
    assert model.cache.stats.stored == 2


async def test_a_full_disk_is_an_error_and_the_paid_answer_is_not_lost(tmp_path: Path) -> None:
    mock = MockModel(lambda request: request.messages[0].content * 3000)
    model = cached(tmp_path, mock, max_bytes=None)
    await model.complete(ask("a"))
    current = model.cache._current()  # pyright: ignore[reportPrivateUsage]  # the bound is a connection's own
    current.writer._db.execute("PRAGMA max_page_count = 30")  # pyright: ignore[reportPrivateUsage]
    texts = "bcdefghijklmnopqrstuvwxyz"
    answered: list[str] = []
    with pytest.raises(ConfigError, match="the disk may be full") as raised:
        for text in texts:
            answered.append((await model.complete(ask(text))).text)
    assert "free some space" in raised.value.hint and str(model.cache.path) in raised.value.message
    assert len(mock.requests) == len(answered) + 1  # all that was paid for was returned, no more was asked
    assert (await model.complete(ask("a"))).usage == Usage()  # what is kept can be read
    current.writer._db.execute("PRAGMA max_page_count = 3000")  # pyright: ignore[reportPrivateUsage]
    await model.complete(ask("z"))
    for text in texts[: len(answered)]:  # the one that did not fit was kept once there was room
        assert (await model.complete(ask(text))).usage == Usage()


async def test_clearing_gives_the_space_back(tmp_path: Path) -> None:
    model = cached(tmp_path, MockModel("yes " * 25_000))
    for index in range(20):
        await model.complete(ask(str(index)))
    model.cache.close()
    path = model.cache.path
    size = path.stat().st_size
    assert clear_cache(path) == 20
    assert size > 1_000_000
    assert path.stat().st_size < 100_000


async def test_clearing_by_model_and_age(tmp_path: Path) -> None:
    one, two = cached(tmp_path, MockModel("1", name="one")), cached(tmp_path, MockModel("2", name="two"))
    for n in range(3):
        await one.complete(ask(str(n)))
        await two.complete(ask(str(n)))
    path = one.cache.path
    assert [(name, count) for name, _, count, _ in cache_contents(path).models] == [("one", 3), ("two", 3)]
    assert clear_cache(path, model="one", older_than=3600) == 0
    assert clear_cache(path, model=one.fingerprint) == 3
    assert cache_contents(path).answers == 3
    with pytest.raises(ConfigError, match="no answers of 'three'") as raised:
        clear_cache(path, model="three")
    assert "one, two" in raised.value.hint
    assert clear_cache(path, older_than=-3600) == 3
    assert (await one.complete(ask("0"))).usage.calls == 1
    with pytest.raises(ConfigError, match="no answer cache"):
        cache_contents(tmp_path / "none.sqlite")


async def test_an_export_is_a_recording_and_can_be_imported(tmp_path: Path) -> None:
    model = cached(tmp_path, MockModel(p_yes=0.3))
    asked = [ask(text, top_logprobs=5) for text in ("a", "b", "日本語")]
    paid = [await model.complete(request) for request in asked]
    recording = tmp_path / "e.jsonl"
    recording.write_bytes(b"".join(export_answers(model.cache.path)))
    replay = connect(f"replay:{recording}")
    assert [await replay.complete(request) for request in asked] == paid
    assert (replay.name, replay.fingerprint) == (model.name, model.fingerprint)
    other = tmp_path / "other.sqlite"
    assert add_answers(other, recorded_entries(recording)) == 3
    assert add_answers(other, recorded_entries(recording)) == 0
    again = connect(MockModel(p_yes=0.3), cache=other)
    assert [await again.complete(request) for request in asked] == [replace(one, usage=Usage()) for one in paid]


async def test_keys_of_the_user_are_nowhere(tmp_path: Path) -> None:
    from rubricate.chat.testserver import FaultyServer

    secret, recording = "sk-very-secret-key", tmp_path / "r.jsonl"
    async with FaultyServer(lambda body: "yes") as server:
        model = connect(f"{server.url}#m", api_key=secret, cache=tmp_path / "c.sqlite", record=recording)
        await model.complete(ask("a"))
        await model.aclose()
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(files) >= 2 and not any(secret.encode() in content for content in files)


async def test_one_place_is_one_cache_in_a_process(tmp_path: Path) -> None:
    one, two = (connect(MockModel("yes"), cache=str(tmp_path / "c.sqlite")) for _ in range(2))
    assert isinstance(one, Cached) and isinstance(two, Cached) and one.cache is two.cache


def test_layers_go_in_one_order(tmp_path: Path) -> None:
    both = connect("mock:yes", cache=tmp_path / "c", record=tmp_path / "r")
    for more in ({"limits": Limits()}, {"cache": tmp_path / "d"}):
        with pytest.raises(ConfigError, match="cache"):
            connect(both, **more)  # type: ignore[arg-type]  # by name
    assert connect(both) is both


@pytest.mark.parametrize("value", [b"[" * 100_000, 5, b"{}"])
async def test_an_answer_that_was_tampered_with_names_the_file(tmp_path: Path, value: object) -> None:
    path = tmp_path / "a.sqlite"
    model = connect(MockModel("yes"), cache=path)
    await model.complete(ask("a"))
    await model.aclose()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE answers SET value = ?", (value,))
        other.commit()
    with pytest.raises(ConfigError, match="a.sqlite is damaged"):
        await model.complete(ask("a"))
