"""The decisions judge: all criteria of a rubric in one call of a server's decisions API, probabilities back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from rubricate.chat.base import ChatModel, Completion
from rubricate.chat.decisions import DecisionsModel, decision_request
from rubricate.chat.decisions_wire import DecisionAnswer, DecisionQuestion, read_answers
from rubricate.chat.limited import innermost
from rubricate.chat.server import ServerModel
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, failure, failure_of
from rubricate.judges.mass import spread_of
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import BinaryScale, Criterion, NumericScale, OrdinalScale
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["DecisionsJudge"]

_MOST_LEVELS = 10


@dataclass(frozen=True, slots=True)
class _Levels:
    """A scale as named levels, lowest first: (label, description), and the value of each in the scale's units."""

    shown: tuple[tuple[str, str], ...]
    values: tuple[float, ...]


def _levels_of(criterion: Criterion) -> _Levels | Failure:
    """The levels of a criterion, none for a binary one, or why the API cannot rate it."""
    scale = criterion.scale
    if isinstance(scale, BinaryScale):
        return _Levels((), ())
    if isinstance(scale, OrdinalScale):
        levels = _Levels(
            tuple((level.label, level.description) for level in scale.levels),
            tuple(level.value for level in scale.levels),
        )
    else:
        levels = _whole_numbers(scale)
    if 2 <= len(levels.values) <= _MOST_LEVELS:
        return levels
    return failure(FailureKind.REQUEST, f"decisions rate on 2 to {_MOST_LEVELS} levels; this scale has others")


def _whole_numbers(scale: NumericScale) -> _Levels:
    whole = scale.integer and float(scale.low).is_integer() and float(scale.high).is_integer()
    if not whole or scale.high - scale.low >= _MOST_LEVELS:
        return _Levels((), ())
    numbers = range(int(scale.low), int(scale.high) + 1)
    return _Levels(tuple((str(number), "") for number in numbers), tuple(float(number) for number in numbers))


class DecisionsJudge(ModelJudge):
    """Asks a server's decisions API about all criteria in one call. No reasons, no text to be read.

    Binary criteria are yes/no questions, whose P(yes) is the score; scales of up to 10 levels, whole-number ranges
    included, are ratings, whose score is the mean over the levels by probability, min-max normalised: the API's
    expected level divided by (levels - 1) where levels are evenly spaced. Each question is answered independently
    of the others. A condition is a question of its own in the same call; where P(condition) < 0.5 the criterion
    does not apply. Other scales are failed verdicts. A question that the model refuses to answer is a failed
    verdict, and so is one whose probability lies outside the answers, as far as the server says how much does
    (`DecisionsModel(with_mass=True)` makes vLLM say it of yes/no questions).

    Args:
        model: `connect("decisions:http://HOST:PORT/v1")`, see `DecisionsModel`.
        shown: what the judge sees and how; see `Shown`.
        max_outside: largest share of probability outside the answers, in [0, 1]; above it the verdict failed with
            kind `low_mass`.
        questions_per_call: at most so many in one call; longer rubrics are split. vLLM and OpenAI take 200, the
            form `systemone` 64.
        sample: index of this judge among repeated ones, so that caches keep their answers apart.

    Raises ConfigError for a chat server named without `decisions:`.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_outside: float = 0.5,
        questions_per_call: int = 64,
        sample: int = 0,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("decisions_judge"), **shown)
        raw = innermost(model)
        if isinstance(raw, ServerModel) and not isinstance(raw, DecisionsModel):
            raise ConfigError(f"{model.name} chats", hint=f"name it decisions:{model.name}")
        if questions_per_call < 1:
            raise ConfigError(f"questions_per_call is {questions_per_call}", hint="use 1 or more")
        self.max_outside = max_outside
        self.questions_per_call = questions_per_call
        self.sample = sample

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("max_outside", "questions_per_call", "sample")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            text = self.prompt.render("shared", self.material(rollout).values()).rstrip()
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        scales = [_levels_of(criterion) for criterion in criteria]
        questions = [
            question
            for number, (criterion, levels) in enumerate(zip(criteria, scales, strict=True), start=1)
            if isinstance(levels, _Levels)
            for question in self._questions(f"C{number}", criterion, levels)
        ]
        answers, usage = await self._ask(text, questions)
        verdicts = [
            self._verdict(f"C{number}", criterion, levels, answers)
            for number, (criterion, levels) in enumerate(zip(criteria, scales, strict=True), start=1)
        ]
        return Judgement(tuple(verdicts), usage=usage)

    def _questions(self, label: str, criterion: Criterion, levels: _Levels) -> list[DecisionQuestion]:
        def question(name: str, block: str, text: str, shown: tuple[tuple[str, str], ...]) -> DecisionQuestion:
            return DecisionQuestion(name, self.prompt.render(block, {"text": text}).strip(), shown)

        asked = [question(label, "rating" if levels.shown else "item", criterion.text, levels.shown)]
        if criterion.condition:
            asked.append(question(f"{label}.if", "condition", criterion.condition, ()))
        return asked

    async def _ask(
        self, text: str, questions: Sequence[DecisionQuestion]
    ) -> tuple[dict[str, DecisionAnswer | Failure], Usage]:
        """Answers by question id, or why there is none, and what all calls cost."""
        size = self.questions_per_call
        parts = [questions[at : at + size] for at in range(0, len(questions), size)]
        requests = [decision_request(text, part, sample=self.sample) for part in parts]
        replies = await self.model.complete_many(requests) if requests else []
        answers: dict[str, DecisionAnswer | Failure] = {}
        for part, reply in zip(parts, replies, strict=True):
            answers.update(self._read(part, reply))
        return answers, sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())

    def _read(
        self, questions: Sequence[DecisionQuestion], reply: Completion | ChatError
    ) -> Mapping[str, DecisionAnswer | Failure]:
        try:
            if isinstance(reply, ChatError):
                raise reply
            return read_answers(reply.require_text(self.model.name), questions)
        except (AnswerError, ChatError, ParseError) as error:
            return dict.fromkeys((question.id for question in questions), failure_of(error))

    def _verdict(
        self,
        label: str,
        criterion: Criterion,
        levels: _Levels | Failure,
        answers: Mapping[str, DecisionAnswer | Failure],
    ) -> Verdict:
        if isinstance(levels, Failure):
            return Verdict.failed(criterion.id, levels, judge=self.name)
        if criterion.condition:
            holds = self._shares(answers[f"{label}.if"])
            if isinstance(holds, Failure):
                return Verdict.failed(criterion.id, holds, judge=self.name)
            if holds[1] < 0.5:
                reason = f"P(condition) = {holds[1]:.3f}"
                return Verdict.not_applicable(criterion.id, judge=self.name, reason=reason)
        shares = self._shares(answers[label])
        if isinstance(shares, Failure):
            return Verdict.failed(criterion.id, shares, judge=self.name)
        if not levels.values:
            raw = "yes" if shares[1] >= 0.5 else "no"
            return Verdict(criterion.id, shares[1], probability=shares[1], raw=raw, judge=self.name)
        mean = sum(share * value for share, value in zip(shares, levels.values, strict=True)) / sum(shares)
        mean = min(max(mean, levels.values[0]), levels.values[-1])
        spread = spread_of(shares, levels.values)
        return Verdict(criterion.id, criterion.normalise(mean), raw=mean, judge=self.name, spread=spread)

    def _shares(self, answer: DecisionAnswer | Failure) -> tuple[float, ...] | Failure:
        """The probabilities of an answer that can be relied on, or why there are none."""
        if isinstance(answer, Failure):
            return answer
        if answer.refused:
            return failure(FailureKind.REFUSAL, "the model refused to answer this question")
        if answer.mass is not None and 1.0 - answer.mass > self.max_outside:
            said = f"{1.0 - answer.mass:.1%} of the probability lies outside the answers"
            return failure(FailureKind.LOW_MASS, f"{said} (limit {self.max_outside:.0%})")
        if sum(answer.probabilities) <= 0.0:
            return failure(FailureKind.LOW_MASS, "all answers have the probability 0")
        return answer.probabilities
