"""How verdicts become one number: every choice that published systems make differently is a named option."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rubricate.errors import ConfigError
from rubricate.rubrics import Criterion, CriterionKind, Importance
from rubricate.rubrics.formats.openrubrics import KIND_WEIGHTS
from rubricate.rubrics.formats.rar import CATEGORY_WEIGHTS
from rubricate.types import fingerprint

__all__ = [
    "KIND_WEIGHTS",
    "RAR_V1_WEIGHTS",
    "RAR_WEIGHTS",
    "Aggregation",
    "Combine",
    "Denominator",
    "Evidence",
    "Mode",
    "Missing",
    "NotApplicable",
    "OnlyNegative",
    "PolarityRule",
    "ResponseFailures",
    "ValueDomain",
    "Weighting",
]

RAR_WEIGHTS: Mapping[Importance, float] = CATEGORY_WEIGHTS["paper"]
"""Weights of Rubrics as Rewards (2507.17746 v2)."""

RAR_V1_WEIGHTS: Mapping[Importance, float] = CATEGORY_WEIGHTS["v1"]
"""Weights of Rubrics as Rewards (2507.17746 v1)."""

Mode = Literal["explicit", "implicit"]
Evidence = Literal["score", "probability"]
ValueDomain = Literal["score", "binary", "ternary", "signed"]
PolarityRule = Literal["signed", "credit", "no_credit"]
Weighting = Literal["given", "importance", "kind", "equal"]
Combine = Literal["weighted_sum", "mean", "all_or_nothing", "minimum", "hybrid", "nested"]
Denominator = Literal["positive", "positive_or_one", "absolute", "none"]
OnlyNegative = Literal["credit", "undefined", "unit"]
Missing = Literal["mask", "skip", "pessimistic", "raise"]
NotApplicable = Literal["exclude", "no_credit"]
ResponseFailures = Literal["mask", "floor", "raise"]


class Aggregation(BaseModel):
    """How the verdicts on a response become its reward. Frozen; `preset(name)` gives those of published systems.

    With w the weights (>= 0), v the values and D the denominator, explicit mode computes

        clip(scale * (sum of contributions / D) + shift)

    where a reward criterion contributes w * v and a penalty criterion what `polarity` says. Criteria of weight 0
    count nowhere but in vetoes, whatever the weighting.

    Attributes:
        mode: `explicit` (verdicts on criteria are combined by the formula) or `implicit` (the judge's single
            verdict on the whole rubric is the value; RaR, 2507.17746).
        evidence: what is taken of a verdict: its `score`, or its `probability` (its score where there is none).
        value: the domain of v, from the evidence e in [0, 1]: `score` (v = e, levels and probabilities as they
            are), `binary` (v = 1 where e >= threshold, else 0), `ternary` (the nearest of 0, 0.5 and 1), or
            `signed` (v = 2e - 1, that is p(true) - p(false), in [-1, 1]; RUBRIC-ARROW, 2605.29156).
        threshold: e at and above it counts as met, in (0, 1]: for `binary`, all-or-nothing and vetoes.
        polarity: what a penalty criterion contributes. `signed`: -w * v, so an error that was made costs.
            `credit`: w times the mirrored value, so an error that was avoided earns, and the weight counts in the
            denominator; with `absolute` the result is in [0, 1] by construction. `no_credit`: nothing, and it
            leaves the denominator (it may still veto). No rule lets a met penalty earn.
        weights: `given` (the criteria's own), `importance` (by `importance_weights`), `kind` (by `kind_weights`)
            or `equal` (1 each).
        importance_weights, kind_weights: the tables of those two.
        weight_default: weight of a criterion that has no importance (or kind); None refuses it with ConfigError.
        combine: `weighted_sum`; `mean` (weighted sum with equal weights); `all_or_nothing` (1 when every reward
            criterion is met and no penalty is, else 0; AdvancedIF, 2511.10507); `minimum` (the worst criterion
            decides; RLAC, 2511.01758); `hybrid` (`hybrid_share` of all-or-nothing plus the rest of the weighted
            sum); `nested` (the weighted sum within each group of the rubric, bottom up; PaperBench).
        hybrid_share: share of all-or-nothing in `hybrid`, in [0, 1]. The mixture is ours.
        denominator: D of weighted sums. `positive`: the weights that can earn (reward criteria; under `credit`
            penalties as well). `positive_or_one`: the larger of that and 1. `absolute`: all weights. `none`: 1.
        only_negative: where nothing applicable can earn, so that `positive` would divide by 0: `credit` (1 minus
            the weighted share of penalties met), `undefined` (no value), `unit` (D = 1).
        scale, shift: affine map of the combined value; scale > 0.
        clip: (low, high) that the mapped value is clipped to, or None.
        missing: what an unknown verdict does that is not the response's doing. `mask`: no value. `skip`: the known
            verdicts are renormalised. `pessimistic`: the lower bound. `raise`: UnscoredError. A value that no
            completion of the unknown verdicts could change is known under every policy.
        min_coverage: `skip` and `pessimistic` need at least this share of the weight known, in (0, 1]; below it
            there is no value. Required by both.
        not_applicable: a criterion that does not apply is left out of both sums (`exclude`), or stays in the
            denominator and earns nothing (`no_credit`).
        response_failures: what a failed verdict does that the response caused (too long, refused, unreadable while
            its siblings were judged): `mask` (no value), `floor` (the floor) or `raise`. Such verdicts are never
            skipped, or a policy could rid itself of a criterion by breaking the judge.
        floor: value of a vetoed (or floored) response; None takes the lowest value that the rubric can reach. A
            floor above that is refused with ConfigError.
        normaliser: how the rating r of implicit mode becomes a value: `score` (the judge's own min-max score),
            `min_max` ((r - low) / (high - low); EvoLM's (r - 1) / 9) or `over_max` (r / high; DR Tulu's r / 10).
        rating_scale: (low, high) of the rating, for the last two.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    mode: Mode = "explicit"
    evidence: Evidence = "score"
    value: ValueDomain = "score"
    threshold: float = Field(default=0.5, gt=0.0, le=1.0)
    polarity: PolarityRule = "signed"
    weights: Weighting = "given"
    importance_weights: dict[Importance, float] = Field(default_factory=lambda: dict(RAR_WEIGHTS))
    kind_weights: dict[CriterionKind, float] = Field(default_factory=lambda: dict(KIND_WEIGHTS))
    weight_default: float | None = Field(default=None, ge=0.0)
    combine: Combine = "weighted_sum"
    hybrid_share: float = Field(default=0.5, ge=0.0, le=1.0)
    denominator: Denominator = "positive"
    only_negative: OnlyNegative = "credit"
    scale: float = Field(default=1.0, gt=0.0)
    shift: float = 0.0
    clip: tuple[float, float] | None = None
    missing: Missing = "mask"
    min_coverage: float | None = Field(default=None, gt=0.0, le=1.0)
    not_applicable: NotApplicable = "exclude"
    response_failures: ResponseFailures = "mask"
    floor: float | None = None
    normaliser: Literal["score", "min_max", "over_max"] = "score"
    rating_scale: tuple[float, float] = (1.0, 10.0)

    @field_validator("importance_weights", "kind_weights")
    @classmethod
    def _not_negative(cls, table: dict[str, float]) -> dict[str, float]:
        if any(weight < 0.0 for weight in table.values()):
            raise ValueError("weights are >= 0; the sign is in a criterion's polarity")
        return table

    @model_validator(mode="after")
    def _consistent(self) -> Aggregation:
        if self.clip is not None and self.clip[0] >= self.clip[1]:
            raise ValueError("clip needs its low end below its high end")
        if self.missing in ("skip", "pessimistic") and self.min_coverage is None:
            raise ValueError(f"missing={self.missing!r} makes a number of failed judgements: give min_coverage")
        if self.rating_scale[0] >= self.rating_scale[1]:
            raise ValueError("rating_scale needs its low end below its high end")
        if self.clip is not None and self.floor is not None and self.floor > self.clip[0]:
            raise ValueError(f"the floor {self.floor:g} is above the lowest value {self.clip[0]:g}")
        return self

    @property
    def fingerprint(self) -> str:
        """Content fingerprint of the options."""
        return fingerprint(self.model_dump(mode="json"))

    @property
    def domain(self) -> tuple[float, float]:
        """Lowest and highest v of a criterion."""
        return (-1.0, 1.0) if self.value == "signed" else (0.0, 1.0)

    def changed(self, **options: object) -> Aggregation:
        """These options with some of them changed, validated anew. Raises ConfigError naming the option."""
        try:
            return Aggregation.model_validate({**self.model_dump(), **options})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "aggregation"
            raise ConfigError(f"{place}: {first['msg']}", hint="see rubricate.rewardmodels.Aggregation") from None

    def weight_of(self, criterion: Criterion) -> float:
        """The weight that counts for a criterion. Raises ConfigError where its table has none for it."""
        if criterion.weight == 0.0 or self.weights == "given":
            return criterion.weight
        if self.weights == "equal":
            return 1.0
        if self.weights == "importance":
            found = None if criterion.importance is None else self.importance_weights.get(criterion.importance)
        else:
            found = None if criterion.kind is None else self.kind_weights.get(criterion.kind)
        if found is None:
            found = self.weight_default
        if found is None:
            raise ConfigError(
                f"criterion {criterion.id!r} has no {self.weights}, from which this aggregation takes its weight",
                hint=f"set its {self.weights}, pass weight_default=..., or use weights='given'",
            )
        return found

    def finish(self, combined: float) -> float:
        """A combined value, mapped by `scale` and `shift` and clipped."""
        value = self.scale * combined + self.shift
        if self.clip is not None:
            value = min(max(value, self.clip[0]), self.clip[1])
        return value

    def normalise_rating(self, rating: float) -> float:
        """A rating of implicit mode as a value, before scale and clip.

        Raises ValueError for a rating outside `rating_scale`: it is never clamped.
        """
        low, high = self.rating_scale
        if not math.isfinite(rating) or not low <= rating <= high:
            raise ValueError(f"the rating {rating:g} is outside the scale {low:g} to {high:g}")
        return rating / high if self.normaliser == "over_max" else (rating - low) / (high - low)
