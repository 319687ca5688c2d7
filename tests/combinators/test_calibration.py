"""Calibration: fits against known truths, quality, what is refused, files, and the judge that carries one."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import ChatRequest, MockModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, FormatError
from rubricate.judges import CriterionJudge, LogprobJudge, Router, VerifierJudge, build_judge
from rubricate.judges.calibrated import Calibrated, Labelled, gather_probabilities
from rubricate.judges.calibration import Calibration, fit_calibration, quality
from rubricate.judges.jury import Jury
from rubricate.rubrics import Criterion, VerifierSpec

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Criterion(id="a", text="Names a bird.")


def sharpened(count: int, slope: float = 3.0, seed: int = 0) -> tuple[list[float], list[bool]]:
    """Labels drawn from true probabilities, and an over-confident judge's report of them (logits times slope)."""
    rng = random.Random(seed)
    told: list[float] = []
    labels: list[bool] = []
    for _ in range(count):
        logit = rng.gauss(0.3, 1.0)
        labels.append(rng.random() < 1 / (1 + math.exp(-logit)))
        told.append(1 / (1 + math.exp(-slope * logit)))
    return told, labels


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_an_over_confident_judge_is_mended(method: str) -> None:
    told, labels = sharpened(2000)
    calibration = fit_calibration("judge", told, labels, method=method)
    assert calibration.after.ece < calibration.before.ece / 2
    assert calibration.after.log_loss < calibration.before.log_loss
    assert calibration.after.brier < calibration.before.brier
    fresh, truth = sharpened(2000, seed=1)
    mended = quality([calibration(p) for p in fresh], truth)
    assert mended.ece < 0.05, "it holds on labels that it has not seen"
    assert mended.log_loss == pytest.approx(calibration.after.log_loss, abs=0.05)


def test_platt_finds_the_slope_that_was_put_in() -> None:
    told, labels = sharpened(5000)
    calibration = fit_calibration("judge", told, labels)
    assert calibration.xs[0] == pytest.approx(1 / 3, rel=0.1) and calibration.ys[0] == pytest.approx(0, abs=0.1)


@given(
    points=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=50, max_size=120),
    method=st.sampled_from(["platt", "isotonic"]),
)
def test_a_calibration_never_turns_two_probabilities_round(points: list[tuple[float, bool]], method: str) -> None:
    try:
        calibration = fit_calibration("judge", [p for p, _ in points], [y for _, y in points], method=method)
    except ConfigError:
        return
    after = [calibration(p) for p in np.linspace(0, 1, 101)]
    assert after == sorted(after) and 0 < after[0] and after[-1] < 1


def test_isotonic_pools_what_violates_the_order() -> None:
    told = [0.1] * 20 + [0.2] * 20 + [0.4] * 20 + [0.9] * 20
    labels = [n < 5 for n in range(20)] + [n < 3 for n in range(20)] + [n < 10 for n in range(20)] + [True] * 20
    calibration = fit_calibration("judge", told, labels, method="isotonic")
    assert calibration(0.1) == calibration(0.2) == pytest.approx(0.2)
    assert calibration(0.4) == pytest.approx(0.5) and calibration(0.3) == pytest.approx(0.35)
    assert calibration(0.95) == pytest.approx(81 / 82) and calibration(0.0) == pytest.approx(0.2)


def test_quality_by_hand() -> None:
    found = quality([0.8, 0.8, 0.2, 0.2], [True, False, False, False], bins=2)
    assert found.ece == pytest.approx((abs(1.6 - 1) + abs(0.4 - 0)) / 4)
    assert found.brier == pytest.approx((0.04 + 0.64 + 0.04 + 0.04) / 4)
    assert found.log_loss == pytest.approx(-(math.log(0.8) + math.log(0.2) + 2 * math.log(0.8)) / 4)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.booleans()), min_size=1), st.randoms())
def test_the_order_of_labels_never_matters(points: list[tuple[float, bool]], rng: random.Random) -> None:
    first = quality([p for p, _ in points], [y for _, y in points])
    rng.shuffle(points)
    second = quality([p for p, _ in points], [y for _, y in points])
    assert first.ece == pytest.approx(second.ece) and first.log_loss == pytest.approx(second.log_loss)


def test_what_cannot_be_fitted_is_refused() -> None:
    told, labels = sharpened(100)
    with pytest.raises(ConfigError, match="19 labels are too few"):
        fit_calibration("judge", told[:19], labels[:19])
    with pytest.raises(ConfigError, match="49 labels are too few for a isotonic"):
        fit_calibration("judge", told[:49], labels[:49], method="isotonic")
    with pytest.raises(ConfigError, match="100 of 100 labels say met"):
        fit_calibration("judge", told, [True] * 100)
    with pytest.raises(ConfigError, match="do not rise"):
        fit_calibration("judge", told, [not label for label in labels])
    with pytest.raises(ConfigError, match="do not rise"):
        fit_calibration("judge", told, [not label for label in labels], method="isotonic")
    with pytest.raises(ConfigError, match="probability 0 is nan"):
        fit_calibration("judge", [math.nan, *told[1:]], labels)
    with pytest.raises(ConfigError, match="100 probabilities and 3 labels"):
        fit_calibration("judge", told, labels[:3])
    with pytest.raises(ConfigError, match="no calibration"):
        fit_calibration("judge", told, labels, method="beta")
    with pytest.raises(ConfigError, match="one group"):
        fit_calibration("judge", told, labels, groups=["a"] * 100)
    with pytest.raises(ConfigError, match="folds"):
        fit_calibration("judge", told, labels, folds=1)


def test_groups_are_never_torn_apart() -> None:
    # Each group's labels are alike and its probability is its own: only a torn group could be remembered.
    rng = random.Random(3)
    groups = [n // 4 for n in range(400)]
    truth = [rng.random() < 0.5 for _ in range(100)]
    told = [0.5 + 0.4 * (group / 100) + (0.001 if truth[group] else 0.0) for group in groups]
    labels = [truth[group] for group in groups]
    honest = fit_calibration("judge", told, labels, method="isotonic", groups=groups)
    assert honest.after.brier > 0.22


def test_a_file_brings_the_same_calibration_back(tmp_path: Path) -> None:
    for method in ("platt", "isotonic"):
        calibration = fit_calibration("judge", *sharpened(200), method=method)
        path = tmp_path / f"{method}.json"
        calibration.save(path)
        again = Calibration.load(path)
        assert again == calibration and again.fingerprint == calibration.fingerprint
    assert "ECE" in str(again) and pickle.loads(pickle.dumps(again)) == again


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("method", "beta"),
        ("judge", None),
        ("xs", [-1.0]),
        ("xs", ["1"]),
        ("ys", [math.nan]),
        ("ys", []),
        ("before", {"ece": 0.1}),
        ("count", True),
    ],
)
def test_a_broken_file_names_the_field(tmp_path: Path, field: str, value: object) -> None:
    record = {**fit_calibration("judge", *sharpened(100)).to_record(), field: value}
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"calibration.json.*{field}"):
        Calibration.load(path)


def test_no_file_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        Calibration.load(tmp_path / "none.json")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError, match="JSON object"):
        Calibration.load(tmp_path / "list.json")


def ranked(request: ChatRequest) -> float:
    """A judge that is right in its order and far too sure: 0.99 where the text says good, 0.9 else."""
    return 0.99 if "good" in request.text() else 0.9


async def test_from_labelled_criteria_to_a_calibrated_judge() -> None:
    judge = LogprobJudge(MockModel(p_yes=ranked))
    labelled = [
        Labelled(
            Rollout(f"Task {n // 2}.", "A good one." if n % 4 < 2 else "One."), ONE, (n % 4 < 2) != (n % 20 == 0)
        )
        for n in range(80)
    ]
    gathered = await gather_probabilities(judge, labelled)
    assert len(gathered.probabilities) == 80 and gathered.left_out == 0 and gathered.usage.calls == 80
    assert len(set(gathered.groups)) == 40
    calibration = fit_calibration(judge, gathered.probabilities, gathered.labels, groups=gathered.groups)
    calibrated = Calibrated(judge, calibration)
    (verdict,) = (await calibrated.judge_criteria(Rollout("Task.", "One."), [ONE])).verdicts
    assert verdict.score is not None and verdict.score < 0.3 and verdict.probability == verdict.score
    assert "P 0.900 before calibration" in verdict.reason
    assert pickle.loads(pickle.dumps(calibrated)).fingerprint == calibrated.fingerprint


async def test_criteria_of_several_rubrics_on_one_response_are_kept_apart() -> None:
    judge = LogprobJudge(MockModel(p_yes=ranked))
    other = Criterion(id="a", text="Is good.")
    gathered = await gather_probabilities(judge, [Labelled(ROLLOUT, ONE, False), Labelled(ROLLOUT, other, True)])
    assert gathered.probabilities == (pytest.approx(0.9), pytest.approx(0.99)) and gathered.labels == (False, True)
    assert gathered.groups == (0, 0)


async def test_verdicts_without_a_probability_are_left_out_and_left_alone() -> None:
    coded = Criterion(id="c", text="Is short.", verifier=VerifierSpec(name="words", args={"max": 9}))
    judge = build_judge(MockModel(p_yes=0.9), mode="logprob")
    assert isinstance(judge, Router)
    gathered = await gather_probabilities(judge, [Labelled(ROLLOUT, coded, True), Labelled(ROLLOUT, ONE, True)])
    assert gathered.left_out == 1
    calibrated = Calibrated(judge, fit_calibration(judge, *sharpened(100)))
    judgement = await calibrated.judge_criteria(ROLLOUT, [coded, ONE])
    assert judgement.verdicts[0].score == 1.0 and judgement.verdicts[0].probability is None
    plain = VerifierJudge()
    same = await Calibrated(plain, fit_calibration(plain, *sharpened(100))).judge_criteria(ROLLOUT, [coded])
    assert same == await plain.judge_criteria(ROLLOUT, [coded])


async def test_a_majority_stays_a_majority() -> None:
    jury = Jury([LogprobJudge(MockModel(p_yes=p, name=str(p))) for p in (0.9, 0.8, 0.1)])
    calibration = fit_calibration(jury, *sharpened(200))
    (verdict,) = (await Calibrated(jury, calibration).judge_criteria(ROLLOUT, [ONE])).verdicts
    assert verdict.score == 1.0 and verdict.probability == pytest.approx(calibration(0.6))


def test_with_another_judge_it_is_an_error() -> None:
    model = MockModel(p_yes=0.9)
    judge = LogprobJudge(model)
    calibration = fit_calibration(judge, *sharpened(100))
    for other in (LogprobJudge(model, prefill=""), LogprobJudge(MockModel(p_yes=0.8)), CriterionJudge(model)):
        with pytest.raises(ConfigError, match="another judge"):
            Calibrated(other, calibration)


def test_arrays_are_taken_as_lists_are() -> None:
    labels = [n % 3 == 0 for n in range(60)]
    probabilities = [0.6 + 0.3 * label for label in labels]
    fitted = fit_calibration("judge", probabilities, labels)
    made = fit_calibration(
        "judge", cast("Sequence[float]", np.array(probabilities)), cast("Sequence[bool]", np.array(labels))
    )
    assert made == fitted
