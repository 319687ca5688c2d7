"""Asking again in the words of `generate_again`, for answers that are no list of criteria."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rubricate.chat.base import Message
from rubricate.prompts import load_prompt

__all__ = ["again", "text_field"]


def again(messages: Sequence[Message]) -> Callable[[str], Sequence[Message]]:
    """For `Asking.ask`: the messages, with why the answer before could not be used added to the last of them."""

    def make(why: str) -> Sequence[Message]:
        if not why:
            return messages
        said: dict[str, object] = {"wanted": 0, "complaint": why.rstrip(".")}
        more = load_prompt("generate_again").render("item", said).rstrip()
        return [*messages[:-1], Message(messages[-1].role, messages[-1].content.rstrip() + more)]

    return make


def text_field(fields: Mapping[str, object], *names: str) -> str:
    """The first of these fields that holds a text which is not blank, on one line; "" where none does."""
    for name in names:
        said = fields.get(name)
        if isinstance(said, str) and said.strip():
            return " ".join(said.split())
    return ""
