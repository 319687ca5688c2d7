"""What can be had from labelled checks without judging: words of one text alone, length, shared words.

A set whose labels can be told from the criterion, or from the response, alone teaches a judge not to look.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rubricate.judges.calibrated import Labelled

__all__ = ["rank_auc", "shortcuts", "words_auc"]

_WORD = re.compile(r"\w+|[^\w\s]")
_COMMON = frozenset(
    "the a an of to and in it is that response text for or not as with at on be are does no".split()
)


def rank_auc(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Area under the ROC curve in [0, 1], ties half (Mann-Whitney); NaN where there is one class only."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    positive = int(labels.sum())
    negative = labels.size - positive
    if not positive or not negative:
        return float("nan")
    return float((ranks[labels].sum() - positive * (positive + 1) / 2) / (positive * negative))


def _text(item: Labelled, part: Literal["criterion", "response"]) -> str:
    return item.criterion.text if part == "criterion" else str(item.rollout.response)


def _features(text: str) -> list[str]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return [*dict.fromkeys(words), *dict.fromkeys(f"{a} {b}" for a, b in zip(words, words[1:], strict=False))]


class _Sparse:
    """Rows of features as pairs of row and column numbers; features that were not in training are left out."""

    def __init__(self, texts: Sequence[str], columns: dict[str, int], *, learn: bool) -> None:
        rows: list[int] = []
        found: list[int] = []
        known: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            if text not in known:
                names = _features(text)
                if learn:
                    for name in names:
                        columns.setdefault(name, len(columns))
                known[text] = [columns[name] for name in names if name in columns]
            rows += [number] * len(known[text])
            found += known[text]
        self.count = len(texts)
        self.rows = np.array(rows, dtype=np.intp)
        self.columns = np.array(found, dtype=np.intp)

    def times(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the weights of each row."""
        return np.bincount(self.rows, weights[self.columns], self.count).astype(np.float64)

    def transposed(self, values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
        """The sum of the values of the rows of each column."""
        return np.bincount(self.columns, values[self.rows], width).astype(np.float64)


def words_auc(
    train: Sequence[Labelled],
    test: Sequence[Labelled],
    part: Literal["criterion", "response"],
    *,
    steps: int = 60,
    penalty: float = 1e-3,
) -> float:
    """AUC on `test` of a logistic regression on words and pairs of words of one text, fitted to `train`."""
    columns: dict[str, int] = {}
    fit = _Sparse([_text(item, part) for item in train], columns, learn=True)
    held = _Sparse([_text(item, part) for item in test], columns, learn=False)
    labels = np.array([item.met for item in train], dtype=np.float64)
    weights = np.zeros(len(columns))
    mean, spread = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):  # Adam (Kingma and Ba 2015)
        probabilities = 1.0 / (1.0 + np.exp(-fit.times(weights)))
        slope = fit.transposed(probabilities - labels, len(columns)) / fit.count + penalty * weights
        mean = 0.9 * mean + 0.1 * slope
        spread = 0.99 * spread + 0.01 * slope**2
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
    return rank_auc(held.times(weights), np.array([item.met for item in test]))


def _overlap(item: Labelled) -> float:
    """Share of the criterion's words that the response contains."""
    wanted = {word for word in map(str.casefold, _WORD.findall(item.criterion.text)) if word.isalnum()} - _COMMON
    there = set(map(str.casefold, _WORD.findall(str(item.rollout.response))))
    return len(wanted & there) / max(1, len(wanted))


def shortcuts(made: Sequence[Labelled]) -> Mapping[tuple[str, str], tuple[int, float, float]]:
    """By kind and form: number of checks, and the AUC of the response's length and of shared words as scores.

    The side that a shortcut points to does not matter, so each AUC is at least 0.5.
    """
    groups: dict[tuple[str, str], list[Labelled]] = {}
    for item in made:
        groups.setdefault((item.criterion.tags[1], item.criterion.tags[2]), []).append(item)
    found: dict[tuple[str, str], tuple[int, float, float]] = {}
    for name, items in sorted(groups.items()):
        labels = np.array([item.met for item in items])
        length = rank_auc(np.array([float(len(str(item.rollout.response))) for item in items]), labels)
        shared = rank_auc(np.array([_overlap(item) for item in items]), labels)
        found[name] = len(items), max(length, 1 - length), max(shared, 1 - shared)
    return found
