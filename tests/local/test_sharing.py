"""A shared prefix is computed once, and changes no answer."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.local_engine import Engine
from rubricate.chat.local_forward import Prefix, common_prefix, prefill, sharing_is_exact
from rubricate.chat.local_torch import Network

Requests = Callable[..., ChatRequest]
Answers = Callable[[Engine, list[ChatRequest], bool], list[Completion]]
Engines = Callable[..., Engine]
VOCABULARY = 280


def prompts(prefix: int, suffixes: list[int], seed: int) -> list[list[int]]:
    draw = random.Random(seed)
    shared = [draw.randrange(3, VOCABULARY) for _ in range(prefix)]
    return [shared + [draw.randrange(3, VOCABULARY) for _ in range(length)] for length in suffixes]


def gap(left: torch.Tensor, right: torch.Tensor) -> float:
    return float((left - right).abs().max())


def separate(network: Network, whole: list[list[int]]) -> torch.Tensor:
    return torch.cat([prefill(network, [prompt])[1] for prompt in whole])


def values(answer: Completion) -> list[dict[str, float]]:
    assert answer.logprobs is not None
    # bytes that are no character on their own all read alike
    return [{piece: value for piece, value in token.top if "\ufffd" not in piece} for token in answer.logprobs]


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("prefix", [64, 301, 1000, 2000])
def test_shared_prefix_equals_separate_prompts(engines: Engines, kind: str, prefix: int) -> None:
    network = engines(kind).network
    whole = prompts(prefix, [12, 1, 40, 7, 25], seed=prefix)
    with torch.inference_mode():
        shared = Prefix(network, whole[0][:prefix]).run([prompt[prefix:] for prompt in whole])
        assert gap(shared, separate(network, whole)) < 1e-4


@settings(max_examples=40, deadline=None)
@given(
    prefix=st.integers(1, 80),
    first=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    second=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    seed=st.integers(0, 99),
)
def test_any_split_and_any_number_of_runs(
    engines: Engines, prefix: int, first: list[int], second: list[int], seed: int
) -> None:
    network = engines("qwen3").network
    whole = prompts(prefix, first + second, seed)
    halves = whole[: len(first)], whole[len(first) :]
    with torch.inference_mode():
        cached = Prefix(network, whole[0][:prefix])
        for half in halves:  # the second run sees a cache that the first has grown
            assert gap(cached.run([p[prefix:] for p in half]), separate(network, half)) < 1e-4
        # and going on from there is going on from the separate prompts
        rows = [row for row in range(len(second)) if row % 2 == 0]
        batch = cached.unpack(rows)
        longer = [whole[len(first) + row] + [5 + row, 9] for row in rows]
        batch.advance([5 + row for row in rows])
        assert gap(batch.advance([9 for _ in rows]), separate(network, longer)) < 1e-4


@given(
    shared=st.lists(st.integers(0, 3), max_size=6),
    tails=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=5),
)
def test_common_prefix_is_common_and_leaves_each_prompt_a_token(shared: list[int], tails: list[list[int]]) -> None:
    whole = [shared + tail for tail in tails]
    cut = common_prefix(whole)
    assert all(prompt[:cut] == whole[0][:cut] and len(prompt) > cut for prompt in whole)
    shortest = min(len(prompt) for prompt in whole)
    assert cut == shortest - 1 or any(prompt[cut] != whole[0][cut] for prompt in whole)


def criteria(user: Requests, count: int, **fields: object) -> list[ChatRequest]:
    response = "the cat sat on the mat, and then the answer was no. " * 8
    return [user(f"{response}\nDoes it {'really ' * n}name an animal? {n}", **fields) for n in range(count)]


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_scores_through_requests(engines: Engines, ask: Answers, user: Requests, kind: str) -> None:
    requests = criteria(user, 10, max_tokens=1, top_logprobs=10_000)
    shared = ask(engines(kind), requests, True)
    plain = [ask(engines(kind), [request], False)[0] for request in requests]
    for left, right in zip(shared, plain, strict=True):
        ours, theirs = values(left)[0], values(right)[0]
        assert len(ours) > 100 and ours.keys() == theirs.keys()
        assert max(abs(ours[token] - theirs[token]) for token in ours) < 1e-4
        assert left.usage.prompt_tokens == right.usage.prompt_tokens


def test_one_pass_for_the_prefix_and_one_for_all_suffixes(
    engines: Engines, ask: Answers, user: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines("llama")
    requests = criteria(user, 10, max_tokens=1, top_logprobs=2)
    ask(engine, requests, True)
    sizes: list[tuple[int, ...]] = []
    forward = engine.network.forward

    def counted(ids: torch.Tensor, *args: object, **options: object) -> torch.Tensor:
        sizes.append(tuple(ids.shape))
        return forward(ids, *args, **options)  # pyright: ignore[reportArgumentType] -- passed on as they came

    monkeypatch.setattr(engine.network, "forward", counted)
    answers = ask(engine, requests, True)
    cut = answers[1].usage.cached_tokens
    suffixes = sum(answer.usage.prompt_tokens - cut for answer in answers)
    assert cut > 100
    assert sizes == [(1, cut), (1, suffixes)]


@pytest.mark.parametrize("bound", [8192, 500, 64])
def test_generation_goes_on_from_the_shared_prefix(
    engines: Engines, ask: Answers, user: Requests, bound: int
) -> None:
    engine = engines("qwen3", max_batch_tokens=bound)
    requests = criteria(user, 5, max_tokens=12, top_logprobs=3)
    shared = ask(engine, requests, True)
    plain = [ask(engine, [request], False)[0] for request in requests]
    assert [answer.text for answer in shared] == [answer.text for answer in plain]
    assert [answer.usage.completion_tokens for answer in shared] == [a.usage.completion_tokens for a in plain]
    assert shared[1].usage.cached_tokens > 0
    for left, right in zip(shared, plain, strict=True):
        for ours, theirs in zip(values(left), values(right), strict=True):
            assert ours == pytest.approx(theirs, abs=1e-4)


def test_long_suffixes_run_in_several_passes(engines: Engines, ask: Answers, user: Requests) -> None:
    start = "one beginning for all of them " * 20
    requests = [user(start + f"{n} " + "and more " * 60, max_tokens=1, top_logprobs=5) for n in range(6)]
    shared = ask(engines("llama"), requests, True)
    plain = [ask(engines("llama"), [request], False)[0] for request in requests]
    assert shared[-1].usage.cached_tokens > 100
    for left, right in zip(shared, plain, strict=True):
        assert values(left)[0] == pytest.approx(values(right)[0], abs=1e-4)


def test_the_same_request_many_times(engines: Engines, ask: Answers, user: Requests) -> None:
    request = user("the very same prompt, asked three times over", max_tokens=4)
    answers = ask(engines("llama"), [request] * 3, True)
    assert [answer.text for answer in answers] == [ask(engines("llama"), [request], False)[0].text] * 3


def test_prompts_that_share_little_run_as_a_plain_batch(engines: Engines, ask: Answers, user: Requests) -> None:
    requests = [user(f"{n} is where this one begins, and it goes on for a while", max_tokens=1) for n in range(4)]
    assert [answer.usage.cached_tokens for answer in ask(engines("llama"), requests, True)] == [0, 0, 0, 0]


def test_sliding_windows_fall_back_to_plain_batches(engines: Engines, ask: Answers, user: Requests) -> None:
    engine = engines("sliding")
    assert not engine.network.free_mask
    requests = criteria(user, 4, max_tokens=5, top_logprobs=3)
    shared = ask(engine, requests, True)
    plain = [ask(engine, [request], False)[0] for request in requests]
    assert [answer.usage.cached_tokens for answer in shared] == [0, 0, 0, 0]
    assert [answer.text for answer in shared] == [answer.text for answer in plain]
    for left, right in zip(shared, plain, strict=True):
        assert values(left)[0] == pytest.approx(values(right)[0], abs=1e-4)


def test_a_model_that_reads_positions_its_own_way_is_found_out(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines("llama", threads=1)
    prompt = list(range(3, 40))
    with torch.inference_mode():
        assert sharing_is_exact(engine.network, prompt)
        forward = engine.network.model.forward

        def wilful(**inputs: object) -> object:
            inputs.pop("position_ids", None)  # takes them, and counts for itself
            return forward(**inputs)

        monkeypatch.setattr(engine.network.model, "forward", wilful)
        assert not sharing_is_exact(engine.network, prompt)


def test_half_precision_is_no_further_off_than_plain_batching(
    models: Callable[[str], object], ask: Answers, user: Requests
) -> None:
    from rubricate.chat.local_engine import open_engine
    from rubricate.chat.local_host import LocalOptions
    from rubricate.chat.local_source import resolve

    engine = open_engine(resolve(str(models("qwen3"))), LocalOptions(dtype="bfloat16", device="cpu"), "local:half")
    requests = criteria(user, 8, max_tokens=1, top_logprobs=1)
    exact = [ask(engine, [request], False)[0] for request in requests]

    def furthest(answers: list[Completion]) -> float:
        pairs = zip(answers, exact, strict=True)
        return max(
            abs(values(left)[0][token] - p) for left, right in pairs for token, p in values(right)[0].items()
        )

    shared = furthest(ask(engine, requests, True))
    assert ask(engine, requests, True)[1].usage.cached_tokens > 0
    assert shared <= 2 * furthest(ask(engine, requests, False)) + 0.05
