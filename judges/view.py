"""Views: what a judge gets to see of a rollout."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rubricate.data.records import Rollout
from rubricate.data.turns import prompt_of, turns_text
from rubricate.errors import ConfigError
from rubricate.judges.parsing import strip_reasoning

__all__ = ["View", "final_answer", "get_view", "name_of", "prompt_text", "trajectory"]

View = Callable[[Rollout], str]
"""A function from a rollout to the text that the judge sees as the response. It must pickle."""


def final_answer(rollout: Rollout) -> str:
    """The text of the last assistant turn that has any, reasoning stripped. The default view."""
    if isinstance(rollout.response, str):
        return _visible(rollout.response)
    for turn in reversed(rollout.response):
        if turn.role == "assistant" and (text := _visible(turn.content)).strip():
            return text
    return ""


def _visible(text: str) -> str:
    """The text without reasoning. A block that opens in mid-answer and never closes stays: it is no reasoning, and
    dropping it would let a response hide its end from the judge."""
    shown = strip_reasoning(text)
    # Closing the text once more changes nothing only where a block is open at its end.
    if shown.strip() and shown != text and strip_reasoning(text + "</think>") == shown:
        return text
    return shown


def trajectory(rollout: Rollout) -> str:
    """Every turn of the response: reasoning, tool calls and tool results included."""
    if isinstance(rollout.response, str):
        return rollout.response
    return turns_text(rollout.response)


def prompt_text(rollout: Rollout) -> str:
    """The prompt as one text; a conversation keeps its roles."""
    return prompt_of(rollout.prompt)


def name_of(function: Callable[..., object]) -> str:
    """What a function is called, for fingerprints: with its arguments for a partial, else the type's name."""
    if isinstance(function, functools.partial):
        return f"{name_of(function.func)}{function.args!r}{sorted(function.keywords.items())!r}"
    return getattr(function, "__qualname__", type(function).__qualname__)


_VIEWS: dict[str, View] = {"final": final_answer, "trajectory": trajectory}


def get_view(view: str | View) -> View:
    """A view by name (`final`, `trajectory`) or the function itself. Raises ConfigError for another name."""
    if callable(view):
        return view
    if view not in _VIEWS:
        raise ConfigError(f"there is no view named {view!r}", hint=f"use {' or '.join(_VIEWS)}, or pass a function")
    return _VIEWS[view]
