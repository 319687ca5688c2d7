"""Decontamination: what holds a benchmark's item is found by words or meaning; boilerplate and chance are not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rubricate.data.hygiene_benchmarks import Benchmark, Decontaminator, OverlapRules
from rubricate.embed import MockEmbedder
from rubricate.errors import ConfigError, FormatError

WORDS = [first + second for first in "bdfgklmnprst" for second in ("a", "e", "i", "o", "u", "an", "en", "on")]


def text(seed: int, count: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


LONG = text(1, 60)
MEDIUM = text(2, 10)
BENCH = Benchmark("bench", (LONG, MEDIUM, "Name the capital of France", "Why?"))


def test_one_run_of_thirteen_words_is_enough_and_twelve_are_not() -> None:
    finder = Decontaminator([BENCH])
    run = LONG.split()[20:33]
    found = finder.find(f"{text(3, 20)} {' '.join(run).upper()}, {text(4, 20)}")
    assert found is not None
    assert (found.benchmark, found.item, found.rule, found.value) == ("bench", 0, "13-gram", 13.0)
    assert found.text == " ".join(run)
    assert finder.find(f"{text(3, 20)} {' '.join(run[:12])} {text(4, 20)}") is None


def test_a_share_of_an_item_in_runs_of_eight_is_enough() -> None:
    finder = Decontaminator([BENCH], rules=OverlapRules(any_size=None))
    words = LONG.split()
    covered = [*words[:16], "ZZZ", *words[20:34]]  # 16 + 14 of 60 words
    found = finder.find(" ".join(covered))
    assert found is not None
    assert (found.item, found.rule) == (0, "8-gram share")
    assert found.value == pytest.approx(0.5)
    assert finder.find(" ".join(covered[:-1])) is None  # 29 of 60
    short = finder.find(f"{text(5, 9)} {' '.join(MEDIUM.split()[:8])}")
    assert short is not None
    assert (short.item, short.value) == (1, pytest.approx(0.8))


def test_short_items_are_found_whole_and_shorter_ones_only_alone() -> None:
    finder = Decontaminator([BENCH])
    found = finder.find("Please name the capital of France for me.")
    assert found is not None
    assert (found.item, found.rule) == (2, "whole item")
    assert finder.find("Name the capital of Spain, of all places") is None
    assert finder.find("why") is not None
    assert finder.find("Why do birds sing in the morning?") is None


def test_boilerplate_of_a_benchmark_proves_nothing() -> None:
    head = text(6, 20)
    items = tuple(f"{head} {text(100 + n, 15)}" for n in range(12))
    finder = Decontaminator([Benchmark("quiz", items)])
    assert finder.find(f"{head} {text(7, 15)}") is None
    assert finder.boilerplate == (20 - 13 + 1) + (20 - 8 + 1)
    found = finder.find(items[3])
    assert found is not None
    assert found.item == 3
    strict = Decontaminator([Benchmark("quiz", items)], rules=OverlapRules(common=None))
    assert strict.find(f"{head} {text(7, 15)}") is not None


def test_copies_of_an_item_are_no_boilerplate() -> None:
    finder = Decontaminator([Benchmark("copies", (LONG,) * 30)])
    assert finder.find(LONG) is not None


def test_the_benchmark_is_named() -> None:
    finder = Decontaminator([replace(BENCH, name="one"), Benchmark("two", (text(8, 30),))])
    found = finder.find(text(8, 30))
    assert found is not None
    assert (found.benchmark, found.item) == ("two", 0)


async def test_meaning_is_looked_at_where_words_show_nothing() -> None:
    finder = Decontaminator([BENCH], embedder=MockEmbedder(), cosine=0.99)
    shuffled = " ".join(sorted(LONG.split()))
    found = await finder.find_many([text(9, 30), shuffled, "", LONG])
    assert [one.rule if one else None for one in found] == [None, "embedding", None, "13-gram"]
    assert found[1] is not None
    assert found[1].item == 0
    assert (await Decontaminator([BENCH]).find_many([shuffled])) == [None]


async def test_an_embedding_that_fails_leaves_nothing_clean() -> None:
    finder = Decontaminator([BENCH], embedder=MockEmbedder())
    with pytest.raises(FormatError, match="surrogate"):
        await finder.find_many(["half a pair \ud800 of something"])


def test_no_benchmarks_find_nothing() -> None:
    assert Decontaminator([]).find(LONG) is None


def test_benchmarks_and_rules_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="names that differ"):
        Decontaminator([BENCH, BENCH])
    with pytest.raises(FormatError, match="no item"):
        Decontaminator([Benchmark("empty", ("...",))])
    for rules in (OverlapRules(any_size=0), OverlapRules(share=0.0), OverlapRules(common=0)):
        with pytest.raises(ConfigError):
            Decontaminator([BENCH], rules=rules)
