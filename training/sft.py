"""Supervised fine-tuning by a recipe: reads the data, trains, and leaves a folder with what came out."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from rubricate.data.io import read_rows
from rubricate.errors import ConfigError, ContextOverflowError
from rubricate.judges.calibrated import Labelled
from rubricate.judges.view import prompt_text
from rubricate.narrow import as_array
from rubricate.training.answer_trainer import SheetCollator
from rubricate.training.base_models import TINY, Base, can_share, check_sharing, load_base, make_tiny, quiet
from rubricate.training.finishing import finish_judge, make_judge, save_model
from rubricate.training.fitting import Fit, fit
from rubricate.training.journal import METRICS, read_metrics
from rubricate.training.labelled import Generator, split_labelled
from rubricate.training.page import render_run
from rubricate.training.questions import Listener, Sheet, find_answer_tokens, group_sheets, make_sheet, requests_of
from rubricate.training.recipe import DataSettings, Recipe
from rubricate.training.run_folder import RunFolder, room, whole_folder
from rubricate.training.text_rows import TextRow, read_texts
from rubricate.training.text_trainer import TextCollator

__all__ = ["Trained", "train_sft"]

Say = Callable[[str], None]

TINY_BASE = "base"


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run has left.

    Attributes:
        folder: of the run.
        result: as in its `result.json`.
        page: curves and tables.
        judge: folder of the judge bundle, None with objective `text`.
    """

    folder: Path
    result: Mapping[str, object]
    page: Path
    judge: Path | None


def train_sft(
    recipe: Recipe,
    out: str | os.PathLike[str],
    *,
    resume: bool = False,
    say: Say | None = None,
    generate: Generator | None = None,
) -> Trained:
    """Train by a recipe.

    The folder gets, first of all, `recipe.yaml` (resolved) and `run.json` (versions, machine, fingerprint of the
    data, lengths of the rows and what was left out); then `metrics.jsonl` and `checkpoints/`; at the end `adapter/`
    or `model/`, `judge/` (objective `answer`), `result.json` and `page.html`.

    Args:
        recipe: see `load_recipe`.
        out: the folder.
        resume: go on with the run that lies there, from its last whole checkpoint.
        say: is given lines for people.
        generate: makes checks, in place of the package's own generator.

    Raises ConfigError for recipes, folders and models that will not do, FormatError for rows that will not,
    MissingExtraError for a missing package.
    """
    folder = RunFolder(Path(out), recipe, resume=resume)
    if recipe.run.threads is not None:
        torch.set_num_threads(recipe.run.threads)
    run = _train_answers if recipe.objective == "answer" else _train_texts
    with quiet(), contextlib.closing(folder), room(folder.path):
        return run(recipe, folder, say or _nothing, generate)


def _nothing(line: str) -> None:
    """Where nobody listens."""


# --- objective `answer` -----------------------------------------------------------------------------------------


def _train_answers(recipe: Recipe, folder: RunFolder, say: Say, generate: Generator | None) -> Trained:
    splits = split_labelled(recipe.data, generate)
    base = _base(recipe, folder, lambda: _asked([*splits.train, *splits.own]))
    report: dict[str, object] = {"notes": list(splits.notes)}
    dropped: list[str] = []
    sheets = {
        use: _sheets(recipe, base, items, dropped)
        for use, items in (
            ("train", splits.train),
            ("own", splits.own),
            ("held_out", splits.held_out),
            ("unseen_kinds", splits.unseen),
        )
    }
    sheets["train"] += recipe.data.repeat * sheets.pop("own")
    if not sheets["train"]:
        raise ConfigError("nothing is left to train on", hint="raise data.max_tokens; all responses are too long")
    _check_labels(sheets["held_out"])
    report |= {"dropped": dropped, **{use: _lengths_of_sheets(some) for use, some in sheets.items() if some}}
    first = sheets["held_out"][0].items[0]
    request = requests_of(make_judge(Listener(), recipe.answer), first.rollout, [first.criterion])[0]
    tokens = find_answer_tokens(base.codec, request, vocabulary=base.vocabulary)
    check_sharing(base, base.codec.encode(request))
    report["fingerprint"] = _fingerprint([s for some in sheets.values() for sheet in some for s in _bytes(sheet)])
    moved = folder.describe(report, threads=torch.get_num_threads(), device=str(base.model.device))
    _say_data(report, moved, say)
    collators = {
        use: SheetCollator(some, tokens, row_tokens=recipe.answer.row_tokens)
        for use, some in sheets.items()
        if some
    }
    held_out = collators["held_out"]
    fitted = fit(recipe, base, collators.pop("train"), held_out, folder.path, resume=folder.resume, say=say)
    done = finish_judge(recipe, base, fitted, splits, collators, folder.path, say=say)
    result = _result(fitted, folder.path) | {
        "calibration": done.calibration,
        "judge": done.measures,
        "families": done.families,
    }
    return _finish(recipe, folder, result, done.bundle)


def _asked(items: Sequence[Labelled]) -> list[str]:
    return [text for item in items for text in (prompt_text(item.rollout), item.criterion.text)]


def _sheets(recipe: Recipe, base: Base, items: Sequence[Labelled], dropped: list[str]) -> list[Sheet]:
    judge = make_judge(Listener(), recipe.answer)
    found: list[Sheet] = []
    for group in group_sheets(items):
        try:
            found.append(make_sheet(judge, base.codec, group, limit=recipe.data.max_tokens))
        except ContextOverflowError as error:
            name = group[0].rollout.id or prompt_text(group[0].rollout)[:40]
            if recipe.data.too_long == "error":
                raise ConfigError(
                    f"the response {name!r} is too long: {error.message}",
                    hint="raise data.max_tokens, or set data.too_long to drop",
                ) from None
            dropped.append(name)
    return found


def _check_labels(sheets: Sequence[Sheet]) -> None:
    met = {item.met for sheet in sheets for item in sheet.items}
    if len(met) < 2:
        raise ConfigError(
            "the held-out labels are all alike, or there are none",
            hint="name data.held_out with criteria that are met and some that are not",
        )


def _bytes(sheet: Sheet) -> list[bytes]:
    labels = bytes(item.met for item in sheet.items)
    return [sheet.shared.tobytes(), *(branch.tobytes() for branch in sheet.branches), labels]


def _lengths_of_sheets(sheets: Sequence[Sheet]) -> dict[str, object]:
    checks = sum(len(sheet.items) for sheet in sheets)
    return {
        "responses": len(sheets),
        "checks": checks,
        "met": round(sum(item.met for sheet in sheets for item in sheet.items) / checks, 4),
        "tokens": sum(sheet.size for sheet in sheets),
        "tokens_if_separate": sum(sheet.separate for sheet in sheets),
        "tokens_of_a_response": _quantiles([sheet.size for sheet in sheets]),
    }


# --- objective `text` -------------------------------------------------------------------------------------------


def _train_texts(recipe: Recipe, folder: RunFolder, say: Say, generate: Generator | None) -> Trained:
    base = _base(recipe, folder, lambda: _texts(recipe.data))
    rows = read_texts(recipe.data, base.tokenizer, assistant_only=recipe.text.assistant_only)
    shares = can_share(base, _different(base, rows.train))
    room = recipe.data.max_tokens if recipe.text.packing and shares else 0
    report: dict[str, object] = {"truncated": rows.truncated, "dropped": rows.dropped, "notes": rows.notes}
    if recipe.text.packing and not shares:
        rows.notes += ["rows are not packed: the model's attention takes no mask of one's own"]
    report |= {
        use: _lengths_of_rows(some) for use, some in (("train", rows.train), ("held_out", rows.held_out)) if some
    }
    both = [*rows.train, *rows.held_out]
    report["fingerprint"] = _fingerprint([part.tobytes() for row in both for part in (row.ids, row.labels)])
    moved = folder.describe(report, threads=torch.get_num_threads(), device=str(base.model.device))
    _say_data(report, moved, say)
    train = TextCollator(rows.train, row_tokens=room, plain=not shares)
    held_out = train.of(rows.held_out) if rows.held_out else None
    fitted = fit(recipe, base, train, held_out, folder.path, resume=folder.resume, say=say)
    saved = save_model(recipe, base, fitted.model, folder.path)
    return _finish(recipe, folder, _result(fitted, folder.path) | {"saved": saved}, None)


def _different(base: Base, rows: Sequence[TextRow]) -> list[int]:
    """Some different tokens, those of the rows first: with equal ones a model does the same wherever they stand."""
    there = (token for row in rows for token in row.ids)
    return list(itertools.islice(dict.fromkeys(itertools.chain(there, range(base.vocabulary))), 24))


def _texts(data: DataSettings) -> list[str]:
    """The training files' rows as JSON: what a tiny model's vocabulary is made of."""
    rows = (row for source in data.train for row in itertools.islice(read_rows(source), 2000))
    return [json.dumps(row.record, ensure_ascii=False, default=str) for row in rows]


def _lengths_of_rows(rows: Sequence[TextRow]) -> dict[str, object]:
    trained = [sum(label >= 0 for label in row.labels) for row in rows]
    return {
        "rows": len(rows),
        "tokens": sum(len(row.ids) for row in rows),
        "tokens_trained_on": sum(trained),
        "tokens_of_a_row": _quantiles([len(row.ids) for row in rows]),
    }


# --- both -------------------------------------------------------------------------------------------------------


def _base(recipe: Recipe, folder: RunFolder, texts: Callable[[], Sequence[str]]) -> Base:
    """The model; a tiny one is made for every new run, of `texts`, and kept for going on."""
    place = folder.path / TINY_BASE
    if recipe.model.name == TINY and not (folder.resume and place.exists()):
        with whole_folder(place) as part:
            make_tiny(part, texts(), seed=recipe.run.seed)
    return load_base(recipe.model, tiny=place)


def _quantiles(sizes: Sequence[int]) -> dict[str, int]:
    names = {"least": 0.0, "median": 0.5, "p95": 0.95, "most": 1.0}
    return {name: int(np.quantile(sizes, q)) for name, q in names.items()}


def _fingerprint(parts: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]


def _say_data(report: Mapping[str, object], moved: Sequence[str], say: Say) -> None:
    for use in ("train", "held_out", "unseen_kinds"):
        if use in report:
            say(f"{use}: {report[use]}")
    for what in ("dropped", "truncated"):
        names = as_array(report.get(what)) or ()
        if names:
            say(f"{what}, too long: {len(names)}, such as {names[0]}")
    for note in (*(as_array(report.get("notes")) or ()), *moved):
        say(f"note: {note}")


def _result(fitted: Fit, folder: Path) -> dict[str, object]:
    lines = read_metrics(folder / METRICS)
    none: dict[str, float] = {}
    before = next((line for line in lines if line["step"] == 0 and "eval_loss" in line), none)
    untrained = {k.removeprefix("eval_"): v for k, v in before.items() if k.startswith("eval_")}
    return {
        "steps": fitted.steps,
        "seconds": round(fitted.seconds, 1),
        "best_step": fitted.best_step,
        "stopped_by_time": fitted.expired,
        "untrained": untrained,
        "trained": dict(fitted.metrics),
    }


def _finish(recipe: Recipe, folder: RunFolder, result: Mapping[str, object], judge: Path | None) -> Trained:
    folder.write("result.json", result)
    page = folder.page(render_run(recipe, result, read_metrics(folder.path / METRICS)))
    return Trained(folder.path, result, page, judge)
