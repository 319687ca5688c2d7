"""What tests of filters share: rubrics in one line, and judges of pairs that follow a rule. Imported as
`filter_cases`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rubricate.comparisons import Comparison, Preferred, Vote
from rubricate.data import Rollout
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.filters import ScoreTable
from rubricate.types import Failure, FailureCause, FailureKind, Usage

__all__ = ["OUTAGE", "RulePairJudge", "criterion", "rubric", "table"]

OUTAGE = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "the server is away", True)


def criterion(id: str, text: str = "", **fields: object) -> Criterion:
    """A criterion whose text says its id, unless another is given."""
    return Criterion.model_validate({"id": id, "text": text or f"The response does what {id} asks for.", **fields})


def rubric(*criteria: Criterion | str, id: str = "") -> Rubric:
    """A rubric of criteria, or of their ids."""
    made = tuple(one if isinstance(one, Criterion) else criterion(one) for one in criteria)
    return Rubric(criteria=made, id=id)


def table(scores: dict[str, Sequence[Sequence[float | None]]]) -> ScoreTable:
    """A table of `{criterion: [[repeat, ...] of each response]}`; None is a failed judgement."""
    arrays = [[[np.nan if x is None else x for x in row] for row in rows] for rows in scores.values()]
    stacked = np.array(arrays, dtype=np.float64).transpose(1, 0, 2)
    failed = np.isnan(stacked).sum(axis=(0, 2)).astype(np.int64)
    return ScoreTable(tuple(scores), stacked, failed, np.zeros(len(scores), dtype=np.int64))


Rule = Callable[[str, str, str, str], "Preferred | None"]


class RulePairJudge:
    """Judges pairs by a rule of (prompt, text shown first, text shown second, criteria's texts), which gives the
    winner as it was shown; None is a failed vote. `calls` keeps what was asked."""

    def __init__(self, rule: Rule, *, both_orders: bool = True, votes: bool = True) -> None:
        self.rule = rule
        self.name = "rule"
        self.fingerprint = "rule"
        self.both_orders = both_orders
        self.votes = votes
        self.calls: list[tuple[str, str, str, str]] = []

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        a, b = str(first.response), str(second.response)
        text = "\n".join(one.text for one in rubric.criteria) if rubric else ""
        given = self._ask(str(first.prompt), a, b, text)
        votes = [_vote(given, "given", a, b)]
        if self.both_orders:
            back: dict[Preferred, Preferred] = {"first": "second", "second": "first", "tie": "tie"}
            said = self._ask(str(first.prompt), b, a, text)
            votes.append(_vote(None if said is None else back[said], "swapped", b, a))
        winners = {vote.winner for vote in votes}
        kept = tuple(votes) if self.votes else ()
        usage = Usage(calls=len(votes))
        if None in winners:
            return Comparison.failed(OUTAGE, votes=kept, usage=usage)
        winner: Preferred = votes[0].winner or "tie"
        return Comparison(winner if len(winners) == 1 else "tie", votes=kept, usage=usage)

    def _ask(self, prompt: str, first: str, second: str, text: str) -> Preferred | None:
        self.calls.append((prompt, first, second, text))
        return self.rule(prompt, first, second, text)


def _vote(winner: Preferred | None, order: str, first: str, second: str) -> Vote:
    reply = f"{order}: {first} against {second}"
    shown = "given" if order == "given" else "swapped"
    return Vote(shown, 0, winner, None if winner else OUTAGE, reply=reply)
