"""The offline difficulty filter (Rubicon, 2508.12790): prompts that a base model answers neither well nor badly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rubricate.chat.base import ChatModel, ChatRequest, Message
from rubricate.chat.reasoning import strip_reasoning
from rubricate.data.records import Rollout, Turn
from rubricate.errors import ChatError, ConfigError
from rubricate.rubrics.criterion import Polarity
from rubricate.rubrics.filters.base import Case, Filtered, Outcome, Unknown, check_unknown, collected, each
from rubricate.rubrics.filters.judging import JudgeSource, identity_of, with_table
from rubricate.rubrics.filters.table import ScoreTable
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Usage, fingerprint

__all__ = ["CentralDifficulty", "answer_pool", "central_bounds", "pool_score"]


def central_bounds(scores: Sequence[float | None], low: float = 0.25, high: float = 0.75) -> tuple[float, float]:
    """The scores between which the central quantile lies: those at the quantiles `low` and `high` of the known.

    Rubicon keeps the central quantile of a critic's scores; its bounds are not published, .25 and .75 are ours.
    The bounds are scores that occur (the nearest ones), so that something always stays. Raises ConfigError where
    0 <= low < high <= 1 does not hold, and where no score is known.
    """
    if not 0.0 <= low < high <= 1.0:
        raise ConfigError(f"quantiles are {low} and {high}", hint="use 0 <= low < high <= 1")
    known = [score for score in scores if score is not None]
    if not known:
        raise ConfigError("no score is known")
    below, above = np.quantile(np.array(known, dtype=np.float64), [low, high], method="nearest")
    return float(below), float(above)


def pool_score(rubric: Rubric, table: ScoreTable, *, min_coverage: float = 0.5) -> float | None:
    """How well a pool does by a rubric, in [0, 1]: the mean over responses of sum w e / sum w (ours).

    e is the score, and 1 - score for a penalty. Unknown scores are left out; a response of which less than
    `min_coverage` of the weight is known counts not at all. None where no response is left.
    """
    weights = np.array([one.weight for one in rubric.criteria])
    columns = [
        1.0 - table.means(one.id) if one.polarity is Polarity.PENALTY else table.means(one.id)
        for one in rubric.criteria
    ]
    credits = np.stack(columns, axis=1)
    known = ~np.isnan(credits)
    mass = (known * weights).sum(axis=1)
    total = float(weights.sum())
    usable = (mass > 0) & (mass >= min_coverage * total)
    if not usable.any():
        return None
    sums = (np.where(known, credits, 0.0) * weights).sum(axis=1)
    return float((sums[usable] / mass[usable]).mean())


async def answer_pool(
    model: ChatModel,
    sources: Sequence[Source],
    *,
    samples: int = 1,
    max_tokens: int = 1024,
    temperature: float = 1.0,
    concurrency: int = 16,
) -> tuple[list[tuple[Rollout, ...]], Usage]:
    """Answers of a base model to each source's prompt, for the pool of a `Case`.

    An answer that could not be had is left out: a pool may have fewer than `samples`, or none. Raises ConfigError
    for samples or a concurrency below 1.
    """
    if samples < 1 or concurrency < 1:
        raise ConfigError(f"samples is {samples} and concurrency {concurrency}", hint="use 1 or more")

    async def one(item: tuple[Source, int]) -> tuple[Rollout | None, Usage]:
        source, sample = item
        request = ChatRequest(
            tuple(_messages(source)), max_tokens=max_tokens, temperature=temperature, sample=sample
        )
        try:
            reply = await model.complete(request)
            text = strip_reasoning(reply.require_text(model.name)).strip()
        except ChatError:
            return None, Usage()
        made = Rollout(source.prompt, text, source.reference, f"{source.id}#{sample}", finish=reply.finish.value)
        return (made if text else None), reply.usage

    work = [(source, sample) for source in sources for sample in range(samples)]
    done = await each(one, work, concurrency)
    pools = [
        tuple(made for made, _ in done[at : at + samples] if made is not None)
        for at in range(0, len(done), samples)
    ]
    return pools, sum((cost for _, cost in done), Usage())


def _messages(source: Source) -> list[Message]:
    turns = (Turn("user", source.prompt),) if isinstance(source.prompt, str) else source.prompt
    return [Message(turn.role, turn.content) for turn in turns]


class CentralDifficulty:
    """The filter that keeps prompts of middling difficulty: their pool's score lies in the central quantile.

    A case's pool holds answers of the base model (`answer_pool`); a judge scores them by the case's rubric, and
    `pool_score` says how well they do. Cases below the lower bound are too hard to learn from, those above the
    upper one too easy. Where many scores are equal to a bound, all of them stay.

    Args:
        judge: judges pools that come without a table.
        low, high: quantiles of the cases that are given together; see `central_bounds`.
        min_coverage: see `pool_score`.
        unknown: what becomes of cases without a score.
        concurrency: cases that are judged at the same time.
    """

    def __init__(
        self,
        judge: JudgeSource | None = None,
        *,
        low: float = 0.25,
        high: float = 0.75,
        min_coverage: float = 0.5,
        unknown: Unknown = "keep",
        concurrency: int = 16,
        name: str = "central_difficulty",
    ) -> None:
        central_bounds([0.0], low, high)
        check_unknown(unknown)
        if concurrency < 1 or not 0.0 <= min_coverage <= 1.0:
            raise ConfigError(
                f"concurrency is {concurrency} and min_coverage {min_coverage}", hint="1 or more, [0, 1]"
            )
        self.judge = judge
        self.low, self.high = low, high
        self.min_coverage = min_coverage
        self.unknown: Unknown = unknown
        self.concurrency = concurrency
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of the judge and the options."""
        options = [self.low, self.high, self.min_coverage, self.unknown]
        return fingerprint(["central difficulty", identity_of(self.judge), options])

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order. The bounds are those of these cases; `figures` has them."""

        async def one(case: Case) -> tuple[Case, Usage]:
            return await with_table(case, self.judge, 1)

        judged = await each(one, list(cases), self.concurrency)
        scores = [
            None if case.table is None else pool_score(case.rubric, case.table, min_coverage=self.min_coverage)
            for case, _ in judged
        ]
        known = [score for score in scores if score is not None]
        below, above = central_bounds(known, self.low, self.high) if known else (0.0, 1.0)
        outcomes: list[Outcome] = []
        for place, ((case, usage), score) in enumerate(zip(judged, scores, strict=True)):
            outcome = Outcome(self.name, place, case, self.unknown)
            outcome.usage = usage
            if score is None:
                outcome.not_known("", "no response of the pool could be judged")
            elif score < below:
                outcome.drop_rubric("too hard: the score is below the central quantile", score=score, low=below)
            elif score > above:
                outcome.drop_rubric("too easy: the score is above the central quantile", score=score, high=above)
            outcomes.append(outcome)
        figures = {f"{self.name}.low": below, f"{self.name}.high": above} if known else {}
        return collected(outcomes, figures)
