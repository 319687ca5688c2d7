"""The log-probability judge: P(met) from the first answer token, one short question a criterion on one prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, answer_tokens, failure, failure_of
from rubricate.judges.fewshot import Example, Examples, Prefix, Shots, yes_or_no
from rubricate.judges.mass import alternatives, share_of, shortfall, unlisted_share
from rubricate.judges.spelling import WRAPPING, says_alone
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["AnswerMass", "LogprobJudge", "answer_mass"]

YES = ("yes", "true")
NO = ("no", "false")
_WRAPPING = WRAPPING + "▁ĠĊ"


@dataclass(frozen=True, slots=True)
class AnswerMass:
    """How the probability of the first answer token is spread.

    Attributes:
        yes, no: summed over all spellings of the words for yes and for no, each in [0, 1].
        unlisted: the share of tokens that the server did not list, in [0, 1].
        outside: what is on neither word, in [0, 1], `unlisted` included.
    """

    yes: float
    no: float
    unlisted: float = 0.0

    @property
    def outside(self) -> float:
        return max(0.0, 1.0 - self.yes - self.no)

    @property
    def p_yes(self) -> float | None:
        """P(yes) among the answers, in [0, 1]; None when neither answer has any mass."""
        total = self.yes + self.no
        return self.yes / total if total > 0.0 else None

    def shortfall(self, max_outside: float, yes: str = "yes", no: str = "no") -> str:
        """Why this makes no verdict, in words; empty where it does. See `LogprobJudge` for the limits."""
        shares = {yes: self.yes, no: self.no}
        return shortfall(shares, dict.fromkeys(shares, self.unlisted), max_outside, f"{yes} and {no}")


def answer_mass(token: TokenLogprob, *, yes: Sequence[str] = YES, no: Sequence[str] = NO) -> AnswerMass:
    """Mass of yes and no at one token position, over all spellings (case, spaces, quotes, punctuation).

    Args:
        token: the position's token with its alternatives.
        yes, no: the words that mean them, in small letters. One that a tokenizer splits is never found.

    Some published judges look for one literal token and score 0 in silence where a tokenizer spells it otherwise
    (RUBRIC-ARROW, 2605.29156); summing all spellings and reporting the rest avoids that.
    """
    met = unmet = 0.0
    for text, logprob in alternatives(token):
        word = _word(text)
        if word in yes:
            met += share_of(logprob)
        elif word in no:
            unmet += share_of(logprob)
    return AnswerMass(min(met, 1.0), min(unmet, 1.0), unlisted_share(token))


def _word(text: str) -> str:
    return text.strip(_WRAPPING).casefold()


def _checked(words: Sequence[str], name: str) -> tuple[str, ...]:
    """Label words in small letters. Raises ConfigError for what no token can be read as."""
    hint = 'give words such as ("yes", "true")'
    if isinstance(words, str):
        raise ConfigError(f"{name} is one text, {words!r}", hint=hint)
    small = tuple(word.casefold() for word in words)
    odd = [word for word in small if not word.strip(_WRAPPING) or word.strip(_WRAPPING) != word]
    if odd or not small:
        raise ConfigError(f"{name} holds {odd[0]!r}, no word" if odd else f"{name} holds no word", hint=hint)
    return small


class LogprobJudge(ModelJudge):
    """Asks one yes/no question a criterion and reads P(yes) from the first token. No reasons, one token a call.

    The verdict's score *is* the probability; aggregation may threshold it. Criteria with a condition get a second
    question on the same prefix: where P(condition) < 0.5 the criterion does not apply. Only binary criteria can be
    asked this way; others are failed verdicts (`build_judge` routes them to a reasoned judge).

    Args:
        shown: what the judge sees and how; see `Shown`.
        max_outside: largest share of probability outside yes and no, in [0, 1]; above it the verdict failed
            with kind `low_mass`, at it not. The end of the answer counts as outside like any other token, so that
            an empty answer is a verdict where enough of the probability is on yes and no.
        top_logprobs: alternatives to ask for; servers allow 20 as a rule. Where yes or no is not among them, and
            more than 5% of the probability is on tokens that are not either (`MAX_UNKNOWN`), the verdict failed
            with `low_mass`: with 1 alternative, nearly always.
        prefill: text that the answer begins with, where the back end can continue an answer. It draws a small
            model's probability onto the answers (measured with SmolLM2-135M: 16% outside instead of 60%).
        examples: right verdicts to show it beforehand, on binary criteria without a condition.
        yes, no: the words that mean that a criterion is met and that it is not, for models that were trained on
            other ones; letters are compared without case. The prompt asks for the first of each. Each must be the
            beginning of an answer that its tokenizer keeps whole: a word that is split is never found.

    Raises ConfigError for label words that cannot be told apart, or that no token can be.
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
        yes: Sequence[str] = YES,
        no: Sequence[str] = NO,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("logprob_judge"), **shown)
        self.yes = _checked(yes, "yes")
        self.no = _checked(no, "no")
        if both := sorted({*self.yes} & {*self.no}):
            raise ConfigError(f"{both[0]!r} means both yes and no", hint="leave it out of one of them")
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
        identity |= {"yes": list(self.yes), "no": list(self.no)}
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
        messages = prefix.messages(self, self.prompt.render(block, {"text": text, **self._words()}))
        prefill = self.prefill if self.model.capabilities.prefill else ""
        return ChatRequest(messages, max_tokens=1, top_logprobs=self.top_logprobs, prefill=prefill)

    def system_values(self) -> dict[str, object]:
        """The words to answer with."""
        return {**self._words()}

    def _words(self) -> dict[str, str]:
        return {"yes": self.yes[0], "no": self.no[0]}

    def _example_item(self, example: Example) -> str:
        return self.prompt.render("item", {"text": example.criterion.text, **self._words()})

    def _example_reply(self, example: Example) -> str:
        word = self._words()[yes_or_no(example)]
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
        raw = self._words()["yes" if probability >= 0.5 else "no"]
        return Verdict(criterion.id, probability, probability=probability, raw=raw, judge=self.name)

    def _read(self, answer: Completion | ChatError) -> float | Failure:
        if isinstance(answer, ChatError):
            return failure_of(answer)
        tokens = answer_tokens(answer, self.model.name)
        if isinstance(tokens, Failure):
            return tokens
        mass = answer_mass(tokens[0], yes=self.yes, no=self.no)
        said, short = tokens[0].token, mass.shortfall(self.max_outside, self.yes[0], self.no[0])
        probability = mass.p_yes
        if short or probability is None:
            return failure(FailureKind.LOW_MASS, f"{short}; the model would say {said!r}")
        answers = (self.no, self.yes) if (word := _word(said)) in self.yes else (self.yes, self.no)
        if word in answers[1] and not says_alone(answer.text, word, answers[0]):
            return failure(FailureKind.LOW_MASS, f"the model says {answer.text[:40]!r}, which is not {word} alone")
        return probability
