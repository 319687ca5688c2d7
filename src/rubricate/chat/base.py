"""The one interface of all model back ends: messages in, text, log-probabilities, finish reason and usage out."""

from __future__ import annotations

import abc
import asyncio
import enum
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os.path import commonprefix

from rubricate.chat.timing import remaining
from rubricate.errors import AnswerError, ChatError
from rubricate.types import Usage

__all__ = [
    "Capabilities",
    "ChatModel",
    "ChatRequest",
    "Completion",
    "Finish",
    "Message",
    "Outcome",
    "TokenLogprob",
]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a chat model. Everything that can change the answer is here.

    Attributes:
        messages: the conversation; the last one is usually the user's.
        max_tokens: at most so many tokens are generated.
        temperature, top_p, seed, stop: sampling parameters; temperature 0 is greedy.
        top_logprobs: ask for this many alternatives at each generated token (0: only the chosen one), None for
            no log-probabilities at all.
        json_schema: ask for an answer that fits this JSON schema, where the back end can; otherwise ignored.
        prefill: text the assistant's turn starts with; the completion continues it. Only where
            `Capabilities.prefill` says so.
        sample: index of a repeated sample of the same request; part of cache keys, not sent.
        extra: further body fields for the server, as they are.
        prompt_logprobs: ask for this many alternatives at each token of the prompt, None for nothing of it. vLLM's
            servers can; back ends that cannot answer without.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int | None = None
    json_schema: Mapping[str, object] | None = None
    prefill: str = ""
    sample: int = 0
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    prompt_logprobs: int | None = None

    def text(self) -> str:
        """All message texts in order, for estimates of length and shared prefixes."""
        return "\n".join(message.content for message in self.messages)


class Finish(enum.StrEnum):
    """Why generation ended, in the servers' common words."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    OTHER = "other"


class Outcome(enum.StrEnum):
    """What an answer is, as a judge must treat it."""

    OK = "ok"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    EMPTY = "empty"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token, its natural log-probability, and the most likely alternatives (itself included)."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to one request.

    Attributes:
        text: the visible answer, reasoning left out where the server separates it.
        finish: why generation ended.
        usage: tokens and calls of this answer, retries included.
        logprobs: one entry a generated token, None where the server gave none.
        reasoning: the reasoning text, where the server separates it.
        refusal: the server's own refusal text, where it has such a field.
        prompt_logprobs: one entry a token of the prompt, None where they were not asked for or the server gave
            none. The first is empty: nothing comes before it.
    """

    text: str
    finish: Finish = Finish.STOP
    usage: Usage = Usage(calls=1)
    logprobs: tuple[TokenLogprob, ...] | None = None
    reasoning: str = ""
    refusal: str = ""
    prompt_logprobs: tuple[TokenLogprob, ...] | None = None

    @property
    def outcome(self) -> Outcome:
        """Refusals, filtered, empty and cut answers are outcomes of their own, never texts to be read."""
        if self.refusal:
            return Outcome.REFUSAL
        if self.finish is Finish.CONTENT_FILTER:
            return Outcome.CONTENT_FILTER
        if self.finish is Finish.LENGTH:
            return Outcome.LENGTH
        return Outcome.OK if self.text.strip() else Outcome.EMPTY

    def require_text(self, provider: str = "") -> str:
        """The text of a usable answer. Raises AnswerError with the outcome for every other answer."""
        outcome = self.outcome
        if outcome is Outcome.OK:
            return self.text
        messages = {
            Outcome.REFUSAL: (f"the model refused: {self.refusal[:200]}", "", False),
            Outcome.CONTENT_FILTER: ("the server's content filter withheld the answer", "", False),
            Outcome.EMPTY: ("the answer is empty", "raise max_tokens if the model reasons first", True),
            Outcome.LENGTH: (
                "the answer was cut at max_tokens" + ("" if self.text.strip() else " before any visible text"),
                "raise max_tokens",
                False,
            ),
        }
        message, hint, retryable = messages[outcome]
        raise AnswerError(message, outcome=outcome.value, provider=provider, hint=hint, retryable=retryable)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a back end can do.

    Attributes:
        logprobs: it returns token log-probabilities.
        json_schema: it constrains decoding to a schema.
        prefill: it continues an assistant turn that has begun.
        context: context length in tokens, None where unknown.
        warm_tokens: shared prefix (in tokens) from which one call should go ahead and warm the server's cache
            before its siblings follow; None where that gains nothing: there is no prefix cache, or it is shared
            among calls that arrive together.
    """

    logprobs: bool = False
    json_schema: bool = False
    prefill: bool = False
    context: int | None = None
    warm_tokens: int | None = None


class ChatModel(abc.ABC):
    """A chat model behind any back end.

    Attributes:
        name: the string that names it, such as `openai:gpt-5-mini` or `local:smollm2`.
    """

    name: str

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Changes with everything about the model that can change an answer: address, model, adapter, dtype."""

    @property
    @abc.abstractmethod
    def capabilities(self) -> Capabilities:
        """What this back end can do."""

    @abc.abstractmethod
    async def complete(self, request: ChatRequest) -> Completion:
        """Answer one request. Raises ChatError (and its subclasses) when there is no answer."""

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """Answer requests that share a prefix, each answer or its error in the order of the requests.

        Where the back end has a prefix cache and the shared text is long enough to be cached, the first request
        goes ahead and the others follow when it is answered, or when half the time to the deadline is over: one
        call that hangs must not take its siblings with it. Of several calls of this method at once whose requests
        begin alike (responses to one long prompt), the first one's first request goes ahead of all. Back ends that
        can compute the prefix once override this.
        """
        if len(requests) > 2 and self._worth_warming(requests):
            key = self._beginning(requests[0])
            first = asyncio.ensure_future(self._after(_leaders().get(key), requests[0]))
            _lead(key, first)
            try:
                left = remaining()
                await asyncio.wait({first}, timeout=None if left is None else left / 2)
                if first.done():
                    first.result()  # a bug is raised before anything else is sent
                return list(await asyncio.gather(first, *(self._settled(request) for request in requests[1:])))
            finally:
                first.cancel()  # where this call is cancelled; an answered one does not mind
        return list(await asyncio.gather(*(self._settled(request) for request in requests)))

    async def aclose(self) -> None:
        """Release connections and memory. The model may be used again afterwards."""
        return None

    async def _settled(self, request: ChatRequest) -> Completion | ChatError:
        try:
            return await self.complete(request)
        except ChatError as error:
            return error

    async def _after(
        self, ahead: asyncio.Future[Completion | ChatError] | None, request: ChatRequest
    ) -> Completion | ChatError:
        """Send a request when another is answered, or when half the time to the deadline is over."""
        if ahead is not None and not ahead.done():
            left = remaining()
            await asyncio.wait({ahead}, timeout=None if left is None else left / 2)
        return await self._settled(request)

    def _worth_warming(self, requests: Sequence[ChatRequest]) -> bool:
        threshold = self.capabilities.warm_tokens
        if threshold is None:
            return False
        shared = commonprefix([request.text() for request in requests])
        return len(shared) / 4 >= threshold  # about four characters a token

    def _beginning(self, request: ChatRequest) -> tuple[int, str]:
        """What requests on the same long prompt have in common. The system's message, which those on all prompts
        share, does not count."""
        return id(self), request.messages[-1].content[: 4 * (self.capabilities.warm_tokens or 0)]


_Leaders = dict[tuple[int, str], asyncio.Future[Completion | ChatError] | None]
_LEADERS = 256
_of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Leaders] = weakref.WeakKeyDictionary()


def _leaders() -> _Leaders:
    """Requests that went ahead in this event loop, by what they begin with; None for those that are answered."""
    return _of_loops.setdefault(asyncio.get_running_loop(), {})


def _lead(key: tuple[int, str], first: asyncio.Future[Completion | ChatError]) -> None:
    """Let later requests that begin alike wait for this one, unless another went ahead before it."""
    leaders = _leaders()
    if key in leaders:
        return
    leaders[key] = first
    # a future that stayed would keep its loop alive
    first.add_done_callback(lambda _: leaders.update({key: None}) if key in leaders else None)
    if len(leaders) > _LEADERS:
        del leaders[next(iter(leaders))]
