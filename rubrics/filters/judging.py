"""Having a pool judged for the filters: several samples of one judge, and nothing judged twice."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, cast, runtime_checkable

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, RubricateError
from rubricate.failures import failure_of
from rubricate.rubrics.filters.base import Case
from rubricate.rubrics.filters.table import ScoreTable
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Judge, Judgement, Usage, Verdict

__all__ = ["JudgeSource", "RubricJudge", "judge_pool", "samples_of", "with_table"]

RubricJudge = Judge[Rollout, Rubric]
JudgeSource = RubricJudge | Callable[[int], RubricJudge]
"""A judge; or a function that makes the judge of a sample from its index, 0 and up."""


@runtime_checkable
class _Sampled(Protocol):
    """A judge whose repeated answers are kept apart by `sample`, and whose sampling is not greedy."""

    sample: int
    temperature: float
    seed: int | None


def samples_of(judge: JudgeSource, repeats: int) -> list[RubricJudge]:
    """The judges of `repeats` samples. They differ in `sample`, so that a cache does not answer all from one, and
    in `seed` where there is one.

    Raises ConfigError for several samples of a judge that is greedy or knows no `sample`: its repeats would be one
    answer, which looks like perfect agreement with itself.
    """
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}", hint="use 1 or more")
    if not hasattr(judge, "judge") and callable(judge):
        return _distinct([judge(index) for index in range(repeats)])
    one = cast("RubricJudge", judge)
    return [one] if repeats == 1 else [_sample(one, index, repeats) for index in range(repeats)]


def _distinct(made: list[RubricJudge]) -> list[RubricJudge]:
    indices = [judge.sample for judge in made if isinstance(judge, _Sampled)]
    if len(set(indices)) < len(indices):
        raise ConfigError(
            "the judges of several samples have the same `sample`: they would share one answer",
            hint="pass the index on, as in `lambda i: CriterionJudge(model, sample=i, temperature=1.0)`",
        )
    if len(made) > 1:
        for judge in made:
            _check_greedy(judge)
    return made


def _sample(judge: RubricJudge, index: int, repeats: int) -> RubricJudge:
    twin = copy.copy(judge)
    if not isinstance(twin, _Sampled):
        raise ConfigError(
            f"{judge.name} cannot be repeated: it has no `sample`, so its answers would be one and the same",
            hint="give a function that makes the judge of a sample from its index",
        )
    _check_greedy(judge)
    before = twin.sample
    twin.sample = before * repeats + index
    if twin.seed is not None:  # the same seed would bring the same answer
        twin.seed += twin.sample - before
    return twin


def _check_greedy(judge: RubricJudge) -> None:
    if isinstance(judge, _Sampled) and judge.temperature <= 0.0:
        hint = "set a temperature such as 1.0"
        raise ConfigError(f"{judge.name} is greedy: its repeats are one and the same answer", hint=hint)


async def verdicts_of(judge: RubricJudge, rollout: Rollout, rubric: Rubric) -> Judgement:
    """What the judge says. Where it raises one of this package's errors, every verdict has failed."""
    try:
        return await judge.judge(rollout, rubric)
    except RubricateError as error:
        why = failure_of(error)
        return Judgement(tuple(Verdict.failed(id, why, judge=judge.name) for id in rubric.ids))


async def judge_pool(
    judge: JudgeSource, pool: Sequence[Rollout], rubric: Rubric, *, repeats: int = 1
) -> ScoreTable:
    """Scores of a pool by every criterion of a rubric, each judgement repeated with sample indices 0, 1, ...

    Raises ConfigError where `samples_of` does. A judgement that failed is missing in the table, and counted.
    """
    judges = samples_of(judge, repeats)
    work = (verdicts_of(one, rollout, rubric) for rollout in pool for one in judges)
    flat = await asyncio.gather(*work)
    rows = [[one.verdicts for one in flat[at : at + repeats]] for at in range(0, len(flat), repeats)]
    usage = sum((one.usage for one in flat), Usage())
    return ScoreTable.from_verdicts(rubric.ids, rows, judge=judges[0].name, usage=usage)


async def with_table(case: Case, judge: JudgeSource | None, repeats: int) -> tuple[Case, Usage]:
    """The case with a table that covers its rubric and pool, and what it cost: nothing where there was one.

    A case without a pool stays without a table. Raises ConfigError where the pool has to be judged and there is no
    judge.
    """
    if case.table is None and not case.pool:
        return case, Usage()
    if case.table is not None:
        responses = len(case.pool) or len(case.table.scores)
        if case.table.covers(case.rubric.ids, responses, repeats):
            return case, Usage()
    if judge is None or not case.pool:
        raise ConfigError(
            f"the pool of case {case.name!r} has not been judged often enough, and the filter has no judge for it",
            hint="give the filter judge=... and the case a pool, or the case a table of scores",
        )
    table = await judge_pool(judge, case.pool, case.rubric, repeats=repeats)
    return replace(case, table=table), table.usage


def identity_of(judge: JudgeSource | None, repeats: int = 1) -> object:
    """What stands for a judge in a filter's fingerprint: the fingerprints of its samples."""
    if judge is None:
        return None
    return [one.fingerprint for one in samples_of(judge, repeats)]
