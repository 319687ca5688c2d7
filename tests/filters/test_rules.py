"""Filters by text alone: form, self-containedness, leakage of the reference answer."""

from __future__ import annotations

import pytest
from filter_cases import criterion, rubric

from rubricate.data import Turn
from rubricate.errors import ConfigError
from rubricate.rubrics.filters import Case, Filtered, Form, FormRules, Leakage, SelfContained, apply


def reasons(found: Filtered) -> dict[str, str]:
    return {one.criterion_id: one.reason for one in found.dropped}


@pytest.mark.parametrize(
    ("given", "rules", "reason"),
    [
        ({"text": "Be good"}, FormRules(), "fewer than 3 words"),
        ({"text": "内容准确。"}, FormRules(), ""),  # four characters are four words
        ({"text": "word " * 121}, FormRules(), "more than 120 words"),
        ({"weight": 0.5}, FormRules(min_weight=1), "a weight below 1"),
        ({"weight": 11}, FormRules(max_weight=10), "a weight above 10"),
        ({"weight": 1.5}, FormRules(whole_weights=True), "no whole number"),
        ({"weight": 2.0}, FormRules(whole_weights=True), ""),
        ({}, FormRules(needs_kind=True), "neither hard rule nor principle"),
        ({"kind": "principle"}, FormRules(needs_kind=True), ""),
        ({}, FormRules(needs_importance=True), "no importance"),
    ],
)
async def test_criteria_that_break_a_rule_of_form(given: dict[str, object], rules: FormRules, reason: str) -> None:
    fields = dict(given)
    made = rubric(
        criterion("a", str(fields.pop("text", "The response is fine.")), **fields), criterion("z", kind="principle")
    )
    found = await apply([Form(rules)], [Case(made)])
    assert reason in reasons(found).get("a", "")
    assert ("a" in reasons(found)) == bool(reason)


async def test_rubrics_are_counted_after_their_criteria_have_been_checked() -> None:
    rules = FormRules(min_criteria=2, max_criteria=3)
    cases = [
        Case(rubric("a", criterion("b", "short"))),
        Case(rubric("a", "b", "c", criterion("d", "short"))),
        Case(rubric("a", "b", "c", "d")),
    ]
    found = await apply([Form(rules)], cases)
    assert [one is not None for one in found.cases] == [False, True, False]
    said = {one.case: one.reason for one in found.dropped if one.what == "rubric"}
    assert said == {0: "fewer than 2 criteria", 2: "more than 3 criteria"}


async def test_a_rubric_needs_something_good_to_do() -> None:
    only_penalties = rubric(criterion("a", polarity="penalty"), criterion("b", weight=0))
    assert (await apply([Form()], [Case(only_penalties)])).cases == (None,)
    lax = FormRules(needs_reward=False)
    assert (await apply([Form(lax)], [Case(only_penalties)])).kept == [Case(only_penalties)]


async def test_the_same_text_twice_goes_once() -> None:
    made = rubric(
        criterion("a", "It cites its  sources."),
        criterion("b", "it cites its sources."),
        criterion("c", "It cites its sources.", polarity="penalty"),
    )
    found = await apply([Form()], [Case(made)])
    assert reasons(found) == {"b": "it has the text of 'a'"}


async def test_criteria_that_cannot_be_judged_alone_go() -> None:
    made = rubric(
        criterion("a", "The response names the capital of France."),
        criterion("b", "The response does the same as criterion 1, in French."),
        criterion("c", "The response agrees with the reference answer."),
    )
    found = await apply([SelfContained()], [Case(made)])
    assert found.kept[0].rubric.ids == ("a",)
    assert {one.criterion_id: one.figures["rule"] for one in found.dropped} == {"b": "R401", "c": "R403"}
    # With a reference, a judge can be shown it.
    with_reference = await apply([SelfContained()], [Case(made, reference="Paris")])
    assert with_reference.kept[0].rubric.ids == ("a", "c")
    assert with_reference.kept[0].rubric.metadata == made.metadata
    flagged = await apply([SelfContained(action="flag")], [Case(made)])
    assert flagged.kept == [Case(made)]
    assert len(flagged.flagged) == 2


async def test_the_linters_own_switch_is_honoured() -> None:
    made = rubric(criterion("b", "It does the same as criterion 1.", metadata={"lint": {"ignore": ["R401"]}}))
    assert (await apply([SelfContained()], [Case(made)])).kept == [Case(made)]


@pytest.mark.parametrize(
    ("text", "reference", "prompt", "found"),
    [
        ("States that the enzyme is inhibited by high salt concentrations in the buffer.",
         "We see that the enzyme is inhibited by high salt concentrations in the blood.", "", True),
        # The same run stands in the prompt: no secret.
        ("States that the enzyme is inhibited by high salt concentrations in the buffer.",
         "We see that the enzyme is inhibited by high salt concentrations in the blood.",
         "Why do they say that the enzyme is inhibited by high salt concentrations in the cell?", False),
        ("Gives the year as 1648.", "It ended in 1648.", "", True),
        ("Gives the year as 1648.", "It ended in 1648.", "What happened in 1648?", False),
        ("Says that 1,000 were there.", "There were 1000 of them, in all, by the last count.", "", True),
        ("Lists 3 examples.", "1. one thing 2. another 3. a third thing of the kind", "", False),
        ("The answer is 3.", "3", "", True),
        ("The answer is right.", "3", "", False),
        ("Speaks of model X1648.", "1648 it was", "", False),
    ],
)  # fmt: skip
async def test_leaks_of_the_reference(text: str, reference: str, prompt: str, found: bool) -> None:
    case = Case(rubric(criterion("a", text)), prompt=prompt, reference=reference)
    flagged = await apply([Leakage()], [case])
    assert bool(flagged.flagged) == found
    assert flagged.kept == [case]
    dropped = await apply([Leakage(action="drop")], [case])
    assert (dropped.cases == (None,)) == found


async def test_nothing_leaks_without_a_reference_and_prompts_may_be_turns() -> None:
    made = rubric(criterion("a", "Gives the year as 1648."))
    assert (await apply([Leakage()], [Case(made)])).flagged == ()
    turns = (Turn("user", "What of 1648?"),)
    assert (await apply([Leakage()], [Case(made, prompt=turns, reference="1648")])).flagged == ()
    assert (await apply([Leakage(numbers=False)], [Case(made, reference="1648")])).flagged == ()


def test_options_outside_their_ranges_are_refused() -> None:
    for make in (lambda: Leakage(words=0), lambda: Leakage(action="hide")):  # type: ignore[arg-type]  # wrong
        with pytest.raises(ConfigError):
            make()
