"""Scores of responses by a rubric that is being written: unknown verdicts are left out, never taken for "no"."""

from __future__ import annotations

from dataclasses import dataclass

from rubricate.rubrics.criterion import Polarity
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Judgement, Status

__all__ = ["Scored", "weighted_score"]


@dataclass(frozen=True, slots=True)
class Scored:
    """What a response is worth by a rubric.

    Attributes:
        score: weighted mean of what is known, at most 1; None where nothing that is rewarded is known.
        coverage: share of the applicable criteria's weight that is known, in [0, 1].
    """

    score: float | None
    coverage: float


def weighted_score(rubric: Rubric, judgement: Judgement) -> Scored:
    """r = sum w V / sum w over the known verdicts (2509.21500); penalties subtract, and are not in the divisor.

    Criteria that do not apply are in neither sum. One without a verdict, or whose verdict failed, is unknown.
    """
    found = {verdict.criterion_id: verdict for verdict in judgement.verdicts}
    total = divisor = known = applicable = 0.0
    for one in rubric.criteria:
        verdict = found.get(one.id)
        if verdict is not None and verdict.status is Status.NOT_APPLICABLE:
            continue
        applicable += one.weight
        if verdict is None or verdict.score is None:
            continue
        known += one.weight
        penalty = one.polarity is Polarity.PENALTY
        total += -one.weight * verdict.score if penalty else one.weight * verdict.score
        divisor += 0.0 if penalty else one.weight
    return Scored(total / divisor if divisor else None, known / applicable if applicable else 0.0)
