"""The reward function: a judge, a rubric and an aggregation, for scoring and for trainers."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import Literal

from rubricate.bridge import on_bridge, run_sync
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.channels import Channels
from rubricate.rewardmodels.engine import Engine, Row
from rubricate.rewardmodels.plan import make_plan
from rubricate.rewardmodels.presets import resolve
from rubricate.rewardmodels.trl_contract import TrainerOptions, finish_call, read_call
from rubricate.rubrics import Rubric
from rubricate.types import Judge, Reward

__all__ = ["AsyncRubricReward", "RubricReward"]

_numbers = itertools.count(1)


class RubricReward:
    """Scores responses against rubrics, and is a TRL reward function as it stands.

    Each row is judged on its own and results keep the order of the rows. A call returns by its deadline with what
    it has; a judge that raises is a failed judgement, logged. It pickles, if judge and rubric do.

    As a reward function of TRL's GRPO and RLOO trainers it takes the rubric from the constructor, from the data
    set's column `rubric` (a Rubric, a record, or JSON text in any known format), or from both; reference answers
    from `reference`, `reference_answer` or `solution`. An unscored row is None, which TRL masks from 1.6 on; below
    1.6, in AsyncGRPO, OnlineDPO and SDPO, and next to a second reward function, TRL counts None as 0. Per-criterion
    columns (for a constant rubric), channels, coverage and the share of unscored rows go to its logs.

    Whose doing a failure is that a response can bring about (unreadable, refused, too long) is settled over the
    rows of a call: where the judge judged the response's siblings it is the response's, else the
    infrastructure's; see `rubricate.rewardmodels.causes.Siblings`.

    Args:
        judge: gives the verdicts.
        rubric: holds for every row; a row's own rubric adds up with it. None: each row brings one.
        aggregation: a preset's name or options, policies for missing verdicts and failed responses included.
        channels: declared channel names; None takes those of `rubric`. Each reward has a value, or None, for
            every one of them, criteria without a channel counting under `general`.
        undeclared_channels: `raise` ConfigError for a rubric with another channel, or count it under `other`.
        deadline: seconds a call may take, or a row of `as_scored`; None for no limit.
        concurrency: rows in flight at most.
        name: for people and trainers' metrics; by default unique in the process.
        unscored: what a trainer gets for a row without a value: `mask` (None), `raise` (UnscoredError), or a
            number of the caller's choice.
        num_generations: group size G of the trainer, to report groups that straddle ranks.
        rubric_column, reference_column: names of the data set's columns.
        log_criteria: log a column for each criterion of a constant rubric.
        old_trl: `raise` ConfigError where the installed TRL would take None for 0, or `warn`.

    Raises ConfigError for wrong options, and for a rubric that does not go with the aggregation; what the judge's
    `check` raises for a rubric that it cannot judge, such as VerifierError for wrong arguments.
    """

    def __init__(
        self,
        judge: Judge[Rollout, Rubric],
        rubric: Rubric | None = None,
        *,
        aggregation: Aggregation | str = "weighted",
        channels: Sequence[str] | None = None,
        undeclared_channels: Literal["raise", "other"] = "raise",
        deadline: float | None = 600.0,
        concurrency: int = 256,
        name: str = "",
        unscored: Literal["mask", "raise"] | float = "mask",
        num_generations: int | None = None,
        rubric_column: str = "rubric",
        reference_column: str | None = None,
        log_criteria: bool = True,
        old_trl: Literal["raise", "warn"] = "raise",
    ) -> None:
        if deadline is not None and not (deadline > 0.0 and math.isfinite(deadline)):
            raise ConfigError(f"deadline is {deadline}", hint="use a number of seconds above 0, or None")
        if concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency}", hint="use at least 1")
        _check_types(judge, rubric)
        self.aggregation = resolve(aggregation)
        self.rubric = rubric
        self.judge = judge
        self.__name__ = name or _default_name()
        self.trainer = TrainerOptions(
            unscored=unscored,
            num_generations=num_generations,
            rubric_column=rubric_column,
            reference_column=reference_column,
            log_criteria=log_criteria,
            old_trl=old_trl,
        )
        channel_names = Channels(channels, undeclared_channels, rubric)
        self.channels = channel_names.names
        self._engine = Engine(judge, rubric, self.aggregation, channel_names, deadline, concurrency)
        if rubric is not None:
            channel_names.parts(rubric, make_plan(self.aggregation, rubric))
            judge.check(rubric)

    @property
    def name(self) -> str:
        """The name, which trainers read as `__name__`."""
        return self.__name__

    def __repr__(self) -> str:
        return f"RubricReward({self.name!r}, judge={self.judge.name!r})"

    async def ascore(self, rollout: Rollout, rubric: Rubric | None = None) -> Reward:
        """The reward of one response. Raises UnscoredError only where the aggregation's policies say `raise`."""
        # the caller has the one failure in hand: a warning of it would be one a row where rows come one by one
        return (await self._engine.batch([(rollout, rubric)], warn=False))[0]

    async def ascore_batch(
        self, rollouts: Sequence[Rollout], rubrics: Sequence[Rubric | None] | None = None
    ) -> list[Reward]:
        """The rewards of many responses, in order, all within the one deadline.

        Args:
            rollouts: the responses; an empty sequence gives an empty list.
            rubrics: one a response, None for those that have the constant rubric alone.
        """
        return await self._engine.batch(_pairs(rollouts, rubrics))

    async def ascore_group(self, rollouts: Sequence[Rollout], rubric: Rubric | None = None) -> list[Reward]:
        """The rewards of several responses to one prompt under one rubric, in order.

        Raises ConfigError when the prompts differ.
        """
        if any(rollout.prompt != rollouts[0].prompt for rollout in rollouts):
            raise ConfigError("a group has one prompt, and these differ", hint="use score_batch")
        return await self.ascore_batch(rollouts, [rubric] * len(rollouts))

    def score(self, rollout: Rollout, rubric: Rubric | None = None) -> Reward:
        """`ascore` for sync callers, notebooks included."""
        return run_sync(self.ascore(rollout, rubric))

    def score_batch(
        self, rollouts: Sequence[Rollout], rubrics: Sequence[Rubric | None] | None = None
    ) -> list[Reward]:
        """`ascore_batch` for sync callers."""
        return run_sync(self.ascore_batch(rollouts, rubrics))

    def score_group(self, rollouts: Sequence[Rollout], rubric: Rubric | None = None) -> list[Reward]:
        """`ascore_group` for sync callers."""
        return run_sync(self.ascore_group(rollouts, rubric))

    def as_scored(
        self, rollouts: Iterable[Rollout], rubrics: Iterable[Rubric | None] | None = None
    ) -> AsyncGenerator[tuple[int, Reward], None]:
        """(index, reward) as responses are done, for long runs: rows are read as they are needed.

        Each row has the deadline for itself. Rows with a failure that may be the response's doing come last, since
        what became of the others decides that. Closing the generator (`contextlib.aclosing`) cancels what runs.
        """
        if isinstance(rollouts, Sequence):
            return self._engine.stream(_pairs(rollouts, None if rubrics is None else list(rubrics)))
        return self._engine.stream(_lazy_pairs(rollouts, rubrics))

    def __call__(
        self, prompts: Sequence[object], completions: Sequence[object], **kwargs: object
    ) -> list[float | None]:
        """TRL's contract: a number or None for each completion, in order; never infinite or NaN.

        Raises FormatError for a column that cannot be read, UnscoredError where `unscored` is `raise`.
        """
        return run_sync(self.acall(prompts, completions, **kwargs))

    async def acall(
        self, prompts: Sequence[object], completions: Sequence[object], **columns: object
    ) -> list[float | None]:
        """The same for async callers, on the loop they run."""
        rows = read_call(self.trainer, prompts, completions, columns)
        rewards = await self._engine.batch(rows)
        return finish_call(self.trainer, self.__name__, self.rubric, rewards, columns)

    def as_async(self) -> AsyncRubricReward:
        """The same reward as a coroutine function, which TRL (1.14 and later) runs beside others of its kind.

        Raises ConfigError where the installed TRL is older: it would take the coroutine for the result.
        """
        return AsyncRubricReward(self)

    async def aclose(self) -> None:
        """Release the judge's clients and models."""
        await self.judge.aclose()

    def close(self) -> None:
        """`aclose` for sync callers."""
        run_sync(self.aclose())


class AsyncRubricReward:
    """A `RubricReward` whose call is a coroutine: `reward.as_async()`.

    TRL waits for coroutine rewards without a timeout; the reward's own deadline holds. It runs on the process's
    background loop, as sync calls do, so both share the judge's connections.
    """

    def __init__(self, reward: RubricReward) -> None:
        reward.trainer.check_awaits()
        self.reward = reward
        self.__name__ = reward.name

    async def __call__(
        self, prompts: Sequence[object], completions: Sequence[object], **kwargs: object
    ) -> list[float | None]:
        """TRL's contract, as in `RubricReward`."""
        return await on_bridge(self.reward.acall(prompts, completions, **kwargs))


class _WrongTypeError(ConfigError, TypeError):
    """An argument of another type than it must be."""


def _check_types(judge: object, rubric: object) -> None:
    """Raises ConfigError, which is a TypeError too, for a judge or rubric that is none."""
    if isinstance(judge, type) or not callable(getattr(judge, "judge", None)):
        given = repr(judge) if isinstance(judge, str) else f"a {type(judge).__name__}"
        raise _WrongTypeError(
            f"the judge is {given}, not a judge",
            hint="build one, as in build_judge('openai:gpt-4.1-mini') or build_judge(None) for verifiers alone",
        )
    if rubric is not None and not isinstance(rubric, Rubric):
        given = repr(rubric) if isinstance(rubric, str) else f"a {type(rubric).__name__}"
        raise _WrongTypeError(
            f"the rubric is {given}, not a Rubric",
            hint="use rubricate.rubrics.formats: load_rubric('rubric.json') reads a file, parse_rubric a value",
        )


def _default_name() -> str:
    number = next(_numbers)
    return "rubric_reward" if number == 1 else f"rubric_reward_{number}"


def _pairs(rollouts: Sequence[Rollout], rubrics: Sequence[Rubric | None] | None) -> list[Row]:
    if rubrics is None:
        return [(rollout, None) for rollout in rollouts]
    if len(rubrics) != len(rollouts):
        raise ConfigError(f"{len(rollouts)} rollouts and {len(rubrics)} rubrics", hint="give one rubric a rollout")
    return list(zip(rollouts, rubrics, strict=True))


def _lazy_pairs(rollouts: Iterable[Rollout], rubrics: Iterable[Rubric | None] | None) -> Iterator[Row]:
    if rubrics is None:
        yield from ((rollout, None) for rollout in rollouts)
        return
    nothing = object()
    for rollout, rubric in itertools.zip_longest(rollouts, rubrics, fillvalue=nothing):
        if not isinstance(rollout, Rollout) or not (rubric is None or isinstance(rubric, Rubric)):
            raise ConfigError("rollouts and rubrics are not equally many", hint="give one rubric a rollout")
        yield rollout, rubric
