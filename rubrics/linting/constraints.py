"""Checkable constraints that a text states: ranges of words or sentences, a language, an output format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["FORMATS", "LANGUAGES", "Constraint", "find_constraints", "find_formats", "find_languages", "numbers_in"]

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_NUMBERS = {word: value for value, word in enumerate(_SMALL)} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
    "a hundred": 100,
    "one hundred": 100,
    "two hundred": 200,
    "three hundred": 300,
    "five hundred": 500,
}
# No text means a number of more digits, and Python refuses to read those of thousands.
_NUM = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_MIN = (
    "at least|no fewer than|not fewer than|no less than|not less than|a minimum of|minimum of|minimum|>=|≥|"
    "(?:is|are|be) not (?:shorter|less) than"
)
_MAX = (
    "at most|no more than|not more than|up to|a maximum of|maximum of|maximum|within|limited to|<=|≤|"
    "no longer than|"
    "(?:does|do|must|should|may|to) ?not exceed|not exceeding|never exceeds?|not longer than|without exceeding"
)
_OVER = "more than|over|longer than|exceeds?|exceeding|above|in excess of|>"
_UNDER = "fewer than|less than|under|below|shorter than|<"
_EXACT = "exactly|precisely"
_ABOUT = "about|approximately|around|roughly|some|nearly|almost|circa|~"
_BARE = "in|has|have|having|contains?|consists? of|is|with|of"
_UNITS = r"words?|sentences?|paragraphs?|characters?|lines?|tokens?|bullet points?|bullets?|sections?|headings?"
_RANGE = re.compile(
    rf"(?:(?P<op>between|from|{_MIN}|{_MAX}|{_OVER}|{_UNDER}|{_EXACT}|{_ABOUT}|{_BARE})\s+(?:the\s+)?)?"
    rf"\b(?P<n>{_NUM})(?:\s*(?P<join>-|–|to|and|or)\s*(?P<m>{_NUM}))?[\s-]+"
    rf"(?P<unit>{_UNITS})\b(?P<post>\s+(?:or\s+(?:less|fewer|more)|minimum|maximum|limit|max|min|at "
    rf"most|at least))?",
    re.I,
)
_OPS = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        ("min", _MIN),
        ("max", _MAX),
        ("over", _OVER),
        ("under", _UNDER),
        ("exact", _EXACT),
        ("about", _ABOUT),
        ("bare", _BARE),
    )
)
_QUICK = re.compile(_UNITS, re.I)
_PART = re.compile(
    r"\b(?:each|every|per|first|last|opening|closing|final|title|section|paragraph|bullet|sentence|stanza)\b"
)
_UNIT_NAMES = {"bullet point": "bullets", "bullet": "bullets"}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A range of something countable that a text asks for.

    Attributes:
        unit: what is counted: `words`, `sentences`, `paragraphs`, `bullets` and so on.
        low, high: the range, both included; None where it is open.
        text: the words that say so.
        exact: whether the bounds are firm, and not `about 100`.
        whole: whether it seems to hold for the whole response, and not for a part of it.
        strong: whether it is a limit in so many words, and not merely a number with a unit.
    """

    unit: str
    low: int | None
    high: int | None
    text: str
    exact: bool = True
    whole: bool = True
    strong: bool = True


def number(text: str) -> int:
    """A number in digits or as an English word."""
    plain = text.lower().replace(",", "")
    return int(plain) if plain.isdecimal() else _NUMBERS[plain]


def _operation(given: str) -> str:
    plain = " ".join(given.lower().split())
    if plain in ("between", "from"):
        return "between"
    return next((name for name, pattern in _OPS if plain and pattern.fullmatch(plain)), "")


@lru_cache(maxsize=4096)
def find_constraints(text: str) -> tuple[Constraint, ...]:
    """The ranges of words, sentences and the like that an English text states."""
    if not _QUICK.search(text):
        return ()
    return tuple(_constraints(text))


def _constraints(text: str) -> Iterator[Constraint]:
    for match in _RANGE.finditer(text):
        operation, post = _operation(match["op"] or ""), (match["post"] or "").lower().strip()
        low = number(match["n"])
        high = number(match["m"]) if match["m"] else None
        if high is not None and match["join"].lower() in ("and", "or") and operation != "between":
            continue
        raw = match["unit"].lower()
        unit = _UNIT_NAMES.get(raw.removesuffix("s"), raw.removesuffix("s") + "s")
        whole = not _PART.search(text[max(0, match.start() - 40) : match.start()].lower())
        whole = whole and not re.match(r"\s+(?:each|per|apiece)\b", text[match.end() :])
        bounds = _bounds(operation, post, low, high)
        strong = bool(post) or operation not in ("", "bare")
        yield Constraint(unit, *bounds, match[0].strip(), operation != "about" and strong, whole, strong)


def _bounds(operation: str, post: str, low: int, high: int | None) -> tuple[int | None, int | None]:
    if high is not None:
        return min(low, high), max(low, high)
    if post in ("or less", "or fewer", "maximum", "limit", "max", "at most"):
        return None, low
    if post in ("or more", "minimum", "min", "at least"):
        return low, None
    return {
        "min": (low, None),
        "max": (None, low),
        "over": (low + 1, None),
        "under": (None, low - 1),
    }.get(operation, (low, low))


def numbers_in(text: str) -> set[int]:
    """All whole numbers of a text, in digits or as English words."""
    found = {int(part.replace(",", "")) for part in re.findall(r"(?<![\w.])\d{1,3}(?:,\d{3}){1,5}|\d{1,15}", text)}
    lower = text.lower()
    return found | {value for word, value in _NUMBERS.items() if re.search(rf"\b{word}\b", lower)}


LANGUAGES = {
    "english": "en", "french": "fr", "german": "de", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "chinese": "zh", "mandarin": "zh", "japanese": "ja", "korean": "ko", "russian": "ru",
    "arabic": "ar", "hindi": "hi", "turkish": "tr", "polish": "pl", "swedish": "sv", "latin": "la",
    "vietnamese": "vi", "thai": "th", "greek": "el", "hebrew": "he", "czech": "cs", "ukrainian": "uk",
    "bengali": "bn", "finnish": "fi", "danish": "da", "norwegian": "no", "hungarian": "hu",
}  # fmt: skip
"""Names of languages and their ISO 639-1 codes."""

_LANGUAGE = re.compile(
    r"\b(?:written|responds?|answers?|answered|repl(?:y|ies)|given|provided|produced|entirely|solely|only|fully|"
    r"completely|is|be)\s+in\s+"
    rf"(?P<language>{'|'.join(LANGUAGES)})\b(?!\s+(?:style|cuisine|[a-z]+ation))",
    re.I,
)


_OF_PROMPT = re.compile(r"\b(?:question|prompt|instruction|input|joke|source|original|user)\b[^.]{0,30}$", re.I)


def find_languages(text: str) -> list[str]:
    """Names of languages in which a text asks for the response, lower case."""
    return [
        match["language"].lower()
        for match in _LANGUAGE.finditer(text)
        if not _OF_PROMPT.search(text[: match.start()])
    ]


FORMATS = {
    "JSON": r"json",
    "XML": r"xml",
    "YAML": r"ya?ml",
    "CSV": r"csv|comma[- ]separated",
    "HTML": r"html",
    "a bullet list": r"bullet(?:ed|s)?(?:[- ]points?| list)?|unordered list",
    "a numbered list": r"numbered (?:list|steps|points)|ordered list|enumerated list",
    "Markdown": r"markdown",
    "a haiku": r"haiku",
    "a limerick": r"limerick",
    "a sonnet": r"sonnet",
}
"""Output formats and how they are named, as regular expressions."""

_AS = re.compile(
    r"\b(?:formatted|output|outputs|returned|returns|written|presented|presents?|structured|provided|"
    r"organi[sz]ed|given|"
    r"valid|uses?|is|be|in|as|into)\s+(?:(?:as|in|a|an|valid|well-formed|single|the form of|to be|"
    r"using|with)\s+){0,4}"
    rf"(?P<format>{'|'.join(FORMATS.values())})\b",
    re.I,
)


def find_formats(text: str) -> list[str]:
    """Output formats that a text asks for, as keys of FORMATS."""
    found = [match["format"].lower() for match in _AS.finditer(text)]
    return [name for one in found for name, pattern in FORMATS.items() if re.fullmatch(pattern, one, re.I)]
