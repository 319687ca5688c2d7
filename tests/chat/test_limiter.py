"""The limiter on one event loop: concurrency, order, rates, retries, attempts and what it counts."""

from __future__ import annotations

import asyncio
import pickle
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubricate.chat import (
    ChatRequest,
    Completion,
    FailEvery,
    Limited,
    Limiter,
    Limits,
    Message,
    MockModel,
    attempts_of,
    failure_kind,
)
from rubricate.chat.timing import ManualClock
from rubricate.errors import (
    AnswerError,
    BudgetError,
    ChatError,
    CircuitOpenError,
    ConfigError,
    ContextOverflowError,
    DeadlineError,
    RateLimitError,
    RequestError,
    ServerError,
)
from rubricate.types import FailureKind, Usage


def ask(text: str = "hello", max_tokens: int = 10) -> ChatRequest:
    return ChatRequest((Message("user", text),), max_tokens=max_tokens)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition did not come true")


def quick(**fields: float | None) -> Limits:
    """Limits whose retries do not wait."""
    return Limits(**{"backoff": 0.0, **fields})  # pyright: ignore[reportArgumentType] - test shorthand


class Gate(MockModel):
    """A model whose answers wait until they are let through, in order of arrival."""

    def __init__(self) -> None:
        super().__init__("ok")
        self.doors: list[asyncio.Future[None]] = []

    async def complete(self, request: ChatRequest) -> Completion:
        door = asyncio.get_running_loop().create_future()
        self.doors.append(door)
        await door
        return await super().complete(request)


async def test_concurrency_is_bounded_and_first_come_is_first_served() -> None:
    model = Gate()
    limited = Limited(model, Limiter(quick(concurrency=2)))
    tasks = [asyncio.create_task(limited.complete(ask(str(at)))) for at in range(6)]
    for done in range(6):
        await until(lambda done=done: len(model.doors) > done)
        assert limited.limiter.stats.in_flight <= 2
        model.doors[done].set_result(None)
    await asyncio.gather(*tasks)
    assert [request.messages[0].content for request in model.requests] == [str(at) for at in range(6)]
    stats = limited.limiter.stats
    assert (stats.calls, stats.attempts, stats.answers, stats.max_in_flight) == (6, 6, 6, 2)
    assert (stats.in_flight, stats.waiting) == (0, 0)


async def test_a_cancelled_waiter_leaves_the_queue_and_a_cancelled_call_gives_its_permit_back() -> None:
    model = Gate()
    limited = Limited(model, Limiter(quick(concurrency=1)))
    tasks = [asyncio.create_task(limited.complete(ask(str(at)))) for at in range(3)]
    await until(lambda: limited.limiter.stats.waiting == 2 and len(model.doors) == 1)
    tasks[1].cancel()
    await until(lambda: limited.limiter.stats.waiting == 1)
    tasks[0].cancel()
    await until(lambda: len(model.doors) == 2)
    model.doors[1].set_result(None)
    assert (await tasks[2]).text == "ok"
    assert [request.messages[0].content for request in model.requests] == ["2"]
    assert limited.limiter.stats.in_flight == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), concurrency=st.integers(1, 4))
def test_no_permit_is_lost_whatever_is_cancelled(seed: int, concurrency: int) -> None:
    """Calls of random length are cancelled at random moments; the bound holds and all permits come back."""
    rng = random.Random(seed)
    running, worst = 0, 0

    class Steps(MockModel):
        async def complete(self, request: ChatRequest) -> Completion:
            nonlocal running, worst
            running += 1
            worst = max(worst, running)
            try:
                for _ in range(rng.randrange(6)):
                    await asyncio.sleep(0)
                if rng.random() < 0.2:
                    raise ServerError("boom", status=500)
                return Completion("ok")
            finally:
                running -= 1

    async def scenario() -> None:
        limited = Limited(Steps(), Limiter(quick(concurrency=concurrency, max_attempts=2)))
        tasks = [asyncio.create_task(limited.complete(ask())) for _ in range(20)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            if rng.random() < 0.3:
                rng.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        stats = limited.limiter.stats
        assert (stats.in_flight, stats.waiting) == (0, 0)
        later = await asyncio.gather(*(limited.complete_many([ask()]) for _ in range(concurrency * 2)))
        assert len(later) == concurrency * 2

    asyncio.run(scenario())
    assert worst <= concurrency


async def test_retries_count_as_attempts_and_calls() -> None:
    model = MockModel([ServerError("a", status=500), RateLimitError("b"), "fine"])
    limited = Limited(model, Limiter(quick(max_attempts=3)))
    answer = await limited.complete(ask())
    assert (answer.text, answer.usage.calls) == ("fine", 3)
    stats = limited.limiter.stats
    assert (stats.calls, stats.attempts, stats.retries) == (1, 3, 2)
    assert stats.failures == {"server": 1, "rate_limit": 1}
    assert stats.usage.calls == 3


async def test_attempts_are_bounded_and_reported() -> None:
    error = ServerError("down", status=503)
    limited = Limited(MockModel(error), Limiter(quick(max_attempts=4)))
    for _ in range(2):
        with pytest.raises(ServerError, match=r"down \(after 4 attempts\)") as caught:
            await limited.complete(ask())
        assert attempts_of(caught.value) == 4
        assert attempts_of(pickle.loads(pickle.dumps(caught.value))) == 4
    assert error.message == "down"


@pytest.mark.parametrize(
    "error", [RequestError("bad", status=400), ContextOverflowError("long"), AnswerError("no", outcome="refusal")]
)
async def test_what_cannot_help_is_not_tried_again(error: ChatError) -> None:
    limited = Limited(MockModel(error), Limiter(quick()))
    with pytest.raises(type(error)) as caught:
        await limited.complete(ask())
    assert attempts_of(caught.value) == 1
    assert limited.limiter.stats.attempts == 1


async def test_a_quota_that_is_used_up_is_not_tried_again() -> None:
    error = RateLimitError("quota")
    error.retryable = False
    limited = Limited(MockModel(error), Limiter(quick()))
    with pytest.raises(RateLimitError):
        await limited.complete(ask())
    assert limited.limiter.stats.attempts == 1


async def test_back_off_has_full_jitter_from_the_seed() -> None:
    async def times(seed: int) -> list[float]:
        clock, moments = ManualClock(), list[float]()

        def note(request: ChatRequest) -> ServerError:
            moments.append(clock.now())
            return ServerError("down", status=500)

        limits = Limits(max_attempts=5, backoff=1.0, max_backoff=3.0, breaker_failures=None, seed=seed)
        task = asyncio.create_task(Limited(MockModel(note), Limiter(limits, clock=clock)).complete_many([ask()]))
        await clock.run(20, step=0.01)
        assert task.done()
        return moments

    first = await times(1)
    assert first == await times(1)
    assert first != await times(2)
    gaps = [late - early for early, late in zip(first, first[1:], strict=False)]
    assert all(gap <= bound + 0.02 for gap, bound in zip(gaps, (1, 2, 3, 3), strict=True))


async def test_retry_after_is_honoured_and_too_long_a_one_is_not_waited_for() -> None:
    clock = ManualClock()
    model = MockModel(
        [RateLimitError("slow down", retry_after=7.0), "fine", RateLimitError("no", retry_after=500.0)]
    )
    limited = Limited(model, Limiter(Limits(backoff=0.5, max_retry_after=60.0), clock=clock))
    task = asyncio.create_task(limited.complete(ask()))
    await clock.run(6.9)
    assert not task.done()
    await clock.run(0.7)
    assert task.done() and (await task).text == "fine"
    with pytest.raises(RateLimitError):
        await limited.complete(ask())


async def test_a_retry_goes_before_calls_that_still_wait() -> None:
    model = MockModel([ServerError("x", status=500), *"abcdefgh"], latency=0.001)
    limited = Limited(model, Limiter(quick(concurrency=1)))
    await asyncio.gather(*(limited.complete(ask(str(at))) for at in range(8)))
    order = [request.messages[0].content for request in model.requests]
    assert order.index("0", 1) == 2


async def test_no_permit_is_held_during_back_off() -> None:
    clock = ManualClock()
    model = MockModel([RateLimitError("wait", retry_after=10.0), "other", "first"])
    limited = Limited(model, Limiter(Limits(concurrency=1), clock=clock))
    slow = asyncio.create_task(limited.complete(ask()))
    await clock.run(0.1)
    assert (await limited.complete(ask())).text == "other"
    await clock.run(12)
    assert (await slow).text == "first"


@settings(max_examples=25, deadline=None)
@given(rate=st.integers(6, 240), calls=st.integers(1, 60))
def test_requests_a_minute_hold_over_every_window(rate: int, calls: int) -> None:
    moments = list[float]()

    async def scenario() -> None:
        clock = ManualClock()

        def note(request: ChatRequest) -> str:
            moments.append(clock.now())
            return "ok"

        limiter = Limiter(Limits(requests_per_minute=rate, burst=10.0, concurrency=None), clock=clock)
        limited = Limited(MockModel(note), limiter)
        tasks = [asyncio.create_task(limited.complete(ask())) for _ in range(calls)]
        for _ in range(1000):
            if all(task.done() for task in tasks):
                break
            await clock.run(1.0, step=0.5)
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
    allowed = rate + max(rate / 6, 1) + 1
    for start in moments:
        assert sum(start <= at < start + 60 for at in moments) <= allowed


async def test_tokens_a_minute_are_corrected_by_what_was_used() -> None:
    clock = ManualClock()
    model = MockModel(Completion("ok", usage=Usage(calls=1, prompt_tokens=10, completion_tokens=0)))
    # 100 tokens may be used at once; each call is thought to need 60, and uses 10.
    limited = Limited(model, Limiter(Limits(tokens_per_minute=600, burst=10.0), clock=clock))
    for _ in range(5):
        await limited.complete(ask("", max_tokens=60))
    task = asyncio.create_task(limited.complete(ask("", max_tokens=60)))
    await clock.run(0.9)
    assert not task.done()
    await clock.run(0.2)
    assert task.done()


async def test_a_call_larger_than_the_bucket_passes_when_the_bucket_is_full() -> None:
    clock = ManualClock()
    limited = Limited(MockModel(), Limiter(Limits(tokens_per_minute=60, burst=10.0), clock=clock))
    await limited.complete(ask("x" * 400))
    task = asyncio.create_task(limited.complete(ask("x" * 400)))
    await clock.run(90)
    assert not task.done()
    await clock.run(20)
    assert task.done()


async def test_usage_is_priced() -> None:
    usage = Usage(calls=1, prompt_tokens=1000, completion_tokens=100, cached_tokens=400)
    limits = quick(prompt_price=2.0, completion_price=10.0, cached_price=0.5)
    limited = Limited(MockModel(Completion("ok", usage=usage)), Limiter(limits))
    answer = await limited.complete(ask())
    assert answer.usage.cost == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
    assert limited.limiter.stats.usage.cost == pytest.approx(answer.usage.cost)


class Together(MockModel):
    """A back end with its own complete_many, in which chosen requests fail the first time."""

    def __init__(self) -> None:
        super().__init__("ok")
        self.batches: list[list[str]] = []

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        texts = [request.messages[0].content for request in requests]
        self.batches.append(texts)
        first = len(self.batches) == 1
        return [self.answer(text, first) for text in texts]

    def answer(self, text: str, first: bool) -> Completion | ChatError:
        if text == "flaky" and first:
            return ServerError("once", status=500)
        return RequestError("never", status=400) if text == "bad" else Completion(text)


async def test_a_back_end_that_takes_many_gets_them_together_and_only_failures_again() -> None:
    model = Together()
    results = await Limited(model, Limiter(quick())).complete_many([ask("a"), ask("flaky"), ask("bad"), ask("b")])
    assert model.batches == [["a", "flaky", "bad", "b"], ["flaky"]]
    assert [result.text if isinstance(result, Completion) else type(result).__name__ for result in results] == [
        "a",
        "flaky",
        "RequestError",
        "b",
    ]
    assert [result.usage.calls for result in results if isinstance(result, Completion)] == [1, 2, 1]


async def test_many_calls_warm_the_prefix_first() -> None:
    model = Gate()
    model.warm_tokens = 10
    limited = Limited(model, Limiter(quick()))
    task = asyncio.create_task(limited.complete_many([ask("p" * 100 + str(at)) for at in range(4)]))
    await until(lambda: len(model.doors) == 1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(model.doors) == 1
    model.doors[0].set_result(None)
    await until(lambda: len(model.doors) == 4)
    for door in model.doors[1:]:
        door.set_result(None)
    assert len(await task) == 4


async def test_errors_that_are_bugs_come_through_and_free_the_permit() -> None:
    def broken(request: ChatRequest) -> str:
        raise ZeroDivisionError

    limited = Limited(MockModel(broken), Limiter(quick(concurrency=1)))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await limited.complete(ask())
    assert limited.limiter.stats.in_flight == 0


async def test_every_call_is_answered_or_failed_under_a_steady_failure_rate() -> None:
    limited = Limited(MockModel("ok", fail=FailEvery(4)), Limiter(quick(concurrency=8)))
    results = await asyncio.gather(*(limited.complete(ask()) for _ in range(40)))
    assert all(result.text == "ok" for result in results)
    assert limited.limiter.stats.attempts == 40 + limited.limiter.stats.retries


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ServerError("x"), FailureKind.SERVER),
        (RateLimitError("x"), FailureKind.RATE_LIMIT),
        (RequestError("x"), FailureKind.REQUEST),
        (DeadlineError("x"), FailureKind.DEADLINE),
        (BudgetError("x"), FailureKind.BUDGET),
        (CircuitOpenError("x"), FailureKind.CIRCUIT_OPEN),
        (ContextOverflowError("x"), FailureKind.OVERFLOW),
        (AnswerError("x", outcome="content_filter"), FailureKind.CONTENT_FILTER),
        (ChatError("x"), FailureKind.INTERNAL),
    ],
)
def test_each_error_has_its_kind(error: ChatError, kind: FailureKind) -> None:
    assert failure_kind(error) is kind


@pytest.mark.parametrize(
    "fields",
    [
        {"concurrency": 0},
        {"max_attempts": 0},
        {"backoff": -1.0},
        {"tokens_per_minute": float("nan")},
        {"max_cost": 1.0},
    ],
)
def test_limits_that_make_no_sense_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(fields))):
        Limits(**fields)  # pyright: ignore[reportArgumentType] - wrong on purpose


async def test_a_pickled_limiter_keeps_its_limits_and_counts_afresh() -> None:
    limited = Limited(MockModel("ok"), Limiter(Limits(concurrency=3, seed=4)))
    await limited.complete(ask())
    twin = pickle.loads(pickle.dumps(limited))
    assert twin.limiter.limits == limited.limiter.limits
    assert twin.limiter.stats.calls == 0
    assert (await twin.complete(ask())).text == "ok"
