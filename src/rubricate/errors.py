"""Every error that rubricate raises on purpose.

RubricateError                    base: `hint` (what to do), `retryable`
├── ConfigError                   a setting, model name or option is wrong            (ValueError)
├── MissingExtraError             an optional package is not installed                (ImportError)
├── FormatError                   a file or record does not fit its format            (ValueError)
├── ParseError                    a judge's reply cannot be read; `kind` says why     (ValueError)
├── VerifierError                 a verifier cannot run with these arguments          (ValueError)
├── UnscoredError                 a reward is None and the caller's policy is `raise` (RuntimeError)
└── ChatError                     a model call failed; `provider`, `status`           (RuntimeError)
    ├── ServerError               unreachable, 5xx, broken reply                      (ConnectionError)
    ├── RateLimitError            429; `retry_after` in seconds where the server says
    ├── RequestError              4xx other than 429: key, model name, bad parameter
    ├── DeadlineError             the deadline passed                                 (TimeoutError)
    ├── BudgetError               the token or money budget is used up
    ├── CircuitOpenError          too many failures in a row, calls are refused for a while
    ├── ContextOverflowError      the prompt does not fit the model's context
    └── AnswerError               the server answered, but not with a usable text; `outcome` says which

All of them pickle, with their attributes: they cross process boundaries in trainers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "AnswerError",
    "BudgetError",
    "ChatError",
    "CircuitOpenError",
    "ConfigError",
    "ContextOverflowError",
    "DeadlineError",
    "FormatError",
    "MissingExtraError",
    "ParseError",
    "RateLimitError",
    "RequestError",
    "RubricateError",
    "ServerError",
    "UnscoredError",
    "VerifierError",
]


def _rebuild(cls: type[RubricateError], state: Mapping[str, Any]) -> RubricateError:
    # Of two built-in bases the one with more fields, OSError, must make the object.
    error = OSError.__new__(cls) if issubclass(cls, OSError) else cls.__new__(cls)
    error.__dict__.update(state)
    error.args = (state.get("message", ""),)
    return error


class RubricateError(Exception):
    """Base of all errors of this package.

    Args:
        message: what went wrong, in one sentence.
        hint: what the user can do about it.
        retryable: whether the same call may succeed later. None takes the class's default.
    """

    default_retryable = False

    def __init__(self, message: str, *, hint: str = "", retryable: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.retryable = self.default_retryable if retryable is None else retryable

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


class ConfigError(RubricateError, ValueError):
    """A setting, a model name or an option is wrong."""


class MissingExtraError(RubricateError, ImportError):
    """An optional package is not installed. The hint is the command that installs it."""

    def __init__(self, package: str, *, extra: str = "", command: str = "") -> None:
        command = command or f"pip install 'rubricate[{extra}]'"
        super().__init__(f"the package {package!r} is needed for this and is not installed", hint=command)
        self.package = package
        self.extra = extra


class FormatError(RubricateError, ValueError):
    """A file or record does not fit its format.

    Args:
        source: file name, or what stands for it.
        line: line in that file, from 1.
        field: dotted path of the field, such as `rubric[3].weight`.
    """

    def __init__(
        self, message: str, *, source: str = "", line: int | None = None, field: str = "", hint: str = ""
    ) -> None:
        place = ":".join(part for part in (source, str(line) if line is not None else "") if part)
        where = ", ".join(part for part in (place, f"field {field!r}" if field else "") if part)
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.detail = message
        self.source = source
        self.line = line
        self.field = field


class ParseError(RubricateError, ValueError):
    """A judge's reply cannot be read.

    Args:
        kind: `unparsable`, `ambiguous`, `out_of_range`, `empty`, `refusal` or `incomplete`.
        reply: the reply, for the record; not shown in the message.
    """

    default_retryable = True

    def __init__(self, message: str, *, kind: str = "unparsable", reply: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.reply = reply


class VerifierError(RubricateError, ValueError):
    """A verifier does not exist, or cannot run with the arguments given."""


class UnscoredError(RubricateError, RuntimeError):
    """A reward is None and the caller's policy is `raise`."""


class ChatError(RubricateError, RuntimeError):
    """A call of a chat model failed.

    Args:
        provider: name of the model or server.
        status: HTTP status, where there was one.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        hint: str = "",
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.provider = provider
        self.status = status


class ServerError(ChatError, ConnectionError):
    """The server cannot be reached, answered 5xx, or its reply was broken."""

    default_retryable = True


class RateLimitError(ChatError):
    """The server answered 429.

    Args:
        retry_after: seconds to wait, where the server said so.
    """

    default_retryable = True

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = 429,
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, provider=provider, status=status, hint=hint)
        self.retry_after = retry_after


class RequestError(ChatError):
    """The server refused the request (4xx other than 429): wrong key, unknown model, bad parameter."""


class DeadlineError(ChatError, TimeoutError):
    """The deadline passed before an answer came."""


class BudgetError(ChatError):
    """The token or money budget is used up; no further call is made."""


class CircuitOpenError(ChatError):
    """Too many calls failed in a row; calls are refused until the pause is over."""

    default_retryable = True


class ContextOverflowError(ChatError):
    """The prompt, or prompt and answer, do not fit the model's context."""


class AnswerError(ChatError):
    """The server answered, but with no usable text.

    Args:
        outcome: `refusal`, `content_filter`, `empty` or `length`.
    """

    def __init__(
        self, message: str, *, outcome: str, provider: str = "", hint: str = "", retryable: bool | None = None
    ) -> None:
        super().__init__(message, provider=provider, hint=hint, retryable=retryable)
        self.outcome = outcome
