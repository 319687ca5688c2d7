"""Filters by a pool's scores: what tells nothing apart goes, failures are no zeros, coins do not pass."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from filter_cases import OUTAGE, criterion, rubric, table

from rubricate.chat import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.data import Rollout
from rubricate.errors import ConfigError
from rubricate.judges import CriterionJudge
from rubricate.judges.scripted import ScriptedJudge
from rubricate.rubrics import Criterion
from rubricate.rubrics.filters import Case, Correctness, Discrimination, Filtered, apply, judge_pool
from rubricate.types import Failure, Judgement


def dropped(found: Filtered) -> dict[str, str]:
    return {one.criterion_id: one.reason for one in found.dropped}


async def test_zero_variance_goes_and_the_top_k_by_population_std_stay() -> None:
    scores = table(
        {
            "all": [[1.0], [1.0], [1.0], [1.0]],
            "half": [[1.0], [1.0], [0.0], [0.0]],  # .5
            "one": [[1.0], [0.0], [0.0], [0.0]],  # sqrt(3)/4
            "other": [[0.0], [1.0], [0.0], [0.0]],  # the same: the earlier one stays
            "slight": [[0.5], [0.4], [0.5], [0.5]],
        }
    )
    case = Case(rubric(*scores.ids), table=scores)
    found = await apply([Discrimination(top_k=2)], [case])
    assert found.kept[0].rubric.ids == ("half", "one")
    figures = {one.criterion_id: one.figures["std"] for one in found.dropped}
    assert figures["all"] == 0.0
    assert figures["other"] == pytest.approx(np.std([0, 1, 0, 0]))
    assert "every response has the same score" in dropped(found)["all"]
    assert "not among the 2" in dropped(found)["slight"]


async def test_a_failed_judgement_is_no_zero() -> None:
    scores = table({"a": [[1.0], [1.0], [None], [1.0]], "b": [[1.0], [0.0], [None], [None]]})
    found = await apply([Discrimination()], [Case(rubric("a", "b"), table=scores)])
    assert found.kept[0].rubric.ids == ("b",)  # with the failure as 0, `a` would vary
    assert found.dropped[0].figures["failed"] == 1
    assert found.dropped[0].figures["known"] == 3


@pytest.mark.parametrize(("unknown", "left"), [("keep", ("a", "b")), ("drop", ("b",))])
async def test_what_is_not_known_is_kept_or_dropped_as_asked(unknown: str, left: tuple[str, ...]) -> None:
    scores = table({"a": [[1.0], [None], [None]], "b": [[1.0], [0.0], [1.0]]})
    chosen = Discrimination(unknown="keep" if unknown == "keep" else "drop", top_k=1)
    found = await apply([chosen], [Case(rubric("a", "b"), table=scores)])
    assert found.kept[0].rubric.ids == left
    (said,) = found.flagged if unknown == "keep" else found.dropped
    assert said.criterion_id == "a"
    assert said.reason.startswith("unknown")


async def test_a_case_without_a_pool_is_unknown_as_a_whole() -> None:
    case = Case(rubric("a"))
    assert (await apply([Discrimination()], [case])).kept == [case]
    gone = await apply([Discrimination(unknown="drop")], [case])
    assert gone.cases == (None,)
    assert gone.dropped[0].what == "rubric"


def coin(response: str, one: Criterion, *, sample: int) -> bool:
    """`coin` is a toss of a coin for every judgement; other criteria are met where the response names them."""
    if one.id != "coin":
        return one.id in response
    return hashlib.sha256(f"{sample}{response}".encode()).digest()[0] % 2 == 0


def tossing(sample: int) -> ScriptedJudge:
    return ScriptedJudge(partial(coin, sample=sample))


async def test_coins_pass_the_plain_rule_and_not_the_one_less_repeats() -> None:
    """100 pools of 8 responses with one criterion that half of them meet, and a coin."""
    cases = [
        Case(
            rubric("real", "coin"),
            pool=tuple(Rollout(f"p{n}", f"{n} {k} {'real' if k % 2 else ''}") for k in range(8)),
        )
        for n in range(100)
    ]
    plain = await apply([Discrimination(tossing(0))], cases)
    excess = await apply([Discrimination(tossing, measure="excess", repeats=3)], cases)
    kept_plain = [case.rubric.ids for case in plain.kept]
    kept_excess = [case.rubric.ids for case in excess.kept]
    assert sum("coin" in ids for ids in kept_plain) >= 95
    assert sum("coin" in ids for ids in kept_excess) <= 10
    assert all("real" in ids for ids in kept_excess)
    untested = await apply([Discrimination(tossing, measure="excess", repeats=3, alpha=None)], cases)
    assert 20 <= sum("coin" in case.rubric.ids for case in untested.kept) <= 65  # hence the test


async def test_repeats_ask_a_model_again_with_another_sample_and_seed() -> None:
    seen = list[tuple[int, int | None]]()

    def answer(request: ChatRequest) -> str:
        seen.append((request.sample, request.seed))
        return "no"

    judge = CriterionJudge(MockModel(answer), temperature=1.0, seed=10, max_attempts=1)
    made = await judge_pool(judge, [Rollout("p", "r")], rubric("a"), repeats=3)
    assert sorted(seen) == [(0, 10), (1, 11), (2, 12)]
    assert made.scores.shape == (1, 1, 3)
    assert judge.sample == 0
    with pytest.raises(ConfigError, match="greedy"):
        await judge_pool(CriterionJudge(MockModel("no")), [Rollout("p", "r")], rubric("a"), repeats=2)
    with pytest.raises(ConfigError, match="no `sample`"):
        await judge_pool(ScriptedJudge(), [Rollout("p", "r")], rubric("a"), repeats=2)


async def test_a_judge_that_raises_has_failed_everywhere() -> None:
    class Broken(ScriptedJudge):
        async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
            raise ConfigError("the key is wrong")

    made = await judge_pool(Broken(), [Rollout("p", "r")], rubric("a"))
    assert made.missing("a") == (1, 0)
    assert np.isnan(made.scores).all()


async def test_correctness_keeps_what_goes_with_it_and_turns_the_sign_of_penalties() -> None:
    scores = table(
        {
            "good": [[1.0], [1.0], [0.0], [0.0], [0.0]],
            "bad": [[0.0], [0.0], [1.0], [1.0], [None]],
            "off": [[1.0], [0.0], [1.0], [0.0], [1.0]],
            "flat": [[1.0], [1.0], [1.0], [1.0], [1.0]],
            "few": [[1.0], [0.0], [None], [None], [None]],
        }
    )
    made = rubric("good", criterion("bad", polarity="penalty"), "off", "flat", "few")
    case = Case(made, table=scores, correct=(1, 1, 0, 0, None))
    found = await apply([Correctness()], [case])
    assert found.kept[0].rubric.ids == ("good", "bad", "few")
    figures = {one.criterion_id: one.figures for one in found.dropped}
    assert figures["off"]["correlation"] == pytest.approx(0.0)
    assert figures["flat"]["std"] == 0.0
    assert [one.criterion_id for one in found.flagged] == ["few"]
    turned = replace(case, rubric=rubric("good", "bad", "off", "flat", "few"))
    assert "bad" in dropped(await apply([Correctness()], [turned]))


async def test_the_correlation_must_be_above_the_threshold_not_at_it() -> None:
    scores = table({"a": [[1.0], [1.0], [0.0], [0.0]]})
    case = Case(rubric("a"), table=scores, correct=(1, 1, 0, 0))
    assert (await apply([Correctness(threshold=1.0)], [case])).cases == (None,)
    assert (await apply([Correctness(threshold=0.99)], [case])).kept == [case]


async def test_equally_correct_responses_and_missing_labels_leave_it_unknown() -> None:
    scores = table({"a": [[1.0], [1.0], [0.0], [0.0]]})
    for labels in ((1, 1, 1, 1), ()):
        case = Case(rubric("a"), table=scores, correct=labels)
        found = await apply([Correctness()], [case])
        assert found.kept == [case]
        assert len(found.flagged) == 1
    with pytest.raises(ConfigError, match="2 labels for 4"):
        await apply([Correctness()], [Case(rubric("a"), table=scores, correct=(1, 0))])


def sometimes(response: str, one: Criterion) -> bool | Failure:
    return OUTAGE if "away" in response else one.id in response


async def test_outages_of_the_judge_are_counted_and_decide_nothing() -> None:
    pool = tuple(Rollout("p", text) for text in ("a", "a away", "away", "a"))
    found = await apply([Discrimination(ScriptedJudge(sometimes))], [Case(rubric("a"), pool=pool)])
    (gone, _) = found.dropped
    assert gone.figures["failed"] == 2
    assert gone.figures["std"] == 0.0


def test_options_outside_their_ranges_are_refused() -> None:
    for options in (
        {"measure": "variance"},
        {"top_k": 0},
        {"threshold": -1.0},
        {"unknown": "maybe"},
        {"measure": "excess", "repeats": 1},
        {"alpha": 0.0},
        {"alpha": 0.001, "permutations": 99},
        {"min_known": 1},
    ):
        with pytest.raises(ConfigError):
            Discrimination(**options)  # type: ignore[arg-type]  # wrong on purpose


async def test_a_pool_that_nobody_can_judge_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no judge"):
        await apply([Discrimination()], [Case(rubric("a"), pool=(Rollout("p", "r"),))])
