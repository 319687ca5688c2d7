"""Choosing few texts that say much: greedy selection by coding rate (Auto-Rubric, 2510.17314; Yu et al. 2020)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubricate.embed import Embedder
from rubricate.errors import ConfigError, FormatError

__all__ = ["EmbeddingFunction", "Selection", "coding_rate", "embedded", "select_diverse", "select_texts"]

Array = NDArray[np.float64]
EmbeddingFunction = Callable[[Sequence[str]], "ArrayLike | Awaitable[ArrayLike]"]
"""From texts to one vector a text, of shape (n, d); plain or async."""

_TIE = 1e-9  # gains closer than this are equal: they differ by rounding


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen.

    Attributes:
        places: places of the chosen rows, in the order of their choice.
        gains: how much each added to the coding rate, in nats.
        rates: the coding rate after each choice, in nats.
        stopped: why it ended: `all` were chosen, the `limit` was reached, or `patience` ran out.
    """

    places: tuple[int, ...]
    gains: tuple[float, ...]
    rates: tuple[float, ...]
    stopped: str


def coding_rate(vectors: Array, *, eps: float = 0.1) -> float:
    """R(Z) = 1/2 logdet(I + d / (n eps^2) Z^T Z), in nats, >= 0; 0 for no rows.

    The lossy coding rate of Ma et al. (2007) as MCR^2 states it (Yu et al. 2020, 2006.08558, eq. 7), which
    Auto-Rubric names; the determinant is that of the smaller of Z^T Z and Z Z^T, which is the same.

    Args:
        vectors: of shape (n, d), one row an item, usually of norm 1.
        eps: allowed distortion, > 0.

    Raises ConfigError for an eps that is not above 0, FormatError for vectors that are not finite.
    """
    rows = _checked(vectors, eps)
    count, width = rows.shape
    if not count:
        return 0.0
    scale = width / (count * eps**2)
    gram = rows @ rows.T if count <= width else rows.T @ rows
    return 0.5 * float(np.linalg.slogdet(np.eye(len(gram)) + scale * gram)[1])


def select_diverse(
    vectors: Array,
    *,
    eps: float = 0.1,
    min_gain: float = 0.002,
    patience: int = 2,
    limit: int | None = None,
    seed: int = 0,
) -> Selection:
    """Rows chosen one by one, each the one that adds most to the coding rate of those chosen: argmax R(S+r) - R(S).

    It ends after `patience` steps in a row whose gain is below `min_gain`; what these last steps chose is left out.
    The scale d / (n eps^2) falls as S grows, so that a copy of the only row chosen adds exactly nothing.

    Args:
        vectors: of shape (n, d), finite; scaled to norm 1 here.
        eps: as in `coding_rate`.
        min_gain: in nats (Auto-Rubric's threshold, which it takes of another scale).
        patience: steps, 1 or more.
        limit: at most so many rows; None for no limit.
        seed: decides between gains that are equal.

    Raises ConfigError for options outside their ranges, FormatError for a row that is zero or not finite.
    """
    if patience < 1 or (limit is not None and limit < 1):
        raise ConfigError(f"patience is {patience} and limit {limit}", hint="use 1 or more")
    rows = _unit(_checked(vectors, eps))
    order = np.random.default_rng(seed).permutation(len(rows))  # of equal gains the one first in it is taken
    chosen, gains, rates = list[int](), list[float](), list[float]()
    most = len(rows) if limit is None else min(limit, len(rows))
    weak, stopped = 0, "all" if most == len(rows) else "limit"
    while len(chosen) < most:
        values = _gains(rows, chosen, eps)
        values[chosen] = -np.inf
        best = next(int(at) for at in order if values[at] >= values.max() - _TIE)
        chosen.append(best)
        gains.append(float(values[best]))
        rates.append((rates[-1] if rates else 0.0) + gains[-1])
        weak = weak + 1 if gains[-1] < min_gain else 0
        if weak >= patience:
            stopped = "patience"
            break
    end = len(chosen) - (weak if stopped == "patience" else 0)
    return Selection(tuple(chosen[:end]), tuple(gains[:end]), tuple(rates[:end]), stopped)


def _gains(rows: Array, chosen: Sequence[int], eps: float) -> Array:
    """R(S + r) - R(S) of every row r, of shape (n,).

    With one more row, det(A + a bordered row) = det(A) (a_rr - k^T A^(-1) k) (Schur), A = I + c G of the chosen.
    """
    width = rows.shape[1]
    scale = width / ((len(chosen) + 1) * eps**2)
    own = 1.0 + scale * np.einsum("nd,nd->n", rows, rows)
    if not chosen:
        return 0.5 * np.log(own)
    picked = rows[list(chosen)]
    gram = picked @ picked.T
    eye = np.eye(len(picked))
    across = scale * (picked @ rows.T)
    values, basis = np.linalg.eigh(eye + scale * gram)
    half = (basis.T @ across) / np.sqrt(values)[:, None]
    # At least 1: the border of I + c G adds a row with a unit of its own. Rounding may leave less.
    border = np.maximum(own - np.einsum("kn,kn->n", half, half), 1.0)
    grown = float(np.log(values).sum())
    before = float(np.linalg.slogdet(eye + width / (len(chosen) * eps**2) * gram)[1])
    return 0.5 * (grown + np.log(border) - before)


async def select_texts(
    texts: Sequence[str],
    embedder: Embedder | EmbeddingFunction,
    *,
    eps: float = 0.1,
    min_gain: float = 0.002,
    patience: int = 2,
    limit: int | None = None,
    seed: int = 0,
) -> Selection:
    """As `select_diverse`, of texts. An embedding that fails fails the selection: no text has a made-up vector.

    Raises what the embedder raises, FormatError for vectors that do not fit the texts, and what `select_diverse`
    raises.
    """
    vectors = await embedded(texts, embedder)
    return select_diverse(vectors, eps=eps, min_gain=min_gain, patience=patience, limit=limit, seed=seed)


async def embedded(texts: Sequence[str], embedder: Embedder | EmbeddingFunction) -> Array:
    """The vectors of the texts by an embedder or any function, float64 of shape (n, d).

    Raises FormatError for vectors that are not one a text, or are zero or not finite.
    """
    if not texts:
        return np.empty((0, 1))
    if isinstance(embedder, Embedder):
        return (await embedder.embed(texts)).astype(np.float64)
    found = embedder(texts)
    vectors = np.asarray(await found if inspect.isawaitable(found) else found, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise FormatError(
            f"the embedding function gave an array of shape {vectors.shape} for {len(texts)} texts",
            hint="it must give one vector a text, of shape (n, d)",
        )
    _unit(vectors)
    return vectors


def _checked(vectors: Array, eps: float) -> Array:
    if not eps > 0.0:
        raise ConfigError(f"eps is {eps}", hint="use a number above 0")
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2:
        raise ConfigError(f"vectors have the shape (n, d), not {rows.shape}")
    unusable = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if unusable.size:
        raise FormatError("the vector is not finite", field=f"vectors[{int(unusable[0])}]")
    return rows


def _unit(rows: Array) -> Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unusable = np.flatnonzero(~(np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)))
    if unusable.size:
        hint = "an embedding that failed must raise, not give zeros"
        raise FormatError("the vector is zero or not finite", field=f"vectors[{int(unusable[0])}]", hint=hint)
    return rows / norms
