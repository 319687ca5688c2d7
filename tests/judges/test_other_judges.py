"""Log-probability, holistic, code and scripted judges, and the router."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import labels, one_token, reply

from rubricate.chat import ChatRequest, Completion, MockModel, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, VerifierError
from rubricate.judges import (
    HolisticJudge,
    LikertJudge,
    LogprobJudge,
    Router,
    ScriptedJudge,
    VerifierJudge,
    answer_mass,
    build_judge,
    final_answer,
)
from rubricate.judges.router import anything, has_verifier
from rubricate.rewardmodels import RubricReward
from rubricate.rubrics import Criterion, NumericScale, Polarity, Rubric, VerifierSpec
from rubricate.types import FailureKind, Status

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Rubric(criteria=(Criterion(id="a", text="Names a bird."),))


async def test_all_spellings_of_an_answer_count() -> None:
    answer = one_token((" Yes", 0.4), ("yes", 0.2), ("TRUE", 0.1), ("No", 0.15), (" false.", 0.05), ("The", 0.1))
    judgement = await LogprobJudge(MockModel(answer)).judge(ROLLOUT, ONE)
    (verdict,) = judgement.verdicts
    assert verdict.score == pytest.approx(0.7 / 0.9)
    assert verdict.probability == verdict.score
    assert answer.logprobs is not None
    assert answer_mass(answer.logprobs[0]).outside == pytest.approx(0.1)


async def test_one_token_a_question_on_one_prefix() -> None:
    model = MockModel(one_token(("Yes", 0.9), ("No", 0.1)))
    criteria = tuple(Criterion(id=f"c{n}", text=f"Says {n}.") for n in range(3))
    await LogprobJudge(model).judge(ROLLOUT, Rubric(criteria=criteria))
    assert [(r.max_tokens, r.top_logprobs) for r in model.requests] == [(1, 20)] * 3


async def test_mass_outside_the_answers_is_a_failure_when_too_large() -> None:
    answer = one_token(("Sure", 0.6), ("Yes", 0.3), ("No", 0.1))
    judgement = await LogprobJudge(MockModel(answer)).judge(ROLLOUT, ONE)
    failure = judgement.verdicts[0].failure
    assert failure is not None and failure.kind is FailureKind.LOW_MASS and "60.0%" in failure.message
    lenient = await LogprobJudge(MockModel(answer), max_outside=0.7).judge(ROLLOUT, ONE)
    assert lenient.verdicts[0].score == pytest.approx(0.75)


async def test_no_answer_mass_or_no_logprobs_is_a_failure() -> None:
    for completion, kind in [
        (one_token(("Banana", 1.0)), FailureKind.LOW_MASS),
        (Completion("Yes"), FailureKind.NO_LOGPROBS),
        (Completion("", refusal="no"), FailureKind.REFUSAL),
    ]:
        judge = LogprobJudge(MockModel(completion), max_outside=1.0)
        judgement = await judge.judge(ROLLOUT, ONE)
        failure = judgement.verdicts[0].failure
        assert failure is not None and failure.kind is kind


async def test_a_condition_is_a_question_of_its_own() -> None:
    def answer(request: ChatRequest) -> Completion:
        yes = 0.1 if "task asks for sources" in request.text() else 0.9
        return one_token(("Yes", yes), ("No", 1 - yes))

    criteria = (
        Criterion(id="a", text="Cites.", condition="The task asks for sources."),
        Criterion(id="b", text="Names a bird."),
    )
    judgement = await LogprobJudge(MockModel(answer)).judge(ROLLOUT, Rubric(criteria=criteria))
    assert [v.status for v in judgement.verdicts] == [Status.NOT_APPLICABLE, Status.OK]
    assert judgement.usage.calls == 3


def test_tokens_that_read_alike_are_summed() -> None:
    half = math.log(0.25)
    mass = answer_mass(TokenLogprob("yes", half, (("yes", half), ("yes", half), ("no", half))))
    assert mass.yes == pytest.approx(0.5) and mass.no == pytest.approx(0.25)


@given(st.lists(st.tuples(st.text(max_size=6), st.floats(-30, 0)), min_size=1, max_size=20))
def test_masses_stay_within_one(top: list[tuple[str, float]]) -> None:
    total = math.log(sum(math.exp(logprob) for _, logprob in dict(top).items()) + 1e-12)
    scaled = tuple((token, logprob - max(0.0, total)) for token, logprob in dict(top).items())
    mass = answer_mass(TokenLogprob(scaled[0][0], scaled[0][1], scaled))
    assert 0.0 <= mass.yes <= 1.0 and 0.0 <= mass.no <= 1.0 and 0.0 <= mass.outside <= 1.0
    assert mass.p_yes is None or 0.0 <= mass.p_yes <= 1.0


async def test_holistic_rating() -> None:
    model = MockModel('{"reason": "Fine.", "rating": 7}')
    rubric = Rubric(criteria=(Criterion(id="p", text="Invents a bird.", polarity=Polarity.PENALTY, weight=3),))
    judgement = await HolisticJudge(model).judge(ROLLOUT, rubric)
    assert judgement.verdicts == ()
    assert judgement.overall is not None
    assert judgement.overall.raw == 7 and judgement.overall.score == pytest.approx(6 / 9)
    assert "to avoid" in model.requests[0].text() and "Invents a bird." in model.requests[0].text()


@pytest.mark.parametrize(
    "bad", ["no number", '{"reason": "x", "rating": 11}', '{"reason": "x", "rating": 7.5}', ""]
)
async def test_a_rating_that_cannot_be_read_is_no_rating(bad: str) -> None:
    model = MockModel(bad)
    judgement = await HolisticJudge(model, max_attempts=2).judge(ROLLOUT, ONE)
    assert judgement.overall is not None and judgement.overall.score is None
    assert len(model.requests) == 2 and judgement.usage.calls == 2


async def test_likert_shows_the_reference_and_no_rubric() -> None:
    model = MockModel('{"reason": "Fine.", "rating": 10}')
    rollout = Rollout("Name a bird.", "Robin.", reference="Wren.")
    await LikertJudge(model).judge(rollout, ONE)
    await LikertJudge(model, show_reference=False).judge(rollout, ONE)
    with_reference, without = (request.text() for request in model.requests)
    assert "Wren." in with_reference and "Wren." not in without
    assert "Names a bird." not in with_reference


async def test_router_sends_hard_rules_to_code_and_the_rest_to_the_model() -> None:
    def unmet(request: ChatRequest) -> str:
        return reply(dict.fromkeys(labels(request), "unmet"))

    model = MockModel(unmet)
    criteria = (
        Criterion(id="principle", text="Is friendly."),
        Criterion(id="rule", text="No commas.", verifier=VerifierSpec(name="punctuation:no_comma")),
    )
    judge = build_judge(model)
    judgement = await judge.judge(Rollout("Hi", "Hello there"), Rubric(criteria=criteria))
    assert [(v.criterion_id, v.score) for v in judgement.verdicts] == [("principle", 0.0), ("rule", 1.0)]
    assert judgement.verdicts[1].judge == "verifier:punctuation:no_comma"
    assert "No commas." not in "".join(request.text() for request in model.requests)


async def test_logprob_mode_reads_levels_by_probability_and_has_reasons_for_other_scales() -> None:
    def answer(request: ChatRequest) -> str | Completion:
        if not request.top_logprobs:
            return reply({"C1": 5})
        whole = "How well" in request.text()
        return one_token(("3", 0.75), ("1", 0.25)) if whole else one_token(("Yes", 0.8), ("No", 0.2))

    criteria = (
        Criterion(id="a", text="Names a bird."),
        Criterion(id="w", text="How well.", scale=NumericScale(low=1, high=5, integer=True)),
        Criterion(id="n", text="How many.", scale=NumericScale(low=0, high=10)),
    )
    judgement = await build_judge(MockModel(answer), mode="logprob").judge(ROLLOUT, Rubric(criteria=criteria))
    assert [v.score for v in judgement.verdicts] == [pytest.approx(0.8), pytest.approx(0.375), 0.5]


async def test_without_a_model_only_code_speaks() -> None:
    criteria = (
        Criterion(id="rule", text="No commas.", verifier=VerifierSpec(name="punctuation:no_comma")),
        Criterion(id="principle", text="Is friendly."),
        Criterion(id="typo", text="?", verifier=VerifierSpec(name="punctuation:no_coma")),
        Criterion(id="args", text="?", verifier=VerifierSpec(name="punctuation:no_comma", args={"x": 1})),
    )
    judgement = await build_judge(None).judge(Rollout("Hi", "Hello, there"), Rubric(criteria=criteria))
    assert [v.score for v in judgement.verdicts] == [0.0, None, None, None]
    messages = [v.failure.message for v in judgement.verdicts if v.failure]
    assert "no verifier" in messages[0] and "punctuation:no_comma" in messages[1] and "'x'" in messages[2]


def test_unknown_mode_and_empty_router() -> None:
    with pytest.raises(ConfigError, match="mode"):
        build_judge(None, mode="psychic")
    with pytest.raises(ConfigError, match="route"):
        Router([])


async def test_scripted_failures_repeat_and_are_never_numbers() -> None:
    rubric = Rubric(criteria=tuple(Criterion(id=f"c{n}", text="x") for n in range(200)))
    judge = ScriptedJudge(failure_rate=0.25, seed=3)
    first = await judge.judge(ROLLOUT, rubric)
    again = await pickle.loads(pickle.dumps(judge)).judge(ROLLOUT, rubric)
    assert first == again
    failed = [v for v in first.verdicts if v.status is Status.FAILED]
    assert 25 <= len(failed) <= 75
    assert all(v.score is None for v in failed)


async def test_router_pickles_and_its_fingerprint_follows_its_parts() -> None:
    router = Router([(has_verifier, VerifierJudge()), (anything, ScriptedJudge(seed=1))])
    copy = pickle.loads(pickle.dumps(router))
    assert copy.fingerprint == router.fingerprint
    other = Router([(has_verifier, VerifierJudge()), (anything, ScriptedJudge(seed=2))])
    assert other.fingerprint != router.fingerprint


def test_a_rubric_that_cannot_be_judged_is_refused_before_anything_is_paid_for() -> None:
    typo = Criterion(id="typo", text="No commas.", verifier=VerifierSpec(name="punctuation:no_coma"))
    wrong = Criterion(id="wrong", text="Short.", verifier=VerifierSpec(name="words", args={"maximum": 3}))
    model = MockModel("never asked")
    for criterion, message in [(typo, "'typo'.*no_coma"), (wrong, "'wrong'.*maximum")]:
        with pytest.raises(VerifierError, match=message):
            RubricReward(build_judge(model), Rubric(criteria=(criterion,)))
    only_hard_rules = Router([(has_verifier, VerifierJudge())])
    with pytest.raises(ConfigError, match="no judge takes"):
        RubricReward(only_hard_rules, ONE)
    assert not model.requests


async def test_one_rating_cannot_enforce_a_veto() -> None:
    rubric = Rubric(
        criteria=(Criterion(id="fatal", text="Recommends poison.", polarity=Polarity.PENALTY, veto=True),)
    )
    judge = HolisticJudge(MockModel('{"reason": "Fine.", "rating": 9}'))
    with pytest.raises(ConfigError, match="fatal"):
        RubricReward(judge, rubric, aggregation="rar_implicit")
    judgement = await judge.judge(ROLLOUT, rubric)  # a row's own rubric is not seen before
    assert judgement.overall is not None and judgement.overall.score is None


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        ("<think>secret</think>Answer.", "Answer."),
        ("Answer. <think>secret</think>", "Answer."),
        ("<think>never closed", ""),
        ("Good. <think> Bad end.", "Good. <think> Bad end."),
        ("Plain.", "Plain."),
    ],
)
def test_the_final_answer_hides_reasoning_and_nothing_else(response: str, shown: str) -> None:
    assert final_answer(Rollout("Hi", response)) == shown
