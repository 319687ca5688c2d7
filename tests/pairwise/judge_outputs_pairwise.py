"""Runners for the schemas of `judge_outputs` about votes and both orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rubricate.comparisons import Order, Preferred, Vote
from rubricate.errors import ParseError
from rubricate.judges.votes import debiased, majority, settle, win_rate

Case = Mapping[str, Any]


def order_swap(case: Case) -> dict[str, object]:
    pairs = zip(case["forward"], case["reversed"], strict=True)
    preferences = [debiased(forward, backward) for forward, backward in pairs]
    return {"preferences": preferences, "incomplete": [i for i, p in enumerate(preferences) if p is None]}


def swapped_pair(case: Case) -> dict[str, object]:
    one, two = case["judgments"][0]["shown"]
    votes = dict[Order, Sequence[Vote]]()
    for judgment in case["judgments"]:
        shown: Sequence[str] = judgment["shown"]
        order: Order = "given" if shown[0] == one else "swapped"
        named = shown[0 if judgment["winner"] == "first" else 1]
        winner: Preferred = "first" if named == one else "second"
        votes[order] = [Vote(order, 0, winner)]
    settled = settle(votes, "consistent-or-fail")
    if settled.winner is None:
        assert settled.failure is not None
        raise ParseError(settled.failure.message, kind=settled.failure.kind.value)
    return {"winner": one if settled.winner == "first" else two}


def panel(case: Case) -> dict[str, object]:
    winner = majority(case["votes"])
    if winner is None:
        raise ParseError("no side has a majority", kind="ambiguous")
    return {"winner": winner}


def rate(case: Case) -> dict[str, object]:
    share, count = win_rate(case["outcomes"], case["of"])
    if share is None:
        raise ParseError("every comparison failed", kind="incomplete")
    return {"win_rate": share, "n": count}


RUNNERS: dict[str, Callable[[Case], Mapping[str, object]]] = {
    "order_swap": order_swap,
    "panel": panel,
    "swapped_pair": swapped_pair,
    "win_rate": rate,
}
