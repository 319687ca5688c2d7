"""Cosines and close pairs against the plain matrix product."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rubricate.embed import cosine, similar_pairs
from rubricate.errors import ConfigError, FormatError


def clustered(count: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    """Rows of which many are close to each other, and some equal."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(count // 4, 1), dimensions))
    rows = centres[rng.integers(len(centres), size=count)] + 0.2 * rng.standard_normal((count, dimensions))
    rows[count // 2 :: 3] = rows[:1]
    return rows.astype(np.float32)


def by_hand(rows: NDArray[np.float32], threshold: float) -> list[tuple[int, int, float]]:
    wide = rows.astype(float)
    wide = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    pairs = [(i, j, round(float(wide[i] @ wide[j]), 7)) for i in range(len(rows)) for j in range(i + 1, len(rows))]
    return sorted((pair for pair in pairs if pair[2] >= threshold), key=lambda pair: (-pair[2], pair[0], pair[1]))


@given(st.integers(0, 25), st.integers(1, 9), st.floats(-1, 1), st.integers(1, 30), st.integers(0, 99))
def test_blocks_find_what_the_whole_matrix_holds(
    count: int, dimensions: int, threshold: float, block: int, seed: int
) -> None:
    rows = clustered(count, dimensions, seed)
    found = similar_pairs(rows, threshold, block=block)
    # where a cosine lies at half a seventh decimal, the last bit of a float64 decides: leave those to either side
    surely = {pair[:2] for pair in by_hand(rows, threshold + 2e-7)}
    perhaps = {pair[:2] for pair in by_hand(rows, threshold - 2e-7)}
    assert surely <= {pair[:2] for pair in found} <= perhaps
    assert found == similar_pairs(rows, threshold)
    assert found == sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))
    for i, j, value in found:
        assert i < j and value == pytest.approx(cosine(rows[i : i + 1], rows[j : j + 1])[0, 0], abs=2e-7)


def test_equal_rows_are_found_at_threshold_one() -> None:
    rows = np.repeat(np.random.default_rng(1).standard_normal((2, 256)).astype(np.float32), 2, axis=0)
    assert [pair[:2] for pair in similar_pairs(rows, 1.0)] == [(0, 1), (2, 3)]
    assert cosine(rows, rows).diagonal().tolist() == [1.0] * 4
    # scaled rows have the same direction
    assert similar_pairs(np.stack([rows[0], rows[0] * 7]), 1.0) == [(0, 1, 1.0)]


def test_a_pair_just_above_the_threshold_in_float64_is_not_lost_in_float32() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((60, 700))
    for _, _, value in similar_pairs(rows, 0.05)[:40]:
        assert value in [pair[2] for pair in similar_pairs(rows, value, block=7)]


def test_pairs_between_two_sets() -> None:
    new, old = clustered(9, 5, 5), clustered(14, 5, 6)
    table = cosine(new, old)
    found = similar_pairs(new, 0.5, others=old, block=4)
    assert {(i, j) for i, j, _ in found} == {
        (int(i), int(j)) for i, j in zip(*np.nonzero(table >= 0.5), strict=True)
    }
    assert similar_pairs(new, 0.5, others=old[:0]) == []


def test_memory_is_that_of_a_block() -> None:
    rows = np.random.default_rng(0).standard_normal((4000, 16)).astype(np.float32)
    similar_pairs(rows[:10], 0.9)
    tracemalloc.start()
    similar_pairs(rows, 0.95, block=256)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6  # the whole matrix has 64 MB


@pytest.mark.parametrize("threshold", [-1.1, 1.1, float("nan")])
def test_thresholds_outside_of_cosines(threshold: float) -> None:
    with pytest.raises(ConfigError, match="threshold"):
        similar_pairs(np.ones((2, 2)), threshold)


def test_rows_without_a_direction_and_shapes_that_differ() -> None:
    rows = np.ones((3, 2), dtype=np.float32)
    for bad in (0.0, np.nan, np.inf):
        broken = rows.copy()
        broken[2] = bad
        with pytest.raises(FormatError) as caught:
            similar_pairs(broken, 0.5)
        assert caught.value.field == "vectors[2]"
    with pytest.raises(ConfigError, match="2 and of 3 dimensions"):
        cosine(rows, np.ones((1, 3)))
    with pytest.raises(ConfigError, match="shape"):
        similar_pairs(np.ones(3), 0.5)
    with pytest.raises(ConfigError, match="block"):
        similar_pairs(rows, 0.5, block=0)
