"""Replies nested beyond any reader are errors with a type, on every way to a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from rubricate.chat import ChatModel, ChatRequest, Limits, Message, connect
from rubricate.chat.openai_sdk import load_openai
from rubricate.data.records import Rollout
from rubricate.errors import ChatError
from rubricate.judges import CriterionJudge
from rubricate.rubrics import Criterion
from rubricate.types import FailureKind

DEEP = '{"choices": ' + "[" * 200_000 + "]" * 200_000 + "}"


@asynccontextmanager
async def serving(status: str) -> AsyncGenerator[str]:
    """A server that gives this reply to everything."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        said = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(DEEP)}\r\n"
        writer.write(f"{said}Connection: close\r\n\r\n{DEEP}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def models(url: str) -> list[ChatModel]:
    limits = Limits(max_attempts=1)
    return [connect(load_openai("m", base_url=url), limits=limits), connect(f"{url}#m", limits=limits)]


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "500 Oh"])
async def test_a_reply_that_is_nested_too_deep_has_a_type(status: str) -> None:
    async with serving(status) as url:
        for model in models(url):
            with pytest.raises(ChatError):
                await model.complete(ChatRequest((Message("user", "hi"),)))
            judgement = await CriterionJudge(model, max_attempts=1).judge_criteria(
                Rollout("P", "R"), [Criterion(id="a", text="Is short.")]
            )
            failure = judgement.verdicts[0].failure
            assert failure is not None and failure.kind in (FailureKind.SERVER, FailureKind.REQUEST)
            await model.aclose()
