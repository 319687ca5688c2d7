"""The log-probability judge: P(met) from the first answer token, one short question a criterion on one prefix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, answer_tokens, failure, failure_of
from rubricate.judges.fewshot import Example, Examples, Prefix, Shots, yes_or_no
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["AnswerMass", "LogprobJudge", "answer_mass"]

YES = frozenset({"yes", "true"})
NO = frozenset({"no", "false"})
_WRAPPING = " \t\r\n\"'`*_.,:;!()[]{}<>▁ĠĊ"


@dataclass(frozen=True, slots=True)
class AnswerMass:
    """How the probability of the first answer token is spread.

    Attributes:
        yes, no: summed over all spellings of yes/true and no/false, each in [0, 1].
        outside: what is left, in [0, 1], tokens that the server did not list included.
    """

    yes: float
    no: float

    @property
    def outside(self) -> float:
        return max(0.0, 1.0 - self.yes - self.no)

    @property
    def p_yes(self) -> float | None:
        """P(yes) among the answers, in [0, 1]; None when neither answer has any mass."""
        total = self.yes + self.no
        return self.yes / total if total > 0.0 else None


def answer_mass(token: TokenLogprob) -> AnswerMass:
    """Mass of yes and no at one token position, over all spellings (case, spaces, quotes, punctuation).

    Some published judges look for one literal token and score 0 in silence where a tokenizer spells it otherwise
    (RUBRIC-ARROW, 2605.29156); summing all spellings and reporting the rest avoids that.
    """
    # Different tokens may read alike, so they are summed one by one.
    listed = any(text == token.token for text, _ in token.top)
    yes = no = 0.0
    for text, logprob in token.top if listed else (*token.top, (token.token, token.logprob)):
        word = text.strip(_WRAPPING).casefold()
        if word in YES:
            yes += math.exp(logprob)
        elif word in NO:
            no += math.exp(logprob)
    return AnswerMass(min(yes, 1.0), min(no, 1.0))


class LogprobJudge(ModelJudge):
    """Asks one yes/no question a criterion and reads P(yes) from the first token. No reasons, one token a call.

    The verdict's score *is* the probability; aggregation may threshold it. Criteria with a condition get a second
    question on the same prefix: where P(condition) < 0.5 the criterion does not apply. Only binary criteria can be
    asked this way; others are failed verdicts (`build_judge` routes them to a reasoned judge).

    Args:
        shown: what the judge sees and how; see `Shown`.
        max_outside: largest share of probability outside yes and no, in [0, 1]; above it the verdict failed
            with kind `low_mass`.
        top_logprobs: alternatives to ask for; servers allow 20 as a rule.
        prefill: text that the answer begins with, where the back end can continue an answer. It draws a small
            model's probability onto the answers (measured with SmolLM2-135M: 16% outside instead of 60%).
        examples: right verdicts to show it beforehand, on binary criteria without a condition.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_outside: float = 0.5,
        top_logprobs: int = 20,
        prefill: str = "Answer:",
        examples: Examples | None = None,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("logprob_judge"), **shown)
        self.max_outside = max_outside
        self.top_logprobs = top_logprobs
        self.prefill = prefill
        self.examples = examples
        self._shots: Shots | None = None
        if examples is not None:
            for example in examples.pool:
                yes_or_no(example)
            self._shots = Shots(self, examples, item=self._example_item, reply=self._example_reply)

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("max_outside", "top_logprobs", "prefill")
        identity = super().identity() | {name: getattr(self, name) for name in names}
        return identity | ({"examples": self.examples.fingerprint} if self.examples is not None else {})

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            material = self.material(rollout)
            system = self._shots.system(rollout) if self._shots is not None else None
            prefix = Prefix(self.prompt.render("shared", material.values()), system)
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        asked = [criterion for criterion in criteria if isinstance(criterion.scale, BinaryScale)]
        questions = [("item", criterion.text) for criterion in asked]
        conditional = [criterion for criterion in asked if criterion.condition]
        questions += [("condition", criterion.condition or "") for criterion in conditional]
        requests = [self._request(prefix, block, text) for block, text in questions]
        answers = await self.model.complete_many(requests) if requests else []
        met = {c.id: answer for c, answer in zip(asked, answers, strict=False)}
        applies = {c.id: answer for c, answer in zip(conditional, answers[len(asked) :], strict=True)}
        usage = sum((a.usage for a in answers if isinstance(a, Completion)), Usage())
        verdicts = [self._verdict(c, met.get(c.id), applies.get(c.id)) for c in criteria]
        return Judgement(tuple(verdicts), usage=usage)

    def _request(self, prefix: Prefix, block: str, text: str) -> ChatRequest:
        messages = prefix.messages(self, self.prompt.render(block, {"text": text}))
        prefill = self.prefill if self.model.capabilities.prefill else ""
        return ChatRequest(messages, max_tokens=1, top_logprobs=self.top_logprobs, prefill=prefill)

    def _example_item(self, example: Example) -> str:
        return self.prompt.render("item", {"text": example.criterion.text})

    def _example_reply(self, example: Example) -> str:
        word = yes_or_no(example)
        return f"{self.prefill} {word}" if self.prefill and self.model.capabilities.prefill else word

    def _verdict(
        self,
        criterion: Criterion,
        met: Completion | ChatError | None,
        applies: Completion | ChatError | None,
    ) -> Verdict:
        if met is None:
            why = failure(FailureKind.REQUEST, "only binary criteria can be judged by log-probability")
            return Verdict.failed(criterion.id, why, judge=self.name)
        if applies is not None:
            condition = self._read(applies)
            if isinstance(condition, Failure):
                return Verdict.failed(criterion.id, condition, judge=self.name)
            if condition < 0.5:
                reason = f"P(condition) = {condition:.3f}"
                return Verdict.not_applicable(criterion.id, judge=self.name, reason=reason)
        probability = self._read(met)
        if isinstance(probability, Failure):
            return Verdict.failed(criterion.id, probability, judge=self.name)
        raw = "yes" if probability >= 0.5 else "no"
        return Verdict(criterion.id, probability, probability=probability, raw=raw, judge=self.name)

    def _read(self, answer: Completion | ChatError) -> float | Failure:
        if isinstance(answer, ChatError):
            return failure_of(answer)
        tokens = answer_tokens(answer, self.model.name)
        if isinstance(tokens, Failure):
            return tokens
        mass = answer_mass(tokens[0])
        probability = mass.p_yes
        if probability is None or mass.outside > self.max_outside:
            said = tokens[0].token
            return failure(
                FailureKind.LOW_MASS,
                f"{mass.outside:.1%} of the probability lies outside yes and no (limit {self.max_outside:.0%}); "
                f"the model would say {said!r}",
            )
        return probability
