"""Shared fixtures: public data that lies beside the checkout, where there is some."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# OpenMP threads that spin while they wait slow torch many times over where other programs use the cores too.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Shared machines stall now and then: how long one example takes says nothing.
settings.register_profile("rubricate", deadline=None)
settings.load_profile("rubricate")

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("RUBRICATE_SHARED", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """`shared("ifeval")` is that folder of public data; the test is skipped where it is absent."""

    def folder(name: str) -> Path:
        path = SHARED / name
        if not path.is_dir():
            pytest.skip(f"public data not present: {path} (set RUBRICATE_SHARED)")
        return path

    return folder
