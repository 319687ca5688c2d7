"""Questions whose answers are no list of criteria: their fences, and asking again as `generate_again` words it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rubricate.chat.base import Message
from rubricate.prompts import Prompt, load_prompt
from rubricate.prompts.fence import fence, make_nonce

__all__ = ["again", "question", "text_field"]


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


def question(
    prompt: Prompt, run_key: str, texts: Mapping[str, str | Sequence[str]], more: Mapping[str, object]
) -> list[Message]:
    """The messages of a template for what has no prompt of a user's at its centre.

    Args:
        prompt: a template with the blocks `system`, `shared` and `item`.
        run_key: key of the nonce.
        texts: untrusted texts by name, each put into a fence of its name; empty ones become "".
        more: values that need no fence.
    """
    flat = [one for text in texts.values() for one in ([text] if isinstance(text, str) else text)]
    nonce = make_nonce(run_key, *flat)
    values: dict[str, object] = dict(more)
    for name, text in texts.items():
        if isinstance(text, str):
            values[name] = fence(name, text, nonce) if text.strip() else ""
        else:
            values[name] = [fence(f"{name}_{at}", one, nonce) for at, one in enumerate(text, start=1)]
    user = prompt.render("shared", values) + prompt.render("item", values)
    return [Message("system", prompt.render("system", values).strip()), Message("user", user.strip())]
