"""Labelled values in text ("Final verdict: met", "**Score** 4", "<answer>B</answer>") and whether they count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from rubricate.judges.parsing import cues
from rubricate.judges.parsing.marks import MOST_MARKS, Standing

__all__ = ["Hit", "LabelFinder", "announcement", "find_tags", "is_foreign_label", "is_outdated"]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hit:
    """A label in the text.

    Attributes:
        noun: the label's noun, lower case.
        value: what follows it, to the end of the line.
        start, end: place of the label, and where the value begins.
        standing, correction: as the label and the words before it say.
        qualified: the noun carries a word of its own ("accuracy score"), so it need not be the whole verdict.
        aside: what stands in parentheses between noun and colon.
        colon: the label is written with a colon or the like, not as a sentence ("the score is").
        foreign: the label is not English.
    """

    noun: str
    value: str
    start: int
    end: int
    standing: Standing = Standing.PLAIN
    correction: bool = False
    qualified: bool = False
    aside: str = ""
    colon: bool = True
    foreign: bool = False


_SEPARATOR = (
    r"(?P<sep>[\"'\u201d]? ?(?:[是为為は] ?[:]?|[:=|\u2192]+>?) ?| [-\u2013\u2014] | ?-> ?"
    r"| (?:is|was|remains|stays|lautet|ist|es|est)(?: now| therefore| thus| hence| clearly)?(?: ?:)? |(?: ?(?=\n)))"
)
_FINAL = set("final finally overall total closing concluding ultimate gesamt final-".split())
_CORRECTED = set("revised corrected updated amended new correction korrigiertes korrigierte adjusted".split())
_DRAFT = set("initial preliminary tentative provisional draft first interim".split())
_NEUTRAL = set(
    "my the our a an this that your single binary official actual verdict answer judgment judgement criterion "
    "overall's"
    " mein das die der endg\u00fcltiges el la mi le il o \u00fcberall global general gesamtes response's".split()
)
_JOINTS = set(
    "so thus therefore hence and then is as with conclude conclusion summary said considered now consequently "
    "accordingly"
    " give gives giving assign step decision also daher somit por tanto donc while but here for line result "
    "output".split()
)
_REJECTED = set(
    "previous prior earlier expected claimed suggested alleged self possible max maximum min minimum passing "
    "reference gold"
    " baseline human his her their its example sample fake supposed proposed desired threshold target average "
    "mean median"
    " candidate's author's student's writer's user's assistant's model's candidates authors original old wrong "
    "false no any"
    " another other every each allowed valid lowest highest best worst perfect full opposite not without "
    "injected embedded"
    " quoted stated self-assigned per sub partial intermediate confidence certainty requested demanded "
    "either".split()
)
_NOT_NOW = set(
    "previous prior earlier old expected claimed draft initial candidate author example reference".split()
)
_CJK_FINAL = re.compile(r"(?:最终|最終|总|總|综合|綜合|総合|总体|整体|全体|最后|합계|최종|종합)(?:的)?\Z")
_CJK_CORRECTED = re.compile(r"(?:修正后?的?|更正后?的?|更新后?的?|改正后?的?|修正後の?|수정된?)\Z")
_CJK_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+\Z")
_CJK_LEAD = re.compile(
    r"(?:因此|所以|综上|综上所述|总之|最终|最終|故|我的|本次|よって|従って|したがって|以上より|따라서"
    r"|[，,。：:；;])\Z"
)
_LONGEST_VALUE = 300
_SENTENCE_STOP = re.compile(r"[.!?;|](?:[\"')\]] ?| |$)|[。；]")
_TOKEN = re.compile(r"[\w'-]+")
_TRAILING_NEGATION = re.compile(r"\b(?:not|no|never|without|n't)\b(?:\W+\w+){0,2}\W*\Z", re.I)


class LabelFinder:
    """Finds labels with one of the given nouns.

    Args:
        nouns: Latin-script nouns, lower case.
        foreign: nouns that are not English, in any script.
    """

    def __init__(self, nouns: Sequence[str], foreign: Sequence[str] = ()) -> None:
        self._foreign = {noun.lower() for noun in foreign}
        words = sorted({*(noun.lower() for noun in nouns), *self._foreign}, key=len, reverse=True)
        spaced = [re.escape(word).replace(r"\ ", "[ _-]") for word in words]
        unspaced = [word for word, raw in zip(spaced, words, strict=True) if _is_cjk(raw)]
        latin = [word for word, raw in zip(spaced, words, strict=True) if not _is_cjk(raw)]
        noun = "|".join([rf"(?<![^\W_])(?:{'|'.join(latin)})(?![^\W_])"] + unspaced)
        self._tag_open = re.compile(rf"<((?:final[ _-]?|overall[ _-]?)?(?:{'|'.join(latin)}))>", re.I)
        self._tag_close = re.compile(rf"</((?:final[ _-]?|overall[ _-]?)?(?:{'|'.join(latin)}))>", re.I)
        self._quoted_key = re.compile(rf"[\"']((?:final_|overall_)?(?:{'|'.join(latin)}))[\"'] ?:", re.I)
        self._label = re.compile(rf"(?P<noun>{noun})(?P<aside> ?[(\[][^()\[\]\n]{{0,40}}[)\]])?{_SEPARATOR}", re.I)

    def untag(self, text: str) -> str:
        """Elements such as `<verdict>met</verdict>` rewritten as labelled lines; `<answer>` counts as final."""

        def opened(match: re.Match[str]) -> str:
            name = match.group(1).replace("_", " ")
            return f"\nfinal {name}: " if name.lower() == "answer" else f"\n{name}: "

        if "<" in text:
            text = self._tag_close.sub("\n", self._tag_open.sub(opened, text))
        return self._quoted_key.sub(r"\1:", text) if '"' in text or "'" in text else text

    def find(self, text: str) -> Iterator[Hit]:
        """The labels that count, in order. `text` is plain, with quotations masked."""
        for match in self._label.finditer(text):
            hit = self._hit(text, match)
            if hit is not None:
                yield hit

    def _hit(self, text: str, match: re.Match[str]) -> Hit | None:
        start = match.start()
        if is_outdated(match["aside"] or ""):
            return None
        lead = _line_before(text, start)
        separator = match["sep"]
        if (
            not separator.strip()
            and lead.strip(" #*->([\u2022")
            and not set(_tokens(lead)) <= _FINAL | _NEUTRAL | _CORRECTED
        ):
            return None
        lead = _current_sentence(lead)
        manner = _manner(lead)
        if manner is None:
            return None
        standing, correction, qualified = manner
        noun = match["noun"].lower()
        value = _value_after(text, match.end())
        return Hit(
            noun,
            value,
            start,
            match.end(),
            standing,
            correction,
            qualified,
            (match["aside"] or "").strip(" ()[]"),
            any(sign in separator for sign in ":=|>\u2192") or not separator.strip(" 是为為は"),
            noun in self._foreign,
        )


def _is_cjk(word: str) -> bool:
    return any("\u3040" <= sign <= "\ud7af" for sign in word)


def _tokens(text: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(text)]


def _line_before(text: str, start: int) -> str:
    """The line up to `start`, at most 200 characters of it: labels are looked at one by one in linear time."""
    floor = max(start - 200, 0)
    return text[max(text.rfind("\n", floor, start) + 1, floor) : start]


def _current_sentence(lead: str) -> str:
    end = 0
    for match in _SENTENCE_STOP.finditer(lead):
        end = match.end()
    return lead[end:]


def _value_after(text: str, start: int) -> str:
    end = text.find("\n", start, start + _LONGEST_VALUE)
    line = text[start : end if end >= 0 else start + _LONGEST_VALUE]
    if line.strip(" \"'*_`|:"):
        return line
    for _ in range(3):
        if end < 0:
            return ""
        start, end = end + 1, text.find("\n", end + 1, end + 1 + _LONGEST_VALUE)
        line = text[start : end if end >= 0 else start + _LONGEST_VALUE]
        if line.strip():
            return line
    return ""


def announcement(lead: str) -> tuple[Standing, bool]:
    """Standing and correction that a short line in front of a JSON value gives it."""
    tokens = set(_tokens(lead)) if len(lead) <= 60 else set[str]()
    correction = not tokens.isdisjoint(_CORRECTED)
    if not tokens.isdisjoint(_FINAL):
        return Standing.FINAL, correction
    return (Standing.PLAIN if tokens.isdisjoint(_DRAFT) else Standing.DRAFT), correction


def is_outdated(aside: str) -> bool:
    """Whether what stands in parentheses after a label says that the value is not the one asked for."""
    return not _NOT_NOW.isdisjoint(_tokens(aside))


def is_foreign_label(label: str) -> bool:
    """Whether a label's words give the value to somebody else, or to another thing than the response."""
    return not _REJECTED.isdisjoint(_tokens(label.replace("_", " ")))


def _manner(lead: str) -> tuple[Standing, bool, bool] | None:
    """Standing, correction and qualification that the words before a label give it; None when it does not count."""
    cjk = _CJK_RUN.search(lead)
    if cjk is not None:
        return _cjk_manner(lead, cjk.group())
    tokens = [token for token in _tokens(lead.replace("_", " ")) if not token.strip("-_").isdigit()]
    correction = cues.CORRECTS.search(lead) is not None
    standing = Standing.PLAIN
    while tokens and (tokens[-1] in _FINAL | _CORRECTED | _DRAFT | _NEUTRAL):
        word = tokens.pop()
        correction = correction or word in _CORRECTED
        if word in _FINAL:
            standing = Standing.FINAL
        elif word in _DRAFT and standing is Standing.PLAIN:
            standing = Standing.DRAFT
    if not tokens:
        return standing, correction, False
    if tokens[-1] in _REJECTED or cues.is_quotation(lead) or cues.is_hypothetical(lead):
        return None
    if cues.OPTIONS.search(lead) or _TRAILING_NEGATION.search(lead):
        return None
    joined = (
        tokens[-1] in _JOINTS or lead.rstrip()[-1:] in ",:-\u2013\u2014(>" or _after_punctuation(lead, tokens[-1])
    )
    return standing, correction, not joined


def _after_punctuation(lead: str, last: str) -> bool:
    """Whether the last word that is not part of the label closes a clause: "all is cited, final"."""
    at = lead.lower().rfind(last)
    return at >= 0 and lead[at + len(last) : at + len(last) + 2].strip()[:1] in {
        ",",
        ":",
        "-",
        "\u2013",
        "\u2014",
        "(",
    }


def _cjk_manner(lead: str, run: str) -> tuple[Standing, bool, bool] | None:
    if cues.is_quotation(lead) or cues.SUPPOSES.search(lead) or cues.OPTIONS.search(lead):
        return None
    correction = _CJK_CORRECTED.search(run) is not None or cues.CORRECTS.search(lead) is not None
    if _CJK_CORRECTED.search(run):
        return Standing.PLAIN, True, False
    if _CJK_FINAL.search(run):
        return Standing.FINAL, correction, False
    return Standing.PLAIN, correction, _CJK_LEAD.search(run) is None


_BRACKETED = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]|\\boxed ?\{([^{}\n]{1,60})\}|【([^【】\n]{1,40})】")


def find_tags(text: str, read: Callable[[str], T | None]) -> Iterator[tuple[T, int]]:
    """Values in closing tags, `[[B]]`, `\\boxed{7}`, `【B】`, and where they stand.

    A tag in a sentence that lists options, quotes or supposes does not count, and neither do several tags that are
    named as alternatives.

    Args:
        text: plain text.
        read: the value of a tag's text, None when it is none.
    """
    for match in islice(_BRACKETED.finditer(text), MOST_MARKS + 1):
        value = read(next(group for group in match.groups() if group is not None))
        if value is not None and not _is_option(text, match):
            yield value, match.start()


def _is_option(text: str, match: re.Match[str]) -> bool:
    lead = _current_sentence(_line_before(text, match.start()))
    if _NEXT_OPTION.match(text, match.end()) or _EARLIER_OPTION.search(lead) or cues.OPTIONS.search(lead):
        return True
    return cues.is_quotation(lead) or cues.is_hypothetical(lead)


_NEXT_OPTION = re.compile(
    r"[^\w\n]{0,2}(?:or|and|oder|ou|o|/|,|\||或)[^\w\n]{0,2}(?:or |and )?(?:\[\[|\\boxed|【)", re.I
)
_EARLIER_OPTION = re.compile(
    r"(?:\]\]|\}|】)[^\w\n]{0,2}(?:or|and|oder|ou|o|/|,|\||或)[^\w\n]{0,3}(?:or |and )?\Z", re.I
)
