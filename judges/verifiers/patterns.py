"""Regular expressions that rubrics bring along, run with a bound on their size and their time."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol, cast

from rubricate.errors import VerifierError

__all__ = ["TIME_LIMIT", "BoundedPattern", "Found", "bounded", "compile_unicode"]

TIME_LIMIT = 2.0
"""Seconds that one search with a rubric's pattern may take."""

_MAX_LENGTH = 5_000
_MAX_DEPTH = 50
_MAX_EXPANSION = 20_000


class Found(Protocol):
    """A match, as both engines give it."""

    def group(self, group: int = 0, /) -> str | None: ...

    def start(self) -> int: ...

    def end(self) -> int: ...


class _TimedPattern(Protocol):
    def search(self, string: str, *, timeout: float | None = None) -> Found | None: ...

    def fullmatch(self, string: str, *, timeout: float | None = None) -> Found | None: ...

    def finditer(self, string: str, *, timeout: float | None = None) -> Iterator[Found]: ...


class _Engine(Protocol):
    error: type[Exception]

    def compile(self, pattern: str, flags: int = 0) -> _TimedPattern: ...


def _engine() -> _Engine:
    return cast("_Engine", importlib.import_module("regex"))


@lru_cache(maxsize=64)
def compile_unicode(pattern: str) -> _TimedPattern:
    """Compile a pattern of ours that needs Unicode properties, which the standard library lacks."""
    return _engine().compile(pattern)


class BoundedPattern:
    r"""A pattern whose searches end within `TIME_LIMIT` seconds.

    Nested quantifiers can make any backtracking engine run for years on a text of fifty characters, and whoever
    writes the response can look for that text. So the searches run on the `regex` engine, which checks the clock,
    and one that runs out of time raises VerifierError: the criterion is then undecided. The syntax is that of the
    standard library's `re`.
    """

    def __init__(self, source: str, compiled: _TimedPattern) -> None:
        self.source = source
        self._compiled = compiled

    def search(self, text: str) -> Found | None:
        """The first match, or None. Raises VerifierError when time runs out."""
        try:
            return self._compiled.search(text, timeout=TIME_LIMIT)
        except TimeoutError:
            raise self._slow() from None

    def fullmatch(self, text: str) -> Found | None:
        """A match of the whole text, or None. Raises VerifierError when time runs out."""
        try:
            return self._compiled.fullmatch(text, timeout=TIME_LIMIT)
        except TimeoutError:
            raise self._slow() from None

    def finditer(self, text: str) -> Iterator[Found]:
        """Matches that do not overlap, in order. Raises VerifierError when time runs out."""
        try:
            yield from self._compiled.finditer(text, timeout=TIME_LIMIT)
        except TimeoutError:
            raise self._slow() from None

    def count(self, text: str) -> int:
        """How many matches there are."""
        return sum(1 for _ in self.finditer(text))

    def _slow(self) -> VerifierError:
        return VerifierError(
            f"the pattern {self.source[:80]!r} took more than {TIME_LIMIT:g} seconds on this response",
            hint="write it without nested or adjacent repetitions of the same characters",
        )


@lru_cache(maxsize=512)
def bounded(pattern: str, *, ignore_case: bool = False, multiline: bool = False) -> BoundedPattern:
    """Compile a pattern that a rubric brought.

    Raises ValueError, with the reason, for a pattern that does not compile, is longer than 5,000 characters,
    nests deeper than 50 groups, or whose counted repetitions multiply to more than 20,000: the engine
    unrolls those when it compiles, where no clock helps.
    """
    if len(pattern) > _MAX_LENGTH:
        raise ValueError(f"the pattern has {len(pattern)} characters; at most {_MAX_LENGTH} are allowed")
    _check_size(pattern)
    engine = _engine()
    flags = (re.IGNORECASE if ignore_case else 0) | (re.MULTILINE if multiline else 0)
    try:
        return BoundedPattern(pattern, engine.compile(pattern, int(flags)))
    except (engine.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern {pattern[:80]!r} is not a regular expression: {error}") from None


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\s*(\d*)\s*(?:,\s*\d*\s*)?\}|.", re.DOTALL)


def _check_size(pattern: str) -> None:
    """Refuse patterns that explode when their counted repetitions are unrolled (an estimate from above)."""
    open_groups: list[int] = []
    total, last = 0, 0
    for piece in _PIECE.finditer(pattern):
        text = piece.group()
        if text == "(":
            open_groups.append(total)
            total, last = 0, 0
            if len(open_groups) > _MAX_DEPTH:
                raise ValueError(f"the pattern nests more than {_MAX_DEPTH} groups")
        elif text == ")" and open_groups:
            last = total
            total += open_groups.pop()
        elif piece.group(1) is not None:
            times = _times(piece.group(1))
            total += last * (times - 1)
            last *= times
        else:
            last = 1
            total += 1
        if total > _MAX_EXPANSION:
            raise ValueError(f"the pattern's counted repetitions multiply to more than {_MAX_EXPANSION}")


def _times(low: str) -> int:
    # Only the copies that must be there are unrolled; the optional ones up to the upper count are not.
    return max(1, int(low) if low and len(low) < 7 else 10**7 if low else 1)
