"""One string names an embedder: `connect_embedder` makes it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from urllib.parse import parse_qsl

from rubricate.chat.limiter import Limiter
from rubricate.chat.limits import Limits
from rubricate.embed.base import Embedder
from rubricate.errors import ConfigError

__all__ = ["connect_embedder"]


def _wordllama() -> Callable[..., Embedder]:
    from rubricate.embed.wordllama import load_wordllama

    return load_wordllama


def _openai() -> Callable[..., Embedder]:
    from rubricate.embed.server import load_openai

    return load_openai


def _server() -> Callable[..., Embedder]:
    from rubricate.embed.server import load_server

    return load_server


def _local() -> Callable[..., Embedder]:
    from rubricate.embed.encoder import LocalEmbedder

    return LocalEmbedder


def _mock() -> Callable[..., Embedder]:
    from rubricate.embed.mock import load_mock

    return load_mock


_LOADERS = {
    "http": _server,
    "https": _server,
    "local": _local,
    "mock": _mock,
    "openai": _openai,
    "wordllama": _wordllama,
}
_OVER_HTTP = ("http", "https", "openai")
_EXAMPLES = "wordllama, openai:text-embedding-3-small, http://localhost:8000/v1#MODEL, local:/DIR or mock"


def connect_embedder(
    name: str | Embedder = "wordllama",
    *,
    limits: Limits | None = None,
    limiter: Limiter | None = None,
    api_key: str | None = None,
    **options: object,
) -> Embedder:
    """The embedder of that name. Nothing is loaded or asked before its first call.

    Names are `wordllama` (the embedded default), `openai:MODEL` (OPENAI_API_KEY and OPENAI_BASE_URL are read),
    `http://HOST:PORT/v1#MODEL` or https (a server with OpenAI's `/v1/embeddings`; without `#MODEL` it is asked for
    its model; RUBRICATE_API_KEY is read), `local:/DIR` (a transformers encoder) and `mock`. Options follow `?`, as
    in `local:/DIR?pooling=cls` or `openai:text-embedding-3-small?dimensions=256`, or are given as keywords.

    Args:
        name: the name, or an embedder, which is given back as it is.
        limits, limiter: bounds and retries of calls to a server, as in `rubricate.chat.connect`; embedders in this
            process send no calls and do not use them.
        api_key: for servers. It stays out of names, fingerprints and messages.

    Raises ConfigError for an unknown name or option.
    """
    if limits is not None and limiter is not None:
        raise ConfigError("give limits or a limiter, not both", hint="make one Limiter(limits) and share it")
    if isinstance(name, Embedder):
        if options or api_key is not None or limits is not None or limiter is not None:
            hint = "set them where it is made"
            raise ConfigError("options go with a name; this embedder is made already", hint=hint)
        return name
    scheme, spec, given = _split(name)
    twice = sorted(set(given) & set(options))
    if twice:
        raise ConfigError(f"option {twice[0]!r} is given twice, in the name and as a keyword")
    given.update(options)
    if scheme in _OVER_HTTP:
        given |= {"limiter": limiter or Limiter(limits), "api_key": api_key}
    elif api_key is not None:
        raise ConfigError(f"{scheme} takes no API key")
    load = _LOADERS[scheme]()
    try:
        inspect.signature(load).bind(spec, **given)
    except TypeError as error:
        raise ConfigError(f"{scheme} embedders: {error}") from None
    return load(spec, **given)


def _split(name: str) -> tuple[str, str, dict[str, object]]:
    """The scheme, what stands behind it (for a server the address itself) and the options in the name."""
    scheme, colon, rest = name.partition("?")[0].partition(":")
    if scheme not in _LOADERS or (not colon and scheme not in ("mock", "wordllama")):
        near = difflib.get_close_matches(scheme.lower(), _LOADERS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        shown = name.partition("?")[0]
        raise ConfigError(f"{shown!r} does not name an embedder", hint=f"{hint}names look like {_EXAMPLES}")
    # In an address the options may stand before the model or after it.
    _, _, query = name.partition("?")
    query, _, late = query.partition("#")
    if late:
        model, _, more = late.partition("?")
        rest, query = f"{rest}#{model}", f"{query}&{more}"
    options: dict[str, object] = {}
    for key, text in parse_qsl(query.replace("+", "%2B"), keep_blank_values=True):
        if key == "api_key":
            raise ConfigError("an embedder's name must not hold a key", hint="give api_key, or set the variable")
        options[key] = int(text) if text.isdecimal() else text
    return scheme, f"{scheme}:{rest}" if scheme in ("http", "https") else rest, options
