"""Pairwise judges without long replies: by the probability of a letter, and by the scores of a pointwise judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, Unpack, get_args

from rubricate.chat.base import ChatModel, ChatRequest, Completion, TokenLogprob
from rubricate.comparisons import Comparison, Order, Preferred, Vote
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, RubricateError
from rubricate.judges.base import Shown, answer_tokens, failure, failure_of
from rubricate.judges.logprob import answer_mass
from rubricate.judges.mass import shortfall
from rubricate.judges.pairwise import PairJudge
from rubricate.judges.pairwise_base import GroupModelJudge, SharedMaterial
from rubricate.judges.spct_critic import weighted_share
from rubricate.judges.votes import debiased
from rubricate.prompts import Prompt
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureKind, Judge, Usage, fingerprint

__all__ = ["LogprobPairJudge", "PointwisePairJudge", "letter_probability"]

Settling = Literal["mean", "consistent-or-tie"]


def letter_probability(token: TokenLogprob, max_outside: float = 0.5) -> float | Failure:
    """P(A) / (P(A) + P(B)) at one token position, over all spellings (RLCF's alternative to samples, 2507.18624).

    A Failure with kind `low_mass` where more than `max_outside` of the probability, in [0, 1], is on neither, or
    where a letter is not listed while more than `MAX_UNKNOWN` is not either.
    """
    mass = answer_mass(token, yes=("a",), no=("b",))
    unknown = dict.fromkeys("AB", mass.unlisted)
    short = shortfall({"A": mass.yes, "B": mass.no}, unknown, max_outside, "A and B")
    if short or mass.p_yes is None:
        return failure(FailureKind.LOW_MASS, f"{short}; the model would say {token.token!r}")
    return mass.p_yes


class LogprobPairJudge(GroupModelJudge, PairJudge):
    """Asks for one letter in both orders and reads its probability: two short calls, no reasons.

    The comparison's probability is the mean of both orders, (forward + 1 - reversed) / 2, in which a liking for a
    position cancels out. An order that failed makes the comparison fail.

    Args:
        policy: `mean` (the mean probability decides) or `consistent-or-tie` (both orders must name the winner).
        margin: a probability within so much of 0.5 is a tie, in [0, 0.5].
        max_outside: largest share of probability on neither letter; above it an order failed with kind `low_mass`.
        prefill: text that the answer begins with, where the back end can continue an answer.
    """

    both_orders = True

    def __init__(
        self,
        model: ChatModel,
        *,
        policy: Settling = "mean",
        margin: float = 0.0,
        max_outside: float = 0.5,
        top_logprobs: int = 20,
        prefill: str = "Answer:",
        prompt: Prompt | None = None,
        fenced: bool = True,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or "pairwise_logprob_judge", fenced=fenced, **shown)
        if policy not in get_args(Settling):
            raise ConfigError(f"policy is {policy!r}", hint=f"use one of: {', '.join(get_args(Settling))}")
        if not 0.0 <= margin <= 0.5:
            raise ConfigError(f"margin is {margin}", hint="use a number in [0, 0.5]")
        self.policy: Settling = policy
        self.margin = margin
        self.max_outside = max_outside
        self.top_logprobs = top_logprobs
        self.prefill = prefill

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("policy", "margin", "max_outside", "top_logprobs", "prefill")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        """Compare two responses to one prompt."""
        try:
            material = self.material((first, second))
        except RubricateError as error:
            return Comparison.failed(failure_of(error), judge=self.name)
        if material.overflows:
            return Comparison.failed(next(iter(material.overflows.values())), judge=self.name)
        requests = [self._request(material, rubric, places) for places in ((0, 1), (1, 0))]
        replies = await self.model.complete_many(requests)
        votes = tuple(self._vote(order, reply) for order, reply in zip(get_args(Order), replies, strict=True))
        usage = sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())
        probability = _mean(votes)
        if probability is None:
            why = next(vote.failure for vote in votes if vote.failure is not None)
            return Comparison.failed(why, votes=votes, usage=usage, judge=self.name)
        consistent = votes[0].winner == votes[1].winner
        winner = self._winner(probability)
        if self.policy == "consistent-or-tie" and not consistent:
            winner = "tie"
        return Comparison(
            winner, probability=probability, consistent=consistent, votes=votes, usage=usage, judge=self.name
        )

    def _request(self, material: SharedMaterial, rubric: Rubric | None, places: Sequence[int]) -> ChatRequest:
        a, b = (material.response(place, f"response_{s}") for place, s in zip(places, "AB", strict=True))
        messages = self.request_messages(self.shared_values(material, rubric), {"a": a, "b": b})
        prefill = self.prefill if self.model.capabilities.prefill else ""
        return ChatRequest(messages, max_tokens=1, top_logprobs=self.top_logprobs, prefill=prefill)

    def _vote(self, order: Order, reply: Completion | ChatError) -> Vote:
        said = self._read(reply)
        if isinstance(said, Failure):
            return Vote(order, 0, None, said)
        probability = said if order == "given" else 1.0 - said
        return Vote(order, 0, self._winner(probability), probability=probability)

    def _read(self, reply: Completion | ChatError) -> float | Failure:
        if isinstance(reply, ChatError):
            return failure_of(reply)
        tokens = answer_tokens(reply, self.model.name)
        if isinstance(tokens, Failure):
            return tokens
        return letter_probability(tokens[0], self.max_outside)

    def _winner(self, probability: float) -> Preferred:
        if abs(probability - 0.5) <= self.margin:
            return "tie"
        return "first" if probability > 0.5 else "second"


def _mean(votes: Sequence[Vote]) -> float | None:
    given, swapped = (vote.probability for vote in votes)
    return debiased(given, None if swapped is None else 1.0 - swapped)


class PointwisePairJudge(PairJudge):
    """Compares two responses by the scores that a pointwise judge gives them, each alone: nothing has an order.

    A score is the overall verdict, or the weighted share of the rubric's criteria (see `weighted_share`). The way
    for judges that cannot compare, such as a small log-probability judge.

    Args:
        judge: the pointwise judge.
        margin: scores that differ by so much or less, in [0, 1], are a tie.
    """

    both_orders = True

    def __init__(self, judge: Judge[Rollout, Rubric], *, margin: float = 0.0) -> None:
        if not 0.0 <= margin <= 1.0:
            raise ConfigError(f"margin is {margin}", hint="use a number in [0, 1]")
        self.judge = judge
        self.margin = margin
        self.name = f"PointwisePairJudge({judge.name})"

    @property
    def fingerprint(self) -> str:
        """Of the judge and the margin."""
        return fingerprint([self.judge.fingerprint, self.margin])

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        """Compare two responses. Without a rubric, and where one score failed, the comparison failed."""
        if rubric is None:
            why = failure(FailureKind.REQUEST, "a pointwise judge needs a rubric")
            return Comparison.failed(why, judge=self.name)
        if first.prompt != second.prompt:
            return Comparison.failed(
                failure(FailureKind.REQUEST, "the responses answer different prompts"), judge=self.name
            )
        try:
            one, two = await asyncio.gather(self.judge.judge(first, rubric), self.judge.judge(second, rubric))
        except Exception as error:  # a judge of the user's own may raise anything
            return Comparison.failed(failure_of(error), judge=self.name)
        usage = one.usage + two.usage
        scores = [weighted_share(rubric, judgement) for judgement in (one, two)]
        numbers = [score for score in scores if not isinstance(score, Failure)]
        if len(numbers) < 2:
            why = next(score for score in scores if isinstance(score, Failure))
            return Comparison.failed(why, usage=usage, judge=self.name)
        ahead = numbers[0] - numbers[1]
        winner: Preferred = "tie" if abs(ahead) <= self.margin else "first" if ahead > 0 else "second"
        reason = f"scores {numbers[0]:.3f} and {numbers[1]:.3f}"
        return Comparison(winner, reason=reason, usage=usage, judge=self.name)

    async def aclose(self) -> None:
        """Close the judge."""
        await self.judge.aclose()
