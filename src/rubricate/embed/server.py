"""Embeddings of OpenAI and of servers that speak its format, on the HTTP client and the limiter of chat models."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np

from rubricate.bridge import run_sync
from rubricate.chat.base import ChatRequest, Message
from rubricate.chat.limiter import Limiter
from rubricate.chat.server import KEY_VARIABLE, ServerModel
from rubricate.embed.base import Embedder, Vectors
from rubricate.embed.wire import Embedded, parse_embeddings
from rubricate.errors import ConfigError, RequestError, ServerError
from rubricate.types import fingerprint

__all__ = ["ServerEmbedder", "load_openai", "load_server"]

_HOME = "https://api.openai.com/v1"
_OPENAI_VARIABLE = "OPENAI_API_KEY"
_CHARACTERS = 200_000  # in one request: well under the 300,000 tokens that OpenAI takes


class _EndPoint(ServerModel):
    """`POST {url}/embeddings`. A request's messages are the texts to embed; the answer carries their vectors."""

    dimensions: int | None = None
    encoding = "float"

    async def complete(self, request: ChatRequest) -> Embedded:
        texts = [message.content for message in request.messages]
        body: dict[str, object] = {
            "model": self.model or await self.resolve(),
            "input": texts,
            "encoding_format": self.encoding,
        }
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        if self._secret.variable == _OPENAI_VARIABLE and not self._secret.reveal() and _hosted(self.url):
            hint = "set OPENAI_API_KEY, or give api_key"
            raise RequestError("there is no API key", provider=self.name, hint=hint)
        record = await self._exchange("/embeddings", json.dumps(body).encode())
        return parse_embeddings(record, len(texts), self.dimensions, self.name)


class ServerEmbedder(Embedder):
    """A model behind `POST {url}/embeddings`: OpenAI, vLLM, SGLang, llama.cpp, text-embeddings-inference, ...

    Texts go in batches, side by side. Waiting, retries, rates and deadlines are the limiter's, as for chat models;
    a limiter may be shared with them. Where one batch has no answer, the call fails and the others are called off.
    Pickles without its connections, and without a key that came from the environment.

    Args:
        url: base address, such as `http://localhost:8000/v1`.
        model: the model's name at the server; "" asks `/v1/models` once and takes the first.
        api_key: sent as a bearer token. Without it, the environment variable `key_variable` is read at each call.
        name: what the embedder is called, in messages too.
        limiter: bounds and retries.
        dimensions: length of vectors to ask for, where the model can shorten them; None takes its own.
        encoding: `float` or `base64`, a third as long on the wire. Either is understood whatever was asked for.
        batch: texts in one request at most.
        timeout: seconds for one request, where no earlier deadline holds; None waits for ever.
    """

    def __init__(
        self,
        url: str,
        model: str = "",
        *,
        api_key: str | None = None,
        key_variable: str = KEY_VARIABLE,
        name: str = "",
        limiter: Limiter | None = None,
        dimensions: int | None = None,
        encoding: str = "float",
        batch: int = 32,
        timeout: float | None = 600.0,
    ) -> None:
        if encoding not in ("float", "base64"):
            raise ConfigError(f"there is no encoding {encoding!r} of vectors", hint="choose float or base64")
        for option, value in (("batch", batch), ("dimensions", dimensions)):
            if value is not None and value < 1:
                raise ConfigError(f"option {option!r} must be at least 1, not {value}")
        end_point = _EndPoint(
            url.rstrip("/").removesuffix("/embeddings"),
            model,
            api_key=api_key,
            key_variable=key_variable,
            timeout=timeout,
        )
        end_point.name = name or end_point.name
        end_point.dimensions = dimensions
        end_point.encoding = encoding
        self.name = end_point.name
        self.limiter = limiter or Limiter()
        self.batch = batch
        self._end_point = end_point
        self._known: dict[str, int] = {} if dimensions is None else {"dimensions": dimensions}

    def __repr__(self) -> str:
        return f"ServerEmbedder({self.name!r})"

    @property
    def fingerprint(self) -> str:
        """As in Embedder. Asks the server for the model's name where none was given, once; raises ChatError."""
        end_point = self._end_point
        model = end_point.model or run_sync(end_point.resolve())
        shape = {"url": end_point.url, "model": model, "dimensions": end_point.dimensions}
        return fingerprint({"back end": "embeddings server", **shape})

    @property
    def dimensions(self) -> int | None:
        return self._known.get("dimensions")

    async def _embed(self, texts: list[str]) -> Vectors:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._request(batch)) for batch in _batches(texts, self.batch)]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _request(self, texts: list[str]) -> Vectors:
        messages = tuple(Message("user", text) for text in texts)
        answer = await self.limiter.call(self._end_point, ChatRequest(messages, max_tokens=0))
        if not isinstance(answer, Embedded):  # the limiter gives back what the end point answered
            raise TypeError(f"an answer without vectors: {answer!r}")
        self._agree(answer.vectors.shape[1])
        return answer.vectors

    def _agree(self, dimensions: int) -> None:
        """All vectors of an embedder have one length, or their cosines mean nothing."""
        known = self._known.setdefault("dimensions", dimensions)  # one step: other threads may be at it too
        if dimensions != known:
            raise ServerError(
                f"vectors of {dimensions} dimensions came after vectors of {known}",
                provider=self.name,
                hint="does the address lead to several models?",
                retryable=False,
            )

    async def aclose(self) -> None:
        await self._end_point.aclose()


def _hosted(url: str) -> bool:
    return (urlsplit(url).hostname or "").endswith("openai.com")


def _batches(texts: list[str], batch: int) -> Iterator[list[str]]:
    """Texts in order, `batch` at most and _CHARACTERS at most together; a longer text goes alone."""
    group, characters = list[str](), 0
    for text in texts:
        if group and (len(group) == batch or characters + len(text) > _CHARACTERS):
            yield group
            group, characters = [], 0
        group.append(text)
        characters += len(text)
    yield group


def load_openai(
    spec: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    limiter: Limiter | None = None,
    dimensions: int | None = None,
    encoding: str = "base64",
    batch: int = 256,
    timeout: float | None = 600.0,
) -> ServerEmbedder:
    """The embedder behind `openai:`.

    Args:
        spec: the model's name.
        base_url: without it, OPENAI_BASE_URL, else OpenAI's own address.
        batch: OpenAI takes 2,048 texts in one request.
        api_key, limiter, dimensions, encoding, timeout: see ServerEmbedder.
    """
    if not spec:
        raise ConfigError("the model's name is missing", hint="write openai:text-embedding-3-small")
    return ServerEmbedder(
        base_url or os.environ.get("OPENAI_BASE_URL") or _HOME,
        spec,
        api_key=api_key,
        key_variable=_OPENAI_VARIABLE,
        name=f"openai:{spec}",
        limiter=limiter,
        dimensions=dimensions,
        encoding=encoding,
        batch=batch,
        timeout=timeout,
    )


def load_server(
    spec: str,
    *,
    api_key: str | None = None,
    key_variable: str = KEY_VARIABLE,
    limiter: Limiter | None = None,
    dimensions: int | None = None,
    encoding: str = "float",
    batch: int = 32,
    timeout: float | None = 600.0,
) -> ServerEmbedder:
    """The embedder behind `http:` and `https:`.

    Args:
        spec: `http://host:port/v1#model`.
        batch: text-embeddings-inference takes 32 texts in one request unless told otherwise.
        api_key, key_variable, limiter, dimensions, encoding, timeout: see ServerEmbedder.
    """
    url, _, model = spec.partition("#")
    return ServerEmbedder(
        url,
        model,
        api_key=api_key,
        key_variable=key_variable,
        limiter=limiter,
        dimensions=dimensions,
        encoding=encoding,
        batch=batch,
        timeout=timeout,
    )
