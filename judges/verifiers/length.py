"""How long a response is: characters, words, sentences, paragraphs, lines, tokens."""

from __future__ import annotations

import unicodedata

from pydantic import Field, field_validator

from rubricate.judges.verifiers.bounds import Range
from rubricate.judges.verifiers.registry import Check, Input, verifier
from rubricate.judges.verifiers.text import (
    PUNKT_LANGUAGES,
    count_graphemes,
    count_tokens,
    paragraphs,
    sentences,
    words,
)

__all__ = ["CharactersArgs", "OccurrencesArgs", "SentencesArgs", "TokensArgs"]


@verifier("words", Range)
def count_words(given: Input, args: Range) -> Check:
    """The number of words; each Chinese or Japanese character is one.

    Words are runs of letters, digits, apostrophes and inner hyphens.
    """
    return args.check(len(words(given.response)), "words")


class SentencesArgs(Range):
    """A range, and the language whose abbreviations are known (ISO 639-1; any serves Chinese and Japanese)."""

    language: str = "en"

    @field_validator("language")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in PUNKT_LANGUAGES:
            raise ValueError(f"no sentence model for {value!r}; choose one of {', '.join(PUNKT_LANGUAGES)}")
        return value


@verifier("sentences", SentencesArgs)
def count_sentences(given: Input, args: SentencesArgs) -> Check:
    """The number of sentences by Punkt. Headings, tables and code are none; a list item is at least one."""
    return args.check(len(sentences(given.response, args.language)), "sentences")


@verifier("paragraphs", Range)
def count_paragraphs(given: Input, args: Range) -> Check:
    """The number of paragraphs: blocks of text between blank lines."""
    return args.check(len(paragraphs(given.response)), "paragraphs")


@verifier("lines", Range)
def count_lines(given: Input, args: Range) -> Check:
    """The number of lines that are not blank."""
    return args.check(sum(1 for line in given.response.splitlines() if line.strip()), "lines")


class CharactersArgs(Range):
    """A range, and whether white space counts."""

    spaces: bool = True


@verifier("characters", CharactersArgs)
def count_characters(given: Input, args: CharactersArgs) -> Check:
    """The number of characters as a reader sees them, without white space at both ends; an emoji is one."""
    text = given.response.strip()
    return args.check(count_graphemes(text if args.spaces else "".join(text.split())), "characters")


class TokensArgs(Range):
    """A range, and the tokenizer: `simple` (no download), `hf:NAME`, or one given to `register_tokenizer`."""

    tokenizer: str = "simple"


@verifier("tokens", TokensArgs)
def count_token_range(given: Input, args: TokensArgs) -> Check:
    """The number of tokens by the chosen tokenizer."""
    return args.check(count_tokens(given.response, args.tokenizer), "tokens")


class OccurrencesArgs(Range):
    """A range, the text to count, and whether upper and lower case differ (they do unless told)."""

    text: str = Field(min_length=1)
    case_sensitive: bool = True


@verifier("occurrences", OccurrencesArgs)
def count_occurrences(given: Input, args: OccurrencesArgs) -> Check:
    """How often a character or other text occurs, taken literally, after normalisation to NFC, without overlap."""
    text, wanted = (unicodedata.normalize("NFC", part) for part in (given.response, args.text))
    if not args.case_sensitive:
        text, wanted = text.casefold(), wanted.casefold()
    return args.check(text.count(wanted), f"x {args.text!r}")
