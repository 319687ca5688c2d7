"""The verifier `generated`: code that a model wrote for one criterion, run in the sandbox (RLCF, 2507.18624)."""

from __future__ import annotations

import os

from pydantic import Field, model_validator

from rubricate.errors import VerifierError
from rubricate.judges.sandbox import (
    FUNCTION,
    MEMORY,
    SECONDS,
    CheckFailure,
    CheckResult,
    run_checks,
    run_checks_async,
)
from rubricate.judges.verifiers.registry import Check, Input, VerifierArgs, verifier
from rubricate.types import fingerprint

__all__ = ["UNSAFE_VARIABLE", "GeneratedArgs", "source_fingerprint"]

UNSAFE_VARIABLE = "RUBRICATE_UNSAFE_WITHOUT_SECCOMP"
"""Environment variable: set to 1, generated checks run on machines without a system call filter, unsafely.

It is no argument of the verifier, since rubrics come from files, and a file must not switch protection off.
"""


def source_fingerprint(source: str, function: str = FUNCTION) -> str:
    """Fingerprint of a generated check: 16 hex digits over its source and the function's name."""
    return fingerprint({"source": source, "function": function})


class GeneratedArgs(VerifierArgs):
    """Arguments of `generated`.

    Attributes:
        source: Python source, run in the sandbox only.
        function: the function of one text in it that returns True (met) or False.
        fingerprint: `source_fingerprint` of what was tried on examples; another source is refused. May be empty.
        seconds: wall time for one response.
        memory: address space in bytes.
    """

    source: str = Field(min_length=1, max_length=100_000)
    function: str = Field(default=FUNCTION, pattern="^[A-Za-z][A-Za-z0-9_]{0,99}$")
    fingerprint: str = ""
    seconds: float = Field(default=SECONDS, gt=0.0, le=60.0)
    memory: int = Field(default=MEMORY, ge=64 * 2**20, le=2**30)

    @model_validator(mode="after")
    def _unchanged(self) -> GeneratedArgs:
        if self.fingerprint and self.fingerprint != source_fingerprint(self.source, self.function):
            raise ValueError("the source is not the one that was tried: its fingerprint differs")
        return self


async def _run_async(given: Input, args: GeneratedArgs) -> Check:
    results = await run_checks_async(
        args.source,
        [given.response],
        function=args.function,
        seconds=args.seconds,
        memory=args.memory,
        unsafe_without_seccomp=_unsafe(),
    )
    return _check(results[0])


@verifier("generated", GeneratedArgs, run_async=_run_async)
def generated(given: Input, args: GeneratedArgs) -> Check:
    """Code that a model wrote for this criterion, run in the sandbox."""
    results = run_checks(
        args.source,
        [given.response],
        function=args.function,
        seconds=args.seconds,
        memory=args.memory,
        unsafe_without_seccomp=_unsafe(),
    )
    return _check(results[0])


def _unsafe() -> bool:
    return os.environ.get(UNSAFE_VARIABLE) == "1"


def _check(result: CheckResult) -> Check:
    """Raises VerifierError for a check that failed: that is no verdict, and never "not met"."""
    if result.met is None:
        hint = f"set {UNSAFE_VARIABLE}=1 if you trust it" if result.failure is CheckFailure.UNSUPPORTED else ""
        raise VerifierError(result.message, hint=hint)
    return Check(result.met, "by generated code")
