"""Decontamination: rows that hold an item of a named benchmark, by n-grams or by meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rubricate.data.hygiene_text import Hasher, Hashes, words_of
from rubricate.embed import Embedder, Vectors, similar_pairs
from rubricate.errors import ConfigError, FormatError

__all__ = ["Benchmark", "Decontaminator", "Overlap", "OverlapRules"]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named benchmark whose items must not be trained on.

    Attributes:
        name: for reports, such as `healthbench`.
        items: the texts of its items, such as their prompts, one a text.
        source, licence: where it comes from, and its licence, for reports.
    """

    name: str
    items: tuple[str, ...]
    source: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True)
class OverlapRules:
    """When a text holds a benchmark's item.

    Attributes:
        any_size: words in a row that, shared once, are enough: 13, as GPT-3 takes it (2005.14165, appendix C). None
            leaves the rule out.
        share_size, share: words in a row, and the share of the item's words that such runs, shared, must cover: 8
            words and a half, as Tülu 3 takes it (2411.15124). None leaves the rule out.
        whole_words: an item shorter than `share_size` words is found where all of it stands in the text in a row,
            if it has so many words; one with fewer, where it is the whole text.
        common: a run of words in more than so many different items of a benchmark is its boilerplate and proves
            nothing (GPT-3 likewise sets frequent runs aside). None counts every run.
    """

    any_size: int | None = 13
    share_size: int | None = 8
    share: float = 0.5
    whole_words: int = 4
    common: int | None = 10


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a text holds of a benchmark.

    Attributes:
        benchmark: its name.
        item: place of the item in the benchmark, from 0.
        rule: `13-gram` (or another size), `8-gram share`, `whole item` or `embedding`.
        value: words of the run, share of the item's words, words of the item, or cosine.
        text: the shared run's words or the item's beginning.
    """

    benchmark: str
    item: int
    rule: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class _Grams:
    """Hashes of n-grams, sorted, each with the item and the place in it that it stands at."""

    hashes: Hashes
    items: NDArray[np.int32]
    places: NDArray[np.int32]

    def find(self, wanted: Hashes) -> NDArray[np.intp]:
        """Places in these arrays of every entry that has one of the hashes."""
        lows = np.searchsorted(self.hashes, wanted, side="left")
        counts = np.searchsorted(self.hashes, wanted, side="right") - lows
        lows, counts = lows[counts > 0], counts[counts > 0]
        if not lows.size:
            return np.empty(0, dtype=np.intp)
        ends = np.cumsum(counts)
        places: NDArray[np.intp] = np.repeat(lows - (ends - counts), counts) + np.arange(int(ends[-1]))
        return places


@dataclass(frozen=True)
class _Index:
    """The items of all benchmarks, by their n-grams."""

    names: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    words: list[list[str]] = field(default_factory=list[list[str]])
    grams: dict[int, _Grams] = field(default_factory=dict[int, _Grams])
    whole: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    boilerplate: int = 0


class Decontaminator:
    """Finds rows that hold items of benchmarks. Memory is about 40 bytes a word of the benchmarks.

    Args:
        benchmarks: what must not be trained on.
        rules: when n-grams prove it.
        embedder: finds rows that mean the same as an item, too; used by `find_many` alone. A paraphrase or a
            translation escapes n-grams.
        cosine: from which two texts mean the same. Every embedder has its own scale: look at what it finds.

    Attributes:
        boilerplate: runs of words that were set aside as common to many items.

    Raises ConfigError for benchmarks without a name or with the same one, and for options outside their ranges.
    """

    def __init__(
        self,
        benchmarks: Iterable[Benchmark],
        *,
        rules: OverlapRules | None = None,
        embedder: Embedder | None = None,
        cosine: float = 0.9,
    ) -> None:
        self.benchmarks = tuple(benchmarks)
        self.rules = rules or OverlapRules()
        _check(self.benchmarks, self.rules, cosine)
        self.embedder = embedder
        self.cosine = cosine
        self._hasher = Hasher()
        self._index = self._build()
        self._vectors: Vectors | None = None

    @property
    def boilerplate(self) -> int:
        """How many different runs of words say nothing, since too many items have them."""
        return self._index.boilerplate

    def find(self, text: str) -> Overlap | None:
        """What the text holds of a benchmark by its words, by the first rule that applies; None for nothing."""
        words = words_of(text)
        if not words:
            return None
        hashes = self._hasher.words(words)
        return self._any_run(words, hashes) or self._share(hashes) or self._whole(words, hashes)

    async def find_many(self, texts: Sequence[str]) -> list[Overlap | None]:
        """As `find`, for each text, and by meaning where there is an embedder and the words show nothing.

        Raises what the embedder raises: a text without a vector is not clean, it is unknown.
        """
        found = [self.find(text) for text in texts]
        if self.embedder is None or not self._index.names:
            return found
        open_ = [place for place, one in enumerate(found) if one is None and not _is_blank(texts[place])]
        if not open_:
            return found
        rows = await self.embedder.embed([texts[place] for place in open_])
        if self._vectors is None:
            self._vectors = await self.embedder.embed([self._text(item) for item in range(len(self._index.names))])
        for row, item, value in similar_pairs(rows, self.cosine, others=self._vectors):  # the closest first
            place = open_[row]
            if found[place] is None:
                found[place] = self._overlap(item, "embedding", value, self._text(item)[:200])
        return found

    def _text(self, item: int) -> str:
        name, place = self._index.names[item]
        return next(one.items[place] for one in self.benchmarks if one.name == name)

    # Rules

    def _any_run(self, words: Sequence[str], hashes: Hashes) -> Overlap | None:
        size = self.rules.any_size
        if size is None or size > len(words) or size not in self._index.grams:
            return None
        grams = self._index.grams[size]
        own = self._hasher.ngrams(hashes, size)
        entries = grams.find(own)
        if not entries.size:
            return None
        first = entries[0]
        start = int(np.flatnonzero(own == grams.hashes[first])[0])
        run = " ".join(words[start : start + size])
        return self._overlap(int(grams.items[first]), f"{size}-gram", float(size), run)

    def _share(self, hashes: Hashes) -> Overlap | None:
        """The item whose words are covered most by runs that the text has too, where that is enough."""
        size = self.rules.share_size
        if size is None or size > len(hashes) or size not in self._index.grams:
            return None
        grams = self._index.grams[size]
        entries = grams.find(np.unique(self._hasher.ngrams(hashes, size)))
        best: tuple[float, int] | None = None
        for item in np.unique(grams.items[entries]).tolist():
            starts = grams.places[entries][grams.items[entries] == item]
            words = self._index.words[int(item)]
            covered = np.zeros(len(words), dtype=np.bool_)
            for at in range(size):
                covered[starts + at] = True
            share = float(covered.mean())
            if share >= self.rules.share and (best is None or share > best[0]):
                best = share, item
        if best is None:
            return None
        return self._overlap(best[1], f"{size}-gram share", best[0], " ".join(self._index.words[best[1]][:30]))

    def _whole(self, words: Sequence[str], hashes: Hashes) -> Overlap | None:
        """Items that are too short for the other rules."""
        item = self._index.whole.get(tuple(words))
        if item is not None:
            return self._overlap(item, "whole item", float(len(words)), " ".join(words))
        for size in range(self.rules.whole_words, min(self._shortest_run(), len(words) + 1)):
            grams = self._index.grams.get(size)
            if grams is None:
                continue
            entries = grams.find(self._hasher.ngrams(hashes, size))
            if entries.size:
                found = int(grams.items[entries[0]])
                return self._overlap(found, "whole item", float(size), " ".join(self._index.words[found]))
        return None

    def _overlap(self, item: int, rule: str, value: float, text: str) -> Overlap:
        name, place = self._index.names[item]
        return Overlap(name, place, rule, value, text)

    # The index

    def _shortest_run(self) -> int:
        """Words of the shortest run that the rules of runs look at; shorter items are looked for whole."""
        return min(size for size in (self.rules.any_size, self.rules.share_size, 1 << 30) if size is not None)

    def _build(self) -> _Index:
        index = _Index()
        owners = list[int]()
        for owner, benchmark in enumerate(self.benchmarks):
            seen = set[tuple[str, ...]]()
            for place, text in enumerate(benchmark.items):
                words = words_of(text)
                if not words or tuple(words) in seen:  # a copy in one benchmark must not look like boilerplate
                    continue
                seen.add(tuple(words))
                index.whole.setdefault(tuple(words), len(index.names))
                index.names.append((benchmark.name, place))
                index.words.append(words)
                owners.append(owner)
        hashed = [self._hasher.words(words) for words in index.words]
        whole = {len(h) for h in hashed if self.rules.whole_words <= len(h) < self._shortest_run()}
        boilerplate = 0
        for size in {self.rules.any_size, self.rules.share_size} - {None}:
            grams, dropped = self._grams(hashed, size or 1, np.array(owners, dtype=np.int32), exact=False)
            boilerplate += dropped
            index.grams[size or 1] = grams
        for size in whole:
            index.grams[size] = self._grams(hashed, size, np.array(owners, dtype=np.int32), exact=True)[0]
        return _Index(index.names, index.words, index.grams, index.whole, boilerplate)

    def _grams(
        self, hashed: Sequence[Hashes], size: int, owners: NDArray[np.int32], *, exact: bool
    ) -> tuple[_Grams, int]:
        """The n-grams of all items of `size` words or more (`exact`: of just so many), without boilerplate."""
        fitting = [n for n, h in enumerate(hashed) if (len(h) == size if exact else len(h) >= size)]
        parts = [self._hasher.ngrams(hashed[n], size) for n in fitting]
        lengths = [len(part) for part in parts]
        hashes = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
        items = np.repeat(np.array(fitting, dtype=np.int32), lengths)
        places = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]) if parts else items
        order = np.lexsort((items, hashes))
        hashes, items, places = hashes[order], items[order], places[order]
        if self.rules.common is None or exact or not len(hashes):
            return _Grams(hashes, items, places), 0
        common = _common(hashes, items, owners, self.rules.common)
        kept = ~np.isin(hashes, common)
        return _Grams(hashes[kept], items[kept], places[kept]), len(common)


def _common(hashes: Hashes, items: NDArray[np.int32], owners: NDArray[np.int32], most: int) -> Hashes:
    """The hashes that stand in more than `most` different items of one benchmark."""
    first = np.ones(len(hashes), dtype=np.bool_)  # of each pair of hash and item
    first[1:] = (hashes[1:] != hashes[:-1]) | (items[1:] != items[:-1])
    pairs, owner = hashes[first], owners[items[first]]
    starts = np.flatnonzero(np.concatenate(([True], (pairs[1:] != pairs[:-1]) | (owner[1:] != owner[:-1]))))
    counts = np.diff(np.concatenate((starts, [len(pairs)])))
    return np.unique(pairs[starts[counts > most]])


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _check(benchmarks: Sequence[Benchmark], rules: OverlapRules, cosine: float) -> None:
    names = [one.name for one in benchmarks]
    if not all(names) or len(set(names)) < len(names):
        raise ConfigError(f"benchmarks need names that differ, not {', '.join(map(repr, names))}")
    for one in benchmarks:
        if not any(words_of(item) for item in one.items):
            raise FormatError("the benchmark has no item with words", source=one.name)
    sizes = [size for size in (rules.any_size, rules.share_size, rules.whole_words) if size is not None]
    if (
        any(size < 1 for size in sizes)
        or not 0.0 < rules.share <= 1.0
        or (rules.common is not None and rules.common < 1)
    ):
        raise ConfigError("sizes and common are 1 or more, and a share is in (0, 1]")
    if not -1.0 <= cosine <= 1.0:
        raise ConfigError(f"cosine is {cosine}", hint="a cosine is in [-1, 1]")
