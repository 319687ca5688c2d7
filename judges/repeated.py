"""Repeated sampling: one judge asked n times, the mean of it, and no more samples than the decision needs."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, pstdev
from typing import Protocol, runtime_checkable

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge, failure
from rubricate.judges.intervals import METHODS, interval
from rubricate.judges.members import ask, is_outage, summed
from rubricate.rubrics import BinaryScale, Criterion, Rubric
from rubricate.types import Judgement, Usage, Verdict, fingerprint

__all__ = ["Repeated"]

Factory = Callable[[int], CriteriaJudge]
"""Makes the judge of a sample, from its index. A module-level function, for the combinator to pickle."""


@runtime_checkable
class _Sampled(Protocol):
    """A judge that can be repeated: its requests carry `sample`, and the sampling is not greedy."""

    sample: int
    temperature: float
    seed: int | None


class Repeated(CriteriaJudge):
    """Asks one judge n times about every criterion and takes the mean of the samples that can be used.

    Samples differ in `ChatRequest.sample`, so that caches and recordings keep them apart, and in the seed where
    there is one. Failed samples leave the mean; "does not apply" is the verdict where more than half of the usable
    samples say so. With a `threshold`, sampling stops, criterion by criterion, once the interval of the mean lies
    on one side of it, or once the samples that are left cannot carry the mean of all n across it.

    Args:
        judge: a judge with `sample`, `seed` and a `temperature` above 0 (CriterionJudge, RatingJudge, another
            Repeated), or a function that makes the judge of a sample from its index, which must make them differ in
            `sample`.
        n: samples at most.
        threshold: in [0, 1]; the side of it is what is to be decided. None takes all n.
        interval: `chernoff` (default) or `hoeffding` (Hoeffding 1963, Theorem 1 in its sharper and its plainer
            form: sure for any scores in [0, 1]), or `student` (Student's t: about right for many samples of a
            smooth score, too sure of few equal ones). The first two share the error among the looks (union bound).
        confidence: of the interval, in (0, 1), over all looks together.
        batch: samples asked for at the same time, between two looks.
        min_ok: usable samples needed; below, the verdict failed. None is more than half of those that were asked.

    The mean is score and, on binary criteria, probability; its spread and interval are in the reason. RLCF
    (2507.18624) takes the mean of 25 samples at temperature 1.3; see `rlcf_judge`.

    Raises ConfigError for a greedy judge, one that cannot be repeated, or options that do not fit.
    """

    def __init__(
        self,
        judge: CriteriaJudge | Factory,
        *,
        n: int = 25,
        threshold: float | None = None,
        interval: str = "chernoff",
        confidence: float = 0.95,
        batch: int = 5,
        min_ok: int | None = None,
        name: str = "",
    ) -> None:
        if n < 1 or batch < 1:
            raise ConfigError(f"n is {n} and batch {batch}", hint="use 1 or more")
        if min_ok is not None and not 1 <= min_ok <= n:
            raise ConfigError(f"min_ok is {min_ok} with {n} samples", hint=f"use 1 to {n}")
        if threshold is not None and not 0.0 <= threshold <= 1.0:
            raise ConfigError(f"the threshold is {threshold}", hint="scores are in [0, 1]")
        if interval not in METHODS:
            raise ConfigError(f"there is no interval {interval!r}", hint=f"use one of {', '.join(METHODS)}")
        if not 0.0 < confidence < 1.0:
            raise ConfigError(f"the confidence is {confidence}", hint="use a probability, such as 0.95")
        self.n = n
        self.threshold = threshold
        self.interval = interval
        self.confidence = confidence
        self.batch = batch if threshold is not None else n
        self.min_ok = min_ok
        self.samples = _samples(judge, n)
        self.view = self.samples[0].view
        self.name = name or f"{self.samples[0].name} x{n}"

    @property
    def fingerprint(self) -> str:
        """Of the samples' judges and the options."""
        judges = [judge.fingerprint for judge in self.samples]
        options = [self.threshold, self.interval, self.confidence, self.batch, self.min_ok]
        return fingerprint(["repeated", judges, options])

    def check(self, rubric: Rubric) -> None:
        """Raises what the judge's own check raises."""
        self.samples[0].check(rubric)

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        said: list[list[Verdict]] = [[] for _ in criteria]
        open_ = list(range(len(criteria)))
        usage = Usage()
        for start in range(0, self.n, self.batch):
            asked = [criteria[index] for index in open_]
            judges = self.samples[start : start + self.batch]
            judgements = await asyncio.gather(*(ask(judge, rollout, asked) for judge in judges))
            usage += summed(judgements)
            for position, index in enumerate(open_):
                said[index] += [judgement.verdicts[position] for judgement in judgements]
            open_ = [index for index in open_ if not self._done(said[index])]
            if not open_:
                break
        verdicts = tuple(self._verdict(c, samples) for c, samples in zip(criteria, said, strict=True))
        return Judgement(verdicts, usage=usage)

    def _done(self, samples: Sequence[Verdict]) -> bool:
        """Whether more samples of this criterion would be wasted."""
        failures = [verdict.failure for verdict in samples if verdict.failure is not None]
        if len(failures) == len(samples):
            return all(is_outage(why) and not why.retryable for why in failures)
        scores = [verdict.score for verdict in samples if verdict.score is not None]
        enough = self.min_ok or len(samples) // 2 + 1
        if self.threshold is None or len(scores) < enough or len(scores) + len(failures) < len(samples):
            return False
        low, high = self._interval(scores)
        left = self.n - len(samples)
        total, most = sum(scores), len(scores) + left
        low, high = max(low, total / most), min(high, (total + left) / most)
        return low >= self.threshold or high < self.threshold

    def _interval(self, scores: Sequence[float]) -> tuple[float, float]:
        looks = -(-self.n // self.batch)
        return interval(self.interval, scores, self.confidence, looks=looks)

    def _verdict(self, criterion: Criterion, samples: Sequence[Verdict]) -> Verdict:
        usable = [verdict for verdict in samples if verdict.failure is None]
        if len(usable) < (self.min_ok or len(samples) // 2 + 1):
            return self._failed(criterion, samples, len(usable))
        scores = [verdict.score for verdict in usable if verdict.score is not None]
        if 2 * len(scores) < len(usable):
            reason = f"{len(usable) - len(scores)} of {len(usable)} samples say that it does not apply"
            return Verdict.not_applicable(criterion.id, judge=self.name, reason=reason)
        mean = min(max(fmean(scores), 0.0), 1.0)
        probability = mean if isinstance(criterion.scale, BinaryScale) else None
        reason = self._reason(mean, scores, samples, usable)
        return Verdict(criterion.id, mean, probability=probability, reason=reason, judge=self.name)

    def _reason(
        self, mean: float, scores: Sequence[float], samples: Sequence[Verdict], usable: Sequence[Verdict]
    ) -> str:
        low, high = self._interval(scores)
        parts = [
            f"mean of {len(scores)} samples {mean:.3f}, standard deviation {pstdev(scores):.3f}, "
            f"{self.confidence:.0%} interval {low:.3f} to {high:.3f}"
        ]
        if len(samples) < self.n:
            parts.append(f"stopped after {len(samples)} of {self.n}")
        if len(usable) < len(samples):
            parts.append(f"{len(samples) - len(usable)} failed")
        if len(scores) < len(usable):
            parts.append(f"{len(usable) - len(scores)} say that it does not apply")
        # The reason that stands for the mean is that of the sample nearest to it.
        nearest = min((v for v in usable if v.score is not None), key=lambda v: abs((v.score or 0.0) - mean))
        return "; ".join(parts) + (f". One of them: {nearest.reason}" if nearest.reason else "")

    def _failed(self, criterion: Criterion, samples: Sequence[Verdict], usable: int) -> Verdict:
        """The failure of too few usable samples. Outages are to blame where their samples would have sufficed."""
        failures = [verdict.failure for verdict in samples if verdict.failure is not None]
        needed = self.min_ok or len(samples) // 2 + 1
        outages = [why for why in failures if is_outage(why)]
        blamed = outages if usable + len(outages) >= needed else [why for why in failures if not is_outage(why)]
        kind, _ = Counter(why.kind for why in blamed).most_common(1)[0]
        first = next(why for why in blamed if why.kind is kind)
        message = f"{usable} of {len(samples)} samples could be used, {needed} are needed: {first.message}"
        why = failure(kind, message, retryable=any(why.retryable for why in failures))
        return Verdict.failed(criterion.id, why, judge=self.name)

    async def aclose(self) -> None:
        """Close the samples' judges."""
        for judge in self.samples:
            await judge.aclose()


def _samples(judge: CriteriaJudge | Factory, n: int) -> tuple[CriteriaJudge, ...]:
    """The judges of the samples, which differ in `sample`. Raises ConfigError where they do not, or are greedy."""
    if isinstance(judge, CriteriaJudge):
        return tuple(_with_sample(judge, index, n) for index in range(n))
    made = tuple(judge(index) for index in range(n))
    for one in made:
        _check_greedy(one)
    indices = [one.sample for one in made if isinstance(one, _Sampled)]
    if len(set(indices)) < len(indices):
        raise ConfigError(
            "the judges of several samples have the same `sample`: they would share one answer",
            hint="pass the index on, as in `lambda i: CriterionJudge(model, sample=i, temperature=1.0)`",
        )
    return made


def _with_sample(judge: CriteriaJudge, index: int, of: int) -> CriteriaJudge:
    """The judge of one of `of` samples: a copy on the same model. Nested repetitions have indices that differ."""
    twin = copy.copy(judge)
    if isinstance(twin, Repeated):
        twin.samples = tuple(_with_sample(inner, index, of) for inner in twin.samples)
        return twin
    if not isinstance(twin, _Sampled):
        raise ConfigError(
            f"{judge.name} cannot be repeated: it has no `sample`, so its answers would be one and the same",
            hint="repeat the judge inside it, or give a function that makes the judge of a sample from its index",
        )
    _check_greedy(judge)
    before = twin.sample
    twin.sample = before * of + index
    if twin.seed is not None:  # the same seed would bring the same answer
        twin.seed += twin.sample - before
    return twin


def _check_greedy(judge: CriteriaJudge) -> None:
    if isinstance(judge, _Sampled) and judge.temperature <= 0.0:
        raise ConfigError(
            f"{judge.name} samples at temperature {judge.temperature:g}: every sample would be the same",
            hint="set a temperature above 0 (RLCF takes 1.3)",
        )
