"""The rating judge: one number from 0 to 100 a criterion, without a reason, as RLCF samples it many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Finish
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ParseError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, failure, failure_of
from rubricate.judges.parsing import parse_score
from rubricate.judges.repeated import Repeated
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import FailureKind, Judgement, Usage, Verdict

__all__ = ["RatingJudge", "rlcf_judge"]

_TOP = 100
_BEYOND = 10**6  # numbers up to here are read and clipped


class RatingJudge(ModelJudge):
    """Asks how well a response meets a criterion, from 0 to 100, and reads one number. One call a criterion.

    The score is the number / 100, clipped to [0, 1] (RLCF, 2507.18624: integers from 0 to 100, clipped; what cannot
    be read is no number, where the released code gives -1). One sample says little: put the judge into `Repeated`,
    or use `rlcf_judge`. Only binary criteria without a condition can be asked this way; others are failed verdicts.

    Args:
        shown: what the judge sees and how; see `Shown`.
        max_tokens: tokens of the answer. A longer answer that begins with a whole number is read all the same.
        temperature, top_p, seed: sampling parameters; the defaults are RLCF's.
        sample: index of this judge among repeated ones, so that caches keep their answers apart.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_tokens: int = 10,
        temperature: float = 1.3,
        top_p: float = 0.9,
        seed: int | None = None,
        sample: int = 0,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("rating_judge"), **shown)
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.seed = seed
        self.sample = sample

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("max_tokens", "temperature", "top_p", "seed", "sample")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            material = self.material(rollout)
            shared = self.prompt.render("shared", material.values())
            asked = [c for c in criteria if isinstance(c.scale, BinaryScale) and not c.condition]
            requests = [self._request(shared, criterion) for criterion in asked]
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        answers = await self.model.complete_many(requests) if requests else []
        by_id = {criterion.id: answer for criterion, answer in zip(asked, answers, strict=True)}
        usage = sum((answer.usage for answer in answers if isinstance(answer, Completion)), Usage())
        verdicts = tuple(self._verdict(c, by_id.get(c.id), material.quoted) for c in criteria)
        return Judgement(verdicts, usage=usage)

    def _request(self, shared: str, criterion: Criterion) -> ChatRequest:
        return ChatRequest(
            self.messages(shared, self.prompt.render("item", {"text": criterion.text})),
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=self.seed,
            sample=self.sample,
        )

    def _verdict(
        self, criterion: Criterion, answer: Completion | ChatError | None, quoted: Sequence[str]
    ) -> Verdict:
        if answer is None:
            why = failure(FailureKind.REQUEST, "only binary criteria without a condition can be rated")
            return Verdict.failed(criterion.id, why, judge=self.name)
        try:
            if isinstance(answer, ChatError):
                raise answer
            text = _beginning(answer) or answer.require_text(self.model.name)
            number = _number(text, quoted)
        except (AnswerError, ChatError, ParseError) as error:
            return Verdict.failed(criterion.id, failure_of(error), judge=self.name)
        score = min(max(number / _TOP, 0.0), 1.0)
        return Verdict(criterion.id, score, probability=score, raw=number, judge=self.name)


def _number(text: str, quoted: Sequence[str]) -> float:
    """The number in an answer, in the range or beyond it."""
    try:
        return parse_score(text, 0, _TOP, integer=True, quoted=quoted)
    except ParseError as error:
        if error.kind != FailureKind.OUT_OF_RANGE:
            raise
    return parse_score(text, -_BEYOND, _BEYOND, integer=True, quoted=quoted)


def _beginning(answer: Completion) -> str:
    """The first word of an answer that was cut, where the cut is behind it and it may be a whole number."""
    if answer.finish is not Finish.LENGTH or answer.refusal:
        return ""
    word, *rest = answer.text.split(maxsplit=1) or [""]
    return word.rstrip(".,:;") if rest and word[:1].isdigit() else ""


def rlcf_judge(
    model: ChatModel,
    *,
    n: int = 25,
    threshold: float | None = None,
    seed: int | None = None,
    **shown: Unpack[Shown],
) -> Repeated:
    """RLCF's judge (2507.18624): `n` ratings from 0 to 100 at temperature 1.3 and top-p 0.9, and their mean.

    Args:
        n: samples; the paper takes 25, and 5 cost 55% less at little loss.
        threshold: stop asking about a criterion once its mean is on one side of this for sure; None takes all n.
        shown: what the judge sees and how; see `Shown`.
    """
    return Repeated(RatingJudge(model, seed=seed, **shown), n=n, threshold=threshold, min_ok=1)
