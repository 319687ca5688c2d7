"""Reading of a single verdict, one of a few words, out of a judge's reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.announced import announced, unquoted
from rubricate.judges.parsing.fields import find_fields, is_error, marks_of, reason_in
from rubricate.judges.parsing.labels import Hit, LabelFinder
from rubricate.judges.parsing.marks import (
    Mark,
    decide,
    outcome,
    refuse_if_refused,
    unreadable,
)
from rubricate.judges.parsing.prose import bare_marks, last_word, read_phrase, stated_marks
from rubricate.judges.parsing.reading import Reading, Structure, read_reply
from rubricate.judges.parsing.synonyms import Concept
from rubricate.judges.parsing.text import compact, plain, sentences
from rubricate.judges.parsing.vocabulary import Unreadable, Vocabulary, vocabulary_of

__all__ = ["parse_verdict", "takes_back", "text_marks", "verdict_labels"]

ALIASES = (
    "verdict",
    "judgement",
    "judgment",
    "decision",
    "criteria_met",
    "criterion_met",
    "is_met",
    "met",
    "satisfied",
    "is_satisfied",
    "label",
    "answer",
)
_STRONG = ("verdict", "judgement", "judgment", "decision", "ruling")
_WEAK = (
    "answer",
    "conclusion",
    "result",
    "determination",
    "assessment",
    "status",
    "outcome",
    "rating",
    "evaluation",
    "overall",
    "grade",
    "level",
    "label",
    "class",
    "category",
    "choice",
)
# "Rating: 1" is a number on some scale, not a yes.
_NUMERIC = ("rating", "level", "grade", "result", "evaluation", "bewertung", "оценка", "评价", "評価", "overall")
_FOREIGN = (
    "urteil ergebnis fazit bewertung entscheidung antwort veredicto conclusión resultado respuesta decisión "
    "veredito"
    " conclusão verdetto conclusione esito conclusion résultat décision réponse oordeel"
    " 结论 結論 判定 判断 判斷 裁决 判决 最终答案 答案 评价 評価 評決 判決 回答 결론 판정 평결 판단 вердикт "
    "вывод оценка решение"
).split()


@lru_cache(maxsize=64)
def verdict_labels(key: str) -> LabelFinder:
    """Labels that announce a verdict."""
    return LabelFinder([key.replace("_", " "), *_STRONG, *_WEAK], _FOREIGN)


def parse_verdict(
    reply: str, choices: Sequence[str] = ("met", "unmet"), *, key: str = "verdict", quoted: Sequence[str] = ()
) -> str:
    """The verdict of a judge's reply, as it is spelled in `choices`.

    Reads JSON (`key`, at the top or inside the usual wrappers), labelled lines, a bare word, and plain sentences on
    whether the criterion is met. Plain synonyms of met and unmet count in several languages. What stands in a
    reasoning block, is quoted, supposed or offered as an option does not. A correction or a final verdict replaces
    an earlier one; verdicts that contradict each other, or the reason given, are ambiguous.

    Args:
        reply: the judge's visible reply.
        choices: the allowed verdicts.
        key: the JSON key that was asked for.
        quoted: texts that the judge was shown; longer passages copied from them do not count.

    Raises ParseError, with its `kind`, when there is no plain verdict.
    """
    words = vocabulary_of(choices)
    return agreed(lambda text: _verdict(text, words, key, quoted), reply, quoted)


def _verdict(reply: str, words: Vocabulary, key: str, quoted: Sequence[str]) -> str:
    reading = read_reply(reply, quoted)
    finder = verdict_labels(key)
    marks, reasons = _marks(reading, words, finder, key)
    if marks:
        refuse_if_refused(reasons, reply)
        verdict = decide(marks, reply, "verdict")
    else:
        verdict, reasons = _from_prose(reading, words, finder), []
    if any(takes_back(reason, verdict, words, finder) for reason in reasons) or (
        reading.structures and _denies(reading.behind, verdict, words)
    ):
        raise unreadable(Unreadable.AMBIGUOUS, reply, "verdict")
    return verdict


_IT = re.compile(
    r"(?:(?:so|thus|but|actually|in fact|no)[, ]+)*(?:it|this) (?:is|was) (?P<said>[^,;:\n]{1,40})", re.I
)


def _denies(behind: str, verdict: str, words: Vocabulary) -> bool:
    """Whether a sentence behind the JSON is nothing but another verdict: "Unmet.", "It is not met."."""
    for sentence in sentences(behind):
        it = _IT.fullmatch(sentence.text.rstrip(" .!"))
        said = words.exact(it["said"] if it else sentence.text)
        if isinstance(said, str) and said != verdict and (not it or words.polar):
            return True
    return False


def _marks(reading: Reading, words: Vocabulary, finder: LabelFinder, key: str) -> tuple[list[Mark[str]], list[str]]:
    """All announced verdicts in order, and the texts that must not contradict the one that counts."""
    marks: list[Mark[str]] = []
    reasons: list[str] = []
    before = ""
    for index, part in enumerate(reading.parts):
        if isinstance(part, Structure):
            found = marks_of(find_fields(part.value, key, ALIASES), words.read, index, part.lead)
            if found and marks and cues.CORRECTS.search(before):
                found[0] = replace(found[0], correction=True)
            if found:
                reasons.append(reason_in(part.value))
            marks += found
            before = ""
        else:
            marks += text_marks(part, words, finder, index, after=bool(marks))
            reasons.append(part)
            before = part[-600:]
    return marks, reasons if len(reasons) < 50 else []


def text_marks(
    text: str, words: Vocabulary, finder: LabelFinder, part: int = 0, *, after: bool = False
) -> list[Mark[str]]:
    """Verdicts that a passage announces by a label or a closing tag, and what takes the last one back.

    Args:
        text: plain text.
        words: the verdicts.
        finder: the labels.
        part: part of the reply.
        after: a verdict stands in front of the passage.
    """

    def read(hit: Hit) -> str | Unreadable | None:
        value = read_phrase(hit.value, words)
        if hit.qualified and not isinstance(value, str):
            return None
        if words.polar and hit.noun in _NUMERIC and hit.value.strip(" *\"'")[:1].isdigit():
            return None
        return value

    def corrected(said: str) -> str | Unreadable | None:
        value = words.read_text(said.strip(" ,:;.-"))
        if isinstance(value, str):
            return value
        return Unreadable.AMBIGUOUS if words.named(said) else None

    return announced(
        unquoted(finder.untag(text), words.exact),
        finder,
        strong=_STRONG,
        read=read,
        exact=words.exact,
        corrected=corrected,
        part=part,
        after=after,
    )


def _from_prose(reading: Reading, words: Vocabulary, finder: LabelFinder) -> str:
    text = unquoted(reading.text, words.exact)
    if cues.is_strong_refusal(text):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    bare = list(bare_marks(text, words))
    verdict = outcome(bare)
    if bare and isinstance(verdict, Unreadable):
        raise unreadable(verdict, reading.reply, "verdict")
    if isinstance(verdict, str):
        if takes_back(text, verdict, words, finder):
            raise unreadable(Unreadable.AMBIGUOUS, reading.reply, "verdict")
        return verdict
    said = list(stated_marks(text, words))
    verdict = outcome(said)
    if isinstance(verdict, str):
        return verdict
    raise _no_verdict(reading, words, text, bool(said))


def _no_verdict(reading: Reading, words: Vocabulary, text: str, said: bool) -> ParseError:
    if any(is_error(part.value) for part in reading.structures) or cues.is_refusal(text):
        return ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    if any(not part.complete for part in reading.structures):
        return ParseError("the reply was cut before its verdict", kind="incomplete", reply=reading.reply)
    if said or len(words.named(text)) > 1 or (words.named(text) and cues.HEDGES.search(text)):
        return unreadable(Unreadable.AMBIGUOUS, reading.reply, "verdict")
    return unreadable(Unreadable.UNKNOWN, reading.reply, "verdict")


def takes_back(reason: str, verdict: str, words: Vocabulary, finder: LabelFinder) -> bool:
    """Whether a reason ends by saying the opposite of the verdict.

    Only statements about the criterion as a whole count, announced verdicts, and "... would be wrong".
    """
    if not words.polar or verdict not in (words.of_concept(Concept.MET), words.of_concept(Concept.UNMET)):
        return False
    text = unquoted(compact(plain(reason)), words.exact)
    said = last_word(text, verdict, words)
    if isinstance(said, Unreadable) or said not in ("", verdict):
        return True
    marked = outcome(text_marks(text, words, finder))
    return isinstance(marked, str) and marked != verdict
