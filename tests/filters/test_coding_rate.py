"""The coding rate and the greedy choice by it, against hand-computed values and brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from rubricate.embed import MockEmbedder
from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics.filters import coding_rate, select_diverse, select_texts

Array = NDArray[np.float64]


def test_the_rate_of_orthogonal_rows_by_hand() -> None:
    # n = 2, d = 3, eps = .5: 1/2 logdet(I + 3 / (2 * .25) diag(1, 1, 0)) = log 7.
    assert coding_rate(np.eye(3)[:2], eps=0.5) == pytest.approx(math.log(7))
    # One row twice: Z^T Z has the eigenvalue 2, so 1/2 log(1 + 6 * 2) = 1/2 log 13.
    assert coding_rate(np.eye(3)[[0, 0]], eps=0.5) == pytest.approx(0.5 * math.log(13))
    assert coding_rate(np.empty((0, 3))) == 0.0


@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-2, 2)))
def test_the_rate_is_the_textbook_formula(rows: Array) -> None:
    count, width = rows.shape
    full = np.eye(width) + width / (count * 0.3**2) * sum(
        (np.outer(row, row) for row in rows), np.zeros((width, width))
    )
    values = np.linalg.eigvalsh(full)
    assert coding_rate(rows, eps=0.3) == pytest.approx(0.5 * float(np.log(values).sum()), abs=1e-8)


@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(2, 6))
def test_each_choice_is_the_best_by_rates_computed_anew(seed: int, count: int, width: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((count, width))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = select_diverse(rows, min_gain=-math.inf)
    assert sorted(found.places) == list(range(count))
    for step, (place, gain, rate) in enumerate(zip(found.places, found.gains, found.rates, strict=True)):
        before = list(found.places[:step])
        options = {r: coding_rate(unit[[*before, r]]) for r in range(count) if r not in before}
        assert options[place] == pytest.approx(max(options.values()), abs=1e-7)
        assert rate == pytest.approx(options[place], abs=1e-7)
        assert gain == pytest.approx(options[place] - coding_rate(unit[before]), abs=1e-7)


def test_copies_end_the_choice_and_are_left_out_of_it() -> None:
    rows = np.vstack((np.eye(4), np.eye(4), np.eye(4)))
    found = select_diverse(rows)
    assert found.stopped == "patience"
    assert sorted(place % 4 for place in found.places) == [0, 1, 2, 3]
    alone = select_diverse(np.ones((3, 2)), min_gain=-1.0)
    assert alone.gains[1:] == pytest.approx([0.0, 0.0], abs=1e-9)  # a copy of the only row adds nothing


def test_ties_are_decided_by_the_seed_and_the_same_seed_decides_alike() -> None:
    firsts = {select_diverse(np.eye(6), seed=seed).places[0] for seed in range(20)}
    assert len(firsts) > 1
    assert select_diverse(np.eye(6), seed=7) == select_diverse(np.eye(6), seed=7)


def test_the_limit_holds_and_vectors_need_not_have_norm_one() -> None:
    found = select_diverse(np.diag([1.0, 2.0, 3.0, 4.0]), limit=2)
    assert len(found.places) == 2
    assert found.stopped == "limit"
    assert found.gains == pytest.approx(select_diverse(np.eye(4), limit=2).gains)


async def test_texts_by_an_embedder_a_plain_function_and_an_async_one() -> None:
    texts = ["cites its sources", "cites its sources", "has a friendly tone", "names the capital of France"]
    found = await select_texts(texts, MockEmbedder(), patience=1)
    assert {texts[place] for place in found.places} == set(texts)
    assert len(found.places) == 3

    def plain(given: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in given]

    async def later(given: Sequence[str]) -> list[list[float]]:
        return plain(given)

    assert await select_texts(texts, plain) == await select_texts(texts, later)


async def test_an_embedding_that_fails_fails_the_choice() -> None:
    def zeros(given: Sequence[str]) -> Array:
        return np.vstack((np.ones((len(given) - 1, 3)), np.zeros((1, 3))))

    def short(given: Sequence[str]) -> Array:
        return np.ones((1, 3))

    def broken(given: Sequence[str]) -> Array:
        raise ConnectionError("away")

    with pytest.raises(FormatError, match=r"vectors\[1\]"):
        await select_texts(["a", "b"], zeros)
    with pytest.raises(FormatError, match="one vector a text"):
        await select_texts(["a", "b"], short)
    with pytest.raises(ConnectionError):
        await select_texts(["a", "b"], broken)
    with pytest.raises(FormatError, match="not finite"):
        select_diverse(np.array([[1.0, math.nan]]))


def test_wrong_options_are_refused() -> None:
    for call in (
        lambda: coding_rate(np.eye(2), eps=0.0),
        lambda: select_diverse(np.eye(2), patience=0),
        lambda: select_diverse(np.eye(2), limit=0),
        lambda: coding_rate(np.ones(3)),
    ):
        with pytest.raises(ConfigError):
            call()
