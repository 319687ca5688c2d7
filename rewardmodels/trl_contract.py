"""TRL's reward contract: columns in, numbers or None out, per-criterion columns and metrics to its logs."""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, cast

from rubricate.data.records import Rollout, parse_turns
from rubricate.errors import ConfigError, FormatError, UnscoredError
from rubricate.narrow import as_array
from rubricate.rubrics import Rubric
from rubricate.rubrics.formats import parse_rubric
from rubricate.types import FailureCause, Reward, RewardStatus

__all__ = ["TrainerOptions", "finish_call", "read_call", "trl_version"]

log = logging.getLogger(__name__)

MASKS_NONE = (1, 6)
AWAITS_INSTANCES = (1, 14)
_REFERENCE_COLUMNS = ("reference", "reference_answer", "solution")

Row = tuple[Rollout, Rubric | None]


@dataclass(frozen=True, slots=True)
class TrainerOptions:
    """The options of `RubricReward` that concern trainers; they are described there."""

    unscored: Literal["mask", "raise"] | float = "mask"
    num_generations: int | None = None
    rubric_column: str = "rubric"
    reference_column: str | None = None
    log_criteria: bool = True
    old_trl: Literal["raise", "warn"] = "raise"

    def __post_init__(self) -> None:
        if isinstance(self.unscored, str):
            known = self.unscored in ("mask", "raise")
        else:
            known = not isinstance(self.unscored, bool) and math.isfinite(self.unscored)
        if not known:
            raise ConfigError(f"unscored is {self.unscored!r}", hint="use 'mask', 'raise' or a finite number")
        if self.num_generations is not None and self.num_generations < 1:
            raise ConfigError(f"num_generations is {self.num_generations}", hint="use the trainer's group size")
        if self.old_trl not in ("raise", "warn"):
            raise ConfigError(f"old_trl is {self.old_trl!r}", hint="use 'raise' or 'warn'")

    def check_masks(self) -> None:
        """Complain of a TRL that would take None for 0, if None can occur."""
        if self.unscored == "mask":
            self._require(MASKS_NONE, "counts an unscored row as 0", "or pass unscored='raise' or a number")

    def check_awaits(self) -> None:
        """Complain of a TRL that would call an async instance and never await it."""
        self._require(
            AWAITS_INSTANCES, "does not await a reward object", "or use the reward itself, not as_async()"
        )

    def _require(self, floor: tuple[int, int], what: str, instead: str) -> None:
        found = trl_version()
        if found is None or found >= floor:
            return
        message = f"TRL {found[0]}.{found[1]} {what}; {floor[0]}.{floor[1]} is needed"
        if self.old_trl == "raise":
            raise ConfigError(message, hint=f"pip install 'trl>={floor[0]}.{floor[1]}', {instead}")
        log.warning("%s", message)


def trl_version() -> tuple[int, int] | None:
    """Major and minor version of the installed TRL, None without one. TRL itself is not imported."""
    try:
        text = version("trl")
    except PackageNotFoundError:
        return None
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def read_call(
    options: TrainerOptions, prompts: Sequence[object], completions: Sequence[object], columns: Mapping[str, object]
) -> list[Row]:
    """The rows of a reward call. Raises FormatError naming column and row, ConfigError for an old TRL."""
    options.check_masks()
    if len(prompts) != len(completions):
        raise FormatError(f"{len(prompts)} prompts and {len(completions)} completions")
    report_straddling(options, len(prompts))
    references = _references(options, columns, len(prompts))
    rubrics = _rubrics(options, columns, len(prompts))
    return [
        (
            Rollout(
                prompt=parse_turns(prompt, f"prompts[{index}]"),
                response=parse_turns(completion, f"completions[{index}]"),
                reference=references[index],
            ),
            rubrics[index],
        )
        for index, (prompt, completion) in enumerate(zip(prompts, completions, strict=True))
    ]


def finish_call(
    options: TrainerOptions,
    name: str,
    constant: Rubric | None,
    rewards: Sequence[Reward],
    columns: Mapping[str, object],
) -> list[float | None]:
    """Log the rewards and give the trainer its numbers.

    Args:
        constant: the rubric that all rows share, if any; its criteria are logged one by one.
        columns: the call's keyword arguments, for `log_extra` and `log_metric`.
    """
    log_extra, log_metric = columns.get("log_extra"), columns.get("log_metric")
    criteria = constant.ids if constant is not None and options.log_criteria else ()
    table = _table(rewards, criteria)
    if callable(log_extra):
        push = cast("Callable[[str, list[object]], object]", log_extra)
        for key, values in table.items():
            push(f"{name}/{key}", values)
    if callable(log_metric):
        note = cast("Callable[[str, float], object]", log_metric)
        for key, value in _metrics(rewards, table).items():
            note(f"{name}/{key}", value)
    return [_number(options, reward, index) for index, reward in enumerate(rewards)]


def report_straddling(options: TrainerOptions, rows: int) -> None:
    """Log which groups straddle ranks: rewards are right all the same, but a group's prefix is not shared."""
    size = options.num_generations
    if size is None or rows % size == 0:
        return
    rank = int(os.environ.get("RANK", "0"))
    first, last = rank * rows, (rank + 1) * rows
    cut = sorted({edge // size for edge in (first, last) if edge % size})
    log.warning(
        "%d completions on rank %d are not whole groups of %d: the groups %s straddle ranks; "
        "per_device_train_batch_size * steps_per_generation should be a multiple of num_generations",
        rows,
        rank,
        size,
        ", ".join(map(str, cut)),
    )


def _column(columns: Mapping[str, object], name: str, rows: int) -> Sequence[object] | None:
    if columns.get(name) is None:
        return None
    values = as_array(columns[name])
    if values is None or len(values) != rows:
        raise FormatError(f"expected a list with one entry for each of {rows} completions", field=name)
    return values


def _references(options: TrainerOptions, columns: Mapping[str, object], rows: int) -> list[str | None]:
    wanted = options.reference_column
    names = _REFERENCE_COLUMNS if wanted is None else (wanted,)
    name = next((name for name in names if columns.get(name) is not None), None)
    if name is None:
        if wanted is not None:
            raise FormatError("the data set has no such column", field=wanted)
        return [None] * rows
    found: list[str | None] = []
    for index, value in enumerate(_column(columns, name, rows) or ()):
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int | float)):
            raise FormatError(f"a reference is a text, not {type(value).__name__}", field=f"{name}[{index}]")
        found.append(None if value is None else str(value))
    return found


def _rubrics(options: TrainerOptions, columns: Mapping[str, object], rows: int) -> list[Rubric | None]:
    name = options.rubric_column
    values = _column(columns, name, rows)
    if values is None:
        return [None] * rows
    known: dict[str, Rubric] = {}  # the completions of a group have the same rubric
    found: list[Rubric | None] = []
    for index, value in enumerate(values):
        if value is None or isinstance(value, Rubric):
            found.append(value)
            continue
        key = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=repr)
        if key not in known:
            known[key] = parse_rubric(value, field=f"{name}[{index}]")
        found.append(known[key])
    return found


def _table(rewards: Sequence[Reward], criteria: Sequence[str]) -> dict[str, list[object]]:
    """One entry a reward in every column, under the same names in every call of a reward model."""
    table: dict[str, list[object]] = {
        "status": [reward.status.value for reward in rewards],
        "coverage": [reward.coverage for reward in rewards],
        "failure": [reward.failure.message if reward.failure is not None else "" for reward in rewards],
    }
    for channel in rewards[0].channels if rewards else ():
        table[f"channel/{channel}"] = [reward.channels[channel] for reward in rewards]
    scores = [{verdict.criterion_id: verdict.score for verdict in reward.verdicts} for reward in rewards]
    for criterion_id in criteria:
        table[f"criterion/{criterion_id}"] = [found.get(criterion_id) for found in scores]
    return table


def _metrics(rewards: Sequence[Reward], table: Mapping[str, Sequence[object]]) -> dict[str, float]:
    """Shares and means over the call; a mean of nothing is left out, since a trainer would average its NaN in."""
    if not rewards:
        return {}
    by_response = [r.failure is not None and r.failure.cause is FailureCause.RESPONSE for r in rewards]
    metrics = {
        "unscored": _mean([reward.value is None for reward in rewards]),
        "vetoed": _mean([reward.status is RewardStatus.VETOED for reward in rewards]),
        "failed_by_response": _mean(by_response),
        "coverage": _mean([reward.coverage for reward in rewards]),
        "judge_calls": float(sum(reward.usage.calls for reward in rewards)),
    }
    for key, values in table.items():
        if key.startswith(("channel/", "criterion/")):
            known = [value for value in values if isinstance(value, float | int)]
            if known:
                metrics[key] = _mean(known)
    return metrics


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _number(options: TrainerOptions, reward: Reward, index: int) -> float | None:
    value = reward.value
    if value is not None:
        if not math.isfinite(value):
            raise UnscoredError(f"the reward of completion {index} is {value}")
        return value
    if options.unscored == "raise":
        why = reward.failure.message if reward.failure is not None else "no verdict"
        raise UnscoredError(f"completion {index} could not be scored: {why}", hint="or pass unscored='mask'")
    return None if options.unscored == "mask" else float(options.unscored)
