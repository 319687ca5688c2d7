"""Scripted chat models for tests and examples: constant answers, scripts, functions, and failures on demand."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion, Finish, TokenLogprob
from rubricate.chat.mock_replies import level_shares, structured_reply
from rubricate.chat.timing import remaining
from rubricate.errors import ChatError, ConfigError, DeadlineError, ServerError
from rubricate.types import Usage, fingerprint

__all__ = ["Answer", "FailEvery", "FailRate", "MockModel", "Scripted"]


@dataclass(frozen=True, slots=True)
class Scripted:
    """One line of a script.

    Attributes:
        text: the answer; where empty and `top` is given, the likeliest token of `top`.
        match: the line answers only requests whose last message contains this text. "" takes part in the order.
        times: a line with `match` answers so many requests; None any number.
        top: probability of each alternative of the first token.
        finish, reasoning, refusal: as in Completion.
        error: raised in place of an answer.
        hang: no answer comes before the deadline.
    """

    text: str = ""
    match: str = ""
    times: int | None = None
    top: Mapping[str, float] = field(default_factory=dict[str, float])
    finish: Finish = Finish.STOP
    reasoning: str = ""
    refusal: str = ""
    error: ChatError | None = None
    hang: bool = False

    def identity(self) -> dict[str, object]:
        """JSON-ready content, for fingerprints."""
        error = None if self.error is None else f"{type(self.error).__name__}: {self.error}"
        return {
            "answer": [self.text, self.match, self.times, dict(self.top), self.finish.value],
            "more": [self.reasoning, self.refusal, error, self.hang],
        }


Answer = str | Completion | ChatError | Scripted


@dataclass(frozen=True, slots=True)
class FailEvery:
    """Every n-th call fails: number n - 1, 2n - 1, … counted from 0."""

    n: int
    error: ChatError = field(default_factory=lambda: ServerError("scripted failure", status=500))

    def __call__(self, index: int) -> ChatError | None:
        return self.error if index % self.n == self.n - 1 else None


@dataclass(frozen=True, slots=True)
class FailRate:
    """Each call fails with this probability, drawn from the seed and the call's number alone."""

    rate: float
    seed: int = 0
    error: ChatError = field(default_factory=lambda: ServerError("scripted failure", status=500))

    def __call__(self, index: int) -> ChatError | None:
        return self.error if random.Random(f"{self.seed}:{index}").random() < self.rate else None


class MockModel(ChatModel):
    """A chat model that answers from a script. It pickles when its script does.

    Args:
        script: one answer for every request; or a function of the request; or a list of answers, used up in order,
            where lines with `match` go first. Answers are texts, Completions, errors to raise, or Scripted lines.
        p_yes: P("yes") of the first token, a number or a function of the request; the answer is then "yes" or "no"
            with log-probabilities to match, and `script` is not asked.
        replies: with `p_yes`, answer requests for a JSON reply, or for a level, in the form that they ask for; see
            `structured_reply` and `level_shares` in `rubricate.chat.mock_replies`.
        fail: gets the call's number, from 0, and gives the error to raise or None. See FailEvery and FailRate.
        latency: seconds before each answer.
        repeat: start a list again when it is used up.
        warm_tokens: as in Capabilities.

    Attributes:
        requests: every request, in the order in which they came.
        max_in_flight: most calls open at once.

    Raises ConfigError from `complete` when the script is used up.
    """

    def __init__(
        self,
        script: Answer | Callable[[ChatRequest], Answer] | Sequence[Answer] = "yes",
        *,
        p_yes: float | Callable[[ChatRequest], float] | None = None,
        replies: bool = False,
        fail: Callable[[int], ChatError | None] | None = None,
        latency: float = 0.0,
        repeat: bool = False,
        warm_tokens: int | None = None,
        name: str = "mock",
    ) -> None:
        self.name = name
        self.script = script
        self.p_yes = p_yes
        self.replies = replies
        self.fail = fail
        self.latency = latency
        self.repeat = repeat
        self.warm_tokens = warm_tokens
        self.requests: list[ChatRequest] = []
        self.max_in_flight = 0
        self._in_flight = 0
        self._used: dict[int, int] = {}
        self._next = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_lock": None, "_in_flight": 0}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MockModel({self.name!r})"

    @property
    def fingerprint(self) -> str:
        script = self.script
        if isinstance(script, str | Completion | ChatError | Scripted) or callable(script):
            lines = [_identity(script)]
        else:
            lines = [_identity(line) for line in script]
        p_yes = _identity(self.p_yes) if callable(self.p_yes) else self.p_yes
        more = {"replies": True} if self.replies else {}
        return fingerprint({"back end": "mock", "script": lines, "p_yes": p_yes, **more})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(logprobs=True, json_schema=True, prefill=True, warm_tokens=self.warm_tokens)

    async def complete(self, request: ChatRequest) -> Completion:
        with self._lock:
            index = len(self.requests)
            self.requests.append(request)
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            error = self.fail(index) if self.fail is not None else None
            answer = error or self._choose(request)
            if self.latency > 0:
                await asyncio.sleep(self.latency)
            return await self._play(answer, request)
        finally:
            with self._lock:
                self._in_flight -= 1

    def _choose(self, request: ChatRequest) -> Answer:
        if self.p_yes is not None:
            p = self.p_yes(request) if callable(self.p_yes) else self.p_yes
            said = structured_reply(request, p) if self.replies else ""
            shares = level_shares(request, p) if self.replies else {}
            return said or Scripted(top=shares or {"yes": p, "no": 1.0 - p})
        script = self.script
        if isinstance(script, str | Completion | ChatError | Scripted):
            return script
        if callable(script):
            return script(request)
        with self._lock:
            return self._next_line(script, request)

    def _next_line(self, script: Sequence[Answer], request: ChatRequest) -> Answer:
        text = request.messages[-1].content if request.messages else ""
        for at, line in enumerate(script):
            if isinstance(line, Scripted) and line.match and line.match in text:
                used = self._used.get(at, 0)
                if line.times is None or used < line.times:
                    self._used[at] = used + 1
                    return line
        ordered = [line for line in script if not (isinstance(line, Scripted) and line.match)]
        if not ordered or (self._next >= len(ordered) and not self.repeat):
            raise ConfigError(
                f"the script of {self.name!r} has no answer for call {len(self.requests)}: …{text[-80:]!r}",
                hint="add lines, add a line whose `match` occurs in the request, or set repeat=True",
            )
        self._next += 1
        return ordered[(self._next - 1) % len(ordered)]

    async def _play(self, answer: Answer, request: ChatRequest) -> Completion:
        if isinstance(answer, ChatError):
            raise answer
        if isinstance(answer, Completion):
            return answer
        line = Scripted(answer) if isinstance(answer, str) else answer
        if line.hang:
            await _hang(self.name)
        if line.error is not None:
            raise line.error
        text = line.text or (max(line.top, key=lambda token: line.top[token]) if line.top else "")
        logprobs = _logprobs(text, line.top, request.top_logprobs) if request.top_logprobs is not None else None
        usage = Usage(
            calls=1,
            prompt_tokens=math.ceil(sum(len(message.content) for message in request.messages) / 4),
            completion_tokens=math.ceil((len(text) + len(line.reasoning)) / 4),
        )
        done = Completion(text, line.finish, usage, logprobs, line.reasoning, line.refusal)
        return replace(done, text="") if line.refusal else done


async def _hang(provider: str) -> None:
    left = remaining()
    if left is None:
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(left or 0.0)
    raise DeadlineError("the deadline passed before the scripted model answered", provider=provider)


def _identity(line: object) -> object:
    if isinstance(line, Scripted):
        return line.identity()
    if callable(line):
        kind = type(line)
        named = line if hasattr(line, "__qualname__") else kind
        return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"
    return line if isinstance(line, str) else f"{type(line).__name__}: {line}"


def _logprobs(text: str, top: Mapping[str, float], wanted: int) -> tuple[TokenLogprob, ...]:
    """One token a word. The first word's alternatives come from `top`; every other word is certain."""
    tokens = list[TokenLogprob]()
    for index, word in enumerate(text.split(" ")):
        word = word if index == 0 else f" {word}"
        table = dict(top) if index == 0 and top else {word: 1.0}
        ranked = sorted(table.items(), key=lambda item: -item[1])[:wanted]
        shares = tuple((token, _log(share)) for token, share in ranked)
        tokens.append(TokenLogprob(word, _log(table.get(word, 0.0)), shares))
    return tuple(tokens)


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -9999.0
