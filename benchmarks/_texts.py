"""The texts that rubricate's criterion judge sends, taken down, so that a bare loop can send the very same ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from os.path import commonprefix

from _workload import CRITERIA, Case, say

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.data.records import Rollout
from rubricate.judges import CriterionJudge
from rubricate.rubrics import Criterion, Polarity, Rubric

__all__ = ["case_texts", "rollouts", "rubric"]


def rubric() -> Rubric:
    """The eight criteria as a rubric."""
    criteria = [
        Criterion(
            id=c.id,
            text=c.text,
            weight=abs(c.weight),
            polarity=Polarity.REWARD if c.weight > 0 else Polarity.PENALTY,
        )
        for c in CRITERIA
    ]
    return Rubric(id="benchmark", criteria=tuple(criteria))


def rollouts(cases: Sequence[Case]) -> list[Rollout]:
    """The cases as rollouts."""
    return [Rollout(case.prompt, case.response, id=str(at)) for at, case in enumerate(cases)]


class _Recorder(ChatModel):
    """Answers rightly and keeps every request."""

    name = "recorder"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    @property
    def fingerprint(self) -> str:
        """A constant: it is never compared."""
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        """None."""
        return Capabilities()

    async def complete(self, request: ChatRequest) -> Completion:
        """The right answer."""
        self.requests.append(request)
        return Completion(json.dumps(say("rubricate", request.text())))


def case_texts(cases: Sequence[Case]) -> list[list[tuple[str, str, str]]]:
    """For each case and criterion: system message, the user message's shared part, and the criterion's own part."""
    return asyncio.run(_case_texts(cases))


async def _case_texts(cases: Sequence[Case]) -> list[list[tuple[str, str, str]]]:
    texts: list[list[tuple[str, str, str]]] = []
    for rollout in rollouts(cases):
        recorder = _Recorder()
        await CriterionJudge(recorder).judge(rollout, rubric())
        users = [request.messages[-1].content for request in recorder.requests]
        shared = commonprefix(users)
        shared = shared[: shared.rfind("\n\n") + 2]
        systems = [request.messages[0].content for request in recorder.requests]
        texts.append([(system, shared, user[len(shared) :]) for system, user in zip(systems, users, strict=True)])
    return texts
