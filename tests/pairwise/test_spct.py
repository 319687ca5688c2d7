"""SPCT: k shuffled critiques, summed scores, critics that keep the better half, failed samples counted."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

import pytest

from rubricate.chat import ChatRequest, MockModel
from rubricate.chat.mock import Answer
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ParseError, ServerError
from rubricate.judges import ScriptedJudge
from rubricate.judges.spct import SpctJudge, read_boxed
from rubricate.judges.spct_critic import Critique, FunctionCritic, JudgeCritic, ModelCritic
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import FailureKind

GROUP = [Rollout("Count.", "x" * n, id=f"r{n}") for n in (3, 9, 5)]


def shown(request: ChatRequest) -> list[str]:
    blocks = re.findall(r"^<(response_\d+-\w+)>\n(.*?)\n</\1>$", request.text(), re.S | re.M)
    return [text for _, text in blocks]


def boxed(*scores: int) -> str:
    listed = ", ".join(map(str, scores))
    return f"Specific Criteria: length (100%)\nAnalysis: I counted.\nScores: \\boxed{{{listed}}}"


def by_length(request: ChatRequest) -> str:
    return boxed(*map(len, shown(request)))


def sequence(*answers: Callable[[ChatRequest], Answer]) -> Callable[[ChatRequest], Answer]:
    """One answer a call, in order."""
    left = iter(answers)
    return lambda request: next(left)(request)


def broken(request: ChatRequest) -> str:
    return "No scores today."


async def test_votes_are_summed_per_response_whatever_the_order() -> None:
    model = MockModel(by_length)
    scores = await SpctJudge(model, samples=4, seed=1).score_group(GROUP)
    assert scores.scores == {"r3": 12.0, "r9": 36.0, "r5": 20.0}
    assert (scores.low, scores.high, scores.samples, scores.usage.calls) == (4.0, 40.0, 4, 4)
    orders = {tuple(shown(request)) for request in model.requests}
    assert len(orders) > 1
    assert len({request.sample for request in model.requests}) == 4
    assert {request.temperature for request in model.requests} == {0.5}
    assert {request.seed for request in model.requests} == {None}


async def test_a_failed_sample_is_left_out_and_counted() -> None:
    model = MockModel(sequence(broken, by_length, by_length, broken, broken))
    scores = await SpctJudge(model, samples=3, max_attempts=2).score_group(GROUP)
    # The first is asked again and fails twice; the others are read.
    assert scores.scores == {"r3": 6.0, "r9": 18.0, "r5": 10.0}
    assert (scores.samples, scores.failed_samples, scores.high) == (2, 1, 20.0)


async def test_too_few_good_samples_fail_the_group() -> None:
    model = MockModel(sequence(by_length, broken, broken))
    scores = await SpctJudge(model, samples=3, max_attempts=1).score_group(GROUP)
    assert set(scores.scores.values()) == {None} and scores.failed_samples == 2
    assert {why.kind for why in scores.failures.values()} == {FailureKind.UNPARSABLE}
    model = MockModel(sequence(by_length, broken, broken))
    lenient = await SpctJudge(model, samples=3, max_attempts=1, min_samples=1).score_group(GROUP)
    assert lenient.scores == {"r3": 3.0, "r9": 9.0, "r5": 5.0}
    down = await SpctJudge(MockModel(ServerError("down", status=503)), samples=2).score_group(GROUP)
    assert {why.kind for why in down.failures.values()} == {FailureKind.SERVER}


async def test_the_critic_keeps_the_better_half() -> None:
    seen = list[Critique]()

    def critic(critique: Critique) -> float | None:
        seen.append(critique)
        return 1.0 if "counted" in critique.text else 0.0

    def wrong(request: ChatRequest) -> str:
        return boxed(*(1 for _ in shown(request))).replace("counted", "guessed")

    model = MockModel(sequence(wrong, by_length, wrong, by_length))
    scores = await SpctJudge(model, samples=4, critic=critic).score_group(GROUP)
    assert scores.scores == {"r3": 6.0, "r9": 18.0, "r5": 10.0}
    assert (scores.samples, scores.dropped_samples, scores.failed_samples) == (2, 2, 0)
    for critique in seen:
        assert critique.task == "Count." and len(critique.scores) == 3
        assert "guessed" in critique.text or critique.scores == tuple(map(len, critique.responses))


async def test_a_critique_without_a_rating_is_not_kept() -> None:
    model = MockModel(by_length)
    none = await SpctJudge(model, samples=2, critic=lambda critique: None).score_group(GROUP)
    assert set(none.scores.values()) == {None}
    assert {why.kind for why in none.failures.values()} == {FailureKind.INCOMPLETE}


async def test_a_model_as_critic() -> None:
    def rater(request: ChatRequest) -> str:
        good = "guessed" not in request.text()
        return f'{{"reason": "checked", "rating": {9 if good else 2}}}'

    critic = ModelCritic(MockModel(rater))

    def wrong(request: ChatRequest) -> str:
        return boxed(*(10 for _ in shown(request))).replace("counted", "guessed")

    scores = await SpctJudge(MockModel(sequence(wrong, by_length)), samples=2, critic=critic).score_group(GROUP)
    assert scores.scores == {"r3": 3.0, "r9": 9.0, "r5": 5.0}
    assert scores.usage.calls == 4
    unreadable = ModelCritic(MockModel("Fine."), max_attempts=2)
    rating = await unreadable.rate(Critique("t", ("a", "b"), (1, 2), "c"))
    assert rating.value is None and rating.failure is not None and rating.usage.calls == 2


async def test_a_judge_as_critic() -> None:
    rubric = Rubric(
        criteria=(
            Criterion(id="counts", text="Counts.", weight=3),
            Criterion(id="guesses", text="Guesses.", polarity=Polarity.PENALTY),
        )
    )
    critique = Critique("t", ("a", "b"), (1, 2), "c")
    rating = await JudgeCritic(ScriptedJudge(), rubric).rate(critique)
    assert rating.value == 0.75


async def test_one_response_is_scored_0_or_1() -> None:
    model = MockModel([boxed(1), boxed(0), boxed(1)])
    scores = await SpctJudge(model, samples=3).score_group(GROUP[:1])
    assert (scores.scores, scores.low, scores.high) == ({"r3": 2.0}, 0.0, 3.0)
    assert "0" in model.requests[0].text() and "in one box" not in model.requests[0].text()


async def test_a_response_that_is_too_long_fails_alone() -> None:
    scores = await SpctJudge(MockModel(by_length), samples=2, max_chars=8).score_group(GROUP)
    assert scores.scores == {"r3": 6.0, "r9": None, "r5": 10.0}
    assert scores.failures["r9"].kind is FailureKind.OVERFLOW


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        (boxed(7, 3), (7, 3)),
        ("Scores: \\boxed{ 7 ,3.0 }", (7, 3)),
        ("Analysis: the answer \\boxed{42} is wrong.\nScores: \\boxed{7, 3}", (7, 3)),
        ("**Scores:** \\boxed{7, 3}", (7, 3)),
        ("<think>\\boxed{1, 1}</think>\nScores: \\boxed{7, 3}", (7, 3)),
        ("Scores: 7, 3", (7, 3)),
    ],
)
def test_boxes(text: str, scores: tuple[int, ...]) -> None:
    assert read_boxed(text, 2) == scores


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Scores: \\boxed{7}", "incomplete"),
        ("Scores: \\boxed{7, 3, 2}", "incomplete"),
        ("Scores: \\boxed{7, x}", "incomplete"),
        ("Scores: \\boxed{7, 3.5}", "incomplete"),
        ("Scores: \\boxed{7, 11}", "out_of_range"),
        ("Scores: \\boxed{0, 3}", "out_of_range"),
        ("Scores: \\boxed{7, -3}", "incomplete"),
        ("\\boxed{7, 3} or \\boxed{3, 7}", "ambiguous"),
    ],
)
def test_broken_boxes(text: str, kind: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_boxed(text, 2)
    assert caught.value.kind == kind


def length(critique: Critique) -> float | None:
    return float(len(critique.text))


async def test_fingerprints_pickles_and_options() -> None:
    judge = SpctJudge(MockModel("x"), critic=FunctionCritic(length))
    assert pickle.loads(pickle.dumps(judge)).fingerprint == judge.fingerprint
    plain = SpctJudge(MockModel("x"))
    assert len({judge.fingerprint, plain.fingerprint, SpctJudge(MockModel("x"), seed=1).fingerprint}) == 3
    with pytest.raises(ConfigError):
        SpctJudge(MockModel("x"), samples=0)
    with pytest.raises(ConfigError):
        SpctJudge(MockModel("x"), samples=2, temperature=0.0)
    with pytest.raises(ConfigError):
        SpctJudge(MockModel("x"), samples=2, keep=3)
    assert (await plain.score_group([])).scores == {}
    model = MockModel(by_length)
    await SpctJudge(model, samples=2, seed=5, seed_model=True).score_group(GROUP)
    assert [request.seed for request in model.requests] == [5, 6]
