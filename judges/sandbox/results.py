"""What a sandboxed check came to: met, not met, or a typed failure; and the lines in which the sandbox says so."""

from __future__ import annotations

import enum
import re
import signal
from dataclasses import dataclass

__all__ = ["CheckFailure", "CheckResult"]


class CheckFailure(enum.StrEnum):
    """Why a sandboxed check gave no verdict.

    `timeout` (wall clock or CPU), `memory`, `crash` (a signal, or an end without an answer), `forbidden` (the check
    tried what it must not), `error` (it raised), `bad_result` (it returned anything but True or False, or said what
    the sandbox does not say), `flood` (more output than an answer has), `source` (it is not Python, or does not
    define the function), `start` (the interpreter did not come up), `unsupported` (no sandbox on this machine).
    """

    BAD_RESULT = "bad_result"
    CRASH = "crash"
    ERROR = "error"
    FLOOD = "flood"
    FORBIDDEN = "forbidden"
    MEMORY = "memory"
    SOURCE = "source"
    START = "start"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one text.

    Attributes:
        met: True or False as the check returned it, None when it gave no verdict.
        failure: why there is none, and only then.
        message: what happened, for people. It quotes nothing of the text.
        seconds: wall time of this text, the interpreter's start left out.
    """

    met: bool | None
    failure: CheckFailure | None = None
    message: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if (self.met is None) != (self.failure is not None):
            raise ValueError("a check is met, not met, or failed")


_ANSWERS = "met|unmet|forbidden|source|memory|error|bad_result"
_DETAIL = r"""[A-Za-z0-9 .,:;_'"+\-*/()\[\]<>=?]{0,160}"""
_MESSAGES = {
    CheckFailure.BAD_RESULT: "the check must return True or False, it returned {}",
    CheckFailure.ERROR: "the check raised {}",
    CheckFailure.FORBIDDEN: "the check tried what it must not: {}",
    CheckFailure.MEMORY: "the check ran out of memory {}",
    CheckFailure.SOURCE: "the source cannot be used: {}",
}


class Reader:
    """Reads the lines of one sandbox process. Each must be the line that is due, or none is believed.

    Args:
        nonce: what every line of the sandbox's own begins with; the check never gets to see it.
        count: texts that are checked, in order.
    """

    def __init__(self, nonce: str, count: int) -> None:
        self._begin = re.escape(nonce)
        self.count = count
        self.ready = self.ended = False
        self.unsupported = ""
        self.results: list[CheckResult] = []

    def take(self, line: str, seconds: float) -> bool:
        """Take one line. False for one that is not due."""
        if not self.ready:
            found = re.fullmatch(rf"{self._begin} (ready|unsupported) ({_DETAIL})", line)
            if found is None:
                return False
            self.ready, self.unsupported = found[1] == "ready", found[2]
            return self.ready
        if len(self.results) == self.count:
            fresh, self.ended = not self.ended, True
            return fresh and re.fullmatch(f"{self._begin} end ", line) is not None
        found = re.fullmatch(rf"{self._begin} {len(self.results)} ({_ANSWERS}) ({_DETAIL})", line)
        if found is None:
            return False
        self.results.append(_result(found[1], found[2], seconds))
        return True


def _result(answer: str, detail: str, seconds: float) -> CheckResult:
    if answer in {"met", "unmet"}:
        return CheckResult(answer == "met", seconds=seconds)
    kind = CheckFailure(answer)
    return CheckResult(None, kind, _MESSAGES[kind].format(detail).strip(), seconds)


def death(code: int) -> tuple[CheckFailure, str]:
    """What an exit status means for a process that did not finish its answer."""
    if code >= 0:
        return CheckFailure.CRASH, f"the check ended the interpreter (status {code}) without an answer"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    if code == -signal.SIGSYS:
        return CheckFailure.FORBIDDEN, "the check made a system call that it must not, and was killed"
    if code == -signal.SIGXCPU:
        return CheckFailure.TIMEOUT, "the check used up its CPU time"
    if code == -signal.SIGKILL:
        return CheckFailure.MEMORY, "the system killed the check, probably for its memory"
    return CheckFailure.CRASH, f"the check crashed the interpreter ({name})"
