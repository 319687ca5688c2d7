"""The embedded retriever: BM25 over local files, by the package `bm25s`. Needs no server and no download."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError, MissingExtraError
from rubricate.search.base import Passage, Retriever
from rubricate.search.documents import read_passages
from rubricate.types import fingerprint

__all__ = ["Bm25Retriever", "words_of"]

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]")

_STOP = frozenset(
    "a an the of to in on at by for from with as is are was were be been do does did has have had and or not what "
    "which who whom whose when where why how that this these those it its i you we they he she my your".split()
)


class _Index(Protocol):
    def index(self, corpus: list[list[str]], *, show_progress: bool) -> None: ...

    def get_scores(self, query_tokens_single: list[str]) -> NDArray[np.float32]: ...


class Bm25Retriever(Retriever):
    """BM25 (Robertson and Zaragoza 2009, in Lucene's form) over passages in memory.

    Words are compared after NFKC and case folding; Chinese, Japanese, Korean and Thai by pairs of characters. There
    is no stemming; English function words of a query count only where it has no others. Passages that share no word
    with the query are not found. Of equal scores the earlier passage
    comes first, so that a search repeats to the letter.

    Args:
        passages: what is searched.
        k1, b: saturation of a word's count, and weight of the passage's length.
        name: what it is called.

    Raises ConfigError for no passages and for options outside their ranges.
    """

    def __init__(
        self, passages: Sequence[Passage], *, k1: float = 1.5, b: float = 0.75, name: str = "bm25"
    ) -> None:
        if not passages:
            raise ConfigError("there is no passage to search")
        if not k1 >= 0.0 or not 0.0 <= b <= 1.0:
            raise ConfigError(f"k1 is {k1} and b {b}", hint="use k1 of 0 or more, b in [0, 1]")
        self.passages = tuple(passages)
        self.k1 = k1
        self.b = b
        self.name = name
        self._lock = threading.Lock()
        self._index: _Index | None = None

    @classmethod
    def from_path(
        cls, path: str | os.PathLike[str], *, words: int = 150, k1: float = 1.5, b: float = 0.75
    ) -> Bm25Retriever:
        """Over the files of a folder, or one file; see `rubricate.search.documents.read_passages`."""
        return cls(read_passages(path, words=words), k1=k1, b=b, name=f"bm25:{os.fspath(path)}")

    def __repr__(self) -> str:
        return f"Bm25Retriever({len(self.passages)} passages)"

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key not in ("_lock", "_index")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()
        self._index = None

    @property
    def fingerprint(self) -> str:
        """Of the passages and the options."""
        content = [[one.text, one.source, one.line] for one in self.passages]
        return fingerprint({"back end": "bm25", "k1": self.k1, "b": self.b, "passages": content})

    async def _search(self, query: str, k: int) -> list[Passage]:
        return await asyncio.to_thread(self._found, query, k)

    def _found(self, query: str, k: int) -> list[Passage]:
        with self._lock:  # one thread builds the index
            index = self._index = self._index or self._built()
        words = words_of(query)
        telling = [word for word in words if word not in _STOP]
        scores = np.asarray(index.get_scores(telling or words), dtype=np.float64)
        best: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
        return [replace(self.passages[at], score=float(scores[at])) for at in best if scores[at] > 0]

    def _built(self) -> _Index:
        try:
            import bm25s
        except ImportError:
            raise MissingExtraError("bm25s", extra="search") from None
        index = cast("_Index", bm25s.BM25(k1=self.k1, b=self.b))
        index.index([words_of(f"{one.title} {one.text}") for one in self.passages], show_progress=False)
        return index

    async def aclose(self) -> None:
        """Drop the index; it is built again when it is needed."""
        self._index = None


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CJK.search(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        else:
            found.append(word)
    return found
