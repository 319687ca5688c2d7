"""Recordings and their replay: the same answers and errors for the same askers, in whatever order they ask."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rubricate.chat import (
    ChatModel,
    ChatRequest,
    Completion,
    FailRate,
    Limits,
    Message,
    MockModel,
    Recorder,
    Recording,
    ReplayModel,
    Scripted,
    attempts_of,
    connect,
    deadline,
    recording_scope,
)
from rubricate.chat.recording import recorded_entries
from rubricate.errors import (
    BudgetError,
    ChatError,
    ConfigError,
    DeadlineError,
    FormatError,
    RequestError,
    RubricateError,
    ServerError,
)
from rubricate.types import Usage


def ask(text: str, **more: object) -> ChatRequest:
    return replace(ChatRequest((Message("user", text),)), **more)  # type: ignore[arg-type]  # by name


def recorder(place: Path | Recording, mock: ChatModel, *, attempts: int = 1) -> ChatModel:
    return connect(mock, limits=Limits(max_attempts=attempts, backoff=0.0), record=place)


async def outcome(model: ChatModel, request: ChatRequest) -> Completion | RubricateError:
    try:
        return await model.complete(request)
    except RubricateError as error:
        return error


def same(one: object, other: object) -> bool:
    if isinstance(one, RubricateError) and isinstance(other, RubricateError):
        return type(one) is type(other) and vars(one) == vars(other)
    return one == other


async def test_a_replay_gives_the_same_answers_and_errors(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    mock = MockModel(p_yes=0.25, fail=FailRate(0.5, seed=1, error=ServerError("down", status=503, provider="p")))
    model = recorder(path, mock, attempts=2)
    asked = [ask(f"q{n}", top_logprobs=3) for n in range(30)]
    recorded = [await outcome(model, request) for request in asked]
    assert {type(one) for one in recorded} == {Completion, ServerError}
    await model.aclose()
    replay = connect(f"replay:{path}")
    for request, before in reversed(list(zip(asked, recorded, strict=True))):
        assert same(await outcome(replay, request), before)
    failed = next(one for one in recorded if isinstance(one, ServerError))
    assert (failed.status, failed.provider, attempts_of(failed)) == (503, "p", 2)
    retried = [one.usage.calls for one in recorded if isinstance(one, Completion)]
    assert set(retried) == {1, 2}  # the usage has the retries
    assert (replay.name, replay.fingerprint) == (mock.name, mock.fingerprint)
    assert replay.capabilities == mock.capabilities


async def test_batches_are_recorded_answer_by_answer(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    mock = MockModel([Scripted("1", match="a"), Scripted(match="b", error=BudgetError("spent")), "3"])
    asked = [ask("a"), ask("b"), ask("c")]
    recorded = await recorder(path, mock).complete_many(asked)
    replayed = await connect(f"replay:{path}").complete_many(asked)
    assert all(same(one, other) for one, other in zip(recorded, replayed, strict=True))
    assert [type(one) for one in replayed] == [Completion, BudgetError, Completion]


async def test_equal_requests_of_several_scopes_keep_their_own_answers(tmp_path: Path) -> None:
    path, texts = tmp_path / "r.jsonl", [str(n) for n in range(6)]
    model = recorder(path, MockModel(texts))

    async def rows(model: ChatModel, order: Sequence[int]) -> list[tuple[int, list[str]]]:
        found: list[tuple[int, list[str]]] = []
        for n in order:
            with recording_scope(f"row {n}"):
                found.append((n, [(await model.complete(ask("same"))).text for _ in range(2)]))
        return sorted(found)

    recorded = await rows(model, [0, 1, 2])
    assert recorded == [(0, ["0", "1"]), (1, ["2", "3"]), (2, ["4", "5"])]
    assert await rows(connect(f"replay:{path}"), [2, 0, 1]) == recorded


async def test_a_scope_reaches_the_tasks_started_in_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    model = recorder(path, MockModel(["1", "2"]))
    with recording_scope("row"):
        task = asyncio.ensure_future(model.complete(ask("a")))
    await task
    assert '"scope":"row"' in path.read_text("utf-8")


async def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = MockModel([Scripted("one", match="a"), Scripted(match="b", error=ServerError("down")), ""])
    model = recorder(path, first)
    for text in "abc":
        with recording_scope(text):
            await outcome(model, ask(text))
    await model.aclose()
    with open(path, "ab") as file:
        file.write(b'{"key":"torn when it was ki')
    second = MockModel(["two", "three"], name="mock")
    second.script = first.script  # the same model to look at …
    answers = iter(["two", "three"])
    second._choose = lambda request: next(answers)  # type: ignore[method-assign]  # … with better luck
    model = recorder(Recording(path), second)
    texts: list[str] = []
    for text in "abc":
        with recording_scope(text):
            texts.append((await model.complete(ask(text))).text)
    assert texts == ["one", "two", "three"]  # what was paid for is not asked again; errors and empty answers are
    assert len(second.requests) == 2
    await model.aclose()
    replay = connect(f"replay:{path}")
    for text, expected in zip("abc", texts, strict=True):
        with recording_scope(text):
            assert (await replay.complete(ask(text))).text == expected


async def test_a_request_that_was_not_recorded_is_an_error_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    await recorder(path, MockModel("yes")).complete(ask("recorded"))
    replay = ReplayModel(path)
    assert replay.lacks(ask("another")) and not replay.lacks(ask("recorded"))
    with pytest.raises(RequestError, match="r.jsonl.*sample 3.*'another'") as raised:
        await replay.complete(ask("another", sample=3))
    assert "record it anew" in raised.value.hint and replay.lacking is raised.value
    results = await replay.complete_many([ask("recorded"), ask("other")])
    assert [type(result) for result in results] == [Completion, RequestError]


async def test_several_models_share_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    one, two = recorder(path, MockModel("1", name="one")), recorder(path, MockModel("2", name="two"))
    await asyncio.gather(one.complete(ask("a")), two.complete(ask("a")))
    with pytest.raises(ConfigError, match="of 2 models") as raised:
        connect(f"replay:{path}")
    assert "one (" in raised.value.hint and two.fingerprint in raised.value.hint
    for name, text in (("one", "1"), (two.fingerprint, "2")):
        assert (await connect(f"replay:{path}#{name}").complete(ask("a"))).text == text
    with pytest.raises(ConfigError, match="no model 'three'"):
        connect(f"replay:{path}#three")


async def test_a_call_that_is_cut_off_is_cut_off_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    model = recorder(path, MockModel(Scripted(hang=True)))
    task = asyncio.ensure_future(model.complete(ask("a")))
    while not path.exists() or b"\n" not in path.read_bytes():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    replay = connect(f"replay:{path}")
    with deadline(0.05), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await replay.complete(ask("a"))
    with pytest.raises(DeadlineError, match="cut off"):
        await replay.complete(ask("a"))


async def test_errors_that_are_no_answers_are_recorded_too(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    model = recorder(path, MockModel([]))
    with pytest.raises(ConfigError, match="no answer for call") as raised:
        await model.complete(ask("a"))
    with pytest.raises(ConfigError) as again:
        await connect(f"replay:{path}").complete(ask("a"))
    assert str(again.value) == str(raised.value)


async def test_one_process_records_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = Recording(path)
    first.open()
    with pytest.raises(ConfigError, match="another process is recording"):
        Recording(path).open()
    first.close()
    Recording(path).open()


@pytest.mark.parametrize("content", ["", '{"rec', '{"recording":"rubricate","version":1}'])
async def test_a_file_whose_writer_died_at_once_begins_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(content, "utf-8")
    model = recorder(Recording(path), MockModel("yes"))
    await model.complete(ask("a"))
    assert (await connect(f"replay:{path}").complete(ask("a"))).text == "yes"


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("content", ["my notes", '{"prompt": "p"}\n{"prompt": "q"}\n', "{}\n"])
def test_nobodys_file_is_written_over(tmp_path: Path, content: str, restart: bool) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(content, "utf-8")
    with pytest.raises(FormatError, match="no recording"):
        Recording(path, restart=restart).open()
    with pytest.raises((FormatError, ConfigError)):
        connect(f"replay:{path}")
    assert path.read_text("utf-8") == content


def test_damage_and_other_versions_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"recording":"rubricate","version":1}\nnonsense\n', "utf-8")
    with pytest.raises(FormatError, match="r.jsonl:2"):
        ReplayModel(path)
    path.write_text('{"recording":"rubricate","version":9}\n', "utf-8")
    with pytest.raises(FormatError, match="version 9"):
        ReplayModel(path)
    with pytest.raises(FormatError, match="cannot be read"):
        ReplayModel(tmp_path / "none.jsonl")
    path.write_text('{"recording":"rubricate","version":1}\n', "utf-8")
    with pytest.raises(ConfigError, match="is empty"):
        ReplayModel(path)


async def test_a_full_disk_ends_it_and_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording(path)
    model = recorder(recording, MockModel("yes"))
    await model.complete(ask("a"))
    whole = path.read_bytes()

    def half(file: int, raw: bytes) -> None:
        import os

        os.write(file, raw[: len(raw) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rubricate.chat.recording.write_whole", half)
    with pytest.raises(ConfigError, match="No space left"):
        await model.complete(ask("b"))
    assert path.read_bytes() == whole and recording.failure is not None


async def test_what_cannot_be_read_is_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    model = recorder(path, MockModel([Scripted("yes", match="a"), Scripted(match="b", error=ServerError("x")), ""]))
    for text in "abc":
        await outcome(model, ask(text))
    assert [json.loads(entry.value)["text"] for entry in recorded_entries(path)] == ["yes"]


async def test_hits_of_a_cache_are_recorded_as_they_were_given(tmp_path: Path) -> None:
    path, mock = tmp_path / "r.jsonl", MockModel("yes")
    await connect(mock, cache=tmp_path / "c.sqlite").complete(ask("a"))
    model = connect(mock, cache=tmp_path / "c.sqlite", record=path)
    assert (await model.complete(ask("a"))).usage == Usage()
    assert (await connect(f"replay:{path}").complete(ask("a"))).usage == Usage()
    assert len(mock.requests) == 1


async def test_recorders_and_replays_pickle(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    model = recorder(path, MockModel("yes"))
    await model.complete(ask("a"))
    await model.aclose()
    copy = pickle.loads(pickle.dumps(model))
    assert isinstance(copy, Recorder) and (await copy.complete(ask("a"))).text == "yes"
    replay: ReplayModel = pickle.loads(pickle.dumps(ReplayModel(path)))
    assert (await replay.complete(ask("a"))).text == "yes"


async def test_a_copy_of_a_recorder_goes_on_with_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    model = connect(MockModel("yes"), record=path)
    assert (await model.complete(ask("a"))).text == "yes"
    copy: ChatModel = pickle.loads(pickle.dumps(model))
    assert (await copy.complete(ask("b"))).text == "yes"
    await model.aclose()
    assert len(list(recorded_entries(path))) == 2


async def test_a_replay_that_is_recorded_gives_what_it_gives_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    answers = [f"answer {n}" for n in range(4)]

    async def run(model: ChatModel) -> list[str]:
        texts: list[str] = []
        for row in ("row 1", "row 2"):
            with recording_scope(row):
                texts += [(await model.complete(ask("the same"))).text for _ in range(2)]
        await model.aclose()
        return texts

    assert await run(recorder(first, MockModel(answers))) == answers
    assert await run(connect(f"replay:{first}", record=second)) == answers
    assert await run(connect(f"replay:{second}")) == answers


async def test_replays_of_one_file_count_on_from_each_other(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording(path)
    mock = MockModel(["one", "two"])
    recorders = [connect(mock, record=recording) for _ in range(2)]
    with recording_scope("row"):
        assert [(await model.complete(ask("q"))).text for model in recorders] == ["one", "two"]
    recording.close()
    with recording_scope("row"):
        assert [(await connect(f"replay:{path}").complete(ask("q"))).text for _ in range(2)] == ["one", "two"]


@pytest.mark.parametrize("make", ["fifo", "null"])
async def test_only_regular_files_hold_recordings(tmp_path: Path, make: str) -> None:
    path = tmp_path / "pipe"
    if make == "fifo":
        os.mkfifo(path)
    else:
        path = Path("/dev/null")
    with pytest.raises(ConfigError, match="no regular file"):
        await recorder(path, MockModel("yes")).complete(ask("a"))
    with pytest.raises(FormatError, match="can be read again"):
        ReplayModel(path)


def test_a_line_that_is_nested_without_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"recording":"rubricate","version":1}\n' + b"[" * 100_000 + b"\n")
    with pytest.raises(FormatError, match=r"r\.jsonl:2"):
        ReplayModel(path)


async def test_a_replay_takes_no_cache_and_no_limits(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    await recorder(path, MockModel("yes")).complete(ask("a"))
    with pytest.raises(ConfigError, match="takes no cache"):
        connect(f"replay:{path}", cache=tmp_path / "c.sqlite")
    bare = connect(f"replay:{path}", limits=Limits(max_tokens_total=1))
    assert isinstance(bare, ReplayModel) and isinstance(await outcome(bare, ask("a")), Completion)
    assert connect(bare) is bare


async def test_the_server_cannot_be_reached_and_the_name_cannot_be_had(tmp_path: Path) -> None:
    model = connect("http://127.0.0.1:9/v1", limits=Limits(max_attempts=1), record=tmp_path / "r.jsonl")
    results = await model.complete_many([ask("a"), ask("b")])
    assert all(isinstance(result, ChatError) for result in results)
