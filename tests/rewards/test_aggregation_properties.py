"""What must hold of every aggregation, against a plain loop written from the documentation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rubricate.rewardmodels import Aggregation, State, aggregate, aggregate_arrays, make_plan, value_range
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Verdict

FLAT = ("weighted_sum", "mean", "all_or_nothing", "minimum", "hybrid")
WEIGHTS = st.sampled_from([0.0, 0.1, 0.7, 1.0, 2.0, 5.0])
SCORES = st.sampled_from([0.0, 0.2, 0.25, 0.5, 0.75, 1.0])
STATES = st.sampled_from([State.OK, State.OK, State.OK, State.NOT_APPLICABLE, State.UNKNOWN])


@st.composite
def options(draw: st.DrawFn) -> Aggregation:
    return Aggregation(
        value=draw(st.sampled_from(["score", "binary", "ternary", "signed"])),
        polarity=draw(st.sampled_from(["signed", "credit", "no_credit"])),
        combine=draw(st.sampled_from(FLAT)),
        denominator=draw(st.sampled_from(["positive", "positive_or_one", "absolute", "none"])),
        only_negative=draw(st.sampled_from(["credit", "undefined", "unit"])),
        not_applicable=draw(st.sampled_from(["exclude", "no_credit"])),
        scale=draw(st.sampled_from([1.0, 2.0])),
        shift=draw(st.sampled_from([0.0, -1.0])),
        clip=draw(st.sampled_from([None, (0.0, 1.0), (-1.0, 1.0)])),
    )


@st.composite
def rubrics(draw: st.DrawFn, *, vetoes: bool = True) -> Rubric:
    return Rubric(
        criteria=tuple(
            Criterion(
                id=f"c{index}",
                text="It is good.",
                weight=draw(WEIGHTS),
                polarity=draw(st.sampled_from(list(Polarity))),
                veto=vetoes and draw(st.sampled_from([False, False, True])),
            )
            for index in range(draw(st.integers(1, 5)))
        )
    )


def states_for(rubric: Rubric) -> st.SearchStrategy[list[State]]:
    return st.lists(STATES, min_size=len(rubric), max_size=len(rubric))


def scores_for(rubric: Rubric) -> st.SearchStrategy[list[float]]:
    return st.lists(SCORES, min_size=len(rubric), max_size=len(rubric))


def plain(o: Aggregation, rubric: Rubric, scores: Sequence[float], absent: Sequence[bool]) -> float | None:
    """One response by the book, without vetoes, all verdicts known."""
    low, high = o.domain
    total = divisor = 0.0
    earnable, penalties, mirrored = False, 0.0, 0.0
    worths: list[float] = []
    passed: list[bool] = []
    for criterion, score, away in zip(rubric.criteria, scores, absent, strict=True):
        weight = (1.0 if criterion.weight else 0.0) if o.combine == "mean" else criterion.weight
        if away and o.not_applicable == "exclude":
            continue
        reward = criterion.polarity is Polarity.REWARD
        value = {
            "score": score,
            "binary": float(score >= o.threshold),
            "ternary": 0.0 if score < 0.25 else 0.5 if score < 0.75 else 1.0,
            "signed": 2 * score - 1,
        }[o.value]
        if reward:
            term, earning = weight * value, weight
        elif o.polarity == "signed":
            term, earning = -weight * value, weight if o.denominator == "absolute" else 0.0
        elif o.polarity == "credit":
            term, earning = weight * (low + high - value), weight
        else:
            term, earning = 0.0, 0.0
        total += 0.0 if away else term
        divisor += earning
        earnable = earnable or earning > 0
        if not reward:
            penalties += weight
            mirrored += weight * (low + high - value)
        if weight > 0:
            worths.append(value if reward else low + high - value)
            passed.append((score >= o.threshold) == reward)
    if o.combine == "minimum":
        return min(worths, default=None)
    whole = float(all(passed)) if passed else None
    if o.combine == "all_or_nothing" or whole is None:
        return whole
    if not earnable:
        if o.polarity == "no_credit" or not penalties:
            return None
        if o.denominator in ("none", "positive_or_one") or o.only_negative == "unit":
            summed: float | None = total
        else:
            summed = None if o.only_negative == "undefined" else mirrored / penalties
    else:
        d = {"none": 1.0, "positive_or_one": max(divisor, 1.0)}.get(o.denominator, divisor)
        summed = total / d
    if o.combine != "hybrid" or summed is None:
        return summed
    return o.hybrid_share * whole + (1 - o.hybrid_share) * summed


def finished(o: Aggregation, value: float | None) -> float | None:
    return None if value is None else o.finish(value)


def run(
    o: Aggregation, rubric: Rubric, scores: Sequence[float], states: Sequence[State]
) -> tuple[float, float, float]:
    evidence = np.array([scores], dtype=np.float64)
    evidence[0, [s > State.NOT_APPLICABLE for s in states]] = math.nan
    out = aggregate_arrays(o, make_plan(o, rubric), evidence, np.array([states], dtype=np.int8))
    return float(out.value[0]), float(out.low[0]), float(out.high[0])


@given(st.data(), options(), rubrics(vetoes=False))
def test_equals_the_plain_loop(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    scores = data.draw(scores_for(rubric))
    absent = data.draw(st.lists(st.booleans(), min_size=len(rubric), max_size=len(rubric)))
    if o.not_applicable == "no_credit" and o.combine in ("all_or_nothing", "minimum", "hybrid"):
        absent = [False] * len(rubric)  # what "earns nothing" is there has tests of its own
    if o.not_applicable == "no_credit" and (o.value == "signed" or o.only_negative == "credit"):
        absent = [False] * len(rubric)
    expected = finished(o, plain(o, rubric, scores, absent))
    value, low, high = run(o, rubric, scores, [State.NOT_APPLICABLE if a else State.OK for a in absent])
    if expected is None:
        assert math.isnan(value) and math.isnan(low)
    else:
        assert value == pytest.approx(expected, abs=1e-12)
        assert low == high == value


@given(st.data(), options(), rubrics())
def test_bounds_are_those_of_all_completions(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    scores = data.draw(scores_for(rubric))
    states = data.draw(states_for(rubric))
    # A judge says "does not apply" only of criteria that carry a condition; vetoes are sized for those.
    conditional = [
        c.model_copy(update={"condition": "It applies."}) if s is State.NOT_APPLICABLE else c
        for c, s in zip(rubric.criteria, states, strict=True)
    ]
    rubric = Rubric(criteria=tuple(conditional))
    value, low, high = run(o, rubric, scores, states)
    open_ones = [index for index, state in enumerate(states) if state is State.UNKNOWN]
    reached: list[float] = []
    for choice in itertools.product([0.0, 0.2, 0.5, 1.0], repeat=len(open_ones)):
        filled, done = list(scores), list(states)
        for index, score in zip(open_ones, choice, strict=True):
            filled[index], done[index] = score, State.OK
        full, full_low, full_high = run(o, rubric, filled, done)
        assert math.isnan(full) or full_low == full == full_high
        reached.append(full)
    if any(math.isnan(full) for full in reached):
        assert math.isnan(value) or any(c.veto for c in rubric.criteria)
        return
    assert low == pytest.approx(min(reached), abs=1e-12)
    assert high == pytest.approx(max(reached), abs=1e-12)
    if not math.isnan(value):  # a number in spite of unknown verdicts is the same in every completion
        assert all(full == pytest.approx(value, abs=1e-12) for full in reached)
    elif not open_ones:
        raise AssertionError("everything is known, and there is no value")


@given(st.data(), options(), rubrics())
def test_monotone_by_polarity(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    scores = data.draw(scores_for(rubric))
    index = data.draw(st.integers(0, len(rubric) - 1))
    better = list(scores)
    better[index] = 1.0 if rubric.criteria[index].polarity is Polarity.REWARD else 0.0
    known = [State.OK] * len(rubric)
    before, after = run(o, rubric, scores, known)[0], run(o, rubric, better, known)[0]
    assume(not (math.isnan(before) or math.isnan(after)))
    assert after >= before - 1e-12


@given(st.data(), options(), rubrics())
def test_order_does_not_matter(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    scores = data.draw(scores_for(rubric))
    states = data.draw(states_for(rubric))
    order = data.draw(st.permutations(range(len(rubric))))
    moved = Rubric(criteria=tuple(rubric.criteria[i] for i in order))
    first = run(o, rubric, scores, states)
    second = run(o, moved, [scores[i] for i in order], [states[i] for i in order])
    assert first[1:] == pytest.approx(second[1:], abs=1e-12, nan_ok=True)
    if not (math.isnan(first[0]) or math.isnan(second[0])):
        assert first[0] == pytest.approx(second[0], abs=1e-12)


@given(st.data(), options(), rubrics())
def test_a_fired_veto_is_the_lowest_value(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    index = data.draw(st.integers(0, len(rubric) - 1))
    veto = rubric.criteria[index].model_copy(update={"veto": True})
    rubric = Rubric(criteria=(*rubric.criteria[:index], veto, *rubric.criteria[index + 1 :]))
    scores = data.draw(scores_for(rubric))
    scores[index] = 0.2 if veto.polarity is Polarity.REWARD else 0.5
    states = [data.draw(st.sampled_from([State.OK, State.UNKNOWN])) for _ in scores]
    states[index] = State.OK
    value, low, high = run(o, rubric, scores, states)
    assert value == low == high
    any_other = run(o, rubric, data.draw(scores_for(rubric)), [State.OK] * len(rubric))[0]
    assert math.isnan(any_other) or value <= any_other


@given(st.data(), rubrics(vetoes=False), st.sampled_from(["score", "binary", "ternary"]))
def test_bounded_where_promised(data: st.DataObject, rubric: Rubric, domain: str) -> None:
    scores = data.draw(scores_for(rubric))
    states = data.draw(states_for(rubric))
    for o in (
        Aggregation.model_validate({"value": domain, "polarity": "credit", "denominator": "absolute"}),
        Aggregation.model_validate({"value": domain, "clip": (0.0, 1.0)}),
    ):
        _, low, high = run(o, rubric, scores, states)
        assert math.isnan(low) or -1e-12 <= low <= high <= 1 + 1e-12


@given(st.data(), rubrics(), st.sampled_from([0.01, 3.0, 1000.0]), st.sampled_from(["positive", "absolute"]))
def test_weights_have_no_unit(data: st.DataObject, rubric: Rubric, factor: float, denominator: str) -> None:
    scores = data.draw(scores_for(rubric))
    states = data.draw(states_for(rubric))
    o = Aggregation.model_validate({"denominator": denominator})
    scaled = Rubric(criteria=tuple(c.model_copy(update={"weight": c.weight * factor}) for c in rubric.criteria))
    first, second = run(o, rubric, scores, states), run(o, scaled, scores, states)
    assert first[1:] == pytest.approx(second[1:], abs=1e-9, nan_ok=True)


@given(st.data(), options(), rubrics())
def test_rows_of_a_batch_do_not_see_each_other(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    rows = data.draw(st.integers(1, 4))
    scores = [data.draw(scores_for(rubric)) for _ in range(rows)]
    states = [data.draw(states_for(rubric)) for _ in range(rows)]
    o = o.changed(missing="skip", min_coverage=0.3, response_failures="floor")
    out = aggregate_arrays(o, make_plan(o, rubric), np.array(scores), np.array(states, dtype=np.int8))
    for row in range(rows):
        alone = aggregate_arrays(
            o, make_plan(o, rubric), np.array([scores[row]]), np.array([states[row]], dtype=np.int8)
        )
        for many, one in zip((out.value, out.low, out.high), (alone.value, alone.low, alone.high), strict=True):
            assert float(many[row]) == pytest.approx(float(one[0]), abs=1e-12, nan_ok=True)


@given(st.data(), options(), rubrics())
def test_the_scalar_way_agrees_with_the_arrays(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    scores = data.draw(scores_for(rubric))
    states = data.draw(states_for(rubric))
    why = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "down")
    verdicts = [
        Verdict(c.id, score)
        if state is State.OK
        else Verdict.not_applicable(c.id)
        if state is State.NOT_APPLICABLE
        else Verdict.failed(c.id, why)
        for c, score, state in zip(rubric.criteria, scores, states, strict=True)
    ]
    score = aggregate(o, rubric, verdicts[::-1])
    value, low, high = run(o, rubric, scores, states)
    assert score.value == (None if math.isnan(value) else value)
    assert score.bounds == (None if math.isnan(low) else (low, high))
    assert 0.0 <= score.coverage <= 1.0
    assert (score.failure is None) == (score.value is not None)


@given(st.data(), options(), rubrics())
def test_the_range_of_a_rubric_holds_every_value(data: st.DataObject, o: Aggregation, rubric: Rubric) -> None:
    scores = data.draw(scores_for(rubric))
    clean = [1.0 if c.polarity is Polarity.REWARD else 0.0 for c in rubric.criteria]
    assume(not math.isnan(run(o, rubric, clean, [State.OK] * len(rubric))[0]))
    value = run(o, rubric, scores, [State.OK] * len(rubric))[0]
    assume(not math.isnan(value))
    low, high = value_range(o, rubric)
    assert low - 1e-12 <= value <= high + 1e-12
