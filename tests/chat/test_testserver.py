"""The test server itself: its answers, its counts, its faults."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.request
from collections import Counter

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.testserver import Faults, FaultyServer, Reply, mutate_json, prompt_text
from rubricate.errors import ConfigError


def body(text: str, **more: object) -> dict[str, object]:
    return {"model": "test", "messages": [{"role": "user", "content": text}], **more}


async def post(session: aiohttp.ClientSession, server: FaultyServer, payload: dict[str, object]) -> tuple[int, str]:
    async with session.post(f"{server.url}/chat/completions", json=payload) as response:
        return response.status, await response.text()


async def test_answers_with_usage_and_top_logprobs() -> None:
    server = FaultyServer(lambda body: Reply(top={"no": 0.2, "yes": 0.7}), record=True)
    async with server, aiohttp.ClientSession() as session:
        status, text = await post(session, server, body("x" * 80, logprobs=True, top_logprobs=2))
    record = json.loads(text)
    choice = record["choices"][0]
    assert status == 200
    assert choice["message"]["content"] == "yes"
    assert [item["token"] for item in choice["logprobs"]["content"][0]["top_logprobs"]] == ["yes", "no"]
    assert record["usage"]["prompt_tokens"] == 20
    assert prompt_text(server.bodies[0]) == "x" * 80
    assert server.counts.connections == 1


async def test_prefix_cache_counts_whole_blocks() -> None:
    async with FaultyServer(lambda body: "ok") as server, aiohttp.ClientSession() as session:
        prefix = "p" * 128
        await post(session, server, body(prefix + "a" * 64))
        assert server.counts.computed_tokens == 48
        _, text = await post(session, server, body(prefix + "b" * 60))
        assert json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"] == 32
        assert server.counts.computed_tokens == 48 + 15
        server.reset()
        await post(session, server, body(prefix))
        assert server.counts.computed_tokens == 32


async def test_prompts_sent_together_are_late_for_each_other() -> None:
    async with FaultyServer(lambda body: "ok", latency=0.05) as server, aiohttp.ClientSession() as session:
        await asyncio.gather(*(post(session, server, body("p" * 128)) for _ in range(3)))
        assert server.counts.computed_tokens == 32
        assert server.counts.computed_late == 96
        assert server.counts.max_in_flight == 3


async def test_http_faults_alternate_and_hang_ends_with_the_server() -> None:
    async with FaultyServer(lambda body: "ok", Faults(http=1.0)) as server, aiohttp.ClientSession() as session:
        statuses = [(await post(session, server, body("x")))[0] for _ in range(4)]
    assert statuses == [429, 500, 429, 500]
    async with aiohttp.ClientSession() as session:
        async with FaultyServer(lambda body: "ok", Faults(hang=1.0)) as server:
            waiting = asyncio.create_task(post(session, server, body("x")))
            while not server.counts.requests:
                await asyncio.sleep(0.001)
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_broken_bodies() -> None:
    async with aiohttp.ClientSession() as session:
        async with FaultyServer(lambda body: "ok", Faults(garbage=1.0)) as server:
            assert (await post(session, server, body("x")))[1].startswith("<html>")
        for kind in ("disconnect", "truncated"):
            async with FaultyServer(lambda body: "ok", Faults(**{kind: 1.0})) as server:
                with pytest.raises(aiohttp.ClientError):
                    await post(session, server, body("x"))


def test_runs_on_a_thread() -> None:
    with FaultyServer(lambda body: {"verdict": "yes"}) as server:
        request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body("hi")).encode())
        with urllib.request.urlopen(request, timeout=10) as response:
            content = json.loads(response.read())["choices"][0]["message"]["content"]
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/stats", timeout=10) as response:
            stats = json.loads(response.read())
    assert json.loads(content) == {"verdict": "yes"}
    assert stats["requests"] == 1


def test_faults_depend_on_seed_and_index_alone() -> None:
    faults = Faults(malformed=0.1, http=0.1, missing=0.1, off_vocabulary=0.1)
    first = [faults.pick(7, index) for index in range(2000)]
    assert first == [faults.pick(7, index) for index in range(2000)]
    assert first != [faults.pick(8, index) for index in range(2000)]
    counts = Counter(first)
    assert all(140 < counts[kind] < 260 for kind in ("malformed", "http", "missing", "off_vocabulary"))


def test_fault_rates_are_checked() -> None:
    with pytest.raises(ConfigError, match="add up to 1"):
        Faults(http=0.6, hang=0.6)


@given(st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=6), st.integers(0, 99))
def test_json_damage(verdicts: list[str], seed: int) -> None:
    text = json.dumps({"verdicts": [{"id": str(at), "verdict": verdict} for at, verdict in enumerate(verdicts)]})
    fewer = json.loads(mutate_json("missing", text, random.Random(seed)))
    assert len(fewer["verdicts"]) == len(verdicts) - 1
    odd = json.loads(mutate_json("off_vocabulary", text, random.Random(seed)))
    assert [item["verdict"] for item in odd["verdicts"]].count("perhaps") == 1
    with pytest.raises(ValueError):
        json.loads(mutate_json("malformed", text, random.Random(seed)))


def test_damage_to_a_single_verdict_and_to_plain_text() -> None:
    text = '{"reason": "r", "verdict": "yes"}'
    assert json.loads(mutate_json("missing", text, random.Random(0))) == {"reason": "r"}
    assert json.loads(mutate_json("off_vocabulary", text, random.Random(0)))["verdict"] == "perhaps"
    assert mutate_json("off_vocabulary", "yes", random.Random(0)) == "perhaps"
    assert mutate_json("missing", "yes", random.Random(0)) == ""
