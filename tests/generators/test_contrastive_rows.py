"""From label consistency to rows: for the rubric generator, for the judge, and preference pairs."""

from __future__ import annotations

import json

import pytest
from filter_cases import RulePairJudge, criterion, rubric

from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.comparisons import Preferred
from rubricate.data.records import Preference, Rollout, Turn
from rubricate.errors import ConfigError
from rubricate.judges import PairwiseJudge
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import CriterionKind, Polarity, Rubric
from rubricate.rubrics.filters import Case, LabelConsistency, Trace, apply
from rubricate.rubrics.generators.contrastive import ContrastiveGenerator
from rubricate.rubrics.generators.contrastive_pairs import contrast_case
from rubricate.rubrics.generators.sft_rows import RowLayout, generator_rows, judge_rows, tagged_rubric_text
from rubricate.rubrics.generators.sft_rows_preference import preference_rows
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.trained import TrainedGenerator, read_rubric_text

CONCRETE = {"text": "The response is concrete.", "kind": "principle"}
SHORT = {"text": "The response is short.", "kind": "hard_rule"}


def reply(winner: str) -> str:
    """A Rubric-RM judge's reply."""
    sides = "\n\n".join(
        f"**Response {side}:**\n- Criterion 1 [Hard Rule]: Justification: so.\n"
        "- Criterion 2 [Principle]: Justification: so."
        for side in "AB"
    )
    return (
        "--- Compliance Check ---\nIdentified Gatekeeper Criterion: Criterion 1\n\n"
        f"--- Analysis ---\n{sides}\n\n--- Final Judgment ---\nJustification: one is better.\n"
        f"Winner: Response {winner}"
    )


def rubric_rm(request: ChatRequest) -> str:
    """Names the response with "good" in it as the winner, A where neither or both have it."""
    text = request.messages[-1].content
    first, second = text[text.index("\nResponse A:") :].split("\nResponse B:")
    return reply("B" if "good" in second and "good" not in first else "A")


def source(n: int, *, right: bool = True) -> Source:
    good, bad = f"good answer {n}", f"bad answer {n}"
    pair = Preference(f"Question {n}?", good if right else bad, bad if right else good, f"ref {n}", id=f"s{n}")
    return Source(f"Question {n}?", f"ref {n}", pairs=(pair,), id=f"s{n}")


async def kept(judge: PairwiseJudge) -> tuple[list[Case], tuple[Trace, ...]]:
    """Rubrics of four sources, one of them with a label that the judge never names, after the filter."""
    generator = ContrastiveGenerator(MockModel(json.dumps({"criteria": [SHORT, CONCRETE]})))
    sources = [source(n, right=n != 2) for n in range(4)]
    made = await generator.generate_batch(sources)
    cases = [contrast_case(one, of.rubric) for one, of in zip(sources, made, strict=True) if of.rubric is not None]
    found = await apply([LabelConsistency(judge, quote_words=None)], cases)
    assert [place for place, one in enumerate(found.cases) if one is None] == [2]
    return found.kept, found.traces


async def test_kept_rubrics_become_rows_that_ask_as_the_trained_generator_does() -> None:
    cases, _ = await kept(PairwiseJudge(MockModel(rubric_rm), style="rubric-rm"))
    found = generator_rows(cases)
    assert found.dropped == {} and [row["id"] for row in found.rows] == ["s0", "s1", "s3"]
    text = "1. The response is short. [Hard Rule]\n2. The response is concrete. [Principle]"
    trained = MockModel(text)
    again = await TrainedGenerator(trained).generate(source(1))
    asked = [{"role": message.role, "content": message.content} for message in trained.requests[0].messages]
    assert found.rows[1]["prompt"] == asked
    assert found.rows[1]["completion"] == [{"role": "assistant", "content": text}]
    assert again.rubric is not None and again.rubric.fingerprint == found.rows[1]["rubric_fingerprint"]
    assert "good answer" not in json.dumps(found.rows)
    assert read_rubric_text(text).fingerprint == cases[1].rubric.fingerprint


@pytest.mark.parametrize("fenced", [False, True])
async def test_right_replies_become_rows_that_ask_as_the_judge_does(fenced: bool) -> None:
    model = MockModel(rubric_rm)
    judge = PairwiseJudge(model, style="rubric-rm", fenced=fenced)
    _, traces = await kept(judge)
    found = judge_rows(traces, fenced=fenced)
    assert len(found.rows) == 6 and found.dropped == {}  # three pairs in two orders
    assert [row["order"] for row in found.rows] == ["given", "swapped"] * 3
    asked = [request.messages[-1].content for request in model.requests]
    for row, winner in zip(found.rows, "ABABAB", strict=True):
        prompt = as_array(row["prompt"])
        assert prompt is not None and len(prompt) == 1
        told = str((as_object(prompt[0]) or {})["content"])
        assert told in asked and "Task to Evaluate:" in told
        shown_first = told.split("\nResponse A:")[1].split("\nResponse B:")[0]
        assert ("good" in shown_first) == (winner == "A")
        assert row["completion"] == [{"role": "assistant", "content": reply(winner)}]


def trace(text: str, order: str = "given") -> Trace:
    pair = Preference("q", "the good one", "the bad one", id="t")
    one = rubric(criterion("c1", kind="principle"))
    return Trace(0, pair, one, "given" if order == "given" else "swapped", text)


@pytest.mark.parametrize(
    ("text", "order", "why"),
    [
        (reply("A"), "given", ""),
        (f"<think>Winner: Response B?</think>{reply('A')}", "given", ""),
        ("Justification: so.\n**Winner:** Response B", "swapped", ""),
        (reply("B"), "given", "its winner is not the preferred response"),
        (reply("A"), "swapped", "its winner is not the preferred response"),
        (reply("A") + "\nWinner: Response A", "given", 'not exactly one line "Winner:"'),
        ("Response A is better.", "given", 'not exactly one line "Winner:"'),
        ("Winner: neither", "given", "its winner is not the preferred response"),
        ("", "given", "the judge kept no reply"),
    ],
)
def test_a_judge_row_has_exactly_one_winner_line_which_is_right(text: str, order: str, why: str) -> None:
    found = judge_rows([trace(text, order)])
    assert found.dropped == ({why: 1} if why else {}) and len(found.rows) == (0 if why else 1)
    if not why:
        assert "think" not in json.dumps(found.rows[0]["completion"])


def test_the_layouts_hold_the_same_texts() -> None:
    case = Case(rubric(criterion("c", "The response is kind.", kind="principle")), "Say hello.", id="x")
    rows: dict[RowLayout, dict[str, object]] = {
        "messages": generator_rows([case]).rows[0],
        "text": generator_rows([case], layout="text").rows[0],
        "instruction": generator_rows([case], layout="instruction").rows[0],
    }
    asked, said = rows["messages"]["prompt"], rows["messages"]["completion"]
    assert isinstance(asked, list) and isinstance(said, list)
    assert rows["text"]["prompt"] == asked[0]["content"] + "\n"
    assert rows["instruction"]["instruction"] == asked[0]["content"]
    assert rows["text"]["completion"] == rows["instruction"]["output"] == said[0]["content"]
    with pytest.raises(ConfigError, match="layout is 'chat'"):
        generator_rows([], layout="chat")  # pyright: ignore[reportArgumentType] - the wrong value is the test


def test_what_the_tagged_form_cannot_hold_is_left_out_and_counted() -> None:
    untagged = rubric(criterion("c", "The response is kind."))
    penalty = rubric(criterion("p", "The response is rude.", kind="principle", polarity="penalty"))
    found = generator_rows([Case(untagged, "q"), Case(penalty, "q"), Case(untagged, "q"), Case(penalty, " ")])
    assert found.rows == ()
    assert found.dropped == {
        "a criterion is neither a hard rule nor a principle": 2,
        "a criterion is a penalty, and the form knows none": 1,
        "the case has no prompt": 1,
    }
    kind, polarity = CriterionKind.PRINCIPLE, Polarity.REWARD
    spaced = Rubric(criteria=(criterion("c", "The response\n is  kind.", kind=kind, polarity=polarity),))
    assert tagged_rubric_text(spaced) == "1. The response is kind. [Principle]"


# Preferences


def prefers_good(prompt: str, first: str, second: str, text: str) -> Preferred | None:
    if "down" in first + second:
        return None
    return "tie" if first == "even" else "first" if "good" in first else "second" if "good" in second else "first"


async def test_only_winners_of_both_orders_become_preference_pairs() -> None:
    one = rubric(criterion("c", kind="principle"))

    def case(name: str, *texts: str) -> Case:
        return Case(one, "q", id=name, pool=tuple(Rollout("q", text) for text in texts))

    judge = RulePairJudge(prefers_good, both_orders=False)
    cases = [
        case("plain", "bad", "good"),
        case("order", "x", "y"),
        case("down", "down", "good"),
        case("lone", "good"),
    ]
    found = await preference_rows(judge, [*cases, case("same", "good", "good")])
    assert [(row["id"], row["chosen"], row["rejected"]) for row in found.rows] == [
        ("plain", [{"role": "assistant", "content": "good"}], [{"role": "assistant", "content": "bad"}])
    ]
    assert found.rows[0]["prompt"] == [{"role": "user", "content": "q"}]
    assert found.rows[0]["rubric_fingerprint"] == one.fingerprint
    assert found.dropped == {"order": 1, "failed": 1} and found.usage.calls == 6


async def test_a_larger_pool_makes_more_pairs_and_conversations_stay_messages() -> None:
    turns = (Turn("system", "Be brief."), Turn("user", "q"))
    pool = tuple(Rollout(turns, text) for text in ("bad", "good", "bad too"))
    judge = RulePairJudge(prefers_good)
    found = await preference_rows(judge, [Case(rubric("c"), turns, pool=pool)], most=3)
    assert [row["rejected"] for row in found.rows] == [
        [{"role": "assistant", "content": text}] for text in ("bad", "bad too")
    ]
    assert found.rows[0]["prompt"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "q"},
    ]
    with pytest.raises(ConfigError):
        await preference_rows(judge, [], most=0)
