"""What a server says of its models at `/models`: their names, and how long their context is. Costs no tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rubricate.chat.openai_sdk import OpenAIModel
from rubricate.chat.probing_results import Finding, Sign
from rubricate.chat.probing_subject import Subject
from rubricate.chat.secret import Secret
from rubricate.chat.server import ServerModel
from rubricate.chat.timing import remaining
from rubricate.errors import ServerError
from rubricate.narrow import as_array, as_number, as_object

__all__ = ["context_of", "probe_served"]

SHOWN = 4
_NOTHING: Mapping[str, object] = {}
# vLLM and SGLang; OpenRouter and Together; Groq; Mistral; llama.cpp in its `meta`.
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")


async def probe_served(subject: Subject) -> Finding:
    """Ask the server for its list of models, and look for ours in it."""
    raw = subject.raw
    if not isinstance(raw, ServerModel | OpenAIModel):
        context = raw.capabilities.context
        text = "no server" + (f"; context {context:,} tokens" if context else "")
        return Finding("served", Sign.YES, text, {"model": raw.name, "context": context})
    url = raw.url if isinstance(raw, ServerModel) else raw.base_url
    entries = await _list(f"{url}/models", vars(raw).get("_secret"), raw.name)
    names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
    wanted = raw.model or (names[0] if names else "")
    ours = next((entry for entry in entries if entry.get("id") == wanted), None)
    context = context_of(ours) if ours is not None else None
    details: dict[str, object] = {"model": wanted, "context": context, "listed": len(names)}
    if not names:
        return Finding("served", Sign.UNKNOWN, "the server lists no models", details)
    if ours is None:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        return Finding("served", Sign.NO, f"the server does not list {wanted!r}, but {shown}", details)
    length = f"context {context:,} tokens" if context else "context not reported"
    return Finding("served", Sign.YES, f"{wanted}; {length}", details)


def context_of(entry: Mapping[str, object]) -> int | None:
    """Context length in tokens by an entry of a server's list of models, None where it is not told."""
    for holder in (entry, as_object(entry.get("meta")) or _NOTHING):
        for name in _CONTEXT_FIELDS:
            number = as_number(holder.get(name))
            if number is not None and number > 0:
                return int(number)
    return None


async def _list(url: str, secret: object, provider: str) -> list[Mapping[str, object]]:
    from aiohttp import ClientError, ClientSession, ClientTimeout

    key = secret.reveal() if isinstance(secret, Secret) else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            ClientSession(trust_env=url.startswith("https:")) as session,
            session.get(
                url, headers=headers, timeout=ClientTimeout(total=remaining()), allow_redirects=False
            ) as reply,
        ):
            status, body = reply.status, await reply.read()
    except (ClientError, TimeoutError) as error:
        raise ServerError(f"no list of models: {error or type(error).__name__}", provider=provider) from None
    if status != 200:
        raise ServerError(f"no list of models: HTTP {status}", provider=provider, status=status)
    try:
        listing = as_object(json.loads(body)) or _NOTHING
    except ValueError:
        raise ServerError("the list of models is not JSON", provider=provider, status=status) from None
    return [as_object(entry) or _NOTHING for entry in as_array(listing.get("data")) or ()]
