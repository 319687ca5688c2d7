"""Code and judge together on one criterion, as RLCF (2507.18624) scores the items that a check can verify."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.code import VerifierJudge
from rubricate.judges.members import ask
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Failure, Judgement, Status, Verdict, fingerprint

__all__ = ["CheckCounts", "MixedJudge"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """Verdicts since the judge was made (or counting began anew).

    Attributes:
        applied: verdicts that a check went into.
        failed: criteria with a verifier whose check gave no verdict.
        without: criteria that have no verifier, judged by the model alone.
    """

    applied: int = 0
    failed: int = 0
    without: int = 0


class MixedJudge(CriteriaJudge):
    """For criteria with a verifier the mean of check and judge, (judge + code) / 2; for the others the judge alone.

    RLCF's released code swallows an error and never applies its checks. Here a check that fails is a failed
    verdict, or by choice the judge's alone, as its reason then says; `counts` tells how often checks were applied.

    Args:
        judge: the judge of a model.
        code: runs the checks; by default a `VerifierJudge` with the judge's view.
        mode: `mean`, or `code_only` where the judge is not asked about criteria with a verifier.
        on_failed_check: `fail`, or `judge` to take the judge's verdict (in mode `mean` alone).

    Raises ConfigError for other modes.
    """

    def __init__(
        self,
        judge: CriteriaJudge,
        *,
        code: CriteriaJudge | None = None,
        mode: Literal["mean", "code_only"] = "mean",
        on_failed_check: Literal["fail", "judge"] = "fail",
    ) -> None:
        if mode not in ("mean", "code_only"):
            raise ConfigError(f"there is no mode {mode!r}", hint="use mean or code_only")
        if on_failed_check not in ("fail", "judge") or (mode, on_failed_check) == ("code_only", "judge"):
            raise ConfigError(
                f"on_failed_check is {on_failed_check!r}", hint="use fail, or, where the judge is asked too, judge"
            )
        self.code = code or VerifierJudge(view=judge.view)
        self.model_judge = judge
        self.mode = mode
        self.on_failed_check = on_failed_check
        self.view = judge.view
        self.name = f"{mode}({self.code.name}, {judge.name})"
        self._counts = CheckCounts()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Of both judges and the options."""
        parts = [self.code.fingerprint, self.model_judge.fingerprint, self.mode, self.on_failed_check]
        return fingerprint(["mixed", *parts])

    @property
    def counts(self) -> CheckCounts:
        """How often checks were applied, in this process."""
        with self._lock:
            return self._counts

    def reset_counts(self) -> None:
        """Begin counting anew."""
        with self._lock:
            self._counts = CheckCounts()

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        checked = [criterion for criterion in criteria if criterion.verifier is not None]
        asked = [c for c in criteria if c.verifier is None or self.mode == "mean"]
        code, judged = await asyncio.gather(ask(self.code, rollout, checked), ask(self.model_judge, rollout, asked))
        by_code = {verdict.criterion_id: verdict for verdict in code.verdicts}
        by_judge = {verdict.criterion_id: verdict for verdict in judged.verdicts}
        verdicts = [self._verdict(by_code.get(c.id), by_judge.get(c.id)) for c in criteria]
        self._count(by_code, len(criteria) - len(checked), rollout)
        return Judgement(tuple(verdicts), usage=code.usage + judged.usage)

    def check(self, rubric: Rubric) -> None:
        """Raises what the judges' own checks raise for their criteria."""
        self.code.check(rubric)
        self.model_judge.check(rubric)

    async def aclose(self) -> None:
        """Close both judges."""
        await self.code.aclose()
        await self.model_judge.aclose()

    def _verdict(self, code: Verdict | None, judged: Verdict | None) -> Verdict:
        if code is None or judged is None:
            only = judged if code is None else code
            if only is None:
                raise RuntimeError("a judge left out a criterion")
            return only
        if code.failure is not None:
            if self.on_failed_check == "fail":
                return replace(code, judge=self.name)
            return replace(judged, judge=self.name, reason=_said("the judge alone", code.failure, judged.reason))
        if judged.failure is not None or code.score is None or judged.score is None:
            return replace(judged if judged.score is None else code, judge=self.name)
        reason = f"code {code.score:g}, judge {judged.score:g}. {judged.reason}".strip()
        return Verdict(code.criterion_id, (code.score + judged.score) / 2, reason=reason, judge=self.name)

    def _count(self, by_code: dict[str, Verdict], without: int, rollout: Rollout) -> None:
        failed = [verdict for verdict in by_code.values() if verdict.status is Status.FAILED]
        for verdict in failed:
            why = verdict.failure.message if verdict.failure else ""
            log.warning("the check of criterion %r failed on rollout %r: %s", verdict.criterion_id, rollout.id, why)
        with self._lock:
            old = self._counts
            applied = old.applied + len(by_code) - len(failed)
            self._counts = CheckCounts(applied, old.failed + len(failed), old.without + without)


def _said(what: str, why: Failure, reason: str) -> str:
    return f"{what}, since the check failed ({why.message}). {reason}".strip()
