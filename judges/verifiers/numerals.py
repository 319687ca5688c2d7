"""Reading numbers out of text: separators, signs, fractions, powers of ten, percentages, full-width digits."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = ["Decimal", "Number", "find_numbers"]

Decimal = Literal["auto", ".", ","]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Attributes:
        value: exact; None for one of more than 400 digits, which equals nothing.
        percent: whether a percent sign or word follows it. `value` is without it: 25% has 25.
    """

    value: Fraction | None
    percent: bool = False


_DIGITS_LIMIT = 400

_PLAIN = {
    **{code: "-" for code in (0x2212, 0xFE63, 0xFF0D)},
    **{code: " " for code in (0x00A0, 0x202F, 0x2009)},
    0xFF0B: "+",
    0xFF0C: ",",
    0xFF0E: ".",
    0xFF0F: "/",
    0x2044: "/",
    0x2215: "/",
    0xFF05: "%",
    0x2019: "'",
    **{0xFF10 + digit: str(digit) for digit in range(10)},
}
# NBSP and thin blanks group thousands; a plain blank between numbers is only a blank.
_GROUP_BLANK = "\ue000"
_SUPERSCRIPTS = {ord(sign): plain for sign, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True)}
_SUPER = re.compile("(?<=10)[⁻⁺]?[⁰¹²³⁴-⁹]+")
_VULGAR = re.compile("[¼-¾⅐-⅞↉]")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s?\{\s?(-?\d{1,30})\s?\}\s?\{\s?(\d{1,30})\s?\}")
_LATEX_GROUP = re.compile(r"(?<=\d)(?:\{,\}|\\[,!;])(?=\d{3})")

_NUMBER = re.compile(
    r"(?<![A-Za-z_\u00c0-\u024f\d])(?<!\d[.,])"
    r"(?:(?P<slashed>\d+(?:/\d+){2,})"
    r"|(?P<sign>(?<![\w)\]%°'])[-+])?(?:[$€£¥₹]\s?)?"
    rf"(?P<body>\d+(?:[.,'{_GROUP_BLANK}]\d+)*|\.\d+)"
    r"(?:[eE](?P<exp>[+-]?\d{1,9})(?!\w)"
    r"|\s?(?:[x×·*]|\\times|\\cdot)\s?10\s?\^\s?\{?\s?(?P<power>[+-]?\d{1,9})\s?\}?"
    r"|(?<=10)(?<![\d.,]10)\s?\^\s?\{?\s?(?P<ten>[+-]?\d{1,9})\s?\}?)?"
    r"(?:\s?/\s?(?P<below>\d++)(?![/.,]\d)|\s(?P<num>\d{1,9})/(?P<den>\d{1,9}+)(?![\d/]))?"
    r"(?P<percent>\s?\\?%|\s(?:percent|per cent|Prozent)\b|\s?パーセント)?)"
)


def find_numbers(text: str, decimal: Decimal = "auto") -> list[Number]:
    """The numbers of a text, in order.

    Read are 1,234.5 · 1'234 · 1 234 (with a no-break or thin blank) · 1.234,5 · .5 · −3 (any minus) · 1.2e5 ·
    1.2 × 10^5 · 10⁵ · 3/4 · 1 1/2 · ½ · full-width digits · LaTeX's \\frac{3}{4} and 1{,}234. A hyphen after a
    word, digit or bracket is no sign: `5-3` is 5 and 3. 1/2/2024 is three numbers. Digits that continue a Latin
    word (`CO2`) are no number.

    Args:
        decimal: the decimal mark. With `auto`, the last of two different marks is decimal, a mark that occurs
            twice groups thousands, a single point is decimal, and a single comma groups when exactly three digits
            follow one to three. What cannot be one number (`1,2,3`, a date) is several.
    """
    found: list[Number] = []
    for match in _NUMBER.finditer(_prepare(text)):
        plain = None if match["slashed"] else _interpret(match["body"], decimal)
        if plain is None:
            several = re.split(rf"[/.,'{_GROUP_BLANK}]", match["slashed"] or match["body"])
            found += [Number(_exact(digits)) for digits in several if digits]
        else:
            found.append(Number(_assemble(plain, match), match["percent"] is not None))
    return found


def _prepare(text: str) -> str:
    text = re.sub("(?<=\\d)[\u00a0\u202f\u2009](?=\\d{3}(?!\\d))", _GROUP_BLANK, text)
    text = _VULGAR.sub(lambda match: f" {unicodedata.normalize('NFKC', match[0])}", text)
    text = _SUPER.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    text = _LATEX_FRACTION.sub(r" \1/\2 ", text)
    return _LATEX_GROUP.sub(",", text).translate(_PLAIN)


def _interpret(body: str, decimal: Decimal) -> str | None:
    """The digits as a plain decimal, or None when they cannot be one number."""
    body = re.sub(rf"(?<=\d)['{_GROUP_BLANK}](?=\d{{3}}(?!\d))", "_", body)
    if "'" in body or _GROUP_BLANK in body:
        return None
    point = _decimal_mark(body, decimal)
    whole, mark, rest = body.partition(point) if point else (body, "", "")
    groups = re.split("[.,_]", whole)
    if len(groups) > 1 and not (0 < len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
        return None
    if len(set(re.findall("[.,_]", whole))) > 1 or re.search("[.,_]", rest):
        return None
    return f"{''.join(groups) or '0'}{'.' if mark else ''}{rest}"


def _decimal_mark(body: str, decimal: Decimal) -> str:
    if decimal != "auto":
        return decimal if decimal in body else ""
    points, commas = body.count("."), body.count(",")
    if points and commas:
        last = max(".,", key=body.rfind)
        return last if body.count(last) == 1 else ""
    if points + commas != 1:
        return ""
    if points:
        return "."
    return "" if re.fullmatch(r"[1-9]\d{0,2},\d{3}", body) else ","


def _exact(digits: str) -> Fraction | None:
    return Fraction(digits) if len(digits) <= _DIGITS_LIMIT else None


def _assemble(digits: str, match: re.Match[str]) -> Fraction | None:
    value = _exact(digits)
    # In 10^5, the 10 itself is the first of the five.
    exponent = int(match["exp"] or match["power"] or 0) if match["ten"] is None else int(match["ten"]) - 1
    if value is None or abs(exponent) > _DIGITS_LIMIT:
        return None
    value *= Fraction(10) ** exponent
    if match["below"] is not None:
        below = _exact(match["below"])
        if not below:
            return None
        value /= below
    elif match["den"] is not None:
        if not int(match["den"]):
            return None
        value += Fraction(int(match["num"]), int(match["den"]))
    return -value if match["sign"] == "-" else value
