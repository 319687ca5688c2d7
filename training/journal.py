"""What a run leaves behind while it trains: a line a measurement, checkpoints that are whole, and its time."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from transformers import TrainerCallback

from rubricate.data.io import parse_json, write_json, write_jsonl
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_number, as_object

__all__ = ["METRICS", "Journal", "Standing", "is_measure", "last_checkpoint", "read_metrics", "standing"]

METRICS = "metrics.jsonl"
_WHOLE = "complete"
_LEFT_OUT = ("train_", "total_flos", "num_tokens", "_runtime", "_per_second", "entropy", "mean_token_accuracy")


class _State(Protocol):
    global_step: int
    max_steps: int
    epoch: float | None
    is_world_process_zero: bool


class _Control(Protocol):
    should_training_stop: bool
    should_evaluate: bool
    should_save: bool


class _Arguments(Protocol):
    output_dir: str


def last_checkpoint(folder: Path) -> tuple[int, Path] | None:
    """Step and path of the newest whole checkpoint. Those that a killed run has left unfinished are removed."""
    found: list[tuple[int, Path]] = []
    for path in folder.glob("checkpoint-*"):
        if (path / _WHOLE).exists():
            found.append((int(path.name.removeprefix("checkpoint-")), path))
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(found, default=None)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stood at a checkpoint.

    Attributes:
        over: the run was to stop there, because it had made all its steps, by its time or for lack of progress.
        all_steps: it had made all of them.
        unimproved: evaluations in a row that were no better than the best, where the run counts them.
        best: the checkpoint that evaluated best, if it is still there.
    """

    over: bool
    all_steps: bool
    unimproved: int
    best: Path | None


def standing(checkpoint: Path) -> Standing:
    """Where a run stood, read from a checkpoint, which is made to name the best one where the folder lies now."""
    path = checkpoint / "trainer_state.json"
    state = dict(as_object(parse_json(path.read_text(encoding="utf-8"), source=str(path))) or {})
    best: Path | None = None
    if isinstance(named := state.get("best_model_checkpoint"), str):
        best = checkpoint.parent / Path(named).name
        if str(best) != named:
            write_json(path, {**state, "best_model_checkpoint": str(best)})
    parts = as_object(state.get("stateful_callbacks")) or {}
    order = as_object((as_object(parts.get("TrainerControl")) or {}).get("args")) or {}
    patience = as_object((as_object(parts.get("EarlyStoppingCallback")) or {}).get("attributes")) or {}
    steps, most = (as_number(state.get(name)) or 0.0 for name in ("global_step", "max_steps"))
    return Standing(
        over=order.get("should_training_stop") is True,
        all_steps=steps >= most,
        unimproved=int(as_number(patience.get("early_stopping_patience_counter")) or 0),
        best=best if best is not None and best.is_dir() else None,
    )


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The lines of a run's metrics; one that was cut off while being written is left out."""
    lines: list[dict[str, float]] = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            fields = as_object(parse_json(text)) or {}
        except FormatError:
            continue
        lines.append({name: number for name, value in fields.items() if (number := as_number(value)) is not None})
    return lines


class Journal(TrainerCallback):
    """Writes `metrics.jsonl`, marks checkpoints that are whole, and stops a run whose time is up.

    Args:
        folder: of the run.
        resumed: step of the checkpoint that the run goes on from; what was measured after it is measured again.
        minutes: time limit, over all parts of the run.
        evaluates: whether there are rows to evaluate on.
        say: is given each line for people.
    """

    def __init__(
        self,
        folder: Path,
        *,
        resumed: int | None,
        minutes: float | None,
        evaluates: bool = True,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.path = folder / METRICS
        known = read_metrics(self.path) if resumed is not None else []
        kept = [line for line in known if line["step"] <= (resumed or 0)]
        write_jsonl(self.path, kept)
        self._before = max((line.get("seconds", 0.0) for line in kept), default=0.0)
        self._limit = None if minutes is None else 60.0 * minutes
        self._evaluates = evaluates
        self._say = say
        self._start = time.monotonic()
        self._expired = self._limit is not None and self._before > self._limit
        self._open = True

    @property
    def seconds(self) -> float:
        """Time of training so far, that before a resumption included."""
        return self._before + time.monotonic() - self._start

    @property
    def expired(self) -> bool:
        """Whether the time limit ended the run."""
        return self._expired

    def close(self) -> float:
        """What comes now is written no more. Returns the seconds of training."""
        self._open = False
        return self.seconds

    def on_train_begin(self, args: object, state: object, control: object, **kwargs: object) -> None:
        """The clock starts."""
        self._start = time.monotonic()

    def on_log(
        self,
        args: object,
        state: object,
        control: object,
        logs: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Append a line. Raises ConfigError where the loss is no number any more: nothing is saved after that."""
        at = cast("_State", state)
        for name in ("loss", "eval_loss"):
            value = (logs or {}).get(name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(
                    f"the loss is {value} after step {at.global_step}: training has diverged",
                    hint="lower optimiser.learning_rate, or take model.precision=fp32",
                )
        numbers = {name: as_number(value) for name, value in (logs or {}).items() if is_measure(name)}
        known = {name: value for name, value in numbers.items() if value is not None}
        if not known or not self._open or not at.is_world_process_zero:
            return
        line = {"step": at.global_step, "epoch": at.epoch or 0.0, **known, "seconds": round(self.seconds, 1)}
        line.pop("eval_seconds", None)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._say is not None:
            self._say("  ".join(f"{name} {value:g}" for name, value in _rounded(line).items()))

    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        """Evaluate and save the last step, which may come early: where the time is up, the run stops."""
        order = cast("_Control", control)
        at = cast("_State", state)
        if at.global_step >= at.max_steps:
            order.should_save = True
            order.should_evaluate = self._evaluates
        if self._limit is not None and self.seconds > self._limit:
            self._expired = True
            order.should_training_stop = order.should_save = True
            order.should_evaluate = self._evaluates

    def on_save(self, args: object, state: object, control: object, **kwargs: object) -> None:
        """Mark the checkpoint as whole."""
        name = f"checkpoint-{cast('_State', state).global_step}"
        place = Path(cast("_Arguments", args).output_dir) / name
        if place.is_dir():
            (place / _WHOLE).touch()


def is_measure(name: str) -> bool:
    """Whether a number of the trainer's log is one of the run's; its times and counts of its own are not."""
    return name != "epoch" and not any(part in name for part in _LEFT_OUT)


def _rounded(line: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in line.items()}
