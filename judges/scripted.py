"""A judge whose verdicts come from a function: for tests, dry runs and demonstrations. It costs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge, failure
from rubricate.judges.view import View, get_view
from rubricate.rubrics import Criterion
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict, fingerprint

__all__ = ["ScriptedJudge"]

Script = Callable[[str, Criterion], "bool | float | Failure | None"]


def always_met(response: str, criterion: Criterion) -> bool:
    """The default script."""
    return True


class ScriptedJudge(CriteriaJudge):
    """Says what a function says, and fails as often as it is told to.

    Args:
        script: from the view of the response and the criterion to met / not met, a score in [0, 1], a Failure, or
            None for "does not apply". A module-level function, if the judge is to pickle.
        failure_rate: share of verdicts that fail, in [0, 1]. Which ones depends on `seed`, the criterion and the
            response alone, so a run repeats to the letter.
        failure_kind: kind of those failures.
    """

    def __init__(
        self,
        script: Script = always_met,
        *,
        failure_rate: float = 0.0,
        failure_kind: FailureKind = FailureKind.SERVER,
        seed: int = 0,
        view: str | View = "final",
    ) -> None:
        if not 0.0 <= failure_rate <= 1.0:
            raise ConfigError(f"failure_rate is {failure_rate}", hint="use a share from 0 to 1")
        self.script = script
        self.failure_rate = failure_rate
        self.failure_kind = failure_kind
        self.seed = seed
        self.view = get_view(view)
        self.name = f"scripted:{getattr(script, '__name__', type(script).__name__)}"

    @property
    def fingerprint(self) -> str:
        """Of the script's name and the options; the function's body is not seen."""
        return fingerprint([self.name, self.failure_rate, self.failure_kind.value, self.seed])

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        response = self.view(rollout)
        verdicts = tuple(self._verdict(response, criterion) for criterion in criteria)
        return Judgement(verdicts, usage=Usage(calls=len(verdicts)))

    def _verdict(self, response: str, criterion: Criterion) -> Verdict:
        if self._draw(response, criterion.id) < self.failure_rate:
            why = failure(self.failure_kind, "scripted failure", retryable=True)
            return Verdict.failed(criterion.id, why, judge=self.name)
        said = self.script(response, criterion)
        if said is None:
            return Verdict.not_applicable(criterion.id, judge=self.name)
        if isinstance(said, Failure):
            return Verdict.failed(criterion.id, said, judge=self.name)
        return Verdict(criterion.id, float(said), judge=self.name)

    def _draw(self, response: str, criterion_id: str) -> float:
        text = f"{self.seed}\0{criterion_id}\0{response}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(text).digest()[:8]) / 2**64
