"""Each preset against an example worked out by hand from its paper's formula."""

from __future__ import annotations

import pytest

from rubricate.errors import ConfigError
from rubricate.rewardmodels import PRESETS, Aggregation, aggregate, clipped_mean, preset, preset_names
from rubricate.rubrics import Criterion, CriterionKind, Group, Importance, Polarity, Rubric
from rubricate.types import Judgement, Verdict

PENALTY = Polarity.PENALTY


def criterion(name: str, weight: float = 1.0, polarity: Polarity = Polarity.REWARD) -> Criterion:
    return Criterion(id=name, text=f"The response does {name}.", weight=weight, polarity=polarity)


def graded(name: str, importance: Importance, polarity: Polarity = Polarity.REWARD) -> Criterion:
    return Criterion(id=name, text=f"The response does {name}.", importance=importance, polarity=polarity)


def verdicts(**scores: float) -> list[Verdict]:
    return [Verdict(name, score) for name, score in scores.items()]


RAR = Rubric(
    criteria=(
        graded("a", Importance.ESSENTIAL),
        graded("b", Importance.IMPORTANT),
        graded("c", Importance.OPTIONAL),
        graded("p", Importance.PITFALL, PENALTY),
    )
)
SIGNED = Rubric(criteria=(criterion("a", 5), criterion("b", 3), criterion("p", 4, PENALTY)))


def value(name: str, rubric: Rubric, **scores: float) -> float | None:
    return aggregate(name, rubric, verdicts(**scores)).value


def test_rar_adds_the_weights_earned_over_all_weights() -> None:
    # earned: essential 1.0 + optional 0.3 + the pitfall avoided 0.9, of 1.0 + 0.7 + 0.3 + 0.9
    assert value("rar", RAR, a=1, b=0, c=1, p=0) == pytest.approx(2.2 / 2.9)
    assert value("rar_v1", RAR, a=1, b=0, c=1, p=0) == pytest.approx(2.1 / 2.8)


@pytest.mark.parametrize("name", [name for name in preset_names() if preset(name).mode == "explicit"])
def test_a_met_pitfall_never_earns(name: str) -> None:
    options = preset(name, clip=None)
    rubric = Rubric(
        criteria=tuple(c.model_copy(update={"kind": CriterionKind.PRINCIPLE, "weight": 0.25}) for c in RAR.criteria)
    )
    clean = aggregate(options, rubric, verdicts(a=1, b=0, c=1, p=0)).value
    wrong = aggregate(options, rubric, verdicts(a=1, b=0, c=1, p=1)).value
    assert clean is not None and wrong is not None
    assert wrong <= clean
    if options.combine not in ("all_or_nothing", "minimum"):
        assert wrong < clean


def test_rar_pitfall_phrased_as_avoidance_earns_when_met() -> None:
    rubric = Rubric(criteria=(graded("a", Importance.ESSENTIAL), graded("p", Importance.PITFALL)))
    assert value("rar", rubric, a=0, p=1) == pytest.approx(0.9 / 1.9)
    assert value("rar", rubric, a=1, p=0) == pytest.approx(1.0 / 1.9)


def test_rar_refuses_a_criterion_without_importance() -> None:
    with pytest.raises(ConfigError, match="criterion 'x' has no importance") as caught:
        value("rar", Rubric(criteria=(criterion("x"),)), x=1)
    assert "weight_default" in caught.value.hint
    assert (
        aggregate(preset("rar", weight_default=0.5), Rubric(criteria=(criterion("x"),)), verdicts(x=1)).value == 1
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (preset("rar_implicit"), (7 - 1) / 9),
        (preset("rar_implicit", normaliser="over_max"), 0.7),
        (preset("rar_implicit", normaliser="score"), 0.25),
        (preset("rar_implicit", rating_scale=(0, 10)), 0.7),
    ],
)
def test_rar_implicit_normalises_the_rating(options: Aggregation, expected: float) -> None:
    judged = Judgement(overall=Verdict("overall", 0.25, raw=7))
    score = aggregate(options, RAR, judged)
    assert score.value == pytest.approx(expected)
    assert score.bounds == (score.value, score.value)
    assert score.coverage == 1.0


def test_healthbench_is_unclipped_and_only_the_mean_is_clipped() -> None:
    assert value("healthbench", SIGNED, a=1, b=0, p=1) == pytest.approx((5 - 4) / 8)
    assert value("healthbench", SIGNED, a=0, b=0, p=1) == pytest.approx(-4 / 8)
    assert value("healthbench", Rubric(criteria=(criterion("p", 4, PENALTY),)), p=0) is None
    assert clipped_mean([-0.5, None, 0.25]) == 0.0
    assert clipped_mean([0.5, None, 1.0]) == 0.75
    assert clipped_mean([None]) is None


def test_dr_tulu_divides_by_at_least_one() -> None:
    assert value("dr_tulu", SIGNED, a=0.5, b=1, p=0.5) == pytest.approx((2.5 + 3 - 2) / 8)
    small = Rubric(criteria=(criterion("a", 0.4), criterion("p", 1.0, PENALTY)))
    assert value("dr_tulu", small, a=1, p=0.5) == pytest.approx(0.4 - 0.5)
    assert value("dr_tulu", Rubric(criteria=(criterion("p", 2, PENALTY),)), p=1) == -2.0


def test_open_instruct_divides_by_absolute_weights() -> None:
    assert value("open_instruct", SIGNED, a=0.5, b=1, p=0.5) == pytest.approx((2.5 + 3 - 2) / 12)


def test_tail_is_the_share_of_weight_met() -> None:
    rubric = Rubric(criteria=(criterion("a", 3), criterion("b", 2), criterion("c", 1)))
    assert value("tail", rubric, a=1, b=0, c=1) == pytest.approx(4 / 6)


def test_rlcf_weighs_mean_scores() -> None:
    rubric = Rubric(criteria=(criterion("a", 100), criterion("b", 75), criterion("c", 25)))
    assert value("rlcf", rubric, a=0.8, b=0.5, c=1.0) == pytest.approx((80 + 37.5 + 25) / 200)


def test_all_or_nothing_and_hybrid() -> None:
    assert value("all_or_nothing", SIGNED, a=1, b=1, p=0) == 1.0
    assert value("all_or_nothing", SIGNED, a=1, b=1, p=1) == 0.0
    assert value("all_or_nothing", SIGNED, a=1, b=0, p=0) == 0.0
    assert value("hybrid", SIGNED, a=1, b=0, p=0) == pytest.approx(0.5 * 0 + 0.5 * 9 / 12)
    assert value("hybrid", SIGNED, a=1, b=1, p=0) == pytest.approx(1.0)


def test_online_rubrics() -> None:
    assert value("online_rubrics", SIGNED, a=1, b=1, p=1) == pytest.approx((8 - 4) / 8)


def test_rrd_sums_normalised_weights() -> None:
    rubric = Rubric(criteria=(criterion("a", 0.5), criterion("b", 0.3), criterion("c", 0.2)))
    assert value("rrd", rubric, a=1, b=0, c=1) == pytest.approx(0.7)


def test_rubric_arrow_weighs_signed_probabilities_by_kind() -> None:
    hard = Criterion(id="h", text="The response has a list.", kind=CriterionKind.HARD_RULE)
    soft = Criterion(id="s", text="The response is clear.", kind=CriterionKind.PRINCIPLE)
    rubric = Rubric(criteria=(hard, soft))
    said = [Verdict("h", 1.0, probability=0.9), Verdict("s", 0.0, probability=0.25)]
    total = 3 * (0.9 - 0.1) + 1 * (0.25 - 0.75)
    assert aggregate("rubric_arrow_judge", rubric, said).value == pytest.approx(total)
    assert aggregate("rubric_arrow_policy", rubric, said).value == pytest.approx(total / 4)
    assert aggregate("rubric_arrow_policy", rubric, said[:1]).bounds == pytest.approx(
        ((2.4 - 1) / 4, (2.4 + 1) / 4)
    )


def test_rbr_adds_fitted_weights_times_probabilities() -> None:
    said = [
        Verdict("a", 1.0, probability=0.8),
        Verdict("b", 0.0, probability=0.1),
        Verdict("p", 1.0, probability=0.5),
    ]
    assert aggregate("rbr", SIGNED, said).value == pytest.approx(5 * 0.8 + 3 * 0.1 - 4 * 0.5)


def test_rlac_takes_the_worst_criterion() -> None:
    assert value("rlac", SIGNED, a=1, b=1, p=0) == 1.0
    assert value("rlac", SIGNED, a=1, b=1, p=1) == 0.0


def test_paperbench_means_bottom_up() -> None:
    rubric = Rubric(
        groups=(Group(id="g", weight=3),),
        criteria=(
            criterion("a", 1).model_copy(update={"path": ("g",)}),
            criterion("b", 3).model_copy(update={"path": ("g",)}),
            criterion("c", 1),
        ),
    )
    assert value("paperbench", rubric, a=1, b=0, c=1) == pytest.approx((3 * 0.25 + 1) / 4)


def test_weighted_is_clipped_and_mean_is_unweighted() -> None:
    assert value("weighted", SIGNED, a=1, b=0, p=0.5) == pytest.approx((5 - 2) / 8)
    assert value("weighted", SIGNED, a=0, b=0, p=1) == 0.0
    assert value("weighted", Rubric(criteria=(criterion("p", 4, PENALTY),)), p=0.25) == pytest.approx(0.75)
    assert value("mean", SIGNED, a=1, b=0.5, p=1) == pytest.approx(1.5 / 3)


def test_names_are_sorted_and_every_preset_names_its_source() -> None:
    assert list(PRESETS) == sorted(PRESETS)
    assert all(source.endswith(".") for _, source in PRESETS.values())
    with pytest.raises(ConfigError, match="no aggregation named 'rarr'"):
        preset("rarr")
    with pytest.raises(ConfigError, match="missing"):
        preset("rar", missing="guess")


@pytest.mark.parametrize(
    ("domain", "score", "expected"),
    [
        ("score", 0.3, 0.3),
        ("binary", 0.5, 1.0),
        ("binary", 0.49, 0.0),
        ("ternary", 0.2, 0.0),
        ("ternary", 0.25, 0.5),
        ("ternary", 0.6, 0.5),
        ("ternary", 0.75, 1.0),
        ("signed", 0.3, -0.4),
    ],
)
def test_value_domains(domain: str, score: float, expected: float) -> None:
    options = Aggregation().changed(value=domain)
    assert aggregate(options, Rubric(criteria=(criterion("a", 2),)), verdicts(a=score)).value == pytest.approx(
        expected
    )
