"""Texts as data hygiene sees them: words of any script, their n-grams, and hashes that are equal everywhere."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
import regex
from numpy.typing import NDArray

__all__ = ["Hashes", "Hasher", "canonical", "ngrams", "numbers_of", "quoted", "tokens_of", "words_of"]

Hashes = NDArray[np.uint64]

# Scripts that are written without blanks between words: each character counts as a word.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[{_UNSPACED}]\p{{M}}*|(?:[\p{{L}}\p{{N}}](?<![{_UNSPACED}])\p{{M}}*)+"
_WORDS = regex.compile(_WORD)
_TOKENS = regex.compile(rf"{_WORD}|[\p{{S}}*/%&#@\-\u2212\u00b7]")
_NUMBER = regex.compile(r"(?<![\p{L}\p{N}.,])[-\u2212]?\p{Nd}+(?:[.,]\p{Nd}+)*(?![\p{L}\p{N}])")

_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_VOCABULARY = 1 << 20  # hashes of words that are remembered


def canonical(text: str) -> str:
    """The text in Unicode's NFC with every run of white space as one blank: what equal texts have in common."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def words_of(text: str) -> list[str]:
    """Words in lower case after NFKC, without punctuation; a Chinese, Japanese, Thai ... character is a word."""
    return _WORDS.findall(_folded(text))


def tokens_of(text: str) -> list[str]:
    """As `words_of`, with symbols that tell formulas and code apart (`+`, `-`, `=`, `*`, `<`, ...)."""
    return _TOKENS.findall(_folded(text))


def numbers_of(text: str) -> list[str]:
    """Numbers in the order of the text, written alike: `1,000`, `1000` and `1000.0` are `1000`.

    Digits that are part of a word (`h2o`) are none. A comma or point before exactly three digits separates
    thousands where there are several, or where it is a comma; otherwise it is decimal.
    """
    return [_plain(found) for found in _NUMBER.findall(unicodedata.normalize("NFKC", text))]


def _plain(number: str) -> str:
    sign = "-" if number[0] in "-\u2212" else ""
    body = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in number.lstrip("-\u2212"))
    parts = regex.split("[.,]", body)
    marks = [c for c in body if c in ".,"]
    fraction = parts.pop() if len(set(marks)) == 2 or marks == ["."] or (marks and len(parts[-1]) != 3) else ""
    if any(len(part) != 3 for part in parts[1:]):
        return body  # a date, a version: no number to be written otherwise
    whole = "".join(parts)
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return value if value == "0" else sign + value


def ngrams(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    """All runs of `size` words, in order; none where there are fewer words."""
    return (tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def quoted(words: Sequence[str], source: Sequence[str], without: Sequence[Sequence[str]], size: int) -> list[str]:
    """The longest run of words made of n-grams of `size` words that stand in `source` and in none of `without`.

    [] where no such n-gram is there; the first of equally long runs.
    """
    known = set(ngrams(source, size)).difference(*(ngrams(text, size) for text in without))
    longest: list[str] = []
    start: int | None = None
    for at in range(len(words) - size + 2):
        if at <= len(words) - size and tuple(words[at : at + size]) in known:
            start = at if start is None else start
        elif start is not None:
            run = list(words[start : at - 1 + size])
            longest = run if len(run) > len(longest) else longest
            start = None
    return longest


class Hasher:
    """64-bit hashes of words (BLAKE2, remembered) and of n-grams (polynomial in the words' hashes, mixed).

    Equal n-grams have equal hashes in every process; unequal ones collide with a chance of about 2^-64 a pair.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def words(self, words: Sequence[str]) -> Hashes:
        """One hash a word, uint64 of shape (n,)."""
        known = self._known
        if len(known) > _VOCABULARY:
            known.clear()
        found = [known[word] if word in known else self._add(word) for word in words]
        return np.array(found, dtype=np.uint64)

    def _add(self, word: str) -> int:
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._known[word] = value = int.from_bytes(digest, "little")
        return value

    def ngrams(self, words: Hashes, size: int) -> Hashes:
        """One hash a run of `size` words, uint64; that of the whole text where it is shorter."""
        if not len(words):
            return words
        size = min(size, len(words))
        count = len(words) - size + 1
        total = np.full(count, size, dtype=np.uint64)
        for at in range(size):
            total = total * _BASE + words[at : at + count]
        return mixed(total)


def mixed(values: Hashes) -> Hashes:
    """Every bit of each value spread over all others (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return values ^ (values >> np.uint64(31))
