"""An embedder without a model, for tests: hashed words, so that texts which share words are close."""

from __future__ import annotations

import functools
import hashlib
import re

import numpy as np

from rubricate.embed.base import Embedder, Vectors
from rubricate.errors import ConfigError
from rubricate.types import fingerprint

__all__ = ["MockEmbedder", "load_mock"]

_WORD = re.compile(r"\w+|[^\w\s]")


class MockEmbedder(Embedder):
    """The sum of one random vector a word, drawn by the word's hash: the same in every process.

    Args:
        dimensions: length of the vectors. Unrelated words have cosines of about ± 1/sqrt(dimensions).
    """

    def __init__(self, dimensions: int = 64) -> None:
        if dimensions < 1:
            raise ConfigError(f"dimensions must be at least 1, not {dimensions}")
        self.name = "mock"
        self._dimensions = dimensions

    def __repr__(self) -> str:
        return f"MockEmbedder({self._dimensions})"

    @property
    def fingerprint(self) -> str:
        return fingerprint({"back end": "mock embedder", "dimensions": self._dimensions})

    @property
    def dimensions(self) -> int:
        return self._dimensions

    async def _embed(self, texts: list[str]) -> Vectors:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Vectors:
        words = _WORD.findall(text.lower())
        return np.stack([_word_vector(word, self._dimensions) for word in words]).sum(axis=0)


@functools.lru_cache(maxsize=65536)
def _word_vector(word: str, dimensions: int) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(seed)).standard_normal(dimensions, dtype=np.float32)


def load_mock(spec: str, *, dimensions: int = 64) -> MockEmbedder:
    """The embedder behind `mock`. Nothing may stand behind the colon."""
    if spec:
        raise ConfigError(f"there is no mock embedder {spec!r}", hint="write mock, or mock?dimensions=32")
    return MockEmbedder(dimensions)
