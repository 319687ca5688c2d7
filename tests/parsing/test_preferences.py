"""Preferences between responses out of replies of many shapes."""

from __future__ import annotations

import pytest

from rubricate.errors import ConfigError, ParseError
from rubricate.judges.parsing import parse_preference

PLAIN = [
    ('{"reason": "fuller", "winner": "A"}', "A"),
    ('{"winner": "Response B"}', "B"),
    ('{"winner": "response_b"}', "B"),
    ('{"winner": "tie"}', "tie"),
    ('{"winner": "Both"}', "tie"),
    ('{"winner": "first"}', "A"),
    ('{"preference": "A>B"}', "A"),
    ('{"better_response": "b"}', "B"),
    ("Winner: Response A", "A"),
    ("--- Final Judgment ---\nJustification: B names no source.\nWinner: Response A", "A"),
    ("Justification: Response A is vague.\n**Winner:** Response B", "B"),
    ("<answer>[[B]]</answer>", "B"),
    ("<answer>A</answer>", "A"),
    ("The winner is Response B.", "B"),
    ("Preferred response: A", "A"),
    ("Better: B", "B"),
    ("[[A]]", "A"),
    ("[[B>>A]]", "B"),
    ("[[A<B]]", "B"),
    ("My final verdict is: Assistant B is slightly better: [[B>A]]", "B"),
    ("[[B=A]]", "tie"),
    ("\\boxed{A}", "A"),
    ("Output (b)", "B"),
    ("A", "A"),
    ("**B**", "B"),
    ("Response A is better than Response B.", "A"),
    ("Overall, Response B is the better answer.", "B"),
    ("Response A loses to Response B.", "B"),
    ("I prefer Response A because it cites the law.", "A"),
    ("A wins.", "A"),
    ("The better response is B.", "B"),
    ("The second response is better.", "B"),
    ("Response A is better at rhyme. Overall, Response B is better.", "B"),
    ("It is a draw.", "tie"),
    ("Both responses are equally good.", "tie"),
    ("Verdict: A tie", "tie"),
    ("Winner: A\n\nWait, B has the right date. Correction:\nWinner: B", "B"),
    ("Winner: A or B\nWinner: B", "B"),
    ("<think>[[A]]</think>[[B]]", "B"),
    ("> Winner: A\nWinner: B", "B"),
    ("The user's text demands [[A]].\n[[B]]", "B"),
    ("Antwort B ist besser.", "B"),
    ("\u56de\u7b54A\u66f4\u597d\u3002", "A"),
    ("\u56de\u7b54A\u4f18\u4e8e\u56de\u7b54B\u3002", "A"),
    ("\u56de\u7b54A\u4e0d\u5982\u56de\u7b54B\u3002", "B"),
    ("Response A is the clear winner!", "A"),
    ("The latter is better.", "B"),
    ("Preference: strongly prefer A", "A"),
    ("Winner: B. Actually, A.", "A"),
    ("\u52dd\u8005\uff1aB", "B"),
    ("\u56de\u7b54A\u306e\u65b9\u304c\u826f\u3044\u3002", "A"),
]

FAILED = [
    "",
    "{}",
    '{"winner": null}',
    '{"winner": true}',
    '{"winner": "C"}',
    '{"winner": "1"}',
    '{"winner": "A or B"}',
    '{"winner": "A", "reason": "Overall, Response B is better."}',
    "Winner: A\nWinner: B",
    "Winner: not B",
    "Winner: probably A",
    "Winner: A, no, B",
    "Winner: A and B",
    "Winner: ",
    "[[A]] or [[B]]",
    "[[A]] [[B]]",
    "[[A]]\n[[B]]",
    "[[C]]",
    "[[A>B=A]]",
    "Response A is better. Response B is better.",
    "Response A would be better if it were shorter.",
    "Response A might be better.",
    "Is Response A better?",
    "A better plan is needed.",
    "Response A's opening is better.",
    "Response A is better written, Response B better argued.",
    "Response A has three sections and Response B has four.",
    "The candidate claims that Response A is better.",
    "I cannot compare these responses.",
    "<think>[[A]]",
]


@pytest.mark.parametrize(("reply", "winner"), PLAIN)
def test_plain_preferences_are_read(reply: str, winner: str) -> None:
    assert parse_preference(reply, ["A", "B"], ties=True) == winner
    swapped = parse_preference(reply, ["Response A", "Response B"], ties=True)
    assert swapped == (winner if winner == "tie" else f"Response {winner}")


@pytest.mark.parametrize("reply", FAILED)
def test_everything_else_is_refused(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_preference(reply, ["A", "B"], ties=True)


@pytest.mark.parametrize("reply", ["[[A=B]]", "Winner: tie", '{"winner": "draw"}', "It is a tie.", "[[C]]"])
def test_a_tie_that_was_not_offered_is_no_coin_flip(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_preference(reply, ["A", "B"], ties=False, tie_label="C")


def test_the_protocols_tie_label() -> None:
    assert parse_preference("[[C]]", ["A", "B"], ties=True, tie_label="C") == "tie"


def test_numbered_labels() -> None:
    assert parse_preference('{"winner": 2}', ["1", "2"], ties=True) == "2"
    assert parse_preference("Response 1 is better.", ["1", "2"], ties=True) == "1"
    assert parse_preference("Winner: Model 2", ["Model 1", "Model 2"], ties=True) == "Model 2"


def test_more_than_two_responses() -> None:
    labels = ["A", "B", "C"]
    assert parse_preference("[[B>C>A]]", labels, ties=False) == "B"
    assert parse_preference("Winner: C", labels, ties=False) == "C"
    with pytest.raises(ParseError):
        parse_preference("Response B is worse than Response A.", labels, ties=False)


def test_labels_must_differ() -> None:
    with pytest.raises(ConfigError):
        parse_preference("[[A]]", ["A", "A"], ties=True)
    with pytest.raises(ConfigError):
        parse_preference("[[A]]", ["A", "B"], ties=True, tie_label="B")
