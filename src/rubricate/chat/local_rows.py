"""One answer in progress: which token comes next, what was said of it, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rubricate.chat.base import ChatRequest, Completion, Finish, TokenLogprob
from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import floats, ints
from rubricate.errors import ChatError, RequestError
from rubricate.types import Usage

__all__ = ["Row", "check_request", "take"]


def check_request(request: ChatRequest, name: str) -> None:
    """Raises RequestError for parameters that cannot be."""
    wrong = [
        text
        for bad, text in (
            (not request.messages, "there is no message"),
            (request.max_tokens < 1, f"max_tokens {request.max_tokens} is less than 1"),
            (not 0.0 <= request.temperature < math.inf, f"temperature {request.temperature} is below 0"),
            (not 0.0 < request.top_p <= 1.0, f"top_p {request.top_p} is outside (0, 1]"),
            ((request.top_logprobs or 0) < 0, f"top_logprobs {request.top_logprobs} is below 0"),
            ("" in request.stop, "a stop text is empty"),
            (not all(map(_is_text, request.stop)), "a stop text is no text"),
            (not _is_seed(request.seed), f"seed {request.seed!r} is no whole number from -2**63 to 2**64 - 1"),
        )
        if bad
    ]
    if wrong:
        raise RequestError(f"bad request: {'; '.join(wrong)}", provider=name)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_seed(value: object) -> bool:
    return value is None or (isinstance(value, int) and -(2**63) <= value < 2**64)


class Row:
    """The answer to one request.

    Args:
        request: what is asked.
        codec: of the model.
        wanted: whether anybody still waits for the answer.
    """

    def __init__(self, request: ChatRequest, codec: Codec, wanted: Callable[[], bool]) -> None:
        self.request = request
        self.prompt: list[int] = []
        self.cached = 0
        self.finish: Finish | None = None
        self.error: ChatError | None = None
        self._codec = codec
        self._wanted = wanted
        self._tokens: list[int] = []
        self._logprobs: list[TokenLogprob] = []
        self._text: str | None = None
        self._generator: torch.Generator | None = None

    @property
    def done(self) -> bool:
        """Nothing more to generate: finished, failed, or no longer wanted."""
        return self.finish is not None or self.error is not None or not self._wanted()

    @property
    def last(self) -> int:
        """The token generated last; 0 for a row that was given up before its first."""
        return self._tokens[-1] if self._tokens else 0

    def choose(self, logprobs: Tensor) -> int:
        """The next token: the most likely one, or one drawn with the request's own generator.

        Args:
            logprobs: fp32 [vocabulary], on the CPU.
        """
        if self.request.temperature <= 0.0:
            return int(logprobs.argmax())
        # the likeliest at 0, which stays 0 however small the temperature is; others go to -inf
        weights = torch.softmax((logprobs - logprobs.max()).double() / self.request.temperature, dim=-1)
        order = None
        if self.request.top_p < 1.0:
            weights, order = weights.sort(descending=True, stable=True)
            # nucleus: the fewest most likely tokens whose mass reaches top_p
            before = weights.cumsum(dim=-1) - weights
            weights = torch.where(before < self.request.top_p, weights, 0.0)
        mass = weights.cumsum(dim=-1)
        # one uniform number a token, so that what else is in the batch cannot shift the sequence
        point = torch.rand((), generator=self._random(), dtype=torch.float64) * mass[-1]
        place = int(torch.searchsorted(mass, point, right=True).clamp(max=len(mass) - 1))
        return place if order is None else int(order[place])

    def _random(self) -> torch.Generator:
        if self._generator is None:
            self._generator = torch.Generator()
            if self.request.seed is None:
                self._generator.seed()
            else:
                self._generator.manual_seed(self.request.seed)
        return self._generator

    def append(self, token: int, logprob: float, top: Sequence[tuple[int, float]]) -> None:
        """Add a generated token with its log-probability and alternatives, and see whether it ends the answer."""
        self._tokens.append(token)
        if self.request.top_logprobs is not None:
            pieces = [(self._codec.piece(other), value) for other, value in top]
            if self.request.top_logprobs and all(other != token for other, _ in top):
                pieces.append((self._codec.piece(token), logprob))
            self._logprobs.append(TokenLogprob(self._codec.piece(token), logprob, tuple(pieces)))
        if token in self._codec.stops:
            self.finish = Finish.STOP
            self._text = self._codec.text(self._tokens[:-1])
            return
        if self.request.stop:
            text = self._codec.text(self._tokens)
            found = [place for place in map(text.find, self.request.stop) if place >= 0]
            if found:
                self.finish = Finish.STOP
                self._text = text[: min(found)]
                return
        if len(self._tokens) >= self.request.max_tokens:
            self.finish = Finish.LENGTH

    def fail(self) -> None:
        """The model's output is not a number: there is no answer."""
        self.error = ChatError(
            "the model's output is not a number", provider=self._codec.name, hint="try dtype='float32'"
        )

    def result(self) -> Completion | ChatError:
        """The answer, or why there is none."""
        if self.error is not None:
            return self.error
        if self.finish is None:
            return ChatError("the call was cancelled", provider=self._codec.name)
        usage = Usage(
            calls=1,
            prompt_tokens=len(self.prompt),
            completion_tokens=len(self._tokens),
            cached_tokens=self.cached,
        )
        text = self._text if self._text is not None else self._codec.text(self._tokens)
        logprobs = tuple(self._logprobs) if self.request.top_logprobs is not None else None
        return Completion(text, self.finish, usage, logprobs)


def take(rows: Sequence[Row], logprobs: Tensor) -> list[int]:
    """Give each row its next token. Returns the places of the rows that go on.

    Args:
        logprobs: fp32 [rows, vocabulary], natural, of the model itself (before temperature and top_p).
    """
    table = logprobs.cpu()
    widest = min(max((row.request.top_logprobs or 0 for row in rows), default=0), table.shape[1])
    best = table.topk(widest, dim=-1) if widest else None
    going: list[int] = []
    for place, row in enumerate(rows):
        if row.done:
            continue
        line = table[place]
        if not bool(torch.isfinite(line.max())):
            row.fail()
            continue
        token = row.choose(line)
        count = min(row.request.top_logprobs or 0, widest)
        top: list[tuple[int, float]] = []
        if best is not None and count:
            top = list(zip(ints(best.indices[place, :count]), floats(best.values[place, :count]), strict=True))
        row.append(token, float(line[token]), top)
        if not row.done:
            going.append(place)
    return going
