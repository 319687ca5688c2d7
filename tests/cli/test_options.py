"""Options that are small languages: what they accept, and what the error says."""

from __future__ import annotations

import pytest

from rubricate.cli.options import read_columns, read_per_call, read_prices
from rubricate.errors import ConfigError


def test_columns() -> None:
    assert read_columns(["prompt=question", "id=a=b"]) == {"prompt": "question", "id": "a=b"}


@pytest.mark.parametrize("value", ["prompt", "=x", "prompt="])
def test_what_is_no_pair_is_named(value: str) -> None:
    with pytest.raises(ConfigError, match=value):
        read_columns([value])


def test_prices() -> None:
    assert read_prices(None) is None
    assert read_prices("0.25,2") == (0.25, 2.0)


@pytest.mark.parametrize("value", ["1", "a,b", "1,2,3", ""])
def test_prices_that_are_not_two_numbers(value: str) -> None:
    with pytest.raises(ConfigError, match="PROMPT,COMPLETION"):
        read_prices(value)


def test_criteria_a_call() -> None:
    assert read_per_call("4") == 4
    assert read_per_call("all") is None


@pytest.mark.parametrize("value", ["0", "-1", "some", "1.5"])
def test_criteria_a_call_that_is_no_number(value: str) -> None:
    with pytest.raises(ConfigError, match="criteria-per-call"):
        read_per_call(value)
