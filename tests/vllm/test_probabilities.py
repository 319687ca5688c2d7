"""A real vLLM server behind the judges that read probabilities: prompt log-probabilities, scales, decisions."""

from __future__ import annotations

import pytest

from rubricate.chat import connect
from rubricate.data.records import Rollout
from rubricate.judges.arrow import ArrowJudge
from rubricate.judges.decisions import DecisionsJudge
from rubricate.judges.geval import ExpectationJudge
from rubricate.judges.slots import SlotsJudge
from rubricate.rubrics import Criterion, NumericScale, Rubric
from rubricate.types import RESPONSE_KINDS, FailureKind

ROLLOUT = Rollout("Nenne drei Vögel.", "Robin, wren and owl. 日本語 🐦 Answer: ?")
SCALE = NumericScale(low=1, high=5, integer=True)
BINARY = Rubric(criteria=tuple(Criterion(id=f"c{n}", text=f"Names bird {n} „so“.") for n in range(3)))
MIXED = Rubric(criteria=(*BINARY.criteria[:2], Criterion(id="clear", text="How clear it is.", scale=SCALE)))


async def test_slots_are_found_in_the_servers_own_tokens(server_url: str) -> None:
    model = connect(server_url)
    together = await SlotsJudge(model, max_outside=1.0).judge(ROLLOUT, BINARY)
    alone = await SlotsJudge(model, max_outside=1.0, questions_per_call=1).judge(ROLLOUT, BINARY)
    await model.aclose()
    assert all(v.score is not None and 0.0 < v.score < 1.0 for v in together.verdicts + alone.verdicts)
    # nothing stands before the first question but what stands there when it is asked alone
    assert together.verdicts[0].score == pytest.approx(alone.verdicts[0].score, abs=0.05)
    assert together.usage.calls == 1 and alone.usage.calls == 3


async def test_an_expectation_over_a_scale(server_url: str) -> None:
    model = connect(server_url, prefill=True)
    judgement = await ExpectationJudge(model, max_outside=1.0).judge(ROLLOUT, MIXED)
    await model.aclose()
    verdict = judgement.verdicts[-1]
    # this tokenizer puts a blank token before a number
    assert isinstance(verdict.raw, float) and 1.0 < verdict.raw < 5.0


async def test_flags_of_a_reply_or_typed_failures(server_url: str) -> None:
    """Whatever a small model answers: a verdict a criterion, and no number without a probability."""
    model = connect(server_url)
    judge = ArrowJudge(model, max_outside=1.0, max_attempts=2, max_tokens=40, tokens_per_criterion=20)
    judgement = await judge.judge(ROLLOUT, MIXED)
    await model.aclose()
    assert [verdict.criterion_id for verdict in judgement.verdicts] == [c.id for c in MIXED.criteria]
    *flags, scale = judgement.verdicts
    assert scale.failure is not None and scale.failure.kind is FailureKind.REQUEST
    for verdict in flags:
        if verdict.failure is None:
            assert verdict.score is not None and 0.0 <= verdict.score <= 1.0 and verdict.probability is not None
        else:
            assert verdict.score is None and verdict.failure.kind in RESPONSE_KINDS
    assert 1 <= judgement.usage.calls <= 3


async def test_a_model_and_a_server_without_decisions(server_url: str) -> None:
    """vLLM 0.32 has the third form alone, and does not read decisions from this model."""
    for dialect, kind, said in (
        ("systemone", FailureKind.SERVER, "501"),
        ("auto", FailureKind.REQUEST, "neither dialect"),
    ):
        model = connect(f"decisions:{server_url}", dialect=dialect)
        judgement = await DecisionsJudge(model).judge(ROLLOUT, MIXED)
        await model.aclose()
        for verdict in judgement.verdicts:
            assert verdict.failure is not None and verdict.failure.kind is kind
            assert said in verdict.failure.message and "LogprobJudge" in verdict.failure.message
