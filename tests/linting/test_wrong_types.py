"""What `lint` says to callers that give it something else than rubrics."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from rubricate.errors import ConfigError
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.linting import lint

RECORD: dict[str, object] = {"criteria": ["Names a price."]}
GOOD = Rubric(criteria=(Criterion(id="a", text="Names a price."),))


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("bad.yaml", "lint(load_rubrics('bad.yaml'))"),
        (Path("bad.yaml"), "lint(load_rubrics('bad.yaml'))"),
        (["bad.yaml"], "lint(load_rubrics('bad.yaml'))"),
        (RECORD, "parse_rubric(record)"),
        ([GOOD, RECORD], "parse_rubric(record)"),
        (GOOD.criteria, "Rubric(criteria=(...,))"),
        (GOOD.criteria[0], "Rubric(criteria=(...,))"),
        (None, "load_rubrics returned"),
        (b"rubric", "load_rubrics returned"),
    ],
)
def test_what_is_no_rubric_is_an_error_that_says_what_to_give(given: object, hint: str) -> None:
    with pytest.raises(ConfigError, match="lint takes rubrics") as caught:
        lint(cast("Rubric", given))
    assert hint in caught.value.hint


def test_the_place_in_a_list_is_named() -> None:
    with pytest.raises(ConfigError, match=r"not dict at \[1\]"):
        lint([GOOD, cast("Rubric", {})])


def test_codes_are_a_list_and_prompts_are_texts() -> None:
    for chosen in ("C501", "C"):
        with pytest.raises(ConfigError, match="by a list of codes"):
            lint(GOOD, select=chosen)
        with pytest.raises(ConfigError, match="by a list of codes"):
            lint(GOOD, ignore=chosen)
    with pytest.raises(ConfigError, match=r"prompts\[0\] is no text but int"):
        lint(GOOD, prompts=[cast("str", 3)])
