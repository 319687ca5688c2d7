"""Votes: majorities, policies over both orders, when a vote is decided, rewards made of comparisons."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.comparisons import Comparison, GroupScores, Order, Preferred, Ranking, Vote, ranks_of
from rubricate.errors import ConfigError
from rubricate.judges.votes import (
    POLICIES,
    Policy,
    baseline_reward,
    comparison_reward,
    debiased,
    group_rewards,
    is_decided,
    majority,
    settle,
    win_rate,
)
from rubricate.types import Failure, FailureCause, FailureKind, Status

DOWN = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "down")
Side = Preferred | None
SIDES: tuple[Side, ...] = ("first", "second", "tie", None)


def vote(order: Order, winner: Side, sample: int = 0) -> Vote:
    return Vote(order, sample, winner, None if winner else DOWN)


def both(given: str, swapped: str) -> dict[Order, list[Vote]]:
    """Votes from letters: f, s, t, and x for a failed one."""
    sides: dict[str, Side] = {"f": "first", "s": "second", "t": "tie", "x": None}
    return {
        "given": [vote("given", sides[letter]) for letter in given],
        "swapped": [vote("swapped", sides[letter]) for letter in swapped],
    }


@pytest.mark.parametrize(
    ("given", "swapped", "policy", "winner", "consistent"),
    [
        ("f", "f", "consistent-or-tie", "first", True),
        ("s", "s", "consistent-or-tie", "second", True),
        ("t", "t", "consistent-or-tie", "tie", True),
        ("f", "s", "consistent-or-tie", "tie", False),
        ("f", "t", "consistent-or-tie", "tie", False),
        ("f", "s", "consistent-or-fail", None, False),
        ("f", "x", "consistent-or-tie", None, None),
        ("x", "f", "majority", None, None),
        ("f", "x", "majority-or-tie", None, None),
        ("f", "x", "either-order", "first", None),
        ("x", "x", "either-order", None, None),
        ("f", "s", "either-order", "tie", False),
        ("ffs", "fff", "majority", "first", True),
        ("fff", "ssf", "majority", "first", False),
        ("fff", "ssf", "consistent-or-tie", "tie", False),
        ("f", "s", "majority", None, False),
        ("f", "s", "majority-or-tie", "tie", False),
        ("fs", "ff", "consistent-or-tie", "tie", False),
        ("fs", "fs", "consistent-or-fail", None, False),
    ],
)
def test_what_both_orders_come_to(
    given: str, swapped: str, policy: Policy, winner: Side, consistent: bool | None
) -> None:
    settled = settle(both(given, swapped), policy)
    assert (settled.winner, settled.consistent) == (winner, consistent)
    assert (settled.failure is None) == (winner is not None)


def test_a_single_order_says_nothing_of_consistency() -> None:
    settled = settle({"given": [vote("given", "first")]}, "consistent-or-tie")
    assert (settled.winner, settled.consistent) == ("first", None)


def test_too_few_readable_votes_are_a_failure_with_its_cause() -> None:
    settled = settle(both("ffxxx", "fffff"), "consistent-or-tie", min_votes=3)
    assert settled.winner is None and settled.failure == DOWN


votes = st.sampled_from(SIDES)


@given(st.lists(votes, min_size=1, max_size=5), st.lists(votes, min_size=1, max_size=5), st.sampled_from(POLICIES))
def test_no_policy_favours_a_side_or_an_order(one: list[Side], two: list[Side], policy: Policy) -> None:
    swap: dict[Side, Side] = {"first": "second", "second": "first", "tie": "tie", None: None}
    plain = settle({"given": [vote("given", v) for v in one], "swapped": [vote("swapped", v) for v in two]}, policy)
    turned: dict[Order, list[Vote]] = {
        "given": [vote("given", swap[v]) for v in two],
        "swapped": [vote("swapped", swap[v]) for v in one],
    }
    other = settle(turned, policy)
    assert other.winner == swap[plain.winner]
    assert other.consistent == plain.consistent


@given(st.lists(votes, max_size=5), st.integers(0, 3), st.integers(1, 3))
def test_a_decided_vote_cannot_change(so_far: list[Side], remaining: int, needed: int) -> None:
    def outcome(every: list[Side]) -> object:
        readable = sum(one is not None for one in every)
        return majority(every) if readable >= needed else "failed"

    ends = {outcome([*so_far, *more]) for more in itertools.product(SIDES, repeat=remaining)}
    assert is_decided(so_far, remaining, needed) == (len(ends) == 1)


@pytest.mark.parametrize(
    ("votes", "winner"),
    [
        (["A", "A", "B"], "A"),
        (["A", "B"], None),
        (["A", "A", "B", "tie"], None),
        ([None, "B"], "B"),
        ([], None),
        ([None], None),
    ],
)
def test_majority_is_strict(votes: list[str | None], winner: str | None) -> None:
    assert majority(votes) == winner


def test_a_missing_order_leaves_no_probability() -> None:
    assert debiased(0.7, 0.4) == pytest.approx(0.65)
    assert debiased(None, 0.1) is None and debiased(0.35, None) is None


def test_failed_comparisons_are_left_out_of_win_rates() -> None:
    assert win_rate(["A", "tie", None, "B", "A"], "A") == (0.625, 4)
    assert win_rate([None], "A") == (None, 0)


def comparison(given: str, swapped: str) -> Comparison:
    every = both(given, swapped)
    settled = settle(every, "consistent-or-tie")
    if settled.failure is not None:
        return Comparison.failed(settled.failure, votes=(*every["given"], *every["swapped"]))
    return Comparison(settled.winner, votes=(*every["given"], *every["swapped"]), consistent=settled.consistent)


def test_rewards_of_comparisons_keep_none() -> None:
    assert [comparison_reward(comparison(*pair)) for pair in ("ff", "ss", "fs", "fx")] == [1.0, 0.0, 0.5, None]
    assert [baseline_reward(comparison(*pair)) for pair in ("ff", "ss", "fs", "ft", "fx")] == [1, 0, 0.5, 0.5, None]
    with pytest.raises(ConfigError, match="tie is 2"):
        comparison_reward(comparison("f", "f"), tie=2)


def test_rewards_of_groups() -> None:
    scores = GroupScores({"a": 3.0, "b": None, "c": 9.0, "d": 3.0}, {"b": DOWN}, 1.0, 11.0)
    assert scores.ranks == {"a": 2.5, "b": None, "c": 1.0, "d": 2.5}
    assert group_rewards(scores, "scale") == {"a": 0.2, "b": None, "c": 0.8, "d": 0.2}
    assert group_rewards(scores, "min-max") == {"a": 0.0, "b": None, "c": 1.0, "d": 0.0}
    assert group_rewards(scores) == {"a": 0.25, "b": None, "c": 1.0, "d": 0.25}
    assert group_rewards(GroupScores({"a": None}, {"a": DOWN})) == {"a": None}
    assert group_rewards(Ranking({"a": -1.0, "b": 1.0}), "scale") == {"a": 0.0, "b": 1.0}
    with pytest.raises(ConfigError, match="no ends"):
        group_rewards(Ranking({"a": 0.1}, rating="bradley-terry"), "scale")


@given(st.dictionaries(st.text(max_size=3), st.none() | st.floats(-5, 5), max_size=6))
def test_ranks_add_up(scores: dict[str, float | None]) -> None:
    ranks = ranks_of(scores)
    there = [rank for rank in ranks.values() if rank is not None]
    assert sum(there) == pytest.approx(len(there) * (len(there) + 1) / 2)
    assert [id for id, rank in ranks.items() if rank is None] == [
        id for id, score in scores.items() if score is None
    ]


def test_types_refuse_numbers_without_a_judgement() -> None:
    with pytest.raises(ValueError, match="winner or a failure"):
        Vote("given", 0, None)
    with pytest.raises(ValueError, match="status ok"):
        Comparison("first", Status.FAILED, DOWN)
    with pytest.raises(ValueError, match="failure goes with"):
        Comparison(None, Status.FAILED)
    with pytest.raises(ValueError, match="missing score"):
        GroupScores({"a": None})
    with pytest.raises(ValueError, match="outside"):
        GroupScores({"a": 2.0})


@given(st.sampled_from(["ff", "ss", "fs", "tt", "fx"]))
def test_swapping_a_comparison_twice_is_the_comparison(letters: str) -> None:
    one = comparison(*letters)
    assert one.swapped().swapped() == one
    if one.winner in ("first", "second"):
        assert {one.winner, one.swapped().winner} == set(get_args(Preferred)) - {"tie"}


def test_another_way_to_reward_a_group_is_refused() -> None:
    with pytest.raises(ConfigError, match="rnk"):
        group_rewards(GroupScores({"a": 1.0}, {}), how="rnk")  # type: ignore[arg-type]  # what is tested
