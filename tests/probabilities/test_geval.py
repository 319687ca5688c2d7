"""Expectations over scales: numbers, levels, labels of two tokens, conditions, and what is no number."""

from __future__ import annotations

import math
import pickle

import pytest
from judging import one_token

from rubricate.chat import ChatRequest, Completion, Finish, MockModel, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.geval import ExpectationJudge, HolisticExpectationJudge
from rubricate.rewardmodels import RubricReward, preset
from rubricate.rubrics import Criterion, Level, NumericScale, OrdinalScale, Polarity, Rubric, Scale
from rubricate.types import FailureKind, Status

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
FIVE = NumericScale(low=1, high=5, integer=True)
TEN = NumericScale(low=1, high=10, integer=True)


def rubric(*scales: Scale, condition: str | None = None) -> Rubric:
    criteria = (
        Criterion(id=f"c{n}", text=f"How clear {n} is.", scale=s, condition=condition) for n, s in enumerate(scales)
    )
    return Rubric(criteria=tuple(criteria))


def tokens(*rows: tuple[tuple[str, float], ...], finish: Finish = Finish.LENGTH) -> Completion:
    """An answer of several tokens, each with its alternatives, the generated one first."""
    made = [tuple((text, math.log(p)) for text, p in row) for row in rows]
    logprobs = tuple(TokenLogprob(*row[0], row) for row in made)
    return Completion("".join(row[0][0] for row in made), finish, logprobs=logprobs)


async def test_the_mean_over_the_levels_not_the_likeliest() -> None:
    answer = one_token(("4", 0.5), (" 5", 0.2), ("3", 0.1), ("I", 0.2))
    judgement = await ExpectationJudge(MockModel(answer)).judge(ROLLOUT, rubric(FIVE))
    (verdict,) = judgement.verdicts
    mean = (0.5 * 4 + 0.2 * 5 + 0.1 * 3) / 0.8
    assert verdict.raw == pytest.approx(mean) and verdict.score == pytest.approx((mean - 1) / 4)
    assert verdict.probability is None


async def test_ten_of_two_tokens() -> None:
    answer = tokens((("1", 0.6), ("9", 0.4)), (("0", 0.5), (".", 0.5)), (("\n", 1.0),))
    model = MockModel(answer)
    (verdict,) = (await ExpectationJudge(model).judge(ROLLOUT, rubric(TEN))).verdicts
    assert verdict.raw == pytest.approx(0.3 * 10 + 0.3 * 1 + 0.4 * 9)
    assert model.requests[0].max_tokens == 4 and model.requests[0].top_logprobs == 20


@pytest.mark.parametrize("pieces", [("1", "0"), ("4", ".", "5"), ("2", "/", "10"), (" ", "3", "7")])
async def test_a_number_that_goes_on_is_no_level(pieces: tuple[str, ...]) -> None:
    model = MockModel(tokens(*(((piece, 1.0),) for piece in pieces)))
    judgement = await ExpectationJudge(model).judge(ROLLOUT, rubric(NumericScale(low=1, high=5, integer=True)))
    (verdict,) = judgement.verdicts
    assert verdict.score is None
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.LOW_MASS


async def test_a_full_stop_behind_a_level_is_none_of_it() -> None:
    model = MockModel(tokens((("4", 1.0),), ((".", 1.0),)))
    judgement = await ExpectationJudge(model).judge(ROLLOUT, rubric(NumericScale(low=1, high=5, integer=True)))
    assert judgement.verdicts[0].raw == 4.0


async def test_levels_with_names_go_by_letters_and_have_their_values() -> None:
    scale = OrdinalScale(
        levels=(
            Level(label="very poor", value=0, description="Nothing fits."),
            Level(label="fair", value=1),
            Level(label="good", value=4),
        )
    )
    model = MockModel(one_token(("C", 0.5), ("b", 0.25), ("A", 0.25)))
    (verdict,) = (await ExpectationJudge(model).judge(ROLLOUT, rubric(scale))).verdicts
    assert verdict.raw == pytest.approx(2.25) and verdict.score == pytest.approx(2.25 / 4)
    asked = model.requests[0].messages[-1].content
    assert "A: very poor - Nothing fits." in asked and "Answer with A, B, C" in asked


async def test_numbered_levels_keep_their_numbers() -> None:
    levels = tuple(Level(label=str(n), value=n, description=f"Level {n}.") for n in (1, 2, 3))
    model = MockModel(one_token(("3", 1.0)))
    (verdict,) = (await ExpectationJudge(model).judge(ROLLOUT, rubric(OrdinalScale(levels=levels)))).verdicts
    assert verdict.score == 1.0 and "2: Level 2." in model.requests[0].messages[-1].content


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (one_token(("Sure", 0.6), ("4", 0.4)), FailureKind.LOW_MASS),
        (one_token(("45", 1.0)), FailureKind.LOW_MASS),
        (Completion("4"), FailureKind.NO_LOGPROBS),
        (Completion("", refusal="no"), FailureKind.REFUSAL),
        (Completion("", Finish.CONTENT_FILTER), FailureKind.CONTENT_FILTER),
    ],
)
async def test_what_is_no_level_is_no_number(answer: Completion, kind: FailureKind) -> None:
    judgement = await ExpectationJudge(MockModel(answer)).judge(ROLLOUT, rubric(FIVE))
    whole = await HolisticExpectationJudge(MockModel(answer)).judge(ROLLOUT, rubric(FIVE))
    for verdict in (judgement.verdicts[0], whole.overall):
        assert verdict is not None and verdict.failure is not None
        assert verdict.failure.kind is kind


@pytest.mark.parametrize(
    "scale",
    [NumericScale(low=0, high=1), NumericScale(low=-2, high=2, integer=True), NumericScale(high=100, integer=True)],
)
async def test_scales_without_levels_are_for_other_judges(scale: NumericScale) -> None:
    model = MockModel(one_token(("4", 1.0)))
    judgement = await ExpectationJudge(model).judge(ROLLOUT, rubric(scale, FIVE))
    failure = judgement.verdicts[0].failure
    assert failure is not None and failure.kind is FailureKind.REQUEST and "20 at most" in failure.message
    assert judgement.verdicts[1].score == 0.75 and len(model.requests) == 1


async def test_a_condition_is_a_question_of_its_own() -> None:
    def answer(request: ChatRequest) -> Completion:
        asked = "Statement: Birds" in request.messages[-1].content
        return one_token(("no", 0.7), ("Yes", 0.3)) if asked else one_token(("4", 1.0))

    judgement = await ExpectationJudge(MockModel(answer)).judge(
        ROLLOUT, rubric(FIVE, condition="Birds are asked for.")
    )
    (verdict,) = judgement.verdicts
    assert verdict.status is Status.NOT_APPLICABLE and "0.300" in verdict.reason and judgement.usage.calls == 2


async def test_the_whole_response_rated() -> None:
    model = MockModel(one_token(("7", 0.5), ("8", 0.5)))
    criterion = Criterion(id="p", text="Invents a bird.", polarity=Polarity.PENALTY, weight=3)
    whole = Rubric(criteria=(criterion,))
    judge = HolisticExpectationJudge(model)
    judgement = await judge.judge(ROLLOUT, whole)
    assert judgement.overall is not None and judgement.verdicts == ()
    assert judgement.overall.raw == pytest.approx(7.5) and judgement.overall.score == pytest.approx(6.5 / 9)
    assert "(weight 3, to avoid) Invents a bird." in model.requests[0].text()
    reward = await RubricReward(judge, whole, aggregation=preset("rar_implicit")).ascore(ROLLOUT)
    assert reward.value == pytest.approx(6.5 / 9)
    await HolisticExpectationJudge(model, with_rubric=False).judge(ROLLOUT, whole)
    assert "Invents" not in model.requests[-1].text()


def test_fingerprints_copies_and_options_that_cannot_be() -> None:
    judge = HolisticExpectationJudge(MockModel("1"), low=1, high=5)
    assert pickle.loads(pickle.dumps(judge)).fingerprint == judge.fingerprint
    assert HolisticExpectationJudge(MockModel("1")).fingerprint != judge.fingerprint
    assert (
        ExpectationJudge(MockModel("1"), max_outside=0.2).fingerprint
        != ExpectationJudge(MockModel("1")).fingerprint
    )
    with pytest.raises(ConfigError, match="0 to 100"):
        HolisticExpectationJudge(MockModel("1"), low=0, high=100)
    veto = Criterion(id="fatal", text="Recommends poison.", polarity=Polarity.PENALTY, veto=True)
    with pytest.raises(ConfigError, match="fatal"):
        judge.check(Rubric(criteria=(veto,)))
