"""Filters that ask a judge about the criteria themselves: are they valid, and do they point the right way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.filters.base import Case, Filtered, Outcome, Unknown, check_unknown, collected, each
from rubricate.rubrics.filters.judging import RubricJudge, verdicts_of, with_table
from rubricate.rubrics.filters.table import ScoreTable
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Usage, fingerprint

__all__ = ["Evidence", "Misalignment", "Validity", "critic_labels"]

Evidence = Literal["judge", "reference"]
"""What shows that a criterion is valid: a judge that is asked, or that the reference answer passes it."""

VALID_REWARD = (
    "The text shown as the response is not an answer but a criterion for grading answers to the prompt, and it is "
    "a valid one: what it demands follows from the prompt or from what any careful answer would do, a correct "
    "answer can meet it, and whether an answer meets it can be decided from the answer."
)
VALID_PENALTY = (
    "The text shown as the response is not an answer but describes an error that answers to the prompt are "
    "penalised for, and it is a valid one: what it describes is wrong or harmful in an answer to this prompt, a "
    "correct answer does not do it, and whether an answer does it can be decided from the answer."
)


@dataclass(frozen=True, slots=True)
class _Credits:
    """For each criterion how well a response does by it, in [0, 1] (of a penalty, 1 - score); None: not known."""

    values: Mapping[str, float | None]
    usage: Usage


async def _credits(judge: RubricJudge, rollout: Rollout, rubric: Rubric) -> _Credits:
    judgement = await verdicts_of(judge, rollout, rubric)
    scores = {verdict.criterion_id: verdict.score for verdict in judgement.verdicts}
    found = {criterion.id: _credit(criterion, scores.get(criterion.id)) for criterion in rubric.criteria}
    return _Credits(found, judgement.usage)


def _credit(criterion: Criterion, score: float | None) -> float | None:
    return score if score is None or criterion.polarity is Polarity.REWARD else 1.0 - score


class _JudgedFilter:
    """Base of the filters that ask a judge one thing a criterion."""

    def __init__(
        self, judge: RubricJudge, *, threshold: float, unknown: Unknown, concurrency: int, name: str
    ) -> None:
        check_unknown(unknown)
        if not 0.0 <= threshold <= 1.0 or concurrency < 1:
            raise ConfigError(
                f"threshold is {threshold} and concurrency {concurrency}", hint="use [0, 1], and 1 or more"
            )
        self.judge = judge
        self.threshold = threshold
        self.unknown: Unknown = unknown
        self.concurrency = concurrency
        self.name = name

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order."""

        async def one(item: tuple[int, Case]) -> Outcome:
            outcome = Outcome(self.name, *item, self.unknown)
            await self.decide(outcome)
            return outcome

        return collected(await each(one, list(enumerate(cases)), self.concurrency))

    async def decide(self, outcome: Outcome) -> None:
        """Drop and flag the criteria of a case."""
        raise NotImplementedError


class Validity(_JudgedFilter):
    """Drops criteria that are not valid, whatever the responses do by them.

    RLAC (2511.01758) rewards a critic for criteria that are valid AND unsatisfied, and so keeps two questions apart
    that one verdict mixes up: a response that "fails" an invalid criterion has failed nothing. Whether a criterion
    is valid is asked of a judge, which sees the prompt, the reference and, in the response's place, the criterion
    (our wording); or it is shown by the reference answer, which has to pass it, as in RLAC's code experiments.

    Args:
        judge: answers; any judge of a rollout by a rubric.
        by: `judge` or `reference`.
        threshold: credit from which the answer is yes, in [0, 1].
        need_unsatisfied: drop valid criteria, too, that every response of the pool passes: nothing can be learned
            from them. The case needs a table or a pool; pools are judged by the same judge.
        unknown: what becomes of criteria whose answer failed, or does not apply; and of those without a reference.
        concurrency: cases at the same time.
    """

    def __init__(
        self,
        judge: RubricJudge,
        *,
        by: Evidence = "judge",
        threshold: float = 0.5,
        need_unsatisfied: bool = False,
        unknown: Unknown = "keep",
        concurrency: int = 16,
        name: str = "validity",
    ) -> None:
        super().__init__(judge, threshold=threshold, unknown=unknown, concurrency=concurrency, name=name)
        if by not in get_args(Evidence):
            raise ConfigError(f"by is {by!r}", hint=f"use one of {', '.join(get_args(Evidence))}")
        self.by: Evidence = by
        self.need_unsatisfied = need_unsatisfied

    @property
    def fingerprint(self) -> str:
        """Of the judge, the questions and the options."""
        options = [self.by, self.threshold, self.need_unsatisfied, self.unknown]
        return fingerprint(["validity", self.judge.fingerprint, VALID_REWARD, VALID_PENALTY, options])

    async def decide(self, outcome: Outcome) -> None:
        """Drop what is not valid; with `need_unsatisfied`, what no response fails."""
        case = outcome.case
        if self.by == "reference" and not case.reference:
            outcome.not_known("", "there is no reference answer to show which criteria are valid")
            return
        answers = await (self._asked(case) if self.by == "judge" else self._shown(case))
        outcome.usage += answers.usage
        if self.need_unsatisfied:
            outcome.case, usage = await with_table(case, self.judge, 1)
            outcome.usage += usage
        for criterion in case.rubric.criteria:
            value = answers.values.get(criterion.id)
            if value is None:
                outcome.not_known(criterion.id, "whether it is valid could not be judged")
            elif value < self.threshold:
                said = "the judge says that it is not valid" if self.by == "judge" else "the reference fails it"
                outcome.drop(criterion.id, said, valid=value)
            elif self.need_unsatisfied:
                self._check_failed(outcome, criterion, outcome.case.table)

    async def _asked(self, case: Case) -> _Credits:
        """What the judge says of each criterion, put in the response's place."""
        questions = [_question(criterion) for criterion in case.rubric.criteria]
        shown = [Rollout(case.prompt, _shown(c), case.reference, id=c.id) for c in case.rubric.criteria]
        work = [_credits(self.judge, one, rubric) for one, rubric in zip(shown, questions, strict=True)]
        found = await asyncio.gather(*work)
        values = {
            one.id: answer.values.get("valid") for one, answer in zip(case.rubric.criteria, found, strict=True)
        }
        return _Credits(values, sum((answer.usage for answer in found), Usage()))

    async def _shown(self, case: Case) -> _Credits:
        """How the reference answer does by each criterion."""
        return await _credits(self.judge, Rollout(case.prompt, case.reference or ""), case.rubric)

    def _check_failed(self, outcome: Outcome, criterion: Criterion, table: ScoreTable | None) -> None:
        if table is None:
            outcome.not_known(criterion.id, "valid; there is no pool of responses that could fail it")
            return
        labels = critic_labels(criterion, True, table, threshold=self.threshold)
        known = [label for label in labels if label is not None]
        figures = {"failing": sum(known), "known": len(known), "responses": len(labels)}
        if not known:
            outcome.not_known(criterion.id, "valid; whether a response fails it could not be judged", **figures)
        elif not any(known):
            outcome.drop(criterion.id, "valid, but no response of the pool fails it", **figures)


def _question(criterion: Criterion) -> Rubric:
    text = VALID_PENALTY if criterion.polarity is Polarity.PENALTY else VALID_REWARD
    return Rubric(criteria=(Criterion(id="valid", text=text),))


def _shown(criterion: Criterion) -> str:
    condition = f"\n(It applies only where this holds: {criterion.condition})" if criterion.condition else ""
    return criterion.text + condition


def critic_labels(
    criterion: Criterion, valid: bool | None, table: ScoreTable, *, threshold: float = 0.5
) -> list[bool | None]:
    """For each response of a pool whether the criterion is a good one to have proposed: valid AND not satisfied.

    RLAC (2511.01758): what a critic is rewarded for. A penalty is not satisfied where the error it describes is
    there. False where the criterion is not valid, whatever the response does; None where it is valid, or may be,
    and the response's verdict, or the validity, is not known.

    Args:
        criterion: the criterion.
        valid: whether it is valid; None: not known.
        table: scores of the pool.
        threshold: credit from which a response satisfies it.
    """
    means = table.means(criterion.id)
    labels = list[bool | None]()
    for mean in means:
        credit = _credit(criterion, None if np.isnan(mean) else float(mean))
        failed = None if credit is None else credit < threshold
        labels.append(False if valid is False or failed is False else None if valid is None else failed)
    return labels


class Misalignment(_JudgedFilter):
    """Drops criteria that point the wrong way: the case's weak response passes and its strong one does not.

    RRD (2602.05125) rejects such items with one reference of a weak and one of a strong model. A penalty is passed
    where the error is absent. A criterion that treats both alike is not misaligned.

    Args:
        judge: judges both responses.
        threshold: credit from which a response passes, in [0, 1].
        unknown: what becomes of criteria where one of the two verdicts is missing, and of cases without both
            responses.
        concurrency: cases at the same time.
    """

    def __init__(
        self,
        judge: RubricJudge,
        *,
        threshold: float = 0.5,
        unknown: Unknown = "keep",
        concurrency: int = 16,
        name: str = "misalignment",
    ) -> None:
        super().__init__(judge, threshold=threshold, unknown=unknown, concurrency=concurrency, name=name)

    @property
    def fingerprint(self) -> str:
        """Of the judge and the options."""
        return fingerprint(["misalignment", self.judge.fingerprint, self.threshold, self.unknown])

    async def decide(self, outcome: Outcome) -> None:
        """Drop what the weak response passes and the strong one fails."""
        case = outcome.case
        if case.weak is None or case.strong is None:
            outcome.not_known("", "there are no weak and strong responses to compare")
            return
        weak, strong = await asyncio.gather(
            _credits(self.judge, case.weak, case.rubric), _credits(self.judge, case.strong, case.rubric)
        )
        outcome.usage += weak.usage + strong.usage
        for criterion in case.rubric.criteria:
            low, high = weak.values[criterion.id], strong.values[criterion.id]
            if low is not None and high is not None and low >= self.threshold > high:
                outcome.drop(
                    criterion.id, "a weak response passes it and a strong one fails", weak=low, strong=high
                )
            elif low is None or high is None:
                # One known verdict can rule misalignment out.
                aligned = (low is not None and low < self.threshold) or (
                    high is not None and high >= self.threshold
                )
                if not aligned:
                    outcome.not_known(criterion.id, "a verdict is missing", weak=low, strong=high)
