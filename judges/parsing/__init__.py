"""Reading of judges' replies: verdicts, scores and preferences in the shapes that real models write.

What is ambiguous is a failure (ParseError), never a guess.
"""

from rubricate.judges.parsing.criteria import (
    CriterionScores,
    CriterionVerdicts,
    parse_criterion_scores,
    parse_criterion_verdicts,
)
from rubricate.judges.parsing.objects import JsonSpan, find_json
from rubricate.judges.parsing.preference import parse_preference
from rubricate.judges.parsing.reason import parse_reason
from rubricate.judges.parsing.reasoning import strip_reasoning
from rubricate.judges.parsing.score import parse_score
from rubricate.judges.parsing.scores import parse_scores
from rubricate.judges.parsing.verdict import parse_verdict

__all__ = [
    "CriterionScores",
    "CriterionVerdicts",
    "JsonSpan",
    "find_json",
    "parse_criterion_scores",
    "parse_criterion_verdicts",
    "parse_preference",
    "parse_reason",
    "parse_score",
    "parse_scores",
    "parse_verdict",
    "strip_reasoning",
]
