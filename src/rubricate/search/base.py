"""The one interface of all retrievers: a query in, passages with their sources out."""

from __future__ import annotations

import abc
from dataclasses import dataclass

from rubricate.errors import ConfigError

__all__ = ["Passage", "Retriever"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a source.

    Attributes:
        text: its words, as they stand in the source.
        source: where it is from: a file's path, an address, an id.
        title: the source's title, "" where it has none.
        line: where it begins in a file, from 1; None where that means nothing.
        score: how well it fits the query, higher is better, in the retriever's own units.
    """

    text: str
    source: str
    title: str = ""
    line: int | None = None
    score: float = 0.0

    @property
    def place(self) -> str:
        """Source and line, as in `notes/flu.md#L12`."""
        return self.source if self.line is None else f"{self.source}#L{self.line}"


class Retriever(abc.ABC):
    """Finds passages. May be used from any number of event loops; pickles without what it has loaded.

    Attributes:
        name: the string that names it, such as `bm25:/data/notes`.
    """

    name: str

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Changes with everything that can change what is found: the passages, or the server's address."""

    async def search(self, query: str, k: int = 10) -> list[Passage]:
        """At most `k` passages, the best first; none where nothing fits.

        Raises ConfigError for a blank query or a `k` below 1, MissingExtraError for a missing package, ChatError
        and its subclasses where a server does not answer.
        """
        if not query.strip():
            raise ConfigError("the query is blank", hint="search for some words")
        if k < 1:
            raise ConfigError(f"k is {k}", hint="ask for 1 passage or more")
        return (await self._search(query.strip(), k))[:k]

    @abc.abstractmethod
    async def _search(self, query: str, k: int) -> list[Passage]:
        """Passages for a query that is not blank, the best first."""

    async def aclose(self) -> None:
        """Release connections and memory. The retriever may be used again afterwards."""
        return None
