"""Decisions APIs on the wire: typed questions to bodies, replies to probabilities, in three dialects.

Field names as in vLLM's `vllm/entrypoints/openai/decisions/protocol.py` (09e6fa5) and the openai package's
`Decision` types, SGLang's `docs/docs/supported-models/decision_models.mdx` (07ee02b) and `serving_decisions.py`
(17842cb), and vLLM's `docs/serving/online_serving/structured_decisions.md` (02cc9cd).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rubricate.errors import ParseError, RequestError, ServerError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import Usage

__all__ = [
    "DIALECTS",
    "DecisionAnswer",
    "DecisionDialect",
    "DecisionQuestion",
    "parse_reply",
    "read_answers",
    "read_questions",
    "write_answers",
    "write_questions",
]

_MOST_LEVELS = 10
_ROUNDING = 0.02  # servers round probabilities; their sum and mean may be off by so much


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A yes/no question, or a rating on named levels.

    Attributes:
        id: unique in its request.
        text: a statement that may be true, or what is to be rated.
        levels: (label, description) of 2 to 10 levels, lowest first; empty for yes and no.
    """

    id: str
    text: str
    levels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """What was read for a question.

    Attributes:
        probabilities: of no and yes, or of the levels in order; they sum to 1. Empty where the model refused.
        mass: probability of the answers in the whole vocabulary, in [0, 1], None where the server does not say.
    """

    probabilities: tuple[float, ...]
    mass: float | None = None

    @property
    def refused(self) -> bool:
        return not self.probabilities


@dataclass(frozen=True, slots=True)
class DecisionDialect:
    """How a server wants questions and gives answers.

    Attributes:
        path: below the base address.
        most: questions in one request.
        body: questions and input to a body, without its model; the flag asks for yes and no in a form whose answer
            has a mass.
        answer: one question's part of the reply to its answer.
        listed: answers come as a list in the order of the questions, with their names; else by id.
        named: the body names the model.
    """

    path: str
    most: int
    body: Callable[[str, Sequence[DecisionQuestion], bool], dict[str, object]]
    answer: Callable[[Mapping[str, object], DecisionQuestion], DecisionAnswer]
    listed: bool = False
    named: bool = True


def write_questions(questions: Sequence[DecisionQuestion]) -> list[object]:
    """Questions as JSON values, for a ChatRequest's `extra`."""
    return [[question.id, question.text, [list(level) for level in question.levels]] for question in questions]


def read_questions(value: object, provider: str) -> list[DecisionQuestion]:
    """The questions that `write_questions` wrote. Raises RequestError for none, or for what no server takes."""
    questions: list[DecisionQuestion] = []
    for item in _list(value):
        parts = (*_list(item), "", "", ())
        pairs = [(*_list(level), "", "") for level in _list(parts[2])]
        levels = tuple((str(pair[0]), str(pair[1])) for pair in pairs)
        questions.append(DecisionQuestion(str(parts[0]), str(parts[1]), levels))
    if not questions:
        hint = "use it with a DecisionsJudge; name the server without `decisions:` for chat"
        raise RequestError(
            "this back end answers decisions, and the request has none", provider=provider, hint=hint
        )
    for question in questions:
        if not question.text.strip() or len(question.levels) == 1 or len(question.levels) > _MOST_LEVELS:
            message = f"question {question.id!r} needs a text, and {_MOST_LEVELS} levels at most or none"
            raise RequestError(message, provider=provider)
    if len({question.id for question in questions}) < len(questions):
        raise RequestError("two questions have the same id", provider=provider)
    return questions


def _list(value: object) -> Sequence[object]:
    return as_array(value) or ()


def write_answers(answers: Mapping[str, DecisionAnswer]) -> str:
    """Answers by question id as JSON text: the text of the Completion."""
    record = {name: {"probabilities": a.probabilities, "mass": a.mass} for name, a in answers.items()}
    return json.dumps({"answers": record}, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def read_answers(text: str, questions: Sequence[DecisionQuestion]) -> dict[str, DecisionAnswer]:
    """The answers that `write_answers` wrote, all of them. Raises ParseError for anything else."""
    try:
        found: object = json.loads(text)
    except ValueError:
        found = None
    record = as_object((as_object(found) or {}).get("answers"))
    answers: dict[str, DecisionAnswer] = {}
    for question in questions:
        part = as_object((record or {}).get(question.id))
        if part is None:
            hint = "name the model decisions:http://HOST:PORT/v1"
            raise ParseError(f"no decision on {question.id!r}", kind="incomplete", reply=text, hint=hint)
        mass = part.get("mass")
        try:
            shares = tuple(_share(value) for value in _list(part.get("probabilities")))
            if shares and len(shares) != (len(question.levels) or 2):
                raise _Wrong(f"{len(shares)} probabilities")
            answers[question.id] = DecisionAnswer(shares, None if mass is None else _share(mass))
        except _Wrong as wrong:
            raise ParseError(f"no decision on {question.id!r}: {wrong}", reply=text) from None
    return answers


class _Wrong(Exception):
    """What is wrong with a reply."""


def _share(value: object) -> float:
    number = as_number(value)
    if number is None or not -1e-6 <= number <= 1.0 + 1e-3:
        raise _Wrong(f"{value!r} is no probability")
    return min(max(number, 0.0), 1.0)


def parse_reply(
    record: object, questions: Sequence[DecisionQuestion], dialect: DecisionDialect, provider: str
) -> tuple[dict[str, DecisionAnswer], Usage]:
    """The answers of a reply by question id, and what they cost.

    Raises ServerError (retryable) for a reply that does not answer every question once, in its type, with
    probabilities: nothing of it can be relied on then.
    """
    reply = as_object(record) or {}
    try:
        parts = _listed(reply, questions) if dialect.listed else _by_id(reply, questions)
        answers: dict[str, DecisionAnswer] = {}
        for question, part in zip(questions, parts, strict=True):
            try:
                answers[question.id] = dialect.answer(part, question)
            except _Wrong as wrong:
                raise _Wrong(f"question {question.id!r}: {wrong}") from None
    except _Wrong as wrong:
        raise ServerError(
            f"the server's decisions cannot be used: {wrong}", provider=provider, status=200
        ) from None
    return answers, _usage(reply.get("usage"))


def _listed(reply: Mapping[str, object], questions: Sequence[DecisionQuestion]) -> list[Mapping[str, object]]:
    parts = [as_object(part) for part in _list(reply.get("answers"))]
    names = [None if part is None else part.get("name") for part in parts]
    if names != [question.id for question in questions]:
        raise _Wrong(f"{len(questions)} questions were asked, the answers are to {names}"[:300])
    return [part for part in parts if part is not None]


def _by_id(reply: Mapping[str, object], questions: Sequence[DecisionQuestion]) -> list[Mapping[str, object]]:
    answers = as_object(reply.get("answers")) or {}
    diagnostics = as_object(reply.get("diagnostics")) or {}
    if set(answers) != {question.id for question in questions}:
        raise _Wrong(f"{len(questions)} questions were asked, the answers are to {sorted(answers)}"[:300])
    return [
        {**(as_object(answers[question.id]) or {}), "diagnostics": diagnostics.get(question.id)}
        for question in questions
    ]


def _usage(value: object) -> Usage:
    """Chat-style or Responses-style counts."""
    usage = as_object(value) or {}

    def count(*names: str) -> int:
        found = next((number for name in names if (number := as_number(usage.get(name))) is not None), 0.0)
        return max(int(found), 0)

    details = as_object(usage.get("input_tokens_details") or usage.get("prompt_tokens_details")) or {}
    cached = as_number(details.get("cached_tokens")) or 0.0
    return Usage(
        1, count("input_tokens", "prompt_tokens"), count("output_tokens", "completion_tokens"), max(int(cached), 0)
    )


def _distribution(shares: Sequence[object], question: DecisionQuestion, score: object) -> tuple[float, ...]:
    """Probabilities of all levels, checked against their mean, which is the answer's `score`."""
    found = tuple(_share(share) for share in shares)
    if len(found) != len(question.levels):
        raise _Wrong(f"{len(found)} probabilities for {len(question.levels)} levels")
    if abs(math.fsum(found) - 1.0) > _ROUNDING:
        raise _Wrong(f"the probabilities sum to {math.fsum(found):g}")
    mean = math.fsum(level * share for level, share in enumerate(found))
    said = as_number(score)
    if said is None or abs(said - mean) > _ROUNDING * len(found):
        raise _Wrong(f"the score is {score!r}, its probabilities make it {mean:g}")
    return found


def _yes(value: object) -> tuple[float, float]:
    share = _share(value)
    return 1.0 - share, share


def _expect(part: Mapping[str, object], *kinds: str) -> None:
    if part.get("type") not in kinds:
        raise _Wrong(f"an answer of type {part.get('type')!r} where {' or '.join(kinds)} was asked for")


def _openai_body(text: str, questions: Sequence[DecisionQuestion], with_mass: bool) -> dict[str, object]:
    asked: list[dict[str, object]] = []
    for question in questions:
        shape: dict[str, object] = {"type": "predicate"}
        if question.levels:
            levels = [{"label": label} | ({"description": more} if more else {}) for label, more in question.levels]
            shape = {"type": "score", "levels": levels}
        elif with_mass:
            shape = {"type": "choice", "choices": [{"value": False}, {"value": True}]}
        asked.append({**shape, "instructions": question.text, "name": question.id})
    return {"input": text, "questions": asked}


def _openai_answer(part: Mapping[str, object], question: DecisionQuestion) -> DecisionAnswer:
    if part.get("type") == "refusal":
        return DecisionAnswer(())
    if not question.levels and part.get("type") == "predicate":
        return DecisionAnswer(_yes(part.get("probability")))
    _expect(part, *(("score",) if question.levels else ("predicate", "choice")))
    entries = [as_object(entry) or {} for entry in _list(part.get("probabilities"))]
    shares = [entry.get("probability") for entry in entries]
    if question.levels:
        if [entry.get("value") for entry in entries] != list(range(len(question.levels))):
            raise _Wrong("the levels are not in order")
        found = _distribution(shares, question, part.get("score"))
    else:
        chosen = {entry.get("value"): share for entry, share in zip(entries, shares, strict=True)}
        if len(entries) != 2 or not all(isinstance(value, bool) for value in chosen):
            raise _Wrong("the choices are not true and false")
        found = (_share(chosen.get(False)), _share(chosen.get(True)))
    # vLLM's confidence is the top answer's probability times the mass on all answers
    confidence = _share(part.get("confidence"))
    return DecisionAnswer(found, min(confidence / max(found), 1.0))


def _sglang_body(text: str, questions: Sequence[DecisionQuestion], with_mass: bool) -> dict[str, object]:
    asked: list[dict[str, object]] = []
    for question in questions:
        shape: dict[str, object] = {"type": "yes_no"}
        if question.levels:
            shape = {"type": "score", "levels": [_level(*level) for level in question.levels]}
        asked.append({"id": question.id, **shape, "question": question.text})
    return {"input": text, "questions": asked}


def _level(label: str, more: str) -> str:
    return f"{label}: {more}" if more else label


def _sglang_answer(part: Mapping[str, object], question: DecisionQuestion) -> DecisionAnswer:
    shares = as_object(part.get("probabilities")) or {}
    mass = _share(part.get("label_mass"))
    if question.levels:
        _expect(part, "score")
        listed = [shares.get(str(level)) for level in range(len(question.levels))]
        return DecisionAnswer(_distribution(listed, question, part.get("score")), mass)
    _expect(part, "yes_no")
    found = (_share(shares.get("no")), _share(shares.get("yes")))
    if abs(math.fsum(found) - 1.0) > _ROUNDING:
        raise _Wrong(f"yes and no sum to {math.fsum(found):g}")
    return DecisionAnswer(found, mass)


def _systemone_body(text: str, questions: Sequence[DecisionQuestion], with_mass: bool) -> dict[str, object]:
    asked: dict[str, object] = {}
    for question in questions:
        shape: dict[str, object] = {"type": "noul", "instructions": question.text}
        if question.levels:
            levels = [_level(*level) for level in question.levels]
            shape = {"type": "score", "instructions": question.text, "criteria": levels}
        asked[question.id] = shape
    return {"state": text, "questions": asked}


def _systemone_answer(part: Mapping[str, object], question: DecisionQuestion) -> DecisionAnswer:
    diagnostics = as_object(part.get("diagnostics")) or {}
    mass = diagnostics.get("label_mass", part.get("x_label_mass"))
    known = None if mass is None else _share(mass)
    if not question.levels:
        _expect(part, "noul")
        return DecisionAnswer(_yes(part.get("noul")), known)
    _expect(part, "score")
    shares = as_object(part.get("probabilities")) or {}
    listed = [shares.get(str(level)) for level in range(len(question.levels))]
    return DecisionAnswer(_distribution(listed, question, part.get("score")), known)


DIALECTS: Mapping[str, DecisionDialect] = {
    "openai": DecisionDialect("/decisions", 200, _openai_body, _openai_answer, listed=True),
    # its `model` selects nothing, and a colon in it is refused
    "sglang": DecisionDialect("/decisions", 200, _sglang_body, _sglang_answer, named=False),
    "systemone": DecisionDialect("/systemone", 64, _systemone_body, _systemone_answer),
}
"""`openai` (OpenAI, vLLM 0.33), `sglang` (SGLang 0.5.23) and `systemone` (both servers) by name."""
