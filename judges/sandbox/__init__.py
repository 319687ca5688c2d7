"""A sandbox for code that a model wrote: run a check on a text and get a verdict or a typed failure."""

from rubricate.judges.sandbox.pool import (
    FUNCTION,
    MEMORY,
    SECONDS,
    limit_processes,
    run_check,
    run_checks,
    run_checks_async,
)
from rubricate.judges.sandbox.process import unsupported_reason
from rubricate.judges.sandbox.results import CheckFailure, CheckResult

__all__ = [
    "FUNCTION",
    "MEMORY",
    "SECONDS",
    "CheckFailure",
    "CheckResult",
    "limit_processes",
    "run_check",
    "run_checks",
    "run_checks_async",
    "unsupported_reason",
]
