"""Group statistics that leave masked rewards out: what a trainer would make of a group's rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rubricate.errors import ConfigError

__all__ = ["GroupAdvantages", "group_advantages"]

_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class GroupAdvantages:
    """The advantages of one group.

    Attributes:
        advantages: one a reward, in order; None for a masked reward, and for all in a degenerate group.
        mean, std: over the rewards that are there (population standard deviation), None in a degenerate group.
        flag: `degenerate` when fewer than two rewards are there, `zero_variance` when they do not differ (the
            advantages are 0 and teach nothing), else "".
    """

    advantages: tuple[float | None, ...]
    mean: float | None
    std: float | None
    flag: Literal["", "degenerate", "zero_variance"] = ""


def group_advantages(rewards: Sequence[float | None]) -> GroupAdvantages:
    """(reward - mean) / standard deviation over the rewards that are there (GRPO, 2402.03300, without its epsilon).

    A masked reward (None) moves neither mean nor deviation. Differences that are rounding noise, up to 1e-9 of the
    largest reward, count as none. Raises ConfigError for a reward that is not finite.
    """
    there = [reward for reward in rewards if reward is not None]
    if not all(math.isfinite(reward) for reward in there):
        raise ConfigError("a reward is not finite", hint="mask it (None), or find out where it comes from")
    if len(there) < 2:
        return GroupAdvantages((None,) * len(rewards), None, None, "degenerate")
    mean = math.fsum(there) / len(there)
    std = math.sqrt(math.fsum((reward - mean) ** 2 for reward in there) / len(there))
    if std <= _NOISE * max(abs(reward) for reward in there):
        return GroupAdvantages(tuple(None if r is None else 0.0 for r in rewards), mean, 0.0, "zero_variance")
    return GroupAdvantages(tuple(None if r is None else (r - mean) / std for r in rewards), mean, std)
