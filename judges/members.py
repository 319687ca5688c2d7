"""What combinators share: asking a member judge without being broken by it, and words for what it said."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rubricate.data.records import Rollout
from rubricate.judges.base import CriteriaJudge, failure, failure_of
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Status, Usage, Verdict

__all__ = ["ask", "in_words", "is_outage", "probability_of", "summed", "vote"]

log = logging.getLogger(__name__)


async def ask(judge: CriteriaJudge, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
    """What a member says: one verdict a criterion, in order. A member that raises has failed, and takes nobody
    with it; what it leaves out, or says twice in two ways, is a failed verdict."""
    try:
        judgement = await judge.judge_criteria(rollout, criteria)
    except Exception as error:
        log.error("judge %s failed on the rollout %r", judge.name, rollout.id, exc_info=error)
        return judge.fail_all(criteria, failure_of(error))
    if [verdict.criterion_id for verdict in judgement.verdicts] == [criterion.id for criterion in criteria]:
        return judgement
    found: dict[str, Verdict] = {}
    for verdict in judgement.verdicts:
        known = found.setdefault(verdict.criterion_id, verdict)
        if (known.status, known.score) != (verdict.status, verdict.score):
            why = failure(FailureKind.AMBIGUOUS, "the judge gave contradictory verdicts")
            found[verdict.criterion_id] = Verdict.failed(verdict.criterion_id, why, judge=judge.name)
    missing = failure(FailureKind.INCOMPLETE, "the judge gave no verdict on this criterion")
    verdicts = (found.get(c.id) or Verdict.failed(c.id, missing, judge=judge.name) for c in criteria)
    return Judgement(tuple(verdicts), usage=judgement.usage)


def summed(judgements: Sequence[Judgement]) -> Usage:
    """What they cost together."""
    return sum((judgement.usage for judgement in judgements), Usage())


def probability_of(verdict: Verdict) -> float | None:
    """P(met) where the judge gives one, else the score; None without a score."""
    return verdict.score if verdict.probability is None or verdict.score is None else verdict.probability


def vote(criterion: Criterion, score: float) -> float:
    """A score as a vote: 1, 0 or (undecided) 0.5 on a binary criterion, the score itself on any other."""
    if not isinstance(criterion.scale, BinaryScale):
        return score
    return 0.5 if score == 0.5 else float(score > 0.5)


def in_words(criterion: Criterion, verdict: Verdict) -> str:
    """A verdict in a word or two: `met`, `unmet 0.31`, `does not apply`, `failed (server)`."""
    if verdict.failure is not None:
        return f"failed ({verdict.failure.kind.value})"
    if verdict.status is Status.NOT_APPLICABLE or verdict.score is None:
        return "does not apply"
    if not isinstance(criterion.scale, BinaryScale):
        return str(verdict.raw) if verdict.raw is not None else f"{verdict.score:.2f}"
    word = {1.0: "met", 0.0: "unmet"}.get(vote(criterion, verdict.score), "undecided")
    return word if verdict.score in (0.0, 1.0) else f"{word} {verdict.score:.2f}"


def is_outage(why: Failure) -> bool:
    """A failure that is not the response's doing."""
    return why.cause is FailureCause.INFRASTRUCTURE
