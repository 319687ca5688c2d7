"""Embeddings by an encoder in this process, such as a BERT of sentence-transformers, through transformers."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

import numpy as np

from rubricate.chat.local_source import resolve, weights_identity
from rubricate.embed.base import Embedder, Vectors, check_time
from rubricate.embed.encoder_recipe import read_recipe
from rubricate.errors import ConfigError, FormatError, MissingExtraError
from rubricate.types import fingerprint

__all__ = ["LocalEmbedder"]

_LOG = logging.getLogger(__name__)
_BATCH_TOKENS = 8192  # padding included


class _Encoder(Protocol):
    """See encoder_torch, which needs torch."""

    max_tokens: int | None

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]: ...

    def known(self, tokens: Sequence[int]) -> bool: ...

    def forward(self, rows: Sequence[Sequence[int]]) -> Vectors: ...


class LocalEmbedder(Embedder):
    """A transformers encoder: the hidden states of the last layer, pooled.

    The mean over the tokens of the attention mask, special tokens included, unless the directory holds
    sentence-transformers' files: their pooling (`cls`, `mean`, `lasttoken`), length, case and default prompt are
    honoured, and modules that are not known here are refused. Texts beyond the model's length are cut, with a
    warning in the log. A text of which the tokenizer knows no part is an error, as all such texts would be alike.
    Texts are batched by length; a vector depends on its batch by rounding alone.

    The model is loaded at the first call. Pickles without it.

    Args:
        spec: a model directory, or a hub id in the local hub cache.
        pooling, prompt, max_tokens: see Recipe; None takes what the directory says.
        device: `auto`, `cpu`, `cuda` or `cuda:0`.
        dtype: `float32` or `bfloat16`, in which cosines are good to two decimals.

    Raises ConfigError where there is no such directory or its files ask for what is not known here.
    """

    def __init__(
        self,
        spec: str,
        *,
        pooling: str | None = None,
        prompt: str | None = None,
        max_tokens: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
    ) -> None:
        self.name = f"local:{spec}"
        self._source = resolve(spec)
        if self._source.gguf:
            raise ConfigError(
                f"{spec!r} is a GGUF file, not an encoder", hint="name a model directory, or wordllama"
            )
        self.recipe = read_recipe(self._source.path, pooling=pooling, prompt=prompt, max_tokens=max_tokens)
        self.device = device
        self.dtype = dtype
        self._dimensions: int | None = None
        self._forget()

    def _forget(self) -> None:
        self._loaded: _Encoder | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LocalEmbedder({self._source.spec!r}, pooling={self.recipe.pooling!r})"

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key not in ("_loaded", "_lock")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._forget()

    @property
    def fingerprint(self) -> str:
        files = weights_identity(self._source)
        return fingerprint(
            {"back end": "local embedder", "files": files, "recipe": asdict(self.recipe), "dtype": self.dtype}
        )

    @property
    def dimensions(self) -> int | None:
        return self._dimensions

    async def _embed(self, texts: list[str]) -> Vectors:
        encoder = await asyncio.to_thread(self._load)
        check_time(self.name)
        rows = await asyncio.to_thread(encoder.tokenize, texts)
        self._check(encoder, rows)
        parts, order = list[Vectors](), list[int]()
        for batch in _batches([len(row) for row in rows]):
            check_time(self.name)
            parts.append(await asyncio.to_thread(encoder.forward, [rows[index] for index in batch]))
            order += batch
        vectors = np.concatenate(parts)[np.argsort(order)]
        self._dimensions = vectors.shape[1]
        return vectors

    def _check(self, encoder: _Encoder, rows: Sequence[Sequence[int]]) -> None:
        for index, row in enumerate(rows):
            if not encoder.known(row):
                message = "the text has no token that the model knows"
                raise FormatError(message, field=f"texts[{index}]", hint="use a model for its language")
        full = sum(len(row) == encoder.max_tokens for row in rows)
        if full:
            _LOG.warning(
                "%s: %d texts fill or exceed %s tokens and may be cut", self.name, full, encoder.max_tokens
            )

    def _load(self) -> _Encoder:
        with self._lock:
            if self._loaded is None:
                for package in ("torch", "transformers"):
                    if importlib.util.find_spec(package) is None:
                        raise MissingExtraError(package, extra="local")
                from rubricate.embed.encoder_torch import load_encoder

                self._loaded = load_encoder(self._source.path, self.recipe, device=self.device, dtype=self.dtype)
            return self._loaded

    async def aclose(self) -> None:
        self._forget()


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of texts, the longest first so that the largest batch comes at once, by _BATCH_TOKENS each."""
    batch = list[int]()
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        # the first of a batch is its longest
        if batch and (len(batch) + 1) * lengths[batch[0]] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    yield batch
