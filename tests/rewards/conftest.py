"""Hypothesis without a time limit an example (the machine may be busy) and with the same examples in every run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("rewards", deadline=None, derandomize=True)
settings.load_profile("rewards")
