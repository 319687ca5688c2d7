"""Label consistency: both orders, tau, permuted rubrics, quotations, traces, pairs held out."""

from __future__ import annotations

import pytest
from filter_cases import RulePairJudge, criterion, rubric

from rubricate.chat import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.comparisons import Preferred
from rubricate.data import Preference
from rubricate.errors import ConfigError
from rubricate.judges import PairwiseJudge
from rubricate.rubrics.filters import Case, LabelConsistency, apply, hold_out


def by_rubric(prompt: str, first: str, second: str, text: str) -> Preferred:
    """Prefers the response that has the rubric's last word; the first where both or none do."""
    word = text.split()[-1]
    return "second" if word in second and word not in first else "first"


def always_first(prompt: str, first: str, second: str, text: str) -> Preferred:
    return "first"


def case(n: int, *, right: bool = True) -> Case:
    """A case whose rubric leads to its label, or to the contrary."""
    word = f"good{n}" if right else f"bad{n}"
    pair = Preference(f"prompt {n}", f"an answer good{n}", f"an answer bad{n}")
    return Case(rubric(criterion("c", f"has {word}"), id=f"r{n}"), pairs=(pair,), prompt=f"prompt {n}")


async def test_rubrics_that_lead_to_the_label_stay_and_permuted_ones_tell_the_rest() -> None:
    judge = RulePairJudge(by_rubric)
    cases = [case(n, right=n % 4 != 0) for n in range(8)]
    found = await apply([LabelConsistency(judge)], cases)
    assert [place for place, one in enumerate(found.cases) if one is None] == [0, 4]
    assert found.dropped[0].figures["accuracy"] == 0.0
    assert found.figures["label_consistency.keep_rate"] == 0.75
    # Another prompt's rubric says nothing here: the judge names the first, right in one order of two.
    assert found.figures["label_consistency.permuted_keep_rate"] == 1.0
    assert found.figures["label_consistency.permuted_accuracy"] == 0.5
    assert found.figures["label_consistency.permuted_split_rate"] == 1.0
    assert found.figures["label_consistency.permuted_rubrics"] == 8.0
    assert found.usage.calls == 32  # own and permuted, two orders each


async def test_each_permuted_rubric_is_judged_on_another_prompts_pair() -> None:
    judge = RulePairJudge(by_rubric)
    await apply([LabelConsistency(judge)], [case(n) for n in range(5)])
    own = {(f"prompt {n}", f"has good{n}") for n in range(5)}
    asked = [(prompt, text) for prompt, _, _, text in judge.calls]
    others = [entry for entry in asked if entry not in own]
    assert len(others) == 10
    assert len({text for _, text in others}) == 5  # each rubric once, in both orders
    again = RulePairJudge(by_rubric)
    await apply([LabelConsistency(again)], [case(n) for n in range(5)])
    assert sorted(again.calls) == sorted(judge.calls)


async def test_a_judge_that_likes_a_position_is_found_out() -> None:
    judge = RulePairJudge(always_first)
    found = await apply([LabelConsistency(judge)], [case(n) for n in range(4)])
    assert found.figures["label_consistency.keep_rate"] == 1.0  # accuracy .5 >= tau
    assert found.figures["label_consistency.permuted_keep_rate"] == 1.0
    assert all("order of the responses" in one.reason for one in found.flagged)
    assert len(found.flagged) == 4
    strict = await apply([LabelConsistency(judge, counting="pairs")], [case(n) for n in range(4)])
    assert strict.kept == []


async def test_tau_is_reached_at_equality_over_several_pairs() -> None:
    pairs = (
        Preference("p", "has it", "lacks"),
        Preference("p", "lacks", "has it"),
    )
    made = Case(rubric(criterion("c", "has it")), pairs=pairs, prompt="p")
    assert (await apply([LabelConsistency(RulePairJudge(by_rubric))], [made])).kept == [made]
    assert (await apply([LabelConsistency(RulePairJudge(by_rubric), tau=0.51)], [made])).kept == []


async def test_a_judge_of_one_order_is_asked_twice_and_one_without_votes_once() -> None:
    single = RulePairJudge(by_rubric, both_orders=False)
    found = await apply([LabelConsistency(single, control=0)], [case(1), case(2, right=False)])
    assert [one is not None for one in found.cases] == [True, False]
    assert [call[1:3] for call in single.calls[:2]] == [
        ("an answer good1", "an answer bad1"),
        ("an answer bad1", "an answer good1"),
    ]
    scoring = RulePairJudge(by_rubric, votes=False)
    found = await apply([LabelConsistency(scoring, control=0)], [case(1), case(2, right=False)])
    assert [one is not None for one in found.cases] == [True, False]


async def test_our_pairwise_judge_is_read_order_by_order() -> None:
    seen = list[str]()

    def answer(request: ChatRequest) -> str:
        seen.append(request.messages[-1].content)
        return "[[A>>B]]"

    judge = PairwiseJudge(MockModel(answer), style="arena", max_attempts=1)
    found = await apply([LabelConsistency(judge, control=0)], [case(1)])
    assert len(seen) == 2
    assert all("has good1" in text for text in seen)
    (flag,) = found.flagged
    assert flag.figures["accuracy"] == 0.5
    (trace,) = found.traces
    assert (trace.order, trace.reply) == ("given", "[[A>>B]]")


async def test_failed_judgements_are_left_out_and_too_few_make_it_unknown() -> None:
    def one_order(prompt: str, first: str, second: str, text: str) -> Preferred | None:
        return None if "bad" in first else "first"

    judge = RulePairJudge(one_order)
    gone = await apply([LabelConsistency(judge, control=0)], [case(1)])
    assert gone.cases == (None,)
    assert gone.dropped[0].reason.startswith("unknown")
    assert gone.dropped[0].figures == {"known": 1, "failed": 1, "pairs": 1}
    assert gone.figures["label_consistency.keep_rate"] is None
    kept = await apply([LabelConsistency(judge, control=0, unknown="keep")], [case(1)])
    assert kept.kept == [case(1)]
    enough = await apply([LabelConsistency(judge, control=0, min_known=1)], [case(1)])
    assert enough.figures["label_consistency.accuracy"] == 1.0


async def test_a_tie_is_not_right() -> None:
    def tie(prompt: str, first: str, second: str, text: str) -> Preferred:
        return "tie"

    assert (await apply([LabelConsistency(RulePairJudge(tie))], [case(1)])).kept == []


async def test_traces_are_the_replies_that_were_right_by_rubrics_that_stay() -> None:
    judge = RulePairJudge(always_first)
    found = await apply([LabelConsistency(judge, control=0)], [Case(rubric("x")), case(3)])
    (trace,) = found.traces
    assert trace.case == 1
    assert trace.order == "given"
    assert trace.reply == "given: an answer good3 against an answer bad3"
    assert trace.pair == case(3).pairs[0]
    none = await apply([LabelConsistency(judge, counting="pairs", control=0)], [case(3)])
    assert none.traces == ()


async def test_criteria_that_quote_the_chosen_response_are_flagged_or_dropped() -> None:
    chosen = "The treaty of Westphalia ended the war in the year of our Lord 1648."
    pair = Preference("When did the war end in the year", chosen, "I do not know when it ended, good.")
    criteria = [
        criterion("q", 'Says that "the treaty of Westphalia ended the war".'),
        criterion("p", "Says when did the war end in the year that is asked for."),  # the prompt's words
        criterion("s", "Says the treaty of the war."),
    ]
    made = Case(rubric(*criteria), pairs=(pair,), prompt=pair.prompt)
    found = await apply([LabelConsistency(RulePairJudge(by_rubric), control=0, tau=0.0)], [made])
    assert [one.criterion_id for one in found.flagged if one.criterion_id] == ["q"]
    assert "the treaty of westphalia ended the war" in found.flagged[-1].reason
    judge = RulePairJudge(by_rubric)
    gone = await apply([LabelConsistency(judge, control=0, tau=0.0, quoting="drop")], [made])
    assert gone.kept[0].rubric.ids == ("p", "s")


async def test_pairs_held_out_are_what_the_check_uses_when_asked_to() -> None:
    made = case(1)
    other = Case(made.rubric, pairs=made.pairs, held_out=(Preference("prompt 1", "bad1", "good1"),))
    assert (await apply([LabelConsistency(RulePairJudge(by_rubric), control=0)], [other])).kept == [other]
    judge = RulePairJudge(by_rubric)
    held = await apply([LabelConsistency(judge, use="held_out", control=0)], [other, made])
    assert held.cases == (None, None)
    assert "names the preferred response less often" in held.dropped[0].reason
    assert "no pair" in held.dropped[1].reason


def test_holding_out_splits_by_content_and_keeps_equal_pairs_together() -> None:
    pairs = [Preference("p", f"c{n}", f"r{n}") for n in range(6)]
    written, checked = hold_out(pairs + pairs[:1], share=0.34)
    assert len(checked) + len(written) == 7
    assert {id(p) for p in written} & {id(p) for p in checked} == set()
    assert not set(map(repr, written)) & set(map(repr, checked))
    back, _ = hold_out(list(reversed(pairs)), share=0.34)
    assert set(map(repr, back)) == set(map(repr, written))
    assert hold_out(pairs[:1]) == ((pairs[0],), ())
    assert [len(part) for part in hold_out(pairs[:2], share=0.01)] == [1, 1]
    with pytest.raises(ConfigError):
        hold_out(pairs, share=1.0)


async def test_one_prompt_alone_has_no_permuted_rubrics() -> None:
    found = await apply([LabelConsistency(RulePairJudge(by_rubric))], [case(1), case(1)])
    assert found.figures["label_consistency.permuted_keep_rate"] is None
    assert found.figures["label_consistency.permuted_rubrics"] == 0.0


def test_options_outside_their_ranges_are_refused() -> None:
    judge = RulePairJudge(by_rubric)
    for options in ({"tau": 1.5}, {"counting": "votes"}, {"use": "all"}, {"control": -1}, {"quote_words": 0}):
        with pytest.raises(ConfigError):
            LabelConsistency(judge, **options)  # type: ignore[arg-type]  # wrong on purpose
