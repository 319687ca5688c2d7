"""Text without invisible characters, foreign digits and full-width forms, for whoever reads models' replies."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean"]

_INVISIBLE = [0xAD, 0x34F, 0x61C, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F)]
_SELECTORS = [*range(0x2060, 0x2070), *range(0xFE00, 0xFE10)]
_SPACES = [0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000, 0x9]
_BREAKS = [0xB, 0xC, 0xD, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029]
_TABLE: dict[int, str | None] = (
    dict.fromkeys(_INVISIBLE + _SELECTORS)
    | dict.fromkeys(_SPACES, " ")
    | dict.fromkeys(_BREAKS, "\n")
    | {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | {0x2018: "'", 0x2019: "'", 0x2BC: "'", 0x2212: "-", 0xFE63: "-", 0x2044: "/", 0x2215: "/", 0xFE55: ":"}
)
_CONTROL = re.compile(r"[\t\r\x0b\x0c\x1c-\x1e]")
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")


def clean(text: str) -> str:
    """The text without invisible characters, with plain blanks, line breaks, digits and ASCII punctuation.

    Letters stay as they are (in composed form). Digits of every script become 0-9, full-width forms become ASCII.
    """
    text = text.replace("\r\n", "\n")
    if text.isascii():
        return text.translate(_TABLE) if _CONTROL.search(text) else text
    text = unicodedata.normalize("NFC", text).translate(_TABLE)
    return _FOREIGN_DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)
