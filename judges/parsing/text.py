"""Preparation of text for reading: invisible characters, full-width forms, Markdown, quotations, sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from rubricate.chat.cleaning import clean

__all__ = [
    "Sentence",
    "clean",
    "compact",
    "drop_quoted_blocks",
    "fold",
    "mask_quotes",
    "mend_surrogates",
    "plain",
    "sentences",
]

MASK = "\ufffc"
"""Stands where a quotation or a JSON object was taken out."""

_BLANKS = re.compile(r" {2,}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def compact(text: str) -> str:
    """Runs of blanks made one, so that no later pattern meets a long run."""
    return _BLANKS.sub(" ", text)


def mend_surrogates(text: str) -> str:
    """Lone surrogates replaced (U+FFFD), so that the text can be written as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


_EDGES = (
    " \t\n.,;:!?*`'\"()[]{}<>~#"
    "|-_\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300d\u300e\u300f\u3010\u3011\u3002\u3001\u2013\u2014\u2192"
)
_JOINTS = re.compile(r"[\s_\-]+")


def fold(text: str) -> str:
    """The text in a form for comparing words: case, edge punctuation, `_`, `-` and blanks do not count."""
    return _fold_word(text) if len(text) <= 40 else _fold(text)


@lru_cache(maxsize=8192)
def _fold_word(text: str) -> str:
    return _fold(text)


def _fold(text: str) -> str:
    if text.isascii():
        text = text.lower().strip(_EDGES)
    else:
        text = unicodedata.normalize("NFKC", clean(text)).casefold().strip(_EDGES)
    return _JOINTS.sub(" ", text)


_TEX = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|emph)\{([^{}\n]{0,200})\}")
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_STARS = re.compile(r"(?<!\d)\*+|\*+(?!\d)")
_UNDERSCORES = re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=[^\s_])_{1,3}(?!\w)")
_TAGS = re.compile(r"</?(?:b|i|u|p|em|strong|span|div|font|center|mark|code|h[1-6]|br) ?/?>", re.I)
_HEADING = re.compile(r"^ ?#{1,6} ?", re.M)


def plain(text: str) -> str:
    """Cleaned text without Markdown emphasis, headings' signs and formatting tags. Struck-out text is dropped."""
    text = compact(clean(text))
    text = _TEX.sub(r"\1", text)
    text = _STRUCK.sub("", text)
    text = _TAGS.sub(
        lambda match: "\n" if match.group().lower().startswith(("<br", "<p", "</p", "</h")) else "", text
    )
    text = _HEADING.sub("", text)
    return _UNDERSCORES.sub("", _STARS.sub("", text))


# Possessive and without a second opening sign, so that unmatched quotes are passed in one go.
_PARAGRAPH = r"(?:[^{end}\n]|\n(?! ?\n)){{1,2000}}+"


def _pair(opening: str, closing: str) -> str:
    return opening + "(" + _PARAGRAPH.format(end=opening + closing) + ")[" + closing + "]"


_QUOTED = re.compile(
    "|".join(
        [
            _pair('"', '"'),
            _pair("\u201c", "\u201d"),
            _pair("\u201e", '\u201c\u201d"'),
            _pair("\u00ab", "\u00bb"),
            _pair("\u300c", "\u300d"),
            _pair("\u300e", "\u300f"),
            r"`([^`\n]{1,2000})`",
            r"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){3,400}+)'(?!\w)",
        ]
    )
)


def mask_quotes(text: str, keep: Callable[[str], bool]) -> str:
    """Quoted passages replaced by a sign, except those that `keep` (a bare verdict in quotes, say)."""

    def mask(match: re.Match[str]) -> str:
        inner = next(group for group in match.groups() if group is not None)
        return match.group() if keep(inner) else f'"{MASK}"'

    return _QUOTED.sub(mask, text)


_FENCE = re.compile(r"^ ?(?:```|~~~)")


def drop_quoted_blocks(text: str, introduces_quote: Callable[[str], bool]) -> str:
    """The text without block quotes (`>`) and without the block that follows a line which introduces a quotation.

    A fenced block is dropped to its closing fence, another one to the next blank line. Fence lines go in any case.
    """
    kept: list[str] = []
    fenced = dropping = pending = False
    for line in text.split("\n"):
        bare = line.strip()
        if _FENCE.match(line):
            dropping, fenced = (pending or dropping) and not fenced, not fenced
            pending = False
            continue
        if not bare:
            dropping = dropping and fenced
            kept.append("")
            continue
        if dropping or (pending and not fenced) or bare.startswith(">"):
            dropping, pending = dropping or pending, False
            continue
        kept.append(line)
        pending = bare.endswith(":") and introduces_quote(bare)
    return "\n".join(kept)


class Sentence(NamedTuple):
    """A sentence (or a line that ends without a stop) and where it starts in the text."""

    text: str
    start: int


_LONGEST_SENTENCE = 2000
_STOP = re.compile(r"[.!?]+[\"')\]\u201d]*(?=\s|$)|[\u3002]+[\u300d\u300f]?|\n")


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of plain text, in order. Line breaks end a sentence too. Endless ones are left out."""
    start = 0
    for match in _STOP.finditer(text):
        yield from _sentence(text, start, match.end())
        start = match.end()
    yield from _sentence(text, start, len(text))


def _sentence(text: str, start: int, end: int) -> Iterator[Sentence]:
    piece = text[start:end]
    bare = piece.strip()
    if bare and len(bare) <= _LONGEST_SENTENCE:
        yield Sentence(bare, start + piece.index(bare[0]))
