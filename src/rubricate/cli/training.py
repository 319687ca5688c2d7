"""What `rubricate train` does."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from rubricate.data.io import read_rows
from rubricate.errors import ConfigError, MissingExtraError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.training.recipe import load_recipe

__all__ = ["run_sft"]

_PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")
_OWN = 600  # responses of one's own an epoch, by repetition, beside the generated ones


def run_sft(
    recipe: str, changes: Sequence[str], out: Path | None, *, resume: bool, judge_from: Path | None
) -> None:
    """Train, and say what came out."""
    chosen = load_recipe(recipe, changes, values=_own_labels(judge_from, changes))
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra="train")
    from rubricate.training.sft import train_sft

    folder = out or Path("runs") / Path(recipe).stem
    print(f"recipe {recipe}: {chosen.model.name}, objective {chosen.objective}, into {folder}", flush=True)
    trained = train_sft(chosen, folder, resume=resume, say=_say)
    print()
    for name, value in _stages(trained.result):
        print(f"{name:<24}" + "  ".join(f"{key} {number:.3f}" for key, number in value.items()))
    if trained.judge is not None:
        print(f"\njudge: {trained.judge}\n  rubricate score ... --judge bundle:{trained.judge}")
    print(f"page: {trained.page}")


def _say(line: str) -> None:
    print(line, flush=True)


def _own_labels(path: Path | None, changes: Sequence[str]) -> Mapping[str, object]:
    """What changes in a recipe that fits a judge to a file of labels; keys that the user sets stay."""
    if path is None:
        return {}
    responses = sum(len(as_array(row.record.get("responses")) or (None,)) for row in read_rows(path))
    values: dict[str, object] = {
        "objective": "answer",
        "data.train": ("checks", str(path)),
        "data.repeat": max(1, _OWN // responses),
        "data.held_out_share": 0.2,
        "run.eval_every": 20,
    }
    named = {change.partition("=")[0].strip() for change in changes}
    if "objective" in named:
        raise ConfigError("--judge-from fits a judge: its objective is answer", hint="leave --set objective out")
    return {key: value for key, value in values.items() if key not in named}


def _stages(result: Mapping[str, object]) -> list[tuple[str, dict[str, float]]]:
    stages = [("held out, before", result.get("untrained")), ("held out, trained", result.get("trained"))]
    judge = as_object(result.get("judge")) or {}
    stages += [(f"{name.replace('_', ' ')}, judge", value) for name, value in judge.items()]
    found: list[tuple[str, dict[str, float]]] = []
    for name, value in stages:
        numbers = {key: as_number(item) for key, item in (as_object(value) or {}).items()}
        known = {key: number for key, number in numbers.items() if number is not None}
        if known:
            found.append((name, known))
    return found
