"""Keys of requests: equal for equal requests, and another for every field that differs."""

from __future__ import annotations

import copy
import math
from dataclasses import fields, replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import ChatRequest, Message, request_key
from rubricate.errors import ConfigError

TEXTS = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
VALUES: dict[str, st.SearchStrategy[object]] = {
    "messages": st.lists(st.builds(Message, st.sampled_from(["system", "user"]), TEXTS), min_size=1).map(tuple),
    "max_tokens": st.integers(1, 4000),
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0, 1),
    "seed": st.none() | st.integers(),
    "stop": st.lists(TEXTS, max_size=2).map(tuple),
    "top_logprobs": st.none() | st.integers(0, 20),
    "json_schema": st.none() | OBJECTS,
    "prefill": TEXTS,
    "sample": st.integers(0, 99),
    "extra": OBJECTS,
    "prompt_logprobs": st.none() | st.integers(0, 20),
}
REQUESTS = st.fixed_dictionaries(VALUES).map(lambda values: ChatRequest(**values))  # type: ignore[arg-type]  # by name


def test_every_field_of_a_request_is_tried_here() -> None:
    assert {item.name for item in fields(ChatRequest)} == set(VALUES)


@given(REQUESTS)
def test_equal_requests_have_equal_keys(request_: ChatRequest) -> None:
    assert request_key("m", request_) == request_key("m", copy.deepcopy(request_))
    assert len(request_key("m", request_)) == 32


@given(st.data(), REQUESTS, st.sampled_from(sorted(VALUES)))
def test_each_field_changes_the_key(data: st.DataObject, request_: ChatRequest, name: str) -> None:
    other = data.draw(VALUES[name])
    if other != getattr(request_, name):
        changed = replace(request_, **{name: other})  # type: ignore[arg-type]  # of that field's type
        assert request_key("m", changed) != request_key("m", request_)


def test_the_model_changes_the_key() -> None:
    asked = ChatRequest((Message("user", "hi"),))
    assert request_key("here", asked) != request_key("there", asked)


def test_parts_do_not_run_into_each_other() -> None:
    one = ChatRequest((Message("user", "ab"), Message("user", "c")))
    two = ChatRequest((Message("user", "a"), Message("user", "bc")))
    assert request_key("m", one) != request_key("m", two)


def test_whole_numbers_and_their_floats_are_one_temperature() -> None:
    asked = ChatRequest((Message("user", "hi"),))
    assert request_key("m", replace(asked, temperature=0, top_p=1)) == request_key("m", asked)


def test_the_order_of_a_schema_counts_because_servers_follow_it() -> None:
    one = ChatRequest((), json_schema={"properties": {"reason": {}, "verdict": {}}})
    two = ChatRequest((), json_schema={"properties": {"verdict": {}, "reason": {}}})
    assert request_key("m", one) != request_key("m", two)


def test_any_kind_of_mapping_will_do() -> None:
    one, two = ChatRequest((), extra={"a": 1}), ChatRequest((), extra=MappingProxyType({"a": 1}))
    assert request_key("m", one) == request_key("m", two)


@pytest.mark.parametrize("value", [math.nan, object(), b"bytes"])
def test_what_json_cannot_hold_is_a_clear_error(value: object) -> None:
    with pytest.raises(ConfigError, match="cannot be kept") as raised:
        request_key("m", ChatRequest((), extra={"a": value}))
    assert "extra" in raised.value.hint


def test_half_a_surrogate_pair_has_a_key() -> None:
    assert request_key("m", ChatRequest((Message("user", "\ud83d"),)))
