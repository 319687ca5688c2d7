"""Calibration of a judge's probabilities on labelled verdicts: Platt's logistic and isotonic regression."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rubricate.data.io import parse_json, write_json
from rubricate.errors import ConfigError, FormatError
from rubricate.judges.base import CriteriaJudge
from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import fingerprint

__all__ = ["METHODS", "Calibration", "Quality", "auc", "fit_calibration", "quality"]

METHODS = ("platt", "isotonic")
FORMAT = 1

_EDGE = 1e-6  # probabilities are kept so far from 0 and 1 before their logit is taken
_SURE = 1e-12  # a calibrated probability is kept so far from 0 and 1: no number of labels makes one certain
_FEWEST = {"platt": 20, "isotonic": 50}  # labels below which the fit says more of chance than of the judge
_FEWEST_OF_A_CLASS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quality:
    """How good probabilities are against labels. Less is better in all three.

    Attributes:
        ece: expected calibration error over bins of equal mass, in [0, 1].
        brier: mean squared difference from the label, in [0, 1].
        log_loss: mean negative log-likelihood in nats; probabilities are kept 1e-6 away from 0 and 1.
    """

    ece: float
    brier: float
    log_loss: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A map from a judge's P(met) to the share of its verdicts that were right at that P.

    Attributes:
        method: `platt` or `isotonic`.
        judge: fingerprint of the judge it was fitted for; it is of no use with another one.
        xs, ys: `platt`: slope and intercept on the logit, as `xs = (slope,)` and `ys = (intercept,)`. `isotonic`:
            the corners of a rising line, flat outside.
        count, positives: labels, and those that say met.
        before, after: quality of the raw probabilities, and of the calibrated ones on labels that they were not
            fitted to (cross-validated).
        folds: how many folds the cross-validation had.
    """

    method: str
    judge: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    count: int
    positives: int
    before: Quality
    after: Quality
    folds: int

    def __call__(self, probability: float) -> float:
        """The calibrated probability, in (0, 1). Raises ConfigError for what is no probability."""
        if not 0.0 <= probability <= 1.0:
            raise ConfigError(f"{probability} is no probability", hint="give a number in [0, 1]")
        return float(_apply(self.method, self.xs, self.ys, np.array([probability], dtype=np.float64))[0])

    @property
    def fingerprint(self) -> str:
        """Of the map and the judge it is for."""
        return fingerprint([self.method, self.judge, list(self.xs), list(self.ys)])

    def to_record(self) -> dict[str, object]:
        """As a JSON-ready record."""
        return {"format": FORMAT, **json.loads(json.dumps(asdict(self)))}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, atomically. Raises FormatError where nothing can be written."""
        write_json(path, self.to_record())

    @classmethod
    def from_record(cls, record: object, *, source: str = "") -> Calibration:
        """The calibration of a record. Raises FormatError, naming the field."""
        fields = as_object(record)
        if fields is None:
            raise FormatError("a calibration is a JSON object", source=source)
        if fields.get("format") != FORMAT:
            raise FormatError(f"expected {FORMAT}", source=source, field="format", hint="fit it anew")
        method, judge = fields.get("method"), fields.get("judge")
        if method not in _FEWEST or not isinstance(method, str):
            raise FormatError(f"expected one of {', '.join(METHODS)}", source=source, field="method")
        if not isinstance(judge, str):
            raise FormatError("expected the judge's fingerprint", source=source, field="judge")
        xs, ys = (_numbers(fields, name, source) for name in ("xs", "ys"))
        if not _is_map(method, xs, ys):
            raise FormatError(f"these are no {method} calibration", source=source, field="xs")
        count, positives, folds = (int(_number(fields, n, source)) for n in ("count", "positives", "folds"))
        before, after = (_quality(fields, name, source) for name in ("before", "after"))
        return cls(method, judge, xs, ys, count, positives, before, after, folds)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read what `save` wrote. Raises FormatError, naming the file."""
        source = os.fspath(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FormatError(f"cannot be read: {error}", source=source) from None
        return cls.from_record(parse_json(text, source=source), source=source)

    def __str__(self) -> str:
        parts = [
            f"{name} {getattr(self.before, key):.3f} -> {getattr(self.after, key):.3f}"
            for name, key in (("ECE", "ece"), ("Brier", "brier"), ("log loss", "log_loss"))
        ]
        return f"{self.method} on {self.count} labels, {self.folds} folds: {', '.join(parts)}"


def quality(probabilities: Sequence[float], labels: Sequence[bool], *, bins: int = 10) -> Quality:
    """Expected calibration error over `bins` bins of equal mass, Brier score and log loss.

    Bins hold equally many probabilities each (fewer where there are fewer probabilities than bins); equal
    probabilities stay in one bin, so that the order of the labels never matters. Raises ConfigError for lists that
    do not fit together.
    """
    p, y = _checked(probabilities, labels)
    return _quality_of(p, y, bins)


def auc(scores: Floats, labels: NDArray[np.bool_]) -> float:
    """Area under the ROC curve, as the Mann-Whitney statistic with ties counted half; NaN for one class only.

    No calibration changes it: it is what a judge knows, whatever its threshold.
    """
    positive = int(labels.sum())
    negative = int(labels.size - positive)
    if positive == 0 or negative == 0:
        return math.nan
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2.0)[inverse]
    above = float(ranks[labels].sum()) - positive * (positive + 1) / 2.0
    return above / (positive * negative)


def fit_calibration(
    judge: CriteriaJudge | str,
    probabilities: Sequence[float],
    labels: Sequence[bool],
    *,
    method: str = "platt",
    folds: int = 5,
    seed: int = 0,
    groups: Sequence[object] | None = None,
    bins: int = 10,
) -> Calibration:
    """Fit a calibration to a judge's probabilities on labelled verdicts.

    `platt`: a logistic on the logit of P, with Platt's smoothed targets (Platt 1999), by Newton's method; two
    numbers, so tens of labels will do. `isotonic`: pool adjacent violators, with straight lines between the pools
    and kept 1 / (labels + 2) away from 0 and 1 (ours); it follows any rising shape, and wants hundreds of labels.

    Args:
        judge: the judge that gave the probabilities, or its fingerprint.
        probabilities: its P(met), in [0, 1].
        labels: whether each criterion was really met.
        folds: of the cross-validation behind `after`, at least 2.
        seed: of the folds.
        groups: what belongs together, such as the rollout's id: a group is never in two folds, which would make
            `after` look better than it is.
        bins: of the expected calibration error.

    Raises ConfigError for too few labels (20; 50 for isotonic), fewer than 5 of a class, or a judge whose
    probabilities fall as the labels rise.
    """
    if method not in METHODS:
        raise ConfigError(f"there is no calibration {method!r}", hint=f"use one of {', '.join(METHODS)}")
    p, y = _checked(probabilities, labels)
    _check_enough(method, y)
    if folds < 2:
        raise ConfigError(f"folds is {folds}", hint="use 2 or more")
    fold = _folds(y, folds, seed, groups)
    held_out = np.empty_like(p)
    for number in np.unique(fold):
        test = fold == number
        if len(np.unique(y[~test])) < 2:
            raise ConfigError(
                "without one of the groups the labels are all alike", hint="label more groups, or use fewer folds"
            )
        held_out[test] = _apply(method, *_fit(method, p[~test], y[~test]), p[test])
    xs, ys = _fit(method, p, y)
    if (method == "platt" and xs[0] <= 0.0) or (method == "isotonic" and len(set(ys)) == 1):
        raise ConfigError(
            "this judge's probabilities do not rise with the labels: no calibration can mend that",
            hint="look for labels that are turned round (met means that the text is true), or use another judge",
        )
    return Calibration(
        method,
        judge if isinstance(judge, str) else judge.fingerprint,
        xs,
        ys,
        len(y),
        int(y.sum()),
        _quality_of(p, y, bins),
        _quality_of(held_out, y, bins),
        len(np.unique(fold)),
    )


def _checked(probabilities: Sequence[float], labels: Sequence[bool]) -> tuple[Floats, Floats]:
    if len(probabilities) != len(labels) or len(labels) == 0:
        raise ConfigError(
            f"there are {len(probabilities)} probabilities and {len(labels)} labels", hint="give one label each"
        )
    p = np.asarray(probabilities, dtype=np.float64)
    wrong = np.flatnonzero(~((p >= 0.0) & (p <= 1.0)))
    if len(wrong):
        raise ConfigError(
            f"probability {int(wrong[0])} is {p[wrong[0]]}", hint="leave out failed verdicts; they have none"
        )
    y = np.asarray(labels, dtype=np.float64)
    if not np.isin(y, (0.0, 1.0)).all():
        raise ConfigError("labels are true or false", hint="leave out criteria that do not apply")
    return p, y


def _check_enough(method: str, y: Floats) -> None:
    met = int(y.sum())
    if len(y) < _FEWEST[method]:
        raise ConfigError(
            f"{len(y)} labels are too few for a {method} calibration", hint=f"use at least {_FEWEST[method]}"
        )
    if min(met, len(y) - met) < _FEWEST_OF_A_CLASS:
        raise ConfigError(
            f"{met} of {len(y)} labels say met: both kinds are needed, at least {_FEWEST_OF_A_CLASS} of each",
            hint="label criteria that are met and some that are not",
        )


def _folds(y: Floats, folds: int, seed: int, groups: Sequence[object] | None) -> NDArray[np.int64]:
    """Each label's fold: groups are dealt out at random; without groups, each class is, so that folds are alike."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(y), dtype=np.int64)
    if groups is None:
        for kind in (0.0, 1.0):
            members = rng.permutation(np.flatnonzero(y == kind))
            fold[members] = np.arange(len(members)) % folds
        return fold
    if len(groups) != len(y):
        raise ConfigError(f"there are {len(groups)} groups for {len(y)} labels", hint="give one a label")
    names = list(dict.fromkeys(groups))
    if len(names) < 2:
        raise ConfigError("all labels are in one group", hint="leave `groups` out, or label more responses")
    dealt = dict(zip(names, (rng.permutation(len(names)) % folds).tolist(), strict=True))
    fold[:] = [dealt[group] for group in groups]
    return fold


def _fit(method: str, p: Floats, y: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return _fit_platt(p, y) if method == "platt" else _fit_isotonic(p, y)


def _fit_platt(p: Floats, y: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Slope and intercept that maximise the likelihood of the smoothed targets."""
    met = float(y.sum())
    targets: Floats = np.where(y == 1.0, (met + 1.0) / (met + 2.0), 1.0 / (len(y) - met + 2.0))
    x: Floats = np.stack([_logit(p), np.ones_like(p)], axis=1)
    theta: Floats = np.zeros(2, dtype=np.float64)
    loss = _cross_entropy(x @ theta, targets)
    for _ in range(100):
        said = _sigmoid(x @ theta)
        gradient: Floats = x.T @ (said - targets)
        curvature: Floats = (x * (said * (1.0 - said))[:, None]).T @ x + 1e-9 * np.eye(2)
        step: Floats = np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
        size, better = 1.0, _cross_entropy(x @ (theta - step), targets)
        while better > loss and size > 1e-6:
            size /= 2.0
            better = _cross_entropy(x @ (theta - size * step), targets)
        gained = loss - better
        if gained <= 0.0:
            break
        theta, loss = theta - size * step, better
        if gained < 1e-12 * (1.0 + abs(loss)):
            break
    return (float(theta[0]),), (float(theta[1]),)


def _fit_isotonic(p: Floats, y: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Pools of equal mean, by pool adjacent violators; equal probabilities are one point."""
    xs, where = np.unique(p, return_inverse=True)
    weights = np.bincount(where).astype(np.float64)
    means = np.bincount(where, weights=y) / weights
    pools: list[tuple[float, float, int, int]] = []  # mean, weight, first and last point
    for index in range(len(xs)):
        pool = (float(means[index]), float(weights[index]), index, index)
        while pools and pools[-1][0] >= pool[0]:
            mean, weight, first, _ = pools.pop()
            total = weight + pool[1]
            pool = ((mean * weight + pool[0] * pool[1]) / total, total, first, pool[3])
        pools.append(pool)
    edge = 1.0 / (len(y) + 2.0)
    corners: dict[float, float] = {}
    for mean, _, first, last in pools:
        kept = min(max(mean, edge), 1.0 - edge)
        corners[float(xs[first])] = corners[float(xs[last])] = kept
    return tuple(corners), tuple(corners.values())


def _apply(method: str, xs: Sequence[float], ys: Sequence[float], p: Floats) -> Floats:
    if method == "platt":
        return np.clip(_sigmoid(xs[0] * _logit(p) + ys[0]), _SURE, 1.0 - _SURE)
    return np.interp(p, xs, ys)


def _logit(p: Floats) -> Floats:
    kept = np.clip(p, _EDGE, 1.0 - _EDGE)
    return np.log(kept) - np.log1p(-kept)


def _sigmoid(z: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -z))


def _cross_entropy(z: Floats, targets: Floats) -> float:
    return float((np.logaddexp(0.0, z) - targets * z).sum())


def _quality_of(p: Floats, y: Floats, bins: int) -> Quality:
    kept = np.clip(p, _EDGE, 1.0 - _EDGE)
    log_loss = -np.mean(y * np.log(kept) + (1.0 - y) * np.log1p(-kept))
    return Quality(_ece(p, y, bins), float(np.mean((p - y) ** 2)), float(log_loss))


def _ece(p: Floats, y: Floats, bins: int) -> float:
    if bins < 1:
        raise ConfigError(f"bins is {bins}", hint="use 1 or more")
    order = np.argsort(p, kind="stable")
    # a probability that occurs several times goes where the first of it goes
    first = np.searchsorted(p[order], p[order], side="left")
    bin_of = first * min(bins, len(p)) // len(p)
    gaps = np.bincount(bin_of, weights=p[order] - y[order])
    return float(np.abs(gaps).sum() / len(p))


def _is_map(method: str, xs: Sequence[float], ys: Sequence[float]) -> bool:
    if method == "platt":
        return len(xs) == len(ys) == 1 and xs[0] > 0.0
    rising = all(a < b for a, b in zip(xs, xs[1:], strict=False))
    return len(xs) == len(ys) >= 2 and rising and list(ys) == sorted(ys) and 0.0 < ys[0] and ys[-1] < 1.0


def _number(fields: Mapping[str, object], name: str, source: str) -> float:
    number = as_number(fields.get(name))
    if number is None:
        raise FormatError("expected a number", source=source, field=name)
    return number


def _numbers(fields: Mapping[str, object], name: str, source: str) -> tuple[float, ...]:
    numbers = tuple(as_number(value) for value in as_array(fields.get(name)) or ())
    kept = tuple(number for number in numbers if number is not None)
    if not numbers or len(kept) < len(numbers):
        raise FormatError("expected a list of numbers", source=source, field=name)
    return kept


def _quality(fields: Mapping[str, object], name: str, source: str) -> Quality:
    parts = as_object(fields.get(name)) or {}
    try:
        ece, brier, log_loss = (_number(parts, key, source) for key in ("ece", "brier", "log_loss"))
    except FormatError:
        raise FormatError("expected ece, brier and log_loss", source=source, field=name) from None
    return Quality(ece, brier, log_loss)
