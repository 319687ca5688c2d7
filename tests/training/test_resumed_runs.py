"""Runs that go on: ended ones stay as they are, and what was best is found wherever the folder lies now."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.training.conftest import WriteRows, labelled_rows

from rubricate.data.io import write_yaml
from rubricate.errors import ConfigError
from rubricate.narrow import as_object
from rubricate.training.journal import standing
from rubricate.training.recipe import Recipe, load_recipe
from rubricate.training.sft import train_sft

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


def recipe(rows: Path, **values: object) -> Recipe:
    fixed: dict[str, object] = {
        "data.train": [str(rows)],
        "data.held_out_share": 0.25,
        "run.max_steps": 2,
        "run.batch": 2,
        "run.micro_batch": 2,
        "run.eval_every": 2,
        "run.log_every": 1,
    }
    return load_recipe("tiny", values={**fixed, **values})


def files_of(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}


@pytest.mark.parametrize("values", [{}, {"run.keep_best": False}, {"lora": {"r": 2}}, {"run.patience": 1}])
def test_an_ended_run_is_not_trained_on(tmp_path: Path, labels: Path, values: Mapping[str, object]) -> None:
    """2 steps of 3 in an epoch: the trainer would go on to the end of the third."""
    chosen = recipe(labels, **values)
    first = train_sft(chosen, tmp_path / "run").result
    weights = None if chosen.lora else files_of(tmp_path / "run")
    again = train_sft(chosen, tmp_path / "run", resume=True).result
    assert {name: again[name] for name in again if name != "seconds"} == {
        name: first[name] for name in first if name != "seconds"
    }
    assert weights is None or files_of(tmp_path / "run") == weights
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["checkpoint-2"]


def test_a_run_that_was_moved_finds_its_best(tmp_path: Path, labels: Path) -> None:
    train_sft(recipe(labels), tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    checkpoint = tmp_path / "moved" / "checkpoints" / "checkpoint-2"
    stood = standing(checkpoint)
    assert stood.over and stood.all_steps and stood.best == checkpoint
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    assert state["best_model_checkpoint"] == str(checkpoint)
    assert train_sft(recipe(labels), tmp_path / "moved", resume=True).result["best_step"] == 2


def test_evaluations_without_progress_count_over_a_resumption(tmp_path: Path) -> None:
    state = {
        "global_step": 4,
        "max_steps": 9,
        "best_model_checkpoint": str(tmp_path / "gone" / "checkpoint-2"),
        "stateful_callbacks": {
            "TrainerControl": {"args": {"should_training_stop": False}},
            "EarlyStoppingCallback": {"attributes": {"early_stopping_patience_counter": 1}},
        },
    }
    checkpoint = tmp_path / "checkpoint-4"
    checkpoint.mkdir()
    (checkpoint / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")
    stood = standing(checkpoint)
    assert (stood.over, stood.all_steps, stood.unimproved, stood.best) == (False, False, 1, None)


def test_training_that_diverges_is_an_error_and_no_judge(tmp_path: Path, labels: Path) -> None:
    for number, every in enumerate((2, 6)):
        values = {"optimiser.learning_rate": 1e38, "run.max_steps": 6, "run.eval_every": every}
        with pytest.raises(ConfigError, match="training has diverged"):
            train_sft(recipe(labels, **values), tmp_path / f"run{number}")
        assert not (tmp_path / f"run{number}" / "judge").exists()
        lines = (tmp_path / f"run{number}" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        assert all(math.isfinite(value) for line in lines for value in json.loads(line).values())


def test_a_tiny_model_is_made_anew_for_a_new_run(tmp_path: Path, labels: Path) -> None:
    with pytest.raises(ConfigError, match="nothing is left"):
        train_sft(recipe(labels, **{"data.max_tokens": 8, "run.seed": 1}), tmp_path / "run")
    (tmp_path / "run" / "base" / "tokenizer.json").write_text("{")  # as a killed run could leave it
    train_sft(recipe(labels), tmp_path / "run")
    train_sft(recipe(labels), tmp_path / "other")
    weights = [(tmp_path / name / "base" / "model.safetensors").read_bytes() for name in ("run", "other")]
    assert weights[0] == weights[1]


def test_texts_with_nothing_held_out(tmp_path: Path, write_rows: WriteRows) -> None:
    path = write_rows([{"prompt": "a", "completion": "b"}])
    trained = train_sft(recipe(path, objective="text"), tmp_path / "run")
    assert (trained.result["steps"], trained.result["trained"], trained.result["best_step"]) == (2, {}, None)
    assert train_sft(recipe(path, objective="text"), tmp_path / "run", resume=True).result["steps"] == 2


def test_texts_of_one_word_are_packed(tmp_path: Path, write_rows: WriteRows) -> None:
    path = write_rows([{"prompt": f"{'w ' * n}", "completion": "w"} for n in range(1, 9)])
    said: list[str] = []
    trained = train_sft(recipe(path, objective="text"), tmp_path / "run", say=said.append)
    assert not any("not packed" in line for line in said)
    assert set(as_object(trained.result["trained"]) or {}) == {"loss"}


def test_halves_of_surrogate_pairs(tmp_path: Path, write_rows: WriteRows) -> None:
    rows = labelled_rows()
    rows[3]["prompt"] = "half \ud83d of one"
    assert train_sft(recipe(write_rows(rows)), tmp_path / "run").judge is not None


FULL = """
import resource, sys
from rubricate.errors import ConfigError
from rubricate.training.recipe import load_recipe
from rubricate.training.sft import train_sft

chosen, folder = load_recipe(sys.argv[1]), sys.argv[2]

def say(line):
    if line.startswith("step 1 "):  # the optimiser's state is larger than this
        resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))

try:
    train_sft(chosen, folder, say=say)
except ConfigError as error:
    print(error)
"""


def test_a_full_disk_is_said_and_the_run_goes_on_later(tmp_path: Path, labels: Path) -> None:
    chosen = recipe(labels)
    write_yaml(tmp_path / "recipe.yaml", chosen.resolved())
    command = [sys.executable, "-c", FULL, str(tmp_path / "recipe.yaml"), str(tmp_path / "run")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "cannot be written" in ended.stdout and "make room" in ended.stdout, ended.stderr
    assert not (tmp_path / "run" / "model").exists()
    assert train_sft(chosen, tmp_path / "run", resume=True).result["steps"] == 2
