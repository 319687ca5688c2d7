"""LLMBar's recorded completions: read as their authors read them, and replayed through the judge in both orders."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from comparing import side_of

from rubricate.chat import ChatRequest, MockModel
from rubricate.errors import ParseError
from rubricate.judges.pairwise import PairwiseJudge
from rubricate.judges.parsing import parse_preference
from rubricate.types import FailureKind

LABELS = ("Output (a)", "Output (b)")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(shared: Callable[[str], Path]) -> list[Row]:
    lines = (shared("llmbar") / "judgments.compact.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_completion_is_read_as_its_authors_read_it(rows: list[Row]) -> None:
    assert len(rows) == 5866
    for row in rows:
        if row["winner"] is None:
            with pytest.raises(ParseError):
                parse_preference(row["completion"], LABELS, ties=False)
        else:
            said = parse_preference(row["completion"], LABELS, ties=False)
            assert ("1" if (said == LABELS[0]) != row["swap"] else "2") == row["winner"], row


async def test_replayed_in_both_orders(rows: list[Row]) -> None:
    pairs = defaultdict[tuple[object, ...], dict[bool, Row]](dict)
    for row in rows:
        pairs[row["evaluator"], row["method"], row["subset"], row["idx"]][row["swap"]] = row
    seen = set[str]()
    for recorded in list(pairs.values())[::7]:

        def script(request: ChatRequest, recorded: dict[bool, Row] = recorded) -> str:
            return str(recorded[side_of(request, "one") == "B"]["completion"])

        result = await PairwiseJudge(MockModel(script), ties=False, max_attempts=1).compare_texts("t", "one", "two")
        winners = {row["winner"] for row in recorded.values()}
        if None in winners:
            assert result.failure is not None and result.failure.kind is FailureKind.EMPTY
            seen.add("failed")
        elif len(winners) == 2:
            assert (result.winner, result.consistent) == ("tie", False)
            seen.add("flipped")
        else:
            assert result.winner == {"1": "first", "2": "second"}[winners.pop()] and result.consistent
            seen.add("agreed")
    assert {"flipped", "agreed"} <= seen


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Output (a)", "Output (a)"),
        ("Output (b).", "Output (b)"),
        ("(b)", "Output (b)"),
        ("Therefore, Output (b) is better.", "Output (b)"),
        ("A fair answer needs care. Output (a) is better than Output (b).", "Output (a)"),
        ("Winner: Output (a)", "Output (a)"),
        ("[[b]]", "Output (b)"),
    ],
)
def test_labels_in_brackets(reply: str, label: str) -> None:
    assert parse_preference(reply, LABELS, ties=False) == label


@pytest.mark.parametrize("reply", ["", "A fair answer needs care.", "Output (a) and Output (b)", "Output (c)"])
def test_labels_in_brackets_that_are_not_plain(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_preference(reply, LABELS, ties=False)
