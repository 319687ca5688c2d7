"""The model that is probed, with what later probes need of earlier ones, and the requests that probes send."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Message, TokenLogprob
from rubricate.chat.limited import Limited, innermost
from rubricate.chat.limiter import Limiter
from rubricate.chat.limits import Limits
from rubricate.chat.timing import SYSTEM_CLOCK, Clock

__all__ = ["QUESTIONS", "REASONING_ROOM", "Question", "Subject", "Trial", "user"]

Question = tuple[Message, ...]

QUESTIONS: tuple[Question, Question] = (
    (Message("user", "Is two plus two equal to four? Answer with one word: yes or no."),),
    (Message("user", "Is a whale smaller than an ant? Answer with one word: yes or no."),),
)
"""One whose answer is yes, one whose answer is no."""
ROOM = 64
"""Tokens for a short answer in words."""
REASONING_ROOM = 512
"""The same for a model that reasons first."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One real request of a judge.

    Attributes:
        request: as the judge sends it first.
        read: what the judge reads out of an answer's text, in words. Raises ParseError where it can read nothing.
    """

    request: ChatRequest
    read: Callable[[str], str]


def user(
    text: str,
    *,
    max_tokens: int = 1,
    prefill: str = "",
    top_logprobs: int | None = None,
    json_schema: Mapping[str, object] | None = None,
    sample: int = 0,
) -> ChatRequest:
    """A greedy request with one message of the user's."""
    return ChatRequest(
        (Message("user", text),),
        max_tokens=max_tokens,
        prefill=prefill,
        top_logprobs=top_logprobs,
        json_schema=json_schema,
        sample=sample,
    )


class Subject:
    """A model under examination.

    Args:
        model: the model. Limiters, caches and recorders in front of it are left aside: every probe is sent, once.
        prices: money for a million prompt and completion tokens.
        questions: one whose answer is yes, and one whose answer is no.
        trial: a request of the judge that is to be used.
        clock: what time it is.

    Attributes:
        raw: the back end itself.
        limiter: counts what the probes use.
        reasons: whether it has been seen to reason before it answers, or takes no sampling parameters, as reasoning
            models do.
        short: seconds of a call with next to nothing in it, None until known.
        continues: whether it continues a turn that has begun.
        first_tokens: see ModelReport.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prices: tuple[float, float] | None = None,
        questions: tuple[Question, Question] = QUESTIONS,
        trial: Trial | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        prompt_price, completion_price = prices or (0.0, 0.0)
        limits = Limits(
            concurrency=None,
            max_attempts=1,
            attempt_timeout=None,
            breaker_failures=None,
            prompt_price=prompt_price,
            completion_price=completion_price,
        )
        self.raw = innermost(model)
        self.limiter = Limiter(limits, clock=clock)
        self.model = Limited(self.raw, self.limiter)
        self.clock = clock
        self.questions = questions
        self.trial = trial
        self.short: float | None = None
        self.reasons = not self.raw.capabilities.logprobs
        self.continues = False
        self.first_tokens: tuple[TokenLogprob, ...] = ()

    @property
    def least(self) -> int:
        """Tokens for the shortest answer: 1, or room to reason for a model that gives no first token without."""
        return 1 if self.raw.capabilities.logprobs else REASONING_ROOM

    @property
    def room(self) -> int:
        """Tokens for a short answer in words."""
        return REASONING_ROOM if self.reasons else ROOM

    @property
    def shares(self) -> bool:
        """Whether the back end computes a common prefix once by itself, for requests that come together."""
        return type(self.raw).complete_many is not ChatModel.complete_many

    def nonce(self) -> str:
        """A text that no cache has seen."""
        return uuid.uuid4().hex

    async def timed(self, request: ChatRequest) -> tuple[Completion, float]:
        """The answer and the seconds that it took."""
        began = self.clock.now()
        answer = await self.model.complete(request)
        return answer, self.clock.now() - began
