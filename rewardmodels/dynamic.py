"""Rewards whose rubrics are made when responses are scored, once a prompt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rubricate.bridge import run_sync
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.failures import failure_of
from rubricate.rewardmodels.reward import RubricReward
from rubricate.rewardmodels.trl_contract import finish_call, read_call
from rubricate.rubrics import Rubric, compose
from rubricate.rubrics.generators.base import Generated, Generator, Need
from rubricate.rubrics.generators.cached import PromptRubrics
from rubricate.rubrics.generators.source import Source
from rubricate.types import Reward, RewardStatus, Usage

__all__ = ["DynamicReward", "group_source"]

log = logging.getLogger(__name__)


def group_source(rollouts: Sequence[Rollout]) -> Source:
    """The source that rollouts of one prompt make: prompt, first reference, and the responses as candidates."""
    first = rollouts[0]
    reference = next((one.reference for one in rollouts if one.reference), None)
    return Source(first.prompt, reference, candidates=tuple(one.response for one in rollouts), id=first.id)


@dataclass(frozen=True, slots=True)
class _Made:
    """The rubric of a prompt, where there is one, and whose reward bears its cost."""

    generated: Generated
    first: int


class DynamicReward:
    """A reward that has a generator write the rubric of each prompt when responses to it are scored.

    The rubric is made once a prompt and kept; a row's own rubric and the reward's constant one add up with it, so
    that what always holds (a veto against hacking, say) need not be generated. A prompt for which no rubric can be
    had leaves its rows unscored, with the generator's failure: never scored by less. It is a reward function of TRL
    as `RubricReward` is.

    Where the generator looks at candidates (`PrinciplesGenerator`), it sees the responses of the call to that
    prompt, and each group has a rubric of its own.

    Args:
        reward: scores against the rubrics: judge, aggregation, channels, deadline.
        generator: writes the rubrics; or `PromptRubrics`, to share them among rewards.
        source: makes the source of a group of rollouts with one prompt.

    A call returns within the time for a rubric (`PromptRubrics.seconds`, 120 s) and the reward's own deadline.
    """

    def __init__(
        self,
        reward: RubricReward,
        generator: Generator | PromptRubrics,
        *,
        source: Callable[[Sequence[Rollout]], Source] = group_source,
    ) -> None:
        self.reward = reward
        self.rubrics = generator if isinstance(generator, PromptRubrics) else PromptRubrics(generator)
        self.source = source
        self.__name__ = reward.name

    @property
    def name(self) -> str:
        """The reward's name."""
        return self.__name__

    async def rubric_of(self, rollouts: Sequence[Rollout]) -> Generated:
        """The rubric for rollouts with one prompt, or why there is none."""
        try:
            return await self.rubrics.get(self.source(rollouts))
        except ConfigError:
            raise
        except Exception as error:
            log.error("generator %s failed", self.rubrics.generator.name, exc_info=error)
            return Generated.failed(failure_of(error))

    async def ascore_batch(
        self, rollouts: Sequence[Rollout], rubrics: Sequence[Rubric | None] | None = None
    ) -> list[Reward]:
        """The rewards of many responses, in order; rubrics of rows add up with the generated ones.

        Raises ConfigError for a source that lacks what the generator needs, and what `RubricReward` raises.
        """
        own = [None] * len(rollouts) if rubrics is None else list(rubrics)
        if len(own) != len(rollouts):
            raise ConfigError(f"{len(rollouts)} rollouts and {len(own)} rubrics", hint="give one rubric a rollout")
        made = await self._made(rollouts)
        rows: list[tuple[int, Rubric]] = []
        rewards: dict[int, Reward] = {}
        for index, (found, extra) in enumerate(zip(made, own, strict=True)):
            rubric = found.generated.rubric
            if rubric is None:
                rewards[index] = self._unscored(found.generated)
            else:
                rows.append((index, rubric if extra is None else compose([extra, rubric])))
        scored = await self.reward.ascore_batch([rollouts[i] for i, _ in rows], [rubric for _, rubric in rows])
        rewards |= {index: reward for (index, _), reward in zip(rows, scored, strict=True)}
        for index, found in enumerate(made):
            if found.first == index:
                rewards[index] = replace(rewards[index], usage=rewards[index].usage + found.generated.usage)
        return [rewards[index] for index in range(len(rollouts))]

    async def _made(self, rollouts: Sequence[Rollout]) -> list[_Made]:
        """For each rollout the rubric of its prompt; all prompts at the same time."""
        groups: dict[object, list[int]] = {}
        generator = self.rubrics.generator
        shared = Need.REFERENCE not in generator.needs | generator.uses
        for index, rollout in enumerate(rollouts):
            groups.setdefault((rollout.prompt, None if shared else rollout.reference), []).append(index)
        found = await asyncio.gather(
            *(self.rubric_of([rollouts[index] for index in places]) for places in groups.values())
        )
        made: dict[int, _Made] = {}
        for places, generated in zip(groups.values(), found, strict=True):
            made |= {index: _Made(generated, places[0]) for index in places}
        return [made[index] for index in range(len(rollouts))]

    def _unscored(self, generated: Generated) -> Reward:
        channels = dict[str, float | None].fromkeys(self.reward.channels)
        return Reward(None, RewardStatus.UNSCORED, channels, coverage=0.0, failure=generated.failure, usage=Usage())

    def score_batch(
        self, rollouts: Sequence[Rollout], rubrics: Sequence[Rubric | None] | None = None
    ) -> list[Reward]:
        """`ascore_batch` for sync callers."""
        return run_sync(self.ascore_batch(rollouts, rubrics))

    def __call__(
        self, prompts: Sequence[object], completions: Sequence[object], **kwargs: object
    ) -> list[float | None]:
        """TRL's contract, as in `RubricReward`. Generated criteria are not logged singly: they differ by prompt."""
        return run_sync(self.acall(prompts, completions, **kwargs))

    async def acall(
        self, prompts: Sequence[object], completions: Sequence[object], **columns: object
    ) -> list[float | None]:
        """The same for async callers, on the loop they run."""
        rows = read_call(self.reward.trainer, prompts, completions, columns)
        rewards = await self.ascore_batch([rollout for rollout, _ in rows], [rubric for _, rubric in rows])
        return finish_call(self.reward.trainer, self.__name__, self.reward.rubric, rewards, columns)

    async def aclose(self) -> None:
        """Release the clients and models of judge and generator."""
        await self.reward.aclose()
        await self.rubrics.aclose()
