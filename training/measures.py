"""How good a judge's probabilities are against labels: AUC, accuracy, calibration, mass outside its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubricate.judges.calibration import auc, quality

__all__ = ["Scores", "measure"]


@dataclass(frozen=True, slots=True)
class Scores:
    """Probabilities beside labels.

    Attributes:
        probabilities: P(yes) among the answers, in [0, 1], float64 [n].
        labels: whether the criterion is met, [n].
        outside: mass outside yes and no, in [0, 1], [n].
        loss: mean cross-entropy of the right answer's token, in nats.
    """

    probabilities: NDArray[np.float64]
    labels: NDArray[np.bool_]
    outside: NDArray[np.float64]
    loss: float


def measure(scores: Scores) -> dict[str, float]:
    """`loss`, `auc`, `accuracy` (at 0.5), `ece` (10 bins of equal mass), `outside` (mean) and `count`.

    AUC is left out where all labels are alike.
    """
    said = scores.probabilities >= 0.5
    found = {
        "loss": scores.loss,
        "auc": auc(scores.probabilities, scores.labels),
        "accuracy": float((said == scores.labels).mean()),
        "ece": quality(scores.probabilities.tolist(), scores.labels.tolist()).ece,
        "outside": float(scores.outside.mean()),
        "count": float(len(scores.labels)),
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}
