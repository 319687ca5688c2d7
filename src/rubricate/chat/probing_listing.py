"""What a server says of its models at `/models`: their names, and how long their context is. Costs no tokens."""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.chat.openai_sdk import OpenAIModel
from rubricate.chat.probing_results import Finding, Sign
from rubricate.chat.probing_subject import Subject
from rubricate.chat.server import ServerModel
from rubricate.narrow import as_number, as_object

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
    entries = await raw.listing()
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
