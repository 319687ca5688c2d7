"""Arguments and wording that checks with a minimum and a maximum share."""

from __future__ import annotations

from pydantic import Field, model_validator

from rubricate.judges.verifiers.registry import Check, VerifierArgs

__all__ = ["AtLeastOne", "Range"]


class Range(VerifierArgs):
    """At least `min`, at most `max`, both included; one of them must be given. Equal ones mean exactly."""

    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.min is None and self.max is None:
            raise ValueError("argument 'min' or 'max' must be given")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("argument 'min' is larger than 'max'")
        return self

    def check(self, count: int, noun: str) -> Check:
        """Whether a count is within the range, with the reason. The check's `value` is the count."""
        met = (self.min is None or count >= self.min) and (self.max is None or count <= self.max)
        return Check(met, f"{count} {noun}, wanted {self.wanted()}", value=count)

    def wanted(self) -> str:
        """The range in words."""
        if self.min == self.max:
            return f"exactly {self.min}"
        parts = [f"at least {self.min}"] if self.min is not None else []
        return " and ".join([*parts, f"at most {self.max}"] if self.max is not None else parts)


class AtLeastOne(Range):
    """At least `min` (1 unless given), at most `max` where given."""

    min: int | None = Field(default=1, ge=0)
