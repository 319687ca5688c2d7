"""Retrievers: passages with their sources, BM25's order against the formula, and a search server on loopback."""

from __future__ import annotations

import gzip
import json
import math
import pickle
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from rubricate.chat.limiter import Limiter
from rubricate.chat.limits import Limits
from rubricate.errors import ConfigError, FormatError, RequestError, ServerError
from rubricate.search import Bm25Retriever, Passage, ServerRetriever, connect_retriever
from rubricate.search.documents import passages_of, read_passages

TEXTS = (
    "the cat sat on the mat",
    "a dog and a cat and a cat",
    "birds sing at dawn and the dog sleeps all day long",
)
PASSAGES = [Passage(text, f"s{at}") for at, text in enumerate(TEXTS)]


def bm25(query: str, texts: tuple[str, ...], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Lucene's BM25, written out."""
    documents = [text.split() for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    scores = [0.0] * len(documents)
    for word in query.split():
        count = sum(word in one for one in documents)
        idf = math.log(1 + (len(documents) - count + 0.5) / (count + 0.5))
        for at, one in enumerate(documents):
            tf = one.count(word)
            scores[at] += idf * tf / (tf + k1 * (1 - b + b * len(one) / mean))
    return scores


async def test_bm25_ranks_by_the_formula_and_leaves_out_what_shares_no_word() -> None:
    found = await Bm25Retriever(PASSAGES).search("cat dog")
    scores = bm25("cat dog", TEXTS)
    assert [one.source for one in found] == sorted(("s0", "s1", "s2"), key=lambda name: -scores[int(name[1])])
    assert [one.score for one in found] == pytest.approx(sorted(scores, reverse=True), rel=1e-5)
    assert [one.source for one in await Bm25Retriever(PASSAGES).search("birds")] == ["s2"]
    assert [one.source for one in await Bm25Retriever(PASSAGES).search("what is the birds")] == ["s2"]
    assert [one.source for one in await Bm25Retriever(PASSAGES).search("on the")] == ["s0", "s2"]
    assert await Bm25Retriever(PASSAGES).search("zebra") == []
    assert len(await Bm25Retriever(PASSAGES).search("the dog", k=1)) == 1


async def test_other_scripts_ties_and_pickling() -> None:
    index = Bm25Retriever([Passage("东京是日本的首都", "zh"), Passage("CAFÉ", "a"), Passage("café", "b")])
    assert [one.source for one in await index.search("日本首都")] == ["zh"]
    assert [one.source for one in await index.search("Cafe\u0301")] == ["a", "b"]
    twin = pickle.loads(pickle.dumps(index))
    assert twin.fingerprint == index.fingerprint and [one.source for one in await twin.search("café")] == ["a", "b"]
    with pytest.raises(ConfigError, match="blank"):
        await index.search("  ")
    with pytest.raises(ConfigError, match="no passage"):
        Bm25Retriever([])


def test_passages_keep_the_sources_letters_and_lines(tmp_path: Path) -> None:
    text = "# Flu\n\nRest  and\ndrink.\n\nSee a doctor\nwhen it lasts.\n"
    found = list(passages_of(text, "flu.md", words=5))
    assert [(one.text, one.line, one.title) for one in found] == [
        ("# Flu\n\nRest  and\ndrink.", 1, "Flu"),
        ("See a doctor\nwhen it", 6, "Flu"),
        ("lasts.", 7, "Flu"),
    ]
    assert all(one.text in text for one in found) and found[1].place == "flu.md#L6"
    (tmp_path / "b.md").write_text(text)
    (tmp_path / "sub").mkdir()
    rows = [{"text": "One.", "url": "http://x/1", "title": "T"}, {"content": "Two."}]
    (tmp_path / "sub" / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (tmp_path / "c.png").write_bytes(b"\x89")
    assert [(one.place, one.text[:4]) for one in read_passages(tmp_path)] == [
        ("b.md#L1", "# Fl"),
        ("http://x/1", "One."),
        ("sub/a.jsonl.gz#L2", "Two."),
    ]
    (tmp_path / "d.jsonl").write_text('{"text": "x"}\n{"no": 1}\n')
    with pytest.raises(FormatError, match=r"d\.jsonl:2.*expected a text"):
        read_passages(tmp_path)


async def test_names_of_retrievers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The moon is far away.")
    found = await connect_retriever(f"bm25:{tmp_path}", words=20).search("moon")
    assert [one.source for one in found] == ["a.txt"]
    for name in ("moon", "bm25:", f"bm25:{tmp_path}/nothing", "ftp://x/y"):
        with pytest.raises(ConfigError):
            connect_retriever(name)
    with pytest.raises(ConfigError, match="wordz"):
        connect_retriever(f"bm25:{tmp_path}", wordz=3)


Handler = Callable[[web.Request], "web.Response"]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[str]:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return handler(request)

    application = web.Application()
    application.router.add_route("*", "/search", answer)
    async with TestServer(application) as server:
        yield str(server.make_url("/search"))


@pytest.mark.parametrize(
    ("reply", "results", "expected"),
    [
        (
            {"results": [{"text": "A", "url": "u", "title": "T", "score": 2}]},
            "",
            [Passage("A", "u", "T", None, 2.0)],
        ),
        ({"organic": [{"snippet": "A", "link": "u"}, {"link": "v"}]}, "", [Passage("A", "u")]),
        ({"web": {"results": [{"description": "A", "url": "u"}]}}, "", [Passage("A", "u")]),
        (
            {"data": [{"snippet": {"text": "A"}, "paper": {"corpusId": 7, "title": "T"}}]},
            "",
            [Passage("A", "7", "T")],
        ),
        ({"a": {"b": [{"text": "A", "id": "x"}]}, "results": []}, "a.b", [Passage("A", "x")]),
        ([{"content": "A", "source": "x"}], "", [Passage("A", "x")]),
        ({"results": []}, "", []),
    ],
)
async def test_replies_in_the_shapes_that_servers_give(
    reply: object, results: str, expected: list[Passage]
) -> None:
    async with serving(lambda request: web.json_response(reply)) as url:
        retriever = ServerRetriever(url, results=results)
        assert await retriever.search("moon", k=3) == expected
        await retriever.aclose()


async def test_get_and_post_fields_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, dict[str, str], str]] = []

    def handler(request: web.Request) -> web.Response:
        seen.append((request.method, dict(request.query), request.headers.get("X-API-KEY", "")))
        return web.json_response(["A moon"])

    monkeypatch.setenv("RUBRICATE_SEARCH_API_KEY", "secret-1")
    async with serving(handler) as url:
        retriever = ServerRetriever(
            url, method="GET", query="q", count="num", more={"hl": "en"}, key_header="X-API-KEY"
        )
        (found,) = await retriever.search("the moon", k=4)
        assert found.text == "A moon" and found.source == f"{url}#1"
        assert b"secret-1" not in pickle.dumps(retriever)
        await retriever.aclose()
    assert seen == [("GET", {"q": "the moon", "num": "4", "hl": "en"}, "secret-1")]


async def test_errors_are_typed_and_retried_and_hide_the_key() -> None:
    count = 0

    def handler(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return (
            web.Response(status=503) if count == 1 else web.json_response({"results": [{"text": "A", "id": "x"}]})
        )

    async with serving(handler) as url:
        retriever = ServerRetriever(url, limiter=Limiter(Limits(max_attempts=3, backoff=0.001)))
        assert (await retriever.search("moon"))[0].text == "A" and count == 2
        await retriever.aclose()
    refused: list[tuple[Handler, type[Exception]]] = [
        (lambda request: web.Response(text="hush hush", status=401), RequestError),
        (lambda request: web.Response(text="<html>hush"), ServerError),
        (lambda request: web.json_response({"answer": 1}), ServerError),
        (lambda request: web.json_response({"results": [{"x": 1}]}), ServerError),
    ]
    for reply, error in refused:
        async with serving(reply) as url:
            retriever = ServerRetriever(url, api_key="hush", limiter=Limiter(Limits(max_attempts=1)))
            with pytest.raises(error) as caught:
                await retriever.search("moon")
            assert "hush" not in str(caught.value)
            await retriever.aclose()
    with pytest.raises(ConfigError, match="address"):
        ServerRetriever("http://user:pw@host/search")
