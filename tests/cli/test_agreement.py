"""Agreement with gold labels: known values, intervals, and words that say what the figures say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.cli.agreement import (
    Agreement,
    Interval,
    Labelled,
    agreement,
    balanced_accuracy,
    in_words,
    rank_agreement,
    wilson,
)
from rubricate.judges.calibration import auc


def test_wilson_matches_published_values() -> None:
    # Newcombe (1998), table I: 81 of 263 gives 0.2553 to 0.3662, 0 of 20 gives 0 to 0.1611.
    assert wilson(81, 263).low == pytest.approx(0.2553, abs=5e-5)
    assert wilson(81, 263).high == pytest.approx(0.3662, abs=5e-5)
    assert wilson(0, 20).low == 0.0
    assert wilson(0, 20).high == pytest.approx(0.1611, abs=5e-5)


def test_wilson_of_nothing_is_unknown() -> None:
    assert math.isnan(wilson(0, 0).value)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.booleans()), min_size=2, max_size=30))
def test_auc_is_the_share_of_pairs_in_order(pairs: list[tuple[float, bool]]) -> None:
    scores = np.array([score for score, _ in pairs])
    gold = np.array([label for _, label in pairs])
    met = [score for score, label in pairs if label]
    unmet = [score for score, label in pairs if not label]
    if not met or not unmet:
        assert math.isnan(auc(scores, gold))
        return
    wins = sum((a > b) + 0.5 * (a == b) for a in met for b in unmet)
    assert auc(scores, gold) == pytest.approx(wins / (len(met) * len(unmet)))


def test_a_judge_that_always_says_met_has_balanced_accuracy_of_one_half() -> None:
    gold = np.array([True] * 9 + [False])
    assert balanced_accuracy(np.full(10, 0.9), gold) == 0.5


def labelled(scores: list[float | None], gold: list[bool]) -> list[Labelled]:
    return [Labelled(f"p{i // 4}", score, label) for i, (score, label) in enumerate(zip(scores, gold, strict=True))]


def test_failed_verdicts_are_counted_and_left_out() -> None:
    found = agreement(labelled([1.0, None, 0.0, None, 1.0, 0.0], [True, True, False, False, True, False]))
    assert (found.verdicts, found.failed) == (4, 2)
    assert found.accuracy.value == 1.0
    assert found.auc.value == 1.0


def test_intervals_are_the_same_in_each_run_and_hold_the_estimate() -> None:
    rng = np.random.default_rng(3)
    items = labelled(list(rng.random(200)), [bool(x) for x in rng.random(200) < 0.5])
    first, second = agreement(items), agreement(items)
    assert first == second
    assert first.auc.low <= first.auc.value <= first.auc.high


def test_rank_agreement_counts_pairs_within_prompts_only() -> None:
    rows = [("a", 0.9, 1.0), ("a", 0.1, 0.0), ("b", 0.2, 0.5), ("b", 0.2, 0.1), ("b", None, 0.9), ("b", 0.1, 0.1)]
    share, pairs = rank_agreement(rows)
    assert pairs == 3  # a: 1; b: the two pairs with different gold and known rewards
    assert share.value == pytest.approx((1.0 + 0.5 + 1.0) / 3)


def made(value: float, low: float, high: float) -> Agreement:
    one = Interval(value, low, high)
    return Agreement(100, 0, one, one, one, says_met=0.97, gold_met=0.48)


@pytest.mark.parametrize(
    ("area", "says"),
    [
        ((0.52, 0.44, 0.60), "no better than chance"),
        ((0.40, 0.31, 0.49), "worse than chance"),
        ((0.56, 0.51, 0.60), "hardly better than chance"),
        ((0.70, 0.62, 0.78), "better than chance, but weak"),
        ((0.96, 0.92, 0.99), "tells met from unmet criteria well"),
    ],
)
def test_words_follow_the_interval(area: tuple[float, float, float], says: str) -> None:
    text = in_words("the judge", made(*area))
    assert says in text
    assert f"{area[0]:.2f}" in text


def test_words_without_verdicts_claim_nothing() -> None:
    assert "no verdict" in in_words("x", agreement([Labelled("a", None, True)]))
