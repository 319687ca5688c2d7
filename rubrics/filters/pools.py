"""Filters by scores of a pool of responses: what tells responses apart, and what goes with correctness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.filters.base import Case, Filtered, Outcome, Unknown, check_unknown, collected, each
from rubricate.rubrics.filters.judging import JudgeSource, identity_of, samples_of, with_table
from rubricate.rubrics.filters.table import ScoreTable, correlation, excess_variance, permutation_p, spread
from rubricate.types import fingerprint

__all__ = ["Correctness", "Discrimination", "Measure"]

Measure = Literal["std", "excess"]
"""How much a criterion tells responses apart: the population standard deviation of its scores over the pool, or
their variance beyond what repeats of one judgement vary."""


class PoolFilter:
    """Base of the filters that need the scores of a pool.

    Args:
        judge: judges pools that come without a table.
        repeats: judgements of each response.
        min_known: responses with a score that a criterion needs; with fewer it is unknown.
        unknown: what becomes of unknown criteria.
        concurrency: cases that are judged at the same time.
        name: in every decision.
    """

    def __init__(
        self,
        judge: JudgeSource | None,
        *,
        repeats: int,
        min_known: int,
        unknown: Unknown,
        concurrency: int,
        name: str,
    ) -> None:
        check_unknown(unknown)
        if repeats < 1 or concurrency < 1:
            raise ConfigError(f"repeats is {repeats} and concurrency {concurrency}", hint="use 1 or more")
        if min_known < 2:
            raise ConfigError(f"min_known is {min_known}", hint="a spread needs 2 or more")
        if judge is not None:
            samples_of(judge, repeats)  # a judge that cannot be repeated is an error before anything is paid for
        self.judge = judge
        self.repeats = repeats
        self.min_known = min_known
        self.unknown: Unknown = unknown
        self.concurrency = concurrency
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of the judge and the options."""
        return fingerprint([type(self).__name__, identity_of(self.judge, self.repeats), self.options()])

    def options(self) -> dict[str, object]:
        """The options that can change a decision. Subclasses add theirs."""
        return {"repeats": self.repeats, "min_known": self.min_known, "unknown": self.unknown}

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order; judged pools are handed on in `Case.table`."""

        async def one(item: tuple[int, Case]) -> Outcome:
            place, case = item
            judged, usage = await with_table(case, self.judge, self.repeats)
            outcome = Outcome(self.name, place, judged, self.unknown)
            outcome.usage = usage
            if judged.table is None:
                outcome.not_known("", "there is no pool of responses to look at")
            else:
                self.decide(outcome, judged, judged.table)
            return outcome

        return collected(await each(one, list(enumerate(cases)), self.concurrency))

    def decide(self, outcome: Outcome, case: Case, table: ScoreTable) -> None:
        """Drop and flag the criteria of a case."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the scores say of a criterion: how much it tells responses apart (None: unknown), and figures."""

    measure: float | None
    p: float | None
    figures: dict[str, float | int | str | None]


class Discrimination(PoolFilter):
    """Drops criteria that do not tell the responses of a pool apart, and all but the `top_k` that do so most.

    With `measure="std"` a criterion is dropped where the standard deviation (population, as in DR Tulu, 2511.19399)
    of its scores is at most `threshold`. A judge that tosses coins has a high one. With `measure="excess"` (ours)
    it is dropped where the variance between responses, less what repeats of a judgement vary, is at most
    `threshold` (see `excess_variance`), or where repeats dealt out at random vary as much with a chance above
    `alpha` (see `permutation_p`): the estimate alone is above 0 for about half of all coins. With 8 responses, one
    that differs from all others reaches p = .067 with 2 repeats, .004 with 3.

    Args:
        judge: judges pools that come without a table: a judge with `sample` and a temperature above 0, or, where
            its repeats are to be made otherwise, a function from sample index to judge.
        measure: see above.
        repeats: judgements a response; None is 1 for `std` and 3 for `excess`.
        threshold: of the standard deviation, or of the variance.
        top_k: keep at most so many criteria of a rubric, the earlier ones of equals; None keeps all. Criteria of
            which too little is known and that the option keeps do not count.
        alpha: highest chance, in (0, 1); None for no test. Of `excess` only.
        permutations, seed: of that test.
        min_known, unknown, concurrency, name: see `PoolFilter`.

    Raises ConfigError for options outside their ranges.
    """

    def __init__(
        self,
        judge: JudgeSource | None = None,
        *,
        measure: Measure = "std",
        repeats: int | None = None,
        threshold: float = 0.0,
        top_k: int | None = None,
        alpha: float | None = 0.05,
        permutations: int = 999,
        seed: int = 0,
        min_known: int = 2,
        unknown: Unknown = "keep",
        concurrency: int = 16,
        name: str = "discrimination",
    ) -> None:
        if measure not in get_args(Measure):
            raise ConfigError(f"measure is {measure!r}", hint=f"use one of {', '.join(get_args(Measure))}")
        count = (3 if measure == "excess" else 1) if repeats is None else repeats
        if measure == "excess" and count < 2:
            raise ConfigError("one judgement a response shows no variance of repeats", hint="use repeats=2 or more")
        if threshold < 0.0 or (top_k is not None and top_k < 1):
            raise ConfigError(f"threshold is {threshold} and top_k {top_k}", hint="use 0 or more, and 1 or more")
        if alpha is not None and not 0.0 < alpha < 1.0:
            raise ConfigError(f"alpha is {alpha}", hint="use a probability such as 0.05, or None")
        if permutations < 1 or (alpha is not None and alpha * (permutations + 1) < 1.0):
            raise ConfigError(
                f"{permutations} permutations cannot show a chance of {alpha}", hint="use more permutations"
            )
        super().__init__(
            judge, repeats=count, min_known=min_known, unknown=unknown, concurrency=concurrency, name=name
        )
        self.measure: Measure = measure
        self.threshold = threshold
        self.top_k = top_k
        self.alpha = alpha
        self.permutations = permutations
        self.seed = seed

    def options(self) -> dict[str, object]:
        """Adds the options of this filter."""
        names = ("measure", "threshold", "top_k", "alpha", "permutations", "seed")
        return super().options() | {name: getattr(self, name) for name in names}

    def decide(self, outcome: Outcome, case: Case, table: ScoreTable) -> None:
        """Drop what tells nothing apart, then all but the best."""
        found = list[tuple[float, int, Criterion, _Seen]]()
        for place, criterion in enumerate(case.rubric.criteria):
            seen = self._seen(criterion, table)
            if seen.measure is None:
                outcome.not_known(criterion.id, "too few judgements succeeded", **seen.figures)
            elif seen.measure <= self.threshold:
                outcome.drop(criterion.id, self._says_nothing(seen), **seen.figures)
            elif seen.p is not None and self.alpha is not None and seen.p > self.alpha:
                reason = "its scores vary no more between responses than repeats dealt out at random"
                outcome.drop(criterion.id, reason, **seen.figures)
            else:
                found.append((-seen.measure, place, criterion, seen))
        if self.top_k is not None:
            for _, _, criterion, seen in sorted(found, key=lambda entry: entry[:2])[self.top_k :]:
                reason = f"it is not among the {self.top_k} that tell the responses apart most"
                outcome.drop(criterion.id, reason, **seen.figures)

    def _says_nothing(self, seen: _Seen) -> str:
        if self.measure == "excess":
            return "its scores vary no more between responses than between repeats"
        return "every response has the same score" if seen.measure == 0.0 else "its scores hardly vary"

    def _seen(self, criterion: Criterion, table: ScoreTable) -> _Seen:
        scores, means = table.of(criterion.id), table.means(criterion.id)
        failed, absent = table.missing(criterion.id)
        known = int((~np.isnan(means)).sum())
        std = spread(means)
        figures: dict[str, float | int | str | None] = {
            "std": std,
            "responses": len(means),
            "known": known,
            "failed": failed,
            "not_applicable": absent,
        }
        if self.measure == "std":
            return _Seen(std if known >= self.min_known else None, None, figures)
        parts = excess_variance(scores)
        if parts is None or known < self.min_known:
            return _Seen(None, None, figures)
        p = None
        if self.alpha is not None and parts[0] > self.threshold:
            p = permutation_p(scores, permutations=self.permutations, seed=self.seed)
        figures |= {"excess": parts[0], "within": parts[1]} | ({"p": p} if p is not None else {})
        return _Seen(parts[0], p, figures)


class Correctness(PoolFilter):
    """Drops criteria whose scores do not go with the responses' correctness.

    RLCER keeps an item where its correlation with correctness is above .2 and its standard deviation above 0. Of a
    penalty the correlation counts with its sign turned: an error that goes with wrong answers is a good penalty
    (ours; RLCER has rewards alone). The case's `correct` says which responses are correct. Where the standard
    deviation is 0 the criterion is dropped; where all responses known are equally correct it is unknown.

    Args:
        judge: judges pools that come without a table.
        threshold: of the correlation, in [-1, 1]; a criterion is kept above it.
        repeats, min_known, unknown, concurrency, name: see `PoolFilter`.
    """

    def __init__(
        self,
        judge: JudgeSource | None = None,
        *,
        threshold: float = 0.2,
        repeats: int = 1,
        min_known: int = 4,
        unknown: Unknown = "keep",
        concurrency: int = 16,
        name: str = "correctness",
    ) -> None:
        if not -1.0 <= threshold <= 1.0:
            raise ConfigError(f"threshold is {threshold}", hint="a correlation is in [-1, 1]")
        super().__init__(
            judge, repeats=repeats, min_known=min_known, unknown=unknown, concurrency=concurrency, name=name
        )
        self.threshold = threshold

    def options(self) -> dict[str, object]:
        """Adds the threshold."""
        return super().options() | {"threshold": self.threshold}

    def decide(self, outcome: Outcome, case: Case, table: ScoreTable) -> None:
        """Drop what does not go with correctness."""
        if len(case.correct) != len(table.scores):
            if case.correct:
                raise ConfigError(
                    f"case {case.name!r} has {len(case.correct)} labels for {len(table.scores)} responses"
                )
            outcome.not_known("", "nothing is known of the responses' correctness")
            return
        labels = np.array([math.nan if one is None else float(one) for one in case.correct])
        for criterion in case.rubric.criteria:
            means = table.means(criterion.id)
            both = ~(np.isnan(means) | np.isnan(labels))
            known = int(both.sum())
            failed, absent = table.missing(criterion.id)
            value, _ = correlation(means, labels)
            signed = None if value is None else criterion.sign * value
            std = spread(np.where(both, means, np.nan))
            counts = {"known": known, "failed": failed, "not_applicable": absent}
            if known < self.min_known:
                outcome.not_known(criterion.id, "too few responses have a score and a label", std=std, **counts)
            elif std == 0.0:
                outcome.drop(criterion.id, "every response has the same score", std=std, **counts)
            elif signed is None:
                outcome.not_known(criterion.id, "the responses are all equally correct", std=std, **counts)
            elif signed <= self.threshold:
                reason = f"its correlation with correctness is not above {self.threshold:g}"
                outcome.drop(criterion.id, reason, correlation=signed, std=std, **counts)
