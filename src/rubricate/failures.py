"""Errors as typed failures: what went wrong in a call, as data."""

from __future__ import annotations

from rubricate.errors import (
    AnswerError,
    BudgetError,
    ChatError,
    CircuitOpenError,
    ConfigError,
    ContextOverflowError,
    DeadlineError,
    ParseError,
    RateLimitError,
    RequestError,
    RubricateError,
    VerifierError,
)
from rubricate.types import RESPONSE_KINDS, Failure, FailureCause, FailureKind

__all__ = ["ASK_AGAIN", "failure", "failure_of"]

ASK_AGAIN = frozenset(
    {
        FailureKind.UNPARSABLE,
        FailureKind.AMBIGUOUS,
        FailureKind.OUT_OF_RANGE,
        FailureKind.INCOMPLETE,
        FailureKind.EMPTY,
        FailureKind.LENGTH,
    }
)
"""Failures of a reply that may be better the next time. The limiter has retried the rest."""

_KINDS: tuple[tuple[type[RubricateError], FailureKind], ...] = (
    (DeadlineError, FailureKind.DEADLINE),
    (RateLimitError, FailureKind.RATE_LIMIT),
    (BudgetError, FailureKind.BUDGET),
    (CircuitOpenError, FailureKind.CIRCUIT_OPEN),
    (ContextOverflowError, FailureKind.OVERFLOW),
    (RequestError, FailureKind.REQUEST),
    (VerifierError, FailureKind.VERIFIER),
    (ConfigError, FailureKind.REQUEST),
    (ChatError, FailureKind.SERVER),
)


def failure_of(error: Exception) -> Failure:
    """An error as a typed failure. Whose doing it is follows from its kind; the reward may revise that when it
    sees that no sibling could be judged either."""
    if isinstance(error, AnswerError):
        kind = FailureKind(error.outcome)
    elif isinstance(error, ParseError):
        kind = FailureKind(error.kind)
    else:
        kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), FailureKind.INTERNAL)
    retryable = error.retryable if isinstance(error, RubricateError) else False
    return failure(kind, str(error) or type(error).__name__, retryable=retryable)


def failure(kind: FailureKind, message: str, *, retryable: bool = False) -> Failure:
    """A failure with the cause that goes with its kind."""
    cause = FailureCause.RESPONSE if kind in RESPONSE_KINDS else FailureCause.INFRASTRUCTURE
    return Failure(kind, cause, message, retryable)
