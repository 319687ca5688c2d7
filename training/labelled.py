"""Labelled criteria to train a judge on: read from files with gold labels, or generated; split by prompt."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rubricate.data.io import Row, read_rows, rollouts_from_row
from rubricate.errors import ConfigError, FormatError
from rubricate.judges.calibrated import Labelled
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import BinaryScale, Rubric
from rubricate.rubrics.formats import rubric_from_row
from rubricate.training.recipe import DataSettings

__all__ = ["CHECKS", "COUNTED", "Generator", "LabelledSplits", "read_labelled", "split_labelled"]

CHECKS = "checks"
"""The source that is generated."""

COUNTED = "counted"
"""All kinds of checks that code decides by counting."""

Generator = Callable[[int, int, str, int], Sequence[Labelled]]
"""Makes checks: number of responses, seed, split (`train`, `held_out` or `unseen_kinds`), checks of a response."""


@dataclass(slots=True)
class LabelledSplits:
    """Labelled criteria by their use, and what could not be used.

    Attributes:
        train: of `checks`.
        own: of files, to train on.
        held_out, calibration: no prompt of a file is in two of these, but for files that the recipe names itself.
        unseen: generated checks of kinds that are never trained on, where `checks` are evaluated on.
        notes: what was left out, in words.
    """

    train: list[Labelled] = field(default_factory=list[Labelled])
    own: list[Labelled] = field(default_factory=list[Labelled])
    held_out: list[Labelled] = field(default_factory=list[Labelled])
    calibration: list[Labelled] = field(default_factory=list[Labelled])
    unseen: list[Labelled] = field(default_factory=list[Labelled])
    notes: list[str] = field(default_factory=list[str])


def read_labelled(
    path: str, *, columns: Mapping[str, str] | None = None, notes: list[str] | None = None
) -> list[Labelled]:
    """The labelled criteria of a file: rows with prompt, response or responses, rubric, and gold labels.

    The column `gold` holds, for each response, an object from criterion ids to true or false. Criteria without a
    label, and those that are not binary, are left out and counted in `notes`.

    Raises FormatError, naming file, line and field, for rows without a rubric or gold labels, and for labels of
    criteria that do not exist.
    """
    found: list[Labelled] = []
    unlabelled = graded = 0
    for row in read_rows(path):
        rubric = rubric_from_row(row)
        if rubric is None:
            raise _wrong(row, "rubric", "there is no rubric", "give the row a column `rubric`")
        rollouts = rollouts_from_row(row, columns=columns)
        for rollout, gold in zip(rollouts, _gold(row, rubric, len(rollouts)), strict=True):
            for criterion in rubric.criteria:
                if criterion.id not in gold:
                    unlabelled += 1
                elif not isinstance(criterion.scale, BinaryScale):
                    graded += 1
                else:
                    found.append(Labelled(rollout, criterion, gold[criterion.id]))
    if notes is not None:
        notes += [f"{path}: {unlabelled} criteria without a label were left out"] if unlabelled else []
        notes += [f"{path}: {graded} criteria with levels or numbers were left out"] if graded else []
    if not found:
        raise FormatError("no criterion has a label", source=path, field="gold")
    return found


def _gold(row: Row, rubric: Rubric, count: int) -> list[dict[str, bool]]:
    value = row.record.get("gold")
    if value is None:
        hint = 'write an object a response: {"criterion id": true or false}'
        raise _wrong(row, "gold", "there are no gold labels", hint)
    single = as_object(value)
    listed = [single] if single is not None else as_array(value)
    if listed is None or len(listed) != count:
        raise _wrong(
            row, "gold", f"expected labels of {count} responses", "give a list, an object for each response"
        )
    known = {criterion.id for criterion in rubric.criteria}
    found: list[dict[str, bool]] = []
    for number, item in enumerate(listed):
        place = "gold" if single is not None else f"gold[{number}]"
        labels = as_object(item)
        if labels is None:
            raise _wrong(row, place, "expected an object from criterion ids to true or false")
        for key, label in labels.items():
            if key not in known:
                raise _wrong(row, f"{place}.{key}", "no criterion has this id", f"there are: {', '.join(known)}")
            if not isinstance(label, bool) and label is not None:
                raise _wrong(row, f"{place}.{key}", f"expected true or false, got {label!r}")
        found.append({key: label for key, label in labels.items() if isinstance(label, bool)})
    return found


def _wrong(row: Row, place: str, message: str, hint: str = "") -> FormatError:
    return FormatError(message, source=row.source, line=row.line, field=place, hint=hint)


def split_labelled(data: DataSettings, generate: Generator | None = None) -> LabelledSplits:
    """Everything that a recipe trains on, evaluates on and calibrates with.

    Where a recipe names no held-out or calibration sources, the training files give a share of their prompts for
    each, chosen by a hash of the prompt and the seed. Without files, checks are generated of texts and wordings
    that training never sees.

    Args:
        data: of the recipe.
        generate: makes checks; the package's own by default.

    Raises what `read_labelled` does, and ConfigError where nothing is left to train or evaluate on.
    """
    splits = LabelledSplits()
    make = generate or functools.partial(_make, data.without_kinds)
    items: list[Labelled] = []
    for source in data.train:
        if source == CHECKS:
            splits.train += _generated(data, make, "train")
        else:
            items += read_labelled(source, columns=data.columns, notes=splits.notes)
    _deal(splits, items, data)  # all files together: a prompt may be in several
    generated = (CHECKS,) if set(data.train) == {CHECKS} else ()
    for source in data.held_out or generated:
        splits.held_out += _source(source, data, make, "held_out", splits.notes)
        if source == CHECKS:
            splits.unseen = _generated(data, make, "unseen_kinds")
    for source in data.calibration or generated:
        splits.calibration += _source(source, data, make, "calibration", splits.notes)
    if not splits.train and not splits.own:
        raise ConfigError("nothing is left to train on", hint="lower data.held_out_share, or give more rows")
    if not splits.held_out:
        raise ConfigError("nothing is held out to evaluate on", hint="name data.held_out, or give more prompts")
    splits.notes += _overlaps(splits)
    return splits


def _overlaps(splits: LabelledSplits) -> list[str]:
    """What makes results doubtful: prompts that are trained on and measured with, labels that contradict."""
    notes: list[str] = []
    trained = {repr(item.rollout.prompt) for item in splits.own}
    for use, items in (("evaluated on", splits.held_out), ("calibrated with", splits.calibration)):
        both = trained & {repr(item.rollout.prompt) for item in items}
        notes += [f"{len(both)} prompts that are {use} are trained on, too"] if both else []
    labels: dict[tuple[str, str, str], set[bool]] = {}
    for item in splits.own:
        key = (repr(item.rollout.prompt), repr(item.rollout.response), item.criterion.text)
        labels.setdefault(key, set()).add(item.met)
    torn = sum(len(found) > 1 for found in labels.values())
    return [*notes, f"{torn} criteria are labelled both true and false for one response"] if torn else notes


def _deal(splits: LabelledSplits, items: Sequence[Labelled], data: DataSettings) -> None:
    """The files' items among the splits that have no sources of their own, whole prompts together.

    Of few prompts, too, one at least is held out for each: they go by rank of their hash, not by its value.
    """
    prompts = sorted({repr(item.rollout.prompt) for item in items}, key=lambda text: _hash(text, data.seed))
    few = round(len(prompts) * data.held_out_share) or int(data.held_out_share > 0.0 and len(prompts) >= 3)
    held_out = set(prompts[:few]) if not data.held_out else set[str]()
    calibration = set(prompts[few : 2 * few]) if not data.calibration else set[str]()
    for item in items:
        prompt = repr(item.rollout.prompt)
        part = (
            splits.held_out if prompt in held_out else splits.calibration if prompt in calibration else splits.own
        )
        part.append(item)


def _hash(text: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{text}".encode(errors="replace")).hexdigest()


def _source(source: str, data: DataSettings, generate: Generator, use: str, notes: list[str]) -> list[Labelled]:
    if source == CHECKS:
        return _generated(data, generate, use)
    return read_labelled(source, columns=data.columns, notes=notes)


def _generated(data: DataSettings, generate: Generator, use: str) -> list[Labelled]:
    number = {"train": 0, "held_out": 1, "calibration": 2, "unseen_kinds": 3}[use]
    count = data.sheets if use == "train" else data.held_out_sheets
    split = "held_out" if use == "calibration" else use
    return list(generate(count, 10 * data.seed + number, split, data.checks_per_response))


def _make(without: Sequence[str], count: int, seed: int, split: str, checks: int) -> Sequence[Labelled]:
    from rubricate.training.checks import COUNTED_KINDS, make_sheets

    named = {kind for name in without for kind in (COUNTED_KINDS if name == COUNTED else (name,))}
    make = cast("Callable[..., Sequence[Labelled]]", make_sheets)  # it checks the split's name itself
    return make(count, seed=seed, split=split, checks_per_response=checks, without=named)
