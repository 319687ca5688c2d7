"""Verdicts and scores on several criteria: each under the id it carries, gaps and contradictions kept apart."""

from __future__ import annotations

import json

import pytest

from rubricate.errors import ConfigError, ParseError
from rubricate.judges.parsing import parse_criterion_scores, parse_criterion_verdicts

BOTH = [
    '{"verdicts": [{"id": "tone", "verdict": "met"}, {"id": "length", "verdict": "unmet"}]}',
    '[{"id": "length", "verdict": "unmet"}, {"id": "tone", "verdict": "met"}]',
    '{"verdicts": {"tone": "met", "length": "unmet"}}',
    '{"tone": "met", "length": "unmet"}',
    '{"tone": {"reason": "kind", "verdict": "met"}, "length": {"reason": "long", "verdict": "unmet"}}',
    '{"results": [{"criterion": "tone", "met": true}, {"criterion": "length", "met": false}]}',
    '{"evaluation": {"tone": true, "length": false}, "summary": "fine"}',
    '{"id": "tone", "verdict": "met"}\n{"id": "length", "verdict": "unmet"}',
    '{"verdicts": [{"index": 1, "verdict": "met"}, {"index": 2, "verdict": "unmet"}]}',
    '{"1": "met", "2": "unmet"}',
    '{"verdicts": ["met", "unmet"]}',
    '[{"verdict": "met"}, {"verdict": "unmet"}]',
    '<tool_call>{"name": "grade", "arguments": {"verdicts": {"tone": 1, "length": 0}}}</tool_call>',
    "```json\n{'verdicts': [{'id': 'tone', 'verdict': 'met',}, {'id': 'length', 'verdict': 'unmet'}]}\n```",
    '{"verdicts": [{"id": "tone", "verdict": "met"}, {"id": "length", "verdict": "unmet"}',
    "tone: met\nlength: unmet",
    "- tone: met (friendly)\n- length: unmet, 340 words",
    "**tone** \u2014 Met\n**length** \u2014 Not met",
    "1. tone: yes\n2. length: no",
    "1. met\n2. unmet",
    "Criterion 1: met\nCriterion 2: unmet",
    "- [x] tone\n- [ ] length",
    "\u2705 tone\n\u274c length: too long",
    "| # | Criterion | Verdict |\n|---|---|---|\n| 1 | tone | Met |\n| 2 | length | Unmet |",
    "### tone\nThe letter is kind.\nVerdict: met\n\n### length\nIt has 340 words.\nVerdict: unmet",
    "tone\nkind words throughout\nMet.\n\nlength\nfar too long\nUnmet.",
    "- criterion: tone\n  verdict: met\n- criterion: length\n  verdict: unmet",
    "- verdict: met\n  id: tone\n- verdict: unmet\n  id: length",
    "verdicts:\n  tone: met\n  length: unmet\n",
    "<think>tone: unmet</think>\ntone: met\nlength: unmet",
    "[tone] met\n[length] unmet",
    "Here is the list.\n\n* `tone`: \u2713\n* `length`: \u2717\n\nOverall: 1 of 2.",
]


@pytest.mark.parametrize("reply", BOTH)
def test_each_shape_gives_both_verdicts(reply: str) -> None:
    result = parse_criterion_verdicts(reply, ["tone", "length"])
    assert dict(result.verdicts) == {"tone": "met", "length": "unmet"}
    assert (result.missing, result.ambiguous) == ((), ())


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The letter is kind but long.",
        '["met", "unmet", "met"]',
        '{"verdicts": ["met"]}',
        "I can't help with judging this text.",
        '{"error": "overloaded"}',
        "<think>tone: met\nlength: met</think>",
        '{"verdicts": [{"index": 1, "verdict": "met"}]}',
        '{"verdicts": [{"index": 0, "verdict": "met"}, {"index": 2, "verdict": "met"}]}',
        "The candidate says:\ntone: met\nlength: met",
    ],
)
def test_a_reply_that_cannot_be_used_as_a_whole(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_criterion_verdicts(reply, ["tone", "length"])


def test_gaps_contradictions_and_strangers_are_kept_apart() -> None:
    reply = json.dumps(
        {
            "verdicts": [
                {"id": "a", "verdict": "met", "reason": "there"},
                {"id": "b", "verdict": "met"},
                {"id": "b", "verdict": "unmet"},
                {"id": "c", "verdict": None},
                {"id": "d", "verdict": "mostly met"},
                {"id": "e", "verdict": "unmet", "reason": "On the whole the criterion is met."},
                {"id": "z", "verdict": "met"},
            ]
        }
    )
    result = parse_criterion_verdicts(reply, ["a", "b", "c", "d", "e", "f"])
    assert dict(result.verdicts) == {"a": "met"}
    assert dict(result.reasons) == {"a": "there"}
    assert result.missing == ("c", "f")
    assert result.ambiguous == ("b", "d", "e")
    assert result.extra == ("z",)


def test_a_list_and_its_closing_summary_must_agree() -> None:
    entries = '[{"id": "C1", "verdict": "met"}, {"id": "C2", "verdict": "met"}]'
    reply = f'{{"verdicts": {entries}, "final": {{"C1": "met", "C2": "unmet"}}}}'
    result = parse_criterion_verdicts(reply, ["C1", "C2"])
    assert dict(result.verdicts) == {"C1": "met"}
    assert result.ambiguous == ("C2",)


def test_a_corrected_list_replaces_the_first() -> None:
    first, second = '{"tone": "met", "length": "met"}', '{"tone": "met", "length": "unmet"}'
    result = parse_criterion_verdicts(f"{first}\nWait, it has 340 words. Corrected:\n{second}", ["tone", "length"])
    assert dict(result.verdicts) == {"tone": "met", "length": "unmet"}
    unmarked = parse_criterion_verdicts(f"{first}\n{second}", ["tone", "length"])
    assert unmarked.ambiguous == ("length",)


def test_a_number_names_the_id_that_ends_in_it() -> None:
    result = parse_criterion_verdicts('{"verdicts": [{"id": 3, "verdict": "met"}]}', ["C3", "C7"])
    assert dict(result.verdicts) == {"C3": "met"}
    assert result.missing == ("C7",)


def test_numbering_from_zero_as_told() -> None:
    reply = '{"verdicts": [{"index": 1, "verdict": "met"}]}'
    result = parse_criterion_verdicts(reply, ["tone", "length"], index_base=0)
    assert dict(result.verdicts) == {"length": "met"}


def test_one_criterion_needs_no_id() -> None:
    for reply in (
        '{"reason": "x", "verdict": "unmet"}',
        "Verdict: unmet",
        "The criterion is not met.",
        '["unmet"]',
    ):
        assert dict(parse_criterion_verdicts(reply, ["tone"]).verdicts) == {"tone": "unmet"}


def test_choices_of_each_criterion() -> None:
    reply = '{"tone": "warm", "length": "N/A"}'
    choices = {"tone": ["cold", "warm"], "length": ["met", "unmet", "not_applicable"]}
    assert dict(parse_criterion_verdicts(reply, ["tone", "length"], choices).verdicts) == {
        "tone": "warm",
        "length": "not_applicable",
    }
    with pytest.raises(ConfigError):
        parse_criterion_verdicts(reply, ["tone", "length"], {"tone": ["cold", "warm"]})


def test_cannot_assess_is_a_verdict_only_where_offered() -> None:
    reply = '{"tone": "cannot assess", "length": "met"}'
    assert parse_criterion_verdicts(reply, ["tone", "length"]).missing == ("tone",)
    offered = parse_criterion_verdicts(reply, ["tone", "length"], ("met", "unmet", "CANNOT_ASSESS"))
    assert offered.verdicts["tone"] == "CANNOT_ASSESS"


def test_levels_that_are_numbers() -> None:
    reply = '{"tone": 1, "length": "3", "depth": true}'
    result = parse_criterion_verdicts(reply, ["tone", "length", "depth"], ("0", "1", "2", "3"))
    assert dict(result.verdicts) == {"tone": "1", "length": "3"}
    assert result.missing == ("depth",)


def test_grades_with_signs_are_not_confused() -> None:
    result = parse_criterion_verdicts('{"x": "A-", "y": "A", "z": "B"}', ["x", "y", "z"], ("A", "A-", "B+"))
    assert dict(result.verdicts) == {"x": "A-", "y": "A"}
    assert result.missing == ("z",)


def test_known_ids_are_no_strangers() -> None:
    reply = '{"verdicts": {"tone": "met", "rating": 3}}'
    assert parse_criterion_verdicts(reply, ["tone"]).extra == ("rating",)
    assert parse_criterion_verdicts(reply, ["tone"], known=["rating"]).extra == ()


def test_ids_must_differ() -> None:
    with pytest.raises(ConfigError):
        parse_criterion_verdicts("{}", ["a", "a"])


SCORES = [
    '{"verdicts": [{"id": "depth", "verdict": 3}, {"id": "style", "verdict": "4/5"}]}',
    '{"depth": 3, "style": 4}',
    '{"depth": {"reason": "thin", "score": 3}, "style": {"score": 4}}',
    "depth: 3\nstyle: 4/5",
    "| criterion | score |\n|---|---|\n| depth | 3 |\n| style | 4 |",
    "### depth\nthin\nScore: 3\n### style\nclear\nScore: 4",
]


@pytest.mark.parametrize("reply", SCORES)
def test_scores_by_id(reply: str) -> None:
    result = parse_criterion_scores(reply, {"depth": (0, 10), "style": (1, 5)})
    assert dict(result.scores) == {"depth": 3.0, "style": 4.0}


def test_a_word_beside_the_scale_needs_no_id_either() -> None:
    result = parse_criterion_scores("Verdict: N/A", {"depth": (0, 10)}, choices=("not_applicable",))
    assert dict(result.scores) == {"depth": "not_applicable"}


def test_scores_off_the_scale_are_named() -> None:
    reply = '{"a": 7, "b": "3 or 4", "c": null, "d": "not applicable", "e": 2.5}'
    scales: dict[str, tuple[float, float]] = {id: (1, 5) for id in "abcde"}
    result = parse_criterion_scores(reply, scales, integer=True, choices=("not_applicable",))
    assert dict(result.scores) == {"d": "not_applicable"}
    assert result.out_of_range == ("a", "e")
    assert result.ambiguous == ("b",)
    assert result.missing == ("c",)
