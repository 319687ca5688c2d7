"""Exact and near duplicates in a stream of texts, in time and memory that grow with the texts, not their pairs.

Near duplicates are candidates of MinHash signatures in bands (Broder 1997; Indyk and Motwani 1998), confirmed by
the Jaccard similarity of their n-grams: a false candidate costs time, never a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from rubricate.data.hygiene_text import Hasher, Hashes, canonical, mixed, numbers_of, tokens_of
from rubricate.errors import ConfigError

__all__ = ["Deduplicator", "Duplicate", "Unit", "deduplicate"]

T = TypeVar("T")
Small = NDArray[np.uint32]
Unit = Literal["word", "character"]
"""What n-grams are made of."""

_CHUNK = 512  # n-grams whose permuted hashes are computed at once
_RECENT = 1 << 14  # keys that are at least kept apart before they are sorted in
_BUCKET = 256  # rows of one bucket that a row is compared with, the latest ones


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Which row a row repeats.

    Attributes:
        of: number of that row, from 0, in the order in which rows were given. It is one that was not a duplicate.
        similarity: 1.0 for the same text; else the Jaccard similarity of the n-grams, in [threshold, 1].
        kind: `exact` (equal but for white space) or `near`.
    """

    of: int
    similarity: float
    kind: Literal["exact", "near"]


class Deduplicator:
    """Tells for each text of a stream whether an earlier one, which was kept, is the same or nearly so.

    Rows are compared with kept rows alone: of a chain of near duplicates whose ends differ, the ends may both
    stay. Memory is about 2 kB a kept row and 4 bytes a word of it.

    Args:
        threshold: Jaccard similarity of n-grams from which two texts are near duplicates, in (0, 1].
        size: words (or characters) in an n-gram; a shorter text is one n-gram.
        unit: `word` (words and symbols, whatever the script) or `character`.
        numbers: texts whose numbers differ are no near duplicates: prompts made from one template may differ in
            nothing else, and have other answers.
        near: look for near duplicates; False for exact ones alone.
        permutations: length of the signatures.
        recall: share of pairs at the threshold that the bands must find at least, in (0, 1); of pairs above it
            they find more.
        seed: of the permutations.

    Attributes:
        rows: texts seen.
        exact, near: duplicates found.
        shortened: comparisons with a bucket that was too full to be gone through whole, where some near duplicate
            may have been missed.

    Raises ConfigError for options outside their ranges.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.8,
        size: int = 3,
        unit: Unit = "word",
        numbers: bool = True,
        near: bool = True,
        permutations: int = 128,
        recall: float = 0.99,
        seed: int = 0,
    ) -> None:
        if not 0.0 < threshold <= 1.0 or not 0.0 < recall < 1.0:
            raise ConfigError(f"threshold is {threshold} and recall {recall}", hint="use (0, 1] and (0, 1)")
        if size < 1 or permutations < 1:
            raise ConfigError(f"size is {size} and permutations {permutations}", hint="use 1 or more")
        if unit not in get_args(Unit):
            raise ConfigError(f"unit is {unit!r}", hint=f"use one of {', '.join(get_args(Unit))}")
        self.threshold = threshold
        self.size = size
        self.unit: Unit = unit
        self.numbers = numbers
        self._near = near
        self.rows = self.exact = self.near = self.shortened = 0
        self._texts: dict[bytes, int | Duplicate] = {}
        self._hasher = Hasher()
        self._signer = _Signer(permutations, seed)
        bands, width = _bands(permutations, threshold, recall)
        self._buckets = _Buckets(bands, width)
        self._kept = _Kept(permutations)
        # An estimate from so many permutations is seldom further off than three of its standard deviations.
        self._floor = threshold - 3.0 * float(np.sqrt(threshold * (1.0 - threshold) / permutations))

    def add(self, text: str) -> Duplicate | None:
        """What kept text this one repeats; None for a new one, which later ones are compared with."""
        row = self.rows
        self.rows += 1
        digest = hashlib.blake2b(canonical(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        first = self._texts.get(digest)
        if isinstance(first, Duplicate):  # a copy of a near duplicate is as near to the row that was kept
            self.near += 1
            return first
        if first is not None:
            self.exact += 1
            return Duplicate(first, 1.0, "exact")
        found = self._find_near(text, row) if self._near else None
        self.near += found is not None
        self._texts[digest] = row if found is None else found
        return found

    def skip(self) -> None:
        """Count a row that is not to be compared with others."""
        self.rows += 1

    def _find_near(self, text: str, row: int) -> Duplicate | None:
        """The most similar kept row; where there is none, the text is kept."""
        units = tokens_of(text) if self.unit == "word" else list(canonical(text).casefold())
        if not units:  # no words and no symbols, such as a text of punctuation: only exact ones repeat it
            return None
        grams = self._hasher.ngrams(self._hasher.words(units), self.size)
        shingles = np.unique((grams >> np.uint64(32)).astype(np.uint32))
        numbers = hash(tuple(sorted(numbers_of(text)))) if self.numbers else 0
        signature = self._signer.sign(grams)
        keys = self._buckets.keys(signature)
        places, full = self._buckets.find(keys)
        self.shortened += full
        best: tuple[float, int] | None = None
        for place in self._kept.close(places, signature, numbers, self._floor):
            value = _jaccard(shingles, self._kept.shingles[place])
            if value >= self.threshold and (best is None or value > best[0]):
                best = value, place
        if best is not None:
            return Duplicate(self._kept.rows[best[1]], best[0], "near")
        self._buckets.add(keys, self._kept.add(row, signature, shingles, numbers))
        return None


def deduplicate(
    rows: Iterable[T], text: Callable[[T], str], deduplicator: Deduplicator | None = None
) -> Iterator[tuple[T, Duplicate | None]]:
    """Each row with what it repeats, None for the rows to keep; one at a time, in order.

    Args:
        rows: rows of any kind.
        text: the text of a row that is compared, such as its prompt.
        deduplicator: with its options, and what it has seen already; None makes a new one.
    """
    seen = Deduplicator() if deduplicator is None else deduplicator
    for row in rows:
        yield row, seen.add(text(row))


def _jaccard(a: Small, b: Small) -> float:
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


def _bands(permutations: int, threshold: float, recall: float) -> tuple[int, int]:
    """Number and width of the bands: the widest in one of which a pair at the threshold meets with that chance."""
    for width in range(permutations, 1, -1):
        count = permutations // width
        if 1.0 - (1.0 - threshold**width) ** count >= recall:
            return count, width
    return permutations, 1


class _Signer:
    """MinHash signatures by multiply-add-shift permutations of hashes that are mixed already."""

    def __init__(self, permutations: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        drawn = rng.integers(0, 2**64, size=(2, permutations, 1), dtype=np.uint64)
        self._factors, self._terms = drawn[0] | np.uint64(1), drawn[1]

    def sign(self, grams: Hashes) -> Small:
        """The least permuted hash of the n-grams, for each permutation: uint32 of shape (permutations,)."""
        least = np.full(len(self._factors), 2**64 - 1, dtype=np.uint64)
        for at in range(0, len(grams), _CHUNK):
            permuted = self._factors * grams[None, at : at + _CHUNK] + self._terms
            np.minimum(least, permuted.min(axis=1), out=least)
        return (least >> np.uint64(32)).astype(np.uint32)


class _Kept:
    """What is remembered of the rows that were kept."""

    def __init__(self, permutations: int) -> None:
        self.rows: list[int] = []
        self.shingles: list[Small] = []
        self._numbers = np.empty(1024, dtype=np.int64)
        self._signatures = np.empty((1024, permutations), dtype=np.uint32)

    def add(self, row: int, signature: Small, shingles: Small, numbers: int) -> int:
        """Remember a row; returns its place among the kept ones."""
        place = len(self.rows)
        if place == len(self._signatures):
            self._signatures = np.concatenate((self._signatures, np.empty_like(self._signatures)))
            self._numbers = np.concatenate((self._numbers, np.empty_like(self._numbers)))
        self._signatures[place] = signature
        self._numbers[place] = numbers
        self.rows.append(row)
        self.shingles.append(shingles)
        return place

    def close(self, places: Small, signature: Small, numbers: int, floor: float) -> list[int]:
        """Those of the places with the same numbers and a signature that agrees in a share of `floor` or more."""
        same = places[self._numbers[places] == numbers]
        if not same.size:
            return []
        agreeing = (self._signatures[same] == signature).mean(axis=1)
        return same[agreeing >= floor].tolist()


class _Buckets:
    """Which kept rows have a band of their signature in common: most in sorted arrays, the latest in a dict."""

    def __init__(self, bands: int, width: int) -> None:
        self._shape = bands, width
        self._odd = mixed(np.arange(1, width + 1, dtype=np.uint64)) | np.uint64(1)
        self._salt = mixed(np.arange(1, bands + 1, dtype=np.uint64))
        self._sorted = np.empty(0, dtype=np.uint64)
        self._places = np.empty(0, dtype=np.uint32)
        self._recent: dict[int, list[int]] = {}
        self._count = 0

    def keys(self, signature: Small) -> Hashes:
        """One key a band."""
        bands, width = self._shape
        parts = signature[: bands * width].reshape(bands, width).astype(np.uint64)
        return mixed((parts * self._odd).sum(axis=1, dtype=np.uint64) + self._salt)

    def find(self, keys: Hashes) -> tuple[Small, int]:
        """The rows that share a band, each once, in order; and how many buckets were not gone through whole."""
        full = 0
        found = list[Small]()
        lows = np.searchsorted(self._sorted, keys, side="left").tolist()
        highs = np.searchsorted(self._sorted, keys, side="right").tolist()
        for key, low, high in zip(keys.tolist(), lows, highs, strict=True):
            recent = self._recent.get(key, [])
            full += len(recent) + high - low > _BUCKET
            if recent:
                found.append(np.array(recent[-_BUCKET:], dtype=np.uint32))
            if high > low:
                found.append(self._places[max(low, high - _BUCKET) : high])
        return (np.unique(np.concatenate(found)) if found else self._places[:0]), full

    def add(self, keys: Hashes, place: int) -> None:
        """Put a row into its buckets."""
        for key in keys.tolist():
            self._recent.setdefault(key, []).append(place)
        self._count += len(keys)
        if self._count >= max(_RECENT, len(self._sorted) // 8):
            self._sort_in()

    def _sort_in(self) -> None:
        keys = [key for key, places in self._recent.items() for _ in places]
        places = [place for places in self._recent.values() for place in places]
        every = np.concatenate((self._sorted, np.array(keys, dtype=np.uint64)))
        order = np.argsort(every, kind="stable")  # stable: a bucket's rows stay in their order
        self._sorted = every[order]
        self._places = np.concatenate((self._places, np.array(places, dtype=np.uint32)))[order]
        self._recent, self._count = {}, 0
