"""Whitened weights: criteria that say the same share their weight (RRD, 2602.05125).

The weights are Sigma^(-1/2) 1 with Sigma the uncentred second moment of the criteria's scores, shrunk and ridged,
clipped at 0 and scaled to an L1 norm of 1. What the shrinkage goes towards is not in what could be read of the
paper; here it is a multiple of the identity (Ledoit and Wolf 2004), or the diagonal.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Polarity
from rubricate.rubrics.filters.table import ScoreTable
from rubricate.rubrics.rubric import Rubric

__all__ = ["Target", "second_moment", "whiten", "whitened_weights"]

Target = Literal["identity", "diagonal"]
"""What the second moment is shrunk towards: its mean diagonal times the identity, or its own diagonal."""

Array = NDArray[np.float64]


def second_moment(scores: Array, *, min_known: int = 2) -> Array:
    """Uncentred second moment X^T X / N of the columns, of shape (k, k).

    Where scores are missing (NaN), each entry is the mean over the rows that have both columns; a matrix made of
    such entries need not be positive semi-definite, so that its negative eigenvalues are set to 0 (ours).

    Raises ConfigError where two columns have fewer than `min_known` rows in common, and for what is no matrix.
    """
    if scores.ndim != 2 or not scores.shape[1]:
        raise ConfigError(f"scores have the shape (responses, criteria), not {scores.shape}")
    known = ~np.isnan(scores)
    if np.isinf(scores).any():
        raise ConfigError("scores are numbers, or NaN where there is none; infinity is neither")
    counts = known.T.astype(np.float64) @ known
    if counts.size and counts.min() < min_known:
        first, second = (int(at) for at in np.unravel_index(int(counts.argmin()), counts.shape))
        raise ConfigError(
            f"criteria {first} and {second} have {int(counts.min())} scored responses in common, "
            f"{min_known} are needed",
            hint="leave out criteria of which too little is known",
        )
    filled = np.where(known, scores, 0.0)
    moment = filled.T @ filled / counts
    if known.all():
        return moment
    values, vectors = np.linalg.eigh(moment)
    return (vectors * np.clip(values, 0.0, None)) @ vectors.T


def whitened_weights(
    scores: Array, *, shrink: float = 0.1, ridge: float = 1e-4, target: Target = "identity", min_known: int = 2
) -> Array:
    """Weights of criteria by their scores of a pool: Sigma^(-1/2) 1, clipped at 0, of sum 1.

    Sigma = (1 - shrink) S + shrink T + ridge I, S the second moment and T its target.

    Args:
        scores: float64 of shape (responses, k), credits in [0, 1] (of a penalty, 1 - score), NaN where unknown.
        shrink: in [0, 1].
        ridge: > 0, so that the inverse exists.
        target: see `Target`.
        min_known: rows that each two columns need in common.

    Returns float64 of shape (k,), >= 0, of sum 1. Raises ConfigError for options outside their ranges and where
    `second_moment` does.
    """
    if not 0.0 <= shrink <= 1.0 or not ridge > 0.0:
        raise ConfigError(f"shrink is {shrink} and ridge {ridge}", hint="use shrink in [0, 1] and ridge above 0")
    if target not in get_args(Target):
        raise ConfigError(f"target is {target!r}", hint=f"use one of {', '.join(get_args(Target))}")
    moment = second_moment(scores, min_known=min_known)
    size = len(moment)
    aim = np.diag(np.diag(moment)) if target == "diagonal" else np.trace(moment) / size * np.eye(size)
    shrunk = (1.0 - shrink) * moment + shrink * aim + ridge * np.eye(size)
    values, vectors = np.linalg.eigh(shrunk)
    raw = vectors @ ((vectors.T @ np.ones(size)) / np.sqrt(values))
    # 1' Sigma^(-1/2) 1 > 0, so that at least one entry is positive.
    clipped = np.clip(raw, 0.0, None)
    return clipped / clipped.sum()


def whiten(
    rubric: Rubric,
    table: ScoreTable,
    *,
    shrink: float = 0.1,
    ridge: float = 1e-4,
    target: Target = "identity",
    min_known: int = 2,
) -> Rubric:
    """The rubric with whitened weights, of sum 1, from the scores of a pool.

    Penalties enter with 1 - score, so that every column says how good the responses are (ours; RRD has rewards
    alone). A criterion whose clipped weight is 0 stays, and counts nothing.

    Raises ConfigError for a nested rubric, whose weights are relative to their group, and where two criteria have
    fewer than `min_known` scored responses in common.
    """
    if rubric.groups:
        raise ConfigError("whitened weights are those of a flat rubric", hint="flatten it first")
    columns = [
        1.0 - table.means(one.id) if one.polarity is Polarity.PENALTY else table.means(one.id)
        for one in rubric.criteria
    ]
    weights = whitened_weights(
        np.stack(columns, axis=1), shrink=shrink, ridge=ridge, target=target, min_known=min_known
    )
    criteria = tuple(
        one.model_copy(update={"weight": float(weight)})
        for one, weight in zip(rubric.criteria, weights, strict=True)
    )
    return rubric.model_copy(update={"criteria": criteria})
