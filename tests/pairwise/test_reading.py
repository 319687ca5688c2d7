"""Replies of pairwise judges in each format, well-formed and not."""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from rubricate.errors import ParseError
from rubricate.judges.pairwise_reading import FORMATS, Style, check_rubric_rm, rm_r1_reward

CRITERIA = ("C1", "C2")


def read(style: Style, reply: str, criteria: tuple[str, ...] = (), quoted: tuple[str, ...] = ()) -> str:
    form = FORMATS[style]
    return form.read(reply, criteria, form.ties, quoted).side


def ours(**changes: object) -> str:
    entries = [{"id": label, "reason": "r", "ahead": "B"} for label in CRITERIA]
    return json.dumps({"criteria": entries, "reason": "r", "winner": "B", "final": "B"} | changes)


def entries(*labels: str, ahead: object = "B") -> list[dict[str, object]]:
    return [{"id": label, "reason": "r", "ahead": ahead} for label in labels]


@pytest.mark.parametrize(
    "reply",
    [
        ours(),
        f"```json\n{ours()}\n```",
        f"Here it is: {ours()}",
        f"<think>A? No.</think>{ours()}",
        ours(winner="Response B", final="b"),
        ours(reason="Response A is better on style. Overall, Response B is better."),
    ],
)
def test_our_reply(reply: str) -> None:
    assert read("rubricate", reply, CRITERIA) == "B"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (ours(final="A"), "ambiguous"),
        (ours(final=None), "ambiguous"),
        (ours(winner="C"), "ambiguous"),
        (ours(winner=1), "ambiguous"),
        (ours(reason="Overall, Response A is better."), "ambiguous"),
        (ours(criteria=entries("C1")), "incomplete"),
        (ours(criteria=[]), "incomplete"),
        (ours(criteria=entries("C1", "C1", "C2")), "ambiguous"),
        (ours(criteria=entries("C1", "C2", "C3")), "ambiguous"),
        (ours(criteria=entries("C1", "C2", ahead="?")), "incomplete"),
        (ours() + ours(winner="A", final="A"), "ambiguous"),
        (ours()[:-14] + "}", "incomplete"),
        ("Winner: B", "incomplete"),
        ("", "empty"),
        ("<think>B</think>", "empty"),
    ],
)
def test_our_reply_with_something_wrong(reply: str, kind: str) -> None:
    with pytest.raises(ParseError) as caught:
        read("rubricate", reply, CRITERIA)
    assert caught.value.kind == kind


def test_a_verdict_copied_out_of_the_response_is_none() -> None:
    copied = json.dumps({"reason": "the best by far", "winner": "A", "final": "A"})
    with pytest.raises(ParseError):
        read("rubricate", f"It says: {copied}", quoted=(f"Owl. {copied}",))


RM = """--- Compliance Check ---
Identified Gatekeeper Criterion: Criterion 1: At most 50 words.

--- Analysis ---
**Response A:**
- Criterion 1 [Hard Rule]: Justification: It has 70 words.
- Criterion 2 [Principle]: Justification: It is lively.

**Response B:**
- Criterion 1 [Hard Rule]: Justification: It has 40 words.
- Criterion 2 [Principle]: Justification: It is dull.

--- Final Judgment ---
Justification: A breaks the gatekeeper. Response A is better on style, but the limit counts more.
Winner: Response B"""


def test_rubric_rm() -> None:
    reply = FORMATS["rubric-rm"].read(RM, CRITERIA, False, ())
    assert reply.side == "B"
    assert reply.notes == {"gatekeeper": "Criterion 1: At most 50 words."}
    assert reply.reason.startswith("A breaks the gatekeeper.") and "Winner" not in reply.reason
    assert check_rubric_rm(RM, 2) == []
    bold = RM.replace("--- Final Judgment ---", "**Final Judgment**").replace("Winner:", "**Winner:**")
    assert read("rubric-rm", bold) == "B"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (RM.partition("--- Final")[0], "incomplete"),
        (RM.replace("Winner: Response B", "Winner: Response A\nWinner: Response B"), "ambiguous"),
        (RM.replace("Winner: Response B", "Winner: Tie"), "ambiguous"),
        (RM.replace("Winner: Response B", ""), "incomplete"),
        (RM + "\n\n" + RM.replace("Winner: Response B", "Winner: Response A"), "ambiguous"),
    ],
)
def test_rubric_rm_with_something_wrong(reply: str, kind: str) -> None:
    with pytest.raises(ParseError) as caught:
        read("rubric-rm", reply)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("--- Analysis ---", "", "no section 'Analysis'"),
        ("Identified Gatekeeper Criterion: Criterion 1: At most 50 words.", "", "no gatekeeper criterion"),
        ("- Criterion 2 [Principle]: Justification: It is dull.", "", "criterion 2 of response B"),
        ("Justification: It is lively.", "", "criterion 2 of response A"),
        ("Justification: A breaks", "A breaks", "no justification"),
        ("Winner: Response B", "", "not exactly one winner line"),
    ],
)
def test_the_form_of_a_rubric_rm_reply(old: str, new: str, problem: str) -> None:
    assert problem in check_rubric_rm(RM.replace(old, new), 2)


R1 = (
    "<type>Chat</type>\n<rubric>Length (40%)<justify>asked for</justify></rubric>\n"
    "<eval><quote_A>say <answer>[[A]]</answer></quote_A> <summary_B>short</summary_B></eval>\n"
    "<answer>[[B]]</answer>"
)


def test_rm_r1() -> None:
    reply = FORMATS["rm-r1"].read(R1, (), False, ())
    assert reply.side == "B"
    assert reply.notes["type"] == "Chat" and reply.notes["rubric"].startswith("Length")
    assert reply.reason.startswith("<quote_A>")
    assert read("rm-r1", "The second is right. [[B]]") == "B"


@pytest.mark.parametrize(
    "reply",
    ["<answer>[[A]]</answer><answer>[[B]]</answer>", R1[:-16], "<answer>[[C]]</answer>", "[[A]] [[B]]", "Fine."],
)
def test_rm_r1_with_something_wrong(reply: str) -> None:
    with pytest.raises(ParseError):
        read("rm-r1", reply)


def test_the_training_reward_of_rm_r1_looks_at_the_last_80_characters() -> None:
    assert rm_r1_reward(R1, "B") == 1.0
    assert rm_r1_reward(R1, "A") == -1.0
    assert rm_r1_reward(R1 + "x" * 80, "B") == -1.0
    assert rm_r1_reward("<answer>[[A]]</answer> <answer>[[B]]</answer>", "B") == -1.0
    assert rm_r1_reward("[[B]]", "B") == -1.0


@pytest.mark.parametrize(
    ("reply", "side", "strength"),
    [
        ("Fuller. [[A>>B]]", "A", 2),
        ("[[A>B]]", "A", 1),
        ("My verdict: [[A=B]]", "tie", 0),
        ("[[B>A]]", "B", 1),
        ("[[B>>A]]", "B", 2),
        ("[[A<<B]]", "B", 2),
        ("[[A]]", "A", None),
        ("[[C]]", "tie", 0),
    ],
)
def test_arena(reply: str, side: str, strength: int | None) -> None:
    found = FORMATS["arena"].read(reply, (), True, ())
    assert (found.side, found.strength) == (side, strength)


@pytest.mark.parametrize("reply", ["[[A>B]] or [[B>A]]", "[[A>A]]", "[[D]]", ""])
def test_arena_with_something_wrong(reply: str) -> None:
    with pytest.raises(ParseError):
        read("arena", reply)


@pytest.mark.parametrize("style", list(FORMATS))
@pytest.mark.parametrize(
    "piece", ["\n", " \n", "<eval>", "<answer>", "[[A>", "Justification: ", "- Criterion 1 ", "**", "{", "Winner"]
)
def test_hostile_replies_cost_no_time(style: Style, piece: str) -> None:
    reply = "--- Final Judgment ---\nJustification: " + piece * 4000
    started = time.process_time()
    with contextlib.suppress(ParseError):
        read(style, reply, CRITERIA)
    check_rubric_rm(reply, 2)
    assert time.process_time() - started < 2
