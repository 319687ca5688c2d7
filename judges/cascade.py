"""The cascade: cheap judges first, and only what they leave open goes on to the dear ones."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rubricate.chat.timing import deadline, remaining
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.members import ask, in_words
from rubricate.judges.view import name_of
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Judgement, Status, Usage, Verdict, fingerprint

__all__ = ["FALLBACKS", "Cascade", "CascadeReport", "Escalate", "StageReport"]

Escalate = Callable[[Criterion, Verdict], bool]
"""Whether a verdict that did not fail goes on to the next stage. Module-level, for the cascade to pickle."""

FALLBACKS = ("fail", "last_answer")


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage did.

    Attributes:
        name: the stage's judge.
        asked: criteria that reached it.
        decided: of these, those whose verdict it gave and was sure of.
        uncertain: those it sent on, not being sure.
        failed: those it failed on, sent on or not.
        usage: what it cost.
    """

    name: str
    asked: int = 0
    decided: int = 0
    uncertain: int = 0
    failed: int = 0
    usage: Usage = Usage()

    def __add__(self, other: StageReport) -> StageReport:
        return StageReport(
            self.name,
            self.asked + other.asked,
            self.decided + other.decided,
            self.uncertain + other.uncertain,
            self.failed + other.failed,
            self.usage + other.usage,
        )


@dataclass(frozen=True, slots=True)
class CascadeReport:
    """What a cascade did since it was made or reset.

    Attributes:
        stages: one entry a stage, in order.
        fallbacks: criteria that got an earlier stage's uncertain verdict because all later stages failed.
    """

    stages: tuple[StageReport, ...]
    fallbacks: int = 0

    @property
    def criteria(self) -> int:
        """How many verdicts were asked for."""
        return self.stages[0].asked

    @property
    def share_escalated(self) -> float | None:
        """Share of the criteria that reached the last, dearest stage, in [0, 1]; None before the first one."""
        return self.share_reaching(len(self.stages) - 1)

    def share_reaching(self, stage: int) -> float | None:
        """Share of the criteria that reached that stage (0 is the first), in [0, 1]."""
        if not self.criteria:
            return None
        return self.stages[stage].asked / self.criteria

    @property
    def usage(self) -> Usage:
        """What all stages cost."""
        return sum((stage.usage for stage in self.stages), Usage())

    def saved(self, unit: str = "cost") -> float | None:
        """Estimated share saved against asking the last stage about everything (ours): 1 - spent / (mean price of a
        criterion that reached the last stage x criteria). Negative where the cascade costs more.

        None where the last stage was never asked, or its price is 0 (no price table). The last stage sees the
        criteria that the others left open; the estimate takes them to cost what any other would.

        Args:
            unit: `cost` (money), `tokens` (prompt and completion) or `calls`.
        """
        last = self.stages[-1]
        price = _amount(last.usage, unit) / last.asked if last.asked else 0.0
        if price <= 0.0:
            return None
        return 1.0 - _amount(self.usage, unit) / (price * self.criteria)

    def __str__(self) -> str:
        share = self.share_escalated
        head = f"{self.criteria} criteria" + ("" if share is None else f", {share:.1%} escalated")
        kept = [f"{saved:.1%} of the {unit} saved" for unit in _UNITS if (saved := self.saved(unit)) is not None]
        lines = [
            f"  {n}. {stage.name}: asked {stage.asked}, decided {stage.decided}, uncertain {stage.uncertain}, "
            f"failed {stage.failed}, {stage.usage.calls} calls"
            for n, stage in enumerate(self.stages, start=1)
        ]
        return "\n".join([", ".join([head, *kept]), *lines])


class Cascade(CriteriaJudge):
    """Asks stage after stage: a criterion goes on when the stage failed on it or was not sure.

    The usual stages are verifiers, a small judge (in `Calibrated`, so that its probabilities mean something) and a
    large one. What goes on is asked together at the next stage. Each stage but the last gets half of the time left
    to the deadline, so that one that hangs leaves some to the next.

    How sure a verdict is, it says itself: by its `probability` (log-probability judges, RUBRIC-ARROW's, means of
    samples), which goes on within a margin m of 0.5; else by its `spread`, the standard deviation of its score over
    the levels (`ExpectationJudge`, ratings of `DecisionsJudge`), which goes on where it is above sqrt(1/4 - m^2),
    the spread of a yes/no verdict at that margin (ours). A verdict that has neither, such as a verifier's or that
    of a judge that reasons, is taken as sure, and so is "does not apply": give a function as a rule where a stage
    of such verdicts is to be doubted.

    Args:
        stages: the judges, cheapest first; at least two.
        escalate: when a verdict is not sure enough: a margin m in [0, 0.5] (|P(met) - 0.5| < m, or as much of a
            spread, goes on; 0 sends on failures alone), one margin or function for each stage but the last, or a
            function of criterion and verdict.
        fallback: when a criterion was sent on and all later stages failed on it: `fail` (the verdict failed, which
            is the honest thing) or `last_answer` (the last verdict that an earlier stage gave, named in the
            reason).

    The verdict's reason says which stage gave it and what the earlier ones said. `report` gives the counts of all
    calls so far: the share escalated, and the cost saved. Each process of a pool counts for itself.

    Raises ConfigError for options that do not fit.
    """

    def __init__(
        self,
        stages: Sequence[CriteriaJudge],
        *,
        escalate: float | Escalate | Sequence[float | Escalate] = 0.25,
        fallback: str = "fail",
        name: str = "",
    ) -> None:
        if len(stages) < 2:
            raise ConfigError(f"a cascade of {len(stages)} stage", hint="give at least two, cheapest first")
        if fallback not in FALLBACKS:
            raise ConfigError(f"there is no fallback {fallback!r}", hint=f"use {' or '.join(FALLBACKS)}")
        self.stages = tuple(stages)
        self.escalate = _rules(escalate, len(stages) - 1)
        self.fallback = fallback
        self.view = stages[-1].view
        self.name = name or f"cascade({' > '.join(stage.name for stage in stages)})"
        self._lock = threading.Lock()
        self._report = self._empty()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_lock": None, "_report": self._empty()}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Of the stages, in order, and the options."""
        rules = [f"{rule.__module__}.{name_of(rule)}" if callable(rule) else rule for rule in self.escalate]
        return fingerprint(["cascade", [stage.fingerprint for stage in self.stages], rules, self.fallback])

    def check(self, rubric: Rubric) -> None:
        """Raises what a stage's own check raises."""
        for stage in self.stages:
            stage.check(rubric)

    def report(self) -> CascadeReport:
        """What was counted since the cascade was made, unpickled or reset."""
        with self._lock:
            return self._report

    def reset(self) -> CascadeReport:
        """Start counting anew; gives what was counted so far."""
        with self._lock:
            report, self._report = self._report, self._empty()
        return report

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        said: list[list[Verdict]] = [[] for _ in criteria]
        stages: list[StageReport] = []
        going = list(range(len(criteria)))
        for number, stage in enumerate(self.stages):
            if not going:
                stages.append(StageReport(stage.name))
                continue
            last, left = number == len(self.stages) - 1, remaining()
            with deadline(None if left is None or last else left / 2):
                judgement = await ask(stage, rollout, [criteria[index] for index in going])
            for index, verdict in zip(going, judgement.verdicts, strict=True):
                said[index].append(verdict)
            failed = sum(verdict.failure is not None for verdict in judgement.verdicts)
            on = [index for index in going if self._goes_on(number, criteria[index], said[index][-1])]
            unsure = 0 if last else len(on) - failed
            stages.append(
                StageReport(stage.name, len(going), len(going) - failed - unsure, unsure, failed, judgement.usage)
            )
            going = on
        verdicts, fallbacks = self._settled(criteria, said)
        report = CascadeReport(tuple(stages), fallbacks)
        with self._lock:
            self._report = _plus(self._report, report)
        return Judgement(verdicts, usage=report.usage)

    def _goes_on(self, number: int, criterion: Criterion, verdict: Verdict) -> bool:
        if number >= len(self.escalate) or verdict.status is Status.NOT_APPLICABLE:
            return False
        if verdict.failure is not None:
            return True
        rule = self.escalate[number]
        if callable(rule):
            return rule(criterion, verdict)
        # NaN is sure of nothing
        if verdict.probability is not None:
            return not abs(verdict.probability - 0.5) >= rule
        return verdict.spread is not None and not verdict.spread <= math.sqrt(0.25 - rule * rule)

    def _settled(
        self, criteria: Sequence[Criterion], said: Sequence[Sequence[Verdict]]
    ) -> tuple[tuple[Verdict, ...], int]:
        """The last word on each criterion, and how many of them are fallbacks."""
        verdicts: list[Verdict] = []
        fallbacks = 0
        for criterion, history in zip(criteria, said, strict=True):
            last = history[-1]
            answered = [n for n, verdict in enumerate(history) if verdict.failure is None]
            if last.failure is not None and answered and self.fallback == "last_answer":
                fallbacks += 1
                verdicts.append(self._named(criterion, history, answered[-1], fallback=True))
            else:
                verdicts.append(self._named(criterion, history, len(history) - 1))
        return tuple(verdicts), fallbacks

    def _named(
        self, criterion: Criterion, history: Sequence[Verdict], number: int, *, fallback: bool = False
    ) -> Verdict:
        """A stage's verdict, with what the others said in its reason."""
        verdict = history[number]
        words = [
            f"stage {n}, {self.stages[n - 1].name}: {in_words(criterion, other)}"
            for n, other in enumerate(history, start=1)
            if n != number + 1
        ]
        head = f"stage {number + 1} of {len(self.stages)}"
        head += ", kept because the later ones failed" if fallback else ""
        reason = f"[{'; '.join([head, *words])}] {verdict.reason}".rstrip()
        why = verdict.failure
        if why is not None and len(history) > 1:
            why = replace(why, message=f"the last stage failed: {why.message}")
        return replace(verdict, reason=reason, failure=why)

    def _empty(self) -> CascadeReport:
        return CascadeReport(tuple(StageReport(stage.name) for stage in self.stages))

    async def aclose(self) -> None:
        """Close every stage."""
        for stage in self.stages:
            await stage.aclose()


_UNITS = ("cost", "tokens", "calls")


def _amount(usage: Usage, unit: str) -> float:
    if unit == "cost":
        return usage.cost
    if unit == "tokens":
        return usage.prompt_tokens + usage.completion_tokens
    if unit == "calls":
        return usage.calls
    raise ConfigError(f"there is no unit {unit!r}", hint=f"use one of {', '.join(_UNITS)}")


def _plus(one: CascadeReport, other: CascadeReport) -> CascadeReport:
    stages = tuple(a + b for a, b in zip(one.stages, other.stages, strict=True))
    return CascadeReport(stages, one.fallbacks + other.fallbacks)


def _rules(escalate: float | Escalate | Sequence[float | Escalate], count: int) -> tuple[float | Escalate, ...]:
    """One rule for each stage but the last."""
    rules: list[float | Escalate] = (
        [escalate] * count if callable(escalate) or isinstance(escalate, int | float) else list(escalate)
    )
    if len(rules) != count:
        raise ConfigError(
            f"there are {len(rules)} rules to escalate by for {count + 1} stages", hint=f"give {count}"
        )
    checked: list[float | Escalate] = []
    for rule in rules:
        if callable(rule):
            checked.append(rule)
        elif isinstance(rule, bool) or not 0.0 <= rule <= 0.5:
            raise ConfigError(f"the margin is {rule}", hint="use a distance from P = 0.5 between 0 and 0.5")
        else:
            checked.append(float(rule))
    return tuple(checked)
