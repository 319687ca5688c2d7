"""Reading of a preference between responses out of a judge's reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.contest import Contest, contest_of
from rubricate.judges.parsing.fields import find_fields, is_error, marks_of, reason_in
from rubricate.judges.parsing.labels import LabelFinder, find_tags
from rubricate.judges.parsing.marks import (
    MOST_MARKS,
    Mark,
    Standing,
    decide,
    outcome,
    refuse_if_refused,
    unreadable,
)
from rubricate.judges.parsing.reading import Reading, Structure, read_reply
from rubricate.judges.parsing.text import mask_quotes, plain, sentences
from rubricate.judges.parsing.vocabulary import Unreadable, as_known

__all__ = ["parse_preference"]

_ALIASES = (
    "winner",
    "preference",
    "preferred",
    "preferred_response",
    "choice",
    "better",
    "better_response",
    "best",
    "best_response",
    "verdict",
    "decision",
    "judgement",
    "judgment",
    "chosen",
    "selected",
    "answer",
    "label",
)
_STRONG = ("winner", "verdict", "choice", "preference", "preferred", "decision", "judgement", "judgment")
_WEAK = (
    "answer conclusion result better best ranking selection selected chosen pick vote outcome comparison "
    "overall".split()
    + [
        f"{word} {noun}"
        for word in ("better", "best", "preferred", "chosen", "winning")
        for noun in ("response", "answer", "one")
    ]
)
_FOREIGN = (
    "gewinner sieger urteil ergebnis entscheidung ganador veredicto elección gagnant vainqueur verdetto "
    "vincitore vencedor"
    " 结论 結論 判定 胜者 勝者 获胜者 选择 最终答案 答案 勝ち 評決 승자 결론 판정 선택 победитель вердикт вывод"
).split()


@lru_cache(maxsize=64)
def _labels(key: str) -> LabelFinder:
    return LabelFinder([key.replace("_", " "), *_STRONG, *_WEAK], _FOREIGN)


def parse_preference(
    reply: str,
    labels: Sequence[str],
    *,
    ties: bool,
    tie_label: str | None = None,
    key: str = "winner",
    quoted: Sequence[str] = (),
) -> str:
    """Which response a judge prefers: one of `labels`, or `"tie"`.

    Reads JSON (`key`), labelled lines (`Winner: Response A`), closing tags (`[[A]]`, `<answer>[[A]]</answer>`,
    `[[A>>B]]`, `\\boxed{B}`), comparison signs, and sentences that name the better response.

    Args:
        reply: the judge's visible reply.
        labels: the responses' labels in the order shown. "Response A" and "A" mean the same side.
        ties: whether the judge may call a tie. A tie that was not offered is ambiguous.
        tie_label: the label that stands for a tie, where the protocol has one.
        key: the JSON key that was asked for.
        quoted: texts that the judge was shown; longer passages copied from them do not count.

    Raises ParseError, with its `kind`, when no preference is plain.
    """
    contest = contest_of(labels, ties, tie_label)
    reading = read_reply(reply, quoted)
    marks, reasons = _marks(reading, contest, key)
    if not marks:
        return _from_prose(reading, contest)
    refuse_if_refused(reasons, reply)
    winner = decide(marks, reply, "preference")
    for reason in reasons:
        said = outcome(list(contest.statements(_unquoted(reason, contest))))
        if isinstance(said, str) and said != winner:
            raise unreadable(Unreadable.AMBIGUOUS, reply, "preference")
    return winner


def _marks(reading: Reading, contest: Contest, key: str) -> tuple[list[Mark[str]], list[str]]:
    marks: list[Mark[str]] = []
    reasons: list[str] = []
    before = ""
    for index, part in enumerate(reading.parts):
        if isinstance(part, Structure):
            found = marks_of(find_fields(part.value, key, _ALIASES), contest.read, index, part.lead)
            if found and marks and cues.CORRECTS.search(before):
                found[0] = replace(found[0], correction=True)
            if found:
                reasons.append(plain(reason_in(part.value)))
            marks += found
            before = ""
        else:
            marks += _text_marks(part, contest, key, index, bool(marks))
            reasons.append(part)
            before = part[-600:]
    return marks, reasons if len(reasons) < 50 else []


def _unquoted(text: str, contest: Contest) -> str:
    return mask_quotes(
        text, lambda inner: len(inner) < 60 and inner[0] not in "[\\" and isinstance(contest.exact(inner), str)
    )


def _text_marks(text: str, contest: Contest, key: str, part: int, after: bool) -> list[Mark[str]]:
    finder = _labels(key)
    text = _unquoted(finder.untag(text), contest)
    marks: list[Mark[str]] = []
    since = 0
    for count, hit in enumerate(finder.find(text)):
        if count == MOST_MARKS:
            return [Mark(Unreadable.AMBIGUOUS, part=part)]
        if hit.qualified:
            continue
        value = contest.read_text(hit.value)
        if value is Unreadable.PLACEHOLDER:
            continue
        if value is Unreadable.UNKNOWN and not (hit.colon and hit.noun in _STRONG and len(hit.value.strip()) < 40):
            continue
        correction = hit.correction or cues.CORRECTS.search(text, since, hit.start) is not None
        marks.append(Mark(value, hit.standing, correction and bool(marks), part, hit.start))
        since = hit.end
    for value, start in find_tags(text, lambda inner: as_known(contest.exact(inner))):
        marks.append(Mark(value, Standing.PLAIN, False, part, start))
        since = max(since, start)
    marks.sort(key=lambda mark: mark.at)
    if marks or after:
        for said in cues.corrections(text[since:]):
            value = contest.read_text(said.strip(" ,:;.-"))
            if isinstance(value, str) or contest.mentions(said):
                found = value if isinstance(value, str) else Unreadable.AMBIGUOUS
                marks.append(Mark(found, Standing.FINAL, True, part, len(text)))
    return marks


def _from_prose(reading: Reading, contest: Contest) -> str:
    text = _unquoted(reading.text, contest)
    if cues.is_strong_refusal(text):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    marks: list[Mark[str]] = list(contest.statements(text))
    for sentence in sentences(text):
        value = contest.exact(sentence.text)
        if value is not Unreadable.UNKNOWN:
            marks.append(Mark(value, at=sentence.start))
    if marks:
        return decide(sorted(marks, key=lambda mark: mark.at), reading.reply, "preference")
    if any(is_error(part.value) for part in reading.structures) or cues.is_refusal(text):
        raise ParseError("the judge refused to judge", kind="refusal", reply=reading.reply)
    if any(not part.complete for part in reading.structures):
        raise ParseError("the reply was cut before its preference", kind="incomplete", reply=reading.reply)
    if not re.search(r"\w", text):
        raise unreadable(Unreadable.UNKNOWN, reading.reply, "preference")
    raise unreadable(Unreadable.UNKNOWN, reading.reply, "preference")
