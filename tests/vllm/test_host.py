"""How requests reach vLLM's engine and leave it, with a scripted engine in its place: nothing of vLLM is needed."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import pickle
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from rubricate.chat import connect, vllm_host
from rubricate.chat import vllm as back_end
from rubricate.chat.base import ChatRequest, Completion, Finish, Message
from rubricate.chat.timing import deadline
from rubricate.chat.vllm import VllmModel
from rubricate.chat.vllm_library import TokenScore, VllmEngine
from rubricate.errors import ChatError, ConfigError, DeadlineError, MissingExtraError, RequestError


@dataclass
class Score:
    logprob: float


@dataclass
class Answer:
    text: str
    token_ids: Sequence[int] = (1,)
    logprobs: Sequence[Mapping[int, TokenScore]] | None = None
    finish_reason: str | None = "stop"


@dataclass
class Out:
    request_id: str
    outputs: Sequence[Answer]
    prompt_token_ids: Sequence[int] | None = (0,) * 10
    num_cached_tokens: int | None = 4
    finished: bool = True


class Pieces:
    """Stands for the codec."""

    def piece(self, token: int) -> str:
        return f"<{token}>"


@dataclass
class Engine:
    """Answers what does not say "hold"; refuses "bad", and breaks at "break"."""

    context: int = 512
    codec: Pieces = field(default_factory=Pieces)
    live: dict[str, ChatRequest] = field(default_factory=dict[str, ChatRequest])
    batches: list[int] = field(default_factory=list[int])
    aborted: list[str] = field(default_factory=list[str])
    closed: threading.Event = field(default_factory=threading.Event)
    dropped: threading.Event = field(default_factory=threading.Event)

    def add(self, key: str, request: ChatRequest) -> None:
        if request.text() == "bad":
            raise RequestError("no", provider="engine")
        self.live[key] = request

    def step(self) -> list[Out]:
        self.batches.append(len(self.live))
        if any(request.text() == "break" for request in self.live.values()):
            raise OSError("the engine is gone")
        done = [key for key, request in self.live.items() if request.text() != "hold"]
        top = ({7: Score(-0.5), 3: Score(-0.1)},)
        return [Out(key, [Answer(self.live.pop(key).text(), (7,), top)]) for key in done]

    def abort(self, keys: list[str]) -> None:
        for key in keys:
            del self.live[key]
            self.aborted.append(key)
            self.dropped.set()

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """Every engine that is started."""
    started: list[Engine] = []

    def start(*_: object) -> Engine:
        started.append(Engine())
        return started[-1]

    monkeypatch.setattr(vllm_host, "open_engine", start)
    monkeypatch.setattr(back_end, "require_vllm", lambda: None)
    return started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 2048}))
    return tmp_path


def ask(text: str, top_logprobs: int | None = None) -> ChatRequest:
    return ChatRequest((Message("user", text),), max_tokens=1, top_logprobs=top_logprobs)


async def test_requests_that_arrive_together_share_a_step(engines: list[Engine], folder: Path) -> None:
    model = VllmModel(str(folder))
    assert model.capabilities.context == 2048
    answers = await model.complete_many([ask("a"), ask("bad"), ask("b", 2), ask("c", 0)])
    assert [answer.text if isinstance(answer, Completion) else type(answer) for answer in answers] == [
        "a",
        RequestError,
        "b",
        "c",
    ]
    assert engines[0].batches == [3]
    first, _, two, none = answers
    assert isinstance(first, Completion) and isinstance(two, Completion) and isinstance(none, Completion)
    assert (first.finish, first.logprobs, first.usage.prompt_tokens, first.usage.cached_tokens) == (
        Finish.STOP,
        None,
        10,
        4,
    )
    assert two.logprobs is not None and two.logprobs[0].top == (("<3>", -0.1), ("<7>", -0.5))
    assert (two.logprobs[0].token, two.logprobs[0].logprob) == ("<7>", -0.5)
    assert none.logprobs is not None and none.logprobs[0].top == ()
    assert model.capabilities.context == 512
    await model.aclose()
    assert engines[0].closed.is_set()


async def test_a_call_that_is_given_up_is_aborted(engines: list[Engine], folder: Path) -> None:
    model = VllmModel(str(folder))
    with deadline(0.05), pytest.raises(DeadlineError):
        await model.complete(ask("hold"))
    waiting = asyncio.create_task(model.complete(ask("hold")))
    assert (await model.complete(ask("a"))).text == "a"  # joins while the other is in progress
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await model.aclose()  # comes after what is in progress
    assert len(engines[0].aborted) == 2 and not engines[0].live


async def test_a_broken_engine_fails_its_requests_and_is_started_anew(engines: list[Engine], folder: Path) -> None:
    model = VllmModel(str(folder))
    answers = await model.complete_many([ask("a"), ask("break")])
    assert all(type(answer) is ChatError and "gone" in answer.message for answer in answers)
    assert engines[0].closed.is_set()
    assert (await model.complete(ask("b"))).text == "b"
    assert len(engines) == 2
    await model.aclose()


async def test_an_answer_that_cannot_be_read_fails_alone(
    engines: list[Engine], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Engine.step

    def odd(self: Engine) -> list[Out]:
        outputs = step(self)
        for output in outputs:
            if output.outputs[0].text == "empty":
                output.outputs = []
            elif output.outputs[0].text == "unscored":
                output.outputs[0].logprobs = ({3: Score(-0.1)},)  # the token itself is not among them
        return outputs

    monkeypatch.setattr(Engine, "step", odd)
    model = VllmModel(str(folder))
    async with asyncio.timeout(30):
        answers = await model.complete_many([ask("a", 1), ask("empty"), ask("unscored", 1), ask("b")])
    assert [type(answer) for answer in answers] == [Completion, ChatError, ChatError, Completion]
    assert len(engines) == 1 and not engines[0].closed.is_set()
    await model.aclose()


async def test_an_engine_that_cannot_even_be_closed_fails_its_requests(
    engines: list[Engine], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(self: Engine) -> None:
        raise OSError("no such process")

    model = VllmModel(str(folder))
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "close", stuck)
        async with asyncio.timeout(30):
            with pytest.raises(ChatError, match="gone"):
                await model.complete(ask("break"))
    assert (await model.complete(ask("b"))).text == "b"
    await model.aclose()


async def test_without_a_thread_calls_fail_and_later_ones_are_answered(
    engines: list[Engine], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    model = VllmModel(str(folder))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        async with asyncio.timeout(30):
            (failed,) = await model.complete_many([ask("a")])
    assert isinstance(failed, ChatError) and "new thread" in failed.message
    assert (await model.complete(ask("a"))).text == "a"
    await model.aclose()


def test_requests_that_vllm_has_lost_are_an_error_and_no_endless_wait() -> None:
    class Idle:
        def has_unfinished_requests(self) -> bool:
            return False

    with pytest.raises(RuntimeError, match="lost"):
        VllmEngine(cast("Any", Idle()), cast("Any", Pieces()), None).step()


async def test_equal_models_share_an_engine_until_the_last_has_left(engines: list[Engine], folder: Path) -> None:
    model = VllmModel(str(folder))
    twin = cast("VllmModel", pickle.loads(pickle.dumps(model)))
    assert twin.fingerprint == model.fingerprint
    await model.complete(ask("a"))
    await twin.complete(ask("b"))
    await model.aclose()
    assert len(engines) == 1 and not engines[0].closed.is_set()
    await twin.aclose()
    assert engines[0].closed.is_set()
    assert (await model.complete(ask("c"))).text == "c"
    assert len(engines) == 2
    await model.aclose()


def test_one_loop_after_another(engines: list[Engine], folder: Path) -> None:
    model = VllmModel(str(folder))
    assert [asyncio.run(model.complete(ask(text))).text for text in "abc"] == ["a", "b", "c"]
    asyncio.run(model.aclose())
    assert len(engines) == 1


def test_fingerprint_tells_dtype_and_engine_apart(engines: list[Engine], folder: Path) -> None:
    names = ("", "?dtype=float32", "?eager=true", '?engine={"quantization":"fp8"}', "?dtype=bfloat16")
    prints = [connect(f"vllm:{folder}{options}").fingerprint for options in names]
    assert len(set(prints)) == 4 and prints[0] == prints[4]  # auto is bfloat16
    assert connect(f"vllm:{folder}?max_model_len=100").fingerprint == prints[0]
    (folder / "config.json").write_text("{}")
    assert connect(f"vllm:{folder}").fingerprint != prints[0]
    assert engines == []


def test_wrong_options_are_named(engines: list[Engine], folder: Path) -> None:
    wrong = {"dtype": "float8", "max_model_len": "0", "gpu_memory": "2", "eager": "often", "engine": "fast"}
    for option, value in (wrong | {"adapter": "7", "tensor_parallel": "1.5"}).items():
        with pytest.raises(ConfigError, match=option):
            connect(f"vllm:{folder}?{option}={value}")


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_the_error_says_what_to_install(folder: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"rubricate\[vllm\]"):
        connect(f"vllm:{folder}")
