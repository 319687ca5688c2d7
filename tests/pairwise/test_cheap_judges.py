"""Comparing by the probability of one letter, and by pointwise scores."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from comparing import side_of
from judging import one_token

from rubricate.chat import ChatRequest, Completion, Finish, MockModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges import HolisticJudge, ScriptedJudge
from rubricate.judges.pairwise_cheap import LogprobPairJudge, PointwisePairJudge
from rubricate.judges.tournament import Tournament
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureKind

TASK = "Name birds."
GOOD, POOR = Rollout(TASK, "Robin, wren and owl.", id="good"), Rollout(TASK, "Robin.", id="poor")
RUBRIC = Rubric(
    criteria=(
        Criterion(id="three", text="Names three birds.", weight=3),
        Criterion(id="fish", text="Names a fish.", polarity=Polarity.PENALTY),
    )
)


def letters(p_good: float, bias: float = 0.0) -> MockModel:
    """A model with that probability of the good response, and `bias` more for the first place."""

    def script(request: ChatRequest) -> Completion:
        good_first = side_of(request, "Robin, wren and owl.") == "A"
        p = (p_good if good_first else 1.0 - p_good) + bias
        return one_token((" A", p), ("B", 1.0 - p))

    return MockModel(script)


async def test_the_mean_of_both_orders_takes_the_bias_out() -> None:
    for bias in (0.0, 0.2, -0.2):
        result = await LogprobPairJudge(letters(0.6, bias)).compare(GOOD, POOR, RUBRIC)
        assert result.probability == pytest.approx(0.6)
        assert result.winner == "first"
        assert result.consistent is (bias == 0.0)
        turned = await LogprobPairJudge(letters(0.6, bias)).compare(POOR, GOOD, RUBRIC)
        assert (turned.winner, turned.probability) == ("second", pytest.approx(0.4))
    strict = await LogprobPairJudge(letters(0.6, 0.2), policy="consistent-or-tie").compare(GOOD, POOR)
    assert (strict.winner, strict.consistent) == ("tie", False)
    near = await LogprobPairJudge(letters(0.6), margin=0.15).compare(GOOD, POOR)
    assert near.winner == "tie"


async def test_one_token_a_call_and_two_calls() -> None:
    model = letters(0.9)
    result = await LogprobPairJudge(model).compare(GOOD, POOR, RUBRIC)
    assert [(r.max_tokens, r.top_logprobs) for r in model.requests] == [(1, 20)] * 2
    assert result.usage.calls == 2
    assert [vote.order for vote in result.votes] == ["given", "swapped"]


async def test_mass_on_neither_letter_is_a_failure() -> None:
    model = MockModel(one_token(("The", 0.8), ("A", 0.2)))
    result = await LogprobPairJudge(model).compare(GOOD, POOR)
    assert result.failure is not None and result.failure.kind is FailureKind.LOW_MASS
    assert result.probability is None
    filtered = replace(one_token(("A", 1.0)), finish=Finish.CONTENT_FILTER)
    withheld = await LogprobPairJudge(MockModel(filtered)).compare(GOOD, POOR)
    assert withheld.failure is not None and withheld.failure.kind is FailureKind.CONTENT_FILTER
    silent = await LogprobPairJudge(MockModel(Completion("A"))).compare(GOOD, POOR)
    assert silent.failure is not None and silent.failure.kind is FailureKind.NO_LOGPROBS


def good_only(response: str, criterion: Criterion) -> bool | Failure:
    return ("wren" in response) == (criterion.id == "three")


async def test_pointwise_scores_compare_and_rank() -> None:
    judge = PointwisePairJudge(ScriptedJudge(good_only))
    result = await judge.compare(GOOD, POOR, RUBRIC)
    assert (result.winner, result.consistent, result.reason) == ("first", None, "scores 1.000 and 0.000")
    assert (await judge.compare(GOOD, GOOD, RUBRIC)).winner == "tie"
    assert (
        await PointwisePairJudge(ScriptedJudge(good_only), margin=1.0).compare(GOOD, POOR, RUBRIC)
    ).winner == "tie"
    ranking = await Tournament(judge).rank([POOR, GOOD], RUBRIC)
    assert ranking.ranks == {"poor": 2.0, "good": 1.0}


@pytest.mark.parametrize("polarity", [Polarity.REWARD, Polarity.PENALTY])
async def test_a_vetoed_response_loses_whatever_else_it_is_worth(polarity: Polarity) -> None:
    rubric = Rubric(
        criteria=(
            Criterion(id="three", text="Names three birds.", weight=5),
            Criterion(id="veto", text="Names an owl.", weight=1, veto=True, polarity=polarity),
        )
    )

    def said(response: str, criterion: Criterion) -> bool | Failure:
        if criterion.id == "veto":
            return ("owl" in response) == (polarity is Polarity.PENALTY)
        return "wren" in response

    result = await PointwisePairJudge(ScriptedJudge(said)).compare(GOOD, POOR, rubric)
    assert (result.winner, result.reason) == ("second", "scores 0.000 and 0.167")


async def test_a_failed_score_is_a_failed_comparison() -> None:
    judge = PointwisePairJudge(ScriptedJudge(good_only, failure_rate=1.0))
    result = await judge.compare(GOOD, POOR, RUBRIC)
    assert result.failure is not None and result.failure.kind is FailureKind.SERVER
    bare = await judge.compare(GOOD, POOR)
    assert bare.failure is not None and bare.failure.kind is FailureKind.REQUEST
    unreadable = PointwisePairJudge(HolisticJudge(MockModel("Fine."), max_attempts=1))
    assert (await unreadable.compare(GOOD, POOR, RUBRIC)).winner is None


def test_options_and_pickles() -> None:
    with pytest.raises(ConfigError):
        LogprobPairJudge(MockModel("x"), policy="majority")  # pyright: ignore[reportArgumentType] - on purpose
    with pytest.raises(ConfigError):
        LogprobPairJudge(MockModel("x"), margin=0.6)
    with pytest.raises(ConfigError):
        PointwisePairJudge(ScriptedJudge(), margin=-1)
    judge = LogprobPairJudge(MockModel("x"), margin=0.1)
    assert pickle.loads(pickle.dumps(judge)).fingerprint == judge.fingerprint
    assert judge.fingerprint != LogprobPairJudge(MockModel("x")).fingerprint
    pointwise = PointwisePairJudge(ScriptedJudge(good_only))
    assert pickle.loads(pickle.dumps(pointwise)).fingerprint == pointwise.fingerprint
