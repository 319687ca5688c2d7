"""The embedded default: the token vectors that the package `wordllama` carries, averaged. Needs no download."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from rubricate.chat.local_source import content_hash
from rubricate.embed.base import Embedder, Vectors, check_time
from rubricate.errors import ConfigError, MissingExtraError
from rubricate.types import fingerprint

__all__ = ["WordLlamaEmbedder", "load_wordllama"]

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_DIMENSIONS = 256
_COMMAND = "pip install 'rubricate[embed]' && pip install --no-deps wordllama"
_BATCH = 1024  # texts tokenized together
_TOKENS = 4096  # token vectors gathered at once: 4 MB


class _Reader(Protocol):
    def load_file(self, filename: Path) -> dict[str, Vectors]: ...


class _Encoding(Protocol):
    ids: list[int]


class _Tokenizer(Protocol):
    def encode_batch_fast(self, input: Sequence[str], *, add_special_tokens: bool) -> Sequence[_Encoding]: ...

    def get_vocab_size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Loaded:
    tokenizer: _Tokenizer
    table: Vectors


class WordLlamaEmbedder(Embedder):
    """Token vectors of 256 dimensions, distilled from the input layers of large language models, averaged.

    Made as `embed(norm=True)` of wordllama 0.4.0.post1 (MIT) makes them, from the two files in that package, which
    is not imported: the text is tokenized by its Llama 2 tokenizer without special tokens and without truncation,
    the vectors of all tokens are averaged in float32, and the mean is scaled to norm 1. The tokenizer falls back to
    bytes, so every text that is not blank has tokens. A text's vector does not depend on the texts around it.

    Word order has no influence, and a negation little. Of 40 criteria of BiGGen-Bench, each with a paraphrase by
    hand and a paraphrase of another one, AUC is .986, and precision 1.0 from a cosine of .36 on (recall .97).
    But 20 contradictions in the criteria's own words lie at a median of .86, above the paraphrases' .70, and no
    threshold tells them apart. Among 288,809 pairs of criteria of different tasks 9 reach .70 and none .80
    (`benchmarks/embeddings.py`).

    The weights (33 MB) are loaded at the first call and shared by all embedders of the process.
    """

    def __init__(self) -> None:
        self.name = "wordllama"

    def __repr__(self) -> str:
        return "WordLlamaEmbedder()"

    @property
    def fingerprint(self) -> str:
        """As in Embedder. Raises MissingExtraError without the package."""
        folder = _folder()
        files = {name: content_hash(folder / name) for name in (_WEIGHTS, _TOKENIZER)}
        return fingerprint({"back end": "wordllama", "files": files, "pooling": "mean"})

    @property
    def dimensions(self) -> int:
        return _DIMENSIONS

    async def _embed(self, texts: list[str]) -> Vectors:
        # A thread, because loading and tokenizing would hold up the event loop; both run without the GIL.
        loaded = await asyncio.to_thread(_load)
        parts = list[Vectors]()
        for start in range(0, len(texts), _BATCH):
            check_time(self.name)
            parts.append(await asyncio.to_thread(_means, loaded, texts[start : start + _BATCH]))
        return np.concatenate(parts)

    async def aclose(self) -> None:
        _load.cache_clear()


def _folder() -> Path:
    """The package's folder, found without importing it: its import wants packages that nothing here needs."""
    try:
        found = importlib.util.find_spec("wordllama")
    except (ImportError, ValueError):  # import hooks may refuse it, or something may sit in its place
        found = None
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        if (Path(place) / _WEIGHTS).is_file() and (Path(place) / _TOKENIZER).is_file():
            return Path(place)
    raise MissingExtraError("wordllama", command=_COMMAND)


@functools.lru_cache(maxsize=1)
def _load() -> _Loaded:
    folder = _folder()
    try:
        import safetensors.numpy
        import tokenizers
    except ImportError as error:
        raise MissingExtraError(error.name or "tokenizers", command=_COMMAND) from None
    try:
        reader = cast("_Reader", safetensors.numpy)
        table = reader.load_file(folder / _WEIGHTS)[_TENSOR].astype(np.float32)
        tokenizer = cast("_Tokenizer", tokenizers.Tokenizer.from_file(str(folder / _TOKENIZER)))
    except Exception as error:  # both libraries have exceptions of their own
        hint = "install it again: pip install --force-reinstall --no-deps wordllama"
        raise ConfigError(f"the files of wordllama in {folder} cannot be read: {error}", hint=hint) from None
    if table.shape != (tokenizer.get_vocab_size(), _DIMENSIONS):
        hint = "pip install --no-deps wordllama==0.4.0.post1"
        raise ConfigError(f"wordllama has vectors of shape {table.shape}: not the version known here", hint=hint)
    return _Loaded(tokenizer, table)


def _means(loaded: _Loaded, texts: list[str]) -> Vectors:
    """Mean token vectors, of shape (n, 256)."""
    encodings = loaded.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    tokens = [np.asarray(encoding.ids, dtype=np.int32) for encoding in encodings]
    sums = np.empty((len(texts), _DIMENSIONS), dtype=np.float32)
    for first, last in _packs([len(ids) for ids in tokens]):
        ids = tokens[first]
        if len(ids) > _TOKENS:
            pieces = [ids[at : at + _TOKENS] for at in range(0, len(ids), _TOKENS)]
            sums[first] = np.sum([loaded.table[piece].sum(axis=0) for piece in pieces], axis=0)
        else:
            starts = np.cumsum([0, *(len(ids) for ids in tokens[first : last - 1])])
            vectors = loaded.table[np.concatenate(tokens[first:last])]
            sums[first:last] = np.add.reduceat(vectors, starts, axis=0)
    return sums / np.asarray([[len(ids)] for ids in tokens], dtype=np.float32)


def _packs(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges of texts with at most _TOKENS tokens together; a longer text is alone."""
    first, total = 0, 0
    for index, length in enumerate(lengths):
        if index > first and total + length > _TOKENS:
            yield first, index
            first, total = index, 0
        total += length
    yield first, len(lengths)


def load_wordllama(spec: str) -> WordLlamaEmbedder:
    """The embedder behind `wordllama`. Nothing may stand behind the colon."""
    if spec:
        raise ConfigError(f"there is one wordllama only, not {spec!r}", hint="write wordllama")
    return WordLlamaEmbedder()
