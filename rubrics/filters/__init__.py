"""Filters of rubrics and criteria: composable, and each says why it dropped something.

result = apply_sync([Form(), SelfContained(), Discrimination(judge)], cases)
"""

from rubricate.rubrics.filters.answers import Misalignment, Validity, critic_labels
from rubricate.rubrics.filters.base import (
    Case,
    Dropped,
    Filter,
    Filtered,
    Flagged,
    Said,
    Trace,
    apply,
    apply_sync,
    without,
)
from rubricate.rubrics.filters.coding_rate import Selection, coding_rate, select_diverse, select_texts
from rubricate.rubrics.filters.consistency import LabelConsistency, PairJudgeLike, hold_out
from rubricate.rubrics.filters.judging import judge_pool
from rubricate.rubrics.filters.pools import Correctness, Discrimination
from rubricate.rubrics.filters.redundancy import Redundancy
from rubricate.rubrics.filters.rules import Form, FormRules, Leakage, SelfContained
from rubricate.rubrics.filters.table import ScoreTable, excess_variance, permutation_p
from rubricate.rubrics.filters.whitening import whiten, whitened_weights

__all__ = [
    "Case",
    "Correctness",
    "Discrimination",
    "Dropped",
    "Filter",
    "Filtered",
    "Flagged",
    "Form",
    "FormRules",
    "LabelConsistency",
    "Leakage",
    "Misalignment",
    "PairJudgeLike",
    "Redundancy",
    "Said",
    "ScoreTable",
    "Selection",
    "SelfContained",
    "Trace",
    "Validity",
    "apply",
    "apply_sync",
    "coding_rate",
    "critic_labels",
    "excess_variance",
    "hold_out",
    "judge_pool",
    "permutation_p",
    "select_diverse",
    "select_texts",
    "whiten",
    "whitened_weights",
    "without",
]
