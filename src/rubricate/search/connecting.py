"""One string names a retriever: `connect_retriever` makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from rubricate.errors import ConfigError
from rubricate.search.base import Retriever
from rubricate.search.bm25 import Bm25Retriever
from rubricate.search.server import ServerRetriever

__all__ = ["connect_retriever"]


def connect_retriever(name: str | Retriever, **options: object) -> Retriever:
    """The retriever of that name: `bm25:PATH` (a file or folder), or the address of a search server.

    Args:
        name: the name, or a retriever, which is given back as it is.
        options: as in `Bm25Retriever.from_path` or `ServerRetriever`.

    Raises ConfigError for an unknown name or option.
    """
    if isinstance(name, Retriever):
        if options:
            raise ConfigError("options go with a name; this retriever is made already")
        return name
    scheme, _, rest = name.partition(":")
    makers: dict[str, Callable[..., Retriever]] = {
        "bm25": Bm25Retriever.from_path,
        "http": ServerRetriever,
        "https": ServerRetriever,
    }
    if scheme not in makers or not rest:
        hint = "names look like bm25:/data/notes or http://localhost:8080/search"
        raise ConfigError(f"{name!r} does not name a retriever", hint=hint)
    target = rest if scheme == "bm25" else name
    try:
        inspect.signature(makers[scheme]).bind(target, **options)
    except TypeError as error:
        raise ConfigError(f"{scheme} retrievers: {error}") from None
    return makers[scheme](target, **options)
