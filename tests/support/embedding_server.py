"""A loopback server with OpenAI's `/v1/embeddings`, whose replies a test may replace one by one."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
from aiohttp import web

__all__ = ["EmbeddingServer", "Reply", "Request", "record", "true_vector"]


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived: the body's fields, the headers, and the number of the request from 0."""

    number: int
    body: Mapping[str, object]
    headers: Mapping[str, str]

    @property
    def texts(self) -> list[str]:
        texts = self.body["input"]
        assert isinstance(texts, list)
        return [str(text) for text in texts]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


Reply = tuple[int, object, Mapping[str, str]]
"""Status, JSON value (or bytes as they are), headers."""


def true_vector(text: str, dimensions: int = 8) -> list[float]:
    """What the server gives for that text: a vector of its own, not of norm 1."""
    seed = list(text.encode("utf-8", "surrogatepass"))
    return [float(x) for x in np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32) * 3]


def record(vectors: Sequence[object], *, encoding: object = "float", tokens: int = 5) -> dict[str, object]:
    """A sound reply with these embeddings, in their order."""

    def encoded(vector: object) -> object:
        return (
            base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode() if encoding == "base64" else vector
        )

    data = [{"object": "embedding", "index": i, "embedding": encoded(vector)} for i, vector in enumerate(vectors)]
    return {
        "object": "list",
        "data": data,
        "model": "test",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def honest(request: Request) -> Reply:
    dimensions = request.body.get("dimensions", 8)
    assert isinstance(dimensions, int)
    vectors = [true_vector(text, dimensions) for text in request.texts]
    return 200, record(vectors, encoding=request.body["encoding_format"]), {}


@dataclass
class EmbeddingServer:
    """A context manager; listens on a thread of its own, so that sync and async tests may both use it.

    Attributes:
        answer: gives the reply to a request, or None for the honest one.
        hang: requests that are never answered.
    """

    answer: Callable[[Request], Reply | None] = lambda request: None
    hang: Callable[[Request], bool] = lambda request: False
    requests: list[Request] = field(default_factory=list[Request])
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        seen = Request(len(self.requests), json.loads(await request.read()), dict(request.headers))
        self.requests.append(seen)
        if self.hang(seen):
            await asyncio.Event().wait()
        status, value, headers = self.answer(seen) or honest(seen)
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return web.Response(status=status, body=body, headers={"Content-Type": "application/json", **headers})

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [{"id": "the-only-one"}]})

    async def _start(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = int(self._runner.addresses[0][1])

    def __enter__(self) -> EmbeddingServer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()
