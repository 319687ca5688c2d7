"""Whitened weights against values by hand and numpy written another way."""

from __future__ import annotations

import numpy as np
import pytest
from filter_cases import criterion, rubric, table
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from rubricate.errors import ConfigError
from rubricate.rubrics import Group, Rubric
from rubricate.rubrics.filters import whiten, whitened_weights
from rubricate.rubrics.filters.whitening import second_moment

Array = NDArray[np.float64]


def test_two_columns_by_hand() -> None:
    # S = [[1, .5], [.5, .5]] is uncentred: a centred one would have a zero for the constant first column.
    scores = np.array([[1.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(second_moment(scores), [[1.0, 0.5], [0.5, 0.5]])
    # Without shrinkage S^(-1/2) = (S + sqrt(det) I)^(-1) * sqrt(tr + 2 sqrt(det)); its row sums are as
    # (.5 + r - .5, 1 + r - .5) = (r, .5 + r) with r = sqrt(det) = .5.
    weights = whitened_weights(scores, shrink=0.0, ridge=1e-12)
    np.testing.assert_allclose(weights, [0.5 / 1.5, 1.0 / 1.5], atol=1e-9)


def inverse(matrix: Array) -> Array:
    found = np.linalg.lstsq(matrix, np.eye(len(matrix)), rcond=None)[0].astype(np.float64)
    return found


@given(arrays(np.float64, st.tuples(st.integers(2, 9), st.integers(1, 6)), elements=st.floats(0, 1)))
def test_weights_agree_with_an_inverse_root_by_newtons_iteration(scores: Array) -> None:
    size = scores.shape[1]
    moment = sum((np.outer(row, row) for row in scores), np.zeros((size, size))) / len(scores)
    sigma = 0.9 * moment + 0.1 * np.trace(moment) / size * np.eye(size) + 1e-4 * np.eye(size)
    y, z = sigma / np.trace(sigma), np.eye(size)  # Denman and Beavers: z goes to the inverse root
    for _ in range(60):
        y, z = (y + inverse(z)) / 2, (z + inverse(y)) / 2
    raw = np.maximum(z @ np.ones(size), 0.0)
    weights = whitened_weights(scores)
    np.testing.assert_allclose(weights, raw / raw.sum(), atol=1e-6)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)


def test_criteria_that_say_the_same_share_their_weight() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400)).astype(float)
    apart = whitened_weights(np.stack([a, b], axis=1))
    doubled = whitened_weights(np.stack([a, a, b], axis=1))
    assert apart[0] == pytest.approx(0.5, abs=0.02)
    assert doubled[0] == pytest.approx(doubled[1])
    assert doubled[2] > 1.25 * doubled[0]


def test_a_missing_score_is_no_zero() -> None:
    full = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    holed = np.vstack((full, [[np.nan, np.nan]]))
    np.testing.assert_allclose(whitened_weights(holed), whitened_weights(full), atol=1e-12)
    entry = second_moment(np.array([[1.0, 1.0], [1.0, np.nan], [1.0, 1.0]]))
    np.testing.assert_allclose(entry, np.ones((2, 2)), atol=1e-12)


def test_too_few_common_rows_are_an_error_that_names_the_two() -> None:
    with pytest.raises(ConfigError, match="criteria 0 and 1 have 0 scored responses"):
        whitened_weights(np.array([[1.0, np.nan], [np.nan, 1.0], [1.0, np.nan], [np.nan, 0.0]]))


def test_a_rubric_keeps_its_signs_and_penalties_enter_as_credit() -> None:
    good, bad = criterion("good", weight=5), criterion("bad", polarity="penalty", weight=2)
    scores = table({"good": [[1.0], [1.0], [0.0]], "bad": [[0.0], [0.0], [1.0]]})
    made = whiten(rubric(good, bad), scores)
    assert [one.polarity for one in made.criteria] == [good.polarity, bad.polarity]
    assert [one.weight for one in made.criteria] == pytest.approx([0.5, 0.5])  # equal as credits
    assert made.fingerprint != rubric(good, bad).fingerprint


def test_wrong_options_and_nested_rubrics_are_refused() -> None:
    scores = np.ones((3, 2))
    for shrink, ridge in ((1.5, 1e-4), (0.1, 0.0)):
        with pytest.raises(ConfigError):
            whitened_weights(scores, shrink=shrink, ridge=ridge)
    nested = Rubric(criteria=(criterion("a", path=["g"]),), groups=(Group(id="g"),))
    with pytest.raises(ConfigError, match="flat"):
        whiten(nested, table({"a": [[1.0], [0.0]]}))
