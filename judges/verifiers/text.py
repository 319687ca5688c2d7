"""Counting and comparing text in any script: words, sentences, paragraphs, tokens, folding for comparison."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, cast

from rubricate.errors import ConfigError, VerifierError
from rubricate.judges.verifiers.markdown import blocks
from rubricate.judges.verifiers.patterns import compile_unicode

__all__ = [
    "PUNKT_LANGUAGES",
    "count_graphemes",
    "count_tokens",
    "fold",
    "has_word",
    "paragraphs",
    "register_tokenizer",
    "sentences",
    "snippet",
    "words",
]

# Scripts written without spaces; ー lengthens a kana and belongs to both of theirs.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_LETTER = rf"[[\p{{L}}\p{{N}}]--[{_UNSPACED}]]"
_REST = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]*"
_WORD = rf"(?V1)[{_UNSPACED}]\p{{M}}*|['’]?{_LETTER}{_REST}(?:['’\-‐‑]{_LETTER}{_REST})*['’]?"


def words(text: str) -> list[str]:
    """The words of a text: runs of letters, digits, apostrophes and inner hyphens, in any script.

    `don't`, `well-known` and `हिन्दी` are one word each; `3.5` and `snake_case` are two. Chinese and Japanese
    have no spaces, so each of their characters counts as one word, as word processors do; a run of Thai, Lao, Khmer
    or Burmese counts as one word.
    """
    return [match.group() or "" for match in compile_unicode(_WORD).finditer(text)]


def has_word(text: str) -> bool:
    """Whether there is a letter or digit in the text."""
    return any(char.isalnum() for char in text)


def count_graphemes(text: str) -> int:
    """Characters as a reader sees them: `é` and a family emoji are one each, however they are encoded."""
    if text.isascii():
        return len(text) - text.count("\r\n")
    return sum(1 for _ in compile_unicode(r"\X").finditer(text))


def paragraphs(text: str) -> list[str]:
    """Blocks of text between blank lines, without those that are blank."""
    found: list[str] = []
    current: list[str] = []
    for line in [*_newlines(text).split("\n"), ""]:
        if line.strip():
            current.append(line)
        elif current:
            found.append("\n".join(current))
            current = []
    return found


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


# Sentences.

PUNKT_LANGUAGES = {
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "ml": "malayalam",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sl": "slovene",
    "sv": "swedish",
    "tr": "turkish",
}
"""ISO 639-1 codes that `sentences` has a Punkt model for, and the model's name."""


class _Splitter(Protocol):
    def tokenize(self, text: str) -> Sequence[str]: ...


class _Punkt(Protocol):
    def load_model(self, language: str) -> object: ...

    def PunktSentenceTokenizer(self, params: object) -> _Splitter: ...


@lru_cache(maxsize=8)
def _splitter(language: str) -> _Splitter:
    punkt = cast("_Punkt", importlib.import_module("punkt"))
    return punkt.PunktSentenceTokenizer(punkt.load_model(PUNKT_LANGUAGES[language]))


def sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text in Markdown.

    Punkt (Kiss and Strunk 2006) with the language's bundled model tells full stops from abbreviations; the
    stops of other scripts (。！？ ।) always end a sentence, except inside 「」 and 『』. A blank line, a
    list item and a heading end one too. Headings, tables, fenced code and pieces without a letter or digit are
    not sentences.

    Raises VerifierError for a language without a Punkt model; any model serves Chinese and Japanese.
    """
    if language not in PUNKT_LANGUAGES:
        raise VerifierError(
            f"there is no sentence model for the language {language!r}",
            hint=f"choose one of {', '.join(PUNKT_LANGUAGES)}; Chinese and Japanese work with each of them",
        )
    splitter = _splitter(language)
    pieces = (piece for block in blocks(text) for piece in _hard_stops(block))
    return [found for piece in pieces for found in splitter.tokenize(_SPACED.sub(r"\1.", piece)) if has_word(found)]


# The models know `z.B.` and `e.g.`, not `z. B.` and `e. g.`, which German prescribes.
_SPACED = re.compile(r"\b([^\W\d_])\.[ \u00a0\u202f](?=[^\W\d_]\.)")


_STOP = re.compile("[。！？｡।॥؟۔։።]+[」』）】〉》”’\"')\\]]*")
_QUOTED = re.compile("「[^「」]*」|『[^『』]*』")


def _hard_stops(block: str) -> list[str]:
    """Cut a block after the stops that need no model."""
    quoted = [match.span() for match in _QUOTED.finditer(block)]
    pieces: list[str] = []
    start = position = 0
    for match in _STOP.finditer(block):
        while position < len(quoted) and quoted[position][1] <= match.start():
            position += 1
        inside = position < len(quoted) and quoted[position][0] < match.start()
        # 「はい。」と言った。 goes on after its quotation, unless the line ends or a new quotation follows.
        if inside and block[match.end() : match.end() + 1] not in ("", "\n", "「", "『"):
            continue
        pieces.append(block[start : match.end()])
        start = match.end()
    pieces.append(block[start:])
    return pieces


# Comparing.

_QUOTES = str.maketrans({"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'})


def fold(text: str, *, case: bool = False) -> str:
    """A text as it is compared: NFC, typographic quotes made straight, runs of white space made one blank.

    Unless `case` is true, also case-folded (`ß` equals `ss`).
    """
    text = unicodedata.normalize("NFC", text).translate(_QUOTES)
    if not case:
        # Case folding can leave a decomposed text behind, such as İ, so compose once more.
        text = unicodedata.normalize("NFC", text.casefold())
    return " ".join(text.split())


def snippet(text: str, limit: int = 60) -> str:
    """The beginning of a text in quotation marks, on one line, safe to print and to encode."""
    start = " ".join(text[: limit * 4].split())
    cut = start[:limit] + ("…" if len(start) > limit or len(text) > limit * 4 else "")
    clean = "".join(char if char.isprintable() else "\ufffd" for char in cut)
    return f"'{clean}'"


# Tokens.

_TOKENIZERS: dict[str, Callable[[str], int]] = {}


def register_tokenizer(name: str, count: Callable[[str], int]) -> None:
    """Make `count` (a text's number of tokens) known to the verifier `tokens` as `name`.

    Raises ConfigError for a blank name, `simple`, or one that begins with `hf:`, which are taken.
    """
    if not name.strip() or name == "simple" or name.startswith("hf:"):
        raise ConfigError(f"{name!r} cannot be the name of a tokenizer", hint="choose another one")
    _TOKENIZERS[name] = count


def count_tokens(text: str, tokenizer: str = "simple") -> int:
    """Tokens of a text.

    `simple` needs no download: words as in `words`, plus every other visible character (ours; an estimate, since
    real vocabularies cut rare words further). `hf:NAME` is a transformers tokenizer by name or directory, without
    special tokens. Any other name is one given to `register_tokenizer`.

    Raises VerifierError for an unknown tokenizer or one that cannot be loaded.
    """
    if tokenizer == "simple":
        return _count_simple(text)
    if tokenizer.startswith("hf:"):
        return _transformers_counter(tokenizer[3:])(text)
    counter = _TOKENIZERS.get(tokenizer)
    if counter is None:
        known = ", ".join(["simple", "hf:NAME", *sorted(_TOKENIZERS)])
        raise VerifierError(f"there is no tokenizer named {tokenizer!r}", hint=f"known are {known}")
    return counter(text)


def _count_simple(text: str) -> int:
    found = words(text)
    visible = sum(1 for char in text if not char.isspace())
    return len(found) + visible - sum(map(len, found))


class _Tokenizer(Protocol):
    def encode(self, text: str, *, add_special_tokens: bool) -> Sequence[int]: ...


class _AutoTokenizer(Protocol):
    def from_pretrained(self, name: str) -> _Tokenizer: ...


class _Transformers(Protocol):
    AutoTokenizer: _AutoTokenizer


@lru_cache(maxsize=8)
def _transformers_counter(name: str) -> Callable[[str], int]:
    try:
        module = importlib.import_module("transformers")
    except ImportError:
        raise VerifierError(
            f"the tokenizer 'hf:{name}' needs the package transformers", hint="pip install 'rubricate[local]'"
        ) from None
    try:
        tokenizer = cast("_Transformers", module).AutoTokenizer.from_pretrained(name)
    except Exception as error:
        raise VerifierError(f"the tokenizer 'hf:{name}' cannot be loaded: {error}") from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))
