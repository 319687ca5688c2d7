"""What calls of a model may use: how many at once, how fast, how often tried again, how much in all."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from rubricate.errors import ConfigError
from rubricate.types import Usage

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that all calls through one limiter share. None means no bound.

    Attributes:
        concurrency: calls at the server at once.
        requests_per_minute, tokens_per_minute: rates. Tokens are estimated before a call (characters / 4, plus
            max_tokens) and corrected by the usage that the server reports.
        burst: so many seconds' worth of a rate may be used at once after a quiet time.
        max_attempts: how often one call is tried in all, the first try included.
        backoff, max_backoff: seconds. Before try n + 1 a call waits a time drawn evenly from
            [0, min(max_backoff, backoff * 2^(n-1))], "full jitter" (M. Brooker, "Exponential Backoff And Jitter",
            AWS Architecture Blog, 2015), on top of the server's `Retry-After`.
        max_retry_after: a longer `Retry-After`, in seconds, is not waited for: the call fails.
        attempt_timeout: seconds for one try.
        deadline: seconds for one call in all: waiting, tries and pauses.
        breaker_failures: so many failures of the server in a row, over all calls, open the circuit.
        breaker_pause: seconds before an open circuit lets one call through to see whether the server is back.
        breaker_patience: calls wait for a circuit that has been open for less than this, in seconds; later ones
            are refused at once with CircuitOpenError.
        max_tokens_total: prompt and answer tokens over all calls.
        max_cost: money over all calls, in the currency of the prices.
        prompt_price, completion_price, cached_price: money for a million tokens. Cached prompt tokens cost
            prompt_price where cached_price is None.
        seed: of the jitter; None draws from the system.

    Raises ConfigError for values that make no sense.
    """

    concurrency: int | None = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    burst: float = 10.0
    max_attempts: int = 7
    backoff: float = 0.5
    max_backoff: float = 20.0
    max_retry_after: float = 120.0
    attempt_timeout: float | None = 300.0
    deadline: float | None = None
    breaker_failures: int | None = 20
    breaker_pause: float = 5.0
    breaker_patience: float = 30.0
    max_tokens_total: int | None = None
    max_cost: float | None = None
    prompt_price: float = 0.0
    completion_price: float = 0.0
    cached_price: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        positive = {
            "concurrency", "requests_per_minute", "tokens_per_minute", "burst", "max_attempts", "attempt_timeout",
            "breaker_failures",
        }  # fmt: skip
        for item in fields(self):
            value: float | None = getattr(self, item.name)
            if value is None or item.name == "seed":
                continue
            low_ok = value > 0 if item.name in positive else value >= 0
            if not low_ok or not math.isfinite(value):
                bound = "positive" if item.name in positive else "at least 0"
                raise ConfigError(f"limit {item.name!r} must be {bound} and finite, not {value!r}")
        if self.max_cost is not None and self.prompt_price == 0 and self.completion_price == 0:
            raise ConfigError(
                "limit 'max_cost' needs prices",
                hint="set prompt_price and completion_price (money a million tokens)",
            )

    def cost(self, usage: Usage) -> float:
        """What that usage costs by these prices."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cached_price = self.prompt_price if self.cached_price is None else self.cached_price
        money = (usage.prompt_tokens - cached) * self.prompt_price + cached * cached_price
        return (money + usage.completion_tokens * self.completion_price) / 1e6
