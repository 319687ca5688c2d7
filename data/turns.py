"""Conversations as one text, for prompts of judges and generators."""

from __future__ import annotations

from collections.abc import Sequence

from rubricate.data.records import Turn

__all__ = ["prompt_of", "turns_text"]


def prompt_of(prompt: str | tuple[Turn, ...]) -> str:
    """A prompt as one text; a conversation keeps its roles."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) == 1 and prompt[0].role == "user":
        return prompt[0].content
    return turns_text(prompt)


def turns_text(turns: Sequence[Turn]) -> str:
    """Every turn with its role: reasoning, tool calls and tool results included."""
    return "\n\n".join(_show(turn) for turn in turns)


def _show(turn: Turn) -> str:
    head = f"[{turn.role}{f' {turn.name}' if turn.name else ''}]"
    parts = [f"[reasoning] {turn.reasoning}"] if turn.reasoning else []
    parts += [turn.content] if turn.content else []
    parts += [f"[calls {name}] {arguments}" for name, arguments in turn.tool_calls]
    return f"{head} " + "\n".join(parts)
