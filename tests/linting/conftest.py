"""Files for the tests of the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.linting.planting import Record


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`write("name.jsonl", record, ...)` makes a file in the working folder and gives its name."""
    monkeypatch.chdir(tmp_path)

    def make(name: str, *records: Record) -> str:
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return make
