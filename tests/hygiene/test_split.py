"""The split by prompt depends on the prompt alone."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.data import Turn
from rubricate.data.hygiene_split import split_of
from rubricate.errors import ConfigError

THREE = {"train": 0.8, "validation": 0.1, "test": 0.1}


def test_known_prompts_have_known_parts_for_good() -> None:
    """A change here moves rows of data sets that were split before."""
    parts = "".join(split_of(f"prompt {n}", {"a": 0.5, "b": 0.5}) for n in range(24))
    assert parts == "bbababaaabababbbaabababb"


def test_shares_are_met() -> None:
    counts = Counter(split_of(f"prompt {n}", THREE) for n in range(4000))
    assert counts["train"] == pytest.approx(3200, abs=120)
    assert counts["validation"] == pytest.approx(400, abs=80)


def test_letter_case_punctuation_and_blanks_make_no_difference_but_symbols_do() -> None:
    same = {split_of(text, {str(n): 1 / 64 for n in range(64)}) for text in ("What is  it?", "what is it")}
    assert len(same) == 1
    assert split_of("x + 1", {str(n): 1 / 64 for n in range(64)}) != split_of(
        "x - 1", {str(n): 1 / 64 for n in range(64)}
    )


@given(st.text(), st.integers(0, 5))
def test_growing_the_first_part_moves_prompts_into_it_alone(prompt: str, seed: int) -> None:
    before = split_of(prompt, {"train": 0.5, "test": 0.5}, seed=seed)
    after = split_of(prompt, {"train": 0.7, "test": 0.3}, seed=seed)
    assert (before, after) in {("train", "train"), ("test", "test"), ("test", "train")}
    assert split_of(prompt, {"all": 1.0}) == "all"
    assert split_of(prompt, {"none": 0.0, "all": 1.0, "never": 0.0}) == "all"


def test_turns_are_split_as_their_text_and_seeds_differ() -> None:
    assert split_of((Turn("user", "prompt 3"),), THREE) == split_of("prompt 3", THREE)
    assert len({tuple(split_of(f"p {n}", THREE, seed=seed) for n in range(40)) for seed in range(3)}) == 3


@pytest.mark.parametrize("shares", [{}, {"a": 0.5}, {"a": 1.5, "b": -0.5}])
def test_shares_that_are_none_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="sum of 1"):
        split_of("p", shares)
