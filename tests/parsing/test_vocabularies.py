"""Verdicts in other vocabularies than met and unmet. None stands for a reply that must be refused."""

from __future__ import annotations

import pytest

from rubricate.errors import ParseError
from rubricate.judges.parsing import parse_verdict

VOCABULARIES: list[tuple[tuple[str, ...], list[tuple[str, str | None]]]] = [
    (
        ("yes", "no"),
        [
            ("Yes", "yes"),
            ("No, it lacks a title.", "no"),
            ("Verdict: yes", "yes"),
            ("met", "yes"),
            ("The criterion is not met.", "no"),
            ('{"verdict": true}', "yes"),
            ('{"verdict": "N"}', "no"),
            ("Yes or no?", None),
            ("I would say yes.", "yes"),
            ("yes and no", None),
        ],
    ),
    (
        ("pass", "fail"),
        [
            ("PASS", "pass"),
            ("Fail: no title", "fail"),
            ("The response passes.", "pass"),
            ("The response fails.", "fail"),
            ("It did not pass.", "fail"),
            ("I'll pass.", None),
            ("Verdict: does not pass", "fail"),
            ("Verdict: failed", "fail"),
            ("passing grade", None),
            ("pass/fail: pass", "pass"),
            ("Result: PASS", "pass"),
            ("He passes the salt.", None),
        ],
    ),
    (
        ("1", "2", "3", "4", "5"),
        [
            ("3", "3"),
            ("Level 3", None),
            ("Level: 3", "3"),
            ("Verdict: 3 - fair", "3"),
            ("Verdict: 3/5", None),
            ("Verdict: 3.5", None),
            ("Verdict: yes", None),
            ('{"verdict": 3}', "3"),
            ('{"verdict": "3"}', "3"),
            ('{"verdict": 3.0}', "3"),
            ('{"verdict": true}', None),
            ('{"verdict": 0}', None),
            ("Verdict: three", None),
            ("Verdict: 3 or 4", None),
            ("Verdict: 6", None),
            ("1. The letter is short.\n2. It lacks a date.\nVerdict: 2", "2"),
        ],
    ),
    (
        ("excellent", "good", "fair", "poor"),
        [
            ("Good", "good"),
            ("Verdict: good", "good"),
            ("not good", None),
            ("Verdict: good to excellent", None),
            ("Verdict: good/excellent", None),
            ("Verdict: very good", None),
            ("It is fair.", "fair"),
            ("To be fair, it is poor.", None),
            ("Verdict: fairly good", None),
            ("Good heavens, no.", None),
            ("Excellent work!", None),
            ("Verdict: good-ish", None),
            ("Rating: excellent", "excellent"),
        ],
    ),
    (
        ("true", "false"),
        [
            ("true", "true"),
            ("False.", "false"),
            ("It is not true.", "false"),
            ("Verdict: untrue", None),
            ("That's false", "false"),
        ],
    ),
    (
        ("CORRECT", "INCORRECT"),
        [
            ("CORRECT", "CORRECT"),
            ("incorrect", "INCORRECT"),
            ("The answer is correct.", "CORRECT"),
            ("The answer is not correct.", "INCORRECT"),
            ("Partially correct", None),
            ("The correct answer is 4.", None),
            ("Verdict: incorrect (the correct answer is 4)", "INCORRECT"),
            ("Correct answer: 4. Verdict: INCORRECT", "INCORRECT"),
            ("[[CORRECT]]", "CORRECT"),
            ("GRADE: INCORRECT", "INCORRECT"),
            ("GRADE: C", None),
        ],
    ),
    (
        ("fully_met", "partially_met", "not_met"),
        [
            ("fully met", "fully_met"),
            ("FULLY_MET", "fully_met"),
            ("partially met", "partially_met"),
            ("Verdict: partially met", "partially_met"),
            ("not met", "not_met"),
            ("Verdict: not fully met", None),
            ("met", None),
            ("unmet", "not_met"),
            ("Verdict: mostly met", None),
        ],
    ),
    (
        ("met", "unmet", "not_applicable"),
        [
            ("N/A", "not_applicable"),
            ("Verdict: not applicable", "not_applicable"),
            ("n/a - no date asked", "not_applicable"),
            ("Verdict: not relevant", "not_applicable"),
            ("The condition does not hold, so the criterion is not applicable.", "not_applicable"),
            ("na", "not_applicable"),
            ("no", "unmet"),
            ("none", None),
        ],
    ),
    (
        ("met", "unmet", "cannot_assess"),
        [
            ("Cannot assess", "cannot_assess"),
            ("Verdict: unable to determine", "cannot_assess"),
            ("unclear", "cannot_assess"),
            ("Verdict: CANNOT_ASSESS - no access", "cannot_assess"),
            ("Verdict: can't tell", "cannot_assess"),
        ],
    ),
    (
        ("Supported", "Not supported", "Irrelevant"),
        [
            ("supported", "Supported"),
            ("not supported", "Not supported"),
            ("Verdict: NOT SUPPORTED", "Not supported"),
            ("irrelevant", "Irrelevant"),
            ("unsupported", None),
            ("Verdict: partially supported", None),
            ("Supported by line 3", None),
        ],
    ),
]


@pytest.mark.parametrize(
    ("choices", "reply", "verdict"),
    [(choices, reply, verdict) for choices, rows in VOCABULARIES for reply, verdict in rows],
)
def test_other_vocabularies(choices: tuple[str, ...], reply: str, verdict: str | None) -> None:
    if verdict is None:
        with pytest.raises(ParseError):
            parse_verdict(reply, choices)
    else:
        assert parse_verdict(reply, choices) == verdict
