"""The reply that our judge prompts ask for: its questions, its JSON schema, and reading it strictly.

The reply lists each criterion with its reason and verdict, and closes with the verdicts once more. The closing list
shows that nothing was cut, and a verdict that it contradicts is no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rubricate.errors import ConfigError, ParseError
from rubricate.judges.base import failure
from rubricate.judges.parsing import (
    find_json,
    parse_criterion_scores,
    parse_criterion_verdicts,
    parse_score,
    parse_verdict,
)
from rubricate.narrow import as_array, as_number, as_object
from rubricate.rubrics import BinaryScale, Criterion, Level, NumericScale, OrdinalScale
from rubricate.types import Failure, FailureKind

__all__ = ["NOT_APPLICABLE", "Answer", "Question", "question_of", "read_reply", "reply_schema"]

NOT_APPLICABLE = "not_applicable"
_BINARY = ("met", "unmet")


@dataclass(frozen=True, slots=True)
class Question:
    """A criterion as the judge sees it. Its own id, weight and polarity stay hidden.

    Attributes:
        label: `C1`, `C2`, ... in the order of the rubric.
        choices: allowed verdicts, empty for a numeric range.
        allowed: the allowed verdicts in words, empty for plain met and unmet.
        levels: described levels of an ordinal scale.
    """

    criterion: Criterion
    label: str
    choices: tuple[str, ...]
    allowed: str
    levels: tuple[Level, ...] = ()

    @property
    def text(self) -> str:
        return self.criterion.text

    @property
    def condition(self) -> str | None:
        return self.criterion.condition

    @property
    def answer_form(self) -> object:
        """Equal for questions that are answered in the same words, so that they can share a call."""
        scale = self.criterion.scale
        span = (scale.low, scale.high, scale.integer) if isinstance(scale, NumericScale) else None
        return self.choices, span


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict as it was given (`raw`, in the scale's words) and as a score in [0, 1].

    The score is None for `not_applicable` and for nothing else.
    """

    raw: str | float
    score: float | None
    reason: str


def question_of(criterion: Criterion, label: str) -> Question:
    """The question that a criterion becomes.

    Raises ConfigError where a level has the name of the verdict that the criterion does not apply.
    """
    escape = (NOT_APPLICABLE,) if criterion.condition else ()
    scale = criterion.scale
    if isinstance(scale, BinaryScale):
        choices = _BINARY + escape
        return Question(criterion, label, choices, _quoted(choices) if escape else "")
    if isinstance(scale, OrdinalScale):
        labels = tuple(level.label for level in scale.levels)
        if escape and any(name.strip().casefold().replace(" ", "_") == NOT_APPLICABLE for name in labels):
            raise ConfigError(
                f"criterion {criterion.id!r} has a condition and a level called {NOT_APPLICABLE!r}",
                hint="rename the level, or leave out the condition",
            )
        choices = labels + escape
        return Question(criterion, label, choices, _quoted(choices), scale.levels)
    number = "a whole number" if scale.integer else "a number"
    allowed = f"{number} from {scale.low:g} to {scale.high:g}" + (f', or "{NOT_APPLICABLE}"' if escape else "")
    return Question(criterion, label, escape, allowed)


def _quoted(choices: Sequence[str]) -> str:
    return ", ".join(f'"{choice}"' for choice in choices)


def reply_schema(batch: Sequence[Question]) -> dict[str, object]:
    """JSON schema of the reply. Reasons come before verdicts, since schema order is decoding order."""
    forms = {question.label: _verdict_schema(question) for question in batch}
    entry = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "enum": list(forms)},
            "reason": {"type": "string"},
            "verdict": forms[batch[0].label],
        },
        "required": ["id", "reason", "verdict"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "verdicts": {"type": "array", "items": entry, "minItems": len(batch), "maxItems": len(batch)},
            "final": {
                "type": "object",
                "properties": forms,
                "required": list(forms),
                "additionalProperties": False,
            },
        },
        "required": ["verdicts", "final"],
        "additionalProperties": False,
    }


def _verdict_schema(question: Question) -> dict[str, object]:
    scale = question.criterion.scale
    if not isinstance(scale, NumericScale):
        return {"type": "string", "enum": list(question.choices)}
    number = {"type": "integer" if scale.integer else "number", "minimum": scale.low, "maximum": scale.high}
    if not question.choices:
        return dict(number)
    return {"anyOf": [number, {"type": "string", "enum": list(question.choices)}]}


def read_reply(
    reply: str, batch: Sequence[Question], quoted: Sequence[str] = (), *, closing_list: bool = True
) -> tuple[dict[str, Answer], dict[str, Failure]]:
    """Answers by label, and for every other label why there is none.

    Args:
        quoted: the texts that the judge was shown; longer passages copied from them are not its verdicts.
        closing_list: a reply without one has no verdicts: it may have been cut, whatever the server says.

    Raises ParseError when nothing in the reply can be used.
    """
    labels = [question.label for question in batch]
    choices = batch[0].choices
    scale = batch[0].criterion.scale
    if isinstance(scale, NumericScale):
        spans = {label: (scale.low, scale.high) for label in labels}
        numbers = parse_criterion_scores(reply, spans, integer=scale.integer, choices=choices, quoted=quoted)
        raws: dict[str, str | float] = dict(numbers.scores)
        reasons, ambiguous = numbers.reasons, numbers.ambiguous
    else:
        words = parse_criterion_verdicts(reply, labels, choices, quoted=quoted)
        raws = dict(words.verdicts)
        reasons, ambiguous = words.reasons, words.ambiguous
    closing = _closing(reply, labels)
    answers: dict[str, Answer] = {}
    failures: dict[str, Failure] = {}
    for question in batch:
        label = question.label
        if label in ambiguous:
            failures[label] = _failed(FailureKind.AMBIGUOUS, f"contradictory verdicts on {label}")
        elif label not in raws:
            failures[label] = _failed(FailureKind.INCOMPLETE, f"no usable verdict on {label}")
        elif closing is None and closing_list:
            failures[label] = _failed(FailureKind.INCOMPLETE, "the reply does not close with its verdicts")
        elif closing is not None and not _agrees(closing.get(label), raws[label], question):
            failures[label] = _failed(FailureKind.AMBIGUOUS, f"the closing list disagrees on {label}")
        else:
            raw = raws[label]
            answers[label] = Answer(raw, _score(question, raw), reasons.get(label, ""))
    return answers, failures


def _failed(kind: FailureKind, message: str) -> Failure:
    return failure(kind, message, retryable=True)


def _closing(reply: str, labels: Sequence[str]) -> dict[str, object] | None:
    """The closing list, or None where the reply has none.

    It may be a bare list in order, or, for one criterion, a bare verdict. One that cannot be read agrees with none.
    """
    final = (as_object(find_json(reply)) or {}).get("final")
    if final is None:
        return None
    named = as_object(final)
    if named is not None:
        return dict(named)
    listed = as_array(final)
    if listed is None:
        listed = (final,)
    return dict(zip(labels, listed, strict=True)) if len(listed) == len(labels) else {}


def _agrees(closing: object, raw: str | float, question: Question) -> bool:
    choices, scale = question.choices, question.criterion.scale
    if isinstance(raw, float):
        number = as_number(closing)
        if isinstance(closing, str) and isinstance(scale, NumericScale):
            try:
                number = parse_score(closing, scale.low, scale.high, integer=scale.integer)
            except ParseError:
                return False
        return number is not None and abs(number - raw) < 1e-9
    if closing == raw:
        return True
    if isinstance(closing, int | float) and not isinstance(closing, bool):
        closing = f"{closing:g}"
    try:
        return parse_verdict(str(closing), choices) == raw
    except ParseError:
        return False


def _score(question: Question, raw: str | float) -> float | None:
    scale = question.criterion.scale
    if raw == NOT_APPLICABLE and question.condition:  # else it is the name of a level
        return None
    if isinstance(scale, BinaryScale):
        return 1.0 if raw == "met" else 0.0
    if isinstance(scale, OrdinalScale):
        value = next(level.value for level in scale.levels if level.label == raw)
        return question.criterion.normalise(value)
    return question.criterion.normalise(float(raw))
