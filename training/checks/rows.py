"""Labelled checks as rows with the columns prompt, response, rubric and gold, which `rubricate score` reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rubricate.data.io import write_jsonl
from rubricate.errors import ConfigError
from rubricate.judges.calibrated import Labelled
from rubricate.training.checks.sheets import sheets_of

__all__ = ["sheet_record", "write_sheets"]


def sheet_record(sheet: Sequence[Labelled]) -> dict[str, object]:
    """The row of one response: its texts, its criteria, and under `gold` whether each is met.

    Raises ConfigError for criteria of different responses, or two with one id.
    """
    rollout = sheet[0].rollout
    if any(item.rollout != rollout for item in sheet):
        raise ConfigError("these criteria belong to different responses", hint="sheets_of parts them")
    gold = {item.criterion.id: item.met for item in sheet}
    if len(gold) < len(sheet):
        raise ConfigError(f"two criteria of the response {rollout.id!r} have the same id")
    if not isinstance(rollout.prompt, str) or not isinstance(rollout.response, str):
        raise ConfigError(f"the response {rollout.id!r} is a conversation; a row holds a text")
    record: dict[str, object] = {"id": rollout.id, "prompt": rollout.prompt, "response": rollout.response}
    if rollout.reference is not None:
        record["reference"] = rollout.reference
    criteria = [
        {"id": item.criterion.id, "text": item.criterion.text, "tags": list(item.criterion.tags)} for item in sheet
    ]
    return {**record, "rubric": {"criteria": criteria}, "gold": gold}


def write_sheets(path: str | os.PathLike[str], made: Sequence[Labelled]) -> int:
    """Write one row a response as JSON Lines, atomically; returns their number.

    `rubricate score PATH` prints how far a judge agrees with the labels.
    """
    sheets = sheets_of(made)

    def records() -> Iterator[dict[str, object]]:
        for sheet in sheets:
            yield sheet_record(sheet)

    write_jsonl(path, records())
    return len(sheets)
