"""Embeddings from a server on loopback: order, checks of replies, retries, deadlines, keys, threads and loops."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from embedding_server import EmbeddingServer, Reply, Request, record, true_vector
from hypothesis import given
from hypothesis import strategies as st

from rubricate.bridge import run_sync
from rubricate.chat import Limiter, Limits, attempts_of, deadline
from rubricate.embed import Embedder, Vectors, connect_embedder
from rubricate.embed.wire import parse_embeddings
from rubricate.errors import (
    ChatError,
    ConfigError,
    ContextOverflowError,
    DeadlineError,
    FormatError,
    RequestError,
    ServerError,
)

QUICK = Limits(backoff=0.0)
ONCE = Limits(max_attempts=1)
Body = dict[str, object]


def to(server: EmbeddingServer, model: str = "#m", limits: Limits = QUICK, api_key: str | None = None) -> Embedder:
    return connect_embedder(f"{server.url}{model}", limits=limits, api_key=api_key)


def expected(texts: list[str], dimensions: int = 8) -> Vectors:
    rows = np.array([true_vector(text, dimensions) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_many_batches_come_back_in_order_as_unit_rows(encoding: str) -> None:
    texts = [f'criterion {i}: 日本語 🙂 \\ " \n' for i in range(23)]
    with EmbeddingServer() as server:
        embedder = to(server, f"#m?encoding={encoding}&batch=5")
        assert embedder.dimensions is None
        vectors = run_sync(embedder.embed(texts))
        run_sync(embedder.aclose())
    assert vectors.dtype == np.float32
    assert vectors.shape == (23, 8) and embedder.dimensions == 8
    np.testing.assert_allclose(vectors, expected(texts), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert sorted(len(request.texts) for request in server.requests) == [3, 5, 5, 5, 5]
    assert {request.body["encoding_format"] for request in server.requests} == {encoding}
    assert {request.body["model"] for request in server.requests} == {"m"}


async def test_reply_is_put_in_order_by_index() -> None:
    def shuffled(request: Request) -> Reply:
        reply = record([true_vector(text) for text in request.texts])
        assert isinstance(reply["data"], list)
        reply["data"].reverse()
        return 200, reply, {}

    texts = ["one", "two", "three"]
    with EmbeddingServer(shuffled) as server:
        embedder = to(server)
        np.testing.assert_allclose(await embedder.embed(texts), expected(texts), atol=1e-6)
        await embedder.aclose()


async def test_no_texts_need_no_server_and_a_long_text_goes_alone() -> None:
    long = "x" * 300_000
    with EmbeddingServer() as server:
        embedder = to(server)
        assert (await embedder.embed([])).shape == (0, 0)
        await embedder.embed(["a", long, "b", "c"])
        assert (await embedder.embed([])).shape == (0, 8)
        await embedder.aclose()
    assert sorted(sum(map(len, request.texts)) for request in server.requests) == [1, 2, 300_000]


def reply_of(rows: list[object], **changes: object) -> Body:
    return {**record(rows), **changes}


def item(index: object, vector: object = (1.0, 2.0)) -> dict[str, object]:
    return {"index": index, "embedding": vector}


WRONG: list[tuple[object, str, bool]] = [
    (reply_of([[1.0, 2.0]]), "1 vectors for 2 texts", True),
    (reply_of([[1.0, 2.0]] * 3), "3 vectors for 2 texts", True),
    ({"data": [item(0), item(0)]}, "two vectors of index 0", True),
    ({"data": [item(0), item(2)]}, "2 for the index of vector 1", True),
    ({"data": [item(-1), item(0)]}, "-1 for the index", True),
    ({"data": [item(0), item(True)]}, "True for the index", True),
    ({"data": [item(0), {"embedding": [1.0]}]}, "None for the index", True),
    ({"data": [item(0), {"index": 1}]}, "no vector at index 1", True),
    ({"data": [item(0), item(1, "?!")]}, "not base64", True),
    ({"data": [item(0), item(1, "AAAA")]}, "3 bytes", True),
    ({"data": "none"}, "no list `data`", True),
    ([1, 2], "not a JSON object", True),
    ({"data": [item(0), item(1, [1.0, 2.0, 3.0])]}, "3 dimensions at index 1, where 2", False),
    ({"data": [item(0, []), item(1, [])]}, "0 dimensions", False),
    ({"data": [item(0), item(1, [1.0, math.nan])]}, "not finite", False),
    ({"data": [item(0), item(1, [1.0, 1e300])]}, "not finite", False),
    ({"data": [item(0), item(1, [1.0, None])]}, "None in the vector", False),
    ({"data": [item(0), item(1, [1.0, "2"])]}, "'2' in the vector", False),
    ({"data": [item(0), item(1, [1.0, True])]}, "True in the vector", False),
]


@pytest.mark.parametrize(("reply", "message", "retryable"), WRONG)
def test_wrong_replies_are_errors_and_only_mix_ups_are_tried_again(
    reply: object, message: str, retryable: bool
) -> None:
    with pytest.raises(ServerError, match=message) as caught:
        parse_embeddings(reply, 2, None, "here")
    assert (caught.value.retryable, caught.value.provider) == (retryable, "here")


@given(st.integers(1, 6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_any_order_of_the_reply_gives_the_same_vectors(count: int, dimensions: int, rng: object) -> None:
    rows: list[object] = [[float(i * 10 + j) for j in range(dimensions)] for i in range(count)]
    reply = record(rows)
    data = reply["data"]
    assert isinstance(data, list) and hasattr(rng, "shuffle")
    getattr(rng, "shuffle")(data)  # noqa: B009 - hypothesis has no public type for its Random
    assert parse_embeddings(reply, count, dimensions, "").vectors.tolist() == rows


def test_an_error_in_disguise_is_that_error() -> None:
    with pytest.raises(RequestError, match="no such model"):
        parse_embeddings({"error": {"message": "no such model", "code": 404}}, 1, None, "")


@pytest.mark.parametrize(
    "first",
    [
        (429, {"error": {"message": "slow down"}}, {"Retry-After": "0"}),
        (500, {"error": {"message": "oops"}}, {}),
        (200, b"<html>", {}),
        (200, reply_of([[1.0]]), {}),
    ],
)
async def test_a_passing_fault_is_tried_again(first: Reply) -> None:
    with EmbeddingServer(lambda request: first if request.number == 0 else None) as server:
        limiter = Limiter(QUICK)
        embedder = connect_embedder(f"{server.url}#m", limiter=limiter)
        np.testing.assert_allclose(await embedder.embed(["a", "b"]), expected(["a", "b"]), atol=1e-6)
        await embedder.aclose()
    assert (limiter.stats.attempts, limiter.stats.retries, limiter.stats.answers) == (2, 1, 1)
    assert limiter.stats.usage.prompt_tokens >= 5


async def test_a_fault_that_stays_is_raised_and_the_other_batches_are_called_off() -> None:
    def answer(request: Request) -> Reply:
        return 400, {"error": {"message": "bad text"}}, {}

    with EmbeddingServer(answer, hang=lambda request: "bad" not in request.texts) as server:
        limiter = Limiter(QUICK)
        embedder = connect_embedder(f"{server.url}#m", limiter=limiter, batch=1)
        with pytest.raises(RequestError, match="bad text"):
            await embedder.embed(["a", "b", "bad", "c"])
        assert (limiter.stats.in_flight, limiter.stats.waiting) == (0, 0)
        await embedder.aclose()


async def test_attempts_are_bounded_and_counted() -> None:
    with EmbeddingServer(lambda request: (503, {"error": "down"}, {})) as server:
        embedder = to(server, limits=Limits(max_attempts=3, backoff=0.0))
        with pytest.raises(ServerError) as caught:
            await embedder.embed(["a"])
        await embedder.aclose()
    assert attempts_of(caught.value) == len(server.requests) == 3


async def test_dimensions_that_change_between_batches_are_refused() -> None:
    def answer(request: Request) -> Reply:
        return 200, record([[1.0] * (3 + len(request.texts[0])) for _ in request.texts]), {}

    with EmbeddingServer(answer) as server:
        embedder = to(server, "#m?batch=1")
        with pytest.raises(ServerError, match="dimensions came after vectors of"):
            await embedder.embed(["a", "bb"])
        await embedder.embed(["a" if embedder.dimensions == 4 else "bb"])
        with pytest.raises(ServerError, match="dimensions came after vectors of"):
            await embedder.embed(["ccc"])
        await embedder.aclose()


async def test_dimensions_asked_for_are_sent_and_checked() -> None:
    with EmbeddingServer() as server:
        embedder = to(server, "?dimensions=4#m")
        assert embedder.dimensions == 4 and (await embedder.embed([])).shape == (0, 4)
        np.testing.assert_allclose(await embedder.embed(["a"]), expected(["a"], 4), atol=1e-6)
        await embedder.aclose()
    with EmbeddingServer(lambda request: (200, record([[1.0] * 8]), {})) as server:
        embedder = to(server, "#m?dimensions=4")
        with pytest.raises(ServerError, match="8 dimensions at index 0, where 4"):
            await embedder.embed(["a"])
        await embedder.aclose()


async def test_a_server_that_hangs_is_cut_off_by_the_deadline() -> None:
    with EmbeddingServer(hang=lambda request: True) as server:
        embedder = to(server)
        with deadline(0.2), pytest.raises(DeadlineError):
            await embedder.embed(["a"])
        with deadline(0), pytest.raises(DeadlineError):
            await embedder.embed(["a"])
        await embedder.aclose()
    assert len(server.requests) == 1


async def test_a_zero_vector_is_an_error_that_names_the_text() -> None:
    def answer(request: Request) -> Reply:
        return 200, record([[0.0] * 4 if text == "bad" else [1.0] * 4 for text in request.texts]), {}

    with EmbeddingServer(answer) as server:
        embedder = to(server, "#m?batch=2")
        with pytest.raises(FormatError, match="zero vector") as caught:
            await embedder.embed(["a", "b", "c", "bad"])
        await embedder.aclose()
    assert caught.value.field == "texts[3]"


async def test_a_text_beyond_the_context_is_told_as_that() -> None:
    reply: Reply = (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}, {})
    with EmbeddingServer(lambda request: reply) as server:
        embedder = to(server)
        with pytest.raises(ContextOverflowError):
            await embedder.embed(["a"])
        await embedder.aclose()
    assert len(server.requests) == 1


async def test_the_key_is_sent_and_shows_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: Request) -> Reply:
        return 401, {"error": {"message": f"no access with {request.headers['Authorization']}"}}, {}

    with EmbeddingServer(refuse) as server:
        given = to(server, api_key="sk-secret-given")
        monkeypatch.setenv("RUBRICATE_API_KEY", "sk-secret-set")
        read = to(server)
        for embedder, key in ((given, "sk-secret-given"), (read, "sk-secret-set")):
            with pytest.raises(RequestError) as caught:
                await embedder.embed(["a"])
            shown = f"{caught.value!s} {caught.value!r} {embedder!r} {embedder.name} {embedder.fingerprint}"
            assert "secret" not in shown
            assert server.requests[-1].headers["Authorization"] == f"Bearer {key}"
            await embedder.aclose()
        assert b"sk-secret-set" not in pickle.dumps(read)
        assert given.fingerprint == read.fingerprint


async def test_the_openai_name_reads_its_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
        monkeypatch.setenv("RUBRICATE_API_KEY", "sk-other")
        embedder = connect_embedder("openai:text-embedding-3-small?dimensions=4", limits=QUICK)
        assert embedder.name == "openai:text-embedding-3-small"
        assert (await embedder.embed(["a"])).shape == (1, 4)
        await embedder.aclose()
    assert server.requests[0].headers["Authorization"] == "Bearer sk-mine"
    assert server.requests[0].body == {
        "model": "text-embedding-3-small",
        "input": ["a"],
        "encoding_format": "base64",
        "dimensions": 4,
    }
    assert "sk-other" not in json.dumps(dict(server.requests[0].headers))


async def test_openai_without_a_key_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(RequestError, match="no API key"):
        await connect_embedder("openai:text-embedding-3-small").embed(["a"])


async def test_without_a_model_the_server_is_asked_once() -> None:
    with EmbeddingServer() as server:
        embedder, named = to(server, "?batch=1"), to(server, "#the-only-one")
        await embedder.embed(["a", "b", "c"])
        assert embedder.fingerprint == named.fingerprint
        await embedder.aclose()
    assert [request.body["model"] for request in server.requests] == ["the-only-one"] * 3


async def test_no_server_is_a_server_error() -> None:
    with EmbeddingServer() as server:
        pass
    embedder = to(server, limits=ONCE)
    with pytest.raises(ServerError, match="no connection"):
        await embedder.embed(["a"])
    await embedder.aclose()


def test_threads_event_loops_and_pickles_share_one_embedder() -> None:
    texts = [[f"{who} {i}" for i in range(12)] for who in range(6)]
    with EmbeddingServer() as server:
        embedder = to(server, "#m?batch=5")

        def use(who: int) -> Vectors:
            work = embedder.embed(texts[who])
            return run_sync(work) if who % 2 else asyncio.run(work)

        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(use, range(6)))
        for some, vectors in zip(texts, found, strict=True):
            np.testing.assert_allclose(vectors, expected(some), atol=1e-6)
        copy: Embedder = pickle.loads(pickle.dumps(embedder))
        assert (copy.fingerprint, copy.dimensions, copy.name) == (embedder.fingerprint, 8, embedder.name)
        np.testing.assert_allclose(run_sync(copy.embed(texts[0])), expected(texts[0]), atol=1e-6)
        for one in (copy, embedder):
            run_sync(one.aclose())


def test_a_shared_limiter_bounds_the_batches() -> None:
    limiter = Limiter(Limits(concurrency=2))
    with EmbeddingServer() as server:
        embedder = connect_embedder(f"{server.url}#m", limiter=limiter, batch=1)
        run_sync(embedder.embed([f"text {i}" for i in range(20)]))
        run_sync(embedder.aclose())
    assert (limiter.stats.max_in_flight, limiter.stats.calls, limiter.stats.in_flight) == (2, 20, 0)


@pytest.mark.parametrize(
    "options",
    [{"encoding": "int8"}, {"batch": 0}, {"dimensions": 0}, {"colour": 1}, {"limits": QUICK, "limiter": Limiter()}],
)
def test_options_that_make_no_sense_are_config_errors(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        connect_embedder("http://127.0.0.1:9/v1#m", **options)  # pyright: ignore[reportArgumentType]


def test_the_error_of_a_batch_is_a_chat_error_and_pickles() -> None:
    with EmbeddingServer(lambda request: (404, {"error": {"message": "no such model"}}, {})) as server:
        embedder = to(server)
        with pytest.raises(ChatError) as caught:
            run_sync(embedder.embed(["a"]))
        run_sync(embedder.aclose())
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
