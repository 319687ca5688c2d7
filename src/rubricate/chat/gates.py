"""The gates that a call passes before it is sent: rates, circuit breaker, budget. The limiter locks them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rubricate.chat.base import ChatRequest
from rubricate.chat.limits import Limits
from rubricate.errors import BudgetError, ChatError, CircuitOpenError, DeadlineError, RateLimitError, ServerError
from rubricate.types import Usage

__all__ = ["Breaker", "Bucket", "Budget", "Gates", "Need"]


@dataclass(slots=True)
class Need:
    """What one try needs, estimated: characters / 4 for the prompt, max_tokens for the answer.

    `probe` is set on the try that finds out whether an open circuit can be closed.
    """

    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    probe: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def of(cls, limits: Limits, requests: list[ChatRequest]) -> Need:
        """The need of one try that carries these requests."""
        characters = sum(len(message.content) for request in requests for message in request.messages)
        prompt, answer = math.ceil(characters / 4), sum(request.max_tokens for request in requests)
        cost = limits.cost(Usage(prompt_tokens=prompt, completion_tokens=answer))
        return cls(len(requests), prompt, answer, cost)


class Bucket:
    """A token bucket. What is larger than the bucket passes when it is full, and leaves a debt."""

    def __init__(self, per_minute: float, burst: float, now: float) -> None:
        self._rate = per_minute / 60
        self._capacity = max(self._rate * burst, 1.0)
        self._level = self._capacity
        self._at = now

    def delay(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be taken."""
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        lacking = min(amount, self._capacity) - self._level
        return lacking / self._rate if lacking > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Take `amount`; a negative one is given back."""
        self._level = min(self._capacity, self._level - amount)


class Breaker:
    """Counts failures in a row. Opens at a limit, lets one probe through after each pause, closes on an answer."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures = 0
        self._open_since: float | None = None
        self._probe_at = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        return self._open_since is not None

    def delay(self, now: float) -> float:
        """Seconds to wait, 0 to go ahead. Raises CircuitOpenError when waiting is over."""
        if self._open_since is None:
            return 0.0
        if not self._probing and now >= self._probe_at:
            return 0.0
        patience = self._open_since + self._limits.breaker_patience - now
        if patience <= 0:
            raise CircuitOpenError(
                f"{self._failures} calls in a row failed, {now - self._open_since:.0f} s ago; calls are refused "
                f"but for one every {self._limits.breaker_pause:g} s",
                hint="check that the server is up, then run again",
            )
        return patience if self._probing else self._probe_at - now

    def take(self) -> bool:
        """Go ahead. Whether this is the probe of an open circuit."""
        self._probing = self._open_since is not None
        return self._probing

    def success(self) -> None:
        """The server answered."""
        self._failures, self._open_since, self._probing = 0, None, False

    def failure(self, now: float, probe: bool) -> None:
        """The server failed."""
        self._failures += 1
        limit = self._limits.breaker_failures
        if probe:
            self._probing = False
            self._probe_at = now + self._limits.breaker_pause
        elif self._open_since is None and limit is not None and self._failures >= limit:
            self._open_since = now
            self._probe_at = now + self._limits.breaker_pause

    def unknown(self, probe: bool) -> None:
        """The call ended before the server showed whether it is up."""
        if probe:
            self._probing = False


class Budget:
    """Tokens and money: what is spent, and what the calls under way may still spend."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.spent_tokens = 0
        self.spent_cost = 0.0
        self._reserved_tokens = 0
        self._reserved_cost = 0.0

    def delay(self, need: Need) -> float:
        """0 to go ahead; infinity while calls under way decide. Raises BudgetError when it would exceed."""
        limits = self._limits
        wait = 0.0
        if limits.max_tokens_total is not None:
            free = limits.max_tokens_total - self.spent_tokens
            if need.tokens > free:
                raise BudgetError(
                    f"the token budget is used up: {self.spent_tokens} of {limits.max_tokens_total} spent, and the "
                    f"next call may need {need.tokens}",
                    hint="raise Limits.max_tokens_total, or lower max_tokens",
                )
            wait = math.inf if need.tokens > free - self._reserved_tokens else wait
        if limits.max_cost is not None:
            left = limits.max_cost - self.spent_cost
            if need.cost > left:
                raise BudgetError(
                    f"the money budget is used up: {self.spent_cost:.4f} of {limits.max_cost:.4f} spent, and the "
                    f"next call may cost {need.cost:.4f}",
                    hint="raise Limits.max_cost, or lower max_tokens",
                )
            wait = math.inf if need.cost > left - self._reserved_cost else wait
        return wait

    def reserve(self, need: Need, sign: int = 1) -> None:
        self._reserved_tokens += sign * need.tokens
        # Sums of floats drift; without calls under way nothing is reserved.
        self._reserved_cost = self._reserved_cost + sign * need.cost if self._reserved_tokens else 0.0

    def spend(self, usage: Usage) -> None:
        self.spent_tokens += usage.prompt_tokens + usage.completion_tokens
        self.spent_cost += usage.cost


class Gates:
    """All gates of one limiter together."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._requests = (
            Bucket(limits.requests_per_minute, limits.burst, now) if limits.requests_per_minute else None
        )
        self._tokens = Bucket(limits.tokens_per_minute, limits.burst, now) if limits.tokens_per_minute else None
        self.limits = limits
        self.breaker = Breaker(limits)
        self.budget = Budget(limits)
        self.in_flight = 0

    @property
    def full(self) -> bool:
        """Whether all permits are out."""
        return self.limits.concurrency is not None and self.in_flight >= self.limits.concurrency

    def delay(self, need: Need, now: float) -> float:
        """Seconds until this try may be sent: 0 now, infinity when a call under way must end first.

        Raises BudgetError and CircuitOpenError.
        """
        wait = max(self.budget.delay(need), self.breaker.delay(now))
        if self.full:
            return math.inf
        if self._requests is not None:
            wait = max(wait, self._requests.delay(need.requests, now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.delay(need.tokens, now))
        return wait

    def take(self, need: Need) -> None:
        """Send: `delay` has just said 0."""
        self.in_flight += 1
        need.probe = self.breaker.take()
        self.budget.reserve(need)
        if self._requests is not None:
            self._requests.take(need.requests)
        if self._tokens is not None:
            self._tokens.take(need.tokens)

    def settle(self, need: Need, now: float, charged: Usage, error: BaseException | None) -> None:
        """A try has ended: with an answer (no error), with a ChatError, or cut off by any other error."""
        self.in_flight -= 1
        self.budget.reserve(need, -1)
        self.budget.spend(charged)
        if self._tokens is not None:
            self._tokens.take(charged.prompt_tokens + charged.completion_tokens - need.tokens)
        if error is None or shows_life(error):
            self.breaker.success()
        elif isinstance(error, ServerError) and error.retryable:
            self.breaker.failure(now, need.probe)
        else:
            self.breaker.unknown(need.probe)


def shows_life(error: BaseException) -> bool:
    """Whether the error proves that the server is up: it judged the request, and refused it for its own sake."""
    return isinstance(error, ChatError) and not isinstance(error, ServerError | DeadlineError | RateLimitError)
