"""Mock models of one opinion answer in every mode: JSON replies that fit what a judge asks for."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import connect
from rubricate.chat.mock_names import load_mock
from rubricate.chat.mock_replies import fitting
from rubricate.data.records import Rollout
from rubricate.judges import build_judge
from rubricate.judges.reply import question_of, reply_schema
from rubricate.rubrics import BinaryScale, Criterion, Level, NumericScale, OrdinalScale, Rubric

LEVELS = OrdinalScale(
    levels=tuple(Level(label=f"L{n}", value=float(n), description=f"level {n}") for n in range(5))
)
CRITERIA = (
    Criterion(id="plain", text="It is kind."),
    Criterion(id="if", text="It names a number.", condition="Numbers are asked for."),
    Criterion(id="level", text="How kind it is.", scale=LEVELS),
    Criterion(id="number", text="How long it is.", scale=NumericScale(low=0, high=10, integer=True)),
    Criterion(id="share", text="How much is right.", scale=NumericScale(low=0, high=1)),
)
RUBRIC = Rubric(criteria=CRITERIA)
ROLLOUT = Rollout("Greet.", "Hello, dear.")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mock:yes", [1.0, 1.0, 1.0, 1.0, 1.0]),
        ("mock:no", [0.0, 0.0, 0.0, 0.0, 0.0]),
        ("mock:p=0.8", [1.0, 1.0, 0.75, 0.8, 0.8]),
    ],
)
@pytest.mark.parametrize("per_call", [1, None])
async def test_a_reasoned_judge_reads_every_scale(name: str, expected: list[float], per_call: int | None) -> None:
    judge = build_judge(connect(name), mode="reasoned", criteria_per_call=per_call)
    judgement = await judge.judge(ROLLOUT, RUBRIC)
    assert [verdict.score for verdict in judgement.verdicts] == pytest.approx(expected)
    assert judgement.usage.calls == len(CRITERIA)  # nothing was asked twice


async def test_in_logprob_mode_yes_and_no_are_the_probability_and_other_scales_are_answered() -> None:
    judgement = await build_judge(connect("mock:p=0.8"), mode="logprob").judge(ROLLOUT, RUBRIC)
    plain, _, level, number, _ = (verdict.score for verdict in judgement.verdicts)
    assert (plain, level, number) == pytest.approx((0.8, 0.8, 0.8))  # means over levels by probability


@pytest.mark.parametrize("mode", ["holistic", "likert"])
async def test_a_rating_of_the_whole_is_given(mode: str) -> None:
    judgement = await build_judge(connect("mock:p=0.8"), mode=mode).judge(ROLLOUT, RUBRIC)
    assert judgement.overall is not None
    assert judgement.overall.failure is None and judgement.overall.raw == 8


def test_p_is_part_of_the_fingerprint() -> None:
    prints = {load_mock(name).fingerprint for name in ("p=0.7", "p=0.8", "yes", "no")}
    assert len(prints) == 4


@given(p=st.floats(0, 1), chosen=st.lists(st.sampled_from(CRITERIA), min_size=1, max_size=4), like=st.booleans())
def test_every_reply_fits_its_schema(p: float, chosen: list[Criterion], like: bool) -> None:
    one = [chosen[0]] * len(chosen) if like else chosen[:1]  # criteria of one form share a call
    schema = reply_schema([question_of(criterion, f"C{n}") for n, criterion in enumerate(one, start=1)])
    jsonschema.validate(fitting(schema, p), schema)


def test_plain_criteria_keep_their_words() -> None:
    schema = reply_schema([question_of(Criterion(id="a", text="x", scale=BinaryScale()), "C1")])
    met = {"verdicts": [{"id": "C1", "reason": "scripted", "verdict": "met"}], "final": {"C1": "met"}}
    assert fitting(schema, 0.5) == met
