"""rubricate as the benchmarks use it: a judge by name, and a reward on top."""

from __future__ import annotations

from rubricate.chat import Limits, connect
from rubricate.judges import CriterionJudge, LogprobJudge
from rubricate.rewardmodels import Aggregation, RubricReward
from rubricate.rubrics import Rubric

__all__ = ["JUDGES", "make_reward"]

JUDGES = ("reasoned", "one-call", "logprob")
"""Reasons and a call a criterion; reasons and one call for all; the first token's log-probability."""


def make_reward(
    model: str, judge: str, rubric: Rubric, *, limits: Limits | None = None, deadline: float | None = 600.0
) -> RubricReward:
    """A reward of clipped weighted sums, by the judge (one of `JUDGES`) on the model of that name."""
    chat = connect(model, limits=limits)
    if judge == "logprob":
        judges = LogprobJudge(chat)
    else:
        judges = CriterionJudge(chat, criteria_per_call=1 if judge == "reasoned" else None)
    return RubricReward(judges, rubric, aggregation=Aggregation(clip=(0.0, 1.0)), deadline=deadline)
