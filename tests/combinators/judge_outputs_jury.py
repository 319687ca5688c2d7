"""Runner for the schema of `judge_outputs` about a panel's agreement."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rubricate.data.records import Rollout
from rubricate.judges import ScriptedJudge
from rubricate.judges.jury import Ballot, Jury, mean_agreement
from rubricate.rubrics import Criterion

Case = Mapping[str, Any]


def says(score: float, response: str, criterion: Criterion) -> float:
    return score


def ballot(votes: Sequence[str]) -> Ballot:
    """The ballot of a jury whose members say A (met) or B (unmet)."""
    members = [ScriptedJudge(functools.partial(says, float(vote == "A"))) for vote in votes]
    jury = Jury(members, ties="met")
    poll = asyncio.run(jury.poll(Rollout("P", "R"), [Criterion(id="a", text="Is so.")]))
    return poll.ballots[0]


def panel_agreement(case: Case) -> dict[str, object]:
    mean, units = mean_agreement(ballot(votes) for votes in case["votes"])
    return {"agreement": mean, "units": units}


RUNNERS: dict[str, Callable[[Case], Mapping[str, object]]] = {"panel_agreement": panel_agreement}
