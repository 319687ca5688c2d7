"""The OpenAI chat format: bodies, replies in every shape that servers send, and error replies."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import ChatRequest, Completion, Finish, Message, Outcome
from rubricate.chat.wire import Dialect, http_error, parse_completion, parse_retry_after, request_body
from rubricate.errors import (
    AnswerError,
    ChatError,
    ContextOverflowError,
    RateLimitError,
    RequestError,
    ServerError,
)
from rubricate.types import Usage

MESSAGES = (Message("system", "be brief"), Message("user", "hi"))


def reply(message: object, **choice: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}]}


def test_a_full_body() -> None:
    schema = {"type": "object"}
    request = ChatRequest(
        MESSAGES,
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        seed=3,
        stop=("\n",),
        top_logprobs=4,
        json_schema=schema,
        sample=7,
        extra={"top_k": 2},
    )
    body = request_body(request, "m", Dialect(extra={"chat_template_kwargs": {"enable_thinking": False}}))
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["\n"],
        "logprobs": True,
        "top_logprobs": 4,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        },
        "chat_template_kwargs": {"enable_thinking": False},
        "top_k": 2,
    }


def test_bodies_of_other_dialects() -> None:
    request = ChatRequest(MESSAGES, top_logprobs=0, json_schema={"type": "object"}, stop=("x",), top_p=0.5)
    reasoning = request_body(
        request, "o3", Dialect(token_field="max_completion_tokens", sampling=False, schema="none")
    )
    assert set(reasoning) == {"model", "messages", "max_completion_tokens"}
    llama = request_body(request, "m", Dialect(schema="llama.cpp"))
    assert llama["response_format"] == {"type": "json_object", "schema": {"type": "object"}}
    begun = ChatRequest(MESSAGES, prefill="{")
    with pytest.raises(RequestError, match="has begun"):
        request_body(begun, "m", Dialect())
    body = request_body(begun, "m", Dialect(prefill=True))
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "{"},
    ]
    assert (body["add_generation_prompt"], body["continue_final_message"]) == (False, True)


def test_a_full_reply() -> None:
    logprobs = {
        "content": [
            {"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "yes", "logprob": -0.1}, {"token": "no"}]},
            {"token": ".", "logprob": None, "top_logprobs": None},
        ]
    }
    record = reply({"content": "yes.", "reasoning_content": "hm"}, logprobs=logprobs)
    record["usage"] = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    answer = parse_completion(record, "m")
    assert (answer.text, answer.reasoning, answer.finish) == ("yes.", "hm", Finish.STOP)
    assert answer.usage == Usage(1, 9, 2, 4)
    assert answer.logprobs is not None
    assert answer.logprobs[0].top == (("yes", -0.1), ("no", -9999.0))
    assert (answer.logprobs[1].logprob, answer.logprobs[1].top) == (-9999.0, ())


@pytest.mark.parametrize(
    ("record", "text", "outcome"),
    [
        (reply({"content": "fine"}), "fine", Outcome.OK),
        (reply({"content": None}), "", Outcome.EMPTY),
        (reply({"content": " \n"}), " \n", Outcome.EMPTY),
        (reply({"content": "cut"}, finish_reason="length"), "cut", Outcome.LENGTH),
        (reply({"content": None, "reasoning": "long"}, finish_reason="length"), "", Outcome.LENGTH),
        (reply({"content": ""}, finish_reason="content_filter"), "", Outcome.CONTENT_FILTER),
        (reply({"content": None, "refusal": "I will not"}), "", Outcome.REFUSAL),
        (reply({"content": [{"type": "refusal", "refusal": "no"}]}), "", Outcome.REFUSAL),
        (reply({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "ab", Outcome.OK),
        (reply({"content": "x"}, finish_reason="tool_calls"), "x", Outcome.OK),
        (reply({"content": "x"}, finish_reason=None), "x", Outcome.OK),
    ],
)
def test_outcomes(record: object, text: str, outcome: Outcome) -> None:
    answer = parse_completion(record, "m")
    assert (answer.text, answer.outcome) == (text, outcome)


BROKEN: list[object] = [
    None,
    [],
    "text",
    {},
    {"choices": []},
    {"choices": None},
    {"choices": [None]},
    {"choices": [{}]},
    {"choices": [{"message": "hi"}]},
    reply({"content": 3}),
    reply({"content": "x"}, finish_reason="error"),
    reply({"content": "x"}, logprobs={"content": [{"logprob": 0.0}]}),
]


@pytest.mark.parametrize("record", BROKEN)
def test_a_broken_reply_is_a_server_error_to_try_again(record: object) -> None:
    with pytest.raises(ServerError) as caught:
        parse_completion(record, "m")
    assert caught.value.retryable


KEYS = ["choices", "message", "content", "logprobs", "usage", "error", "finish_reason", "token"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=12,
)


@given(VALUES)
def test_no_reply_breaks_the_reader(value: object) -> None:
    for record in (value, {"choices": value}, {"choices": [value]}, reply(value), reply({"content": value})):
        try:
            assert isinstance(parse_completion(record, "m"), Completion)
        except ChatError:
            pass


def test_an_error_with_status_200() -> None:
    with pytest.raises(RateLimitError):
        parse_completion({"error": {"message": "slow", "code": 429}}, "m")
    with pytest.raises(ServerError, match="upstream"):
        parse_completion({"error": {"message": "upstream"}}, "m")


def error(status: int, body: object = "", headers: Mapping[str, str] | None = None) -> ChatError:
    return http_error(status, headers or {}, body, "m")


def inner(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    "found",
    [
        error(400, inner("too long", code="context_length_exceeded")),
        error(400, inner("This model's maximum context length is 2048 tokens. However, you requested 3000")),
        error(400, {"object": "error", "message": "The prompt is longer than the maximum model length of 64"}),
        error(400, inner("the request exceeds the available context size", type="exceed_context_size_error")),
        error(500, inner("x", type="exceed_context_size_error")),
        error(400, inner("The input (9 tokens) is longer than the model's context length (8 tokens).")),
        error(422, {"detail": "prompt is too long: 9 tokens > 8 maximum"}),
    ],
)
def test_overflow_in_every_dialect(found: ChatError) -> None:
    assert isinstance(found, ContextOverflowError)
    assert not found.retryable


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422])
def test_requests_that_are_refused(status: int) -> None:
    found = error(status, inner("no"))
    assert isinstance(found, RequestError)
    assert (found.status, found.retryable, found.provider) == (status, False, "m")
    assert found.hint or status == 422


@pytest.mark.parametrize(
    ("status", "again"), [(408, True), (409, True), (500, True), (503, True), (529, True), (501, False)]
)
def test_server_errors(status: int, again: bool) -> None:
    found = error(status, "<html><title>Bad gateway</title></html>")
    assert isinstance(found, ServerError)
    assert found.retryable is again
    assert found.message == f"HTTP {status}: Bad gateway"


def test_rate_limits() -> None:
    found = error(429, inner("slow down"), {"retry-after": "2.5"})
    assert isinstance(found, RateLimitError)
    assert (found.retry_after, found.retryable) == (2.5, True)
    spent = error(429, inner("You exceeded your current quota", code="insufficient_quota"))
    assert isinstance(spent, RateLimitError) and not spent.retryable


def test_a_filter_that_refuses_the_prompt_is_an_outcome() -> None:
    found = error(400, inner("blocked", code="content_filter"))
    assert isinstance(found, AnswerError)
    assert found.outcome == "content_filter"


def test_the_key_stays_out_of_messages() -> None:
    found = http_error(401, {}, inner("wrong key sk-secret-1 given"), "m", secret="sk-secret-1")
    assert "sk-secret-1" not in str(found)


def test_retry_after_in_every_form() -> None:
    assert parse_retry_after({}) is None
    assert parse_retry_after({"retry-after": "30"}) == 30
    assert parse_retry_after({"retry-after": "-3"}) == 0
    assert parse_retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert parse_retry_after({"retry-after": "soon"}) is None
    assert parse_retry_after({"retry-after": "inf"}) is None
    date = {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}
    assert parse_retry_after(date, now=784111777 - 12) == 12
    assert parse_retry_after(date) == 0
