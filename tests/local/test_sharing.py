"""A shared prefix is computed once, and changes no answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.local_engine import Engine
from rubricate.chat.local_forward import prefill
from rubricate.chat.local_path import Held, Path, assemble, sharing_is_exact
from rubricate.chat.local_room import Room
from rubricate.chat.local_store import PrefixStore
from rubricate.chat.local_torch import Network
from rubricate.chat.local_tree import build_tree, passes, paying

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


def by_tree(
    network: Network,
    whole: list[list[int]],
    *,
    tokens: int = 768,
    rows: int = 100,
    room: Room | None = None,
    store: PrefixStore | None = None,
) -> tuple[torch.Tensor, Path]:
    """Log-probabilities of all prompts, computed as a tree, in their order."""
    root = build_tree(whole)
    path = Path(network, whole, room=room, store=store)
    found: dict[int, torch.Tensor] = {}
    for work in passes(root, tokens=tokens, rows=rows):
        found.update(zip(*path.run(work), strict=True))
    return torch.stack([found[row] for row in range(len(whole))]), path


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
        assert gap(by_tree(network, whole)[0], separate(network, whole)) < 1e-4


def branches(seed: int, count: int, longest: int, letters: int) -> list[list[int]]:
    """Random prompts, each of which goes on from some place in an earlier one: a random tree."""
    draw = random.Random(seed)
    made: list[list[int]] = [[3]]
    for _ in range(count):
        stem = draw.choice(made)
        stem = stem[: draw.randint(1, len(stem))]
        made.append(stem + [draw.randrange(3, 3 + letters) for _ in range(draw.randint(0, longest))])
    draw.shuffle(made)
    return made


TREES = st.builds(
    branches,
    st.integers(0, 10_000),
    st.integers(0, 14),
    st.sampled_from([1, 3, 20, 90]),
    st.sampled_from([1, 2, 250]),
)


@settings(max_examples=60, deadline=None)
@given(whole=TREES, tokens=st.sampled_from([1, 5, 30, 768]), rows=st.sampled_from([1, 2, 100]))
def test_any_tree_in_any_passes_equals_separate_prompts(
    engines: Engines, whole: list[list[int]], tokens: int, rows: int
) -> None:
    network = engines("qwen3").network
    store = PrefixStore(20_000)  # so small that prefixes are cut and dropped all the time
    with torch.inference_mode():
        exact = separate(network, whole)
        for _ in range(2):  # the second time some prefixes are there
            found, _ = by_tree(network, whole, tokens=tokens, rows=rows, store=store)
            assert gap(found, exact) < 1e-4
            assert 0 <= store.bytes <= store.limit


@settings(max_examples=40, deadline=None)
@given(whole=TREES, tokens=st.sampled_from([5, 60, 768]), chosen=st.sampled_from([1, 2, 3]))
def test_going_on_from_a_tree_is_going_on_from_the_prompts(
    engines: Engines, whole: list[list[int]], tokens: int, chosen: int
) -> None:
    network = engines("llama").network
    path = Path(network, whole)
    held: dict[int, Held] = {}
    with torch.inference_mode():
        for work in passes(build_tree(whole), tokens=tokens, rows=100):
            numbers, _ = path.run(work)
            held.update({row: path.hold(row) for row in numbers if row % chosen == 0})
        rows = sorted(held)
        assert [held[row].length for row in rows] == [len(whole[row]) for row in rows]
        batch = assemble(network, [held[row] for row in rows])
        batch.advance([5 + row for row in rows])
        longer = [whole[row] + [5 + row, 9] for row in rows]
        assert gap(batch.advance([9 for _ in rows]), separate(network, longer)) < 1e-4


@given(whole=TREES, tokens=st.sampled_from([1, 5, 30, 768]), rows=st.sampled_from([1, 2, 100]))
def test_a_tree_holds_every_prompt_once_and_passes_keep_their_bounds(
    whole: list[list[int]], tokens: int, rows: int
) -> None:
    root = build_tree(whole)
    assert root.size == len({tuple(prompt[:n]) for prompt in whole for n in range(1, len(prompt))}) + len(whole)
    assert root.whole == sum(map(len, whole)) and root.count == len(whole)
    seen: list[int] = []
    for work in passes(root, tokens=tokens, rows=rows):
        size = len(work.rows) + sum(part.size for part in work.parts)
        assert 1 <= size <= tokens and 1 <= len(work.prompts()) <= rows
        for row in work.prompts():
            assert whole[row][: work.length] == whole[work.row][: work.length]
        seen += work.prompts()
    assert sorted(seen) == list(range(len(whole)))


@given(whole=TREES)
def test_prompts_are_shared_where_that_spares_a_fifth(whole: list[list[int]]) -> None:
    subtrees, alone = paying(build_tree(whole))
    inside = [row for root in subtrees for work in passes(root, tokens=768, rows=99) for row in work.prompts()]
    assert sorted(inside + alone) == list(range(len(whole)))
    for root in subtrees:
        assert root.start == 0 and root.whole - root.size >= max(8, 0.2 * root.whole)


def test_prompts_that_grow_by_a_token_each_make_a_deep_tree_and_no_deep_recursion() -> None:
    whole = [[3] * n for n in range(1, 3000)]
    (root,), alone = paying(build_tree(whole))
    assert alone == [] and root.size == 2998 + 2999
    assert sum(len(work.prompts()) for work in passes(root, tokens=50, rows=50)) == 2999


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


Count = Callable[[Engine], list[int]]


def charged(answers: Sequence[Completion]) -> int:
    return sum(answer.usage.prompt_tokens - answer.usage.cached_tokens for answer in answers)


def test_one_pass_for_the_prefix_and_one_for_all_suffixes(
    engines: Engines, ask: Answers, user: Requests, count: Count
) -> None:
    engine = engines("llama")
    requests = criteria(user, 10, max_tokens=1, top_logprobs=2)
    ask(engine, requests, True)
    sizes = count(engine)
    answers = ask(engine, requests, True)
    assert answers[0].usage.cached_tokens == 0
    assert len(sizes) == 2 and sizes[0] > 100
    assert all(answer.usage.cached_tokens >= sizes[0] for answer in answers[1:])
    # what was computed is what is charged, no more and no less
    assert sum(sizes) == charged(answers)


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
