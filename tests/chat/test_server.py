"""The aiohttp and the SDK back ends against a real server on loopback. Both must behave alike."""

from __future__ import annotations

import asyncio
import gc
import math
import multiprocessing
import pickle
import socket
import time
from collections.abc import Callable

import pytest

from rubricate.bridge import run_sync
from rubricate.chat import (
    ChatModel,
    ChatRequest,
    Completion,
    Limited,
    Limiter,
    Limits,
    Message,
    Outcome,
    connect,
    deadline,
)
from rubricate.chat.openai_sdk import OpenAIModel, is_reasoning_model
from rubricate.chat.server import KEY_VARIABLE, ServerModel, clean_url
from rubricate.chat.testserver import Faults, FaultyServer, Reply, prompt_text
from rubricate.errors import (
    ChatError,
    ConfigError,
    DeadlineError,
    RateLimitError,
    RequestError,
    ServerError,
)

Make = Callable[[str], ChatModel]


def thin(url: str) -> ChatModel:
    return ServerModel(url, "test")


def sdk(url: str) -> ChatModel:
    return OpenAIModel("test", base_url=url, api_key="sk-test")


both = pytest.mark.parametrize("make", [thin, sdk])


def ask(text: str = "hello", top_logprobs: int | None = None) -> ChatRequest:
    return ChatRequest((Message("user", text),), max_tokens=8, top_logprobs=top_logprobs)


def echo(body: dict[str, object]) -> str:
    return prompt_text(body)


@both
async def test_answer_logprobs_and_usage(make: Make) -> None:
    async with FaultyServer(lambda body: Reply(top={"yes": 0.7, "no": 0.2}, reasoning="hm"), record=True) as server:
        model = make(server.url)
        answer = await model.complete(ask("x" * 128, top_logprobs=2))
        again = await model.complete(ask("x" * 128))
        await model.aclose()
    assert (answer.text, answer.reasoning, answer.outcome) == ("yes", "hm", Outcome.OK)
    assert answer.logprobs is not None
    assert dict(answer.logprobs[0].top) == pytest.approx({"yes": math.log(0.7), "no": math.log(0.2)})
    assert answer.usage.prompt_tokens == 32
    assert (again.usage.cached_tokens, again.logprobs) == (32, None)
    assert server.bodies[0]["model"] == "test"
    assert server.bodies[0]["max_tokens"] == 8


@both
async def test_text_of_any_script_arrives_unchanged(make: Make) -> None:
    text = 'quotes " \\ line\nbreak, 日本語, 🙂 and a lone \ud800'
    async with FaultyServer(echo, record=True) as server:
        model = make(server.url)
        if make is thin:
            assert (await model.complete(ask(text))).text == text
        assert (await model.complete(ask(text[:-1]))).text == text[:-1]
        await model.aclose()


@both
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("garbage", ServerError),
        ("truncated", ServerError),
        ("disconnect", ServerError),
        ("http", RateLimitError),
    ],
)
async def test_faults_become_errors_to_try_again(make: Make, fault: str, error: type[ChatError]) -> None:
    async with FaultyServer(echo, Faults(**{fault: 1.0})) as server:
        model = make(server.url)
        with pytest.raises(error) as caught:
            await model.complete(ask())
        await model.aclose()
    assert caught.value.retryable
    assert caught.value.provider == model.name
    if isinstance(caught.value, RateLimitError):
        assert caught.value.retry_after == 0.02


@both
@pytest.mark.parametrize("outcome", [Outcome.EMPTY, Outcome.LENGTH, Outcome.REFUSAL, Outcome.CONTENT_FILTER])
async def test_outcomes_are_distinct(make: Make, outcome: Outcome) -> None:
    async with FaultyServer(echo, Faults(**{outcome.value: 1.0})) as server:
        model = make(server.url)
        assert (await model.complete(ask())).outcome is outcome
        await model.aclose()


@both
async def test_a_server_that_is_not_there(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = make(f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ServerError, match="no connection") as caught:
        await model.complete(ask())
    assert str(port) in caught.value.hint
    await model.aclose()


@both
async def test_a_hanging_server_does_not_outlive_the_deadline(make: Make) -> None:
    async with FaultyServer(echo, Faults(hang=1.0)) as server:
        raw = make(server.url)
        for model in (raw, Limited(raw, Limiter(Limits(concurrency=2)))):
            start = time.monotonic()
            with deadline(0.15):
                results = await model.complete_many([ask(str(at)) for at in range(4)])
            assert time.monotonic() - start < 30
            assert [type(result) for result in results] == [DeadlineError] * 4
        await raw.aclose()


@both
async def test_a_client_timeout_is_a_server_error(make: Make) -> None:
    async with FaultyServer(echo, Faults(hang=1.0)) as server:
        model = make(server.url)
        assert isinstance(model, ServerModel | OpenAIModel)
        model.timeout = 0.05
        with pytest.raises(ServerError, match=r"no answer within 0\.05 s"):
            await model.complete(ask())
        with deadline(0.0), pytest.raises(DeadlineError):
            await model.complete(ask())
        await model.aclose()


@both
async def test_faults_at_half_of_all_requests_are_ridden_out(make: Make) -> None:
    limits = Limits(backoff=0.001, max_attempts=30, seed=0)
    async with FaultyServer(echo, Faults(http=0.3, disconnect=0.1, garbage=0.1, retry_after=0.001)) as server:
        model = Limited(make(server.url), Limiter(limits))
        answers = await asyncio.gather(*(model.complete(ask(str(at))) for at in range(60)))
        await model.aclose()
    assert [answer.text for answer in answers] == [str(at) for at in range(60)]
    assert sum(answer.usage.calls for answer in answers) == server.counts.requests


@both
async def test_concurrency_reaches_the_bound_and_connections_are_reused(make: Make) -> None:
    async with FaultyServer(echo, latency=0.005) as server:
        model = Limited(make(server.url), Limiter(Limits(concurrency=5)))
        await asyncio.gather(*(model.complete(ask(str(at))) for at in range(40)))
        await model.aclose()
    assert server.counts.max_in_flight == 5
    assert server.counts.connections <= 5


@both
def test_asyncio_run_again_and_again_without_closing(make: Make) -> None:
    with FaultyServer(echo) as server:
        model = make(server.url)
        for at in range(3):
            assert asyncio.run(model.complete(ask(str(at)))).text == str(at)
        assert run_sync(model.complete(ask("bridge"))).text == "bridge"
        assert run_sync(model.complete(ask("again"))).text == "again"
        assert server.counts.connections == 4
        run_sync(model.aclose())
        assert asyncio.run(model.complete(ask("after"))).text == "after"


@both
async def test_a_dropped_model_closes_its_connections(make: Make) -> None:
    async with FaultyServer(echo) as server:
        model = make(server.url)
        await model.complete(ask())
        del model
        gc.collect()
        for _ in range(20):
            await asyncio.sleep(0)


def in_child(model: ChatModel, results: multiprocessing.SimpleQueue[str]) -> None:
    results.put(asyncio.run(model.complete(ask("child"))).text + run_sync(model.complete(ask("bridge"))).text)


@both
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(make: Make) -> None:
    with FaultyServer(echo) as server:
        model = make(server.url)
        assert run_sync(model.complete(ask("parent"))).text == "parent"
        context = multiprocessing.get_context("fork")
        results: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
        process = context.Process(target=in_child, args=(model, results))
        process.start()
        process.join(30)
        assert process.exitcode == 0
        assert results.get() == "childbridge"
        assert run_sync(model.complete(ask("parent"))).text == "parent"
        run_sync(model.aclose())


async def test_the_servers_model_is_asked_for_once() -> None:
    async with FaultyServer(echo, model="judge-7b", record=True) as server:
        model = ServerModel(server.url)
        await asyncio.gather(*(model.complete(ask()) for _ in range(5)))
        named = ServerModel(server.url, "judge-7b")
        assert model.fingerprint == named.fingerprint
        assert {body["model"] for body in server.bodies} == {"judge-7b"}
        await model.aclose()


def test_the_fingerprint_asks_for_the_model_from_sync_code() -> None:
    with FaultyServer(echo, model="judge-7b") as server:
        model = ServerModel(server.url)
        assert model.fingerprint == ServerModel(server.url, "judge-7b").fingerprint
        assert model.fingerprint != ServerModel(server.url, "other").fingerprint
        run_sync(model.aclose())


async def test_keys_are_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-from-env")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    async with FaultyServer(echo, record=True) as server:
        given = connect(server.name, api_key="sk-given")
        from_env = connect(server.name)
        hosted = connect("openai:test", base_url=server.url)
        for model in (given, from_env, hosted):
            await model.complete(ask())
            await model.aclose()
            shown = f"{model.name} {model!r} {vars(model)} {vars(vars(model)['model'])} {model.fingerprint}"
            assert "sk-" not in shown
            twin = pickle.loads(pickle.dumps(model))
            await twin.complete(ask())
            await twin.aclose()
    keys = [headers["Authorization"] for headers in server.headers]
    assert keys == [f"Bearer {key}" for key in ("sk-given", "sk-from-env", "sk-openai") for _ in range(2)]
    assert b"sk-from-env" not in pickle.dumps(from_env)
    assert b"sk-openai" not in pickle.dumps(hosted)
    assert given.fingerprint == from_env.fingerprint


@pytest.mark.parametrize(
    ("mark", "option", "expected"),
    [("vllm-0.32.0-ce3059c1", "auto", None), ("fp_1", "auto", 256), ("", "auto", 256), ("vllm-0.32.0", 300, 300)],
)
async def test_a_server_that_shares_prefixes_at_once_is_not_warmed(
    mark: str, option: int | str, expected: int | None
) -> None:
    """Known by its answers; what the caller has chosen stays."""
    in_flight = 0
    most = list[int]()

    class Watched(ServerModel):
        async def complete(self, request: ChatRequest) -> Completion:
            nonlocal in_flight
            in_flight += 1
            most.append(in_flight)
            try:
                return await super().complete(request)
            finally:
                in_flight -= 1

    async with FaultyServer(lambda body: Reply("yes", system_fingerprint=mark)) as server:
        model = Watched(server.url, "test", warm_tokens=option)
        first = [ask("x" * 2000 + str(at)) for at in range(4)]
        await model.complete_many(first)
        assert most[:2] == [1, 1]  # the second call begins when the first is answered
        most.clear()
        await model.complete_many(first)
        assert most[:2] == ([1, 2] if expected is None else [1, 1])
        assert model.capabilities.warm_tokens == expected
        assert model.shares_at_once == (expected is None)
        assert pickle.loads(pickle.dumps(ServerModel(server.url, warm_tokens=option))).warm_tokens in (256, 300)
        await model.aclose()


def test_a_wrong_word_for_warming_is_refused() -> None:
    with pytest.raises(ConfigError, match="warm_tokens"):
        ServerModel("http://127.0.0.1:1/v1", warm_tokens="always")


async def test_no_key_for_openai_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(RequestError, match="no API key"):
        await OpenAIModel("gpt-5-mini").complete(ask())


def test_openai_addresses_and_dialects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")
    elsewhere = OpenAIModel("gpt-5-mini")
    assert elsewhere.base_url == "http://127.0.0.1:1/v1"
    assert (elsewhere.dialect.token_field, elsewhere.dialect.sampling) == ("max_tokens", True)
    monkeypatch.delenv("OPENAI_BASE_URL")
    at_home = OpenAIModel("gpt-5-mini")
    assert (at_home.dialect.token_field, at_home.dialect.sampling) == ("max_completion_tokens", False)
    assert not at_home.capabilities.logprobs
    assert OpenAIModel("gpt-4.1").dialect.sampling
    assert at_home.fingerprint != elsewhere.fingerprint


@pytest.mark.parametrize(
    ("name", "reasoning"),
    [("gpt-5-mini", True), ("gpt-5-chat-latest", False), ("o3", True), ("o4-mini", True), ("gpt-4o", False)]
    + [("gpt-4.1-mini", False), ("ft:gpt-4o:org::id", False), ("omni", False), ("openai/gpt-6", True)],
)
def test_reasoning_models_are_known_by_name(name: str, reasoning: bool) -> None:
    assert is_reasoning_model(name) is reasoning


def test_addresses() -> None:
    assert clean_url("http://host:8000") == "http://host:8000/v1"
    assert clean_url("http://host:8000/v1/") == "http://host:8000/v1"
    assert clean_url("https://host/api/v1/chat/completions") == "https://host/api/v1"
    for wrong in ("http://user:sk-secret@host/v1", "http:///v1", "ftp://host/v1", "http://host:eighty/v1"):
        with pytest.raises(ConfigError) as caught:
            clean_url(wrong)
        assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        b"\x00 no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBad header\x01\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\nYou sent Bearer sk-secret",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
        b"",
    ],
)
async def test_no_reply_whatever_brings_the_key_into_the_error(reply: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    model = ServerModel(f"http://127.0.0.1:{port}/v1", "test", api_key="sk-secret")
    async with server:
        with pytest.raises(ServerError) as raised:
            await model.complete(ask())
        await model.aclose()
    assert "sk-secret" not in repr(vars(raised.value)) + str(raised.value)
