"""What code can say of a response's form: counts and marks of a text, each computed once."""

from __future__ import annotations

import re
from functools import cached_property

from rubricate.judges.verifiers import Input, run_verifier
from rubricate.judges.verifiers.markdown import headings, items, tables
from rubricate.judges.verifiers.text import PUNKT_LANGUAGES, paragraphs, sentences, words

__all__ = ["Measured"]

_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\u2b50\u2b06]")
_QUOTES = re.compile('["“”„«»「」]')
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")
_PLACEHOLDER = re.compile(r"\[[^\]\n]{3,40}\]")
_POSTSCRIPT = re.compile(r"^(?:P\.\s?S\.|PS:)", re.IGNORECASE | re.MULTILINE)


class Measured:
    """A text and its properties."""

    def __init__(self, text: str, language: str = "en") -> None:
        self.text = text
        self.language = language

    @cached_property
    def words(self) -> list[str]:
        """As the verifier `words` counts them."""
        return words(self.text)

    @cached_property
    def lowered(self) -> list[str]:
        """The words in small letters."""
        return [word.casefold() for word in self.words]

    @cached_property
    def sentences(self) -> int | None:
        """Number of sentences, None where there is no sentence model for the language."""
        return len(sentences(self.text, self.language)) if self.language in PUNKT_LANGUAGES else None

    @cached_property
    def paragraphs(self) -> int:
        """Number of blocks between blank lines."""
        return len(paragraphs(self.text))

    @cached_property
    def bullets(self) -> int:
        """Number of bulleted items."""
        return sum(1 for item in items(self.text) if item.number is None)

    @cached_property
    def numbered(self) -> int:
        """Number of numbered items."""
        return sum(1 for item in items(self.text) if item.number is not None)

    @cached_property
    def headings(self) -> bool:
        """Whether there is a Markdown heading."""
        return bool(headings(self.text))

    @cached_property
    def table(self) -> bool:
        """Whether there is a Markdown table."""
        return bool(tables(self.text))

    @cached_property
    def json(self) -> bool:
        """Whether the whole text is JSON."""
        return run_verifier("json", {}, Input(self.text)).met

    @cached_property
    def code(self) -> bool:
        """Whether there is a fenced block."""
        return "```" in self.text

    @cached_property
    def bold(self) -> bool:
        """Whether something is in bold."""
        return bool(_BOLD.search(self.text))

    @cached_property
    def emoji(self) -> bool:
        """Whether there is an emoji."""
        return bool(_EMOJI.search(self.text))

    @cached_property
    def quotes(self) -> bool:
        """Whether there are double quotation marks of any script."""
        return bool(_QUOTES.search(self.text))

    @cached_property
    def placeholder(self) -> bool:
        """Whether there is a bracketed expression that may be a gap."""
        return bool(_PLACEHOLDER.search(self.text))

    @cached_property
    def postscript(self) -> bool:
        """Whether a line begins with P.S."""
        return bool(_POSTSCRIPT.search(self.text))

    @cached_property
    def cased(self) -> bool:
        """Whether the language has capital and small letters."""
        return any(char.isupper() or char.islower() for char in self.text)
