"""Pairs have a better response that is not merely longer; rows are read by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubricate.cli.inputs import Inputs
from rubricate.errors import ConfigError
from rubricate.judges.calibrated import Labelled
from rubricate.training.checks import make_pairs, make_sheets, sheet_record, sheets_of, write_sheets


def test_one_response_of_a_pair_fulfils_more() -> None:
    pairs = make_pairs(150, seed=5)
    assert pairs == make_pairs(150, seed=5)
    assert len(pairs) == 150
    for pair in pairs:
        assert 3 <= len(pair.rubric) <= 6
        assert len(pair.chosen_met) == len(pair.rejected_met) == len(pair.rubric)
        assert sum(pair.chosen_met) > sum(pair.rejected_met)
        assert pair.preference.chosen != pair.preference.rejected
    assert any(b and not a for pair in pairs for a, b in zip(pair.chosen_met, pair.rejected_met, strict=True))


def test_the_better_response_of_a_pair_is_not_told_by_its_length() -> None:
    lengths = [(len(pair.preference.chosen), len(pair.preference.rejected)) for pair in make_pairs(300, seed=6)]
    assert 0.42 < sum(a > b for a, b in lengths) / len(lengths) < 0.58
    apart = sum(abs(a - b) for a, b in lengths) / sum(a + b for a, b in lengths)
    assert apart < 0.15


def test_rows_are_read_again_with_their_labels(tmp_path: Path) -> None:
    made = make_sheets(12, seed=7)
    path = tmp_path / "checks.jsonl"
    assert write_sheets(path, made) == 12
    for unit, sheet in zip(Inputs(path), sheets_of(made), strict=True):
        assert unit.gold == {item.criterion.id: item.met for item in sheet}
        assert [c.text for c in unit.rubric.criteria] == [item.criterion.text for item in sheet]
        assert [c.tags for c in unit.rubric.criteria] == [item.criterion.tags for item in sheet]
        rollout = sheet[0].rollout
        assert (unit.rollout.prompt, unit.rollout.response) == (rollout.prompt, rollout.response)
        assert unit.rollout.reference == rollout.reference


def test_a_row_holds_the_criteria_of_one_response_only(train: list[Labelled]) -> None:
    sheets = sheets_of(train)
    with pytest.raises(ConfigError, match="different responses"):
        sheet_record([sheets[0][0], sheets[1][0]])
    with pytest.raises(ConfigError, match="same id"):
        sheet_record([sheets[0][0], sheets[0][0]])
