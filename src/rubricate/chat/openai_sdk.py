"""Hosted models through the `openai` SDK."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.perloop import PerLoop
from rubricate.chat.secret import Secret
from rubricate.chat.timing import remaining
from rubricate.chat.wire import Dialect, http_error, model_entries, parse_completion, request_body
from rubricate.errors import ChatError, ConfigError, DeadlineError, MissingExtraError, RequestError, ServerError
from rubricate.types import fingerprint

__all__ = ["OpenAIModel", "is_reasoning_model", "load_openai"]

_HOME = "https://api.openai.com/v1"
_REASONING = re.compile(r"^(o\d|gpt-([5-9]|\d\d))(?!.*-chat)")


def is_reasoning_model(model: str) -> bool:
    """Whether a model of that name refuses sampling parameters and log-probabilities, as o3 and gpt-5 do."""
    return _REASONING.match(model.removeprefix("ft:").rsplit("/", 1)[-1]) is not None


@dataclass(frozen=True, slots=True)
class _Client:
    """What the model needs of the SDK: post a body, list the models, and close."""

    post: Callable[[Mapping[str, object]], Awaitable[object]]
    models: Callable[[], Awaitable[object]]
    close: Callable[[], Awaitable[None]]


class OpenAIModel(ChatModel):
    """A model of OpenAI, or of any host that speaks its format, through the SDK.

    Retries are off in the SDK: they belong to the limiter. Clients are made per event loop and closed with it.
    Pickles without clients, and without a key that came from the environment.

    Args:
        model: the model's name.
        api_key: without it, the environment variable OPENAI_API_KEY is read.
        base_url: without it, OPENAI_BASE_URL, else OpenAI's own address.
        dialect: None chooses: reasoning models at OpenAI get no sampling parameters, and OpenAI gets
            max_completion_tokens where other hosts get max_tokens.
        context: context length in tokens, where known.
        warm_tokens: see Capabilities; OpenAI caches prompts from 1,024 tokens.
        timeout: seconds for one request, where no earlier deadline holds; None waits for ever.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: Dialect | None = None,
        context: int | None = None,
        warm_tokens: int | None = 1024,
        timeout: float | None = 600.0,
    ) -> None:
        if not model:
            raise ConfigError("the model's name is missing", hint="write openai:gpt-5-mini")
        self.model = model
        self.name = f"openai:{model}"
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or _HOME).rstrip("/")
        parts = urlsplit(self.base_url)
        if "@" in parts.netloc:
            raise ConfigError("a base URL must not hold a user name or password", hint="set OPENAI_API_KEY")
        self._hosted = (parts.hostname or "").endswith("openai.com")
        self.dialect = dialect or self._default_dialect()
        self.context = context
        self.warm_tokens = warm_tokens
        self.timeout = timeout
        self._secret = Secret(given=api_key) if api_key else Secret(variable="OPENAI_API_KEY")
        self._clients = self._pool()

    def _default_dialect(self) -> Dialect:
        if not self._hosted:
            return Dialect()
        return Dialect(token_field="max_completion_tokens", sampling=not is_reasoning_model(self.model))

    def _pool(self) -> PerLoop[_Client]:
        return PerLoop(self._open, lambda client: client.close())

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r})"

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key != "_clients"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._clients = self._pool()

    @property
    def fingerprint(self) -> str:
        extra = dict(self.dialect.extra)
        shape = {"sampling": self.dialect.sampling, "schema": self.dialect.schema, "extra": extra}
        return fingerprint({"back end": "openai", "url": self.base_url, "model": self.model, **shape})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            logprobs=self.dialect.sampling,
            json_schema=self.dialect.schema != "none",
            context=self.context,
            warm_tokens=self.warm_tokens,
        )

    async def complete(self, request: ChatRequest) -> Completion:
        body = request_body(request, self.model, self.dialect)
        return parse_completion(await self._exchange(lambda client: client.post(body)), self.name)

    async def listing(self) -> list[Mapping[str, object]]:
        """What the host says of its models at `/models`, an entry a model; asked anew. Raises ChatError."""
        return model_entries(await self._exchange(lambda client: client.models()))

    async def _exchange(self, call: Callable[[_Client], Awaitable[object]]) -> object:
        import openai

        left = remaining()
        if left is not None and left <= 0:
            raise DeadlineError("the deadline passed before the call could be sent", provider=self.name)
        late = left is not None and (self.timeout is None or left <= self.timeout)
        limit = left if late else self.timeout
        if self._hosted and not self._secret.reveal():
            raise RequestError(
                "there is no API key", provider=self.name, hint="set OPENAI_API_KEY, or give api_key"
            )
        client = await self._clients.get()
        try:
            async with asyncio.timeout(limit):  # the SDK's own timeout is for each read apart
                return await call(client)
        except (TimeoutError, openai.APITimeoutError):
            message = "the deadline passed before the server answered" if late else f"no answer within {limit} s"
            kind = DeadlineError if late else ServerError
            raise kind(message, provider=self.name) from None
        except RecursionError:
            raise ServerError("the server's reply is nested beyond reading", provider=self.name) from None
        except openai.APIConnectionError as error:
            detail = f"{error} ({error.__cause__})" if error.__cause__ else str(error)
            raise self._lost(detail) from None
        except openai.APIStatusError as error:
            raise self._refused(error.status_code, error.response.headers, error.body) from None
        except openai.OpenAIError as error:
            raise RequestError(f"the SDK refuses the call: {error}", provider=self.name) from None

    def _lost(self, detail: str) -> ServerError:
        hint = f"check that {self.base_url} can be reached"
        return ServerError(f"no connection: {detail}", provider=self.name, hint=hint)

    def _refused(self, status: int, headers: Mapping[str, str], body: object) -> ChatError:
        return http_error(status, headers, body, self.name, secret=self._secret.reveal())

    def _open(self) -> _Client:
        try:
            from openai import AsyncOpenAI
        except ImportError:
            raise MissingExtraError("openai", command="pip install 'openai>=1.60'") from None

        # Servers of one's own often want no key; the SDK insists on one.
        key = self._secret.reveal() or "none"
        sdk = AsyncOpenAI(api_key=key, base_url=self.base_url, max_retries=0, timeout=None)

        async def post(body: Mapping[str, object]) -> object:
            reply: object = await sdk.post("/chat/completions", body=dict(body), cast_to=object)
            return reply

        async def models() -> object:
            reply: object = await sdk.get("/models", cast_to=object)
            return reply

        return _Client(post, models, sdk.close)

    async def aclose(self) -> None:
        await self._clients.aclose()


def load_openai(
    spec: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    token_field: str | None = None,
    schema: str = "openai",
    sampling: bool | None = None,
    reasoning_effort: str | None = None,
    extra: Mapping[str, object] | None = None,
    context: int | None = None,
    warm_tokens: int | None = 1024,
    timeout: float | None = 600.0,
) -> OpenAIModel:
    """The model behind `openai:`.

    Args:
        spec: the model's name.
        token_field, schema, sampling: see Dialect; None chooses by address and name.
        reasoning_effort: how much a reasoning model thinks, such as `low`.
        extra: further fields of every body.
        api_key, base_url, context, warm_tokens, timeout: see OpenAIModel.
    """
    model = OpenAIModel(
        spec, api_key=api_key, base_url=base_url, context=context, warm_tokens=warm_tokens, timeout=timeout
    )
    fields = {**(extra or {}), **({"reasoning_effort": reasoning_effort} if reasoning_effort else {})}
    chosen = model.dialect
    model.dialect = replace(
        chosen,
        token_field=token_field or chosen.token_field,
        schema=schema,
        sampling=chosen.sampling if sampling is None else sampling,
        extra=fields,
    )
    return model
