"""Reading of a number on a scale, with the ways in which judges write it: 8/10, 6 out of 10, 85%, 7,5 von 10."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rubricate.errors import ConfigError
from rubricate.judges.parsing.jsonlike import Conflict
from rubricate.judges.parsing.text import clean, compact
from rubricate.judges.parsing.vocabulary import Unreadable
from rubricate.narrow import as_array, as_object

__all__ = ["SCALE_PHRASE", "Scale", "numbers_in"]

_NUM = r"[+-]?(?:\d+(?:[.,]\d+)*|\.\d+)"
_OF = r"/|out of|of|von|sur|de|su|van|av|af|из|من|中|分之"
_UNIT = (
    r"points?|pts?|stars?|marks?|Punkten?|Punkt|puntos?|pontos?|punti|Sterne?|estrellas?|балл\w*|درج\w*|点"
    r"|點|分|점|★|⭐"
)
_START = re.compile(
    rf"(?P<number>{_NUM})(?P<percent> ?(?:%|percent\b|per cent\b|Prozent\b))?(?: ?(?:{_UNIT})(?![^\W\d]))?"
    rf"(?: ?(?:{_OF})(?: ?(?:a|the|possible|max(?:imum)?(?: of)?|total(?: of)?|top|full))*? "
    rf"?(?P<top>{_NUM})(?P<percent_top> ?%)?"
    rf"(?: ?(?:{_UNIT})(?![^\W\d]))?)?",
    re.I,
)
_APPROXIMATE = re.compile(
    r"(?:(?:about|around|approx(?:imately)?|roughly|nearly|almost|circa|ca|at (?:least|most|best)|up to|over"
    r"|under|above|below"
    r"|more than|less than|between|somewhere|maybe|perhaps|probably|possibly|likely|close to|not|etwa|ungefähr"
    r"|fast|mindestens"
    r"|höchstens|zwischen)\b|約|大约|大約|~|≈|>|<|≥|≤|±) ?",
    re.I,
)
_INTRO = re.compile(
    r"(?:(?:an?|the|my|of|at|it|this|is|be|would|solid|overall|clear|strong|weak|full|perfect|i'd|i|say|give"
    r"|gives|rate|score|rating"
    r"|response|answer|for|eine?|un|una|une)\b[ :]*)*",
    re.I,
)
_RANGE = re.compile(
    r" ?(?:-|–|—|~|to\b|or\b|and\b|bis\b|oder\b|à\b|a\b|o\b|ou\b|至|到|或|から|,|;|/|→|->|=>) ?(?:maybe |perhaps "
    r"|possibly |even |rather )?[+-]?\d",
    re.I,
)
_SECOND_THOUGHT = re.compile(
    r"\b(?:no|wait|actually|rather|make (?:it|that)|correction|i mean|or maybe|or perhaps|or "
    r"rather)\b[^.\n]{0,20}?\d",
    re.I,
)
_TOP_ASIDE = re.compile(
    rf"^ ?[(\[（] ?(?:out of|of|max(?:imum)?\.?:?|von|sur|de|满分|滿分|全|/|highest|scale|top)? ?(?P<range>\d+ "
    rf"?[-–] ?)?(?P<top>{_NUM})"
    r" ?(?:点満点|點滿分|分满分|分滿分|満点|满分|滿分|max(?:imum)?|possible|points? possible|being (?:the "
    r")?(?:best|highest|maximum)"
    r"|is (?:the )?(?:best|highest|maximum))? ?[)\]）]"
)
_TOP_CUE = re.compile(r"out of|max|von|sur|满|滿|満|/|highest|scale|top|possible|best|\bof\b|\d ?[-–] ?\d", re.I)
_GLUED = re.compile(r"[\w%°+²³½¼¾⅓⅔]|[.,]\d|[-–](?=\w|$|\s*$)|\^|\*\d")
_AFTER = re.compile(
    r" ?(?:$|[.,;:!?)\]}\n–—*\"'`(|<$。，、（\u2600-\u27bf\U0001f300-\U0001faff-]"
    r"|(?:because|since|as|for|overall|due|given|in total|on an?|on the|with|but|based|weil|da|porque|car|à|à "
    r"cause)\b)",
    re.I,
)
SCALE_PHRASE = re.compile(
    rf" ?,?\(? ?(?:on|using) an? (?:(?P<top>\d+)-point scale|scale (?:of|from)? ?(?P<from>{_NUM}) ?(?:to|-|–"
    rf"|bis) ?(?P<to>{_NUM}))\)?,? ?",
    re.I,
)
_RANGE_ASIDE = re.compile(rf"({_NUM}) ?(?:-|–|—|to|bis|~|\.\.) ?({_NUM})")
_TOP_IN_LABEL = re.compile(rf"(?:out of|of|/|max\.?|maximum|von|sur|满分|滿分|満点) ?({_NUM})", re.I)
_WORDS = {word: value for value, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_NUMBER_WORD = re.compile(
    rf"(?P<number>{'|'.join(_WORDS)})\b(?:(?: out)? of (?P<top>{'|'.join(_WORDS)})\b)?(?![ -]?(?:half|point"
    rf"|third))",
    re.I,
)
_DECORATION = " \t\n\"'`*[](){}=:_|$“”„«»「」【】"


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of numbers, both ends included; whole numbers only where `integer` is set."""

    low: float
    high: float
    integer: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigError(f"a scale needs finite ends, low below high, got {self.low} to {self.high}")

    def admit(self, value: float) -> float | Unreadable:
        """The value if the scale has it. It is never clamped or rounded."""
        if math.isnan(value):
            return Unreadable.UNKNOWN
        if not self.low <= value <= self.high or (self.integer and not float(value).is_integer()):
            return Unreadable.OUT_OF_RANGE
        return float(value)

    def read(self, value: object) -> float | Unreadable:
        """A value out of a JSON reply. True, false and null are not numbers."""
        if isinstance(value, Conflict):
            readings = {self.read(one) for one in value.values}
            return readings.pop() if len(readings) == 1 else Unreadable.AMBIGUOUS
        if isinstance(value, bool) or value is None:
            return Unreadable.UNKNOWN
        if isinstance(value, int | float):
            return self.admit(float(value))
        if isinstance(value, str):
            return self.read_text(value, foreign=False)
        items = as_array(value)
        if items is not None:
            return (
                self.read(items[0]) if len(items) == 1 else (Unreadable.AMBIGUOUS if items else Unreadable.UNKNOWN)
            )
        return self._inside(as_object(value) or {})

    def _inside(self, value: Mapping[str, object]) -> float | Unreadable:
        for key in ("value", "score", "rating"):
            if key in value and not isinstance(value[key], Mapping):
                return self.read(value[key])
        return Unreadable.UNKNOWN

    def read_text(self, text: str, *, foreign: bool, aside: str = "") -> float | Unreadable:
        """A text that begins with a number, with or without its scale and a remark after it.

        Args:
            text: what follows a label, or a bare line.
            foreign: it stands in a language with decimal commas.
            aside: what the label says of the scale: "1-7", "out of 5".
        """
        whole = compact(clean(text))
        bare = whole.lstrip(_DECORATION)
        opened = "(" in whole[: len(whole) - len(bare)]
        bare = _INTRO.sub("", bare, count=1)
        rough = _APPROXIMATE.match(bare)
        if rough:
            return Unreadable.AMBIGUOUS if re.match(r" ?[+-]?\d", bare[rough.end() :]) else Unreadable.UNKNOWN
        match = _START.match(bare)
        if match is None:
            return self._in_words(bare)
        rest = bare[match.end() :]
        if _RANGE.match(rest) or rest.lstrip()[:1] in ("+", "?"):
            return Unreadable.AMBIGUOUS
        if _GLUED.match(rest):
            return Unreadable.AMBIGUOUS if rest[0] in "+-–½¼¾⅓⅔%" else Unreadable.UNKNOWN
        if not _AFTER.match(rest) or (rest.startswith(")") and not opened):
            return Unreadable.UNKNOWN
        if _SECOND_THOUGHT.search(rest.partition("\n")[0]):
            return Unreadable.AMBIGUOUS
        if not self._same_scale(aside, rest):
            return Unreadable.AMBIGUOUS
        return self._value(match, foreign)

    def _in_words(self, bare: str) -> float | Unreadable:
        match = _NUMBER_WORD.match(bare)
        if match is None or not re.match(r" ?(?:$|[.,;:!?)(\n–—-])", bare[match.end() :]):
            return Unreadable.UNKNOWN
        top = match["top"]
        if top is not None and _WORDS[top.lower()] != self.high:
            return Unreadable.AMBIGUOUS
        return self.admit(_WORDS[match["number"].lower()])

    def _same_scale(self, aside: str, rest: str) -> bool:
        """Whether what is said of the scale, before the number or in parentheses after it, is this scale."""
        span = _RANGE_ASIDE.search(aside)
        if span is not None and (_plain(span[1]), _plain(span[2])) != (self.low, self.high):
            return False
        top = _TOP_IN_LABEL.search(aside) if span is None else None
        if top is not None and _plain(top[1]) != self.high:
            return False
        said = SCALE_PHRASE.match(rest)
        if said is not None and not self.named_by(said):
            return False
        after = _TOP_ASIDE.match(rest)
        return after is None or not _TOP_CUE.search(after.group()) or _plain(after["top"]) == self.high

    def named_by(self, phrase: re.Match[str]) -> bool:
        """Whether a match of `SCALE_PHRASE` names this scale."""
        if phrase["top"] is not None:
            return float(phrase["top"]) == self.high
        return (_plain(phrase["from"]), _plain(phrase["to"])) == (self.low, self.high)

    def _value(self, match: re.Match[str], foreign: bool) -> float | Unreadable:
        top = match["top"]
        number = self._decimal(match["number"], foreign=foreign or top is not None)
        if isinstance(number, Unreadable):
            return number
        if match["percent"]:
            return self._percentage(number) if top is None else Unreadable.AMBIGUOUS
        if top is not None:
            high = self._decimal(top, foreign=True)
            if high != self.high or match["percent_top"]:
                return Unreadable.AMBIGUOUS
        return self.admit(number)

    def _percentage(self, number: float) -> float | Unreadable:
        """A percentage is exact on the scales 0-1 and 0-100 and on no other."""
        if (self.low, self.high) == (0, 1):
            return self.admit(number / 100)
        return self.admit(number) if (self.low, self.high) == (0, 100) else Unreadable.AMBIGUOUS

    def _decimal(self, written: str, *, foreign: bool) -> float | Unreadable:
        if "," not in written:
            return float(written) if written.count(".") <= 1 else Unreadable.UNKNOWN
        if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", written) and self.high >= 1000:
            return float(written.replace(",", ""))
        if re.fullmatch(r"[+-]?\d+,\d+", written) and (foreign or re.match(r"[+-]?0,", written)):
            return float(written.replace(",", "."))
        return Unreadable.AMBIGUOUS


def _plain(written: str) -> float:
    try:
        return float(written.replace(",", "."))
    except ValueError:
        return math.nan


_ENTRY = rf"{_NUM}(?: ?/ ?\d+)?"
_LIST = re.compile(rf"{_ENTRY}(?: ?[,;|] ?{_ENTRY}| {_ENTRY})+")


def numbers_in(text: str) -> list[str]:
    """The entries of a text that is nothing but a list of numbers ("8, 6" or "8 6"), empty for another text."""
    bare = compact(clean(text[:400])).strip(_DECORATION + ".,;")
    if not _LIST.fullmatch(bare) or len(text) > 400:
        return []
    return [piece for piece in re.split(r" ?[,;|] ?| (?![/\d]*/)", bare) if piece]
