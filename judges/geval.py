"""G-Eval's expectation: a rating as the mean over the probabilities of a scale's levels, not the likeliest one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Finish
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, answer_tokens, failure, failure_of
from rubricate.judges.holistic import OVERALL, refuse_vetoes, shown_criterion
from rubricate.judges.mass import label_mass, plain_tokens, shortfall, spread_of
from rubricate.judges.spelling import says_alone
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, NumericScale, OrdinalScale, Rubric
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["ExpectationJudge", "HolisticExpectationJudge", "has_levels"]

_LETTERS = "ABCDEFGHIJKLMNOPQRST"
_MOST = len(_LETTERS)  # servers list 20 alternatives as a rule
_YES_NO = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale as it is asked for.

    Attributes:
        values: label that the model answers with to the value in the scale's own units, lowest first.
        shown: described levels as (label, text); empty for plain numbers.
    """

    values: Mapping[str, float]
    shown: tuple[tuple[str, str], ...] = ()

    @property
    def digits(self) -> int:
        """Characters of the longest label."""
        return max(len(label) for label in self.values)


@dataclass(frozen=True, slots=True)
class _Expected:
    """Mean over the levels by probability, in the scale's units, and their spread as a part of its range."""

    mean: float
    spread: float


def has_levels(criterion: Criterion) -> bool:
    """Whether an ExpectationJudge takes this criterion: one of levels, or of few whole numbers."""
    return isinstance(_scale_of(criterion), _Scale)


def _scale_of(criterion: Criterion) -> _Scale | Failure:
    """The scale of a criterion, or why there is no expectation over it.

    Levels whose labels are whole numbers keep them; those with other names go by letters, worst first, because a
    name may be any number of tokens.
    """
    scale = criterion.scale
    if isinstance(scale, OrdinalScale):
        if len(scale.levels) > _MOST:
            return _refused(f"{len(scale.levels)} levels")
        plain = all(level.label.isascii() and level.label.isdigit() for level in scale.levels)
        names = [level.label for level in scale.levels] if plain else _LETTERS[: len(scale.levels)]
        texts = [
            level.description if plain else f"{level.label}{f' - {level.description}' if level.description else ''}"
            for level in scale.levels
        ]
        values = {name: level.value for name, level in zip(names, scale.levels, strict=True)}
        described = plain and not any(texts)
        return _Scale(values, () if described else tuple(zip(names, texts, strict=True)))
    if isinstance(scale, NumericScale) and scale.integer:
        numbers = _whole_numbers(scale.low, scale.high)
        return _Scale({str(n): float(n) for n in numbers}) if numbers else _refused(f"{scale.low:g}-{scale.high:g}")
    return _refused("no levels")


_NUMBER = re.compile(r"[\W_]*\d")


def _whole_numbers(low: float, high: float) -> range | None:
    """The numbers of a scale that an answer's first tokens can tell apart."""
    sound = float(low).is_integer() and float(high).is_integer() and 0 <= low < high < low + _MOST
    return range(int(low), int(high) + 1) if sound else None


def _refused(what: str) -> Failure:
    need = f"levels, or whole numbers from 0 upwards, {_MOST} at most"
    return failure(FailureKind.REQUEST, f"an expectation needs a scale of {need}; this one has {what}")


class ExpectationJudge(ModelJudge):
    """Asks for a level of each criterion's scale, and scores the mean over the levels by their probability.

    The mean is sum of p(s) s over sum of p(s), in the scale's units, over all levels s; `raw` holds it, and `score`
    is min-max normalised to [0, 1] (G-Eval, 2303.16634, section 2.3). `spread` says how far the levels lie apart
    that it held possible (ours), by which `Cascade` knows how sure it was. One short call a criterion, on one
    prefix, without reasons. A level's probability is that of its label at the answer's position, in all spellings;
    a label of several tokens ("10") is followed along the generated ones, see `label_mass`. What lies on no label
    is left out of the mean; above `max_outside` the verdict failed (`low_mass`), and so it did where more than 5%
    of the probability (`MAX_UNKNOWN`) may lie on a level of which the server tells nothing: one that is not among
    the alternatives, or whose first digit alone is. An answer that says more than its level, such as "7 or 3",
    "7 out of 20" or "7.5", failed too (`says_alone`).

    It takes ordinal scales and whole-number ranges from 0 upwards, of 20 levels at most. Other criteria are failed
    verdicts: `Router` sends them elsewhere. A criterion's condition is a yes/no question of its own on the same
    prefix, and where P(condition) < 0.5 the criterion does not apply. For the mean of n drawn ratings, as G-Eval's
    code takes it, repeat a judge that draws them.

    Args:
        shown: what the judge sees and how; see `Shown`.
        max_outside: largest share of probability outside the scale's labels, in [0, 1].
        top_logprobs: alternatives to ask for; servers allow 20 as a rule.
        prefill: text that the answer begins with, where the back end can continue an answer.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_outside: float = 0.5,
        top_logprobs: int = 20,
        prefill: str = "Answer:",
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("geval_judge"), **shown)
        self.max_outside = max_outside
        self.top_logprobs = top_logprobs
        self.prefill = prefill

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("max_outside", "top_logprobs", "prefill")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            shared = self.prompt.render("shared", self.material(rollout).values())
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        scales = {criterion.id: _scale_of(criterion) for criterion in criteria}
        asked = [(c, scale) for c in criteria if isinstance(scale := scales[c.id], _Scale)]
        conditional = [c for c, _ in asked if c.condition]
        requests = [self._request(shared, _item(c, scale), "item", scale.digits) for c, scale in asked]
        requests += [self._request(shared, {"text": c.condition}, "condition", 1) for c in conditional]
        answers = await self.model.complete_many(requests) if requests else []
        rated = {c.id: answer for (c, _), answer in zip(asked, answers, strict=False)}
        holds = {c.id: answer for c, answer in zip(conditional, answers[len(asked) :], strict=True)}
        verdicts = [self._verdict(c, scales[c.id], rated.get(c.id), holds.get(c.id)) for c in criteria]
        usage = sum((answer.usage for answer in answers if isinstance(answer, Completion)), Usage())
        return Judgement(tuple(verdicts), usage=usage)

    def _request(self, shared: str, values: Mapping[str, object], block: str, digits: int) -> ChatRequest:
        return ChatRequest(
            self.messages(shared, self.prompt.render(block, values)),
            # a blank may go ahead, and a label that begins another, or a fraction, needs the tokens behind it
            max_tokens=digits + 2,
            top_logprobs=self.top_logprobs,
            prefill=self.prefill if self.model.capabilities.prefill else "",
        )

    def _verdict(
        self,
        criterion: Criterion,
        scale: _Scale | Failure,
        rated: Completion | ChatError | None,
        holds: Completion | ChatError | None,
    ) -> Verdict:
        if isinstance(scale, Failure) or rated is None:
            why = scale if isinstance(scale, Failure) else _refused("not been asked")
            return Verdict.failed(criterion.id, why, judge=self.name)
        if holds is not None:
            applies = self._expected(holds, _YES_NO)
            if isinstance(applies, Failure):
                return Verdict.failed(criterion.id, applies, judge=self.name)
            if applies.mean < 0.5:
                reason = f"P(condition) = {applies.mean:.3f}"
                return Verdict.not_applicable(criterion.id, judge=self.name, reason=reason)
        said = self._expected(rated, scale.values)
        if isinstance(said, Failure):
            return Verdict.failed(criterion.id, said, judge=self.name)
        score = criterion.normalise(said.mean)
        return Verdict(criterion.id, score, raw=said.mean, judge=self.name, spread=said.spread)

    def _expected(self, answer: Completion | ChatError, values: Mapping[str, float]) -> _Expected | Failure:
        if isinstance(answer, ChatError):
            return failure_of(answer)
        tokens = answer_tokens(answer, self.model.name)
        if isinstance(tokens, Failure):
            return tokens
        mass = label_mass(plain_tokens(tokens, answer.text), values, ended=answer.finish is Finish.STOP)
        if not _says_level(answer.text, mass.said, values):
            return failure(FailureKind.LOW_MASS, f"the model says {answer.text[:40]!r}, which is no level alone")
        names = {value: label for label, value in values.items()}
        levels = mass.merged({label: names[value] for label, value in values.items()})
        short = shortfall(levels.shares, levels.unknown, self.max_outside, "the scale")
        expected = mass.expected(values)
        if short or expected is None:
            return failure(FailureKind.LOW_MASS, f"{short}; the model would say {answer.text[:40]!r}")
        return _Expected(expected, spread_of([mass.shares[label] for label in values], list(values.values())))


def _says_level(text: str, said: str | None, values: Mapping[str, float]) -> bool:
    """Whether an answer says one level, or none in such a way that the probabilities beside it may be read.

    A number that is no level speaks against those beside it; another word is one more token outside the scale.
    """
    if said is not None:
        return says_alone(text, said, [label for label in values if values[label] != values[said]])
    return not (all(label.isdecimal() for label in values) and _NUMBER.match(text))


def _item(criterion: Criterion, scale: _Scale) -> dict[str, object]:
    values = [f"{value:g}" for value in scale.values.values()]
    levels = [{"label": label, "text": text} for label, text in scale.shown]
    return {"text": criterion.text, "levels": levels, "low": values[0], "high": values[-1]}


class HolisticExpectationJudge(ExpectationJudge):
    """Rates a response as a whole, and scores the mean over the ratings by their probability.

    The judgement has an `overall` verdict, whose `raw` is the expected rating from `low` to `high` and whose score
    is min-max normalised, and no verdicts on single criteria. What `ExpectationJudge` says of levels holds.

    Args:
        low, high: whole numbers from 0 upwards, 20 apart at most. The presets for ratings take 1 to 10.
        with_rubric: show the criteria; without them it is a Likert judge.
        options: as in `ExpectationJudge`.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        low: int = 1,
        high: int = 10,
        with_rubric: bool = True,
        prompt: Prompt | None = None,
        max_outside: float = 0.5,
        top_logprobs: int = 20,
        prefill: str = "Answer:",
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(
            model, prompt=prompt, max_outside=max_outside, top_logprobs=top_logprobs, prefill=prefill, **shown
        )
        numbers = _whole_numbers(low, high)
        if numbers is None:
            raise ConfigError(f"a rating from {low} to {high}", hint=f"use {_MOST} whole numbers from 0 at most")
        self.low = low
        self.high = high
        self.with_rubric = with_rubric
        self._values = {str(number): float(number) for number in numbers}

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        return super().identity() | {name: getattr(self, name) for name in ("low", "high", "with_rubric")}

    def check(self, rubric: Rubric) -> None:
        """Raises ConfigError for a rubric with veto criteria, which one rating cannot enforce."""
        refuse_vetoes(rubric.criteria)

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """The overall verdict."""
        try:
            refuse_vetoes(criteria)
            shared = self.prompt.render("shared", self.material(rollout).values())
        except RubricateError as error:
            return Judgement(overall=Verdict.failed(OVERALL, failure_of(error), judge=self.name))
        shown = [shown_criterion(criterion) for criterion in criteria] if self.with_rubric else []
        item = {"criteria": shown, "low": self.low, "high": self.high}
        digits = max(len(label) for label in self._values)
        (answer,) = await self.model.complete_many([self._request(shared, item, "overall", digits)])
        usage = answer.usage if isinstance(answer, Completion) else Usage()
        rating = self._expected(answer, self._values)
        if isinstance(rating, Failure):
            return Judgement(overall=Verdict.failed(OVERALL, rating, judge=self.name), usage=usage)
        score = (rating.mean - self.low) / (self.high - self.low)
        verdict = Verdict(OVERALL, score, raw=rating.mean, judge=self.name, spread=rating.spread)
        return Judgement(overall=verdict, usage=usage)
