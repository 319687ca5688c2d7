"""Self-hosted OpenAI-compatible servers (vLLM, SGLang, llama.cpp) through a thin aiohttp client."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from rubricate.bridge import run_sync
from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.perloop import PerLoop
from rubricate.chat.secret import Secret
from rubricate.chat.timing import remaining
from rubricate.chat.wire import Dialect, http_error, model_entries, parse_completion, request_body
from rubricate.errors import ChatError, ConfigError, DeadlineError, RequestError, ServerError
from rubricate.narrow import as_object
from rubricate.types import fingerprint

__all__ = ["KEY_VARIABLE", "ServerModel", "clean_url", "load_server"]

# Not OPENAI_API_KEY: that key must not travel to whatever address a config file names.
KEY_VARIABLE = "RUBRICATE_API_KEY"

_WARM = 256
_PATHS = ("/chat/completions", "/decisions", "/embeddings", "/models", "/systemone")


@dataclass(frozen=True, slots=True)
class _Reply:
    """An HTTP reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Client:
    """What the model needs of an HTTP client.

    `send` takes a path below the base URL, a body (None: GET), the API key and the seconds that it may take.
    """

    send: Callable[[str, bytes | None, str, float | None], Awaitable[_Reply]]
    close: Callable[[], Awaitable[None]]
    asking: asyncio.Lock


def clean_url(url: str) -> str:
    """The base URL of a server, ending in its version path: `http://host:8000` means `http://host:8000/v1`.

    Raises ConfigError for an address without a host, or one with a user name or password in it.
    """
    parts = urlsplit(url)
    if "@" in parts.netloc:
        hint = f"give the key as api_key, or in the environment variable {KEY_VARIABLE}"
        raise ConfigError("an address must not hold a user name or password", hint=hint)
    try:
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        sound = False
    if not sound:
        raise ConfigError(f"{url!r} is not the address of a server", hint="write http://host:port/v1#model")
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", ""))


class ServerModel(ChatModel):
    """A model behind `POST {url}/chat/completions`.

    Connections are pooled per event loop and closed with it; any number of `asyncio.run` may follow each other.
    Pickles without its connections, and without a key that came from the environment.

    Attributes:
        shares_at_once: the server is known to share a prefix among requests that arrive together.

    Args:
        url: base address, such as `http://localhost:8000/v1`.
        model: the model's name at the server; "" asks `/v1/models` once and takes the first.
        api_key: sent as a bearer token. Without it, the environment variable `key_variable` is read at each call.
        dialect: see Dialect.
        context: context length in tokens, where known.
        warm_tokens: see Capabilities. "auto" is 256 until the server's answers name vLLM, and None from then on:
            vLLM shares cache blocks between requests of one step, so that waiting for a first call gains nothing.
        timeout: seconds for one request, where no earlier deadline holds; None waits for ever.
    """

    def __init__(
        self,
        url: str,
        model: str = "",
        *,
        api_key: str | None = None,
        key_variable: str = KEY_VARIABLE,
        dialect: Dialect | None = None,
        context: int | None = None,
        warm_tokens: int | str | None = "auto",
        timeout: float | None = 600.0,
    ) -> None:
        self.url = clean_url(url)
        self.model = model
        self.name = f"{self.url}#{model}" if model else self.url
        self.dialect = dialect or Dialect()
        self.context = context
        if isinstance(warm_tokens, str) and warm_tokens != "auto":
            raise ConfigError(f"warm_tokens is {warm_tokens!r}", hint="give a number of tokens, null, or auto")
        self.warm_tokens = _WARM if isinstance(warm_tokens, str) else warm_tokens
        self.shares_at_once = False
        self._watching = isinstance(warm_tokens, str)
        self.timeout = timeout
        self._secret = Secret(given=api_key) if api_key else Secret(variable=key_variable)
        self._clients = self._pool()

    def _pool(self) -> PerLoop[_Client]:
        url = self.url
        return PerLoop(lambda: _open(url), lambda client: client.close())

    def __repr__(self) -> str:
        return f"ServerModel({self.name!r})"

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key != "_clients"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._clients = self._pool()

    @property
    def fingerprint(self) -> str:
        """As in ChatModel. Asks the server for the model's name where none was given, once; raises ChatError."""
        model = self.model or run_sync(self.resolve())
        extra = dict(self.dialect.extra)
        return fingerprint({"back end": "server", "url": self.url, "model": model, "extra": extra})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            logprobs=self.dialect.sampling,
            json_schema=self.dialect.schema != "none",
            prefill=self.dialect.prefill,
            context=self.context,
            warm_tokens=self.warm_tokens,
        )

    async def complete(self, request: ChatRequest) -> Completion:
        model = self.model or await self.resolve()
        body = json.dumps(request_body(request, model, self.dialect)).encode()
        record = await self._exchange("/chat/completions", body)
        if self._watching:
            self._learn(record)
        return parse_completion(record, self.name)

    def _learn(self, record: object) -> None:
        """See by an answer whether this is vLLM; its fingerprint is such as `vllm-0.32.0-ce3059c1`."""
        mark = (as_object(record) or {}).get("system_fingerprint")
        if isinstance(mark, str) and mark.startswith("vllm-"):
            self.warm_tokens, self.shares_at_once, self._watching = None, True, False

    async def resolve(self) -> str:
        """The model's name at the server, asked for once. Raises RequestError when the server names none."""
        async with (await self._clients.get()).asking:
            if self.model:
                return self.model
            names = [name for entry in await self.listing() if isinstance(name := entry.get("id"), str)]
            if not names:
                hint = "name the model in the address: http://host:port/v1#model"
                raise RequestError("the server lists no model", provider=self.name, hint=hint)
            self.model = names[0]
        return self.model

    async def listing(self) -> list[Mapping[str, object]]:
        """What the server says of its models at `/models`, an entry a model; asked anew. Raises ChatError."""
        return model_entries(await self._exchange("/models", None))

    async def _exchange(self, path: str, body: bytes | None) -> object:
        """Send one request and read its JSON reply. Raises ChatError for everything else."""
        left = remaining()
        limit = min(math.inf if left is None else left, self.timeout or math.inf)
        late = left is not None and left <= limit
        if left is not None and left <= 0:
            raise DeadlineError("the deadline passed before the call could be sent", provider=self.name)
        reply = await self._send(path, body, limit, late)
        if reply.status >= 300:
            raise self._refused(reply)
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError):
            start = self._hidden(reply.body.decode("utf-8", "replace"))[:80]
            message = f"the server's reply is not JSON: {start!r}"
            raise ServerError(message, provider=self.name, status=reply.status) from None

    async def _send(self, path: str, body: bytes | None, limit: float, late: bool) -> _Reply:
        from aiohttp import ClientConnectionError, ClientError

        client = await self._clients.get()
        key = self._secret.reveal()
        try:
            return await client.send(path, body, key, None if math.isinf(limit) else limit)
        except TimeoutError:
            # aiohttp's own timeouts are ClientErrors too: they come first.
            if late:
                message = "the deadline passed before the server answered"
                raise DeadlineError(message, provider=self.name) from None
            raise ServerError(f"no answer within {limit:g} s", provider=self.name) from None
        except ClientConnectionError as error:
            hint = f"check that a server runs at {self.url}"
            raise ServerError(f"no connection: {self._hidden(str(error))}", provider=self.name, hint=hint) from None
        except ClientError as error:
            # Not its repr, which holds the request's headers, and so the key.
            said = self._hidden(f"{type(error).__name__}: {error}")
            raise ServerError(f"the exchange broke off: {said}", provider=self.name) from None

    def _hidden(self, text: str) -> str:
        """The text without the API key, which servers may send back."""
        key = self._secret.reveal()
        return text.replace(key, "***") if key else text

    def _refused(self, reply: _Reply) -> ChatError:
        try:
            body: object = json.loads(reply.body)
        except (ValueError, RecursionError):
            body = reply.body.decode("utf-8", "replace")
        return http_error(reply.status, reply.headers, body, self.name, secret=self._secret.reveal())

    async def aclose(self) -> None:
        await self._clients.aclose()


def _open(url: str) -> _Client:
    """An HTTP client with a connection pool, for the running event loop."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
    from yarl import URL

    secure = url.startswith("https:")
    session = ClientSession(
        # The limiter bounds what is in flight. uvicorn, in front of vLLM and SGLang, drops idle connections after
        # 5 s; ours must go first, or a request meets a connection that is just being closed.
        connector=TCPConnector(limit=0, keepalive_timeout=30.0 if secure else 4.0),
        headers={"Content-Type": "application/json", "Accept": "application/json"},
        cookie_jar=DummyCookieJar(),
        trust_env=secure,
    )
    targets = {path: URL(url + path) for path in _PATHS}

    async def send(path: str, body: bytes | None, key: str, limit: float | None) -> _Reply:
        async with session.request(
            "GET" if body is None else "POST",
            targets[path],
            data=body,
            headers={"Authorization": f"Bearer {key}"} if key else None,
            timeout=ClientTimeout(total=limit),
            allow_redirects=False,
        ) as response:
            return _Reply(response.status, response.headers, await response.read())

    return _Client(send, session.close, asyncio.Lock())


def load_server(
    spec: str,
    *,
    api_key: str | None = None,
    key_variable: str = KEY_VARIABLE,
    token_field: str = "max_tokens",
    schema: str = "openai",
    sampling: bool = True,
    prefill: bool = False,
    extra: Mapping[str, object] | None = None,
    context: int | None = None,
    warm_tokens: int | str | None = "auto",
    timeout: float | None = 600.0,
) -> ServerModel:
    """The model behind `http:` and `https:`.

    Args:
        spec: `http://host:port/v1#model`.
        token_field, schema, sampling, prefill: see Dialect.
        extra: further fields of every body.
        api_key, key_variable, context, warm_tokens, timeout: see ServerModel.
    """
    url, _, model = spec.partition("#")
    return ServerModel(
        url,
        model,
        api_key=api_key,
        key_variable=key_variable,
        dialect=Dialect(token_field, schema, sampling, prefill, extra or {}),
        context=context,
        warm_tokens=warm_tokens,
        timeout=timeout,
    )
