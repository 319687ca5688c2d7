"""Words, numbers and n-grams of texts in any script."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.data.hygiene_text import Hasher, canonical, numbers_of, quoted, tokens_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't  STOP, now!", ["don", "t", "stop", "now"]),
        ("ﬁne １２ caf\u0065\u0301", ["fine", "12", "café"]),  # NFKC
        ("你好 world", ["你", "好", "world"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # combining marks stay with their letters
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("...!?", []),
    ],
)
def test_words_of_any_script(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_symbols_tell_formulas_apart() -> None:
    assert words_of("x + 3 = 5") == words_of("x - 3 = 5")
    assert tokens_of("x + 3 = 5") != tokens_of("x - 3 = 5")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,000 and 1000 and 1000.0", ["1000", "1000", "1000"]),
        ("1,234,567.50 or 1.234.567,5", ["1234567.5", "1234567.5"]),
        ("pi is 3.14, or 3,14.", ["3.14", "3.14"]),
        ("-5 but 3-5 and \u22127", ["-5", "3", "5", "-7"]),
        ("on 12.05.2024", ["12.05.2024"]),
        ("H2O, x1648, 12a", []),
        ("007 and 0", ["7", "0"]),
        ("٣٤", ["34"]),
    ],
)
def test_numbers_are_written_alike(text: str, numbers: list[str]) -> None:
    assert numbers_of(text) == numbers


@given(st.text())
def test_numbers_and_words_of_any_text_are_found_without_an_error(text: str) -> None:
    assert all(numbers_of(text))
    assert words_of(text) == words_of(canonical(text))


def test_the_longest_quotation_grows_over_its_n_grams() -> None:
    source = "a b c d e f g".split()
    assert quoted("x b c d e y".split(), source, [], 3) == ["b", "c", "d", "e"]
    assert quoted("b c d x a b c d e".split(), source, [], 3) == ["a", "b", "c", "d", "e"]
    assert quoted("x b c y".split(), source, [], 3) == []
    assert quoted("b c d e".split(), source, ["b c d".split()], 3) == ["c", "d", "e"]
    assert quoted(source, source, [source], 3) == []
    assert quoted([], source, [], 3) == []


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(1, 4))
def test_equal_n_grams_have_equal_hashes_and_others_do_not(words: list[str], size: int) -> None:
    hasher = Hasher()
    found = hasher.ngrams(hasher.words(words), size)
    expected = [tuple(words[at : at + size]) for at in range(len(words) - size + 1)] or (
        [tuple(words)] if words else []
    )
    assert len(found) == len(expected)
    for a, x in zip(found.tolist(), expected, strict=True):
        for b, y in zip(found.tolist(), expected, strict=True):
            assert (a == b) == (x == y)


def test_hashes_are_the_same_in_another_process() -> None:
    code = (
        "from rubricate.data.hygiene_text import Hasher; h = Hasher();"
        "print(h.ngrams(h.words(['a', 'b', 'c']), 2).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    hasher = Hasher()
    assert out.strip() == str(hasher.ngrams(hasher.words(["a", "b", "c"]), 2).tolist())
    assert hasher.words(["a"]).dtype == np.uint64
