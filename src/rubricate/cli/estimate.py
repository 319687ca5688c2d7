"""What a scoring run would ask a model, counted without asking it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rubricate.chat import ReplayModel
from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.cli.inputs import Inputs, Unit
from rubricate.errors import ChatError, ConfigError, RequestError
from rubricate.judges import CriteriaJudge, HolisticJudge

__all__ = ["CHARACTERS", "CountingModel", "Estimate", "estimate"]

CHARACTERS = 4
"""Characters a token, about; fewer in languages such as Japanese."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls of a model, and tokens of their prompts, each prompt counted whole.

    Attributes:
        calls, tokens: in all.
        lacking: calls that a recording has no answer for.
        line: the data's line with the first of them.
    """

    calls: int = 0
    tokens: int = 0
    lacking: int = 0
    line: int | None = None


class CountingModel(ChatModel):
    """Counts the requests that it gets and answers none of them; to who asks it is the model it stands in for.

    Attributes:
        calls, characters: requests, and characters of their prompts.
        answer_tokens: tokens that their answers may have at most.
        lacking: requests that a recording has no answer for.
    """

    def __init__(self, like: ChatModel) -> None:
        self.name = like.name
        self.like = like
        self.replay = like if isinstance(like, ReplayModel) else None
        self.calls = self.characters = self.answer_tokens = self.lacking = 0

    @property
    def fingerprint(self) -> str:
        return self.like.fingerprint

    @property
    def capabilities(self) -> Capabilities:
        # a recorded model's decide what it was asked
        return Capabilities(logprobs=True, prefill=True) if self.replay is None else self.replay.capabilities

    async def complete(self, request: ChatRequest) -> Completion:
        raise self._count(request)

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        return [self._count(request) for request in requests]

    def _count(self, request: ChatRequest) -> ChatError:
        self.calls += 1
        self.characters += len(request.text()) + len(request.prefill)
        self.answer_tokens += request.max_tokens
        self.lacking += self.replay is not None and self.replay.lacks(request)
        return RequestError("nothing is asked in a dry run")  # of a kind that no judge tries again


def estimate(units: Iterable[Unit], make_judge: Callable[[ChatModel], CriteriaJudge], like: ChatModel) -> Estimate:
    """Render every prompt that the judge would send at first, and count; code checks are not run.

    Args:
        units: the responses.
        make_judge: gives the run's judge with another model.
        like: the run's model.
    """
    model = CountingModel(like)
    judge = make_judge(model)
    line: int | None = None

    async def ask() -> None:
        nonlocal line
        for unit in units:
            whole = isinstance(judge, HolisticJudge)
            criteria = [c for c in unit.rubric.criteria if whole or c.verifier is None]
            if criteria:
                await judge.judge_criteria(unit.rollout, criteria)
            if line is None and model.lacking:
                line = unit.line

    asyncio.run(ask())
    return Estimate(model.calls, model.characters // CHARACTERS, model.lacking, line)


def check_recorded(inputs: Inputs, replay: ReplayModel, make_judge: Callable[[ChatModel], CriteriaJudge]) -> None:
    """Raises ConfigError when the recording lacks an answer to a request that the judge would send at first.

    What it would ask because of an answer, such as once more, shows when it is played.
    """
    found = estimate(inputs, make_judge, replay)
    if found.lacking:
        raise ConfigError(
            f"the recording {replay.path} lacks {found.lacking} of {found.calls} requests, "
            f"the first for line {found.line} of {inputs.path}",
            hint="replay it with the data, rubric and options that it was made with, or record the run anew",
        )
