"""Log-probabilities of a prompt's own tokens, as vLLM's servers give them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rubricate.chat.base import TokenLogprob
from rubricate.errors import ServerError
from rubricate.narrow import as_array, as_number, as_object

__all__ = ["parse_prompt_logprobs"]

_LEAST = -9999.0


def parse_prompt_logprobs(reply: Mapping[str, object], provider: str) -> tuple[TokenLogprob, ...] | None:
    """One entry a token of the prompt, the first one empty; None where the reply has none.

    The reply holds `prompt_logprobs`, a list with an object for each token but the first, which is null. The object
    goes from token ids to `logprob` and `decoded_token`, for the likeliest tokens and the prompt's own, which
    `prompt_token_ids` tells and which otherwise comes first (vLLM, `vllm/v1/engine/logprobs.py`).

    Raises ServerError when it is not of that form.
    """
    rows = as_array(reply.get("prompt_logprobs"))
    if rows is None:
        return None
    ids = as_array(reply.get("prompt_token_ids"))
    if ids is not None and len(ids) != len(rows):
        raise _broken(f"{len(rows)} log-probabilities for {len(ids)} tokens of the prompt", provider)
    return tuple(
        TokenLogprob("", 0.0) if row is None else _token(row, None if ids is None else ids[at], provider)
        for at, row in enumerate(rows)
    )


def _token(row: object, own: object, provider: str) -> TokenLogprob:
    entries: dict[str, tuple[str, float]] = {}
    for key, entry in (as_object(row) or {}).items():
        named = as_object(entry) or {}
        text, value = named.get("decoded_token"), as_number(named.get("logprob"))
        # A token of probability 0 has no finite number. NaN and +inf stay as they came, for judges to refuse.
        if value is None:
            given = named.get("logprob")
            value = given if isinstance(given, float) and given != -math.inf else _LEAST
        entries[key] = (text if isinstance(text, str) else "", value)
    key = next(iter(entries), "") if own is None else str(own)
    if key not in entries:
        raise _broken("a token of the prompt has no log-probability", provider)
    return TokenLogprob(*entries[key], tuple(entries.values()))


def _broken(what: str, provider: str) -> ServerError:
    return ServerError(f"the server's reply is broken: {what}", provider=provider, status=200)
