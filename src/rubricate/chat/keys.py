"""What identifies a request to a model: one fingerprint of everything that can change the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import cast

from rubricate.chat.base import ChatRequest
from rubricate.errors import ConfigError

__all__ = ["request_key"]

_VERSION = 1
"""Changes when the key's make-up does, so that no old answer is taken for a new request's."""


def request_key(model: str, request: ChatRequest) -> str:
    """The key of a request: 32 hex digits of SHA-256 over canonical JSON.

    Equal requests to equal models have equal keys, in every process and on every machine. Every field of the
    request counts, `sample` too, so that 25 samples are 25 answers. The order of names in `json_schema` and `extra`
    counts, because servers generate in the order of a schema's properties.

    Args:
        model: the model's fingerprint, which holds its address and its options, and no key.
        request: the request.

    Raises ConfigError for a field that JSON cannot hold.
    """
    content: list[object] = [
        _VERSION,
        model,
        [[message.role, message.content] for message in request.messages],
        request.max_tokens,
        # 0 and 0.0 are one temperature
        float(request.temperature),
        float(request.top_p),
        request.seed,
        request.stop,
        request.top_logprobs,
        request.json_schema,
        request.prefill,
        request.sample,
        request.extra,
    ]
    if request.prompt_logprobs is not None:  # keys of older requests stay as they are
        content.append(["prompt_logprobs", request.prompt_logprobs])
    try:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the request holds what JSON cannot, so its answer cannot be kept: {error}",
            hint="look at `extra` and `json_schema`",
        ) from None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):  # one that is no dict
        return dict(cast("Mapping[object, object]", value))
    raise TypeError(f"{type(value).__name__} is no JSON value")
