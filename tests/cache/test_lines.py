"""Answers and errors survive being written down, exactly."""

from __future__ import annotations

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate import errors
from rubricate.chat import Capabilities, Completion, Finish, TokenLogprob
from rubricate.chat.recording_lines import (
    answer_of,
    answer_record,
    as_line,
    error_of,
    error_record,
    read_capabilities,
)
from rubricate.types import Usage

TEXTS = st.text(st.characters(codec=None), max_size=30)
NUMBERS = st.floats(allow_nan=False)
TOKENS = st.builds(TokenLogprob, TEXTS, NUMBERS, st.lists(st.tuples(TEXTS, NUMBERS), max_size=3).map(tuple))
COUNTS = st.integers(0, 10**9)
ANSWERS = st.builds(
    Completion,
    TEXTS,
    st.sampled_from(Finish),
    st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, st.floats(0, 1e6)),
    st.none() | st.lists(TOKENS, max_size=4).map(tuple),
    TEXTS,
    TEXTS,
)


@given(ANSWERS)
def test_a_completion_comes_back_exactly(answer: Completion) -> None:
    line = as_line(answer_record(answer))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    back = answer_of(json.loads(line))
    assert back == answer
    assert repr(back) == repr(answer)  # -0.0 too, and no whole number in place of a float


def test_no_log_probabilities_and_none_at_all_differ() -> None:
    for logprobs in (None, ()):
        assert answer_of(answer_record(Completion("x", logprobs=logprobs))).logprobs == logprobs


def test_a_number_that_is_none_comes_back() -> None:
    back = answer_of(json.loads(as_line(answer_record(Completion("x", logprobs=(TokenLogprob("x", math.nan),))))))
    assert back.logprobs is not None and math.isnan(back.logprobs[0].logprob)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"text": 3, "finish": "stop", "usage": {}},
        {"text": "x", "finish": "never", "usage": {}},
        {"text": "x", "finish": "stop"},
        {"text": "x", "finish": "stop", "usage": {}, "logprobs": [["a"]]},
        {"text": "x", "finish": "stop", "usage": {}, "logprobs": [["a", None]]},
        {"text": "x", "finish": "stop", "usage": {}, "logprobs": [["a", 0.0, [["b"]]]]},
    ],
)
def test_what_is_no_answer_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        answer_of(record)


def every_error() -> list[errors.RubricateError]:
    found: list[errors.RubricateError] = [errors.AnswerError("cut", outcome="length", provider="p", hint="more")]
    found += [errors.RateLimitError("slow", retry_after=1.5), errors.ServerError("down", status=503, provider="s")]
    kinds = (errors.BudgetError, errors.CircuitOpenError, errors.ContextOverflowError, errors.DeadlineError)
    found += [kind("no", provider="p", retryable=True) for kind in (*kinds, errors.RequestError, errors.ChatError)]
    found += [errors.ConfigError("wrong", hint="do"), errors.MissingExtraError("torch", extra="local")]
    found += [errors.FormatError("odd", source="f", line=3, field="a.b")]
    for error in found:
        vars(error)["attempts"] = 7
    return found


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_an_error_comes_back_with_its_type_and_all_it_carries(error: errors.RubricateError) -> None:
    back = error_of(json.loads(as_line(error_record(error))))
    assert type(back) is type(error)
    assert vars(back) == vars(error) and str(back) == str(error) and back.args == error.args
    assert str(pickle.loads(pickle.dumps(back))) == str(error)


def test_an_error_of_the_users_own_comes_back_as_the_nearest_of_ours() -> None:
    class Ours(errors.ServerError):
        pass

    assert type(error_of(error_record(Ours("down")))) is errors.ServerError


@pytest.mark.parametrize("record", [{}, {"type": "OSError", "message": "x"}, {"type": "ServerError"}, {"type": 3}])
def test_what_is_no_error_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        error_of(record)


@given(st.builds(Capabilities, st.booleans(), st.booleans(), st.booleans(), st.none() | COUNTS, st.none() | COUNTS))
def test_capabilities_come_back(able: Capabilities) -> None:
    from dataclasses import asdict

    assert read_capabilities({**json.loads(json.dumps(asdict(able))), "new in a later version": 1}) == able
