"""Small files to train on: labelled responses, and texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

THINGS = ("apple", "boat", "cloud", "drum", "egg", "fox", "goat", "hat", "ink", "jar", "kite", "lamp")


def labelled_rows(count: int = 12) -> list[dict[str, object]]:
    """Rows with two criteria, of which one is met: which thing a response names."""
    rows: list[dict[str, object]] = []
    for number in range(count):
        thing, other = THINGS[number % len(THINGS)], THINGS[(number + 5) % len(THINGS)]
        criteria = [{"id": "a", "text": f"Names the {thing}."}, {"id": "b", "text": f"Names the {other}."}]
        met = number % 2 == 0
        rows.append(
            {
                "prompt": f"Name a thing, number {number}.",
                "response": f"It is the {thing if met else other}.",
                "rubric": {"criteria": criteria},
                "gold": {"a": met, "b": not met},
            }
        )
    return rows


WriteRows = Callable[..., Path]


@pytest.fixture
def write_rows(tmp_path: Path) -> WriteRows:
    """`write_rows(rows, name)` writes JSON Lines and gives the path."""

    def write(rows: Sequence[Mapping[str, object]], name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def labels(write_rows: WriteRows) -> Path:
    """Twelve labelled responses."""
    return write_rows(labelled_rows(), "labels.jsonl")
