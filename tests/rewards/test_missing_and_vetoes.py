"""Failed judgements, vetoes and criteria that do not apply: what is a number, what is none, and why."""

from __future__ import annotations

import numpy as np
import pytest

from rubricate.errors import ConfigError, UnscoredError
from rubricate.rewardmodels import (
    Aggregation,
    Outcome,
    State,
    aggregate,
    aggregate_many,
    preset,
    value_range,
)
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, RewardStatus, Verdict

SERVER = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "503", retryable=True)
REFUSED = Failure(FailureKind.REFUSAL, FailureCause.RESPONSE, "refused")


def rubric(*, veto: str = "", condition: str = "") -> Rubric:
    """Weights 6, 3, 1 for a, b, c and a penalty p of 2."""
    weights = {"a": 6.0, "b": 3.0, "c": 1.0, "p": 2.0}
    return Rubric(
        criteria=tuple(
            Criterion(
                id=name,
                text="It is so.",
                weight=weight,
                polarity=Polarity.PENALTY if name == "p" else Polarity.REWARD,
                veto=name == veto,
                condition="It applies." if name == condition else None,
            )
            for name, weight in weights.items()
        )
    )


def said(**scores: float | Failure | None) -> list[Verdict]:
    """Scores, failures, and None for "does not apply"."""
    verdicts: list[Verdict] = []
    for name, score in scores.items():
        if score is None:
            verdicts.append(Verdict.not_applicable(name))
        elif isinstance(score, Failure):
            verdicts.append(Verdict.failed(name, score))
        else:
            verdicts.append(Verdict(name, score))
    return verdicts


def test_a_failed_verdict_masks_by_default_and_leaves_bounds() -> None:
    score = aggregate("healthbench", rubric(), said(a=1, b=SERVER, c=0, p=0))
    assert score.value is None
    assert score.status is RewardStatus.UNSCORED
    assert score.bounds == pytest.approx((0.6, 0.9))
    assert score.coverage == pytest.approx(9 / 12)
    assert score.failure is not None
    assert (score.failure.kind, score.failure.cause) == (FailureKind.SERVER, FailureCause.INFRASTRUCTURE)
    assert "1 of 4" in score.failure.message and "'b'" in score.failure.message and "503" in score.failure.message
    assert score.failure.retryable


def test_skip_renormalises_above_its_coverage_only() -> None:
    o = preset("healthbench", missing="skip", min_coverage=0.7)
    assert aggregate(o, rubric(), said(a=1, b=SERVER, c=0, p=0)).value == pytest.approx(6 / 7)
    assert aggregate(o, rubric(), said(a=SERVER, b=1, c=1, p=0)).value is None
    with pytest.raises(ConfigError, match="min_coverage"):
        preset("healthbench", missing="skip")


def test_skip_never_turns_a_mixed_rubric_into_one_of_penalties() -> None:
    o = preset("weighted", missing="skip", min_coverage=0.1)
    assert aggregate(o, rubric(), said(a=SERVER, b=SERVER, c=SERVER, p=0)).value is None


def test_pessimistic_takes_the_lower_bound() -> None:
    o = preset("healthbench", missing="pessimistic", min_coverage=0.5)
    score = aggregate(o, rubric(), said(a=1, b=SERVER, c=0, p=SERVER))
    assert score.value == pytest.approx(0.4)
    assert score.status is RewardStatus.OK


def test_raise_names_the_criterion() -> None:
    o = preset("healthbench", missing="raise")
    with pytest.raises(UnscoredError, match="'b'"):
        aggregate(o, rubric(), said(a=1, b=SERVER, c=0, p=0))
    with pytest.raises(UnscoredError, match="refused"):
        aggregate(o, rubric(), said(a=1, b=REFUSED, c=SERVER, p=0))
    assert aggregate(o, rubric(), said(a=1, b=REFUSED, c=0, p=0)).value is None


def test_missing_and_contradictory_verdicts_count_as_failed() -> None:
    missing = aggregate("weighted", rubric(), said(a=1, b=1, c=1))
    assert missing.value is None and missing.failure is not None
    assert missing.failure.kind is FailureKind.INCOMPLETE
    twice = aggregate("weighted", rubric(), [*said(a=1, b=1, c=1, p=0), Verdict("a", 0.0)])
    assert twice.value is None and twice.failure is not None
    assert twice.failure.kind is FailureKind.AMBIGUOUS
    agreed = aggregate("weighted", rubric(), [*said(p=0, c=1, b=1, a=1), Verdict("a", 1.0), Verdict("x", 1.0)])
    assert agreed.value == 1.0


def test_an_impossible_probability_is_a_failed_verdict() -> None:
    bad = [*said(a=1, b=1, c=1), Verdict("p", 0.0, probability=float("nan"))]
    score = aggregate("rbr", rubric(), bad)
    assert score.value is None and score.failure is not None
    assert score.failure.kind is FailureKind.OUT_OF_RANGE


def test_what_no_completion_can_change_is_known() -> None:
    score = aggregate("all_or_nothing", rubric(), said(a=0, b=SERVER, c=1, p=0))
    assert score.value == 0.0
    assert score.bounds == (0.0, 0.0)
    assert score.coverage < 1.0


class TestResponseFailures:
    def test_mask_even_where_other_failures_are_skipped(self) -> None:
        o = preset("healthbench", missing="skip", min_coverage=0.1)
        score = aggregate(o, rubric(), said(a=1, b=REFUSED, c=1, p=0))
        assert score.value is None
        assert score.failure is not None and score.failure.cause is FailureCause.RESPONSE

    def test_floor(self) -> None:
        o = preset("healthbench", response_failures="floor")
        score = aggregate(o, rubric(), said(a=1, b=REFUSED, c=SERVER, p=0))
        assert score.value == pytest.approx(-0.2)
        assert score.status is RewardStatus.FLOORED
        assert score.failure is not None and score.failure.kind is FailureKind.REFUSAL
        assert aggregate(o, rubric(), said(a=1, b=SERVER, c=1, p=0)).value is None

    def test_raise_only_for_that_cause(self) -> None:
        o = preset("healthbench", response_failures="raise")
        assert aggregate(o, rubric(), said(a=1, b=SERVER, c=1, p=0)).value is None
        with pytest.raises(UnscoredError, match="refused"):
            aggregate(o, rubric(), said(a=1, b=REFUSED, c=1, p=0))


class TestVetoes:
    def test_penalty_met_and_reward_unmet_fire(self) -> None:
        score = aggregate("weighted", rubric(veto="p"), said(a=1, b=1, c=1, p=1))
        assert (score.value, score.status, score.vetoed_by) == (0.0, RewardStatus.VETOED, ("p",))
        assert aggregate("weighted", rubric(veto="a"), said(a=0, b=1, c=1, p=0)).vetoed_by == ("a",)
        clean = aggregate("weighted", rubric(veto="p"), said(a=1, b=1, c=1, p=0))
        assert (clean.value, clean.vetoed_by) == (1.0, ())

    def test_it_fires_whatever_else_is_unknown(self) -> None:
        score = aggregate("weighted", rubric(veto="p"), said(a=SERVER, b=REFUSED, c=SERVER, p=1))
        assert score.value == 0.0
        assert score.status is RewardStatus.VETOED
        assert score.bounds == (0.0, 0.0)

    def test_an_unknown_veto_leaves_no_value_but_bounds_down_to_the_floor(self) -> None:
        for o in (
            Aggregation(),
            Aggregation(missing="skip", min_coverage=0.1),
            Aggregation(missing="pessimistic", min_coverage=0.1),
        ):
            score = aggregate(o, rubric(veto="c"), said(a=1, b=1, c=SERVER, p=0))
            assert score.value is None
            assert score.bounds == pytest.approx((-0.2, 1.0))

    def test_the_default_floor_is_the_lowest_value_of_the_rubric(self) -> None:
        score = aggregate("healthbench", rubric(veto="a"), said(a=0, b=1, c=1, p=0))
        assert score.value == pytest.approx(-0.2)

    def test_a_floor_that_would_pay_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="floor"):
            preset("weighted", floor=0.1)
        with pytest.raises(ConfigError, match=r"floor -0\.1 is above -0\.2"):
            aggregate(preset("healthbench", floor=-0.1), rubric(veto="a"), said(a=1, b=1, c=1, p=0))
        low = aggregate(preset("healthbench", floor=-1), rubric(veto="a"), said(a=0, b=1, c=1, p=0))
        assert low.value == -1.0

    def test_the_floor_counts_criteria_that_may_not_apply(self) -> None:
        # With a (6) left out, 4 points stay: the worst response gets -2/4, so a veto must not give -2/10.
        score = aggregate("healthbench", rubric(veto="c", condition="a"), said(a=1, b=1, c=0, p=0))
        assert score.value == pytest.approx(-0.5)
        worst = aggregate("healthbench", rubric(condition="a"), said(a=None, b=0, c=0, p=1))
        assert worst.value == pytest.approx(-0.5)

    def test_weight_zero_criteria_only_veto(self) -> None:
        gate = Criterion(id="gate", text="It is safe.", weight=0, veto=True)
        gated = Rubric(criteria=(*rubric().criteria, gate))
        assert aggregate("weighted", gated, said(a=1, b=1, c=1, p=0, gate=1)).value == 1.0
        assert aggregate("weighted", gated, said(a=1, b=1, c=1, p=0, gate=0)).value == 0.0
        assert aggregate("mean", gated, said(a=1, b=0, c=0, p=1, gate=1)).value == pytest.approx(0.25)

    def test_implicit_mode(self) -> None:
        judged = Judgement(tuple(said(p=1)), Verdict("overall", 1.0, raw=10))
        score = aggregate("rar_implicit", rubric(veto="p"), judged)
        assert (score.value, score.vetoed_by) == (0.0, ("p",))
        unknown = Judgement(tuple(said(p=SERVER)), Verdict("overall", 1.0, raw=10))
        held = aggregate("rar_implicit", rubric(veto="p"), unknown)
        assert held.value is None
        assert held.bounds == (0.0, 1.0)


class TestNotApplicable:
    def test_exclude_leaves_both_sums(self) -> None:
        score = aggregate("healthbench", rubric(), said(a=None, b=1, c=0, p=0))
        assert score.value == pytest.approx(3 / 4)
        assert score.coverage == 1.0

    def test_no_credit_stays_in_the_denominator(self) -> None:
        o = preset("healthbench", not_applicable="no_credit")
        assert aggregate(o, rubric(), said(a=None, b=1, c=0, p=0)).value == pytest.approx(3 / 10)
        credit = preset("rlcf", not_applicable="no_credit")
        assert aggregate(credit, rubric(), said(a=1, b=1, c=1, p=None)).value == pytest.approx(10 / 12)
        signed = Aggregation(value="signed", not_applicable="no_credit")
        assert aggregate(signed, rubric(), said(a=1, b=None, c=0, p=0)).value == pytest.approx((6 - 1 + 2) / 10)

    def test_no_credit_fails_all_or_nothing(self) -> None:
        o = preset("all_or_nothing", not_applicable="no_credit")
        assert aggregate(o, rubric(), said(a=1, b=1, c=None, p=0)).value == 0.0
        assert aggregate("all_or_nothing", rubric(), said(a=1, b=1, c=None, p=0)).value == 1.0

    def test_nothing_left_is_no_value(self) -> None:
        score = aggregate("weighted", rubric(), said(a=None, b=None, c=None, p=None))
        assert score.value is None and score.bounds is None
        assert score.failure is not None and "no criterion that applies" in score.failure.message


class TestImplicit:
    def test_failures_and_wrong_scales_are_no_numbers(self) -> None:
        failed = aggregate("rar_implicit", rubric(), Judgement(overall=Verdict.failed("overall", REFUSED)))
        assert (failed.value, failed.bounds, failed.coverage) == (None, (0.0, 1.0), 0.0)
        floored = preset("rar_implicit", response_failures="floor")
        score = aggregate(floored, rubric(), Judgement(overall=Verdict.failed("overall", REFUSED)))
        assert (score.value, score.status) == (0.0, RewardStatus.FLOORED)
        beyond = aggregate("rar_implicit", rubric(), Judgement(overall=Verdict("overall", 1.0, raw=100)))
        assert beyond.value is None and beyond.failure is not None
        assert beyond.failure.kind is FailureKind.OUT_OF_RANGE
        no_rating = aggregate("rar_implicit", rubric(), Judgement(overall=Verdict("overall", 1.0)))
        assert no_rating.value is None
        assert aggregate("rar_implicit", rubric(), Judgement()).value is None

    def test_a_judge_of_whole_rubrics_needs_implicit_mode(self) -> None:
        with pytest.raises(ConfigError, match="one verdict on the whole rubric") as caught:
            aggregate("weighted", rubric(), Judgement(overall=Verdict("overall", 1.0, raw=10)))
        assert "rar_implicit" in caught.value.hint


def test_value_range() -> None:
    assert value_range(Aggregation(denominator="none"), rubric()) == (-2.0, 10.0)
    assert value_range("weighted", rubric()) == (0.0, 1.0)
    assert value_range(preset("weighted", floor=-1), rubric(veto="a")) == (-1.0, 1.0)
    assert value_range(preset("rar_implicit", normaliser="over_max"), rubric()) == (0.1, 1.0)


class TestMany:
    def test_unknown_is_nan_in_and_nan_out(self) -> None:
        out = aggregate_many("healthbench", rubric(), np.array([[1, 0, 1, 0], [1, np.nan, 0, 0]]))
        assert out.value[0] == pytest.approx(0.7)
        assert np.isnan(out.value[1])
        assert (out.low[1], out.high[1]) == pytest.approx((0.6, 0.9))
        assert list(out.outcome) == [Outcome.OK, Outcome.UNSCORED]

    def test_bad_input(self) -> None:
        with pytest.raises(ConfigError, match=r"\(N, 4\)"):
            aggregate_many("weighted", rubric(), np.zeros((2, 3)))
        with pytest.raises(ConfigError, match="row 1, criterion 'b': 1.5"):
            aggregate_many("weighted", rubric(), np.array([[0, 0, 0, 0], [0, 1.5, 0, 0]]))
        with pytest.raises(ConfigError, match="states"):
            aggregate_many("weighted", rubric(), np.zeros((2, 4)), np.zeros((1, 4), dtype=np.int8))
        with pytest.raises(ConfigError, match="nan"):
            aggregate_many("weighted", rubric(), np.full((1, 4), np.nan), np.full((1, 4), State.OK, dtype=np.int8))
        with pytest.raises(ConfigError, match="explicit"):
            aggregate_many("rar_implicit", rubric(), np.zeros((2, 4)))


def test_options_are_checked_and_fingerprinted() -> None:
    assert Aggregation().fingerprint == Aggregation().fingerprint != preset("weighted").fingerprint
    for bad in (
        {"clip": (1, 0)},
        {"threshold": 0},
        {"kind_weights": {"principle": -1}},
        {"unknown": 1},
        {"shift": float("nan")},
    ):
        with pytest.raises(ConfigError):
            Aggregation().changed(**bad)


def test_weights_that_overflow_are_an_error_not_infinity() -> None:
    huge = Rubric(criteria=tuple(Criterion(id=name, text="It is so.", weight=1.7e308) for name in "ab"))
    with pytest.raises(ConfigError, match="not finite"):
        aggregate(Aggregation(denominator="none"), huge, said(a=1, b=1))
