"""The local back end under bad input and faults: one request must not harm others, none may wait for ever."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch

from rubricate.chat import local_host
from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.local import load_local
from rubricate.chat.local_engine import Engine, open_engine
from rubricate.chat.local_host import LocalOptions
from rubricate.chat.local_path import sharing_is_exact, telling
from rubricate.chat.local_source import resolve
from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import AddedToken
from rubricate.errors import ChatError, RequestError

Answers = Callable[..., list[Completion | ChatError]]
Engines = Callable[..., Engine]
MakeModel = Callable[..., Path]
Models = Callable[[str], Path]
Requests = Callable[..., ChatRequest]

BARE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


def opened(folder: Path, **options: object) -> Engine:
    settings = LocalOptions(dtype="float32", device="cpu", **options)  # pyright: ignore[reportArgumentType] -- test
    return open_engine(resolve(str(folder)), settings, "local:test")


@pytest.mark.parametrize(
    "fields",
    [
        {"seed": 2**64},
        {"seed": -(2**63) - 1},
        {"seed": 0.5},
        {"seed": "1"},
        {"stop": (None,)},
        {"max_tokens": "3"},
        {"temperature": "1"},
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_what_no_parameter_can_be_fails_alone(
    engines: Engines, ask: Answers, user: Requests, fields: dict[str, object], shared: bool
) -> None:
    bad = user("bad", **{"max_tokens": 2, "temperature": 1.0, **fields})
    first, second, third = ask(engines("llama"), [user("good", max_tokens=1), bad, user("good")], shared)
    assert isinstance(first, Completion) and isinstance(third, Completion)
    assert isinstance(second, RequestError)


@pytest.mark.parametrize("seed", [0, -1, -(2**63), 2**63, 2**64 - 1])
def test_every_seed_that_torch_takes_is_taken(engines: Engines, ask: Answers, user: Requests, seed: int) -> None:
    requests = [user("draw", max_tokens=4, temperature=1.0, seed=seed)] * 2
    first, second = ask(engines("llama"), requests, True)
    assert isinstance(first, Completion) and isinstance(second, Completion)
    assert first.text == second.text


@pytest.mark.parametrize("temperature", [1e-30, 1e-300, 1e-310, 5e-324])
def test_a_temperature_near_0_is_as_good_as_0(
    engines: Engines, ask: Answers, user: Requests, temperature: float
) -> None:
    near, at = ask(
        engines("llama"),
        [user("draw", max_tokens=5, temperature=value, seed=3) for value in (temperature, 0.0)],
        True,
    )
    assert isinstance(near, Completion) and isinstance(at, Completion)
    assert near.text == at.text


def test_short_first_prompts_do_not_switch_sharing_off(
    tmp_path: Path, make_model: MakeModel, ask: Answers, user: Requests
) -> None:
    engine = opened(make_model(tmp_path, template=BARE))
    short = ask(engine, [user(text, max_tokens=1) for text in ["ab"] * 20 + ["a", "abc"]], True)
    assert all(isinstance(answer, Completion) for answer in short)
    assert engine.sharing is None  # nothing could be told by these
    stem = "a longer beginning that all of them have, "
    later = ask(engine, [user(stem + end, max_tokens=1) for end in ("one", "two", "three")], True)
    assert engine.sharing is True
    assert [answer.usage.cached_tokens > 30 for answer in later if isinstance(answer, Completion)][1:] == [True] * 2


def test_equal_tokens_do_not_prove_that_sharing_is_exact(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, ask: Answers, user: Requests
) -> None:
    engine = engines("llama", threads=1)
    forward = engine.network.model.forward

    def wilful(**inputs: object) -> object:
        inputs.pop("position_ids", None)  # takes them, and counts for itself
        return forward(**inputs)

    monkeypatch.setattr(engine.network.model, "forward", wilful)
    for prompt in ([5] * 40, [5, 5, 5, 5], [5, 6, 5, 6]):
        assert not telling(prompt)
        with torch.inference_mode():
            assert not sharing_is_exact(engine.network, prompt)
    answers = ask(engine, [user("a" * 30 + end, max_tokens=1) for end in "bcd"], True)
    assert engine.sharing is False
    assert all(isinstance(answer, Completion) for answer in answers)


async def test_without_a_thread_calls_fail_and_later_ones_are_answered(
    models: Models, user: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_local(str(models("llama")), device="cpu", max_batch_tokens=201)

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        calls = [model.complete(user("a", max_tokens=1)) for _ in range(3)]
        async with asyncio.timeout(30):
            failed = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(error, ChatError) and "new thread" in error.message for error in failed)
    async with asyncio.timeout(30):
        assert isinstance(await model.complete(user("a", max_tokens=1)), Completion)
    await model.aclose()


async def test_a_model_that_is_freed_at_the_wrong_moment_is_still_there(
    models: Models, user: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_local(str(models("llama")), device="cpu", max_batch_tokens=202)
    await model.complete(user("a", max_tokens=1))
    host = local_host.host_for(model.source, model.options, model.name, model)
    kept = vars(host)["_runner"]
    assert kept is not None

    class Once:
        """Gives the runner at its first reading, and then it has been freed."""

        def __init__(self) -> None:
            self.value: object = kept

        def __get__(self, instance: object, owner: type) -> object:
            value, self.value = self.value, None
            return value

        def __set__(self, instance: object, value: object) -> None:
            self.value = value

    monkeypatch.setattr(local_host.Host, "_runner", Once(), raising=False)
    assert isinstance(await model.complete(user("a", max_tokens=1)), Completion)


class Tokens:
    """A tokenizer of characters, with one special token."""

    chat_template: str | None = "{{ messages[0]['content'] }}"
    eos_token_id: int | None = None

    def __init__(self, special: str) -> None:
        self.all_special_tokens = [special]
        self.added_tokens_decoder: Mapping[int, AddedToken] = {}

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, str]],
        *,
        tokenize: bool,
        add_generation_prompt: bool,
        **kwargs: object,
    ) -> str:
        return conversation[0]["content"]

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(map(ord, text))

    def decode(
        self, token_ids: Sequence[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str:
        return "".join(map(chr, token_ids))

    def save_pretrained(self, save_directory: str) -> object:
        raise NotImplementedError


@pytest.mark.parametrize("special", ["  ", " <x>", "<x> ", "x ", " ", "\n<x>", "<x>", "<x>  "])
def test_special_tokens_with_blanks_are_broken_and_hold_no_prompt_up(user: Requests, special: str) -> None:
    codec = Codec(Tokens(special), name="odd", context=None, stops=frozenset())
    text = codec.text(codec.encode(user(f"one{special}two{special}{special}  <x> three\n<x> x  four")))
    assert text.replace(" ", "").startswith(f"one{special}two".replace(" ", ""))
    if len(special.strip()) > 1:
        assert special not in text


async def test_calls_that_are_cancelled_at_any_moment_leave_the_others_their_answers(
    models: Models, engines: Engines, ask: Answers, user: Requests
) -> None:
    model = load_local(str(models("llama")), device="cpu", max_cache_bytes=400_000)
    stem = "the cat sat on the mat and yes no " * 4
    texts = [stem + letter * count for letter in "abc" for count in range(1, 4)]
    requests = {text: user(text, max_tokens=5) for text in texts}
    alone = ask(engines("llama"), list(requests.values()), False)
    wanted = {
        text: answer.text for text, answer in zip(texts, alone, strict=True) if isinstance(answer, Completion)
    }
    draw = random.Random(7)
    for _ in range(6):
        tasks = {text: asyncio.create_task(model.complete(requests[text])) for text in texts}
        given_up = draw.sample(texts, 4)
        for text in given_up:
            for _ in range(draw.randrange(200)):
                await asyncio.sleep(0)
            tasks[text].cancel()
        found = await asyncio.gather(*tasks.values(), return_exceptions=True)
        for text, answer in zip(tasks, found, strict=True):
            if text not in given_up:
                assert isinstance(answer, Completion)
            if isinstance(answer, Completion):
                assert answer.text == wanted[text]
    await model.aclose()
