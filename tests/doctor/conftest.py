"""Servers with oddities, and models whose calls take time by a clock that tests turn by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rubricate.chat import ChatModel, ChatRequest, Completion
from rubricate.chat.base import Capabilities
from rubricate.chat.testserver import FaultyServer, Reply, prompt_text
from rubricate.chat.timing import ManualClock
from rubricate.narrow import as_object
from rubricate.types import Usage

Body = dict[str, object]


def competent(body: Mapping[str, object]) -> Reply:
    """What a sound judge's model says to each of the probes."""
    if body.get("continue_final_message"):
        return Reply("day are the first two.")
    if "You are a careful, impartial judge" in prompt_text(body):
        return Reply('{"verdicts": [{"id": "C1", "reason": "It is.", "verdict": "met"}], "final": {"C1": "met"}}')
    if "response_format" in body:
        return Reply('{"verdict": "met", "sure": true}')
    if body.get("logprobs"):
        yes = 0.9 if any(text in prompt_text(body) for text in ("two plus two equal", "says four")) else 0.05
        return Reply(top={"Yes": yes, " no": 0.97 - yes})
    return Reply("ready")


@dataclass
class Front:
    """A FaultyServer behind a server that may refuse requests, edit replies, or hang.

    Attributes:
        refuse: gives status and message for a body that is refused, None for one that is passed on.
        edit: changes the reply's JSON.
        listing: entries of the list of models, None for the inner server's own.
        key: demanded as bearer token where not empty.
    """

    inner: FaultyServer
    refuse: Callable[[Body], tuple[int, str] | None] = lambda body: None
    edit: Callable[[Body], Body] = lambda reply: reply
    listing: list[Body] | None = None
    key: str = ""
    url: str = ""
    asked: list[Body] = field(default_factory=list[Body])

    @property
    def name(self) -> str:
        return f"{self.url}#{self.inner.model}"


@asynccontextmanager
async def opened(front: Front) -> AsyncGenerator[Front]:
    """The front and its inner server, running."""
    from aiohttp import ClientSession, web

    async def chat(request: web.Request) -> web.StreamResponse:
        body: Body = json.loads(await request.read())
        front.asked.append(body)
        if front.key and request.headers.get("Authorization") != f"Bearer {front.key}":
            return web.json_response({"error": {"message": f"bad key, not {front.key}"}}, status=401)
        refused = front.refuse(body)
        if refused is not None:
            return web.json_response({"error": {"message": refused[1]}}, status=refused[0])
        async with session.post(f"{front.inner.url}/chat/completions", json=body) as reply:
            if reply.status != 200:
                return web.Response(status=reply.status, body=await reply.read())
            return web.json_response(front.edit(await reply.json()))

    async def models(request: web.Request) -> web.StreamResponse:
        entries = front.listing if front.listing is not None else [{"id": front.inner.model}]
        return web.json_response({"object": "list", "data": entries})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
    async with front.inner, ClientSession() as session:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        front.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield front
        finally:
            await runner.cleanup()


def without_counts(reply: Body) -> Body:
    """A reply that does not say how many tokens were cached."""
    usage = as_object(reply["usage"]) or {}
    return {**reply, "usage": {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}}


class TimedModel(ChatModel):
    """A model whose calls take a fixed time and a time for each prompt character that its cache does not hold."""

    name = "timed"

    def __init__(self, clock: ManualClock, *, caches: bool, fixed: float = 0.05, each: float = 1e-4) -> None:
        self.clock = clock
        self.caches = caches
        self.fixed = fixed
        self.each = each
        self.known: list[str] = []
        self.closed = 0

    @property
    def fingerprint(self) -> str:
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(logprobs=True, warm_tokens=256)

    async def complete(self, request: ChatRequest) -> Completion:
        text = request.text()
        held = max((_shared(text, other) for other in self.known), default=0) if self.caches else 0
        self.known.append(text)
        self.clock.advance(self.fixed + self.each * (len(text) - held))
        return Completion("fine", usage=Usage(1, len(text) // 4, 1))

    async def aclose(self) -> None:
        self.closed += 1


def _shared(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`models("llama")` is the directory of a tiny random model."""
    from tests.local.conftest import save_model

    made: dict[str, Path] = {}

    def model(kind: str) -> Path:
        if kind not in made:
            made[kind] = save_model(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return model
