"""A group of responses to one prompt: its prompt is computed once, in bounded memory, through rewards too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.local import load_local
from rubricate.chat.local_engine import Engine
from rubricate.chat.local_host import Work
from rubricate.chat.local_path import Path as TokenPath
from rubricate.chat.local_store import PrefixStore
from rubricate.chat.local_tree import Pass, build_tree
from rubricate.data.records import Rollout
from rubricate.errors import ChatError
from rubricate.judges import LogprobJudge
from rubricate.rewardmodels import RubricReward
from rubricate.rubrics import Criterion, Rubric

Requests = Callable[..., ChatRequest]
Answers = Callable[[Engine, list[ChatRequest], bool], list[Completion]]
Engines = Callable[..., Engine]
Count = Callable[[Engine], list[int]]


def values(answer: Completion) -> list[dict[str, float]]:
    assert answer.logprobs is not None
    # bytes that are no character on their own all read alike
    return [{piece: value for piece, value in token.top if "\ufffd" not in piece} for token in answer.logprobs]


def charged(answers: Sequence[Completion]) -> int:
    return sum(answer.usage.prompt_tokens - answer.usage.cached_tokens for answer in answers)


def group(user: Requests, responses: int, count: int, **fields: object) -> list[list[ChatRequest]]:
    task = "Say in a few words whether the cat sat on the mat, and why you think so. " * 3
    replies = [
        f"It did {'not ' * n}sit there, as {n} of the witnesses said yesterday. " * 6 for n in range(responses)
    ]
    return [[user(f"{task}\n{reply}\nIs it so? {n}", **fields) for n in range(count)] for reply in replies]


def run_together(engine: Engine, calls: Sequence[Sequence[ChatRequest]]) -> list[list[Completion]]:
    """Calls that wait together in the queue."""
    found: dict[int, list[Completion]] = {}

    def deliver(place: int, answers: list[Completion | ChatError]) -> None:
        found[place] = [answer for answer in answers if isinstance(answer, Completion)]

    def fail(error: Exception) -> None:
        raise error

    engine.run([Work(call, lambda: True, partial(deliver, place), fail) for place, call in enumerate(calls)])
    return [found[place] for place in range(len(calls))]


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("apart", [False, True])
def test_a_group_computes_its_prompt_once_and_each_response_once(
    engines: Engines, ask: Answers, user: Requests, count: Count, kind: str, apart: bool
) -> None:
    engine = engines(kind)
    calls = group(user, 4, 5, max_tokens=1, top_logprobs=10_000)
    ask(engine, calls[0], True)
    engine.store.clear()
    sizes = count(engine)
    # the calls of a group wait together, or come one after another
    answers = [run_together(engine, [call])[0] for call in calls] if apart else run_together(engine, calls)
    flat = [answer for call in answers for answer in call]
    distinct = build_tree([engine.codec.encode(request) for call in calls for request in call]).size
    assert sum(sizes) == charged(flat) <= distinct + 20
    assert 4 * sum(sizes) < sum(answer.usage.prompt_tokens for answer in flat)
    exact = [ask(engine, [request], False)[0] for call in calls for request in call]
    for left, right in zip(flat, exact, strict=True):
        ours, theirs = values(left)[0], values(right)[0]
        assert ours.keys() == theirs.keys() and max(abs(ours[t] - theirs[t]) for t in ours) < 1e-4


@pytest.mark.parametrize("mixed", [1, 9])
def test_a_group_that_generates(engines: Engines, ask: Answers, user: Requests, mixed: int) -> None:
    engine = engines("llama")
    calls = [
        [replace(request, max_tokens=1 + (n + place) % mixed) for n, request in enumerate(call)]
        for place, call in enumerate(group(user, 3, 4, max_tokens=9))
    ]
    answers = run_together(engine, [*calls, [user("something quite different", max_tokens=4)]])
    for call, found in zip(calls, answers, strict=False):
        assert [a.text for a in found] == [ask(engine, [request], False)[0].text for request in call]
    assert answers[-1][0].text == ask(engine, [user("something quite different", max_tokens=4)], False)[0].text


@pytest.mark.parametrize("bound", [1, 40_000, 400_000])
def test_memory_bound_makes_passes_small_and_changes_no_answer(
    engines: Engines, ask: Answers, user: Requests, count: Count, bound: int
) -> None:
    engine = engines("qwen3", max_cache_bytes=bound)
    calls = group(user, 3, 6, max_tokens=1, top_logprobs=10_000)
    long = "a response that goes on and on, " * 60
    calls += [[user(f"{long}{n}", max_tokens=3, top_logprobs=10_000) for n in range(3)], [user(long, max_tokens=2)]]
    ask(engine, calls[0], True)
    sizes = count(engine)
    answers = run_together(engine, calls)
    each = 2 * 2 * 2 * 8 * 4  # bytes of a token: keys and values, layers, heads, size of a head, fp32
    assert engine.store.bytes <= bound // 2
    # passes of 16 tokens are the smallest that are made; those that do not go on generating are within the bound
    assert max(sizes) <= max(16, bound // 2 // each)
    assert max(sizes) < 768 // (2 if bound < 400_000 else 1)
    exact = [[ask(engines("qwen3"), [request], False)[0] for request in call] for call in calls]
    for ours, theirs in zip(answers, exact, strict=True):
        for left, right in zip(ours, theirs, strict=True):
            assert left.text == right.text
            if left.logprobs and right.logprobs:
                assert values(left)[0] == pytest.approx(values(right)[0], abs=1e-4)


def test_what_is_kept_is_what_was_used_last(engines: Engines) -> None:
    network = engines("llama").network
    whole = [[3 + (seed + place * place) % 97 for place in range(100)] for seed in (1, 20, 50)]
    each = 2 * 2 * 2 * 8 * 4
    store = PrefixStore(210 * each)  # two of the three
    with torch.inference_mode():
        path = TokenPath(network, whole, store=store)
        for row in (0, 1, 0, 2):
            path.run(Pass(row, 99, row, (row,), ()))
    assert [store.match(prompt) for prompt in whole] == [99, 0, 99]
    assert store.bytes == 198 * each
    assert store.match(whole[0][:30] + [0]) == 30
    store.clear()
    assert store.bytes == 0 and store.match(whole[0]) == 0


async def test_calls_of_a_group_share_through_the_model(models: Callable[[str], object], user: Requests) -> None:
    model = load_local(str(models("llama")), device="cpu", max_cache_bytes=1 << 24)
    calls = group(user, 3, 4, max_tokens=1, top_logprobs=5)
    answers = await asyncio.gather(*(model.complete_many(call) for call in calls))
    whole = [answer for call in answers for answer in call if isinstance(answer, Completion)]
    assert len(whole) == 12 and [answer.usage.cached_tokens == 0 for answer in whole] == [True] + [False] * 11
    # an equal one that comes later computes its last token only
    again = await model.complete(calls[0][0])
    assert again.usage.cached_tokens > 0.6 * again.usage.prompt_tokens
    await model.aclose()


async def test_a_reward_computes_the_prompt_once_for_its_responses(models: Callable[[str], Path]) -> None:
    judge = LogprobJudge(load_local(str(models("llama")), device="cpu"), max_outside=1.0, top_logprobs=280)
    criteria = tuple(Criterion(id=f"c{n}", text=f"The response names the number {n}.") for n in range(5))
    task = "Count to ten in words, one number a line, and say nothing else. " * 6
    rollouts = [Rollout(task, f"One, two, three, {'four, ' * n}five. " * 3) for n in range(1, 5)]
    reward = RubricReward(judge, Rubric(id="count", criteria=criteria))
    rewards = await reward.ascore_group(rollouts)
    assert all(value.value is not None for value in rewards)
    usages = [value.usage for value in rewards]
    computed = [usage.prompt_tokens - usage.cached_tokens for usage in usages]
    single = usages[0].prompt_tokens / len(criteria)
    # one response costs less than one prompt and a half; the others do without the prompt's part
    assert max(computed) < 1.5 * single and sum(computed) < max(computed) + 3 * 0.8 * single
    # and each is what it is when it is judged by itself
    await judge.aclose()
    alone = [await reward.ascore(rollout) for rollout in rollouts]
    assert [one.value for one in alone] == pytest.approx([value.value for value in rewards], abs=1e-4)
