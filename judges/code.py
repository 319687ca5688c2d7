"""The judge that is code: criteria with a verifier."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rubricate.data.records import Rollout
from rubricate.errors import RubricateError, VerifierError
from rubricate.judges.base import CriteriaJudge, failure, failure_of
from rubricate.judges.verifiers import Check, Input, check_verifier, run_verifier_async
from rubricate.judges.view import View, get_view, name_of, prompt_text
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import FailureKind, Judgement, Verdict, fingerprint
from rubricate.version import __version__

__all__ = ["VerifierJudge"]


class VerifierJudge(CriteriaJudge):
    """Runs each criterion's verifier on the view of the response.

    A verifier that cannot run or cannot decide is a failed verdict. A criterion without a verifier fails too,
    with a message that says which judge is missing.
    """

    def __init__(self, *, view: str | View = "final") -> None:
        self.view = get_view(view)
        self.name = "verifiers"

    @property
    def fingerprint(self) -> str:
        """Of the view and of this package's version, since the checks are its code."""
        return fingerprint(["verifiers", __version__, name_of(self.view)])

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            response = self.view(rollout)
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        given = Input(response, prompt_text(rollout), rollout.reference, rollout.finish)
        # Nearly all checks are over at once; those that wait for a process wait together.
        return Judgement(tuple(await asyncio.gather(*(self._check(criterion, given) for criterion in criteria))))

    def check(self, rubric: Rubric) -> None:
        """Raises VerifierError, naming the criterion, for an unknown verifier or wrong arguments."""
        for criterion in rubric.criteria:
            if criterion.verifier is None:
                continue
            try:
                check_verifier(criterion.verifier.name, criterion.verifier.args)
            except VerifierError as error:
                raise VerifierError(f"criterion {criterion.id!r}: {error.message}", hint=error.hint) from error

    async def _check(self, criterion: Criterion, given: Input) -> Verdict:
        spec = criterion.verifier
        if spec is None:
            why = failure(FailureKind.REQUEST, "this criterion has no verifier and there is no model to judge it")
            return Verdict.failed(criterion.id, why, judge=self.name)
        judge = f"verifier:{spec.name}"
        try:
            check = await run_verifier_async(spec.name, spec.args, given)
            score = _score(check)
        except RubricateError as error:
            return Verdict.failed(criterion.id, failure_of(error), judge=judge)
        return Verdict(criterion.id, score, raw="met" if check.met else "unmet", reason=check.reason, judge=judge)


def _score(check: Check) -> float:
    return float(check.met) if check.score is None else check.score
