"""A criterion: one thing that a response does or does not do, and what that is worth."""

from __future__ import annotations

import enum
import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = [
    "BinaryScale",
    "Criterion",
    "CriterionKind",
    "Importance",
    "Level",
    "NumericScale",
    "OrdinalScale",
    "Polarity",
    "Provenance",
    "Scale",
    "VerifierSpec",
]


class Polarity(enum.StrEnum):
    """Whether meeting a criterion is good (`reward`) or bad (`penalty`)."""

    REWARD = "reward"
    PENALTY = "penalty"


class CriterionKind(enum.StrEnum):
    """Hard rules can be checked objectively; principles are matters of quality (OpenRubrics, 2510.07743)."""

    HARD_RULE = "hard_rule"
    PRINCIPLE = "principle"


class Importance(enum.StrEnum):
    """Importance categories of Rubrics as Rewards (2507.17746)."""

    ESSENTIAL = "essential"
    IMPORTANT = "important"
    OPTIONAL = "optional"
    PITFALL = "pitfall"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class BinaryScale(_Frozen):
    """Met or not met."""

    type: Literal["binary"] = "binary"


class Level(_Frozen):
    """One level of an ordinal scale. `value` is in the scale's own units; the score is min-max normalised."""

    label: str = Field(min_length=1)
    value: float
    description: str = ""


class OrdinalScale(_Frozen):
    """Named levels, worst first, such as the 1-5 descriptions of Prometheus."""

    type: Literal["ordinal"] = "ordinal"
    levels: tuple[Level, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _ordered(self) -> OrdinalScale:
        values = [level.value for level in self.levels]
        if any(low >= high for low, high in zip(values, values[1:], strict=False)):
            raise ValueError("levels must be ordered from the lowest value to the highest, without ties")
        labels = [level.label for level in self.levels]
        if len(set(labels)) != len(labels):
            raise ValueError("level labels must differ")
        return self


class NumericScale(_Frozen):
    """A number from `low` to `high`; whole numbers only where `integer` is set."""

    type: Literal["numeric"] = "numeric"
    low: float = 0.0
    high: float = 1.0
    integer: bool = False

    @model_validator(mode="after")
    def _span(self) -> NumericScale:
        if self.low >= self.high:
            raise ValueError("low must be smaller than high")
        return self


Scale = Annotated[BinaryScale | OrdinalScale | NumericScale, Field(discriminator="type")]


def scale_range(scale: BinaryScale | OrdinalScale | NumericScale) -> tuple[float, float]:
    """Lowest and highest value in the scale's own units."""
    if isinstance(scale, OrdinalScale):
        return scale.levels[0].value, scale.levels[-1].value
    if isinstance(scale, NumericScale):
        return scale.low, scale.high
    return 0.0, 1.0


class VerifierSpec(_Frozen):
    """Name and arguments of the code check that decides a criterion."""

    name: str = Field(min_length=1)
    args: dict[str, Any] = Field(default_factory=dict)


class Provenance(_Frozen):
    """Where a criterion comes from."""

    generator: str = ""
    model: str = ""
    prompt_fingerprint: str = ""
    evidence: tuple[str, ...] = ()
    step: int | None = None


class Criterion(_Frozen):
    """One criterion of a rubric.

    A verdict says whether the criterion is *met*. Whether that is good is `polarity`, and only aggregation
    looks at it: `penalty` criteria describe an error, so meeting them costs.

    Attributes:
        id: unique in its rubric.
        text: what is to be judged, as a statement that a response meets or not.
        weight: finite and >= 0; the sign is in `polarity`.
        polarity: `reward` or `penalty`.
        kind: hard rule or principle, where known.
        importance: RaR category, where known.
        scale: binary (default), ordinal levels, or a numeric range.
        veto: when its verdict is adverse (reward criterion unmet, penalty criterion met), the reward is the floor.
        verifier: the code check that decides it; without one a judge does.
        condition: the criterion applies only where this holds; None for always.
        channel: declared axis it is reported under, such as `accuracy` or `style`.
        tags: free labels, such as HealthBench's.
        path: ids of the groups it sits in, outermost first (nested rubrics).
        provenance: generator, model, evidence, training step.
        metadata: further fields of the source format, kept for the way back.
    """

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    weight: float = Field(default=1.0, ge=0.0)
    polarity: Polarity = Polarity.REWARD
    kind: CriterionKind | None = None
    importance: Importance | None = None
    scale: Scale = Field(default_factory=BinaryScale)
    veto: bool = False
    verifier: VerifierSpec | None = None
    condition: str | None = None
    channel: str | None = None
    tags: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    provenance: Provenance | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("text", "id")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("weight", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool | str):
            raise ValueError("a weight is a number, not text, true or false")
        return value

    @property
    def sign(self) -> int:
        """+1 for reward criteria, -1 for penalties."""
        return 1 if self.polarity is Polarity.REWARD else -1

    def normalise(self, value: float) -> float:
        """A value in the scale's units as a score in [0, 1] (min-max over this scale).

        Raises ValueError for a value outside the scale: it is never clamped.
        """
        low, high = scale_range(self.scale)
        if not math.isfinite(value) or not low <= value <= high:
            raise ValueError(f"{value} is outside the scale {low:g} to {high:g}")
        return (value - low) / (high - low)
