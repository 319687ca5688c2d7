"""The one owner of waiting and retrying: a limiter that all calls of a model share, on any event loop or thread."""

from __future__ import annotations

import asyncio
import math
import os
import random
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rubricate.chat.attempts import failed_after, failure_kind, retry_after_of
from rubricate.chat.base import ChatModel, ChatRequest, Completion
from rubricate.chat.gates import Gates, Need
from rubricate.chat.limits import Limits
from rubricate.chat.queueing import Waiter, leave, wake_head
from rubricate.chat.timing import SYSTEM_CLOCK, Clock, deadline, remaining, sleep, wake_up
from rubricate.errors import ChatError, DeadlineError, ServerError
from rubricate.types import Usage

__all__ = ["Limiter", "LimiterStats"]


@dataclass(frozen=True, slots=True)
class LimiterStats:
    """What a limiter has seen so far.

    Attributes:
        calls: calls that have ended, answered or not.
        attempts: requests sent, retries included.
        retries: attempts beyond a call's first.
        answers: requests answered.
        failures: failed attempts and refused calls by FailureKind.
        usage: tokens and cost charged so far.
        in_flight, max_in_flight: attempts at the server now, and the most at once.
        waiting: calls in the queue now.
        circuit_open: whether the circuit breaker is open.
    """

    calls: int
    attempts: int
    retries: int
    answers: int
    failures: Mapping[str, int]
    usage: Usage
    in_flight: int
    max_in_flight: int
    waiting: int
    circuit_open: bool


@dataclass(slots=True)
class _State:
    """What calls share. Dropped by pickling and by a fork."""

    gates: Gates
    rng: random.Random
    pid: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    queue: deque[Waiter] = field(default_factory=deque[Waiter])
    failures: Counter[str] = field(default_factory=Counter[str])
    usage: Usage = Usage()
    calls: int = 0
    attempts: int = 0
    retries: int = 0
    answers: int = 0
    max_in_flight: int = 0


class Limiter:
    """Bounds, retries and counts the calls of one model or several.

    One limiter may serve any number of models, event loops and threads at once: all bounds are over the sum of
    their calls, and calls are admitted in the order in which they came, retries first. A pickled limiter carries
    its limits alone; the copy counts afresh, and so does a limiter in a forked child.

    Args:
        limits: the bounds.
        clock: what time it is; a ManualClock in tests.
    """

    def __init__(self, limits: Limits | None = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.limits = limits or Limits()
        self._clock = clock
        self._state = self._fresh()

    def __repr__(self) -> str:
        return f"Limiter({self.limits!r})"

    def __getstate__(self) -> dict[str, object]:
        return {"limits": self.limits}

    def __setstate__(self, state: Mapping[str, Limits]) -> None:
        self.limits = state["limits"]
        self._clock = SYSTEM_CLOCK
        self._state = self._fresh()

    def _fresh(self) -> _State:
        return _State(Gates(self.limits, self._clock.now()), random.Random(self.limits.seed), os.getpid())

    def _shared(self) -> _State:
        # A fork copies the lock in whatever state it was in, and permits whose owners live in the parent.
        if self._state.pid != os.getpid():
            self._state = self._fresh()
        return self._state

    @property
    def stats(self) -> LimiterStats:
        """A snapshot of what has happened so far."""
        state = self._shared()
        with state.lock:
            return LimiterStats(
                calls=state.calls,
                attempts=state.attempts,
                retries=state.retries,
                answers=state.answers,
                failures=dict(state.failures),
                usage=state.usage,
                in_flight=state.gates.in_flight,
                max_in_flight=state.max_in_flight,
                waiting=len(state.queue),
                circuit_open=state.gates.breaker.is_open,
            )

    async def call(self, model: ChatModel, request: ChatRequest) -> Completion:
        """Answer one request within the limits; `usage.calls` of the answer counts the attempts.

        Raises ChatError: the last attempt's, DeadlineError, BudgetError or CircuitOpenError. `attempts_of` says how
        many requests were sent.
        """

        async def once(requests: list[ChatRequest]) -> list[Completion | ChatError]:
            return [await model.complete(requests[0])]

        (result,) = await self._run([request], once, model.name)
        if isinstance(result, ChatError):
            raise result
        return result

    async def call_many(self, model: ChatModel, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """Answer requests by one `complete_many` of the back end: one permit for all, and again for what failed.

        Each answer or its error, in the order of the requests.
        """
        return await self._run(list(requests), model.complete_many, model.name)

    async def _run(self, requests: list[ChatRequest], send: _Send, provider: str) -> list[Completion | ChatError]:
        results: dict[int, Completion | ChatError] = {}
        try:
            with deadline(self.limits.deadline, clock=self._clock):
                await self._fill(results, requests, send, provider)
        finally:
            self._count(calls=len(requests))
        return [results[at] for at in range(len(requests))]

    async def _fill(
        self, results: dict[int, Completion | ChatError], requests: list[ChatRequest], send: _Send, provider: str
    ) -> None:
        pending, attempt, pause = list(range(len(requests))), 0, 0.0
        last: ChatError | None = None
        while pending:
            batch = [requests[at] for at in pending]
            need = Need.of(self.limits, batch)
            try:
                if attempt:
                    await self._back_off(pause, provider)
                await self._admit(need, provider, urgent=attempt > 0)
            except ChatError as refused:
                self._count(refused=refused, requests=len(batch))
                results.update((at, failed_after(refused, attempt, last)) for at in pending)
                return
            attempt += 1
            answers = await self._send(batch, need, send, provider)
            again, pause = list[int](), 0.0
            for at, answer in zip(pending, answers, strict=True):
                wait = self._retry_pause(answer, attempt) if isinstance(answer, ChatError) else None
                if isinstance(answer, Completion):
                    results[at] = self._answered(answer, attempt)
                elif wait is None:
                    results[at] = failed_after(answer, attempt)
                else:
                    again.append(at)
                    pause, last = max(pause, wait), answer
            pending = again

    async def _back_off(self, pause: float, provider: str) -> None:
        if pause >= _left():
            raise DeadlineError("the deadline leaves no time for another attempt", provider=provider)
        await sleep(self._clock, pause)

    async def _admit(self, need: Need, provider: str, *, urgent: bool) -> None:
        """Wait for a turn and take a permit. Retries (`urgent`) go to the head of the queue."""
        state, waiter = self._shared(), None
        try:
            while True:
                delay, left = math.inf, _left()
                if left <= 0:
                    raise DeadlineError("the deadline passed before the call could be sent", provider=provider)
                with state.lock:
                    if urgent or not state.queue or state.queue[0] is waiter:
                        delay = state.gates.delay(need, self._clock.now())
                    if delay <= 0:
                        self._take(state, need, urgent)
                        return
                    if waiter is None:
                        waiter = Waiter(threading.get_ident(), asyncio.get_running_loop())
                    if not waiter.queued:
                        state.queue.insert(0 if urgent else len(state.queue), waiter)
                        waiter.queued = True
                    future = waiter.future = waiter.loop.create_future()
                await self._wait(future, min(delay, left))
        finally:
            if waiter is not None:
                with state.lock:
                    leave(state.queue, waiter)
                    if not state.gates.full:  # else whoever gives a permit back wakes the next
                        wake_head(state.queue)

    def _take(self, state: _State, need: Need, urgent: bool) -> None:
        state.gates.take(need)
        state.attempts += need.requests
        state.retries += need.requests if urgent else 0
        state.max_in_flight = max(state.max_in_flight, state.gates.in_flight)

    async def _wait(self, future: asyncio.Future[None], seconds: float) -> None:
        if math.isinf(seconds):
            await future
            return
        cancel = self._clock.call_later(seconds, lambda: wake_up(future))
        try:
            await future
        finally:
            cancel()

    async def _send(
        self, batch: list[ChatRequest], need: Need, send: _Send, provider: str
    ) -> list[Completion | ChatError]:
        """One attempt: a permit is held when it begins and given back when it ends, however it ends."""
        left, limit = _left(), self.limits.attempt_timeout or math.inf
        seconds = min(left, limit)
        answers: list[Completion | ChatError] = []
        cut: BaseException | None = None
        scope = asyncio.timeout(None if math.isinf(seconds) else seconds)
        try:
            async with scope:
                answers = await send(batch)
        except ChatError as error:
            answers = [error] * len(batch)
        except BaseException as error:
            cut = error
            if not (isinstance(error, TimeoutError) and scope.expired()):
                raise
            cut = ServerError(f"no answer within {limit:g} s", provider=provider)
            if left <= limit:
                cut = DeadlineError("the deadline passed before the server answered", provider=provider)
            answers = [cut] * len(batch)
        finally:
            self._settle(batch, need, answers, cut)
        return answers

    def _settle(
        self, batch: list[ChatRequest], need: Need, answers: list[Completion | ChatError], cut: BaseException | None
    ) -> None:
        charges = [self._charge(*pair) for pair in zip(batch, answers, strict=False)]
        if cut is not None:
            charges = [self._charge(request, None) for request in batch]
        charged = charges[0] if len(charges) == 1 else sum(charges, Usage())
        errors = [answer for answer in answers if isinstance(answer, ChatError)]
        verdict = cut or (errors[0] if errors and len(errors) == len(answers) else None)
        state = self._shared()
        with state.lock:
            state.gates.settle(need, self._clock.now(), charged, verdict)
            state.usage += charged
            state.answers += len(answers) - len(errors)
            state.failures.update(failure_kind(error).value for error in errors)
            wake_head(state.queue)

    def _charge(self, request: ChatRequest, answer: Completion | ChatError | None) -> Usage:
        """What an attempt costs. One that was cut off (None), or whose reply broke, may have cost its prompt."""
        if isinstance(answer, Completion):
            usage = answer.usage
            if not (usage.prompt_tokens or usage.completion_tokens):
                need = Need.of(self.limits, [request])
                usage = Usage(1, need.prompt_tokens, need.completion_tokens)
            return self._priced(usage)
        if answer is None or isinstance(answer, DeadlineError) or answer.status == 200:
            return self._priced(Usage(1, Need.of(self.limits, [request]).prompt_tokens))
        return Usage(calls=1)

    def _priced(self, usage: Usage) -> Usage:
        cost = usage.cost or self.limits.cost(usage)
        return usage if cost == usage.cost else replace(usage, cost=cost)

    def _answered(self, answer: Completion, attempt: int) -> Completion:
        usage = self._priced(answer.usage)
        if attempt > 1:
            usage = replace(usage, calls=usage.calls + attempt - 1)
        return answer if usage is answer.usage else replace(answer, usage=usage)

    def _retry_pause(self, error: ChatError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt, None for no further attempt."""
        limits = self.limits
        retry_after = retry_after_of(error)
        if not error.retryable or attempt >= limits.max_attempts or retry_after > limits.max_retry_after:
            return None
        state = self._shared()
        with state.lock:
            jitter = state.rng.uniform(0.0, min(limits.max_backoff, limits.backoff * 2.0 ** min(attempt - 1, 60)))
        return retry_after + jitter

    def _count(self, *, calls: int = 0, refused: ChatError | None = None, requests: int = 0) -> None:
        state = self._shared()
        with state.lock:
            state.calls += calls
            if refused is not None:
                state.failures[failure_kind(refused).value] += requests


_Send = Callable[[list[ChatRequest]], Awaitable[list[Completion | ChatError]]]


def _left() -> float:
    left = remaining()
    return math.inf if left is None else left
