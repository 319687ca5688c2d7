"""Which rewards are abnormally high: robust scores of rewards within a group, or over all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rubricate.errors import ConfigError

__all__ = ["abnormally_high", "robust_scores"]


def robust_scores(rewards: Sequence[float | None]) -> list[float | None]:
    """The modified z-scores of Iglewicz and Hoaglin (1993): .6745 (x - median) / MAD, of the known rewards.

    MAD is the median absolute deviation from the median. Where it is 0 (more than half are equal), the mean
    absolute deviation takes its place: (x - median) / (1.2533 mean |x - median|), as is usual. 0 where all are
    equal; None where a reward is not known.
    """
    known = np.array([reward for reward in rewards if reward is not None], dtype=np.float64)
    if not known.size:
        return [None] * len(rewards)
    _check(rewards)
    middle = float(np.median(known))
    away: NDArray[np.float64] = np.abs(known - middle)
    mad = float(np.median(away))
    scale = mad / 0.6745 if mad > 0 else 1.2533 * float(away.mean())
    return [None if reward is None else (reward - middle) / scale if scale > 0 else 0.0 for reward in rewards]


def abnormally_high(
    rewards: Sequence[float | None], *, z: float = 3.5, groups: Sequence[object] | None = None, least: int = 4
) -> list[int]:
    """Places of rewards that are abnormally high, the highest score first.

    Rubicon does not say what is abnormal; here (ours) it is a modified z-score of `z` or more, 3.5 being the usual
    bound. With `groups`, a label a reward, each is compared with its own group, such as the rollouts of its prompt,
    where that has `least` known rewards, and is not looked at otherwise. Unknown rewards are left out.

    Raises ConfigError where there are not as many groups as rewards, for a z that is not above 0, and for rewards
    that are not finite.
    """
    if not z > 0:
        raise ConfigError(f"z is {z}", hint="use a number above 0")
    if groups is not None and len(groups) != len(rewards):
        raise ConfigError(f"{len(groups)} groups for {len(rewards)} rewards", hint="give a group a reward")
    _check(rewards)
    labels = [0] * len(rewards) if groups is None else list(groups)
    found: list[tuple[float, int]] = []
    for label in dict.fromkeys(labels):
        places = [place for place, own in enumerate(labels) if own == label]
        own_rewards = [rewards[place] for place in places]
        if sum(reward is not None for reward in own_rewards) < least:
            continue
        scores = robust_scores(own_rewards)
        found += [
            (-score, at) for at, score in zip(places, scores, strict=True) if score is not None and score >= z
        ]
    return [place for _, place in sorted(found)]


def _check(rewards: Sequence[float | None]) -> None:
    if any(reward is not None and not math.isfinite(reward) for reward in rewards):
        raise ConfigError("a reward is not finite", hint="None says that it is not known")
