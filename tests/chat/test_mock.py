"""Scripted models: constants, functions, lists, JSONL scripts, failures and log-probabilities."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
from pathlib import Path

import pytest

from rubricate.chat import (
    ChatRequest,
    Completion,
    FailEvery,
    FailRate,
    Finish,
    Limits,
    Message,
    MockModel,
    Outcome,
    Scripted,
    connect,
    deadline,
)
from rubricate.chat.mock_names import MOCK_NAMES, load_mock, read_script
from rubricate.errors import (
    ConfigError,
    DeadlineError,
    FormatError,
    RateLimitError,
    RequestError,
    ServerError,
)


def ask(text: str = "hello", top_logprobs: int | None = None) -> ChatRequest:
    return ChatRequest((Message("user", text),), top_logprobs=top_logprobs)


async def texts(model: MockModel, *asked: str) -> list[str]:
    return [(await model.complete(ask(text))).text for text in asked]


async def test_constant_function_and_list() -> None:
    assert await texts(MockModel("always"), "a", "b") == ["always"] * 2
    shout = MockModel(lambda request: request.messages[-1].content.upper())
    assert await texts(shout, "a", "b") == ["A", "B"]
    assert [request.messages[0].content for request in shout.requests] == ["a", "b"]
    listed = MockModel(["one", Completion("two"), Scripted("three")])
    assert await texts(listed, "", "", "") == ["one", "two", "three"]
    with pytest.raises(ConfigError, match="no answer for call 4"):
        await listed.complete(ask())
    assert await texts(MockModel(["x", "y"], repeat=True), "", "", "") == ["x", "y", "x"]


async def test_matching_lines_come_before_the_order() -> None:
    script = [Scripted("polite", match="thanks"), Scripted("twice", match="sun", times=1), "first", "second"]
    assert await texts(MockModel(script), "thanks", "a", "sun", "sun", "thanks") == [
        "polite",
        "first",
        "twice",
        "second",
        "polite",
    ]


async def test_usage_and_logprobs() -> None:
    model = MockModel(p_yes=lambda request: 0.8 if "good" in request.messages[-1].content else 0.3)
    good = await model.complete(ask("good work", top_logprobs=5))
    assert good.text == "yes"
    assert good.usage.prompt_tokens == 3
    assert good.logprobs is not None
    assert dict(good.logprobs[0].top) == pytest.approx({"yes": math.log(0.8), "no": math.log(0.2)})
    poor = await model.complete(ask("poor work", top_logprobs=1))
    assert poor.text == "no"
    assert poor.logprobs is not None and len(poor.logprobs[0].top) == 1
    assert (await model.complete(ask())).logprobs is None
    words = await MockModel("a plain answer").complete(ask(top_logprobs=0))
    assert words.logprobs is not None
    assert "".join(token.token for token in words.logprobs) == "a plain answer"


async def test_failures_by_number_and_by_rate() -> None:
    model = MockModel("ok", fail=FailEvery(3, RateLimitError("slow")))
    outcomes = await asyncio.gather(*(model.complete(ask()) for _ in range(7)), return_exceptions=True)
    assert [isinstance(outcome, RateLimitError) for outcome in outcomes] == [False, False, True] * 2 + [False]
    rate = FailRate(0.25, seed=3)
    failures = [rate(index) is not None for index in range(400)]
    assert failures == [FailRate(0.25, seed=3)(index) is not None for index in range(400)]
    assert 70 < sum(failures) < 130


async def test_a_hang_ends_by_the_deadline_and_by_cancellation() -> None:
    model = MockModel(Scripted(hang=True))
    with deadline(0.01), pytest.raises(DeadlineError):
        await model.complete(ask())
    task = asyncio.create_task(model.complete(ask()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_outcomes_are_distinct() -> None:
    names = {
        "yes": Outcome.OK,
        "empty": Outcome.EMPTY,
        "length": Outcome.LENGTH,
        "content_filter": Outcome.CONTENT_FILTER,
        "refusal": Outcome.REFUSAL,
    }
    for name, outcome in names.items():
        assert (await load_mock(name).complete(ask())).outcome is outcome


async def test_names() -> None:
    assert (await load_mock("p=0.2").complete(ask())).text == "no"
    assert (await load_mock("echo").complete(ask("hi"))).text == "hi"
    with pytest.raises(ServerError):
        await load_mock("error").complete(ask())
    for wrong in ("maybe", "p=1.5", "p=x"):
        with pytest.raises(ConfigError):
            load_mock(wrong)
    assert len({load_mock(name).fingerprint for name in MOCK_NAMES}) == len(MOCK_NAMES)
    flaky = connect("mock:yes?failure_rate=1.0", limits=Limits(max_attempts=1))
    with pytest.raises(ServerError):
        await flaky.complete(ask())


async def test_jsonl_script(tmp_path: Path) -> None:
    lines = [
        {"match": "hard", "text": "yes", "p_yes": 0.9},
        {"text": "cut", "finish": "length"},
        {"refusal": "no"},
        {"error": "rate_limit", "retry_after": 3},
        {"error": "request", "text": "bad key"},
        {"top": {"A": 0.6, "B": 0.3}, "reasoning": "thought"},
    ]
    path = tmp_path / "script.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    model = load_mock(str(path))
    assert (await model.complete(ask("a hard one", top_logprobs=2))).logprobs is not None
    assert (await model.complete(ask())).finish is Finish.LENGTH
    assert (await model.complete(ask())).outcome is Outcome.REFUSAL
    with pytest.raises(RateLimitError) as limited:
        await model.complete(ask())
    assert limited.value.retry_after == 3
    with pytest.raises(RequestError, match="bad key"):
        await model.complete(ask())
    last = await model.complete(ask())
    assert (last.text, last.reasoning) == ("A", "thought")
    assert (await model.complete(ask())).finish is Finish.LENGTH  # from the start again


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("{", None),
        ("[]", None),
        ('{"txet": "yes"}', "txet"),
        ('{"text": 3}', "text"),
        ('{"finish": "done"}', "finish"),
        ('{"error": "boom"}', "error"),
        ('{"p_yes": 2}', "p_yes"),
        ('{"top": {"yes": "high"}}', "top"),
    ],
)
def test_a_bad_script_names_line_and_field(tmp_path: Path, line: str, field: str | None) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"text": "fine"}\n' + line, encoding="utf-8")
    with pytest.raises(FormatError, match=r"script\.jsonl:2") as caught:
        read_script(path)
    assert caught.value.field == (field or "")


def test_a_missing_or_empty_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        read_script(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(FormatError, match="is empty"):
        read_script(tmp_path / "empty.jsonl")


async def test_a_model_with_a_data_script_pickles() -> None:
    model = MockModel([Scripted("a", top={"a": 1.0}), ServerError("x"), "b"], fail=FailEvery(10))
    await model.complete(ask())
    twin = pickle.loads(pickle.dumps(model))
    assert twin.fingerprint == model.fingerprint
    with pytest.raises(ServerError):
        await twin.complete(ask())
    assert (await twin.complete(ask())).text == "b"


def answer_a(request: ChatRequest) -> str:
    return "a"


def answer_b(request: ChatRequest) -> str:
    return "b"


def test_fingerprints_follow_the_script() -> None:
    models = [MockModel("a"), MockModel("b"), MockModel(["a", "b"]), MockModel(answer_a), MockModel(answer_b)]
    models += [MockModel(p_yes=0.5), MockModel(p_yes=0.6), MockModel(Scripted("a", reasoning="r"))]
    assert len({model.fingerprint for model in models}) == len(models)
    assert MockModel("a").fingerprint == MockModel("a", latency=1.0).fingerprint
