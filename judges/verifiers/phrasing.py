"""Building blocks for checks that look for wordings: alternatives written as lists, compiled once."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from rubricate.judges.verifiers.text import fold

__all__ = ["LANGUAGES", "Language", "Phrase", "any_of", "compile_any", "literal"]

Language = Literal["en", "de", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "ja")
"""Languages whose wordings are known."""

Phrase = Annotated[str, Field(min_length=1)]


def any_of(alternatives: str) -> str:
    """A group of the alternatives in a list parted by semicolons; each is a regular expression."""
    return "(?:" + "|".join(part.strip() for part in alternatives.split(";")) + ")"


def literal(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Phrases of the user's as patterns over folded text."""
    return tuple(re.escape(fold(phrase)) for phrase in phrases)


@lru_cache(maxsize=128)
def compile_any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that matches what any of them matches; without patterns, nothing."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in (*patterns, r"(?!)")))
