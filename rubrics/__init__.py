"""Criteria, rubrics and their formats."""

from rubricate.rubrics.criterion import (
    BinaryScale,
    Criterion,
    CriterionKind,
    Importance,
    Level,
    NumericScale,
    OrdinalScale,
    Polarity,
    Provenance,
    Scale,
    VerifierSpec,
)
from rubricate.rubrics.rubric import Group, Rubric, Scope, compose

__all__ = [
    "BinaryScale",
    "Criterion",
    "CriterionKind",
    "Group",
    "Importance",
    "Level",
    "NumericScale",
    "OrdinalScale",
    "Polarity",
    "Provenance",
    "Rubric",
    "Scale",
    "Scope",
    "VerifierSpec",
    "compose",
]
