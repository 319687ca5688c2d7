"""A judge whose fingerprint cannot be had costs neither rewards nor time."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from rubricate.chat import connect
from rubricate.chat.testserver import FaultyServer
from rubricate.data.records import Rollout
from rubricate.judges import CriterionJudge, ScriptedJudge
from rubricate.rewardmodels import RubricReward
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import FailureKind

RUBRIC = Rubric(criteria=(Criterion(id="a", text="It is so."),))
ROWS = [Rollout("Say a.", "a"), Rollout("Say b.", "b")]


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def test_a_server_that_hangs_and_was_to_name_its_model_does_not_hold_the_call(hanging: str) -> None:
    reward = RubricReward(CriterionJudge(connect(hanging)), RUBRIC, deadline=0.3)
    begun = time.monotonic()
    rewards = reward.score_batch(ROWS)
    assert time.monotonic() - begun < 5.0
    assert [(r.value, r.judge_fingerprint) for r in rewards] == [(None, "")] * 2
    assert all(r.failure is not None and r.failure.kind is FailureKind.DEADLINE for r in rewards)
    reward.close()


async def test_rewards_of_a_judge_without_a_fingerprint_are_not_lost() -> None:
    class Unknown(ScriptedJudge):
        @property
        def fingerprint(self) -> str:
            raise RuntimeError("bug")

    reward = RubricReward(Unknown(), RUBRIC)
    assert [r.value for r in await reward.ascore_batch(ROWS)] == [1.0, 1.0]
    assert [r.value async for _, r in reward.as_scored(ROWS)] == [1.0, 1.0]


async def test_a_model_that_its_server_names_is_in_the_fingerprint_of_every_reward() -> None:
    answer = {"verdicts": [{"id": "C1", "reason": "It is so.", "verdict": "met"}], "final": {"C1": "met"}}
    async with FaultyServer(lambda _: answer) as server:
        address = server.url.partition("#")[0]
        named = CriterionJudge(connect(f"{address}#test")).fingerprint
        reward = RubricReward(CriterionJudge(connect(address)), RUBRIC)
        assert {r.judge_fingerprint async for _, r in reward.as_scored(ROWS)} == {named}
        assert {r.judge_fingerprint for r in await reward.ascore_batch(ROWS)} == {named}
        await reward.aclose()
