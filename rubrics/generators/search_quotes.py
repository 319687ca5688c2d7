"""Whether a quotation stands in a text, letter by letter: how evidence that a model names is checked."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Span", "find_quote"]

_ALIKE = ("'‘’ʼ`´", '"“”„«»', "-‐‑‒–—−")
_EDGES = " \t\n\r\"'“”‘’«»`….,;:"


@dataclass(frozen=True, slots=True)
class Span:
    """Where a quotation stands in a text: from `start` up to `end`, and the text's own letters there."""

    start: int
    end: int
    text: str


def find_quote(quote: str, text: str, *, least_words: int = 1) -> Span | None:
    """The first place where a quotation stands in a text; None where it does not.

    The same letters in the same order: only blanks, line breaks, the shapes of quotation marks and dashes, and the
    marks around the quotation may differ. A quotation of fewer than `least_words` words counts only if the text has
    no more.
    """
    words = quote.strip(_EDGES).split()
    if not words or len(words) < min(least_words, len(text.split())):
        return None
    found = re.search(r"\s+".join(_pattern(word) for word in words), text)
    return None if found is None else Span(found.start(), found.end(), found.group(0))


def _pattern(word: str) -> str:
    return "".join(_letter(letter) for letter in word)


def _letter(letter: str) -> str:
    for alike in _ALIKE:
        if letter in alike:
            return f"[{re.escape(alike)}]"
    return re.escape(letter)
