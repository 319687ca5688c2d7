"""Combinators: send each criterion to the judge that can decide it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge, failure_of
from rubricate.judges.view import name_of
from rubricate.rubrics import BinaryScale, Criterion, Rubric
from rubricate.types import Judgement, Usage, Verdict, fingerprint

__all__ = ["Route", "Router", "anything", "has_verifier", "is_binary"]

log = logging.getLogger(__name__)

Route = tuple[Callable[[Criterion], bool], CriteriaJudge]


def has_verifier(criterion: Criterion) -> bool:
    """Code decides this criterion."""
    return criterion.verifier is not None


def is_binary(criterion: Criterion) -> bool:
    """The criterion is met or not, with nothing between."""
    return isinstance(criterion.scale, BinaryScale)


def anything(criterion: Criterion) -> bool:
    """Every criterion."""
    return True


class Router(CriteriaJudge):
    """Gives each criterion to the first judge whose test accepts it; the judges run at the same time.

    Verdicts come back in rubric order. Tests must be module-level functions for the router to pickle.

    Args:
        routes: pairs of test and judge. A criterion that no test accepts raises ConfigError.
    """

    def __init__(self, routes: Sequence[Route], *, name: str = "") -> None:
        if not routes:
            raise ConfigError("a router needs at least one route")
        self.routes = tuple(routes)
        self.view = routes[-1][1].view
        self.name = name or " + ".join(dict.fromkeys(judge.name for _, judge in routes))

    @property
    def fingerprint(self) -> str:
        """Of the routes, in order."""
        return fingerprint([[name_of(test), judge.fingerprint] for test, judge in self.routes])

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        parts: list[list[Criterion]] = [[] for _ in self.routes]
        for criterion in criteria:
            parts[self._route(criterion)].append(criterion)
        judgements = await asyncio.gather(
            *(_judged(judge, rollout, part) for (_, judge), part in zip(self.routes, parts, strict=True) if part)
        )
        by_id: dict[str, Verdict] = {v.criterion_id: v for judgement in judgements for v in judgement.verdicts}
        usage = sum((judgement.usage for judgement in judgements), Usage())
        return Judgement(tuple(by_id[criterion.id] for criterion in criteria), usage=usage)

    def check(self, rubric: Rubric) -> None:
        """Raises what the judges' own checks raise, and ConfigError for a criterion that no judge takes."""
        for criterion in rubric.criteria:
            self._route(criterion)
        for _, judge in self.routes:
            judge.check(rubric)

    def _route(self, criterion: Criterion) -> int:
        for index, (test, _) in enumerate(self.routes):
            if test(criterion):
                return index
        raise ConfigError(f"no judge takes the criterion {criterion.id!r}", hint="add a route for `anything`")

    async def aclose(self) -> None:
        """Close every judge."""
        for _, judge in self.routes:
            await judge.aclose()


async def _judged(judge: CriteriaJudge, rollout: Rollout, part: Sequence[Criterion]) -> Judgement:
    """What the judge says. One that breaks takes the verdicts of the others with it nowhere."""
    try:
        return await judge.judge_criteria(rollout, part)
    except Exception as error:
        log.error("judge %s failed on the rollout %r", judge.name, rollout.id, exc_info=error)
        return judge.fail_all(part, failure_of(error))
