"""Rollouts out of rows: the columns of common data sets, groups, ids, and errors by field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubricate.data.columns import rollouts_from_record
from rubricate.data.io import Row, read_rollouts, rollouts_from_row, write_jsonl
from rubricate.data.records import Rollout, Turn
from rubricate.errors import ConfigError, FormatError


def read(record: dict[str, object], **columns: str) -> list[Rollout]:
    return rollouts_from_row(Row("rows.jsonl", 7, record), columns=columns)


def test_plain_row() -> None:
    (rollout,) = read({"prompt": "p", "response": "r", "reference_answer": "a", "id": 12, "source": "x"})
    assert rollout == Rollout("p", "r", "a", "12", "", {"source": "x"})


@pytest.mark.parametrize("prompt", ["prompt", "question", "instruction", "query", "input"])
@pytest.mark.parametrize("response", ["response", "completion", "output"])
def test_accepted_names(prompt: str, response: str) -> None:
    (rollout,) = read({prompt: "p", response: "r"})
    assert (rollout.prompt, rollout.response, rollout.id, rollout.metadata) == ("p", "r", "7", {})


def test_a_group_has_an_id_for_each_member() -> None:
    group = read({"id": "q", "prompt": "p", "responses": ["a", [{"role": "assistant", "content": "b"}], ""]})
    assert [rollout.id for rollout in group] == ["q#0", "q#1", "q#2"]
    assert [rollout.response for rollout in group] == ["a", (Turn("assistant", "b"),), ""]


def test_members_of_a_group_may_carry_fields() -> None:
    completions = [{"model": "m", "response": "a", "finish_reason": "length"}, {"model": "n", "response": "b"}]
    first, second = read({"prompt": "p", "completions": completions, "split": "test", "finish": "stop"})
    assert (first.response, first.finish, second.finish) == ("a", "length", "stop")
    assert first.metadata == {"split": "test", "response": {"model": "m", "finish_reason": "length"}}
    assert second.metadata == {"split": "test", "response": {"model": "n"}}


def test_messages_hold_the_response_when_no_column_does() -> None:
    messages = [{"role": "user", "content": "p"}, {"role": "assistant", "content": "r"}]
    (rollout,) = read({"messages": messages})
    assert (rollout.prompt, rollout.response) == ((Turn("user", "p"),), "r")
    tool = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    trajectory = [*messages[:1], tool, {"role": "tool", "content": "1"}, messages[1]]
    (rollout,) = read({"messages": trajectory})
    assert isinstance(rollout.response, tuple)
    assert [turn.role for turn in rollout.response] == ["assistant", "tool", "assistant"]
    (rollout,) = read({"messages": messages[:1], "response": "other"})
    assert rollout.response == "other"


def test_alpaca_input_is_part_of_the_prompt() -> None:
    (rollout,) = read({"instruction": "Translate.", "input": "Hallo", "output": "Hello"})
    assert rollout.prompt == "Translate.\n\nHallo"
    (rollout,) = read({"instruction": "Sing.", "input": "", "output": "La"})
    assert rollout.prompt == "Sing."


def test_system_prompt_comes_first() -> None:
    (rollout,) = read({"system_prompt": "Be brief.", "input": "p", "response": "r", "score_rubric": {}})
    assert rollout.prompt == (Turn("system", "Be brief."), Turn("user", "p"))


def test_lists_may_come_as_json_text() -> None:
    group = read({"prompt": "p", "responses": '["a", "b"]'})
    assert [rollout.response for rollout in group] == ["a", "b"]


def test_rubric_columns_are_no_metadata() -> None:
    (rollout,) = read({"prompt": "p", "response": "r", "rubric": [], "x": 1})
    assert rollout.metadata == {"x": 1}


def test_the_caller_can_choose_between_columns() -> None:
    record: dict[str, object] = {"prompt": "template", "question": "q", "response": "r"}
    with pytest.raises(FormatError, match="could both be the prompt") as caught:
        read(record)
    assert (caught.value.line, caught.value.field) == (7, "question")
    (rollout,) = read(record, prompt="question")
    assert (rollout.prompt, rollout.metadata) == ("q", {"prompt": "template"})
    (rollout,) = read(record | {"question": "template"})
    assert rollout.metadata == {}
    with pytest.raises(ConfigError, match="no role"):
        read(record, promt="question")
    with pytest.raises(FormatError, match="not there"):
        read(record, prompt="text")


@pytest.mark.parametrize(
    ("record", "field", "words"),
    [
        ({"response": "r"}, "", "no prompt"),
        ({"prompt": "p"}, "", "no response"),
        ({"prompt": " ", "response": "r"}, "prompt", "empty"),
        ({"prompt": "p", "response": None}, "response", "NoneType"),
        ({"prompt": "p", "response": 3}, "response", "int"),
        ({"prompt": "p", "response": ["a", "b"]}, "response", "named responses"),
        ({"prompt": "p", "responses": "a"}, "responses", "expected a list"),
        ({"prompt": "p", "responses": "[1"}, "responses", "JSON text"),
        ({"prompt": "p", "responses": []}, "responses", "no response"),
        ({"prompt": "p", "responses": ["a", 3]}, "responses[1]", "int"),
        ({"prompt": "p", "responses": [{"text": "a"}]}, "responses[0]", "one of"),
        ({"prompt": "p", "responses": [[{"content": "a"}]]}, "responses[0][0].role", "role"),
        ({"prompt": "p", "response": "a", "responses": ["b"]}, "responses", "both there"),
        ({"prompt": [{"role": "user"}, {}], "response": "r"}, "prompt[1].role", "role"),
        ({"prompt": "p", "response": "r", "id": [1]}, "id", "list"),
        ({"prompt": "p", "response": "r", "id": True}, "id", "bool"),
        ({"prompt": "p", "response": "r", "reference": {"a": 1}}, "reference", "dict"),
        ({"prompt": "p", "response": "r", "finish_reason": 1}, "finish_reason", "int"),
        ({"messages": [{"role": "user", "content": "p"}]}, "", "no response"),
        ({"system": "s", "prompt": [{"role": "system", "content": "t"}], "response": "r"}, "system", "its own"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(record: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        read(record)
    assert (caught.value.source, caught.value.line, caught.value.field) == ("rows.jsonl", 7, field)


def test_ids_are_lines_and_must_differ(tmp_path: Path) -> None:
    row = {"prompt": "p", "responses": ["a", "b"]}
    write_jsonl(tmp_path / "a.jsonl", [row, row])
    found = [rollout.id for _, group in read_rollouts(tmp_path / "a.jsonl") for rollout in group]
    assert found == ["1#0", "1#1", "2#0", "2#1"]
    write_jsonl(tmp_path / "b.jsonl", [row | {"id": "x"}, row | {"id": "y"}, row | {"id": "x"}])
    with pytest.raises(FormatError, match="taken by line 1") as caught:
        list(read_rollouts(tmp_path / "b.jsonl"))
    assert caught.value.line == 3


TURNS = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
TALK = [*TURNS, {"role": "user", "content": "Who are you?"}]


@pytest.mark.parametrize("column", ["conversation_history", "CONVERSATION", "messages", "prompt", "Conversation"])
@pytest.mark.parametrize("as_text", [True, False])
def test_a_conversation_is_read_as_turns(column: str, as_text: bool) -> None:
    value: object = json.dumps(TALK, indent=1) if as_text else TALK
    (rollout,) = rollouts_from_record({column: value, "response": "A model."}, default_id="1")
    assert [(turn.role, turn.content) for turn in rollout.prompt if not isinstance(turn, str)] == [
        (turn["role"], turn["content"]) for turn in TALK
    ]
    assert rollout.response == "A model." and column not in rollout.metadata


@pytest.mark.parametrize(
    "text",
    ['[{"role": "user"', '[{"role": "admin", "age": 3}]', "[1] is what?", '[{"content": "x"}] <- what is it?'],
)
def test_a_prompt_about_json_stays_a_text(text: str) -> None:
    assert rollouts_from_record({"prompt": text, "response": "x"}, default_id="1")[0].prompt == text


def test_names_in_another_case_are_taken() -> None:
    record = {"ID": 7, "Prompt": "p", " Response ": "r", "Reference": "ref", "Notes": "n"}
    (rollout,) = rollouts_from_record(record, default_id="1")
    assert (rollout.id, rollout.prompt, rollout.response, rollout.reference) == ("7", "p", "r", "ref")
    assert rollout.metadata == {"Notes": "n"}


def test_the_accepted_spelling_goes_before_others_and_two_others_are_an_error() -> None:
    both = {"Prompt": "no", "prompt": "yes", "response": "r"}
    assert rollouts_from_record(both, default_id="1")[0].prompt == "yes"
    with pytest.raises(FormatError, match="'Prompt' and 'PROMPT' could both be the prompt"):
        rollouts_from_record({"Prompt": "a", "PROMPT": "b", "response": "r"}, default_id="1")
    chosen = {"Prompt": "a", "PROMPT": "b", "response": "r"}
    assert rollouts_from_record(chosen, default_id="1", columns={"prompt": "PROMPT"})[0].prompt == "b"


def test_no_prompt_hints_at_naming_a_column() -> None:
    with pytest.raises(FormatError) as raised:
        rollouts_from_record({"Frage": "p", "response": "r"}, default_id="1")
    assert "--column prompt=NAME" in raised.value.hint and "Frage" in raised.value.hint
