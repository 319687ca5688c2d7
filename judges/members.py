"""What combinators share: asking a member judge without being broken by it, and words for what it said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextvars import ContextVar

from rubricate.chat.timing import remaining, settle
from rubricate.data.records import Rollout
from rubricate.judges.base import CriteriaJudge, failure, failure_of
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Status, Usage, Verdict

__all__ = ["ask", "in_words", "is_outage", "probability_of", "summed", "vote"]

log = logging.getLogger(__name__)

_GRACE_S = 0.05  # members end their own calls at the deadline; one that does not is left behind so much later
_LEVELS, _TURNS = 4, 6  # nested combinators whose order is sure, and the turns of the loop one needs to hand over
# How many combinators are around this one. Inner ones wait less, so that what they have still reaches the outer.
_DEPTH: ContextVar[int] = ContextVar("rubricate_member_depth", default=0)


async def ask(judge: CriteriaJudge, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
    """What a member says: one verdict a criterion, in order. A member that raises, or has not answered by the
    deadline, has failed, and takes nobody with it; what it leaves out, or says twice in two ways, is a failed
    verdict."""
    left, depth = remaining(), _DEPTH.get()
    if left is None:
        return await _answer(judge, rollout, criteria)
    token = _DEPTH.set(depth + 1)
    try:
        task = asyncio.ensure_future(_answer(judge, rollout, criteria))
    finally:
        _DEPTH.reset(token)
    try:
        await asyncio.wait({task}, timeout=left + _GRACE_S / 2**depth)
        if not task.done():
            # Where the loop was held up, inner and outer waits end together: the inner ones answer first.
            await settle(_TURNS * max(_LEVELS - depth, 0))
        if task.done():
            return task.result()
    finally:
        task.cancel()
    late = failure(FailureKind.DEADLINE, "this judge had not answered by the deadline", retryable=True)
    return judge.fail_all(criteria, late)


async def _answer(judge: CriteriaJudge, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
    try:
        judgement = await judge.judge_criteria(rollout, criteria)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():  # it is we who are cancelled, not something inside the member
            raise
        log.error("judge %s gave up on the rollout %r", judge.name, rollout.id)
        return judge.fail_all(criteria, failure(FailureKind.INTERNAL, "the judge's work was cancelled inside it"))
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
