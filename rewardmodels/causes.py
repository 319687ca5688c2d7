"""Whose doing a failed judgement is, settled by what became of its siblings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from rubricate.rubrics import Rubric
from rubricate.types import RESPONSE_KINDS, FailureCause, Status, Verdict

__all__ = ["Judged", "Siblings"]

_OVERALL = "the whole rubric"


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on one row: one a criterion, in rubric order, and the one on the whole rubric."""

    verdicts: tuple[Verdict, ...]
    overall: Verdict | None = None

    @property
    def open(self) -> bool:
        """Whether a failure's cause depends on the row's siblings."""
        told = self.verdicts if self.overall is None else (*self.verdicts, self.overall)
        return any(_doubtful(verdict) for verdict in told)


class Siblings:
    """Counts what was judged in one call, and says whose doing each failure is.

    A judge that could not read, or could not fit, one response while it judged others was stopped by that response;
    one that judged nothing is broken. In detail, for a failure of a kind that a response can bring about:

    - Where the same judge was asked the same question about other responses, these decide: if any of them was
      judged, the response is the cause, else the infrastructure (the criterion, or the judge).
    - Otherwise anything else that this judge judged in the call decides: other criteria, other rows.

    Servers, timeouts, budgets, verifiers and bugs are never the response's doing.
    """

    def __init__(self) -> None:
        self._judged: Counter[int] = Counter()
        self._doubtful: Counter[int] = Counter()
        self._judged_by: Counter[str] = Counter()

    def add(self, rubric: Rubric, row: Judged) -> None:
        """Count a row in."""
        for question, verdict in _questions(rubric, row):
            if verdict.status is not Status.FAILED:
                self._judged[question] += 1
                self._judged_by[verdict.judge] += 1
            elif _doubtful(verdict):
                self._doubtful[question] += 1

    def settle(self, rubric: Rubric, row: Judged) -> Judged:
        """The row, which was counted in, with the cause of each failure set."""
        if not row.open:
            return row
        settled = [self._settled(question, verdict) for question, verdict in _questions(rubric, row)]
        overall = settled.pop() if row.overall is not None else None
        return Judged(tuple(settled), overall)

    def _settled(self, question: int, verdict: Verdict) -> Verdict:
        failure = verdict.failure
        if failure is None or not _doubtful(verdict):
            return verdict
        asked = self._judged[question] + self._doubtful[question]
        if asked > 1:
            by_response = self._judged[question] > 0
        else:
            by_response = self._judged_by[verdict.judge] > 0
        cause = FailureCause.RESPONSE if by_response else FailureCause.INFRASTRUCTURE
        return verdict if failure.cause is cause else replace(verdict, failure=replace(failure, cause=cause))


def _doubtful(verdict: Verdict) -> bool:
    return verdict.failure is not None and verdict.failure.kind in RESPONSE_KINDS


def _questions(rubric: Rubric, row: Judged) -> list[tuple[int, Verdict]]:
    """What each verdict answers, hashed; criteria of two rubrics are the same question if id and text are."""
    pairs: list[tuple[int, Verdict]] = []
    texts = {criterion.id: criterion.text for criterion in rubric.criteria}
    for verdict in row.verdicts:
        pairs.append((hash((verdict.judge, verdict.criterion_id, texts[verdict.criterion_id])), verdict))
    if row.overall is not None:
        pairs.append((hash((row.overall.judge, _OVERALL)), row.overall))
    return pairs
