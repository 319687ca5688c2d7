"""Search servers that speak JSON over HTTP: web search, vector stores, paper indices."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion, Message
from rubricate.chat.limiter import Limiter
from rubricate.chat.perloop import PerLoop
from rubricate.chat.secret import Secret
from rubricate.chat.timing import remaining
from rubricate.chat.wire import http_error
from rubricate.errors import ConfigError, DeadlineError, ServerError
from rubricate.narrow import as_array, as_object
from rubricate.search.base import Passage, Retriever
from rubricate.types import Usage, fingerprint

__all__ = ["KEY_VARIABLE", "ServerRetriever", "parse_results"]

KEY_VARIABLE = "RUBRICATE_SEARCH_API_KEY"

_LISTS = ("results", "passages", "documents", "hits", "data", "organic", "items", "matches")
_TEXTS = ("text", "content", "passage", "snippet", "body", "abstract", "chunk", "description")
_SOURCES = ("url", "link", "source", "id", "corpusId", "paperId", "doc_id", "_id")
_TITLES = ("title", "name")


@dataclass(frozen=True, slots=True)
class _Reply:
    """An HTTP reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Client:
    """What the retriever needs of an HTTP client. `send` takes fields, headers, and the seconds it may take."""

    send: Callable[[Mapping[str, object], Mapping[str, str], float], Awaitable[_Reply]]
    close: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Found(Completion):
    """The passages of one search, as the limiter of chat models handles an answer."""

    passages: tuple[Passage, ...] = ()


class _EndPoint(ChatModel):
    """The server as the limiter knows models: a request's message is the query, its max_tokens the number."""

    def __init__(self, owner: ServerRetriever) -> None:
        self.owner = owner
        self.name = owner.name

    @property
    def fingerprint(self) -> str:
        return self.owner.fingerprint

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    async def complete(self, request: ChatRequest) -> Completion:
        query, k = request.messages[0].content, request.max_tokens
        body = await self.owner.exchange(query, k)
        return _Found("", usage=Usage(1), passages=tuple(parse_results(body, self.owner.results, self.name)))


class ServerRetriever(Retriever):
    """A search server. Waiting, retries, rates and deadlines are the limiter's, as for chat models.

    The query goes as JSON in a POST, or in the address of a GET. The reply is a list of results, or an object that
    holds one; see `parse_results` for what is understood. Pickles without connections, and without a key that came
    from the environment.

    Args:
        url: the full address of the search, without the query.
        method: `POST` or `GET`.
        query, count: names of the fields for the query and for the number of results.
        more: further fields, sent as they are.
        results: path of the list in the reply, such as `web.results`; "" looks for the usual names.
        api_key: sent in the header `key_header`. Without it, the environment variable `key_variable` is read.
        key_header: `Authorization` sends it as a bearer token, any other header as it is.
        limiter: bounds and retries.
        timeout: seconds for one request, where no earlier deadline holds.

    Raises ConfigError for an address without a host or with a key in it.
    """

    def __init__(
        self,
        url: str,
        *,
        method: Literal["POST", "GET"] = "POST",
        query: str = "query",
        count: str = "k",
        more: Mapping[str, object] | None = None,
        results: str = "",
        api_key: str | None = None,
        key_variable: str = KEY_VARIABLE,
        key_header: str = "Authorization",
        limiter: Limiter | None = None,
        timeout: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigError(f"{url!r} is not the address of a search", hint="write http://host:port/search")
        if method not in ("POST", "GET"):
            raise ConfigError(f"method is {method!r}", hint="use POST or GET")
        self.url = url
        self.name = parts._replace(query="", fragment="").geturl()
        self.method = method
        self.query, self.count, self.more = query, count, dict(more or {})
        self.results = results
        self.key_header = key_header
        self.limiter = limiter or Limiter()
        self.timeout = timeout
        self._secret = Secret(given=api_key) if api_key else Secret(variable=key_variable)
        self._clients = self._pool()

    def _pool(self) -> PerLoop[_Client]:
        method, url = self.method, self.url
        return PerLoop(lambda: _open(method, url), lambda client: client.close())

    def __repr__(self) -> str:
        return f"ServerRetriever({self.name!r})"

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key != "_clients"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._clients = self._pool()

    @property
    def fingerprint(self) -> str:
        """Of the address and the fields; what a server holds may change all the same."""
        fields = [self.url, self.method, self.query, self.count, self.more, self.results]
        return fingerprint({"back end": "search server", "request": fields})

    async def _search(self, query: str, k: int) -> list[Passage]:
        request = ChatRequest((Message("user", query),), max_tokens=k)
        answer = await self.limiter.call(_EndPoint(self), request)
        if not isinstance(answer, _Found):  # the limiter gives back what the end point answered
            raise TypeError(f"an answer without passages: {answer!r}")
        return list(answer.passages)

    async def exchange(self, query: str, k: int) -> object:
        """Send one search and read its JSON reply. Raises ChatError for everything else."""
        from aiohttp import ClientError

        left = remaining()
        if left is not None and left <= 0:
            raise DeadlineError("the deadline passed before the search could be sent", provider=self.name)
        fields: dict[str, object] = {self.query: query} | ({self.count: k} if self.count else {}) | self.more
        key = self._secret.reveal()
        shown = f"Bearer {key}" if self.key_header == "Authorization" else key
        headers = {"Accept": "application/json"} | ({self.key_header: shown} if key else {})
        limit = self.timeout if left is None else min(left, self.timeout)
        client = await self._clients.get()
        try:
            reply = await client.send(fields, headers, limit)
        except TimeoutError:
            if left is not None and left <= self.timeout:
                raise DeadlineError("the deadline passed before the server answered", provider=self.name) from None
            raise ServerError(f"no answer within {limit:g} s", provider=self.name) from None
        except ClientError as error:
            said = f"{type(error).__name__}: {error}"
            said = said.replace(key, "***") if key else said
            hint = f"check that a server runs at {self.name}"
            raise ServerError(f"no answer: {said}", provider=self.name, hint=hint) from None
        return _read(reply, self.name, key)

    async def aclose(self) -> None:
        await self._clients.aclose()


def _open(method: str, url: str) -> _Client:
    """An HTTP client with a connection pool, for the running event loop."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

    session = ClientSession(cookie_jar=DummyCookieJar(), trust_env=url.startswith("https:"))

    async def send(fields: Mapping[str, object], headers: Mapping[str, str], limit: float) -> _Reply:
        async with session.request(
            method,
            url,
            json=fields if method == "POST" else None,
            params={name: str(value) for name, value in fields.items()} if method == "GET" else None,
            headers=headers,
            timeout=ClientTimeout(total=limit),
            allow_redirects=False,
        ) as response:
            return _Reply(response.status, response.headers, await response.read())

    return _Client(send, session.close)


def _read(reply: _Reply, provider: str, key: str) -> object:
    try:
        body: object = json.loads(reply.body)
    except (ValueError, RecursionError):
        body = reply.body.decode("utf-8", "replace")
    if reply.status >= 300:
        raise http_error(reply.status, reply.headers, body, provider, secret=key)
    if isinstance(body, str):
        start = (body.replace(key, "***") if key else body)[:80]
        raise ServerError(f"the server's reply is not JSON: {start!r}", provider=provider, status=reply.status)
    return body


def parse_results(body: object, path: str, provider: str) -> list[Passage]:
    """The passages of a reply, in its order.

    A result has a text (`text`, `content`, `passage`, `snippet`, `body`, `abstract`, ...), and may have a source
    (`url`, `link`, `source`, `id`, ...), a title and a score, in its own fields or in an object inside it, such as
    `{"snippet": {"text": ...}, "paper": {"title": ...}}`. A result without a text is left out. One without a source
    is named by its place in the reply.

    Raises ServerError where the list is not there, or no result has a text.
    """
    listed = _at(body, path.split(".")) if path else _list(body)
    if listed is None:
        what = f"no list at {path!r}" if path else "no list of results"
        hint = f"say where the list is: results=...; usual names: {', '.join(_LISTS)}"
        raise ServerError(f"the server's reply has {what}", provider=provider, hint=hint, retryable=False)
    found: list[Passage] = []
    for place, item in enumerate(listed, start=1):
        fields = {"text": item} if isinstance(item, str) else as_object(item) or {}
        text = _field(fields, _TEXTS)
        if text.strip():
            score = fields.get("score")
            number = float(score) if isinstance(score, int | float) and math.isfinite(score) else 0.0
            source = _field(fields, _SOURCES) or f"{provider}#{place}"
            found.append(Passage(text, source, _field(fields, _TITLES), None, number))
    if listed and not found:
        hint = f"usual names: {', '.join(_TEXTS)}"
        raise ServerError(
            "no result of the server's reply has a text", provider=provider, hint=hint, retryable=False
        )
    return found


def _at(value: object, path: Sequence[str]) -> Sequence[object] | None:
    for name in path:
        value = (as_object(value) or {}).get(name)
    return as_array(value)


def _list(value: object) -> Sequence[object] | None:
    listed = as_array(value)
    fields = as_object(value) or {}
    for name in _LISTS:
        listed = listed if listed is not None else as_array(fields.get(name))
    for inner in fields.values():
        listed = listed if listed is not None or as_object(inner) is None else _list(inner)
    return listed


def _field(fields: Mapping[str, object], names: Sequence[str]) -> str:
    """The first of these fields that holds a text or a number, its own first, then those of objects inside."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    inner = (as_object(value) for value in fields.values())
    return next((said for one in inner if one is not None and (said := _field(one, names))), "")
