"""Scores the rows of a file, resumably: a bounded number at once, each committed to the journal as it is done."""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass

from rubricate.chat import recording_scope
from rubricate.cli.inputs import Unit
from rubricate.cli.journal import Journal
from rubricate.cli.progress import Step, no_step
from rubricate.cli.records import journal_record
from rubricate.cli.summary import UNFIT, UNREADABLE
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Reward, fingerprint

__all__ = ["Scored", "Scorer", "score_units", "worth_retrying"]

Scorer = Callable[[Rollout, Rubric], Coroutine[object, object, Reward]]
"""Gives the reward of one response; a judgement that fails is in the reward, not raised."""

HOPELESS = 20
"""The run stops when so many responses in a row, from the first on, got nothing but refused requests, or
nothing but replies that cannot be read."""


@dataclass(slots=True)
class Scored:
    """The outcome of a run.

    Attributes:
        places: where the journal holds each response, in input order (8 bytes a response).
        to_retry: number of responses that a later run will try again.
    """

    places: array[int]
    to_retry: int = 0


def worth_retrying(reward: Reward) -> bool:
    """Whether a later run should score the response again: it has no reward, for no reason that lies in it."""
    failure = reward.failure
    if reward.value is not None or failure is None:
        return False
    ours = (FailureKind.VERIFIER, FailureKind.INTERNAL)
    return failure.retryable or (failure.cause is FailureCause.INFRASTRUCTURE and failure.kind not in ours)


async def score_units(
    units: Iterable[Unit],
    journal: Journal,
    scorer: Scorer,
    *,
    at_once: int,
    step: Step = no_step,
    by_model: bool = True,
    apart: bool = False,
    on_stop: Callable[[], None] = lambda: None,
) -> Scored:
    """Score every unit that the journal does not hold yet, `at_once` at a time, and commit each as it is done.

    Units are read as there is room for them, so memory does not grow with the file (but for 8 bytes a response).

    Args:
        units: the responses, numbered from 0.
        journal: finished ones are taken from it and added to it.
        scorer: gives a reward.
        at_once: responses in work at the same time.
        step: told of each finished response, those found in the journal included.
        by_model: a model takes part. Without one, what failed fails again, so nothing is marked for another try.
        apart: rows with equal content are told apart by their order, at about 100 bytes a row: which of them got
            which answers matters to a recording.
        on_stop: called when the run is cancelled, before the calls in flight are waited for.

    Raises ConfigError when the judge refuses every request from the first on, or when none of its replies can be
    read; the journal keeps what there is.
    """
    run = _Run(journal, step, by_model, apart)
    ready: asyncio.Queue[asyncio.Task[Reward]] = asyncio.Queue()
    working: dict[asyncio.Task[Reward], _Work] = {}
    try:
        source = iter(units)
        more = True
        while more or working:
            while more and len(working) < at_once:
                work = await run.next_work(source)
                more = work is not None
                if work is not None:
                    task = asyncio.create_task(_scored(scorer, work))
                    working[task] = work
                    task.add_done_callback(ready.put_nowait)
            if working:
                task = await ready.get()
                run.commit(working.pop(task), task.result())
    except asyncio.CancelledError:
        on_stop()
        raise
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    return run.scored


@dataclass(frozen=True, slots=True)
class _Work:
    unit: Unit
    key: str
    replaces: int | None


async def _scored(scorer: Scorer, work: _Work) -> Reward:
    with recording_scope(work.key):
        return await scorer(work.unit.rollout, work.unit.rubric)


class _Run:
    """What a run knows of the responses so far."""

    def __init__(self, journal: Journal, step: Step, by_model: bool, apart: bool) -> None:
        self.scored = Scored(array("q"))
        self._journal = journal
        self._step = step
        self._by_model = by_model
        self._refused = self._unread = 0 if by_model else -1
        self._seen: Counter[str] | None = Counter() if apart else None

    async def next_work(self, source: Iterator[Unit]) -> _Work | None:
        """The next unit that is not in the journal; those that are get their place on the way."""
        for count, unit in enumerate(source, start=1):
            self.scored.places.append(-1)
            key = self._key(unit)
            found = self._journal.take(key)
            if found is None or found[1]:
                return _Work(unit, key, found[0] if found else None)
            self.scored.places[unit.number] = found[0]
            self._refused = self._unread = -1  # an earlier run has got on with this judge
            self._step(1, before=True)
            if count % 1000 == 0:
                await asyncio.sleep(0)  # answers that came meanwhile are read
        return None

    def _key(self, unit: Unit) -> str:
        key = unit.key
        if self._seen is None:
            return key
        before = self._seen[key]
        self._seen[key] += 1
        return fingerprint([key, before]) if before else key

    def commit(self, work: _Work, reward: Reward) -> None:
        """Put a reward into the journal."""
        record = journal_record(work.unit.rollout, work.unit.line, reward)
        again = self._by_model and worth_retrying(reward)
        place = self._journal.append(work.key, record, retry=again, replaces=work.replaces)
        self.scored.to_retry += again
        self.scored.places[work.unit.number] = place
        self._step(1)
        self._check_refusals(reward)
        self._check_replies(reward)

    def _check_refusals(self, reward: Reward) -> None:
        if self._refused < 0:
            return
        failure = reward.failure
        if reward.value is not None or failure is None or failure.kind is not FailureKind.REQUEST:
            self._refused = -1  # one good answer: key and model name are right
            return
        self._refused += 1
        if self._refused == HOPELESS:
            raise ConfigError(
                f"the judge refused each of the first {HOPELESS} responses: {failure.message}",
                hint="check the key, the model's name and the server's address, then run the same command again",
            )

    def _check_replies(self, reward: Reward) -> None:
        if self._unread < 0:
            return
        said = _unreadable(reward)
        if said is None:
            self._unread = -1  # it has given a verdict, or failed otherwise
            return
        self._unread += 1
        if self._unread == HOPELESS:
            raise ConfigError(
                f"none of the judge's replies on the first {HOPELESS} responses could be read: "
                f"{said.kind.value}: {' '.join(said.message.split())}",
                hint=f"{UNFIT}; with another mode give another --out, or --restart",
            )


def _unreadable(reward: Reward) -> Failure | None:
    """What the first reply was like, where replies that cannot be read are all that the judge gave."""
    told = (*reward.verdicts, *([reward.overall] if reward.overall else []))
    failures = [(verdict.judge, verdict.failure) for verdict in told if verdict.failure is not None]
    if reward.value is not None or not failures:
        return None
    judges = {judge for judge, _ in failures}
    if any(verdict.failure is None and verdict.judge in judges for verdict in told):
        return None
    return failures[0][1] if all(failure.kind in UNREADABLE for _, failure in failures) else None
