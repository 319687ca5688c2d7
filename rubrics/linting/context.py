"""What stands around a rubric: its prompt and its reference, found in the metadata or in the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubricate.data.columns import COLUMNS
from rubricate.narrow import as_array, as_object

__all__ = ["prompt_of", "reference_of", "suppressed"]

PROMPTS = ("prompt", "question", "instruction", "query", "problem", "input", "messages", "conversation")
REFERENCES = (
    *COLUMNS["reference"],
    "ideal_answer",
    "gold_answer",
    "answer",
    "solution",
    "target_response",
    "chosen",
)


def _as_text(value: object) -> str:
    """A text, or the texts of chat messages one below the other; "" for anything else."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    for item in as_array(value) or ():
        message = as_object(item)
        content = message.get("content", message.get("value")) if message is not None else item
        parts.append(content if isinstance(content, str) else _blocks(content))
    return "\n".join(part for part in parts if part)


def _blocks(value: object) -> str:
    texts = [(as_object(block) or {}).get("text") for block in as_array(value) or ()]
    return "\n".join(text for text in texts if isinstance(text, str))


def _first(sources: Sequence[Mapping[str, object]], names: Sequence[str]) -> str:
    return next((text for source in sources for name in names if (text := _as_text(source.get(name))).strip()), "")


def prompt_of(*sources: Mapping[str, object]) -> str:
    """The prompt in the first record that has one, a system prompt before it and an `input` after it."""
    found = _first(sources, PROMPTS)
    system, more = _first(sources, COLUMNS["system"]), _first(sources, ("input", "context"))
    return "\n\n".join(part for part in dict.fromkeys((system, found, more)) if part) if found else ""


def reference_of(*sources: Mapping[str, object]) -> str:
    """The reference answer in the first record that has one."""
    return _first(sources, REFERENCES)


def suppressed(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """Codes and names in `metadata["lint"]["ignore"]`."""
    listed = (as_object(metadata.get("lint")) or {}).get("ignore")
    entries = [listed] if isinstance(listed, str) else as_array(listed) or ()
    return tuple(entry for entry in entries if isinstance(entry, str))
