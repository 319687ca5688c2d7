"""Settles whose doing the failures of a whole run are, once every row is judged.

While a run goes on, a failure's cause is judged by the row alone; `RubricReward` decides it by the row's siblings,
and here all rows of the file are siblings. Nothing is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from rubricate.cli.inputs import Unit
from rubricate.rewardmodels.aggregation import Aggregation
from rubricate.rewardmodels.causes import Judged, Siblings
from rubricate.rewardmodels.channels import Channels
from rubricate.rewardmodels.plan import make_plan
from rubricate.rewardmodels.scoring import aggregate
from rubricate.types import Judgement, Reward, Status, Verdict

__all__ = ["Settler"]

Question = tuple[str, str]
Rewards = Callable[[], Iterable[tuple[Unit, Reward]]]


class Settler:
    """Gives rewards again with their causes settled.

    Args:
        rewards: goes through all responses and their rewards, as often as it is called.
        aggregation: how the rewards were made.
        channels: names of their channels.
    """

    def __init__(self, rewards: Rewards, aggregation: Aggregation, channels: tuple[str, ...]) -> None:
        self._aggregation = aggregation
        self._channels = Channels(channels) if channels else None
        doubtful = {question for _, reward in rewards() for question in _doubtful(reward)}
        self._siblings = Siblings()
        if doubtful:
            self._count(rewards(), doubtful)

    def _count(self, rewards: Iterable[tuple[Unit, Reward]], doubtful: set[Question]) -> None:
        """Count what became of the doubtful questions, and of one other for each judge: it shows that it judges."""
        judging: set[str] = set()
        for unit, reward in rewards:
            counted: list[Verdict] = []
            for verdict in reward.verdicts:
                first = verdict.status is not Status.FAILED and verdict.judge not in judging
                if first or (verdict.judge, verdict.criterion_id) in doubtful:
                    counted.append(verdict)
                if first:
                    judging.add(verdict.judge)
            self._siblings.add(unit.rubric, Judged(tuple(counted), reward.overall))

    def settle(self, unit: Unit, reward: Reward) -> Reward:
        """The reward with the causes of its failures settled; its value follows the aggregation's policies."""
        row = Judged(reward.verdicts, reward.overall)
        settled = self._siblings.settle(unit.rubric, row)
        if settled == row:
            return reward
        judgement = Judgement(settled.verdicts, settled.overall)
        score = aggregate(self._aggregation, unit.rubric, judgement)
        return replace(
            reward,
            value=score.value,
            status=score.status,
            coverage=score.coverage,
            bounds=score.bounds,
            vetoed_by=score.vetoed_by,
            failure=score.failure,
            verdicts=settled.verdicts,
            overall=settled.overall,
            channels=self._channel_values(unit, settled),
        )

    def _channel_values(self, unit: Unit, row: Judged) -> dict[str, float | None]:
        if self._channels is None:
            return {}
        parts = self._channels.parts(unit.rubric, make_plan(self._aggregation, unit.rubric))
        return self._channels.values(self._aggregation, parts, row.verdicts)


def _doubtful(reward: Reward) -> Iterator[Question]:
    if Judged(reward.verdicts, reward.overall).open:
        for verdict in reward.verdicts:
            if Judged((verdict,)).open:
                yield verdict.judge, verdict.criterion_id
        if reward.overall is not None:
            yield reward.overall.judge, reward.overall.criterion_id
