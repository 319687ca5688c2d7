"""The pipeline: filters one after the other, what each dropped and where, and what is handed on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from filter_cases import RulePairJudge, criterion, rubric

from rubricate.data import Preference, Rollout
from rubricate.errors import ConfigError
from rubricate.judges.scripted import ScriptedJudge
from rubricate.rubrics import Criterion, Group, Rubric
from rubricate.rubrics.filters import (
    Case,
    Correctness,
    Discrimination,
    Filter,
    Filtered,
    Form,
    FormRules,
    LabelConsistency,
    SelfContained,
    apply,
    apply_sync,
    without,
)
from rubricate.types import Judgement


class Counting(ScriptedJudge):
    """Counts what it is asked."""

    asked = 0

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        self.asked += len(criteria)
        return await super().judge_criteria(rollout, criteria)


def names_it(response: str, criterion: Criterion) -> bool:
    return criterion.id in response


async def test_filters_compose_and_say_where_they_dropped_what() -> None:
    cases = [
        Case(rubric("a", "b"), pool=(Rollout("p", "a b"), Rollout("p", "b")), id="first"),
        Case(rubric(criterion("x", "too short")), id="second"),
        Case(rubric(criterion("c"), criterion("d", "As criterion 3, but for the end.")), id="third"),
    ]
    filters: list[Filter] = [Form(), SelfContained(), Discrimination(ScriptedJudge(names_it))]
    found = await apply(filters, cases)
    assert [case.rubric.ids if case else None for case in found.cases] == [("a",), None, ("c",)]
    said = [(one.case, one.name, one.what, one.criterion_id, one.filter) for one in found.dropped]
    assert said == [
        (1, "second", "criterion", "x", "form"),
        (1, "second", "rubric", "", "form"),
        (2, "third", "criterion", "d", "self_contained"),
        (0, "first", "criterion", "b", "discrimination"),
    ]
    assert [(one.case, one.filter) for one in found.flagged] == [(2, "discrimination")]  # it has no pool
    assert found.counts["form.rubric"] == 1
    assert found.usage.calls == 4
    assert found.kept == [case for case in found.cases if case]
    assert "first, b: discrimination: every response has the same score (std=0" in str(found.dropped[3])


async def test_a_pool_is_judged_once_for_all_filters() -> None:
    judge = Counting(names_it)
    pool = tuple(Rollout("p", text) for text in ("a", "a b", "b", ""))
    case = Case(rubric("a", "b"), pool=pool, correct=(1, 1, 0, 0))
    found = await apply([Discrimination(judge), Correctness(judge)], [case])
    assert judge.asked == 8
    assert found.kept[0].rubric.ids == ("a",)  # b is met by one right and one wrong response


async def test_the_summary_says_what_was_dropped_and_the_figures() -> None:
    same = [criterion(id, "It cites its sources.") for id in "abc"]
    judge = RulePairJudge(lambda prompt, first, second, text: "first")
    pairs = (Preference("p", "chosen", "rejected"),)
    found = await apply([Form(), LabelConsistency(judge)], [Case(rubric(*same), pairs=pairs, prompt="p")])
    lines = found.summary().splitlines()
    assert lines[0] == "1 of 1 rubrics left, with 1 criteria"
    assert "form: dropped 2 x criterion: it has the text of ..." in lines
    assert "label_consistency.keep_rate: 1" in lines
    assert "label_consistency.permuted_keep_rate: not known" in lines


def test_sync_callers_get_the_same_and_no_cases_are_no_error() -> None:
    assert apply_sync([Form(), SelfContained()], []) == Filtered(())
    assert apply_sync([Form()], [Case(rubric("a"))]).cases == (Case(rubric("a")),)


async def test_two_filters_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two filters are named 'form'"):
        await apply([Form(), Form()], [])
    await apply([Form(), Form(FormRules(min_words=1), name="again")], [])


def test_empty_groups_go_with_their_criteria() -> None:
    nested = Rubric(
        criteria=(criterion("a", path=["g", "h"]), criterion("b", path=["k"]), criterion("c")),
        groups=(Group(id="g"), Group(id="h", path=("g",)), Group(id="k")),
    )
    left = without(nested, ["a"])
    assert left is not None
    assert left.ids == ("b", "c")
    assert [group.id for group in left.groups] == ["k"]
    assert without(nested, nested.ids) is None
    with pytest.raises(ConfigError, match="no criterion 'z'"):
        without(nested, ["z"])


async def test_fingerprints_change_with_what_can_change_a_decision() -> None:
    judge = ScriptedJudge(names_it)
    made = [
        Discrimination(judge),
        Discrimination(judge, top_k=3),
        Discrimination(ScriptedJudge(names_it, seed=1)),
        Discrimination(None),
        Correctness(judge),
        Correctness(judge, threshold=0.3),
    ]
    assert len({one.fingerprint for one in made}) == len(made)
    assert Discrimination(judge, concurrency=2).fingerprint == made[0].fingerprint
