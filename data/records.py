"""The records that everything works on: turns, prompts, rollouts, preference pairs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object

__all__ = ["Preference", "Rollout", "Turn", "parse_turns"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation or trajectory.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`.
        content: visible text.
        reasoning: hidden reasoning, where it is kept apart from the text.
        tool_calls: pairs of tool name and arguments as JSON text.
        name: name of the tool that a `tool` turn answers for.
    """

    role: str
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[tuple[str, str], ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A prompt and one response to it, with what is known besides.

    Attributes:
        prompt: the request, as text or as the turns of a conversation that ends with the user's.
        response: the response, as text or as the turns that followed (tool turns included).
        reference: a reference answer, where there is one.
        id: name of the row, for people and for resuming.
        finish: how generation ended, such as `stop` or `length`, where the trainer says so.
        metadata: anything else; judges do not see it.
    """

    prompt: str | tuple[Turn, ...]
    response: str | tuple[Turn, ...]
    reference: str | None = None
    id: str = ""
    finish: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Preference:
    """A prompt with a preferred and a rejected response."""

    prompt: str | tuple[Turn, ...]
    chosen: str
    rejected: str
    reference: str | None = None
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _content(value: object, field_name: str) -> str:
    """The text of a message's `content`: a string, null, or a list of text parts as multi-modal chats have."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    listed = as_array(value)
    if listed is None:
        raise FormatError(f"expected text, got {type(value).__name__}", field=field_name)
    parts: list[str] = []
    for index, part in enumerate(listed):
        fields = as_object(part)
        text = fields.get("text") if fields is not None else part
        if not isinstance(text, str):
            raise FormatError("only text parts can be judged", field=f"{field_name}[{index}]")
        parts.append(text)
    return "".join(parts)


def _tool_calls(value: object, field_name: str) -> tuple[tuple[str, str], ...]:
    if not value:
        return ()
    listed = as_array(value)
    if listed is None:
        raise FormatError("expected a list of tool calls", field=field_name)
    calls: list[tuple[str, str]] = []
    for index, item in enumerate(listed):
        call = as_object(item) or {}
        function = as_object(call.get("function", call)) or {}
        name = function.get("name")
        if not isinstance(name, str):
            raise FormatError("a tool call needs a name", field=f"{field_name}[{index}]")
        arguments = function.get("arguments", "")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        calls.append((name, text))
    return tuple(calls)


def parse_turns(value: object, field_name: str = "messages") -> str | tuple[Turn, ...]:
    """Text as it is, or OpenAI-style messages as turns.

    Raises FormatError, naming the field, for anything that is neither.
    """
    if isinstance(value, str):
        return value
    listed = as_array(value)
    if listed is None:
        raise FormatError(f"expected text or a list of messages, got {type(value).__name__}", field=field_name)
    turns: list[Turn] = []
    for index, item in enumerate(listed):
        place = f"{field_name}[{index}]"
        if isinstance(item, Turn):
            turns.append(item)
            continue
        message = as_object(item)
        if message is None:
            raise FormatError("expected a message with role and content", field=place)
        role = message.get("role")
        if not isinstance(role, str):
            raise FormatError("a message needs a role", field=f"{place}.role")
        reasoning = message.get("reasoning_content") or message.get("reasoning") or message.get("thinking") or ""
        turns.append(
            Turn(
                role=role,
                content=_content(message.get("content"), f"{place}.content"),
                reasoning=reasoning if isinstance(reasoning, str) else json.dumps(reasoning),
                tool_calls=_tool_calls(message.get("tool_calls"), f"{place}.tool_calls"),
                name=str(message.get("name") or ""),
            )
        )
    return tuple(turns)
