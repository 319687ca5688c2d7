"""Cosines of embedded texts: all of a few, or the close pairs of many, block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError, FormatError

__all__ = ["cosine", "similar_pairs"]

_DIGITS = 7  # float32 rows of norm 1 carry no more
_GATHER = 1 << 22  # numbers gathered at once for the exact cosines

_Matrix = NDArray[np.float32] | NDArray[np.float64]


def cosine(a: _Matrix, b: _Matrix) -> NDArray[np.float64]:
    """Cosines in [-1, 1] of every row of `a` (n, d) with every row of `b` (m, d), of shape (n, m).

    Rounded to seven decimals, which is what float32 vectors carry: equal rows give exactly 1. For many rows use
    `similar_pairs`. Raises FormatError for rows that are zero or not finite, ConfigError for shapes that differ.
    """
    left, right = _rows(a), _rows(b)
    _check_widths(left, right)
    return _rounded(left @ right.T)


def similar_pairs(
    vectors: _Matrix, threshold: float, *, others: _Matrix | None = None, block: int = 1024
) -> list[tuple[int, int, float]]:
    """All pairs of rows whose cosine is at least `threshold`, the closest first.

    Exact: a float32 product of blocks finds the candidates, with a margin for its rounding error, and each
    candidate's cosine is then computed in float64 and rounded to seven decimals, whatever the blocks. Memory is
    that of `block` x `block` numbers and of the pairs found, never n x n; time is that of the full product.

    Args:
        vectors: float of shape (n, d), rows of any length but zero.
        threshold: in [-1, 1].
        others: pairs of a row of `vectors` with a row of this matrix (m, d). None: pairs i < j within `vectors`.
        block: rows compared at once.

    Returns (i, j, cosine), sorted by falling cosine, then by i and j. Raises FormatError for rows that are zero or
    not finite, ConfigError for a threshold outside [-1, 1] or shapes that differ.
    """
    if not -1.0 <= threshold <= 1.0:
        raise ConfigError(f"a threshold of cosines lies in [-1, 1], not {threshold!r}")
    if block < 1:
        raise ConfigError(f"a block has at least one row, not {block}")
    left = _rows(vectors)
    right = left if others is None else _rows(others)
    _check_widths(left, right)
    pairs = list[tuple[int, int, float]]()
    for i, j in _candidates(left, right, threshold, block, within=others is None):
        values = _rounded(np.einsum("nd,nd->n", left[i], right[j]))
        kept = values >= threshold
        pairs += zip(i[kept].tolist(), j[kept].tolist(), values[kept].tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))


def _candidates(
    left: NDArray[np.float64], right: NDArray[np.float64], threshold: float, block: int, *, within: bool
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Row numbers of all pairs that may reach the threshold, a bounded number at a time."""
    width = left.shape[1]
    # |float32 dot product - exact| <= (d + 2) u for unit rows, u = 2^-24 (N. Higham, "Accuracy and Stability of
    # Numerical Algorithms", section 3.1), with both roundings to float32; and the seventh decimal's half.
    margin = 1.01 * (width + 3) * 2.0**-24 + 10.0**-_DIGITS
    small_left = left.astype(np.float32)
    small_right = small_left if right is left else right.astype(np.float32)
    step = max(_GATHER // max(width, 1), 1)
    for top in range(0, len(left), block):
        for start in range(top if within else 0, len(right), block):
            product = small_left[top : top + block] @ small_right[start : start + block].T
            i, j = np.nonzero(product >= threshold - margin)
            i, j = i + top, j + start
            if within:
                upper = i < j
                i, j = i[upper], j[upper]
            for first in range(0, len(i), step):
                yield i[first : first + step], j[first : first + step]


def _rows(vectors: _Matrix) -> NDArray[np.float64]:
    if vectors.ndim != 2:
        raise ConfigError(f"vectors have the shape (n, d), not {vectors.shape}")
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unusable = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if unusable.size:
        raise FormatError("the vector is zero or not finite: it has no direction", field=f"vectors[{unusable[0]}]")
    return wide / norms


def _check_widths(left: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    if left.shape[1] != right.shape[1]:
        hint = "vectors of different embedders cannot be compared"
        raise ConfigError(f"vectors of {left.shape[1]} and of {right.shape[1]} dimensions", hint=hint)


def _rounded(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(np.round(cosines, _DIGITS), -1.0, 1.0)
