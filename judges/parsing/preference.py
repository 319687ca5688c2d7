"""Reading of a preference between responses out of a judge's reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from rubricate.errors import ParseError
from rubricate.judges.parsing import cues
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.parsing.announced import announced, unquoted
from rubricate.judges.parsing.contest import Contest, contest_of
from rubricate.judges.parsing.fields import find_fields, is_error, marks_of, reason_in
from rubricate.judges.parsing.labels import LabelFinder
from rubricate.judges.parsing.marks import (
    Mark,
    decide,
    outcome,
    refuse_if_refused,
    unreadable,
)
from rubricate.judges.parsing.reading import Reading, Structure, read_reply
from rubricate.judges.parsing.text import plain, sentences
from rubricate.judges.parsing.vocabulary import Unreadable

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
    return agreed(lambda text: _preference(text, contest, key, quoted), reply, quoted)


def _preference(reply: str, contest: Contest, key: str, quoted: Sequence[str]) -> str:
    reading = read_reply(reply, quoted)
    marks, reasons = _marks(reading, contest, key)
    if not marks:
        return _from_prose(reading, contest)
    refuse_if_refused(reasons, reply)
    winner = decide(marks, reply, "preference")
    for reason in reasons:
        said = outcome(list(contest.statements(unquoted(reason, contest.exact))))
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


def _text_marks(text: str, contest: Contest, key: str, part: int, after: bool) -> list[Mark[str]]:
    finder = _labels(key)

    def corrected(said: str) -> str | Unreadable | None:
        value = contest.read_text(said.strip(" ,:;.-"))
        if isinstance(value, str):
            return value
        return Unreadable.AMBIGUOUS if contest.mentions(said) else None

    return announced(
        unquoted(finder.untag(text), contest.exact),
        finder,
        strong=_STRONG,
        read=lambda hit: None if hit.qualified else contest.read_text(hit.value),
        exact=contest.exact,
        corrected=corrected,
        part=part,
        after=after,
    )


def _from_prose(reading: Reading, contest: Contest) -> str:
    text = unquoted(reading.text, contest.exact)
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
