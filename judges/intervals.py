"""Intervals for the mean of scores in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

__all__ = ["METHODS", "interval"]

METHODS = ("chernoff", "hoeffding", "student")
_FEW = 5  # the expansion of t's quantile is off by more than 1% below so many samples


def interval(method: str, scores: Sequence[float], confidence: float, *, looks: int = 1) -> tuple[float, float]:
    """A confidence interval of the mean that independent scores in [0, 1] are drawn around, cut to [0, 1].

    `chernoff` and `hoeffding` are the two forms of Hoeffding 1963, Theorem 1 (m KL(mean, limit) = ln(2 / error),
    and its bound by a square root) and hold for any distribution in [0, 1]. `student` is Student's t with the
    quantile by its expansion in 1 / (m - 1) (Abramowitz and Stegun 26.7.5), and says nothing of fewer than 5.

    Args:
        method: one of `METHODS`.
        confidence: in (0, 1).
        looks: intervals that are taken while the scores come in. They share the error (union bound), so that all of
            them hold together; `student` takes no notice.
    """
    m = len(scores)
    if m == 0:
        return 0.0, 1.0
    mean = min(max(fmean(scores), 0.0), 1.0)
    if method == "student":
        if m < _FEW:
            return 0.0, 1.0
        half = _t(0.5 + confidence / 2, m - 1) * stdev(scores) / math.sqrt(m)
        return max(mean - half, 0.0), min(mean + half, 1.0)
    room = math.log(2.0 * looks / (1.0 - confidence)) / m
    if method == "hoeffding":
        half = math.sqrt(room / 2.0)
        return max(mean - half, 0.0), min(mean + half, 1.0)
    return _limit(mean, 0.0, room), _limit(mean, 1.0, room)


def _limit(mean: float, end: float, room: float) -> float:
    """The point between mean and `end` at which the divergence is `room`; on the safe side of it."""
    near, far = mean, end
    for _ in range(50):
        middle = (near + far) / 2
        if _divergence(mean, middle) <= room:
            near = middle
        else:
            far = middle
    return far


def _divergence(p: float, q: float) -> float:
    """KL divergence of Bernoulli(p) from Bernoulli(q), in nats."""
    total = 0.0
    for a, b in ((p, q), (1.0 - p, 1.0 - q)):
        if a > 0.0:
            if b <= 0.0:
                return math.inf
            total += a * math.log(a / b)
    return total


def _t(level: float, freedom: int) -> float:
    """Quantile of Student's t."""
    z = NormalDist().inv_cdf(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))
