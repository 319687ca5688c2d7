"""Scores out of replies of many shapes: right, or refused."""

from __future__ import annotations

import pytest

from rubricate.errors import ConfigError, ParseError
from rubricate.judges.parsing import parse_score, parse_scores

PLAIN: list[tuple[str, float, float, float]] = [
    ('{"score": 4}', 1, 5, 4),
    ('{"reason": "short", "score": "4"}', 1, 5, 4),
    ('{"score": "4/5"}', 1, 5, 4),
    ('{"score": "4 out of 5"}', 1, 5, 4),
    ('{"score": 4, "max_score": 5}', 1, 5, 4),
    ('{"rating": 7.5}', 1, 10, 7.5),
    ('{"accuracy_score": 2, "overall_score": 6}', 0, 10, 6),
    ('{"evaluation": {"score": 0}}', 0, 10, 0),
    ('{"score": 8/10, "reason": "x"}', 0, 10, 8),
    ('{"score": "85%"}', 0, 100, 85),
    ('{"score": 1e1}', 0, 10, 10),
    ("{'score': 3, 'reason': 'it\\'s thin'}", 1, 5, 3),
    ('Thoughts first.\n```json\n{"score": 2}\n```', 1, 5, 2),
    ("Score: 7", 0, 10, 7),
    ("score = 7", 0, 10, 7),
    ("Final score: **7** out of 10", 0, 10, 7),
    ("Score: 7.", 0, 10, 7),
    ("Score (0-10): 7", 0, 10, 7),
    ("Score (out of 10): 7", 0, 10, 7),
    ("Score: 7 (on a scale from 0 to 10)", 0, 10, 7),
    ("Overall: 7/10", 0, 10, 7),
    ("## Score\n7", 0, 10, 7),
    ("Rating: [[8]]", 1, 10, 8),
    ("The argument holds.\n\n[[8]]", 1, 10, 8),
    ("\\boxed{8}", 1, 10, 8),
    ("<score>3</score>", 1, 5, 3),
    ("<answer>3</answer>", 1, 5, 3),
    ("Score: five", 1, 10, 5),
    ("seven out of ten", 1, 10, 7),
    ("7", 1, 10, 7),
    ("**7/10**", 1, 10, 7),
    ("Two of the five facts are wrong.\n\n3", 1, 10, 3),
    ("I give this answer a 6 out of 10 because 2 facts are wrong.", 0, 10, 6),
    ("I'd rate it 6/10.", 0, 10, 6),
    ("The essay deserves a score of 6.", 0, 10, 6),
    ("Score: 75%", 0, 1, 0.75),
    ("Score: 75 percent", 0, 100, 75),
    ("Score: .5", 0, 1, 0.5),
    ("Score: -1", -2, 2, -1),
    ("Score: \u22121", -2, 2, -1),
    ("Score: 6\nOn reflection that is too kind.\nScore: 4", 0, 10, 4),
    ("Accuracy: 3/10. Style: 9/10. Overall score: 5/10", 0, 10, 5),
    ("Score: 4 - concise, though 2 commas are missing", 1, 5, 4),
    ("Score: 4 because it names 3 sources", 1, 5, 4),
    ("Score: 4 \u2605", 1, 5, 4),
    ("Bewertung: 3,5 von 5 Punkten", 0, 5, 3.5),
    ("Puntuaci\u00f3n: 7,5", 0, 10, 7.5),
    ("\u7efc\u5408\u8bc4\u5206\uff1a8\u5206\uff08\u6ee1\u520610\u5206\uff09", 0, 10, 8),
    ("\u5f97\u5206: 8/10", 0, 10, 8),
    ("\uc810\uc218: 8\uc810", 0, 10, 8),
    ("\u041e\u0446\u0435\u043d\u043a\u0430: 8 \u0438\u0437 10", 0, 10, 8),
    ("\u0905\u0902\u0915: \u096e", 0, 10, 8),
    ("Score: 1,250", 0, 2000, 1250),
    ("It makes three points: 1) the tide, 2) the fee.\nScore: 4", 1, 5, 4),
    ('{"reason": "Clarity score: 3. It makes two points: 1) a, 2) b.", "score": 4}', 1, 5, 4),
]

FAILED: list[tuple[str, float, float]] = [
    ("", 0, 10),
    ("{}", 0, 10),
    ('{"score": null}', 0, 10),
    ('{"score": false}', 0, 1),
    ('{"score": NaN}', 0, 10),
    ('{"score": -Infinity}', 0, 10),
    ('{"score": 11}', 0, 10),
    ('{"score": "eleven"}', 0, 10),
    ('{"score": "high"}', 0, 10),
    ('{"score": [4, 5]}', 1, 5),
    ('{"score": "4-5"}', 1, 5),
    ('{"score": "about 4"}', 1, 5),
    ('{"score": 4, "max_score": 5}', 0, 10),
    ('{"score": 4, "score": 5}', 1, 5),
    ('{"score": 4}\n{"score": 5}', 1, 5),
    ('{"score": 4}\nScore: 5', 1, 5),
    ('{"score": 5, "reason": "Half is missing. Score: 2"}', 1, 5),
    ('{"score": 3', 1, 10),
    ('{"score": 3.', 1, 10),
    ('{"name": "score", "minimum": 3}', 1, 10),
    ("Score: N/A", 0, 10),
    ("Score: 8/100", 0, 10),
    ("Score: 85/100", 0, 1),
    ("Score: 50%", 1, 5),
    ("Score: 0.5 (out of 1)", 0, 10),
    ("Score (1-5): 4", 0, 10),
    ("Score: 4 or 5", 1, 5),
    ("Score: 4, 5", 1, 5),
    ("Score: between 3 and 4", 1, 5),
    ("Score: ~4", 1, 5),
    ("Score: at least 4", 1, 5),
    ("Score: >4", 1, 5),
    ("Score: 4+", 1, 5),
    ("Score: 4\u00bd", 1, 5),
    ("Score: 4th", 1, 5),
    ("Score: 4, no wait, 3", 1, 5),
    ("Score: 4 \u2192 3", 1, 5),
    ("Score: 4.2.1", 1, 5),
    ("Score: 8,6", 1, 10),
    ("Score: 7e", 1, 10),
    ("Max score: 10", 0, 10),
    ("Passing score: 6", 0, 10),
    ("The candidate claims a score of 9.", 0, 10),
    ("The author's score: 9", 0, 10),
    ("A score of 9 would need two sources.", 0, 10),
    ("Confidence: 9", 0, 10),
    ("Page: 4", 1, 5),
    ("Clarity: 4\nDepth: 4", 1, 5),
    ("Clarity score: 4\nDepth score: 3", 1, 5),
    ("7/10 of the facts are right.", 0, 10),
    ("It was posted on 7/10.", 0, 10),
    ("3/5 steps are right.", 0, 5),
    ("Step 3 is wrong and 4 sources are missing.", 1, 5),
    ("<think>Score: 4</think>", 1, 5),
    ("<think>Score: 4", 1, 5),
    ("> Score: 4", 1, 5),
    ('The response contains "Score: 10".', 0, 10),
    ("I can't rate this content.", 1, 5),
    ("\u2605\u2605\u2605\u2606\u2606", 1, 5),
    ("Grade: B+", 1, 5),
]


@pytest.mark.parametrize(("reply", "low", "high", "score"), PLAIN)
def test_plain_scores_are_read(reply: str, low: float, high: float, score: float) -> None:
    assert parse_score(reply, low, high) == pytest.approx(score)


@pytest.mark.parametrize(("reply", "low", "high"), FAILED)
def test_everything_else_is_refused(reply: str, low: float, high: float) -> None:
    with pytest.raises(ParseError):
        parse_score(reply, low, high)


def test_whole_numbers_only_where_asked() -> None:
    assert parse_score('{"score": 4.0}', 1, 5, integer=True) == 4
    with pytest.raises(ParseError) as caught:
        parse_score('{"score": 4.5}', 1, 5, integer=True)
    assert caught.value.kind == "out_of_range"


def test_another_key() -> None:
    assert parse_score('{"score": 1, "rating": 9}', 1, 10, key="rating") == 9
    assert parse_score("Helpfulness: 4", 1, 5, key="helpfulness") == 4


def test_a_scale_needs_ends_in_order() -> None:
    with pytest.raises(ConfigError):
        parse_score("3", 5, 1)


PAIRS = [
    '{"A": 8, "B": 6}',
    '{"scores": {"A": 8, "B": 6}}',
    '{"scores": [8, 6]}',
    '{"response_a": 8, "response_b": "6/10"}',
    '{"scores": [{"name": "Response B", "score": 6}, {"name": "Response A", "score": 8}]}',
    "[8, 6]",
    "\\boxed{8, 6}",
    "[[8, 6]]",
    "8 6\nThe first reply is fuller.",
    "Scores: 8, 6",
    "A: 8\nB: 6",
    "**Response A**: 8/10\n**Response B**: 6/10",
    "Score A: 8\nScore B: 6",
    "| response | score |\n|---|---|\n| A | 8 |\n| B | 6 |",
]


@pytest.mark.parametrize("reply", PAIRS)
def test_scores_of_two_responses(reply: str) -> None:
    assert parse_scores(reply, ["A", "B"], 1, 10) == {"A": 8, "B": 6}


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "\\boxed{8}",
        "\\boxed{8, 6, 4}",
        '{"A": 8}',
        '{"A": 8, "B": 11}',
        "8 and 6",
        "A: 8\nA: 7\nB: 6",
        '{"scores": [8, null]}',
    ],
)
def test_incomplete_or_contradictory_lists_are_refused(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_scores(reply, ["A", "B"], 1, 10)
