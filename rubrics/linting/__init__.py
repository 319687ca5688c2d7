"""The linter: what is wrong with a rubric before anything is spent on it. `lint` runs the rules in `rules()`."""

from rubricate.rubrics.linting import (
    duplication,
    polarity,
    prompting,
    references,
    scales,
    settings,
    verifying,
    weights,
    wording,
)
from rubricate.rubrics.linting.base import (
    Finding,
    Limits,
    Rule,
    Severity,
    VerifierCheck,
    VerifierFault,
    rules,
)
from rubricate.rubrics.linting.engine import alint, lint

# Imported for the rules that they register.
_RULES = (duplication, polarity, prompting, references, scales, settings, verifying, weights, wording)

__all__ = [
    "Finding",
    "Limits",
    "Rule",
    "Severity",
    "VerifierCheck",
    "VerifierFault",
    "alint",
    "lint",
    "rules",
]
