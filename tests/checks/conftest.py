"""Sheets made once for all tests here."""

from __future__ import annotations

import pytest

from rubricate.judges.calibrated import Labelled
from rubricate.training.checks import make_sheets


@pytest.fixture(scope="session")
def train() -> list[Labelled]:
    """Six hundred training sheets."""
    return make_sheets(600, seed=1)


@pytest.fixture(scope="session")
def held_out() -> list[Labelled]:
    """Three hundred sheets of held-out topics and phrases."""
    return make_sheets(300, seed=1, split="held_out")
