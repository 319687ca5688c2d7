"""Reading of one score, or one for each of several responses, out of a judge's reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.fields import find_fields, fold_key, is_error, marks_of, reason_in
from rubricate.judges.parsing.labels import Hit, LabelFinder, find_tags, is_foreign_label, is_outdated
from rubricate.judges.parsing.marks import (
    MOST_MARKS,
    Mark,
    Standing,
    decide,
    outcome,
    refuse_if_refused,
    unreadable,
)
from rubricate.judges.parsing.numbers import SCALE_PHRASE, Scale
from rubricate.judges.parsing.reading import Reading, Structure, read_reply
from rubricate.judges.parsing.text import compact, mask_quotes, plain, sentences
from rubricate.judges.parsing.vocabulary import Unreadable, as_known
from rubricate.narrow import as_number, as_object

__all__ = ["parse_score", "score_marks"]

_ALIASES = ("score", "rating", "grade", "points", "mark", "total", "overall", "overall_rating", "value")
_NOUNS = (
    "score",
    "rating",
    "grade",
    "mark",
    "marks",
    "points",
    "total",
    "overall",
    "result",
    "answer",
    "evaluation",
    "verdict",
)
_STRONG = ("score", "rating", "grade", "total")
_FOREIGN = (
    "punktzahl bewertung punkte wertung gesamtpunktzahl gesamtnote gesamtbewertung puntuación puntaje calificación"
    " valoración pontuação nota avaliação punteggio voto valutazione wynik ocena betyg оценка балл баллы итог"
    " 评分 評分 得分 分数 分數 总分 總分 评价 評価 総合評価 スコア 点数 得点 採点 점수 평점 총점 الدرجة درجة "
    "التقييم النتيجة अंक"
).split()
_OTHER_MEASURES = re.compile(
    r"\b(?:certainty|confidence|page|line|step|word|words|count|date|year|time|id|number|version|length|tokens"
    r"|weight|index|item"
    r"|max|maximum|min|minimum|range|scale|threshold|temperature|probability|question|section|paragraph|chapter"
    r"|room|error\w*)\b",
    re.I,
)
_LABELLED = re.compile(
    r"^\W{0,20}(?P<label>[^\W\d][\w /'-]{0,40}?)(?P<aside> ?\([^()\n]{0,40}\))? ?[:=] ?(?P<value>\S.{0,80})$", re.M
)
_ONE_VALUE = re.compile(
    r"\W{0,4}\d[\d.,]* ?(?:stars?|points?|点|點|分|점|★|⭐|/ ?\d+|%)?[\W]{0,4}(?:\([^()]{1,20}\))?\W{0,4}", re.I
)
_NUMERIC_LINE = re.compile(r"[\W_]*[+-]?\d[\d.,]*(?: ?(?:/|out of) ?\d[\d.,]*)?%?[\W_]*")
_GIVEN = re.compile(
    r"\b(?:(?:score|rating|grade|mark) of|(?:give|gives|gave|rate|rates|score|scores|assign|award|put|grade)(?: "
    r"\w+){0,4}?"
    r"|i(?:'d| would)? say(?: it's| it is| this is)?|(?:deserves|earns|gets|receives|merits)(?: \w+){0,3}?) "
    r"(?:an? |at |as |with |overall )*(?=[\d.]+)",
    re.I,
)
_FRACTION_LEAD = re.compile(
    r"(?:^|[:=(\n\u2192]|\b(?:at|an?|is|give|rate|rating|score|scores|deserves|gets|earns|it|this|overall|solid"
    r"|of|say|grade|so|with))\W{0,3}\Z",
    re.I,
)
_FRACTION = re.compile(
    r"(?<![\w./,])\d+(?:[.,]\d+)? ?(?:/|out of(?: a possible)?|von|sur|من|из) ?\d+(?:[.,]\d+)?(?![\w/]|[.,]\d)",
    re.I,
)
_AFTER_VALUE = re.compile(
    r" ?(?:$|[.,;:!?)(\n\u2013\u2014*-]|(?:because|since|as|for|overall|due|given|points?|in total)\b)"
)


@lru_cache(maxsize=64)
def _labels(key: str) -> LabelFinder:
    return LabelFinder([key.replace("_", " "), *_NOUNS], _FOREIGN)


def parse_score(
    reply: str, low: float, high: float, *, integer: bool = False, key: str = "score", quoted: Sequence[str] = ()
) -> float:
    """The score of a judge's reply, in the units of the scale.

    Reads JSON (`key`, at the top or inside the usual wrappers), labelled lines, closing tags, and a bare number or
    fraction. A score outside the scale or on another scale is refused: nothing is clamped or rescaled, except that
    a percentage is read on the scales 0-1 and 0-100. Numbers in ordinary prose are not scores.

    Args:
        reply: the judge's visible reply.
        low, high: ends of the scale, both included.
        integer: refuse scores that are not whole.
        key: the JSON key that was asked for.
        quoted: texts that the judge was shown; longer passages copied from them do not count.

    Raises ParseError, with its `kind`, when there is no plain score.
    """
    scale = Scale(low, high, integer)
    return agreed(lambda text: _score(text, scale, key, quoted), reply, quoted)


def _score(reply: str, scale: Scale, key: str, quoted: Sequence[str]) -> float:
    reading = read_reply(reply, quoted)
    marks, reasons = _marks(reading, scale, key)
    if marks:
        refuse_if_refused([*reasons, *(part for part in reading.parts if isinstance(part, str))], reply)
    score = decide(marks, reply, "score") if marks else _from_prose(reading, scale)
    for reason in reasons:
        said = outcome(score_marks(plain(reason), scale, key, strict=True))
        if isinstance(said, float) and said != score:
            raise unreadable(Unreadable.AMBIGUOUS, reply, "score")
    if marks and reading.structures and _denies(reading.behind, score, scale):
        raise unreadable(Unreadable.AMBIGUOUS, reply, "score")
    return score


_SHOULD = re.compile(
    r"\b(?:score|rating|grade|mark) (?:should be|should have been|must be|ought to be) (?:an? )?(?=\d)", re.I
)


def _denies(behind: str, score: float, scale: Scale) -> bool:
    """Whether a sentence behind the JSON gives another score."""
    text = mask_quotes(behind, _keeps_number)
    found = [mark.value for mark in _prose_marks(text, scale)]
    found += [
        scale.read_text(text[match.end() : match.end() + 40], foreign=False) for match in _SHOULD.finditer(text)
    ]
    return any(isinstance(value, float) and value != score for value in found)


def _marks(reading: Reading, scale: Scale, key: str) -> tuple[list[Mark[float]], list[str]]:
    marks: list[Mark[float]] = []
    reasons: list[str] = []
    before = ""
    for index, part in enumerate(reading.parts):
        if isinstance(part, Structure):
            found = marks_of(find_fields(part.value, key, _ALIASES), scale.read, index, part.lead)
            if found and not _fits(part.value, scale):
                found = [replace(mark, value=Unreadable.AMBIGUOUS) for mark in found]
            if found and marks and cues.CORRECTS.search(before):
                found[0] = replace(found[0], correction=True)
            if found:
                reasons.append(reason_in(part.value))
            marks += found
            before = ""
        else:
            marks += score_marks(part, scale, key, index, after=bool(marks))
            before = part[-600:]
    return marks, [reason for reason in reasons if reason]


def _fits(value: object, scale: Scale) -> bool:
    """Whether the scale that the reply itself names, if any, is the one that was asked for."""
    record = as_object(value) or {}
    for name, inner in record.items():
        if fold_key(name) in ("maxscore", "maximumscore", "scoremax", "outof", "maxpoints", "scalemax"):
            top = as_number(inner)
            if top is not None and top != scale.high:
                return False
    return True


def _keeps_number(inner: str) -> bool:
    return len(inner) < 40 and re.fullmatch(r"\W*\d+(?:[.,]\d+)?(?: ?(?:/|out of) ?\d+)?\W*", inner) is not None


def score_marks(
    text: str, scale: Scale, key: str, part: int = 0, *, after: bool = False, strict: bool = False
) -> list[Mark[float]]:
    """Scores that a passage announces by a label or a closing tag, and what takes the last one back.

    Args:
        text: plain text.
        scale: the scale.
        key: the label that was asked for.
        part: part of the reply.
        after: a score stands in front of the passage.
        strict: only labels that mean the whole score and nothing else, as for a reason that must not contradict.
    """
    finder = _labels(key)
    text = mask_quotes(finder.untag(text), _keeps_number)
    marks, since = _labelled_marks(text, finder, scale, key, part, strict)
    for value, start in find_tags(text, lambda inner: as_known(scale.read_text(inner, foreign=False))):
        marks.append(Mark(value, Standing.PLAIN, False, part, start))
        since = max(since, start)
    marks.sort(key=lambda mark: mark.at)
    for said in cues.corrections(text[since:]) if marks or after else ():
        if any(sign.isdigit() for sign in said):
            value = scale.read_text(said.strip(" ,:;.-"), foreign=False)
            found = value if isinstance(value, float) else Unreadable.AMBIGUOUS
            marks.append(Mark(found, Standing.FINAL, True, part, len(text)))
    return marks


def _labelled_marks(
    text: str, finder: LabelFinder, scale: Scale, key: str, part: int, strict: bool
) -> tuple[list[Mark[float]], int]:
    """Marks of the labels, and where the last one ends.

    Labels such as "points" and "result" count where none is plainly the score's, and a label with a word of its own
    ("clarity score") where it is the only one.
    """
    marks: list[Mark[float]] = []
    weak: list[Mark[float]] = []
    qualified: list[Mark[float]] = []
    since = 0
    for count, hit in enumerate(finder.find(text)):
        if count == MOST_MARKS:
            return [Mark(Unreadable.AMBIGUOUS, part=part)], since
        value = _read_hit(hit, scale, key)
        if value is None:
            continue
        correction = hit.correction or cues.CORRECTS.search(text, since, hit.start) is not None
        group = qualified if hit.qualified else (marks if _is_plain(hit, key) else weak)
        group.append(Mark(value, hit.standing, correction and bool(marks or weak), part, hit.start))
        since = hit.end
    if strict or marks:
        return marks, since
    if weak or len(qualified) <= 1:
        return weak or qualified, since
    return [replace(qualified[0], value=Unreadable.AMBIGUOUS)], since


def _is_plain(hit: Hit, key: str) -> bool:
    return hit.foreign or hit.noun in (*_STRONG, "overall", "total", key.replace("_", " ").lower())


def _read_hit(hit: Hit, scale: Scale, key: str) -> float | Unreadable | None:
    """The labelled value, None when the label announces no score at all."""
    value = scale.read_text(hit.value, foreign=hit.foreign, aside=hit.aside)
    if value is Unreadable.PLACEHOLDER:
        return None
    if value is Unreadable.UNKNOWN:
        strong = hit.noun in (*_STRONG, key.replace("_", " ").lower()) or hit.foreign
        return value if strong and hit.colon and not hit.qualified and hit.value.strip() else None
    return value


def _from_prose(reading: Reading, scale: Scale) -> float:
    text = mask_quotes(reading.text, _keeps_number)
    if cues.is_strong_refusal(text) or any(is_error(part.value) for part in reading.structures):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    for marks in (list(_whole_marks(text, scale)), list(_prose_marks(text, scale))):
        if marks:
            return decide(marks, reading.reply, "score")
    if cues.is_refusal(text):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    if any(not part.complete for part in reading.structures):
        raise ParseError("the reply was cut before its score", kind="incomplete", reply=reading.reply)
    raise unreadable(Unreadable.UNKNOWN, reading.reply, "score")


def _whole_marks(text: str, scale: Scale) -> Iterator[Mark[float]]:
    """A reply that is one number, one labelled number, or ends with a line that is a number."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return
    labelled = list(_LABELLED.finditer(text))
    if len(lines) == 1 and len(labelled) == 1 and _may_be_score(labelled[0]["label"], labelled[0]["aside"] or ""):
        value = scale.read_text(labelled[0]["value"], foreign=False, aside=labelled[0]["aside"] or "")
        if value is not Unreadable.UNKNOWN:
            yield Mark(value)
            return
    if len(lines) == 1 and len(lines[0]) < 80 and (" of " in text or _ONE_VALUE.fullmatch(lines[0])):
        value = scale.read_text(lines[0], foreign=False)
        if value is not Unreadable.UNKNOWN:
            yield Mark(value)
            return
    numeric = [line for line in lines if len(line) < 40 and _NUMERIC_LINE.fullmatch(line)]
    if numeric and (lines[-1] == numeric[-1] or lines[0] == numeric[0]):
        for line in numeric:
            yield Mark(scale.read_text(line, foreign=False))


def _may_be_score(label: str, aside: str) -> bool:
    if is_outdated(aside):
        return False
    return _OTHER_MEASURES.search(label.replace("_", " ")) is None and not is_foreign_label(label)


def _prose_marks(text: str, scale: Scale) -> Iterator[Mark[float]]:
    """Numbers that a sentence gives as the score: "8.5/10", "I give it a 7"."""
    if len({match["label"].lower() for match in _LABELLED.finditer(text) if match["value"][:1].isdigit()}) > 1:
        yield Mark(Unreadable.AMBIGUOUS)
        return
    for sentence in sentences(compact(text)):
        said = _without_scale(sentence.text, scale)
        if not any(sign.isdigit() for sign in said) or said.endswith("?") or cues.OPTIONS.search(said):
            continue
        for match in _FRACTION.finditer(said):
            if _counts(said, match.start(), match.end()):
                yield Mark(scale.read_text(match.group(), foreign=False), at=sentence.start)
        for match in _GIVEN.finditer(said):
            number = re.match(r"\d*\.?\d+", said[match.end() :])
            end = match.end() + (number.end() if number else 0)
            if (
                number
                and "/" not in said[end : end + 2]
                and _AFTER_VALUE.match(said, end)
                and _counts(said, match.end(), end)
            ):
                yield Mark(scale.read_text(said[match.end() :], foreign=False), at=sentence.start)


def _without_scale(said: str, scale: Scale) -> str:
    """The sentence without "on a scale of 1 to 5"; nothing of it where that is another scale."""
    phrase = SCALE_PHRASE.search(said)
    if phrase is None:
        return said
    return f"{said[: phrase.start()]} {said[phrase.end() :]}".strip() if scale.named_by(phrase) else ""


def _counts(sentence: str, start: int, end: int) -> bool:
    lead = sentence[:start]
    if (
        cues.is_quotation(lead)
        or cues.SUPPOSES.search(lead)
        or re.search(r"\b(?:not|never|need\w*|requir\w*)\b|n't", lead, re.I)
    ):
        return False
    return _FRACTION_LEAD.search(lead) is not None and _AFTER_VALUE.match(sentence, end) is not None
