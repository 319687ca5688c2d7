"""Rows in, rewards out: asks the judge by a deadline, checks what it says, settles causes, aggregates."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import cast

from rubricate.chat.timing import deadline as chat_deadline
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, RubricateError, UnscoredError
from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.arrays import floor_of
from rubricate.rewardmodels.causes import Judged, Siblings
from rubricate.rewardmodels.channels import Channels, Parts
from rubricate.rewardmodels.plan import Plan, make_plan
from rubricate.rewardmodels.scoring import check_mode, score_verdicts, wants_raise
from rubricate.rewardmodels.verdicts import align
from rubricate.rubrics import Rubric, compose
from rubricate.types import Failure, FailureCause, FailureKind, Judge, Judgement, Reward, Usage, Verdict

__all__ = ["Engine", "Row"]

log = logging.getLogger(__name__)

Row = tuple[Rollout, Rubric | None]

_CACHED_RUBRICS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    rubric: Rubric
    plan: Plan
    parts: Parts


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A row with what the judge said of it."""

    index: int
    prepared: _Prepared
    row: Judged
    usage: Usage
    latency: float


class Engine:
    """Scores rows of rollout and rubric; each row stands on its own, in the order given.

    Args:
        judge: who gives the verdicts.
        constant: the rubric that holds for every row, to which a row's own adds up.
        options: how verdicts become values.
        channels: the declared channels.
        deadline: seconds that a batch, or one row of a stream, may take; None for no limit.
        concurrency: rows in flight at most. Model calls are bounded by the judge's own limiter.
    """

    def __init__(
        self,
        judge: Judge[Rollout, Rubric],
        constant: Rubric | None,
        options: Aggregation,
        channels: Channels,
        deadline: float | None,
        concurrency: int,
    ) -> None:
        self.judge = judge
        self.constant = constant
        self.options = options
        self.channels = channels
        self.deadline = deadline
        self.concurrency = concurrency
        self._ready: OrderedDict[str, _Prepared] = OrderedDict()
        self._silent = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_ready": OrderedDict()}

    async def batch(self, rows: Sequence[Row], *, warn: bool = True) -> list[Reward]:
        """A reward a row, by the deadline: what is not judged by then is unscored; `warn` logs where all are.

        Raises UnscoredError, when all rows are done, where the aggregation's policies say so.
        """
        for _, rubric in rows:
            self._prepare(rubric)  # a rubric that cannot be used is an error before anything is paid for
        until = None if self.deadline is None else time.monotonic() + self.deadline
        asked = [answer async for answer in self._answers(rows, until)]
        siblings = Siblings()
        for answer in asked:
            siblings.add(answer.prepared.rubric, answer.row)
        fingerprint = self._judge_fingerprint()
        rewards: dict[int, Reward] = {}
        refused: list[Reward] = []
        for answer in asked:
            reward, raises = self._reward(answer, siblings, fingerprint)
            rewards[answer.index] = reward
            if raises:
                refused.append(reward)
        if refused:
            raise _unscored(refused[0], len(refused), len(rows))
        if warn:
            self._warn_of_silence(list(rewards.values()))
        return [rewards[index] for index in range(len(rows))]

    async def stream(self, rows: Iterable[Row]) -> AsyncGenerator[tuple[int, Reward], None]:
        """(index, reward) of each row as it is done, each by a deadline of its own.

        A row with a failure that may be the response's doing comes when all others are done, because they decide
        that. Raises UnscoredError at the first row for which the aggregation's policies say so.
        """
        siblings = Siblings()
        fingerprint = ""
        held: list[_Asked] = []
        async with aclosing(self._answers(rows, None)) as answers:
            async for answer in answers:
                siblings.add(answer.prepared.rubric, answer.row)
                fingerprint = fingerprint or self._judge_fingerprint()
                if answer.row.open:
                    held.append(answer)
                else:
                    yield answer.index, self._final(answer, siblings, fingerprint)
        for answer in sorted(held, key=lambda found: found.index):
            yield answer.index, self._final(answer, siblings, fingerprint)

    async def _answers(self, rows: Iterable[Row], until: float | None) -> AsyncGenerator[_Asked, None]:
        """The rows as the judge is done with them, at most `concurrency` in flight; rows are read as needed."""
        done: asyncio.Queue[_Asked | None] = asyncio.Queue()
        source = iter(enumerate(rows))

        async def work() -> None:
            try:
                for index, (rollout, rubric) in source:
                    done.put_nowait(await self._ask(index, rollout, rubric, until))
            finally:
                done.put_nowait(None)

        count = min(self.concurrency, len(rows)) if isinstance(rows, Sequence) else self.concurrency
        workers = [asyncio.create_task(work()) for _ in range(count)]
        try:
            for _ in range(count):
                while (answer := await done.get()) is not None:
                    yield answer
                for worker in workers:
                    if worker.done():
                        worker.result()  # an error in reading a row ends the call
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _ask(self, index: int, rollout: Rollout, rubric: Rubric | None, until: float | None) -> _Asked:
        prepared = self._prepare(rubric)
        start = time.monotonic()
        if until is None and self.deadline is not None:
            until = start + self.deadline
        judgement = await self._judgement(rollout, prepared.rubric, None if until is None else until - start)
        check_mode(self.options, judgement)
        if self.options.mode == "explicit":
            verdicts = align(prepared.rubric, judgement.verdicts)
        else:
            known = set(prepared.rubric.ids)
            verdicts = tuple(verdict for verdict in judgement.verdicts if verdict.criterion_id in known)
        row = Judged(verdicts, judgement.overall)
        return _Asked(index, prepared, row, judgement.usage, time.monotonic() - start)

    async def _judgement(self, rollout: Rollout, rubric: Rubric, seconds: float | None) -> Judgement:
        """What the judge says within so many seconds; a failure for whatever goes wrong."""
        if seconds is not None and seconds <= 0.0:
            return self._nothing(rubric, FailureKind.DEADLINE, self._too_late())
        # The judge's own calls end a little earlier, so that it can still hand over the verdicts it has.
        sooner = None if seconds is None else seconds - min(0.25, 0.1 * seconds)
        with chat_deadline(sooner):
            task = asyncio.create_task(self.judge.judge(rollout, rubric))
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            if not task.done():
                task.cancel()
                task.add_done_callback(_forget)
        if not task.done():
            return self._nothing(rubric, FailureKind.DEADLINE, self._too_late())
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            said = cast("object", task.result())  # a judge of someone else's may return anything
            if isinstance(said, Judgement):
                return said
            error = TypeError(f"the judge returned {type(said).__name__}, not a Judgement")
        if not isinstance(error, Exception | asyncio.CancelledError):
            raise error
        log.error("judge %s failed on the rollout %r", self.judge.name, rollout.id, exc_info=error)
        retryable = isinstance(error, RubricateError) and error.retryable
        return self._nothing(rubric, FailureKind.INTERNAL, f"{type(error).__name__}: {error}", retryable)

    def _nothing(self, rubric: Rubric, kind: FailureKind, message: str, retryable: bool = True) -> Judgement:
        why = Failure(kind, FailureCause.INFRASTRUCTURE, message, retryable)
        if self.options.mode == "implicit":
            return Judgement(overall=Verdict.failed("overall", why, judge=self.judge.name))
        return Judgement(tuple(Verdict.failed(name, why, judge=self.judge.name) for name in rubric.ids))

    def _judge_fingerprint(self) -> str:
        """The judge's fingerprint, "" where it cannot be had: verdicts that were paid for do not hang on it.

        A model whose name only its server knows has learned it by answering. If it has not, asking again would
        block this loop for as long as the server hangs: no time is left for it.
        """
        try:
            with chat_deadline(0.0):
                return self.judge.fingerprint
        except Exception as error:
            log.warning("judge %s has no fingerprint: %s", self.judge.name, error)
            return ""

    def _warn_of_silence(self, rewards: Sequence[Reward]) -> None:
        """A call that scored nothing says why, once until one scores: nobody looks at each reward's failure."""
        failures = [reward.failure for reward in rewards if reward.value is None and reward.failure is not None]
        silent = bool(failures) and len(failures) == len(rewards)
        if silent and not self._silent:
            # An open circuit only repeats what went wrong before it.
            first = next((why for why in failures if why.kind is not FailureKind.CIRCUIT_OPEN), failures[0])
            log.warning(
                "none of %d responses could be scored; %s: %s", len(rewards), first.kind.value, first.message
            )
        self._silent = silent

    def _too_late(self) -> str:
        return f"not judged within the deadline of {self.deadline:g} s"

    def _final(self, answer: _Asked, siblings: Siblings, fingerprint: str) -> Reward:
        reward, raises = self._reward(answer, siblings, fingerprint)
        if raises:
            raise _unscored(reward, 1, 1)
        return reward

    def _reward(self, answer: _Asked, siblings: Siblings, fingerprint: str) -> tuple[Reward, bool]:
        """The reward of a judged row, and whether a policy says to raise instead."""
        rubric, plan = answer.prepared.rubric, answer.prepared.plan
        row = siblings.settle(rubric, answer.row)
        score = score_verdicts(self.options, plan, row.verdicts, row.overall)
        reward = Reward(
            value=score.value,
            status=score.status,
            channels=self.channels.values(self.options, answer.prepared.parts, row.verdicts),
            coverage=score.coverage,
            bounds=score.bounds,
            vetoed_by=score.vetoed_by,
            verdicts=row.verdicts,
            overall=row.overall,
            failure=score.failure,
            rubric_fingerprint=rubric.fingerprint,
            rubric_version=rubric.version,
            judge_fingerprint=fingerprint,
            usage=answer.usage,
            latency=answer.latency,
        )
        return reward, wants_raise(self.options, score, row.verdicts, row.overall)

    def _prepare(self, rubric: Rubric | None) -> _Prepared:
        """The row's rubric, with the constant one, as arrays."""
        key = "" if rubric is None else f"{rubric.fingerprint} {rubric.version}"
        found = self._ready.get(key)
        if found is None:
            found = self._make(rubric)
            self._ready[key] = found
            if len(self._ready) > _CACHED_RUBRICS:
                self._ready.popitem(last=False)
        return found

    def _make(self, rubric: Rubric | None) -> _Prepared:
        parts = [part for part in (self.constant, rubric) if part is not None]
        if not parts:
            raise ConfigError(
                "there is no rubric to score against", hint="give the reward a rubric, or each row one of its own"
            )
        whole = parts[0] if len(parts) == 1 else compose(parts)
        plan = make_plan(self.options, whole)
        plan = replace(plan, floor=floor_of(self.options, plan))
        return _Prepared(whole, plan, self.channels.parts(whole, plan))


def _unscored(first: Reward, count: int, of: int) -> UnscoredError:
    why = first.failure.message if first.failure is not None else "no verdict"
    return UnscoredError(
        f"{count} of {of} responses could not be scored; the first: {why}",
        hint="score them again, or choose another policy for failures in the aggregation",
    )


def _forget(task: asyncio.Task[Judgement]) -> None:
    """Take note of a late judge's exception, so that the loop does not complain of it."""
    if not task.cancelled():
        task.exception()
