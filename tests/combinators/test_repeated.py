"""Repeated sampling: samples that differ, the mean, early stops, failures that leave the mean, RLCF's judge."""

from __future__ import annotations

import functools
import math
import pickle
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import labels, reply

from rubricate.chat import ChatRequest, Completion, Finish, MockModel
from rubricate.data.records import Rollout
from rubricate.errors import ChatError, ConfigError, RequestError, ServerError
from rubricate.judges import CriterionJudge, LogprobJudge, ScriptedJudge
from rubricate.judges.intervals import METHODS, interval
from rubricate.judges.jury import Jury
from rubricate.judges.rating import RatingJudge, rlcf_judge
from rubricate.judges.repeated import Repeated
from rubricate.rubrics import Criterion, NumericScale
from rubricate.types import FailureCause, FailureKind, Status, Verdict

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Criterion(id="a", text="Names a bird.")
TWO = (ONE, Criterion(id="b", text="Is doubtful."))


def by_sample(*answers: str | ChatError) -> Callable[[ChatRequest], str | ChatError]:
    """The answer of each sample, in turn."""
    return lambda request: answers[request.sample % len(answers)]


async def one(judge: Repeated, criterion: Criterion = ONE) -> Verdict:
    (verdict,) = (await judge.judge_criteria(ROLLOUT, [criterion])).verdicts
    return verdict


def made(model: MockModel, index: int, temperature: float = 1.0) -> CriterionJudge:
    return CriterionJudge(model, temperature=temperature, sample=index)


async def test_rlcf_takes_the_mean_of_25_clipped_ratings() -> None:
    model = MockModel(by_sample("80", "100", "120", "60", "not sure"))
    verdict = await one(rlcf_judge(model))
    assert verdict.score == pytest.approx((0.8 + 1 + 1 + 0.6) / 4), "what cannot be read leaves the mean"
    assert verdict.probability == verdict.score and "mean of 20 samples 0.850" in verdict.reason
    assert "5 failed" in verdict.reason
    assert {(r.temperature, r.top_p, r.max_tokens) for r in model.requests} == {(1.3, 0.9, 10)}
    assert sorted(r.sample for r in model.requests) == list(range(25))


async def test_no_rating_at_all_is_a_failure_never_a_number() -> None:
    verdict = await one(rlcf_judge(MockModel("as a judge I would rather not say"), n=5))
    assert verdict.score is None and verdict.failure is not None
    assert verdict.failure.cause is FailureCause.RESPONSE and "0 of 5 samples" in verdict.failure.message


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        (Completion("85"), 0.85),
        (Completion("85/100"), 0.85),
        (Completion("-5"), 0.0),
        (Completion("75. The response", Finish.LENGTH), 0.75),
        (Completion("10", Finish.LENGTH), None),
        (Completion("The response is", Finish.LENGTH), None),
        (Completion("", refusal="no"), None),
    ],
)
async def test_how_a_rating_is_read(answer: Completion, score: float | None) -> None:
    (verdict,) = (await RatingJudge(MockModel(answer)).judge_criteria(ROLLOUT, [ONE])).verdicts
    assert verdict.score == score


async def test_only_plain_binary_criteria_can_be_rated() -> None:
    model = MockModel("50")
    odd = (
        Criterion(id="n", text="Counts.", scale=NumericScale(low=1, high=5)),
        Criterion(id="c", text="Cites.", condition="Sources are asked for."),
    )
    judgement = await RatingJudge(model).judge_criteria(ROLLOUT, odd)
    assert all(v.failure is not None and v.failure.kind is FailureKind.REQUEST for v in judgement.verdicts)
    assert not model.requests


async def test_samples_differ_in_sample_and_seed_and_re_asks_too() -> None:
    model = MockModel(lambda request: reply(dict.fromkeys(labels(request), "met")) if request.sample % 4 else "??")
    await one(Repeated(CriterionJudge(model, temperature=1.0, seed=7), n=3))
    assert sorted(request.sample for request in model.requests) == [0, 1, 4, 5, 8, 9]
    assert {request.seed for request in model.requests} == {7, 8, 9}


async def test_repetitions_of_repetitions_share_no_answer() -> None:
    model = MockModel("50")
    other = Repeated(RatingJudge(model, sample=1), n=4)
    await one(Repeated(Repeated(RatingJudge(model, seed=0), n=4), n=3))
    samples = [request.sample for request in model.requests]
    assert sorted(samples) == list(range(12))
    assert len({request.seed for request in model.requests}) == 12
    await one(other)
    assert [request.sample for request in model.requests[12:]] == [4, 5, 6, 7]


def test_greedy_or_unrepeatable_judges_are_refused() -> None:
    model = MockModel("yes")
    with pytest.raises(ConfigError, match="temperature 0"):
        Repeated(CriterionJudge(model))
    with pytest.raises(ConfigError, match="temperature 0"):
        Repeated(functools.partial(made, model, temperature=0.0))
    with pytest.raises(ConfigError, match="cannot be repeated"):
        Repeated(LogprobJudge(model))
    with pytest.raises(ConfigError, match="same `sample`"):
        Repeated(lambda index: CriterionJudge(model, temperature=1.0))


async def test_a_function_makes_the_judge_of_each_sample() -> None:
    verdict = await one(Repeated(lambda index: ScriptedJudge(seed=index, failure_rate=0.3), n=10))
    assert verdict.score == 1.0


async def test_sampling_stops_once_the_interval_decides() -> None:
    model = MockModel(lambda request: "50" if "doubtful" in request.text() else "100")
    judge = rlcf_judge(model, threshold=0.5)
    judgement = await judge.judge_criteria(ROLLOUT, TWO)
    asked = [request.messages[-1].content for request in model.requests]
    assert sum("Names a bird" in text for text in asked) == 10
    assert sum("doubtful" in text for text in asked) == 25
    assert "stopped after 10 of 25" in judgement.verdicts[0].reason
    assert judgement.usage.calls == 35


async def test_sampling_stops_once_the_rest_cannot_turn_the_mean() -> None:
    model = MockModel("100")
    await one(Repeated(RatingJudge(model), n=6, batch=1, threshold=0.5))
    assert len(model.requests) == 3, "three of six samples at 1 hold the mean at 0.5"


@pytest.mark.parametrize("name", METHODS)
async def test_an_early_stop_is_on_the_side_that_all_samples_would_be_on(name: str) -> None:
    rng = random.Random(5)
    ratings = [[str(rng.choice((90, 100, 60, 80))) for _ in range(25)] for _ in range(20)]
    for row in ratings:
        full = await one(rlcf_judge(MockModel(by_sample(*row))))
        short = await one(Repeated(RatingJudge(MockModel(by_sample(*row))), threshold=0.5, interval=name))
        assert full.score is not None and short.score is not None
        assert (full.score >= 0.5) == (short.score >= 0.5)


async def test_min_ok() -> None:
    down = ServerError("down", status=503)
    model = MockModel(by_sample("100", down, down))
    verdict = await one(Repeated(RatingJudge(model), n=3))
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.SERVER and verdict.failure.retryable
    assert "1 of 3 samples could be used, 2 are needed: down" in verdict.failure.message
    assert (await one(Repeated(RatingJudge(model), n=3, min_ok=1))).score == 1.0


async def test_what_can_never_work_is_not_asked_25_times() -> None:
    model = MockModel(RequestError("no such model", status=404))
    verdict = await one(Repeated(RatingJudge(model), threshold=0.5))
    assert len(model.requests) == 5 and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.REQUEST


async def test_samples_vote_on_whether_the_criterion_applies() -> None:
    criterion = Criterion(id="a", text="Cites.", condition="Sources are asked for.")
    words = ["not_applicable", "not_applicable", "met"]

    def answer(request: ChatRequest) -> str:
        return reply({"C1": words[request.sample // 4 % 3]})

    judge = CriterionJudge(MockModel(answer), temperature=1.0)
    verdict = await one(Repeated(judge, n=3), criterion)
    assert verdict.status is Status.NOT_APPLICABLE and "2 of 3" in verdict.reason
    words[1] = "met"
    assert (await one(Repeated(judge, n=3), criterion)).score == 1.0


async def test_the_reason_is_that_of_the_sample_nearest_the_mean() -> None:
    model = MockModel(lambda request: reply({"C1": "met" if request.sample else "unmet"}))
    verdict = await one(Repeated(CriterionJudge(model, temperature=1.0), n=4))
    assert verdict.score == 0.75 and verdict.reason.endswith("One of them: because of C1")


async def test_it_pickles_and_nests() -> None:
    judge = Repeated(RatingJudge(MockModel("90")), n=3, threshold=0.5)
    again = pickle.loads(pickle.dumps(judge))
    assert again.fingerprint == judge.fingerprint and (await one(again)).score == 0.9
    jury = Jury([judge, Repeated(RatingJudge(MockModel("80")), n=2)], rule="mean")
    (verdict,) = (await jury.judge_criteria(ROLLOUT, [ONE])).verdicts
    assert verdict.score == pytest.approx(0.85)


def test_everything_that_can_change_a_verdict_is_in_the_fingerprint() -> None:
    judge = RatingJudge(MockModel("90"))
    judges = [
        Repeated(judge),
        Repeated(judge, n=5),
        Repeated(judge, threshold=0.5),
        Repeated(judge, threshold=0.5, interval="student"),
        Repeated(judge, threshold=0.5, confidence=0.9),
        Repeated(judge, threshold=0.5, batch=3),
        Repeated(judge, min_ok=2),
        Repeated(RatingJudge(MockModel("90"), temperature=1.0)),
    ]
    assert len({one.fingerprint for one in judges}) == len(judges)


def test_wrong_options() -> None:
    judge = RatingJudge(MockModel("90"))
    for n, batch, min_ok in ((0, 5, None), (25, 0, None), (25, 5, 26)):
        with pytest.raises(ConfigError, match="use"):
            Repeated(judge, n=n, batch=batch, min_ok=min_ok)
    for number in (-0.1, math.nan):
        with pytest.raises(ConfigError, match="threshold"):
            Repeated(judge, threshold=number)
    with pytest.raises(ConfigError, match="confidence"):
        Repeated(judge, confidence=1.0)
    with pytest.raises(ConfigError, match="no interval"):
        Repeated(judge, interval="wald")


@given(scores=st.lists(st.floats(0, 1), max_size=40), confidence=st.floats(0.5, 0.999), looks=st.integers(1, 9))
def test_intervals_hold_the_mean_and_the_sharper_bound_lies_in_the_plainer(
    scores: list[float], confidence: float, looks: int
) -> None:
    chernoff = interval("chernoff", scores, confidence, looks=looks)
    hoeffding = interval("hoeffding", scores, confidence, looks=looks)
    assert 0 <= hoeffding[0] <= chernoff[0] + 1e-9 and chernoff[1] - 1e-9 <= hoeffding[1] <= 1
    if scores:
        assert chernoff[0] - 1e-9 <= math.fsum(scores) / len(scores) <= chernoff[1] + 1e-9


def test_students_interval_against_the_table() -> None:
    scores = [0.2, 0.4, 0.5, 0.6, 0.8]
    low, high = interval("student", scores, 0.95)
    half = 2.776 * math.sqrt(sum((x - 0.5) ** 2 for x in scores) / 4) / math.sqrt(5)
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=0.001)
    assert interval("student", scores[:4], 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["chernoff", "hoeffding"])
def test_intervals_cover_the_mean_as_often_as_they_say(name: str) -> None:
    rng = random.Random(1)
    for mean in (0.1, 0.5, 0.9):
        misses = 0
        for _ in range(400):
            scores = [float(rng.random() < mean) for _ in range(20)]
            low, high = interval(name, scores, 0.9)
            misses += not low <= mean <= high
        assert misses <= 40
