"""Rewards: aggregation of verdicts, reward functions, and the trainers' contracts they meet."""

from rubricate.rewardmodels.aggregation import KIND_WEIGHTS, RAR_V1_WEIGHTS, RAR_WEIGHTS, Aggregation
from rubricate.rewardmodels.arrays import Aggregated, Outcome, State, aggregate_arrays
from rubricate.rewardmodels.channels import GENERAL, OTHER
from rubricate.rewardmodels.groups import GroupAdvantages, group_advantages
from rubricate.rewardmodels.plan import Plan, make_plan
from rubricate.rewardmodels.presets import PRESETS, preset, preset_names
from rubricate.rewardmodels.reward import AsyncRubricReward, RubricReward
from rubricate.rewardmodels.scoring import (
    NodeScore,
    Score,
    aggregate,
    aggregate_many,
    clipped_mean,
    node_scores,
    value_range,
)

__all__ = [
    "GENERAL",
    "KIND_WEIGHTS",
    "OTHER",
    "PRESETS",
    "RAR_V1_WEIGHTS",
    "RAR_WEIGHTS",
    "Aggregated",
    "Aggregation",
    "AsyncRubricReward",
    "GroupAdvantages",
    "NodeScore",
    "Outcome",
    "Plan",
    "RubricReward",
    "Score",
    "State",
    "aggregate",
    "aggregate_arrays",
    "aggregate_many",
    "clipped_mean",
    "group_advantages",
    "make_plan",
    "node_scores",
    "preset",
    "preset_names",
    "value_range",
]
