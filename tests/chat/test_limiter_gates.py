"""Circuit breaker, budgets, deadlines, and one limiter on several loops and threads."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable

import pytest

from rubricate.chat import (
    ChatRequest,
    Completion,
    Limited,
    Limiter,
    Limits,
    Message,
    MockModel,
    Scripted,
    attempts_of,
    deadline,
    remaining,
)
from rubricate.chat.timing import ManualClock, settle
from rubricate.errors import (
    BudgetError,
    ChatError,
    CircuitOpenError,
    ConfigError,
    DeadlineError,
    RequestError,
    ServerError,
)
from rubricate.types import Usage

DOWN = ServerError("down", status=500)


def ask(text: str = "hello", max_tokens: int = 10) -> ChatRequest:
    return ChatRequest((Message("user", text),), max_tokens=max_tokens)


class Switch(MockModel):
    """A server that is up or down."""

    def __init__(self) -> None:
        super().__init__("ok")
        self.error: ChatError | None = None
        self.seen = 0

    async def complete(self, request: ChatRequest) -> Completion:
        self.seen += 1
        if self.error is not None:
            raise self.error
        return await super().complete(request)


def breaker(patience: float, clock: ManualClock, failures: int = 3) -> tuple[Switch, Limited]:
    limits = Limits(
        max_attempts=1, breaker_failures=failures, breaker_pause=5.0, breaker_patience=patience, concurrency=None
    )
    model = Switch()
    return model, Limited(model, Limiter(limits, clock=clock))


async def test_failures_in_a_row_open_the_circuit_and_a_probe_closes_it() -> None:
    clock = ManualClock()
    model, limited = breaker(0.0, clock)
    model.error = DOWN
    for _ in range(3):
        with pytest.raises(ServerError):
            await limited.complete(ask())
    assert limited.limiter.stats.circuit_open
    with pytest.raises(CircuitOpenError) as caught:
        await limited.complete(ask())
    assert attempts_of(caught.value) == 0
    assert model.seen == 3
    clock.advance(5)
    with pytest.raises(ServerError):  # the probe, and the server is still down
        await limited.complete(ask())
    with pytest.raises(CircuitOpenError):
        await limited.complete(ask())
    clock.advance(5)
    model.error = None
    assert (await limited.complete(ask())).text == "ok"
    assert not limited.limiter.stats.circuit_open
    assert limited.limiter.stats.failures == {"server": 4, "circuit_open": 2}


async def test_refused_requests_and_answers_keep_the_circuit_closed() -> None:
    clock = ManualClock()
    model, limited = breaker(0.0, clock)
    for error in (DOWN, DOWN, RequestError("bad", status=400), DOWN, DOWN, None, DOWN, DOWN):
        model.error = error
        await limited.complete_many([ask()])
    assert not limited.limiter.stats.circuit_open
    model.error = RequestError("bad", status=400)
    for _ in range(10):
        await limited.complete_many([ask()])
    assert not limited.limiter.stats.circuit_open


async def test_calls_wait_for_an_open_circuit_while_patience_lasts() -> None:
    clock = ManualClock()
    model, limited = breaker(30.0, clock)
    model.error = DOWN
    for _ in range(3):
        await limited.complete_many([ask()])
    waiting = [asyncio.create_task(limited.complete(ask())) for _ in range(4)]
    await clock.run(4.8)
    assert model.seen == 3
    model.error = None
    await clock.run(0.4)
    assert [task.result().text for task in waiting] == ["ok"] * 4


async def test_one_probe_at_a_time_then_refusal() -> None:
    clock = ManualClock()
    model, limited = breaker(12.0, clock)
    model.error = DOWN
    for _ in range(3):
        await limited.complete_many([ask()])
    waiting = [asyncio.create_task(limited.complete_many([ask()])) for _ in range(6)]
    await clock.run(5.2)
    assert model.seen == 4
    await clock.run(5.2)
    assert model.seen == 5
    await clock.run(5.2)
    results = [result for task in waiting for result in await task]
    kinds = [type(result).__name__ for result in results]
    assert kinds.count("CircuitOpenError") >= 3
    assert kinds.count("ServerError") == model.seen - 3


async def test_a_cancelled_probe_lets_the_next_call_probe() -> None:
    clock = ManualClock()
    limits = Limits(max_attempts=1, breaker_failures=1, breaker_pause=5.0)
    model = MockModel([DOWN, Scripted(hang=True), "ok"])
    limited = Limited(model, Limiter(limits, clock=clock))
    await limited.complete_many([ask()])
    clock.advance(5)
    probe = asyncio.create_task(limited.complete(ask()))
    second = asyncio.create_task(limited.complete(ask()))
    await settle()
    assert len(model.requests) == 2
    probe.cancel()
    assert (await second).text == "ok"


async def test_the_token_budget_stops_the_call_that_would_exceed_it() -> None:
    answer = Completion("ok", usage=Usage(calls=1, prompt_tokens=30, completion_tokens=10))
    model = MockModel(answer)
    limited = Limited(model, Limiter(Limits(max_tokens_total=100)))
    for _ in range(2):
        await limited.complete(ask("x" * 40, max_tokens=20))
    with pytest.raises(BudgetError, match="80 of 100 spent"):
        await limited.complete(ask("x" * 40, max_tokens=20))
    assert len(model.requests) == 2


async def test_the_money_budget_counts_cached_prices() -> None:
    usage = Usage(calls=1, prompt_tokens=1_000_000, completion_tokens=0, cached_tokens=1_000_000)
    limits = Limits(max_cost=2.5, prompt_price=4.0, cached_price=1.0, completion_price=8.0)
    limited = Limited(MockModel(Completion("ok", usage=usage)), Limiter(limits))
    await limited.complete(ask())
    await limited.complete(ask())
    with pytest.raises(BudgetError, match=r"2\.0000 of 2\.5000"):
        await limited.complete(ask("x" * 1_000_000))
    assert (await limited.complete(ask())).text == "ok"


async def test_a_call_waits_while_calls_under_way_hold_the_rest_of_the_budget() -> None:
    model = MockModel(Completion("ok", usage=Usage(calls=1, prompt_tokens=1, completion_tokens=1)), latency=0.001)
    limited = Limited(model, Limiter(Limits(max_tokens_total=100)))
    results = await asyncio.gather(*(limited.complete(ask("", max_tokens=60)) for _ in range(5)))
    assert len(results) == 5
    assert model.max_in_flight == 1


async def test_an_attempt_that_was_cut_off_may_have_cost_its_prompt() -> None:
    limits = Limits(max_tokens_total=2000, attempt_timeout=0.02, max_attempts=1)
    limited = Limited(MockModel(Scripted(hang=True)), Limiter(limits))
    with pytest.raises(ServerError, match="no answer within"):
        await limited.complete(ask("x" * 400))
    assert limited.limiter.stats.usage == Usage(calls=1, prompt_tokens=100)


async def test_a_hang_ends_by_the_deadline() -> None:
    limited = Limited(MockModel(Scripted(hang=True)), Limiter(Limits(concurrency=1)))
    start = time.monotonic()
    with deadline(0.05):
        results = await limited.complete_many([ask(str(at)) for at in range(3)])
    assert time.monotonic() - start < 10
    assert all(isinstance(result, DeadlineError) for result in results)
    assert limited.limiter.stats.in_flight == 0


async def test_an_attempt_that_takes_too_long_is_tried_again() -> None:
    class Deaf(MockModel):
        async def complete(self, request: ChatRequest) -> Completion:
            if not self.requests:
                self.requests.append(request)
                await asyncio.get_running_loop().create_future()
            return await super().complete(request)

    limited = Limited(Deaf("ok"), Limiter(Limits(attempt_timeout=0.02, backoff=0.0)))
    answer = await limited.complete(ask())
    assert (answer.text, answer.usage.calls) == ("ok", 2)
    assert limited.limiter.stats.failures == {"server": 1}


async def test_back_off_that_cannot_end_in_time_fails_at_once_and_says_why() -> None:
    limited = Limited(MockModel(DOWN), Limiter(Limits(backoff=1000.0, max_backoff=1e6, seed=1)))
    start = time.monotonic()
    with deadline(5.0), pytest.raises(DeadlineError, match="the last error was: down") as caught:
        await limited.complete(ask())
    assert time.monotonic() - start < 10
    assert attempts_of(caught.value) == 1


async def test_the_queue_ends_by_the_deadline() -> None:
    clock = ManualClock()
    limited = Limited(MockModel(Scripted(hang=True)), Limiter(Limits(concurrency=1), clock=clock))
    holder = asyncio.create_task(limited.complete(ask()))
    await settle()
    with deadline(3.0, clock=clock):
        waiter = asyncio.create_task(limited.complete(ask()))
    await clock.run(2.9)
    assert not waiter.done()
    await clock.run(0.2)
    with pytest.raises(DeadlineError):
        await waiter
    assert limited.limiter.stats.waiting == 0
    holder.cancel()


async def test_a_limit_on_one_call_counts_waiting_and_tries() -> None:
    clock = ManualClock()
    limits = Limits(deadline=10.0, backoff=4.0, max_attempts=50, seed=0, breaker_failures=None)
    limited = Limited(MockModel(DOWN), Limiter(limits, clock=clock))
    task = asyncio.create_task(limited.complete(ask()))
    await clock.run(10.5)
    with pytest.raises(DeadlineError):
        await task


async def test_deadlines_nest_and_the_earlier_one_holds() -> None:
    clock = ManualClock()
    assert remaining() is None
    with deadline(10, clock=clock):
        with deadline(20, clock=clock):
            assert remaining() == 10
        with deadline(5, clock=clock):
            assert remaining() == 5
            clock.advance(6)
            assert remaining() == 0
        assert remaining() == 4
        with deadline(None):
            assert remaining() == 4

        async def inherited() -> float | None:
            return remaining()

        assert await asyncio.create_task(inherited()) == 4
    assert remaining() is None
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ConfigError), deadline(wrong):
            pass


def in_threads(work: Callable[[int], None], count: int) -> None:
    failures = list[BaseException]()

    def guarded(at: int) -> None:
        try:
            work(at)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures


def test_loops_on_several_threads_share_one_bound() -> None:
    model = MockModel("ok", latency=0.0005)
    limited = Limited(model, Limiter(Limits(concurrency=3)))

    def work(at: int) -> None:
        async def main() -> None:
            tasks = [asyncio.create_task(limited.complete(ask())) for _ in range(25)]
            await asyncio.sleep(0)
            for task in tasks[::5]:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert sum(isinstance(result, Completion) for result in results) == 20

        asyncio.run(main())

    in_threads(work, 4)
    assert model.max_in_flight <= 3
    stats = limited.limiter.stats
    assert (stats.in_flight, stats.waiting, stats.answers) == (0, 0, 80)


def test_one_loop_after_another_and_one_that_stopped_with_a_waiter() -> None:
    limited = Limited(MockModel("ok"), Limiter(Limits(concurrency=1)))
    for _ in range(3):
        assert asyncio.run(limited.complete(ask())).text == "ok"

    hanging = Limited(MockModel([Scripted(hang=True), "ok", "ok"]), limited.limiter)
    stopped = asyncio.new_event_loop()
    tasks = [stopped.create_task(hanging.complete(ask())) for _ in range(2)]
    stopped.run_until_complete(settle())
    assert limited.limiter.stats.waiting == 1

    async def after() -> str:
        with deadline(10):
            late = asyncio.create_task(hanging.complete(ask()))
            await settle()
            stopped.call_soon_threadsafe(tasks[0].cancel)
            await settle()
            late.cancel()
        return "ok"

    assert asyncio.run(after()) == "ok"
    # The stopped loop goes on: its cancelled call frees the permit, and its waiter gets it.
    assert stopped.run_until_complete(tasks[1]).text == "ok"
    stopped.close()


def test_the_waiter_of_a_stopped_loop_does_not_block_others() -> None:
    limiter = Limiter(Limits(concurrency=1))
    slow = Limited(MockModel("slow", latency=0.02), limiter)
    stopped = asyncio.new_event_loop()

    kept = list[asyncio.Task[Completion]]()

    def queue_on_stopped_loop() -> None:
        task = stopped.create_task(slow.complete(ask()))
        kept.append(task)
        stopped.run_until_complete(settle())

    async def main() -> str:
        holder = asyncio.create_task(slow.complete(ask()))
        await settle()
        thread = threading.Thread(target=queue_on_stopped_loop)
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.001)
        await holder
        with deadline(5):
            return (await slow.complete(ask())).text

    assert asyncio.run(main()) == "slow"
    assert stopped.run_until_complete(kept[0]).text == "slow"
    stopped.close()


def child(limited: Limited, results: multiprocessing.SimpleQueue[tuple[str, int]]) -> None:
    answer = asyncio.run(limited.complete(ask()))
    results.put((answer.text, limited.limiter.stats.calls))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_afresh_whatever_the_parent_holds() -> None:
    limited = Limited(MockModel("ok"), Limiter(Limits(concurrency=1)))
    context = multiprocessing.get_context("fork")
    results: multiprocessing.SimpleQueue[tuple[str, int]] = context.SimpleQueue()
    hanging = Limited(MockModel(Scripted(hang=True)), limited.limiter)

    async def main() -> None:
        holder = asyncio.create_task(hanging.complete(ask()))
        await settle()
        process = context.Process(target=child_entry, args=(limited, results))
        process.start()
        await asyncio.to_thread(process.join, 30)
        assert process.exitcode == 0
        holder.cancel()

    asyncio.run(main())
    assert results.get() == ("ok", 1)


def child_entry(limited: Limited, results: multiprocessing.SimpleQueue[tuple[str, int]]) -> None:
    # A fork inherits the parent's running loop as far as asyncio knows; a thread of its own has none.
    thread = threading.Thread(target=child, args=(limited, results))
    thread.start()
    thread.join(20)
