"""Runs of a tiny model: the loss falls, what is saved says the same, and a killed run comes to the same end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.local.conftest import save_model
from tests.training.conftest import WriteRows, labelled_rows

from rubricate.bridge import run_sync
from rubricate.chat.local import load_local
from rubricate.errors import ConfigError
from rubricate.judges.bundle import load_judge
from rubricate.judges.calibrated import gather_probabilities
from rubricate.judges.logprob import LogprobJudge
from rubricate.narrow import as_object
from rubricate.training.journal import last_checkpoint, read_metrics
from rubricate.training.labelled import read_labelled
from rubricate.training.recipe import Recipe, load_recipe
from rubricate.training.sft import train_sft

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

LORA = {"lora": {"r": 4, "alpha": 8, "dropout": 0.1}}


def recipe(labels: Path, *changes: str, **values: object) -> Recipe:
    fixed: dict[str, object] = {
        "data.train": [str(labels)],
        "data.held_out_share": 0.25,
        "run.max_steps": 12,
        "run.batch": 4,
        "run.micro_batch": 2,
        "run.eval_every": 4,
        "run.log_every": 2,
    }
    return load_recipe("tiny", changes, values={**fixed, **values})


def measured(folder: Path) -> list[dict[str, float]]:
    """What a run measured, without its times."""
    lines = read_metrics(folder / "metrics.jsonl")
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def test_a_run_trains_and_its_judge_says_what_the_model_said(tmp_path: Path, labels: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "run"
    trained = train_sft(recipe(labels, "run.max_steps=30"), folder, say=said.append)
    losses = [line["loss"] for line in measured(folder) if "loss" in line]
    assert losses[-1] < 0.25 * losses[0]
    assert trained.judge == folder / "judge"
    # too few labels for a calibration, and that is said
    assert str(trained.result["calibration"]).startswith("none: ") and any(
        "calibration: none" in line for line in said
    )
    judge = load_judge(folder / "judge")
    asked = read_labelled(str(labels))
    probabilities = run_sync(gather_probabilities(judge, asked)).probabilities
    assert len(probabilities) == 24
    model = load_local(str(folder / "model"), device="cpu")
    again = run_sync(gather_probabilities(LogprobJudge(model), asked)).probabilities
    assert again == pytest.approx(probabilities, abs=1e-6)
    run_sync(judge.aclose())
    run_sync(model.aclose())
    held_out = as_object((as_object(trained.result["judge"]) or {})["held_out"]) or {}
    assert held_out["loss"] == pytest.approx((as_object(trained.result["trained"]) or {})["loss"], rel=1e-4)
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<polyline" in page and "Held-out AUC" in page and "<script" not in page and "//" not in page


def test_the_folder_says_what_was_asked_for_before_anything_is_trained(tmp_path: Path, labels: Path) -> None:
    class Stop(Exception):
        pass

    def stop(line: str) -> None:
        if line.startswith("step"):
            raise Stop

    with pytest.raises(Stop):
        train_sft(recipe(labels, **LORA), tmp_path / "run", say=stop)
    assert load_recipe(tmp_path / "run" / "recipe.yaml") == recipe(labels, **LORA)
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert {"torch", "trl", "rubricate"} <= record["versions"].keys()
    assert record["data"]["train"]["responses"] == 6 and record["data"]["fingerprint"]
    assert record["data"]["train"]["tokens"] < record["data"]["train"]["tokens_if_separate"]


KILLED = """
import os, signal, sys
from pathlib import Path
from rubricate.training.recipe import load_recipe
from rubricate.training.sft import train_sft

def say(line):
    if line.startswith("step 6 "):
        os.kill(os.getpid(), signal.SIGKILL)

train_sft(load_recipe(sys.argv[1]), sys.argv[2], say=say)
"""


def test_a_killed_run_comes_to_the_same_end(tmp_path: Path, labels: Path) -> None:
    from rubricate.data.io import write_yaml

    chosen = recipe(labels, **LORA)
    write_yaml(tmp_path / "recipe.yaml", chosen.resolved())
    command = [sys.executable, "-c", KILLED, str(tmp_path / "recipe.yaml"), str(tmp_path / "killed")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -9
    unfinished = tmp_path / "killed" / "checkpoints" / "checkpoint-8"
    unfinished.mkdir()  # as a run leaves it that is killed while it saves
    (unfinished / "adapter_config.json").write_text("{")
    assert [line["step"] for line in measured(tmp_path / "killed")][-1] == 6
    going_on = train_sft(chosen, tmp_path / "killed", resume=True)
    whole = train_sft(chosen, tmp_path / "whole")
    assert measured(tmp_path / "killed") == measured(tmp_path / "whole")
    names = ("steps", "best_step", "trained", "judge")
    assert {name: going_on.result[name] for name in names} == {name: whole.result[name] for name in names}


def test_adapters_are_small_and_belong_to_their_base(tmp_path: Path, labels: Path) -> None:
    trained = train_sft(recipe(labels, "run.max_steps=4", **LORA), tmp_path / "run")
    adapter = tmp_path / "run" / "adapter"
    with (adapter / "adapter_model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    assert {entry["dtype"] for name, entry in header.items() if name != "__metadata__"} == {"BF16"}
    assert sorted(path.name for path in adapter.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    assert trained.judge is not None and load_judge(trained.judge).name


def test_a_run_is_not_written_over(tmp_path: Path, labels: Path) -> None:
    chosen = recipe(labels, "run.max_steps=2", "run.eval_every=2")
    with pytest.raises(ConfigError, match="no run lies"):
        train_sft(chosen, tmp_path / "run", resume=True)
    train_sft(chosen, tmp_path / "run")
    with pytest.raises(ConfigError, match="a run lies"):
        train_sft(chosen, tmp_path / "run")
    with pytest.raises(ConfigError, match="run.seed = 0, not 1"):
        train_sft(
            recipe(labels, "run.max_steps=2", "run.eval_every=2", "run.seed=1"), tmp_path / "run", resume=True
        )
    before = measured(tmp_path / "run")
    train_sft(chosen, tmp_path / "run", resume=True)  # at its end: nothing more to do
    assert measured(tmp_path / "run") == before


def test_other_data_are_another_run(tmp_path: Path, write_rows: WriteRows) -> None:
    path = write_rows(labelled_rows(12))
    chosen = recipe(path, "run.max_steps=2", "run.eval_every=2")
    train_sft(chosen, tmp_path / "run")
    write_rows(labelled_rows(11))
    with pytest.raises(ConfigError, match="data are not those"):
        train_sft(chosen, tmp_path / "run", resume=True)


def test_time_is_up(tmp_path: Path, labels: Path) -> None:
    trained = train_sft(recipe(labels, "run.max_minutes=1e-6"), tmp_path / "run")
    assert (trained.result["stopped_by_time"], trained.result["steps"]) == (True, 1)
    assert last_checkpoint(tmp_path / "run" / "checkpoints") is not None
    assert trained.judge is not None


@pytest.mark.parametrize("precision", ["bf16_autocast", "bf16"])
def test_bf16_learns_as_well(tmp_path: Path, labels: Path, precision: str) -> None:
    train_sft(recipe(labels, f"model.precision={precision}", "run.max_steps=20", **LORA), tmp_path / "run")
    losses = [line["loss"] for line in measured(tmp_path / "run") if "loss" in line]
    assert losses[-1] < losses[0]


def test_texts(tmp_path: Path, write_rows: WriteRows) -> None:
    path = write_rows([{"prompt": f"Count to {n}: ", "completion": "one two three"} for n in range(12)])
    values: Mapping[str, object] = {"objective": "text", "run.max_steps": 20}
    trained = train_sft(recipe(path, **values), tmp_path / "run")
    found = [as_object(trained.result[name]) or {} for name in ("untrained", "trained")]
    before, after = (float(str(part["loss"])) for part in found)
    assert after < 0.5 * before
    assert trained.judge is None and (tmp_path / "run" / "model" / "model.safetensors").exists()


def test_a_model_with_windows_trains_on_texts_but_not_on_trees(
    tmp_path: Path, labels: Path, write_rows: WriteRows
) -> None:
    model = save_model(tmp_path / "sliding", "sliding")
    with pytest.raises(ConfigError, match="cannot share a row"):
        train_sft(recipe(labels, f"model.name={model}"), tmp_path / "judge")
    path = write_rows([{"prompt": f"Count to {n}: ", "completion": "one two three"} for n in range(12)])
    said: list[str] = []
    values: Mapping[str, object] = {"objective": "text", "model.name": str(model), "run.max_steps": 4}
    trained = train_sft(recipe(path, **values), tmp_path / "run", say=said.append)
    assert trained.result["steps"] == 4
    assert any("not packed" in line for line in said)
