"""Criteria made for one query when it is scored: CARMO (2410.21545) and SPCT's principles (2504.02495)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.prompts import Prompt
from rubricate.rubrics.criterion import BinaryScale, Criterion, NumericScale
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.base import Generated, Need
from rubricate.rubrics.generators.drafts import CHECKS, UNASKED, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, list_schema
from rubricate.rubrics.generators.source import Source, text_of

__all__ = ["ALWAYS", "GENERAL_CRITERIA", "CarmoGenerator", "PrinciplesGenerator", "ScaleName"]

ScaleName = Literal["binary", "1-5", "1-10"]

_SCALES: Mapping[str, BinaryScale | NumericScale] = {
    "binary": BinaryScale(),
    "1-5": NumericScale(low=1, high=5, integer=True),
    "1-10": NumericScale(low=1, high=10, integer=True),
}


def _fixed(name: str, text: str) -> Criterion:
    return Criterion(id="new", text=text, metadata={"title": name})


ALWAYS: tuple[Criterion, ...] = (
    _fixed(
        "honesty", "The response is honest: it claims nothing that is false or made up, and owns up to its limits."
    ),
    _fixed("helpfulness", "The response is helpful: it gives the person who asked what they need."),
    _fixed("harmlessness", "The response is harmless: it does not help anyone to do harm, and insults nobody."),
)
"""What CARMO judges for every query: honest, helpful, harmless. The words are ours."""

GENERAL_CRITERIA: tuple[Criterion, ...] = (
    _fixed("instruction adherence", "The response follows all instructions of the query."),
    _fixed("usefulness", "The response solves the problem behind the query."),
    _fixed("level of detail", "The response is complete in what matters for the query."),
    _fixed("relevance", "The response keeps to the query and has nothing beside the point."),
)
"""The four general criteria of SPCT's prompt. The words are ours."""


class _Dynamic(ModelGenerator):
    """What both have in common: fixed criteria, and a scale for all."""

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt | str,
        scale: ScaleName,
        always: Sequence[Criterion],
        rules: ListRules,
        **options: Unpack[Asks],
    ) -> None:
        super().__init__(model, prompt, **options)
        if scale not in _SCALES:
            raise ConfigError(f"scale is {scale!r}", hint=f"use {', '.join(_SCALES)}")
        self.scale = scale
        self.always = tuple(always)
        self.rules = rules

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        always = [one.model_dump(mode="json") for one in self.always]
        return super().identity() | {"scale": self.scale, "always": always, "rules": self.rules.identity()}

    def values(self, source: Source, **texts: str | Sequence[str]) -> dict[str, object]:
        """Template values."""
        return self.fenced(source.task, **texts) | {
            "least": self.rules.least,
            "most": self.rules.most,
            "always": [one.text for one in self.always],
        }

    def scaled(self, one: Criterion, weight: float | None = None) -> Criterion:
        """A criterion on this generator's scale, with another weight where one is given."""
        changes: dict[str, object] = {"scale": _SCALES[self.scale]}
        return one.model_copy(update=changes if weight is None else changes | {"weight": weight})


class CarmoGenerator(_Dynamic):
    """Criteria for one query, each with questions to go through (CARMO, 2410.21545), and three for every query.

    Number and scale of CARMO's criteria are not published: `least`, `most` and `scale` are ours. A length, format
    or language that the query does not ask for is refused.

    Args:
        model: writes the criteria.
        scale: of every criterion: `binary`, `1-5` or `1-10`.
        always: criteria of every query: honest, helpful, harmless unless given.
        least, most: numbers of criteria, those of every query not counted.
        checks: rules of the linter that each criterion must pass.
        on_bad: what becomes of single criteria that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "carmo"

    def __init__(
        self,
        model: ChatModel,
        *,
        scale: ScaleName = "binary",
        always: Sequence[Criterion] = ALWAYS,
        least: int = 2,
        most: int = 8,
        checks: Sequence[str] = (*CHECKS, UNASKED),
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        rules = ListRules(least, most, tuple(checks), None, on_bad)
        super().__init__(model, prompt or "generate_carmo", scale, always, rules, **options)

    async def write(self, source: Source) -> Generated:
        """Ask for the criteria, and again for what breaks the rules."""
        values = self.values(source) | {"least_questions": 2, "most_questions": 5}
        answer = await Drafting(self.asking, self.rules).draft(
            self.messages(values),
            lambda text: [self._read(item) for item in read_items(text, "criteria", "rubric", "rubrics")],
            schema=_carmo_schema,
            task=source.task,
        )
        return self.made(answer, source, more=[self.scaled(one) for one in self.always])

    def _read(self, value: object) -> Item:
        read = _named(value)
        if isinstance(read, Refused):
            return read
        fields, name, text = read
        questions = [question for question in as_array(fields.get("questions")) or () if isinstance(question, str)]
        steps = [" ".join(question.split()) for question in questions if question.strip()]
        if not steps:
            return Refused(text, "it has no questions to go through")
        whole = f"{text} To decide, go through: {' '.join(steps)}"
        return self.scaled(Criterion(id="new", text=whole, metadata={"title": name, "questions": steps}))


class PrinciplesGenerator(_Dynamic):
    """Weighted principles for one query, seen together with the responses to be scored (SPCT, 2504.02495).

    SPCT's judge writes them inside its critique; here they are a rubric that any judge can use, and that holds for
    every response of a group. How general and specific criteria weigh against each other is not published: here
    (ours) each part has the weight 1 in all, the principles in the proportions that the model gave.

    Args:
        model: writes the principles.
        scale: of every criterion: `binary`, `1-5`, or `1-10` as in SPCT.
        general: criteria of every query: SPCT's four unless given.
        most_responses: responses that are shown at most, the first candidates of the source; 0 shows none.
        least, most: numbers of principles.
        checks: rules of the linter that each principle must pass.
        on_bad: what becomes of single principles that break a rule; see `ListRules`.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "principles"

    def __init__(
        self,
        model: ChatModel,
        *,
        scale: ScaleName = "binary",
        general: Sequence[Criterion] = GENERAL_CRITERIA,
        most_responses: int = 8,
        least: int = 2,
        most: int = 8,
        checks: Sequence[str] = CHECKS,
        on_bad: Literal["mend", "drop"] = "mend",
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        if most_responses < 0:
            raise ConfigError(f"most_responses is {most_responses}", hint="use 0 or more")
        rules = ListRules(least, most, tuple(checks), None, on_bad)
        super().__init__(model, prompt or "generate_principles", scale, general, rules, **options)
        self.most_responses = most_responses
        self.uses = frozenset({Need.CANDIDATES} if most_responses else ())

    def identity(self) -> dict[str, object]:
        """Adds the options of this method."""
        return super().identity() | {"most_responses": self.most_responses}

    async def write(self, source: Source) -> Generated:
        """Ask for the principles, and again for what breaks the rules."""
        responses = [text_of(candidate) for candidate in source.candidates[: self.most_responses]]
        answer = await Drafting(self.asking, self.rules).draft(
            self.messages(self.values(source, responses=responses)),
            lambda text: [self._read(item) for item in read_items(text, "principles", "criteria")],
            schema=_principles_schema,
        )
        evidence = evidence_of("response", *responses)
        if answer.value is None:
            return self.made(answer, source)
        total = sum(one.weight for one in answer.value)
        specific = [self.scaled(one, one.weight / total) for one in answer.value]
        general = [self.scaled(one, 1.0 / len(self.always)) for one in self.always]
        rubric = self.finish([*general, *specific], source, evidence=evidence)
        return Generated(rubric, None, answer.usage, answer.notes)

    def _read(self, value: object) -> Item:
        read = _named(value)
        if isinstance(read, Refused):
            return read
        fields, name, text = read
        weight = as_number(fields.get("weight"))
        if weight is None or not 0.0 < weight <= 100.0:
            shown = repr(fields.get("weight", "missing"))[:20]
            return Refused(text, f"its weight is {shown}; it must be a whole number from 1 to 100")
        return Criterion(id="new", text=text, weight=weight, metadata={"title": name})


def _named(value: object) -> tuple[Mapping[str, object], str, str] | Refused:
    """An element of an answer, its name and its description."""
    fields = as_object(value)
    if fields is None:
        return Refused(str(value)[:200], "it is no object with name and description")
    texts: list[str] = []
    for key in ("name", "description"):
        text = fields.get(key)
        if not isinstance(text, str) or not text.strip():
            return Refused(str(fields.get("description", fields))[:200], f"it has no {key}")
        texts.append(" ".join(text.split()))
    return fields, texts[0], texts[1]


def _carmo_schema(least: int, most: int | None) -> dict[str, object]:
    questions = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5}
    text = {"type": "string"}
    return list_schema("criteria", {"name": text, "description": text, "questions": questions}, least, most)


def _principles_schema(least: int, most: int | None) -> dict[str, object]:
    weight = {"type": "integer", "minimum": 1, "maximum": 100}
    text = {"type": "string"}
    return list_schema("principles", {"name": text, "description": text, "weight": weight}, least, most)
