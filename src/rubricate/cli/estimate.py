"""What a scoring run would ask a model, counted without asking it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.cli.inputs import Unit
from rubricate.errors import ChatError, RequestError
from rubricate.judges import CriteriaJudge, HolisticJudge

__all__ = ["Estimate", "estimate"]

CHARACTERS = 4
"""Characters a token, about; fewer in languages such as Japanese."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls of a model, and tokens of their prompts, each prompt counted whole."""

    calls: int = 0
    tokens: int = 0


class _Counting(ChatModel):
    """Counts the requests that it gets and answers none of them."""

    name = "none"

    def __init__(self) -> None:
        self.calls = self.characters = 0

    @property
    def fingerprint(self) -> str:
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(logprobs=True, prefill=True)

    async def complete(self, request: ChatRequest) -> Completion:
        raise self._count(request)

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        return [self._count(request) for request in requests]

    def _count(self, request: ChatRequest) -> ChatError:
        self.calls += 1
        self.characters += len(request.text()) + len(request.prefill)
        return RequestError("nothing is asked in a dry run")  # of a kind that no judge tries again


def estimate(units: Iterable[Unit], make_judge: Callable[[ChatModel], CriteriaJudge]) -> Estimate:
    """Render every prompt that the judge would send at first, and count; code checks are not run.

    Args:
        units: the responses.
        make_judge: gives the run's judge with another model.
    """
    model = _Counting()
    judge = make_judge(model)

    async def ask() -> None:
        for unit in units:
            whole = isinstance(judge, HolisticJudge)
            criteria = [c for c in unit.rubric.criteria if whole or c.verifier is None]
            if criteria:
                await judge.judge_criteria(unit.rollout, criteria)

    asyncio.run(ask())
    return Estimate(model.calls, model.characters // CHARACTERS)
