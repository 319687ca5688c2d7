"""Counting votes: majorities, both orders of a pair, when a vote is decided, and rewards made of comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rubricate.comparisons import Comparison, GroupScores, Order, Preferred, Ranking, Vote, ranks_of
from rubricate.errors import ConfigError
from rubricate.judges.base import failure
from rubricate.types import Failure, FailureKind

__all__ = [
    "POLICIES",
    "Policy",
    "Settled",
    "baseline_reward",
    "comparison_reward",
    "debiased",
    "group_rewards",
    "is_decided",
    "majority",
    "settle",
    "win_rate",
]

Policy = Literal["consistent-or-tie", "consistent-or-fail", "majority", "majority-or-tie", "either-order"]
"""How votes become a winner.

- `consistent-or-tie`: the majority of each order; a winner needs both orders, a disagreement is a tie.
- `consistent-or-fail`: the same, but a disagreement, or an order without a majority, is a failure.
- `majority`: the strict majority of all votes of all orders together; none is a failure.
- `majority-or-tie`: the same, but no majority is a tie.
- `either-order`: as `consistent-or-tie`, but where one order failed the other one alone decides. It lets a judge's
  liking for a position through.

Under all others, an order that was asked for and failed makes the comparison fail.
"""

POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, slots=True)
class Settled:
    """What votes come to: a winner or a failure, and whether the orders agreed (None where not both were read)."""

    winner: Preferred | None
    failure: Failure | None = None
    consistent: bool | None = None


def majority(votes: Sequence[str | None]) -> str | None:
    """The strict majority of the votes that are there, or None when no side has more than half of them."""
    there = [vote for vote in votes if vote is not None]
    if not there:
        return None
    side, count = Counter(there).most_common(1)[0]
    return side if 2 * count > len(there) else None


def debiased(forward: float | None, reversed_: float | None) -> float | None:
    """P(first is better) out of both orders: (forward + 1 - reversed) / 2; None where one order is missing.

    Args:
        forward: P(the response shown first is better) as given, in [0, 1].
        reversed_: the same with the responses shown the other way round.
    """
    return None if forward is None or reversed_ is None else (forward + 1.0 - reversed_) / 2.0


def settle(orders: Mapping[Order, Sequence[Vote]], policy: Policy, min_votes: int = 1) -> Settled:
    """What the votes of one order, or of two, come to.

    Args:
        orders: the votes by order; every order that was asked for is there, with at least one vote.
        policy: see `Policy`.
        min_votes: readable votes that an order needs; with fewer it failed.
    """
    failed = {name: _why(votes) for name, votes in orders.items() if _readable(votes) < min_votes}
    if failed and (policy != "either-order" or len(failed) == len(orders)):
        return Settled(None, next(iter(failed.values())))
    sides = {
        name: majority([vote.winner for vote in votes]) for name, votes in orders.items() if name not in failed
    }
    found = set(sides.values())
    consistent = (len(found) == 1 and None not in found) if len(sides) == 2 else None
    if policy in ("majority", "majority-or-tie"):
        winner = _side(majority([vote.winner for votes in orders.values() for vote in votes]))
        return _or(winner, "majority-or-tie" == policy, "no side has a majority of the votes", consistent)
    winner = _side(found.pop()) if len(found) == 1 else None
    return _or(winner, policy != "consistent-or-fail", "the orders disagree, or one has no majority", consistent)


def _or(winner: Preferred | None, tie: bool, message: str, consistent: bool | None) -> Settled:
    if winner is not None or tie:
        return Settled(winner or "tie", None, consistent)
    return Settled(None, failure(FailureKind.AMBIGUOUS, message), consistent)


def _side(side: str | None) -> Preferred | None:
    sides: dict[str | None, Preferred] = {"first": "first", "second": "second", "tie": "tie"}
    return sides.get(side)


def _readable(votes: Sequence[Vote]) -> int:
    return sum(vote.winner is not None for vote in votes)


def _why(votes: Sequence[Vote]) -> Failure:
    failures = [vote.failure for vote in votes if vote.failure is not None]
    return failures[0] if failures else failure(FailureKind.INCOMPLETE, "too few votes could be read")


def is_decided(votes: Sequence[str | None], remaining: int, min_votes: int = 1) -> bool:
    """Whether the majority of a vote can no longer change, whatever the remaining votes are, failures included.

    A vote in which the readable ones can no longer be enough is decided as well: it failed.

    Args:
        votes: the votes so far, None for one that failed.
        remaining: votes still to come.
        min_votes: readable votes that are needed; before they are there nothing is decided.
    """
    counts = Counter(vote for vote in votes if vote is not None)
    there = counts.total()
    if remaining == 0 or there + remaining < min_votes:
        return True
    if there < min_votes:
        return False
    most = max(counts.values(), default=0)
    # A majority falls if all others vote against it; one that is missing comes if all others join the strongest.
    return 2 * most > there + remaining or 2 * most + remaining <= there


def win_rate(outcomes: Sequence[str | None], of: str, *, tie: str = "tie") -> tuple[float | None, int]:
    """Share of comparisons that `of` won, ties half, and how many comparisons that is.

    Failed comparisons (None) are left out: they are neither a loss nor half a win. The share is None without any.
    """
    there = [outcome for outcome in outcomes if outcome is not None]
    if not there:
        return None, 0
    return sum(0.5 if outcome == tie else float(outcome == of) for outcome in there) / len(there), len(there)


def comparison_reward(comparison: Comparison, tie: float = 0.5) -> float | None:
    """1 where the first response won, 0 where it lost, `tie` for a tie; None for a failed comparison."""
    if not 0.0 <= tie <= 1.0:
        raise ConfigError(f"tie is {tie}", hint="use a number in [0, 1]")
    return None if comparison.winner is None else {"first": 1.0, "second": 0.0, "tie": tie}[comparison.winner]


def baseline_reward(comparison: Comparison) -> float | None:
    """Share of the two orders in which the first response beats the second: 0, 0.5 or 1.

    The online policy reward of Rubric-ARM (2602.01511), where the second response is a greedy baseline. An order's
    winner is the majority of its votes; None unless both orders were read.
    """
    orders = {order: [v.winner for v in comparison.votes if v.order == order] for order in ("given", "swapped")}
    if not all(any(winner is not None for winner in winners) for winners in orders.values()):
        return None
    return sum(majority(winners) == "first" for winners in orders.values()) / 2


_WAYS = ("scale", "min-max", "rank")


def group_rewards(
    scored: GroupScores | Ranking, how: Literal["scale", "min-max", "rank"] = "rank"
) -> dict[str, float | None]:
    """A reward in [0, 1] for each rollout id; None stays None.

    Args:
        scored: scores of a group, or a ranking.
        how: `scale` maps the ends of the scale to 0 and 1 (GroupScores, and net win rates from [-1, 1]);
            `min-max` maps the lowest and highest score of the group to 0 and 1, and a group without differences
            to 0.5; `rank` maps the last rank to 0 and the first to 1, ties to their mean, one alone to 0.5.

    Raises ConfigError for another `how`, and for `scale` with Bradley-Terry strengths, which have no ends.
    """
    if how not in _WAYS:
        raise ConfigError(f"there is no reward {how!r} for a group", hint=f"use one of {', '.join(_WAYS)}")
    if how == "scale":
        low, high = _ends(scored)
        return {id: None if score is None else (score - low) / (high - low) for id, score in scored.scores.items()}
    if how == "min-max":
        values = dict(scored.scores)
    else:
        ranks = ranks_of(scored.scores)
        values = {id: None if rank is None else -rank for id, rank in ranks.items()}
    there = [value for value in values.values() if value is not None]
    if not there:
        return dict.fromkeys(values)
    low, high = (min(there), max(there)) if how == "min-max" else (-float(len(there)), -1.0)
    return {
        id: None if value is None else (value - low) / (high - low) if high > low else 0.5
        for id, value in values.items()
    }


def _ends(scored: GroupScores | Ranking) -> tuple[float, float]:
    if isinstance(scored, GroupScores):
        return scored.low, scored.high
    if scored.rating != "net-win-rate":
        raise ConfigError(f"{scored.rating} ratings have no ends", hint="use how='min-max' or how='rank'")
    return -1.0, 1.0
