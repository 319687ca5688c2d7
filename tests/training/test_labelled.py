"""Labelled rows: what is read, what is refused, and that no prompt is on both sides of a split."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.training.conftest import WriteRows, labelled_rows

from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, FormatError
from rubricate.judges.calibrated import Labelled
from rubricate.rubrics import Criterion
from rubricate.training.labelled import read_labelled, split_labelled
from rubricate.training.recipe import DataSettings


def test_the_bundled_samples_are_labelled_rows() -> None:
    from rubricate.data.bundled import load_demo, sample_file

    with sample_file("demo.jsonl") as path:
        found = read_labelled(str(path))
    wanted = [label for sample in load_demo() for label in sample.gold.values()]
    assert len(found) == len(wanted)
    assert sum(item.met for item in found) == sum(wanted)


def test_labels_stay_with_their_criteria(labels: Path) -> None:
    for item in read_labelled(str(labels)):
        named = item.criterion.text.removeprefix("Names the ").rstrip(".")
        assert item.met == (named in str(item.rollout.response))


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"gold": None}, "gold", "there are no gold labels"),
        ({"gold": {"a": "yes"}}, "gold.a", "expected true or false"),
        ({"gold": {"z": True}}, "gold.z", "no criterion has this id"),
        ({"gold": [{"a": True}, {"a": True}]}, "gold", "labels of 1 responses"),
        ({"gold": [3]}, "gold[0]", "expected an object"),
        ({"rubric": None}, "rubric", ""),
    ],
)
def test_wrong_rows_are_named(write_rows: WriteRows, change: dict[str, object], field: str, says: str) -> None:
    rows = labelled_rows(3)
    rows[1] = {**rows[1], **change}
    path = write_rows(rows)
    with pytest.raises(FormatError) as caught:
        read_labelled(str(path))
    assert (caught.value.line, caught.value.field) == (2, field)
    assert says in str(caught.value)


def test_what_cannot_be_used_is_said(write_rows: WriteRows) -> None:
    rows = copy.deepcopy(labelled_rows(3))
    rows[0]["gold"] = {"a": True}
    notes: list[str] = []
    assert len(read_labelled(str(write_rows(rows)), notes=notes)) == 5
    assert notes and "1 criteria without a label" in notes[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_prompt_is_trained_on_and_evaluated_on(labels: Path, seed: int) -> None:
    splits = split_labelled(DataSettings(train=(str(labels),), held_out_share=0.2, seed=seed))
    parts = [{item.rollout.prompt for item in part} for part in (splits.own, splits.held_out, splits.calibration)]
    assert all(parts) and not splits.train
    assert sum(map(len, parts)) == len(set[object]().union(*parts)) == 12


def test_files_are_held_out_beside_generated_checks(labels: Path) -> None:
    asked: list[str] = []

    def generate(count: int, seed: int, split: str, checks: int) -> Sequence[Labelled]:
        asked.append(split)
        return [
            Labelled(Rollout(f"{split} {n}", "r"), Criterion(id="c", text="t"), n % 2 == 0) for n in range(count)
        ]

    mixed = split_labelled(DataSettings(train=("checks", str(labels)), sheets=7), generate)
    assert (asked, len(mixed.train)) == (["train"], 7)
    assert not mixed.unseen and all("Name a thing" in str(item.rollout.prompt) for item in mixed.held_out)
    asked.clear()
    alone = split_labelled(DataSettings(train=("checks",), sheets=7, held_out_sheets=3), generate)
    assert asked == ["train", "held_out", "unseen_kinds", "held_out"]
    assert (len(alone.held_out), len(alone.unseen), len(alone.calibration)) == (3, 3, 3)


def test_too_little_to_hold_out_is_an_error(write_rows: WriteRows) -> None:
    path = write_rows(labelled_rows(2))
    with pytest.raises(ConfigError, match="nothing is held out"):
        split_labelled(DataSettings(train=(str(path),)))


def test_a_prompt_of_two_files_is_on_one_side(write_rows: WriteRows) -> None:
    """The second file says of the same prompts what another model answered."""
    rows = labelled_rows()
    other = [{**row, "response": "None."} for row in reversed(rows)]
    paths = (str(write_rows(rows, "one.jsonl")), str(write_rows(other, "two.jsonl")))
    splits = split_labelled(DataSettings(train=paths, held_out_share=0.25))
    parts = [
        {repr(item.rollout.prompt) for item in part} for part in (splits.own, splits.held_out, splits.calibration)
    ]
    assert [len(part) for part in parts] == [6, 3, 3]
    assert len(parts[0] | parts[1] | parts[2]) == 12
    assert splits.notes == []


def test_doubtful_data_are_said(write_rows: WriteRows) -> None:
    rows = labelled_rows()
    torn = {**rows[0], "gold": {"a": False, "b": True}}
    path = str(write_rows([*rows, torn]))
    notes = split_labelled(DataSettings(train=(path,), held_out=(path,), calibration=(path,))).notes
    assert [note.split(" ", 1) for note in notes] == [
        ["12", "prompts that are evaluated on are trained on, too"],
        ["12", "prompts that are calibrated with are trained on, too"],
        ["2", "criteria are labelled both true and false for one response"],
    ]
