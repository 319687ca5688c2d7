"""The reason that a judge gives with its verdict."""

from __future__ import annotations

from rubricate.errors import ParseError
from rubricate.judges.parsing.fields import reason_in
from rubricate.judges.parsing.labels import LabelFinder
from rubricate.judges.parsing.reading import Structure, read_reply
from rubricate.judges.parsing.text import MASK, mend_surrogates

__all__ = ["parse_reason"]

_VERDICTS = LabelFinder(
    [
        "verdict",
        "judgement",
        "judgment",
        "decision",
        "score",
        "rating",
        "grade",
        "winner",
        "answer",
        "choice",
        "conclusion",
    ],
    ["urteil", "bewertung", "veredicto", "结论", "判定", "评分", "評価"],
)
_REASONS = LabelFinder(
    ["reason", "reasons", "explanation", "justification", "rationale", "analysis"], ["begründung", "理由", "원인"]
)


def parse_reason(reply: str) -> str:
    """The reason in a judge's reply: a JSON field, a labelled passage, or the text around the verdict.

    Empty when the reply has none. Reasoning blocks are left out. Never raises.
    """
    try:
        reading = read_reply(reply)
    except ParseError:
        return ""
    for part in reversed(reading.parts):
        if isinstance(part, Structure):
            reason = reason_in(part.value)
            if reason:
                return reason
    text = reading.text.replace(MASK, " ")
    labelled = next((hit for hit in _REASONS.find(text) if hit.colon), None)
    start = labelled.end if labelled is not None else 0
    verdict = next((hit for hit in _VERDICTS.find(text) if hit.colon and hit.start >= start), None)
    reason = text[start : verdict.start] if verdict is not None else text[start:]
    if not reason.strip() and verdict is not None:
        reason = text[verdict.end :].partition("\n")[2]
    return mend_surrogates(reason.strip())
