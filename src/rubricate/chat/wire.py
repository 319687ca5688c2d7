"""The OpenAI chat format on the wire: requests to JSON bodies, replies to Completions, error replies to errors."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rubricate.chat.base import ChatRequest, Completion, Finish, TokenLogprob
from rubricate.chat.promptlogprobs import parse_prompt_logprobs
from rubricate.errors import (
    AnswerError,
    ChatError,
    ContextOverflowError,
    RateLimitError,
    RequestError,
    ServerError,
)
from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import Usage

__all__ = ["Dialect", "http_error", "model_entries", "parse_completion", "parse_retry_after", "request_body"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server wants its requests.

    Attributes:
        token_field: name of the bound on generated tokens, `max_tokens` or `max_completion_tokens`.
        schema: form of a JSON schema: `openai` (also vLLM, SGLang), `llama.cpp`, or `none` (left out).
        sampling: send temperature, top_p, stop and logprobs; reasoning models at OpenAI refuse them.
        prefill: the server continues an assistant's message that has begun, by vLLM's and SGLang's
            `continue_final_message`.
        extra: further fields of every body.
    """

    token_field: str = "max_tokens"
    schema: str = "openai"
    sampling: bool = True
    prefill: bool = False
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


def request_body(request: ChatRequest, model: str, dialect: Dialect) -> dict[str, object]:
    """The JSON body of a chat request. Raises RequestError for a prefill that the server cannot continue."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    body: dict[str, object] = {"model": model, "messages": messages, dialect.token_field: request.max_tokens}
    if request.prefill:
        if not dialect.prefill:
            hint = "use a local: model, or prefill=true in the name of a vLLM or SGLang server"
            raise RequestError("this back end cannot continue an answer that has begun", hint=hint)
        messages.append({"role": "assistant", "content": request.prefill})
        body.update(add_generation_prompt=False, continue_final_message=True)
    if request.seed is not None:
        body["seed"] = request.seed
    if dialect.sampling:
        body["temperature"] = request.temperature
        if request.top_p != 1.0:
            body["top_p"] = request.top_p
        if request.stop:
            body["stop"] = list(request.stop)
        if request.top_logprobs is not None:
            body["logprobs"] = True
            body["top_logprobs"] = request.top_logprobs
        if request.prompt_logprobs is not None:
            body.update(prompt_logprobs=request.prompt_logprobs, return_token_ids=True)
    if request.json_schema is not None and dialect.schema != "none":
        body["response_format"] = _response_format(request.json_schema, dialect.schema)
    body.update(dialect.extra)
    body.update(request.extra)
    return body


def _response_format(schema: Mapping[str, object], form: str) -> dict[str, object]:
    if form == "llama.cpp":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


_FINISH = {
    "stop": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "end_turn": Finish.STOP,
    "eos": Finish.STOP,
    "eos_token": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
}


def parse_completion(record: object, provider: str) -> Completion:
    """The answer in a reply with status 200.

    Raises ServerError (retryable) when the reply is not a chat completion, and what http_error gives when it is an
    error in disguise.
    """
    reply = as_object(record)
    if reply is None:
        raise _broken("is not a JSON object", provider)
    choices = as_array(reply.get("choices"))
    if not choices:
        if reply.get("error"):
            raise _disguised(reply, provider)
        raise _broken("has no choices", provider)
    choice = as_object(choices[0])
    message = as_object(choice.get("message")) if choice is not None else None
    if choice is None or message is None:
        raise _broken("has a choice without a message", provider)
    finish = choice.get("finish_reason")
    if finish == "error":
        raise _broken("ended with finish reason 'error'", provider)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    refusal = message.get("refusal")
    return Completion(
        text=_text(message.get("content"), provider),
        finish=_FINISH.get(finish, Finish.OTHER) if isinstance(finish, str) else Finish.OTHER,
        usage=_usage(reply.get("usage")),
        logprobs=_logprobs(choice.get("logprobs"), provider),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        refusal=refusal if isinstance(refusal, str) else _refused_parts(message.get("content")),
        prompt_logprobs=parse_prompt_logprobs(reply, provider),
    )


def _broken(what: str, provider: str) -> ServerError:
    return ServerError(f"the server's reply {what}", provider=provider, status=200)


def _disguised(reply: Mapping[str, object], provider: str) -> ChatError:
    """Some gateways send an error with status 200."""
    inner = as_object(reply.get("error")) or {}
    code = as_number(inner.get("code"))
    status = int(code) if code is not None and 400 <= code < 600 else 502
    return http_error(status, {}, reply, provider)


def _text(content: object, provider: str) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts = as_array(content)
    if parts is None:
        raise _broken("has a content that is not text", provider)
    texts = [(as_object(part) or {}).get("text") for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _refused_parts(content: object) -> str:
    parts = as_array(content) or ()
    texts = [(as_object(part) or {}).get("refusal") for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _usage(value: object) -> Usage:
    usage = as_object(value) or {}
    details = as_object(usage.get("prompt_tokens_details")) or {}
    cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    return Usage(1, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(cached))


def _count(value: object) -> int:
    number = as_number(value)
    return int(number) if number is not None and number > 0 else 0


def _logprobs(value: object, provider: str) -> tuple[TokenLogprob, ...] | None:
    holder = as_object(value)
    entries = as_array(holder.get("content")) if holder is not None else None
    if entries is None:
        return None
    return tuple(_token(entry, provider) for entry in entries)


def _token(value: object, provider: str) -> TokenLogprob:
    entry = as_object(value) or {}
    token = entry.get("token")
    if not isinstance(token, str):
        raise _broken("has a log-probability without a token", provider)
    top = list[tuple[str, float]]()
    for item in as_array(entry.get("top_logprobs")) or ():
        alternative = as_object(item) or {}
        name = alternative.get("token")
        if isinstance(name, str):
            top.append((name, _logprob(alternative.get("logprob"))))
    return TokenLogprob(token, _logprob(entry.get("logprob")), tuple(top))


def _logprob(value: object) -> float:
    # Servers send null, -inf or -9999 for a token outside the sampling set. What is no logarithm of a probability
    # (NaN, +inf) stays as it came, for judges to refuse.
    number = as_number(value)
    if number is None and isinstance(value, float) and value != -math.inf:
        return value
    return -9999.0 if number is None else number


def model_entries(record: object) -> list[Mapping[str, object]]:
    """The entries of a reply to `GET /models`, none where it is no such reply."""
    empty: Mapping[str, object] = {}
    listing = as_object(record) or empty
    return [as_object(entry) or empty for entry in as_array(listing.get("data")) or ()]


_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|maximum model length|max_model_len|prompt is too long"
    r"|(input|prompt) (is|was) (too long|longer)|too many (input )?tokens",
    re.IGNORECASE,
)
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_FILTER_CODES = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"}
_HINTS = {
    400: "the server refuses a parameter or the messages; see its message",
    401: "check the API key and the variable that holds it",
    402: "the account has no credit left",
    403: "this key may not use the model",
    404: "check the address and the model's name; the server lists its models at /v1/models",
    405: "check the address: it should end in /v1",
    413: "the request is larger than the server takes",
}


def http_error(
    status: int, headers: Mapping[str, str], body: object, provider: str, *, secret: str = ""
) -> ChatError:
    """The error that a reply with a status of 400 and more stands for.

    Args:
        headers: with lower-case names, or a mapping that ignores case.
        body: the reply, as JSON value or as text.
        secret: the API key, which is taken out of the message.
    """
    text, codes = _describe(body)
    if secret:
        text = text.replace(secret, "***")
    message = f"HTTP {status}" + (f": {text}" if text else "")
    if status == 429:
        return _rate_limited(message, headers, codes, provider)
    if codes & _OVERFLOW_CODES or (status in (400, 413, 422) and _OVERFLOW.search(text)):
        hint = "shorten the prompt, lower max_tokens, or use a model with a longer context"
        return ContextOverflowError(message, provider=provider, status=status, hint=hint)
    if status < 500 and codes & _FILTER_CODES:
        return AnswerError(message, outcome="content_filter", provider=provider)
    if status in (408, 409, 425) or status >= 500:
        error = ServerError(message, provider=provider, status=status, retryable=status not in (501, 505))
        # An overloaded server (503, 529) may say when to come back.
        vars(error)["retry_after"] = parse_retry_after(headers)
        return error
    return RequestError(message, provider=provider, status=status, hint=_HINTS.get(status, ""))


def _rate_limited(message: str, headers: Mapping[str, str], codes: set[str], provider: str) -> RateLimitError:
    exhausted = bool(codes & _QUOTA_CODES)
    hint = "the account's quota is used up; waiting does not help" if exhausted else ""
    error = RateLimitError(message, provider=provider, retry_after=parse_retry_after(headers), hint=hint)
    error.retryable = not exhausted
    return error


def _describe(body: object) -> tuple[str, set[str]]:
    """The message of an error body, at most 500 characters on one line, and its codes and types."""
    empty: Mapping[str, object] = {}
    outer = as_object(body) or empty
    inner = as_object(outer.get("error")) or outer
    found: object = body if isinstance(body, str) else None
    for key in ("message", "detail", "error"):
        if isinstance(inner.get(key), str):
            found = inner[key]
            break
    codes = {value for key in ("code", "type") if isinstance(value := inner.get(key), str)}
    text = re.sub(r"<[^>]*>", " ", found) if isinstance(found, str) else ""
    return " ".join(text.split())[:500], codes


def parse_retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that `retry-after-ms` or `Retry-After` (seconds or an HTTP date) ask to wait, None without either.

    `now` is the time as a Unix timestamp, for tests.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        at = email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(at - (time.time() if now is None else now), 0.0)
