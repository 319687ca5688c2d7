"""A scripted OpenAI-compatible server on loopback, with faults on demand, for tests and benchmarks.

It counts what a client costs: requests, tokens (four characters each) and the prompt tokens that an ideal prefix
cache would still have to compute.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from types import TracebackType

from rubricate.chat.faults import Faults, Mutate, mutate_json
from rubricate.narrow import as_array, as_number, as_object

__all__ = ["Counts", "Faults", "FaultyServer", "Reply", "mutate_json", "prompt_text"]

BLOCK_CHARS = 64  # a cache block of 16 tokens at four characters a token


@dataclass(frozen=True, slots=True)
class Reply:
    """A scripted answer.

    Attributes:
        text: the answer's text; where empty and `top` is given, the likeliest token of `top`.
        top: probability of each alternative of the first token, given back as `top_logprobs` when asked for.
        finish: the finish reason.
        reasoning: sent as `reasoning_content`.
        refusal: sent as the message's `refusal`.
        system_fingerprint: what the server says of itself in the answer, where not empty.
    """

    text: str = ""
    top: Mapping[str, float] = field(default_factory=dict[str, float])
    finish: str = "stop"
    reasoning: str = ""
    refusal: str = ""
    system_fingerprint: str = ""

    def content(self) -> str:
        """The text that is sent."""
        return self.text or (max(self.top, key=lambda token: self.top[token]) if self.top else "")


Answer = Callable[[dict[str, object]], "str | Mapping[str, object] | Reply"]


@dataclass(slots=True)
class Counts:
    """What the server has seen. Token counts are characters / 4.

    Attributes:
        requests: chat requests, faulty ones included.
        answered: requests answered with status 200 and a sound body.
        prompt_tokens, completion_tokens: of all chat requests, and of the answers sent.
        computed_tokens: prompt tokens outside the prefix cache, each block being cached as soon as it is asked for.
        computed_late: the same where a block is cached only when the request that brought it is answered, so that
            requests sent together do not help each other.
        faults: how often each kind of fault struck.
        max_in_flight: most requests open at once.
        connections: TCP connections that brought chat requests.
    """

    requests: int = 0
    answered: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    computed_tokens: int = 0
    computed_late: int = 0
    faults: Counter[str] = field(default_factory=Counter[str])
    max_in_flight: int = 0
    connections: int = 0


@dataclass(frozen=True, slots=True)
class _Http:
    """An HTTP answer before it meets the web framework. `cut` sends that many bytes, then closes the connection."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: int | None = None


def prompt_text(body: Mapping[str, object]) -> str:
    """The texts of all messages of a chat request's body, a line break between them."""
    messages = [as_object(message) or {} for message in as_array(body.get("messages")) or ()]
    return "\n".join(str(message.get("content", "")) for message in messages)


class _PrefixCache:
    """An ideal prefix cache: every full block of a prompt is known by the hash of all text up to its end."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def blocks(self, text: str) -> list[int]:
        chain, state = list[int](), 0
        for start in range(0, len(text) - BLOCK_CHARS + 1, BLOCK_CHARS):
            state = hash((state, text[start : start + BLOCK_CHARS]))
            chain.append(state)
        return chain

    def hits(self, chain: list[int]) -> int:
        for index, state in enumerate(chain):
            if state not in self._known:
                return index
        return len(chain)

    def add(self, chain: list[int]) -> None:
        self._known.update(chain)


class FaultyServer:
    """An OpenAI-compatible server on 127.0.0.1 with `/v1/chat/completions`, `/v1/models` and `/stats`.

    Use it as an async context manager, or as a plain one, which runs it on a thread of its own. Faults depend on
    the seed and on the number of the request in order of arrival alone.

    Args:
        answer: gets the request's body and gives the answer: text, a JSON object that is sent as text, or a Reply.
        faults: rates of faults.
        seed: of the faults.
        latency: seconds before each answer.
        model: the name it serves.
        mutate: damages an answer's text for the faults `malformed`, `missing` and `off_vocabulary`.
        record: keep every request's body in `bodies` and headers in `headers`.
    """

    def __init__(
        self,
        answer: Answer,
        faults: Faults | None = None,
        *,
        seed: int = 0,
        latency: float = 0.0,
        model: str = "test",
        mutate: Mutate = mutate_json,
        record: bool = False,
    ) -> None:
        self.answer = answer
        self.faults = faults or Faults()
        self.seed = seed
        self.latency = latency
        self.model = model
        self.mutate = mutate
        self.record = record
        self.port = 0
        self.reset()
        self._stop: Callable[[], Awaitable[None]] | None = None
        self._released = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def reset(self) -> None:
        """Forget counts, recorded requests and the prefix cache."""
        self.counts = Counts()
        self.bodies: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self._cache, self._late = _PrefixCache(), _PrefixCache()
        self._in_flight = 0
        self._http_faults = 0
        self._peers = set[object]()

    @property
    def url(self) -> str:
        """The base address, such as `http://127.0.0.1:40123/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def name(self) -> str:
        """The string that `rubricate.chat.connect` takes."""
        return f"{self.url}#{self.model}"

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        self._released = asyncio.Event()
        self.port, self._stop = await _listen(self._get, self._chat)

    async def stop(self) -> None:
        """Stop listening; requests that hang are dropped."""
        self._released.set()
        if self._stop is not None:
            await self._stop()
            self._stop = None

    async def __aenter__(self) -> FaultyServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __enter__(self) -> FaultyServer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-server", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.start(), self._loop).result(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self.stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()
        self._loop = self._thread = None

    async def _get(self, path: str) -> _Http:
        if path == "/v1/models":
            return _json({"object": "list", "data": [{"id": self.model, "object": "model"}]})
        if path == "/stats":
            return _json({**asdict(self.counts), "faults": dict(self.counts.faults)})
        return _json({"error": {"message": "not found", "code": 404}}, 404)

    async def _chat(self, raw: bytes, headers: Mapping[str, str], peer: object) -> _Http:
        body = as_object(json.loads(raw))
        if body is None or not as_array(body.get("messages")):
            return _json({"error": {"message": "messages are missing", "type": "invalid_request_error"}}, 400)
        index = self.counts.requests
        self.counts.requests += 1
        self._peers.add(peer)
        self.counts.connections = len(self._peers)
        if self.record:
            self.bodies.append(dict(body))
            self.headers.append(dict(headers))
        self._in_flight += 1
        self.counts.max_in_flight = max(self.counts.max_in_flight, self._in_flight)
        try:
            return await self._handle(dict(body), index)
        finally:
            self._in_flight -= 1

    async def _handle(self, body: dict[str, object], index: int) -> _Http:
        text = prompt_text(body)
        chain = self._cache.blocks(text)
        prompt_tokens = math.ceil(len(text) / 4)
        cached = self._cache.hits(chain) * BLOCK_CHARS // 4
        self.counts.prompt_tokens += prompt_tokens
        self.counts.computed_tokens += prompt_tokens - cached
        self.counts.computed_late += prompt_tokens - self._late.hits(chain) * BLOCK_CHARS // 4
        self._cache.add(chain)
        fault = self.faults.pick(self.seed, index)
        self.counts.faults.update([fault] if fault else [])
        if fault == "hang":
            await self._released.wait()
            return _json({"error": {"message": "shutting down"}}, 503)
        if self.latency > 0:
            await asyncio.sleep(self.latency)
        if fault in ("http", "disconnect", "garbage"):
            return self._broken(fault)
        self._late.add(chain)
        record = _completion(self._reply(body, fault, index), body, self.model, prompt_tokens, cached)
        usage = as_object(record["usage"]) or {}
        self.counts.completion_tokens += int(as_number(usage.get("completion_tokens")) or 0)
        answer = _json(record)
        if fault == "truncated":
            return _Http(200, answer.body, cut=len(answer.body) // 2)
        self.counts.answered += 1
        return answer

    def _broken(self, fault: str) -> _Http:
        if fault == "disconnect":
            return _Http(200, b"", cut=0)
        if fault == "garbage":
            return _Http(200, b"<html><body>Bad gateway</body></html>", {"Content-Type": "text/html"})
        self._http_faults += 1
        if self._http_faults % 2:
            error = {"error": {"message": "rate limit reached", "type": "rate_limit_error"}}
            return _json(error, 429, {"Retry-After": str(self.faults.retry_after)})
        return _json({"error": {"message": "internal error", "type": "server_error"}}, 500)

    def _reply(self, body: dict[str, object], fault: str, index: int) -> Reply:
        if fault == "empty":
            return Reply()
        if fault == "refusal":
            return Reply(refusal="I cannot help with that.")
        if fault in ("length", "content_filter"):
            return Reply(finish=fault)
        given = self.answer(body)
        if isinstance(given, str):
            given = Reply(given)
        elif not isinstance(given, Reply):
            given = Reply(json.dumps(given, ensure_ascii=False))
        if fault in ("malformed", "missing", "off_vocabulary"):
            return Reply(self.mutate(fault, given.content(), random.Random(f"{self.seed}:{index}:mutate")))
        return given


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> _Http:
    return _Http(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def _completion(
    reply: Reply, body: Mapping[str, object], model: str, prompt_tokens: int, cached: int
) -> dict[str, object]:
    text = reply.content()
    message: dict[str, object] = {"role": "assistant", "content": text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.refusal:
        message["refusal"] = reply.refusal
    choice: dict[str, object] = {"index": 0, "message": message, "finish_reason": reply.finish}
    if body.get("logprobs"):
        wanted = int(as_number(body.get("top_logprobs")) or 0)
        choice["logprobs"] = {"content": _logprobs(text, reply.top, wanted)}
    completion_tokens = math.ceil((len(text) + len(reply.reasoning)) / 4)
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": usage,
        **({"system_fingerprint": reply.system_fingerprint} if reply.system_fingerprint else {}),
    }


def _logprobs(text: str, top: Mapping[str, float], wanted: int) -> list[dict[str, object]]:
    """One entry a word; the first word's alternatives come from `top`, the others have none."""
    entries: list[dict[str, object]] = []
    for index, token in enumerate(text.split(" ")):
        token = token if index == 0 else f" {token}"
        table = dict(top) if index == 0 and top else {token: 1.0}
        ranked = sorted(table.items(), key=lambda item: -item[1])[:wanted]
        alternatives = [{"token": name, "logprob": _log(share), "bytes": None} for name, share in ranked]
        own = _log(table.get(token, 1e-9))
        entries.append({"token": token, "logprob": own, "bytes": None, "top_logprobs": alternatives})
    return entries


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -9999.0


async def _listen(
    get: Callable[[str], Awaitable[_Http]], chat: Callable[[bytes, Mapping[str, str], object], Awaitable[_Http]]
) -> tuple[int, Callable[[], Awaitable[None]]]:
    """Serve the two handlers on a free loopback port: the port, and what stops the server."""
    from aiohttp import web

    async def send(request: web.Request, answer: _Http) -> web.StreamResponse:
        if answer.cut is None:
            return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))
        response = web.StreamResponse(headers={"Content-Length": str(len(answer.body))})
        if answer.cut:
            await response.prepare(request)
            await response.write(answer.body[: answer.cut])
        if request.transport is not None:
            request.transport.close()
        return response

    async def on_get(request: web.Request) -> web.StreamResponse:
        return await send(request, await get(request.path))

    async def on_chat(request: web.Request) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peername") if request.transport else None
        return await send(request, await chat(await request.read(), request.headers, peer))

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", on_chat)
    app.router.add_get("/{rest:.*}", on_get)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return int(runner.addresses[0][1]), runner.cleanup
