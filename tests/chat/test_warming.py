"""One call of a group goes ahead, so that a server's prefix cache serves all others."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Sequence

from rubricate.chat import ChatRequest, Completion, Limited, Limiter, Limits, Message, MockModel
from rubricate.chat.server import ServerModel
from rubricate.chat.testserver import FaultyServer


def ask(text: str) -> ChatRequest:
    return ChatRequest((Message("system", "Judge."), Message("user", text)), max_tokens=10)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition did not come true")


class Gate(MockModel):
    """A model whose answers wait until they are let through, in order of arrival."""

    def __init__(self, answer: str, *, warm_tokens: int) -> None:
        super().__init__(answer, warm_tokens=warm_tokens)
        self.doors: list[asyncio.Future[None]] = []
        self._open = False

    async def complete(self, request: ChatRequest) -> Completion:
        door = asyncio.get_running_loop().create_future()
        self.doors.append(door)
        if not self._open:
            await door
        return await super().complete(request)

    def open(self) -> None:
        """Let through whoever waits, and all that come."""
        self._open = True
        for door in self.doors:
            if not door.done():
                door.set_result(None)


async def test_of_a_group_one_call_goes_ahead_of_all() -> None:
    """Responses to one long prompt share its part; those to another prompt do not wait for it."""
    model = Gate("ok", warm_tokens=10)
    limited = Limited(model, Limiter(Limits()))

    def judged(prompt: str, response: str) -> list[ChatRequest]:
        return [ask(f"{prompt * 60}{response * 60}{criterion}") for criterion in range(3)]

    groups = [judged("p", "a"), judged("p", "b"), judged("q", "a"), judged("p", "c")]
    tasks = [asyncio.create_task(limited.complete_many(group)) for group in groups]

    async def settled(calls: int) -> None:
        await until(lambda: len(model.doors) == calls)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(model.doors) == calls

    await settled(2)  # one for each prompt
    model.doors[0].set_result(None)
    await settled(2 + 2 + 2)  # the first response's others, and one for each other response to the prompt
    tasks.append(asyncio.create_task(limited.complete_many(judged("p", "d"))))
    await settled(2 + 2 + 2 + 1)  # the prompt is known by now
    model.open()
    await asyncio.gather(*tasks)
    assert len(model.doors) == 15


async def test_a_group_is_not_lost_with_the_call_that_goes_ahead() -> None:
    model = Gate("ok", warm_tokens=10)
    limited = Limited(model, Limiter(Limits()))
    groups = [[ask(f"{'p' * 60}{response * 60}{at}") for at in range(3)] for response in "ab"]
    ahead, other = [asyncio.create_task(limited.complete_many(group)) for group in groups]
    await until(lambda: len(model.doors) == 1)
    ahead.cancel()
    await until(lambda: len(model.doors) == 2)
    model.doors[1].set_result(None)
    await until(lambda: len(model.doors) == 4)
    model.open()
    assert all(isinstance(answer, Completion) for answer in await other)


async def test_a_server_that_caches_what_it_has_answered_computes_a_groups_prompt_once() -> None:
    prompt, responses, criteria = "p" * 4000, 8, 4
    async with FaultyServer(lambda body: "yes", latency=0.01) as server:
        model = ServerModel(server.url, "test", warm_tokens=256)
        groups = [[ask(f"{prompt}{str(n) * 1000}{k}") for k in range(criteria)] for n in range(responses)]
        await asyncio.gather(*(model.complete_many(group) for group in groups))
        await model.aclose()
        computed = server.counts.computed_late
    least = (4000 + responses * 1000) / 4
    assert least <= computed <= least + responses * criteria * 20  # ends of prompts that fill no block


def test_loops_are_not_kept() -> None:
    def run(requests: Sequence[ChatRequest]) -> weakref.ref[asyncio.AbstractEventLoop]:
        async def once() -> weakref.ref[asyncio.AbstractEventLoop]:
            await MockModel("ok", warm_tokens=10).complete_many(requests)
            return weakref.ref(asyncio.get_running_loop())

        return asyncio.run(once())

    loop = run([ask("p" * 100 + str(at)) for at in range(4)])
    gc.collect()
    assert loop() is None
