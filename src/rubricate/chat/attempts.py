"""What a failed call says of itself: its kind, how often it was tried, how long the server asked to wait."""

from __future__ import annotations

import copy

from rubricate.errors import (
    AnswerError,
    BudgetError,
    ChatError,
    CircuitOpenError,
    ContextOverflowError,
    DeadlineError,
    RateLimitError,
    RequestError,
    ServerError,
)
from rubricate.types import FailureKind

__all__ = ["attempts_of", "failed_after", "failure_kind", "retry_after_of"]


def failure_kind(error: ChatError) -> FailureKind:
    """The kind of failure that an error of a model call stands for."""
    if isinstance(error, AnswerError):
        return FailureKind(error.outcome)
    kinds: tuple[tuple[type[ChatError], FailureKind], ...] = (
        (ServerError, FailureKind.SERVER),
        (RateLimitError, FailureKind.RATE_LIMIT),
        (RequestError, FailureKind.REQUEST),
        (DeadlineError, FailureKind.DEADLINE),
        (BudgetError, FailureKind.BUDGET),
        (CircuitOpenError, FailureKind.CIRCUIT_OPEN),
        (ContextOverflowError, FailureKind.OVERFLOW),
    )
    return next((kind for cls, kind in kinds if isinstance(error, cls)), FailureKind.INTERNAL)


def attempts_of(error: ChatError) -> int:
    """How many requests were sent before the call failed with this error."""
    attempts = vars(error).get("attempts", 1)
    return attempts if isinstance(attempts, int) else 1


def failed_after(error: ChatError, attempts: int, last: ChatError | None = None) -> ChatError:
    """The error to raise after so many attempts. A copy: a scripted model may raise one object many times."""
    final = copy.copy(error)
    vars(final)["attempts"] = attempts
    notes = [f"after {attempts} attempts"] if attempts > 1 else []
    notes += [f"the last error was: {last.message}"] if last is not None else []
    if notes:
        final.message = f"{error.message} ({'; '.join(notes)})"
        final.args = (final.message,)
    final.__cause__ = error.__cause__
    return final


def retry_after_of(error: ChatError) -> float:
    """Seconds that the server asked to wait, 0.0 where it did not say."""
    told = vars(error).get("retry_after")
    return max(float(told), 0.0) if isinstance(told, int | float) else 0.0
