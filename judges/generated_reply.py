"""Reading the replies of a model that writes checks: a block of code or NONE, and examples as JSON."""

from __future__ import annotations

import re

from rubricate.errors import ParseError
from rubricate.judges.parsing import find_json, strip_reasoning
from rubricate.judges.sandbox import FUNCTION
from rubricate.narrow import as_array, as_object

__all__ = ["examples_schema", "read_examples", "read_source"]

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)[^\n`]*$", re.M)
_DEFINES = re.compile(rf"^def {FUNCTION}\b", re.M)
_NONE = re.compile(r"[\s`*_\"'#.]*NONE[\s`*_\"'.]*")


def read_source(reply: str) -> str | None:
    """The check in a reply, None where the model says NONE. The source is not parsed here: that is for the sandbox.

    Raises ParseError for a reply with neither, with both, with more than one check, or with one that was cut.
    """
    text = strip_reasoning(reply).strip()
    blocks, prose = _blocks(text)
    sources = [block for block in blocks if _DEFINES.search(block)]
    if len(sources) > 1:
        raise ParseError(f"the reply has {len(sources)} checks, one was asked for", kind="ambiguous", reply=reply)
    declines = any(_NONE.fullmatch(line) for line in prose.splitlines())
    if sources and declines:
        raise ParseError("the reply has a check and says NONE too", kind="ambiguous", reply=reply)
    if sources:
        return sources[0].strip("\n") + "\n"
    if declines or any(_NONE.fullmatch(block) for block in blocks):
        return None
    if not blocks and _DEFINES.search(text) and re.match(r"def |import |from ", text):
        return text + "\n"
    raise ParseError(f"the reply has no Python code block that defines {FUNCTION}(text)", reply=reply)


def _blocks(text: str) -> tuple[list[str], str]:
    """Contents of the fenced blocks, and the text around them. Raises ParseError for a block that is not closed."""
    blocks: list[str] = []
    prose: list[str] = []
    place = 0
    while opening := _FENCE.search(text, place):
        prose.append(text[place : opening.start()])
        mark = opening[1]
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*$", re.M).search(text, opening.end())
        if closing is None:
            raise ParseError("the code block of the reply is not closed", kind="incomplete", reply=text)
        blocks.append(text[opening.end() : closing.start()])
        place = closing.end()
    return blocks, "\n".join([*prose, text[place:]])


def examples_schema(count: int) -> dict[str, object]:
    """JSON schema of a reply with examples."""
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": count}
    return {
        "type": "object",
        "properties": {"holds": texts, "does_not_hold": texts},
        "required": ["holds", "does_not_hold"],
        "additionalProperties": False,
    }


def read_examples(reply: str) -> tuple[list[str], list[str]]:
    """Texts for which the criterion holds, and for which it does not; both kinds are there.

    Raises ParseError for a reply without such an object, and for a text that stands on both sides.
    """
    found = as_object(find_json(strip_reasoning(reply))) or {}
    kinds: list[list[str]] = []
    for key in ("holds", "does_not_hold"):
        texts = [text for text in as_array(found.get(key)) or () if isinstance(text, str)]
        if not texts:
            raise ParseError(f"the reply has no list {key!r} of texts", kind="incomplete", reply=reply)
        kinds.append(list(dict.fromkeys(texts)))
    if set(kinds[0]) & set(kinds[1]):
        raise ParseError("a text is on both sides of the reply", kind="ambiguous", reply=reply)
    return kinds[0], kinds[1]
