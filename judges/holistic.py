"""Holistic judges: one rating for a response, with the rubric (implicit aggregation) or without (Likert)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, failure_of
from rubricate.judges.parsing import find_json, parse_score
from rubricate.narrow import as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["OVERALL", "HolisticJudge", "LikertJudge", "refuse_vetoes", "shown_criterion"]

OVERALL = "overall"
_RETRY = {
    FailureKind.UNPARSABLE,
    FailureKind.AMBIGUOUS,
    FailureKind.OUT_OF_RANGE,
    FailureKind.EMPTY,
    FailureKind.LENGTH,
}


class HolisticJudge(ModelJudge):
    """Rates a response from 1 to 10 against all criteria at once: implicit aggregation (RaR, 2507.17746).

    The judgement has an `overall` verdict, whose `raw` is the rating and whose score is (rating - 1) / 9, and no
    verdicts on single criteria. Criteria with a verifier are shown like the others.

    Args:
        shown: what the judge sees and how; see `Shown`.
        max_attempts: calls at most, the first included; an unreadable rating is asked for again.
        max_tokens: tokens for reason and rating.
    """

    with_rubric = True

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_attempts: int = 4,
        max_tokens: int = 500,
        temperature: float = 0.0,
        seed: int | None = None,
        sample: int = 0,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("holistic_judge"), **shown)
        if max_attempts < 1:
            raise ConfigError(f"max_attempts is {max_attempts}", hint="use 1 or more")
        self.max_attempts = max_attempts
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.seed = seed
        self.sample = sample

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("with_rubric", "max_attempts", "max_tokens", "temperature", "seed", "sample")
        return super().identity() | {name: getattr(self, name) for name in names}

    def system_values(self) -> dict[str, object]:
        """Whether the instructions speak of criteria."""
        return {"criteria": self.with_rubric}

    def check(self, rubric: Rubric) -> None:
        """Raises ConfigError for a rubric with veto criteria, which one rating cannot enforce."""
        refuse_vetoes(rubric.criteria)

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """The overall verdict."""
        try:
            refuse_vetoes(criteria)
            material = self.material(rollout)
            shared = self.prompt.render("shared", material.values())
        except RubricateError as error:
            return Judgement(overall=Verdict.failed(OVERALL, failure_of(error), judge=self.name))
        items = [shown_criterion(criterion) for criterion in criteria] if self.with_rubric else []
        usage = Usage()
        why: Failure | None = None
        for attempt in range(self.max_attempts):
            complaint = "it did not hold one whole number from 1 to 10 after a reason" if why else ""
            item = self.prompt.render("item", {"criteria": items, "complaint": complaint})
            request = ChatRequest(
                self.messages(shared, item),
                max_tokens=self.max_tokens * (3 if why and why.kind is FailureKind.LENGTH else 1),
                temperature=self.temperature,
                seed=self.seed,
                sample=self.sample * self.max_attempts + attempt,
            )
            try:
                reply = await self.model.complete(request)
                usage += reply.usage
                text = reply.require_text(self.model.name)
                rating = parse_score(text, 1, 10, integer=True, key="rating", quoted=material.quoted)
            except (AnswerError, ChatError, ParseError) as error:
                why = failure_of(error)
                if why.kind not in _RETRY:
                    break
                continue
            verdict = Verdict(OVERALL, (rating - 1) / 9, raw=rating, reason=_reason(text), judge=self.name)
            return Judgement(overall=verdict, usage=usage)
        assert why is not None
        return Judgement(overall=Verdict.failed(OVERALL, why, judge=self.name), usage=usage)


class LikertJudge(HolisticJudge):
    """Rates a response from 1 to 10 without a rubric: the Direct-Likert baseline of RaR (2507.17746).

    With `show_reference=True` (the default) and a reference answer it is their Reference-Likert.
    """

    with_rubric = False


def refuse_vetoes(criteria: Sequence[Criterion]) -> None:
    """Raises ConfigError where there are veto criteria, which one rating cannot enforce."""
    vetoes = [criterion.id for criterion in criteria if criterion.veto]
    if vetoes:
        raise ConfigError(
            f"one rating for the whole response cannot enforce the veto of {', '.join(vetoes)}",
            hint="judge criterion by criterion, or drop `veto`",
        )


def shown_criterion(criterion: Criterion) -> dict[str, str]:
    """A criterion as one rating for the whole rubric shows it: its text, and how much it matters."""
    name = criterion.importance.value if criterion.importance else f"weight {criterion.weight:g}"
    if criterion.polarity is Polarity.PENALTY:
        name += ", to avoid"
    return {"importance": name, "text": criterion.text}


def _reason(text: str) -> str:
    reason = (as_object(find_json(text)) or {}).get("reason")
    return reason if isinstance(reason, str) else text
