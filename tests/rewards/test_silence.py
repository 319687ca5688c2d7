"""What RubricReward says when a judge says nothing, or nothing of use."""

from __future__ import annotations

from typing import cast

import pytest

from rubricate.data.records import Rollout
from rubricate.judges import ScriptedJudge
from rubricate.rewardmodels import RubricReward
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Judgement

RUBRIC = Rubric(criteria=(Criterion(id="a", text="Says a."),))


def test_a_call_that_scores_nothing_says_so_and_why(caplog: pytest.LogCaptureFixture) -> None:
    reward = RubricReward(ScriptedJudge(failure_rate=1.0), RUBRIC)
    reward.score_batch([Rollout("p", "a"), Rollout("p", "b")])
    assert "none of 2 responses could be scored; server: " in caplog.text
    assert "scripted failure" in caplog.text
    reward.score(Rollout("p", "c"))
    assert len(caplog.records) == 1  # said once, not for every call


def test_a_judge_that_returns_something_else_is_a_failure() -> None:
    class Odd(ScriptedJudge):
        async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
            return cast("Judgement", None)

    result = RubricReward(Odd(), RUBRIC).score(Rollout("p", "a"))
    assert result.value is None and result.failure is not None and "NoneType" in result.failure.message
