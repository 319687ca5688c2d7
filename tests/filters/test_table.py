"""Statistics of a pool's scores: missing judgements are left out, and repeats are told from responses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from filter_cases import OUTAGE, table
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rubricate.errors import ConfigError
from rubricate.rubrics.filters import ScoreTable, excess_variance, permutation_p
from rubricate.rubrics.filters.table import correlation, spread
from rubricate.types import Verdict

Array = NDArray[np.float64]


def array(rows: Sequence[Sequence[float | None]]) -> Array:
    return np.array([[np.nan if x is None else x for x in row] for row in rows])


def test_missing_judgements_are_nan_and_counted_by_kind() -> None:
    verdicts = [
        [[Verdict("a", 1.0), Verdict.failed("b", OUTAGE)]],
        [[Verdict.not_applicable("a"), Verdict("b", 0.25)]],
        [[Verdict("b", 0.75)]],  # a verdict that the judge left out is a failed one
    ]
    made = ScoreTable.from_verdicts(["a", "b"], verdicts)
    np.testing.assert_array_equal(made.means("a"), [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(made.means("b"), [np.nan, 0.25, 0.75])
    assert made.missing("a") == (1, 1)
    assert made.missing("b") == (1, 0)


def test_means_are_taken_over_the_known_repeats_alone() -> None:
    made = table({"a": [[1.0, None, 0.0], [None, None, None]]})
    assert made.means("a")[0] == 0.5
    assert np.isnan(made.means("a")[1])


def test_spread_is_the_population_standard_deviation_of_what_is_known() -> None:
    assert spread(np.array([0.0, 1.0, np.nan, 1.0])) == pytest.approx(np.sqrt(2) / 3)
    assert spread(np.array([0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2])) == 0.0
    assert spread(np.array([1.0, np.nan])) is None


def test_excess_variance_of_a_balanced_pool_by_hand() -> None:
    # Means .5, 1, 0: MSB = 2 * .5 / 2 = .5; within (.25 + .25) / 3 = 1/6; (.5 - 1/6) / 2 = 1/6.
    found = excess_variance(array([[0, 1], [1, 1], [0, 0]]))
    assert found == pytest.approx((1 / 6, 1 / 6))


def test_excess_variance_of_an_unbalanced_pool_by_hand() -> None:
    # N = 5, n = 3, 2; means 1, 0; grand .6; MSB = 3 * .16 + 2 * .36 = 1.2; MSW = 0; n0 = 5 - 13/5 = 2.4.
    assert excess_variance(array([[1, 1, 1], [0, 0, None]])) == pytest.approx((0.5, 0.0))


def test_excess_variance_is_never_negative() -> None:
    assert excess_variance(array([[0, 1], [0, 1], [1, 0]])) == (0.0, 0.5)


def test_excess_variance_is_unbiased_where_the_plain_variance_is_not() -> None:
    """Over all equally likely outcomes of coins, (MSB - MSW) / n0 averages to 0; here its floor is taken off."""
    plain, excess = list[float](), list[float]()
    for bits in itertools.product([0.0, 1.0], repeat=6):
        scores = np.array(bits).reshape(3, 2)
        within = scores.var(axis=1, ddof=1).mean()
        between = 2 * scores.mean(axis=1).var(ddof=1)
        plain.append(float(scores.mean(axis=1).var(ddof=1)))
        excess.append(float(between - within) / 2)
        found = excess_variance(scores)
        assert found is not None
        assert found[0] == pytest.approx(max(excess[-1], 0.0))
    assert np.mean(excess) == pytest.approx(0.0)
    assert np.mean(plain) == pytest.approx(0.125)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=3, max_size=3), min_size=1, max_size=6))
def test_excess_variance_agrees_with_an_independent_computation(rows: list[list[float | None]]) -> None:
    known = [[x for x in row if x is not None] for row in rows]
    known = [row for row in known if row]
    total = sum(len(row) for row in known)
    found = excess_variance(array(rows))
    if len(known) < 2 or total == len(known):
        assert found is None
        return
    grand = sum(sum(row) for row in known) / total
    msb = sum(len(row) * (np.mean(row) - grand) ** 2 for row in known) / (len(known) - 1)
    msw = sum((x - np.mean(row)) ** 2 for row in known for x in row) / (total - len(known))
    n0 = (total - sum(len(row) ** 2 for row in known) / total) / (len(known) - 1)
    assert found == pytest.approx((max((msb - msw) / n0, 0.0), msw), abs=1e-12)


def test_nothing_is_said_without_repeats_or_with_one_response() -> None:
    assert excess_variance(array([[1, None], [0, None]])) is None
    assert excess_variance(array([[1, 0], [None, None]])) is None
    assert permutation_p(array([[1, None], [0, None]])) is None


def test_the_permutation_test_finds_the_exact_chance() -> None:
    # One of 8 responses differs in both repeats: 8 of the C(16, 2) = 120 places of two ones do that.
    lone = array([[1, 1]] + [[0, 0]] * 7)
    p = permutation_p(lone, permutations=4999)
    assert p == pytest.approx(8 / 120, abs=0.015)
    assert permutation_p(lone, permutations=4999) == p
    assert permutation_p(array([[1, 1, 1]] + [[0, 0, 0]] * 7), permutations=4999) == pytest.approx(
        8 / 2024, abs=0.004
    )


def test_coins_pass_the_permutation_test_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(3)
    found = [permutation_p(rng.integers(0, 2, (8, 3)).astype(float), permutations=199) for _ in range(400)]
    assert sum(p is not None and p <= 0.05 for p in found) / 400 <= 0.075


def test_correlation_leaves_out_what_is_missing_on_either_side() -> None:
    a = np.array([0.0, 1.0, np.nan, 1.0, 0.0])
    b = np.array([0.0, 1.0, 1.0, np.nan, 0.5])
    value, count = correlation(a, b)
    assert count == 3
    assert value == pytest.approx(float(np.corrcoef([0, 1, 0], [0, 1, 0.5])[0, 1]))
    assert correlation(np.array([1.0, 1.0]), np.array([0.0, 1.0])) == (None, 2)


def test_scores_outside_the_scale_and_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[0, 1\]"):
        table({"a": [[1.5]]})
    with pytest.raises(ConfigError, match="shape"):
        zeros = np.zeros(2, dtype=np.int64)
        ScoreTable(("a", "b"), np.zeros((2, 3, 1)), zeros, zeros)
    with pytest.raises(ConfigError, match="no criterion 'z'"):
        table({"a": [[1.0]]}).of("z")
