"""Duplicates in a stream: exact ones, near ones as brute force finds them, and what only looks like one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.data.hygiene_duplicates import Deduplicator, Duplicate, deduplicate
from rubricate.data.hygiene_text import tokens_of
from rubricate.errors import ConfigError

WORDS = [first + second for first in "bdfgklmnprst" for second in ("a", "e", "i", "o", "u", "an", "en", "on")]
PROMPT = "Write a short story about an old lighthouse keeper who finds a letter in a bottle on the beach one day"


def shingles(text: str, size: int = 3) -> set[tuple[str, ...]]:
    tokens = tokens_of(text)
    size = min(size, len(tokens))
    return {tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)}


def jaccard(one: set[tuple[str, ...]], two: set[tuple[str, ...]]) -> float:
    return len(one & two) / len(one | two)


def made(seed: int, count: int) -> list[str]:
    """Rows of which every third is an earlier one with a few words exchanged."""
    rng = random.Random(seed)
    rows = list[str]()
    for number in range(count):
        if number % 3 == 2:
            words = rng.choice(rows).split()
            for _ in range(rng.randint(0, 2)):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
        else:
            words = rng.choices(WORDS, k=rng.randint(10, 60))
        rows.append(" ".join(words))
    return rows


def test_near_duplicates_are_those_that_brute_force_finds() -> None:
    rows = made(1, 600)
    sets = [shingles(text) for text in rows]
    finder = Deduplicator()
    kept = list[int]()
    missed = 0
    for row, text in enumerate(rows):
        found = finder.add(text)
        if found is not None:
            assert found.similarity == pytest.approx(jaccard(sets[row], sets[found.of]), abs=1e-6)
            assert found.of in kept
            assert found.similarity >= 0.8
        else:
            missed += any(jaccard(sets[row], sets[k]) >= 0.8 for k in kept)
            kept.append(row)
    assert finder.near > 40
    assert missed <= 1  # the bands find 99% of pairs at the threshold, and more above it


def test_exact_duplicates_differ_in_white_space_alone_and_are_found_without_words() -> None:
    finder = Deduplicator(near=False)
    assert [finder.add(text) for text in ("a  b", " a\nb ", "A b", "?!", "?!", "")] == [
        None,
        Duplicate(0, 1.0, "exact"),
        None,
        None,
        Duplicate(3, 1.0, "exact"),
        None,
    ]
    assert (finder.rows, finder.exact, finder.near) == (6, 2, 0)


def test_case_and_punctuation_make_a_near_duplicate() -> None:
    finder = Deduplicator()
    assert finder.add("Name three rivers of France, please.") is None
    assert finder.add("name three rivers of france please") == Duplicate(0, 1.0, "near")
    assert finder.add("Name three rivers of France, please!") == Duplicate(0, 1.0, "near")
    first = finder.add("Name three big rivers of France, and say for each where it ends, in a table")
    near = finder.add("Name three big rivers of France, and say for each where it ends, in a list")
    assert first is None
    assert near is not None
    assert near.similarity < 1.0
    assert finder.add("Name three big rivers of France, and say for each where it ends, in a list") == near


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (f"{PROMPT}, in 100 words.", f"{PROMPT}, in 200 words."),
        ("Solve x + 3 = 5 for x", "Solve x - 3 = 5 for x"),
        ("Hello there", "Hello you"),
        ("?!", "!?"),
    ],
)
def test_what_only_looks_like_a_duplicate_stays(one: str, two: str) -> None:
    finder = Deduplicator()
    assert finder.add(one) is None
    assert finder.add(two) is None


def test_numbers_may_be_ignored() -> None:
    finder = Deduplicator(numbers=False)
    finder.add(f"{PROMPT}, in 100 words, and make it as good as you can.")
    found = finder.add(f"{PROMPT}, in 200 words, and make it as good as you can.")
    assert found is not None
    assert found.kind == "near"


def test_scripts_without_blanks_and_characters_as_units() -> None:
    chinese = "请写一篇关于灯塔看守人在海滩上发现瓶中信的短篇故事并且要有一个出人意料的结尾"
    for finder in (Deduplicator(), Deduplicator(unit="character", size=4)):
        assert finder.add(chinese) is None
        found = finder.add(chinese + "吧")
        assert found is not None
        assert found.similarity > 0.9
        assert finder.add("完全不同的一句话和前面没有关系因为它讲的是别的事情") is None


def test_many_rows_of_one_template_stay_apart_and_are_gone_through_in_bounded_time() -> None:
    rng = random.Random(2)
    finder = Deduplicator()
    for _ in range(1500):
        assert finder.add(PROMPT + " " + " ".join(rng.choices(WORDS, k=25))) is None
    assert finder.shortened >= 0


def test_rows_are_found_after_they_were_sorted_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rubricate.data.hygiene_duplicates._RECENT", 40)
    rows = [" ".join(random.Random(n).choices(WORDS, k=30)) for n in range(60)]
    finder = Deduplicator()
    assert [finder.add(row) for row in rows] == [None] * 60
    found = [finder.add(row.title() + "!") for row in rows]
    assert found == [Duplicate(n, 1.0, "near") for n in range(60)]


@given(st.lists(st.text(max_size=30), max_size=12))
def test_any_texts_are_taken_and_a_second_pass_finds_every_row_again(texts: list[str]) -> None:
    finder = Deduplicator(permutations=32)
    for text in texts:
        finder.add(text)
    for text in texts:
        assert finder.add(text) is not None


def test_a_stream_goes_through_with_its_rows() -> None:
    rows = [{"prompt": "a b c"}, {"prompt": "a b c"}, {"prompt": "d e f"}]
    found = list(deduplicate(iter(rows), lambda row: row["prompt"]))
    assert [row for row, _ in found] == rows
    assert [dup is None for _, dup in found] == [True, False, True]


def test_options_outside_their_ranges_are_refused() -> None:
    for options in ({"threshold": 0.0}, {"recall": 1.0}, {"size": 0}, {"unit": "line"}, {"permutations": 0}):
        with pytest.raises(ConfigError):
            Deduplicator(**options)  # type: ignore[arg-type]  # wrong on purpose
