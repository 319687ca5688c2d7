"""The folder of a run: one run at a time, nothing of anybody else's written over, nothing half-written left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubricate.errors import ConfigError
from rubricate.training.recipe import load_recipe
from rubricate.training.run_folder import RunFolder, whole_folder

RECIPE = load_recipe("tiny")


def begun(path: Path) -> None:
    """A folder in which a run has begun and ended."""
    folder = RunFolder(path, RECIPE, resume=False)
    folder.describe({"fingerprint": "f"}, threads=1, device="cpu")
    folder.close()


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "run", RECIPE, resume=False)
    with pytest.raises(ConfigError, match="another run goes on"):
        RunFolder(tmp_path / "run", RECIPE, resume=False)
    first.close()
    RunFolder(tmp_path / "run", RECIPE, resume=False).close()


@pytest.mark.parametrize("name", ["checkpoints", "model", "adapter", "judge"])
def test_what_others_have_made_is_not_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match=f"holds {name}/, but no run"):
        RunFolder(tmp_path, RECIPE, resume=False)


def test_other_files_may_lie_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".mine.part").write_text("mine")
    begun(tmp_path)
    assert (tmp_path / "notes.txt").exists() and (tmp_path / ".mine.part").exists()


def test_a_place_that_can_be_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match="no run can be written"):
            RunFolder(place, RECIPE, resume=False)


@pytest.mark.parametrize("text", ["{", "[]", "{}", "null", "\x00"])
def test_a_record_that_cannot_be_read_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ConfigError, match=r"run\.json cannot be read"):
        RunFolder(tmp_path, RECIPE, resume=True)


def test_what_a_killed_run_left_half_written_goes(tmp_path: Path) -> None:
    begun(tmp_path / "run")
    for name in (".model.0123abcd.part", ".judge.0123abcd.old"):
        (tmp_path / "run" / name).mkdir()
    RunFolder(tmp_path / "run", RECIPE, resume=True).close()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["recipe.yaml", "run.json"]


def test_other_versions_are_said(tmp_path: Path) -> None:
    begun(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    record["versions"]["torch"] = "1.0"
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    folder = RunFolder(tmp_path, RECIPE, resume=True)
    notes = folder.describe({"fingerprint": "f"}, threads=1, device="cpu")
    folder.close()
    assert len(notes) == 1 and "it began with 1.0" in notes[0]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def write(text: str, *, fails: bool) -> None:
        with whole_folder(tmp_path / "model") as part:
            (part / text).write_text(text)
            if fails:
                raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write("a", fails=True)
    assert list(tmp_path.iterdir()) == []
    write("b", fails=False)
    with pytest.raises(OSError, match="full"):
        write("c", fails=True)
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["b"]
    write("d", fails=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "d"]
