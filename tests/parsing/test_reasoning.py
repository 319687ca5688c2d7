"""Reasoning blocks, in the tags that real models use, never reach the reader."""

from __future__ import annotations

import pytest

from rubricate.judges.parsing import parse_reason, strip_reasoning

STRIPPED = [
    ("<think>a</think>b", "b"),
    ("<think>\na\n</think>\n\nb\n", "b"),
    ("<think>a</think>b<think>c</think>d", "bd"),
    ("<think>a", ""),
    ("b <think>a", "b"),
    ("a</think>b", "b"),
    ("a <think>b</think> c</think>d", "d"),
    ("<Think type='x'>a</Think>b", "b"),
    ("<thinking>a</thinking>b", "b"),
    ("<reasoning>a</reasoning>b", "b"),
    ("<thought>a</thought>b", "b"),
    ("<seed:think>a</seed:think>b", "b"),
    ("\u25c1think\u25b7a\u25c1/think\u25b7b", "b"),
    ("[THINK]a[/THINK]b", "b"),
    ("<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>b<|end_of_solution|>", "b"),
    ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "b"),
    ("<|channel>thought\na<channel|>b", "b"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "b"),
    ("a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
    ("<|channel|>analysis<|message|>a", ""),
    ("<|channel|>commentary to=f<|message|>{}<|call|>", ""),
    ("analysisI think a.assistantfinalb", "b"),
]

KEPT = [
    "",
    "  plain text \n",
    "the think tank",
    "`<think>` opens a block",
    'The tag "</think>" closes it.',
    '{"reason": "leaks </think>", "verdict": "met"}',
    'Answer: {"reason": "uses <think> tags"} as asked',
    "a < b and c > d",
    "<|channel|> is a token",
    "analysis of the poem",
]


@pytest.mark.parametrize(("text", "visible"), STRIPPED)
def test_reasoning_is_removed(text: str, visible: str) -> None:
    assert strip_reasoning(text) == visible


@pytest.mark.parametrize("text", KEPT)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert strip_reasoning(text) == text


REASONS = [
    ('{"reason": "two dates", "verdict": "met"}', "two dates"),
    ('{"verdict": "met", "explanation": "two dates"}', "two dates"),
    ('{"result": {"reasons": ["one", "two"], "score": 3}}', "one\ntwo"),
    ("Reason: two dates\nVerdict: met", "two dates"),
    ("Two dates are given.\n\nVerdict: met", "Two dates are given."),
    ("Verdict: met\nTwo dates are given.", "Two dates are given."),
    ("<think>no dates</think>Two dates.\nScore: 4", "Two dates."),
    ('{"reason": "lone \\ud83d half", "score": 1}', "lone \ufffd half"),
    ("", ""),
]


@pytest.mark.parametrize(("reply", "reason"), REASONS)
def test_the_reason(reply: str, reason: str) -> None:
    assert parse_reason(reply) == reason
