"""Reading structured answers, and asking again with the reason."""

from __future__ import annotations

import pytest

from rubricate.chat.base import Finish, Message
from rubricate.chat.mock import MockModel, Scripted
from rubricate.errors import ConfigError, DeadlineError, ParseError
from rubricate.rubrics.generators.asking import Asking, AskOptions, read_items, read_json
from rubricate.types import FailureKind


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('{"criteria": [{"a": 1}, {"a": 2}]}', 2),
        ('Sure!\n```json\n[{"a": 1}, {"a": 2}]\n```\nDone.', 2),
        ('{"a": 1}\n{"a": 2}\n{"a": 3}', 3),
        ('First thoughts: [{"a": 0}]. Now: {"criteria": [{"a": 1}, {"a": 2},]}', 2),
        ("{'criteria': [{'a': 1}]}", 1),
        ('"[{\\"a\\": 1}]"', 1),
    ],
)
def test_lists_in_the_shapes_that_models_write(text: str, count: int) -> None:
    assert len(read_items(text, "criteria")) == count


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("no list at all", "unparsable"),
        ('{"criteria": [{"a": 1}, {"a"', "incomplete"),
        ('{"other": [1]}', "unparsable"),
        ('{"criteria": []}', "incomplete"),
        ('{"criteria": [{"a": 1, "a": 2}]}', "ambiguous"),
    ],
)
def test_what_is_no_list_is_refused_with_its_kind(text: str, kind: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_items(text, "criteria")
    assert caught.value.kind == kind


def asked(complaint: str) -> list[Message]:
    return [Message("user", f"Q{complaint}")]


async def test_the_reason_goes_back_and_the_sample_rises() -> None:
    model = MockModel(["x", '{"a": 1}'])
    options = AskOptions(sample=2, temperature=0.1, retry_temperature=0.9)
    answer = await Asking(model, options).ask(asked, read_json, schema={"type": "object"})
    assert answer.value == {"a": 1} and answer.usage.calls == 2
    first, second = model.requests
    assert second.messages[0].content == "Qthe answer holds no JSON object"
    assert (first.sample, second.sample) == (6, 7)
    assert (first.temperature, second.temperature) == (0.1, 0.9)
    assert first.json_schema is not None and second.json_schema is None
    assert [note.reason for note in answer.notes] == ["the answer holds no JSON object"]


async def test_a_cut_answer_gets_more_room_and_reasoning_is_no_answer() -> None:
    model = MockModel(
        [Scripted('{"a": ', finish=Finish.LENGTH), "<think>{}</think>", '<think>{"b": 2}</think>{"a": 1}']
    )
    answer = await Asking(model, AskOptions(max_tokens=10)).ask(asked, read_json)
    assert answer.value == {"a": 1}
    assert [request.max_tokens for request in model.requests] == [10, 20, 10]


async def test_errors_of_the_server_are_not_asked_again() -> None:
    model = MockModel(DeadlineError("too late"))
    answer = await Asking(model).ask(asked, read_json)
    assert answer.value is None and answer.failure is not None
    assert answer.failure.kind is FailureKind.DEADLINE and len(model.requests) == 1


async def test_schemas_can_be_left_out() -> None:
    model = MockModel("{}")
    await Asking(model, AskOptions(structured=False)).ask(asked, read_json, schema={"type": "object"})
    assert model.requests[0].json_schema is None
    with pytest.raises(ConfigError, match="sample"):
        AskOptions(sample=-1)
