"""Contrastive rubrics (OpenRubrics): what the model sees, what its items may not be, pairs and rankings."""

from __future__ import annotations

import json
import pickle
import re

import pytest
from filter_cases import OUTAGE, RulePairJudge

from rubricate.chat.mock import MockModel
from rubricate.comparisons import Comparison, Preferred, Vote
from rubricate.data.records import Preference, Rollout, Turn
from rubricate.errors import ConfigError
from rubricate.rubrics import Criterion, CriterionKind, Polarity, Rubric
from rubricate.rubrics.formats import dump_rubrics
from rubricate.rubrics.generators.base import NoteKind
from rubricate.rubrics.generators.contrastive import ContrastiveGenerator
from rubricate.rubrics.generators.contrastive_pairs import (
    compare_both,
    contrast_case,
    hold_out_pairs,
    induced_pairs,
    ranking_of,
)
from rubricate.rubrics.generators.source import Source
from rubricate.types import FailureKind

TASK = "Describe Lisbon in at most three sentences."
CHOSEN = "Lisbon lies on the Tagus. Its hills carry trams. Fado is sung at night in narrow lanes."
REJECTED = "Lisbon is a nice city with many things to see and do for everybody who likes to travel."
SOURCE = Source(TASK, pairs=(Preference(TASK, CHOSEN, REJECTED, id="p"),), id="lisbon")

HARD = {"text": "The response has at most three sentences.", "kind": "hard_rule"}
VIVID = {"text": "The response gives concrete detail in place of general praise.", "kind": "principle"}
PLAIN = {"text": "The response uses plain words.", "kind": "principle"}


def answer(*items: object) -> str:
    return json.dumps({"criteria": items})


async def test_a_pair_becomes_hard_rules_and_principles_with_evidence() -> None:
    model = MockModel(answer(HARD, VIVID))
    made = await ContrastiveGenerator(model).generate(SOURCE)
    request = model.requests[0]
    text = request.messages[-1].content
    for label, shown in (("task", TASK), ("preferred_1", CHOSEN), ("other_1", REJECTED)):
        assert re.search(rf"<{label}-(\w+)>\n{re.escape(shown)}\n</{label}-\1>", text)
    assert text.index("Preferred response:") < text.index(CHOSEN) < text.index("The other response:")
    assert (request.temperature, request.max_tokens) == (0.0, 768)
    assert made.rubric is not None and made.failure is None and made.usage.calls == 1
    assert [(one.kind, one.weight, one.polarity) for one in made.rubric.criteria] == [
        (CriterionKind.HARD_RULE, 1.0, Polarity.REWARD),
        (CriterionKind.PRINCIPLE, 1.0, Polarity.REWARD),
    ]
    provenance = made.rubric.criteria[0].provenance
    assert provenance is not None
    assert (provenance.generator, provenance.model) == ("contrastive", "mock") and provenance.prompt_fingerprint
    assert [piece.partition(":")[0] for piece in provenance.evidence] == ["chosen", "rejected"]
    assert made.rubric.id == "lisbon"


async def test_a_schema_is_asked_for_where_the_model_has_it_and_the_list_never_by_schema() -> None:
    model = MockModel(answer(HARD, VIVID))
    await ContrastiveGenerator(model).generate(SOURCE)
    schema = model.requests[0].json_schema
    assert (schema is not None) == model.capabilities.json_schema
    listed = MockModel("1. The response is vivid. [Principle]")
    await ContrastiveGenerator(listed, form="list").generate(SOURCE)
    assert listed.requests[0].json_schema is None
    assert "[Hard Rule]" in listed.requests[0].messages[0].content
    assert '"kind"' not in listed.requests[0].messages[0].content


@pytest.mark.parametrize("form", ["json", "list"])
async def test_both_forms_of_answers_are_read_whatever_was_asked_for(form: str) -> None:
    texts = [
        "Rubric:\n1. The response has at most three sentences. [Hard Rule]\n"
        "2. The response is vivid. **[Principle]**",
        answer(HARD, {"criterion": "The response is vivid. [Principle]"}),
        json.dumps([HARD, {"text": "The response is vivid.", "tag": "[Principle]"}]),
    ]
    for text in texts:
        generator = ContrastiveGenerator(
            MockModel(text), form="list" if form == "list" else "json", weights="arrow"
        )
        made = await generator.generate(SOURCE)
        assert made.rubric is not None, made.failure
        assert [(one.text, one.weight) for one in made.rubric.criteria] == [
            ("The response has at most three sentences.", 3.0),
            ("The response is vivid.", 1.0),
        ]
        (row,) = dump_rubrics([made.rubric], "openrubrics", lossy=True)
        assert row["rubric"] == (
            "1. The response has at most three sentences. [Hard Rule]\n2. The response is vivid. [Principle]"
        )


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"text": "It is short.", "kind": "principle"}, 'does not open with "The response"'),
        ({"text": "The response is kind."}, "hard rule or a principle"),
        ({"text": "The response is kind.", "kind": "wish"}, "hard rule or a principle"),
        ({"kind": "principle"}, "no object with text and kind"),
        ({"text": "The response is kind. [Hard Rule]", "kind": "principle"}, "its tag [Hard Rule]"),
        ({"text": "The response names 7 sights.", "kind": "principle"}, "names a number (7)"),
        ({"text": "The response tells what sets Lisbon apart.", "kind": "principle"}, "(Lisbon)"),
        ({"text": "The response is better than Response A.", "kind": "principle"}, "points at a response"),
        ({"text": "The response is richer than the other response.", "kind": "principle"}, "points at a response"),
        ({"text": "The response says fado is sung at night in narrow lanes.", "kind": "principle"}, "copies"),
        ({"text": "The response has at most 40 words.", "kind": "hard_rule"}, "that the prompt does not ask for"),
        ({"text": "The response meets the criterion above.", "kind": "principle"}, "other criteria"),
        (VIVID, "says the same as another criterion"),
    ],
)
async def test_a_bad_item_is_asked_for_again_with_the_reason_and_then_dropped(bad: object, reason: str) -> None:
    model = MockModel([answer(HARD, VIVID, bad), answer(PLAIN)])
    made = await ContrastiveGenerator(model).generate(SOURCE)
    assert made.rubric is not None and [one.text for one in made.rubric.criteria][-1] == PLAIN["text"]
    assert reason in model.requests[1].messages[-1].content
    assert [note.kind for note in made.notes] == [NoteKind.REASKED]
    stubborn = MockModel([answer(HARD, VIVID, bad), answer(bad), answer(bad)])
    made = await ContrastiveGenerator(stubborn).generate(SOURCE)
    assert made.rubric is not None and len(made.rubric) == 2 and made.usage.calls == 3
    assert made.notes[-1].kind is NoteKind.DROPPED and reason in made.notes[-1].reason
    assert [request.sample for request in stubborn.requests] == [0, 1, 2]


async def test_numbers_are_for_hard_rules_and_what_both_responses_say_is_no_copy() -> None:
    rule = {"text": "The response has at most 3 sentences.", "kind": "hard_rule"}
    made = await ContrastiveGenerator(MockModel(answer(rule, VIVID))).generate(SOURCE)
    assert made.rubric is not None and made.notes == ()
    loose = {"text": "The response tells what sets Lisbon apart in 2 ways.", "kind": "principle"}
    made = await ContrastiveGenerator(MockModel(answer(loose)), abstract=False).generate(SOURCE)
    assert made.rubric is not None and made.notes == ()
    shared = "the old town lies on the hill by the river"
    pair = Preference(TASK, f"Yes, {shared}, and more.", f"So {shared}.")
    item = {"text": f"The response says {shared}.", "kind": "principle"}
    made = await ContrastiveGenerator(MockModel(answer(item))).generate(Source(TASK, pairs=(pair,)))
    assert made.rubric is not None and made.notes == ()


async def test_an_answer_without_items_is_a_failure_and_no_rubric() -> None:
    made = await ContrastiveGenerator(MockModel("I cannot say.")).generate(SOURCE)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.UNPARSABLE
    assert made.usage.calls == 3


async def test_listwise_shows_the_ranking_best_first_and_ties_share_a_rank() -> None:
    ranked = Source(TASK, ranked=("best text", "middle text", "worst text"), id="r")
    model = MockModel(answer(HARD, VIVID))
    made = await ContrastiveGenerator(model, mode="listwise").generate(ranked)
    text = model.requests[0].messages[-1].content
    places = [text.index(f"{one} text") for one in ("best", "middle", "worst")]
    assert places == sorted(places) and "rank 3:" in text
    assert made.rubric is not None and made.rubric.criteria[0].provenance is not None
    assert len(made.rubric.criteria[0].provenance.evidence) == 3
    labelled = Source(TASK, candidates=("c low", "c high", "c also high"), labels=(1.0, 3.0, 3.0))
    assert [(one.rank, one.text) for one in ranking_of(labelled)] == [
        (1, "c high"),
        (1, "c also high"),
        (2, "c low"),
    ]
    few = MockModel(answer(HARD, VIVID))
    await ContrastiveGenerator(few, mode="listwise", most_ranked=2).generate(ranked)
    assert "worst text" not in few.requests[0].text()


async def test_sources_without_a_contrast_are_refused_before_anything_is_asked() -> None:
    model = MockModel(answer(HARD))
    with pytest.raises(ConfigError, match="needs a preference pair"):
        await ContrastiveGenerator(model).generate(Source(TASK))
    with pytest.raises(ConfigError, match="needs responses ranked"):
        flat = Source(TASK, candidates=("a", "b"), labels=(1.0, 1.0), id="flat")
        await ContrastiveGenerator(model, mode="listwise").generate(flat)
    assert model.requests == []
    for options in ({"mode": "best"}, {"form": "xml"}, {"weights": "own"}):
        with pytest.raises(ConfigError, match=next(iter(options.values()))):
            ContrastiveGenerator(model, **options)  # pyright: ignore[reportArgumentType] - the wrong value is the test


def test_a_generator_pickles_and_its_fingerprint_has_its_options() -> None:
    generator = ContrastiveGenerator(MockModel("x"))
    assert pickle.loads(pickle.dumps(generator)).fingerprint == generator.fingerprint
    prints = {
        ContrastiveGenerator(MockModel("x"), form="list").fingerprint,
        ContrastiveGenerator(MockModel("x"), quote_words=None).fingerprint,
        ContrastiveGenerator(MockModel("x"), most_pairs=2).fingerprint,
        generator.fingerprint,
    }
    assert len(prints) == 4


# Pairs


def test_a_ranking_induces_its_pairs_and_ties_none() -> None:
    source = Source("q", ranked=("a", "b", "c"), pairs=(Preference("q", "a", "c"), Preference("q", "d", "a")))
    found = {(pair.chosen, pair.rejected) for pair in induced_pairs(source)}
    assert found == {("a", "b"), ("a", "c"), ("b", "c"), ("d", "a")}
    tied = Source("q", candidates=("x", "y", "z"), labels=(2.0, 2.0, 1.0))
    assert [(pair.chosen, pair.rejected) for pair in induced_pairs(tied)] == [("x", "z"), ("y", "z")]
    turns = (Turn("assistant", "from turns"),)
    assert induced_pairs(Source("q", ranked=(turns, "b")))[0].chosen == "from turns"


def test_pairs_are_held_out_of_the_source_and_checked_on() -> None:
    pairs = tuple(Preference("q", f"good {n}", f"bad {n}") for n in range(6))
    written, checked = hold_out_pairs(Source("q", pairs=pairs, id="s"), share=0.5, seed=1)
    assert len(written.pairs) == 3 and len(checked) == 3
    assert sorted(pair.chosen for pair in (*written.pairs, *checked)) == [pair.chosen for pair in pairs]
    case = contrast_case(
        written, Rubric(criteria=(Criterion(id="c", text="The response is good."),)), held_out=checked
    )
    assert (case.pairs, case.held_out, case.id) == (written.pairs, checked, "s")
    assert len(case.pool) == 6


def prefers_good(prompt: str, first: str, second: str, text: str) -> Preferred | None:
    return None if "broken" in first else "first" if "good" in first else "second" if "good" in second else "first"


@pytest.mark.parametrize("both", [True, False])
async def test_a_winner_needs_both_orders(both: bool) -> None:
    judge = RulePairJudge(prefers_good, both_orders=both)
    rubric = Rubric(criteria=(Criterion(id="c", text="The response is good."),))
    good, bad, other, broken = (Rollout("q", text) for text in ("good", "bad", "other", "broken"))
    assert (await compare_both(judge, good, bad, rubric)).winner == "first"
    assert (await compare_both(judge, bad, good, rubric)).winner == "second"
    assert (await compare_both(judge, bad, other, rubric)).winner == "tie"  # the order decides
    failed = await compare_both(judge, other, broken, rubric)
    assert failed.winner is None and failed.failure is not None and failed.failure.kind is FailureKind.SERVER
    assert failed.usage.calls == 2


class Majority:
    """A judge of both orders that names the first by its votes, whatever the orders say."""

    name = fingerprint = "majority"
    both_orders = True

    def __init__(self, *winners: Preferred | None) -> None:
        self.winners = winners

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        given, swapped = self.winners
        votes = (
            Vote("given", 0, given, None if given else OUTAGE),
            Vote("swapped", 0, swapped, None if swapped else OUTAGE),
        )
        consistent = given == swapped if given and swapped else None
        return Comparison("first", votes=votes, consistent=consistent)


async def test_a_majority_of_votes_in_one_order_is_no_winner() -> None:
    rubric = Rubric(criteria=(Criterion(id="c", text="The response is good."),))
    pair = Rollout("q", "a"), Rollout("q", "b")
    assert (await compare_both(Majority("first", "first"), *pair, rubric)).winner == "first"
    split = await compare_both(Majority("first", "second"), *pair, rubric)
    assert (split.winner, split.consistent) == ("tie", False)
    half = await compare_both(Majority("first", None), *pair, rubric)
    assert half.winner is None and half.failure is not None and half.failure.kind is FailureKind.INCOMPLETE
