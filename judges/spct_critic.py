"""Critics: they rate the critiques of SPCT judges, so that only the better ones are summed."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

from rubricate.chat.base import ChatModel, ChatRequest, Message
from rubricate.data.records import Rollout
from rubricate.judges.base import failure
from rubricate.judges.fence import fence, make_nonce
from rubricate.judges.pairwise_base import Asker
from rubricate.judges.parsing import parse_score
from rubricate.judges.view import name_of
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureKind, Judge, Judgement, Usage, fingerprint

__all__ = ["Critic", "Critique", "FunctionCritic", "JudgeCritic", "ModelCritic", "Rating", "weighted_share"]


@dataclass(frozen=True, slots=True)
class Critique:
    """A critique to be rated.

    Attributes:
        task: the prompt as one text.
        responses: the responses in the order in which the critique's judge saw them.
        scores: its score for each of them.
        text: the whole critique.
    """

    task: str
    responses: tuple[str, ...]
    scores: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Rating:
    """A critic's rating: higher is better, on any scale; None where `failure` says why."""

    value: float | None
    failure: Failure | None = None
    usage: Usage = Usage()


class Critic(abc.ABC):
    """Rates critiques."""

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Changes with everything that can change a rating."""

    @abc.abstractmethod
    async def rate(self, critique: Critique) -> Rating:
        """The rating of one critique. A rating that failed is a failed Rating."""


class FunctionCritic(Critic):
    """A function from a critique to a rating, or to None where it cannot say. It pickles if the function does."""

    def __init__(self, function: Callable[[Critique], float | None]) -> None:
        self.function = function

    @property
    def fingerprint(self) -> str:
        """Of the function's name."""
        return fingerprint(f"{getattr(self.function, '__module__', '')}.{name_of(self.function)}")

    async def rate(self, critique: Critique) -> Rating:
        """What the function says."""
        value = self.function(critique)
        if value is None:
            return Rating(None, failure(FailureKind.INCOMPLETE, "the critic gave no rating"))
        return Rating(value)


class ModelCritic(Critic):
    """Asks a chat model how far a critique can be trusted, from 1 to 10.

    Args:
        model: the chat model.
        max_attempts: calls that one rating takes at most, the first included.
        max_tokens: tokens for reason and rating.
        run_key: key of the hash that fences untrusted text.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_attempts: int = 3,
        max_tokens: int = 500,
        run_key: str = "rubricate",
    ) -> None:
        self.prompt = prompt or load_prompt("spct_critic")
        self.asker = Asker(model, max_attempts)
        self.max_tokens = max_tokens
        self.run_key = run_key

    @property
    def fingerprint(self) -> str:
        """Of model, prompt and options."""
        model = self.asker.model.fingerprint
        return fingerprint([model, self.prompt.fingerprint, self.asker.max_attempts, self.max_tokens, self.run_key])

    async def rate(self, critique: Critique) -> Rating:
        """The model's rating."""
        quoted = (critique.text, critique.task, *critique.responses)
        nonce = make_nonce(self.run_key, critique.task, *critique.responses, critique.text)
        values: dict[str, object] = {
            "task": fence("task", critique.task, nonce),
            "responses": [
                fence(f"response_{n}", text, nonce) for n, text in enumerate(critique.responses, start=1)
            ],
            "critique": fence("critique", critique.text, nonce),
        }

        def make(attempt: int, why: Failure | None) -> ChatRequest:
            complaint = "it did not hold one whole number from 1 to 10 after a reason" if why else ""
            text = self.prompt.render("shared", values)
            text += self.prompt.render("item", {**values, "complaint": complaint})
            messages = (
                Message("system", self.prompt.render("system", values).strip()),
                Message("user", text.rstrip()),
            )
            return ChatRequest(messages, max_tokens=self.max_tokens, sample=attempt)

        (asked,) = await self.asker.ask(
            [make], lambda text: parse_score(text, 1, 10, integer=True, key="rating", quoted=quoted)
        )
        return Rating(asked.value, asked.failure, asked.usage)


class JudgeCritic(Critic):
    """Has a judge score the critique by a rubric: the weighted share of its criteria, or the overall verdict.

    The judge sees conversation and responses as the prompt, and the critique as the response. A criterion that
    failed makes the rating fail; one that does not apply is left out. Penalties count when they are not met.
    """

    def __init__(self, judge: Judge[Rollout, Rubric], rubric: Rubric) -> None:
        self.judge = judge
        self.rubric = rubric

    @property
    def fingerprint(self) -> str:
        """Of judge and rubric."""
        return fingerprint([self.judge.fingerprint, self.rubric.fingerprint])

    async def rate(self, critique: Critique) -> Rating:
        """The rating, in [0, 1]."""
        shown = [f"[Response {n}]\n{text}" for n, text in enumerate(critique.responses, start=1)]
        judgement = await self.judge.judge(
            Rollout("\n\n".join((critique.task, *shown)), critique.text), self.rubric
        )
        share = weighted_share(self.rubric, judgement)
        if isinstance(share, Failure):
            return Rating(None, share, judgement.usage)
        return Rating(share, usage=judgement.usage)


def weighted_share(rubric: Rubric, judgement: Judgement) -> float | Failure:
    """The overall verdict's score, or the weighted share of the criteria, in [0, 1].

    A penalty counts when it is not met, a criterion that does not apply is left out, and one that failed makes the
    whole fail. A veto whose verdict is adverse (from 0.5 on a criterion is met) makes it 0, whatever became of the
    others. For a reward with a choice of aggregations see `rubricate.rewardmodels`.
    """
    overall = judgement.overall
    if overall is not None:
        if overall.score is not None:
            return overall.score
        return overall.failure or failure(FailureKind.INCOMPLETE, "the judge gave no overall score")
    if [verdict.criterion_id for verdict in judgement.verdicts] != [criterion.id for criterion in rubric.criteria]:
        return failure(FailureKind.INCOMPLETE, "the judge did not give one verdict a criterion, in order")
    pairs = list(zip(rubric.criteria, judgement.verdicts, strict=True))
    if any(criterion.veto and _adverse(criterion, verdict.score) for criterion, verdict in pairs):
        return 0.0
    total = weight = 0.0
    for criterion, verdict in pairs:
        if verdict.failure is not None:
            return verdict.failure
        if verdict.score is not None:
            penalty = criterion.polarity is Polarity.PENALTY
            total += criterion.weight * (1.0 - verdict.score if penalty else verdict.score)
            weight += criterion.weight
    return total / weight if weight else failure(FailureKind.INCOMPLETE, "no criterion with a weight applies")


def _adverse(criterion: Criterion, score: float | None) -> bool:
    return score is not None and (score >= 0.5) == (criterion.polarity is Polarity.PENALTY)
