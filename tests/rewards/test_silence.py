"""What RubricReward says when a judge says nothing, or nothing of use."""

from __future__ import annotations

from typing import cast

import pytest

from rubricate.chat import MockModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges import ScriptedJudge, build_judge
from rubricate.rewardmodels import RubricReward
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Judge, Judgement

RUBRIC = Rubric(criteria=(Criterion(id="a", text="Says a."),))


def test_a_call_that_scores_nothing_says_so_and_why(caplog: pytest.LogCaptureFixture) -> None:
    reward = RubricReward(ScriptedJudge(failure_rate=1.0), RUBRIC)
    reward.score_batch([Rollout("p", "a"), Rollout("p", "b")])
    assert "none of 2 responses could be scored; server: " in caplog.text
    assert "scripted failure" in caplog.text
    reward.score_batch([Rollout("p", "c")])
    assert len(caplog.records) == 1  # said once, not for every call


def test_a_judge_that_returns_something_else_is_a_failure() -> None:
    class Odd(ScriptedJudge):
        async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
            return cast("Judgement", None)

    result = RubricReward(Odd(), RUBRIC).score(Rollout("p", "a"))
    assert result.value is None and result.failure is not None and "NoneType" in result.failure.message


def test_one_response_is_no_warning_as_its_failure_is_in_hand(caplog: pytest.LogCaptureFixture) -> None:
    reward = RubricReward(build_judge(MockModel("no JSON at all")), RUBRIC)
    assert reward.score(Rollout("p", "r")).failure is not None
    assert "could be scored" not in caplog.text


@pytest.mark.parametrize(
    ("judge", "rubric", "says"),
    [
        ("mock:yes", RUBRIC, "the judge is 'mock:yes', not a judge"),
        (MockModel(), RUBRIC, "the judge is a MockModel"),
        (None, RUBRIC, "the judge is a NoneType"),
        (build_judge(None), "rubric.json", "the rubric is 'rubric.json', not a Rubric"),
        (build_judge(None), {"criteria": []}, "the rubric is a dict"),
    ],
)
def test_a_name_in_place_of_a_judge_or_rubric_is_told_what_to_pass(
    judge: object, rubric: object, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        RubricReward(cast("Judge[Rollout, Rubric]", judge), cast("Rubric", rubric))
    assert isinstance(raised.value, TypeError)
    assert "build_judge(" in raised.value.hint or "load_rubric(" in raised.value.hint
