"""Causes settled after the fact are those that one call over all rows would have settled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubricate.cli.inputs import Unit
from rubricate.cli.settling import Settler
from rubricate.data.records import Rollout
from rubricate.rewardmodels import RubricReward, preset
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Reward, RewardStatus, Verdict

RUBRICS = (
    Rubric(id="a", criteria=(Criterion(id="x", text="X.", channel="one"), Criterion(id="y", text="Y.", weight=2))),
    Rubric(id="b", criteria=(Criterion(id="x", text="X, other."), Criterion(id="z", text="Z.", channel="one"))),
)


@dataclass(frozen=True)
class Scripted:
    """A judge that says of row n and criterion k what is written for them; two judges share the criteria."""

    script: Sequence[Sequence[str]]
    name: str = "scripted"
    fingerprint: str = "scripted"

    async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
        told = self.script[int(rollout.id)]
        return Judgement(tuple(map(self._verdict, rubric.criteria, told)))

    def _verdict(self, criterion: Criterion, told: str) -> Verdict:
        judge = "second" if criterion.id == "z" else "first"
        if told in ("0", "1"):
            return Verdict(criterion.id, float(told), judge=judge)
        if told == "na":
            return Verdict.not_applicable(criterion.id, judge=judge)
        kind = FailureKind(told)
        return Verdict.failed(criterion.id, Failure(kind, FailureCause.INFRASTRUCTURE, "why"), judge=judge)

    def check(self, rubric: Rubric) -> None:
        return None

    async def aclose(self) -> None:
        return None


TOLD = st.sampled_from(["0", "1", "na", "low_mass", "overflow", "server"])
SCRIPTS = st.lists(st.tuples(st.integers(0, 1), st.tuples(TOLD, TOLD)), min_size=1, max_size=6)


@pytest.mark.parametrize(
    "options",
    [{}, {"response_failures": "floor"}, {"missing": "skip", "min_coverage": 0.3}],
    ids=["mask", "floor", "skip"],
)
@settings(max_examples=60, deadline=None)
@given(rows=SCRIPTS)
def test_settling_rows_that_were_scored_alone_is_scoring_them_together(
    options: dict[str, object], rows: list[tuple[int, tuple[str, str]]]
) -> None:
    aggregation = preset("weighted", **options)
    reward = RubricReward(Scripted([told for _, told in rows]), aggregation=aggregation, channels=["one"])
    units = [Unit(n, n + 1, Rollout("p", f"r{n}", id=str(n)), RUBRICS[which]) for n, (which, _) in enumerate(rows)]

    async def both() -> tuple[list[Reward], list[Reward]]:
        alone = [await reward.ascore(unit.rollout, unit.rubric) for unit in units]
        together = await reward.ascore_batch([unit.rollout for unit in units], [unit.rubric for unit in units])
        return alone, together

    alone, together = asyncio.run(both())

    def pairs() -> Iterable[tuple[Unit, Reward]]:
        return zip(units, alone, strict=True)

    settler = Settler(pairs, aggregation, reward.channels)
    settled = [replace(settler.settle(unit, found), latency=0.0) for unit, found in pairs()]
    assert settled == [replace(found, latency=0.0) for found in together]


def test_what_only_one_response_could_not_get_is_its_own_doing() -> None:
    aggregation = preset("weighted", response_failures="floor")
    reward = RubricReward(Scripted([("1", "1"), ("overflow", "overflow")]), aggregation=aggregation)
    units = [Unit(n, n + 1, Rollout("p", f"r{n}", id=str(n)), RUBRICS[0]) for n in range(2)]
    alone = [reward.score(unit.rollout, unit.rubric) for unit in units]
    assert alone[1].status is RewardStatus.UNSCORED
    settler = Settler(lambda: zip(units, alone, strict=True), aggregation, reward.channels)
    settled = settler.settle(units[1], alone[1])
    assert (settled.status, settled.value) == (RewardStatus.FLOORED, 0.0)
    assert settled.failure is not None and settled.failure.cause is FailureCause.RESPONSE
