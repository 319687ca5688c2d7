"""What tests of pairwise judges share: scripted judges that prefer a text, by style. Imported as `comparing`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from rubricate.chat import ChatRequest

__all__ = ["arena", "labelled", "ours", "prefers", "side_of"]


def side_of(request: ChatRequest, text: str) -> str:
    """Where a response with that text is shown: A or B."""
    blocks = re.findall(r"^<response_([AB])-(\w+)>\n(.*?)\n</response_\1-\2>$", request.text(), re.S | re.M)
    return next(side for side, _, body in blocks if body == text)


def ours(side: str, request: ChatRequest) -> str:
    """A well-formed reply in our style."""
    labels = re.findall(r"^(C\d+) \(", request.messages[-1].content, re.M)
    entries = [{"id": label, "reason": "because", "ahead": side} for label in labels]
    return json.dumps({"criteria": entries, "reason": f"{side} is fuller", "winner": side, "final": side})


def prefers(text: str) -> Callable[[ChatRequest], str]:
    """A judge in our style that prefers the response with that text, wherever it is shown."""
    return lambda request: ours(side_of(request, text), request)


def labelled(text: str) -> Callable[[ChatRequest], str]:
    """The same in Rubric-RM's sections."""

    def reply(request: ChatRequest) -> str:
        items = "".join(f"- Criterion {n} [Principle]: Justification: Fine.\n" for n in (1, 2))
        return (
            "--- Compliance Check ---\nIdentified Gatekeeper Criterion: Criterion 1: Names three birds.\n\n"
            f"--- Analysis ---\n**Response A:**\n{items}\n**Response B:**\n{items}\n"
            f"--- Final Judgment ---\nJustification: It names more.\nWinner: Response {side_of(request, text)}"
        )

    return reply


def arena(text: str) -> Callable[[ChatRequest], str]:
    """The same with arena tags, much better."""
    return lambda request: "I compared. [[A>>B]]" if side_of(request, text) == "A" else "I compared. [[B>>A]]"
