"""The one interface of all embedders: texts in, a matrix of unit vectors out."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rubricate.chat.timing import remaining
from rubricate.errors import ConfigError, DeadlineError, FormatError

__all__ = ["Embedder", "Vectors", "check_time"]

Vectors = NDArray[np.float32]


class Embedder(abc.ABC):
    """Turns texts into vectors whose cosine says how alike the texts are.

    Sync callers use `rubricate.bridge.run_sync(embedder.embed(texts))`. An embedder may be used from any number of
    threads and event loops, and pickles without what it has loaded.

    Alike is not the same: texts that share their words are close whatever they say of each other. A criterion and
    its negation ("cites sources", "does not cite sources") are as close as two wordings of one criterion, so a pair
    above a threshold is a candidate for a duplicate, never the proof of one.

    Attributes:
        name: the string that names it, such as `wordllama` or `openai:text-embedding-3-small`.
    """

    name: str

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Changes with everything that can change a vector: address, model, weights, pooling."""

    @property
    @abc.abstractmethod
    def dimensions(self) -> int | None:
        """Length of the vectors, None until it is known."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of the texts, in their order.

        Returns float32 of shape (n, d), every row of L2 norm 1; for no texts (0, d), with d = 0 while `dimensions`
        is not known. Never a row that stands for nothing: where one text has no vector, the call fails.

        Raises FormatError, with `field` such as `texts[3]`, for a text that is blank or not valid Unicode, or that
        the model gives no direction; ConfigError for a model that cannot be used; MissingExtraError for a missing
        package; ChatError and its subclasses where a server does not answer, or a deadline passes.
        """
        if isinstance(texts, str):
            raise ConfigError("embed takes a list of texts, not one text", hint="write embed([text])")
        _check(texts)
        if not texts:
            return np.empty((0, self.dimensions or 0), dtype=np.float32)
        return _unit_rows(await self._embed(list(texts)))

    @abc.abstractmethod
    async def _embed(self, texts: list[str]) -> Vectors:
        """Vectors of any length for at least one text, none of them blank. `embed` checks and normalises them."""

    async def aclose(self) -> None:
        """Release connections and memory. The embedder may be used again afterwards."""
        return None


def check_time(name: str) -> None:
    """Raises DeadlineError when the deadline that holds here has passed. For work between two batches."""
    left = remaining()
    if left is not None and left <= 0:
        raise DeadlineError("the deadline passed before all texts were embedded", provider=name)


def _check(texts: Sequence[str]) -> None:
    for index, text in enumerate(texts):
        if not text or text.isspace():
            hint = "leave empty texts out, and treat them apart"
            raise FormatError("the text is blank: it has no vector", field=f"texts[{index}]", hint=hint)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            character = f"U+{ord(text[error.start]):04X}"
            raise FormatError(
                f"the text holds {character}, half of a surrogate pair, at {error.start}",
                field=f"texts[{index}]",
                hint="the text was decoded wrongly; read it again as UTF-8",
            ) from None


def _unit_rows(vectors: Vectors) -> Vectors:
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    unusable = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if unusable.size:
        index = int(unusable[0])
        kind = "the zero vector" if norms[index] == 0 else "a vector that is not finite"
        raise FormatError(f"the model gives this text {kind}", field=f"texts[{index}]")
    return (wide / norms[:, None]).astype(np.float32)
