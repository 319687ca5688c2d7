"""A judge that misbehaves now and then: whatever is reported as a winner is right."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from comparing import arena, labelled, ours, side_of

from rubricate.chat import ChatRequest, Completion, MockModel
from rubricate.chat.base import Finish
from rubricate.chat.mock import Answer
from rubricate.data.records import Rollout
from rubricate.errors import ServerError
from rubricate.judges.pairwise import PairwiseJudge
from rubricate.judges.pairwise_reading import Style
from rubricate.rubrics import Criterion, Rubric

TASK, BEST = "Name three birds.", "Robin, wren and owl."
RUBRIC = Rubric(criteria=(Criterion(id="a", text="Names three birds."), Criterion(id="b", text="Is short.")))


def sound(style: Style, request: ChatRequest) -> str:
    if style == "rubricate":
        return ours(side_of(request, BEST), request)
    if style == "rm-r1":
        side = side_of(request, BEST)
        return f"<type>Chat</type><eval>{side} is fuller.</eval><answer>[[{side}]]</answer>"
    return (labelled(BEST) if style == "rubric-rm" else arena(BEST))(request)


def damaged(style: Style, text: str, draw: random.Random) -> Answer:
    """A reply that a real judge might give, and that does not plainly say the wrong thing."""
    kind = draw.randrange(6)
    if kind == 0:
        return Completion(text[: draw.randrange(1, len(text))], Finish.LENGTH)
    if kind == 1:
        return text[: draw.randrange(1, len(text) - 1)]
    if kind == 2:
        return ServerError("down", status=503)
    if kind == 3:
        return Completion("", Finish.STOP)
    if kind == 4:
        return "Both have their merits, and it is hard to say."
    if style == "rubricate":
        record = json.loads(text)
        return json.dumps(record | {"final": "B" if record["final"] == "A" else "A"})
    return text + "\n" + text.translate(str.maketrans("AB", "BA"))


@pytest.mark.parametrize("style", ["rubricate", "rubric-rm", "rm-r1", "arena"])
async def test_no_damage_makes_a_wrong_winner(style: Style) -> None:
    draw = random.Random(style)

    def script(request: ChatRequest) -> Answer:
        text = sound(style, request)
        return damaged(style, text, draw) if draw.random() < 0.5 else text

    found = Counter[str]()
    for n in range(150):
        best_first = n % 2 == 0
        texts = (BEST, "Robin.") if best_first else ("Robin.", BEST)
        first, second = (Rollout(f"{TASK} {n}", text) for text in texts)
        result = await PairwiseJudge(MockModel(script), style=style).compare(first, second, RUBRIC)
        right = "first" if best_first else "second"
        found["right" if result.winner == right else "failed" if result.winner is None else "wrong"] += 1
    assert found["wrong"] == 0, found
    assert found["right"] > 60, found
