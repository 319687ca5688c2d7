"""What becomes of a fitted judge: its adapter is saved, calibrated, bundled, and measured as it will be loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rubricate.bridge import run_sync
from rubricate.chat.base import ChatModel
from rubricate.chat.local import load_local
from rubricate.errors import ConfigError
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.bundle import save_bundle
from rubricate.judges.calibrated import Calibrated, Labelled, gather_probabilities
from rubricate.judges.calibration import fit_calibration
from rubricate.judges.logprob import LogprobJudge
from rubricate.prompts import load_prompt
from rubricate.training.answer_trainer import SheetCollator, score_sheets
from rubricate.training.base_models import TINY, Base, save_adapter
from rubricate.training.fitting import Fit
from rubricate.training.labelled import LabelledSplits
from rubricate.training.measures import Scores, measure
from rubricate.training.recipe import AnswerSettings, Recipe
from rubricate.training.run_folder import whole_folder

__all__ = ["Finished", "finish_judge", "make_judge", "save_model"]

ADAPTER, MODEL, JUDGE = "adapter", "model", "judge"


@dataclass(frozen=True, slots=True)
class Finished:
    """A judge that can be loaded.

    Attributes:
        bundle: its folder.
        calibration: how the calibration went, in words; why there is none, else.
        measures: by set (`held_out`, `unseen_kinds`): the measures, those of the calibrated judge.
        families: AUC, number and share met by family of the criteria (their first tag), on held-out rows.
    """

    bundle: Path
    calibration: str
    measures: Mapping[str, Mapping[str, float]]
    families: Mapping[str, Mapping[str, float]]


def make_judge(model: ChatModel, answer: AnswerSettings) -> LogprobJudge:
    """The judge that a recipe describes, on a model."""
    prompt = load_prompt(answer.prompt)
    return LogprobJudge(
        model, prompt=prompt, prefill=answer.prefill, show_reference=answer.show_reference, view=answer.view
    )


def save_model(recipe: Recipe, base: Base, model: object, folder: Path) -> str:
    """Save what was trained: an adapter, or the whole model. Returns its path in the folder."""
    import torch

    if recipe.lora is not None and isinstance(model, torch.nn.Module):
        with whole_folder(folder / ADAPTER) as part:
            save_adapter(model, part, base=base.name.removeprefix("local:"))
        return ADAPTER
    with whole_folder(folder / MODEL) as part:
        base.model.save_pretrained(str(part))
        base.tokenizer.save_pretrained(str(part))
    return MODEL


def finish_judge(
    recipe: Recipe,
    base: Base,
    fitted: Fit,
    splits: LabelledSplits,
    collators: Mapping[str, SheetCollator],
    folder: Path,
    *,
    say: Callable[[str], None] | None = None,
) -> Finished:
    """Save the model, fit the calibration, save the bundle, and measure the judge that it holds.

    Args:
        collators: of the sets to measure, by name.
    """
    saved = save_model(recipe, base, fitted.model, folder)
    name = base.name if saved == ADAPTER else f"local:{(folder / MODEL).resolve()}"
    adapter = str(folder / ADAPTER) if saved == ADAPTER else None
    device = recipe.model.device
    model = load_local(name.removeprefix("local:"), adapter=adapter, threads=recipe.run.threads, device=device)
    judge = make_judge(model, recipe.answer)
    try:
        calibrated, how = _calibrated(judge, recipe.answer.calibration, splits.calibration)
        if say is not None:
            say(f"calibration: {how}")
        weights = recipe.answer.bundle_weights
        if weights is None:
            weights = saved == MODEL or recipe.model.name == TINY
        save_bundle(calibrated, folder / JUDGE, weights=weights, overwrite=True)
    finally:
        run_sync(model.aclose())
    measures: dict[str, dict[str, float]] = {}
    families: dict[str, dict[str, float]] = {}
    for use, collate in collators.items():
        scores = _through(score_sheets(fitted.model, collate, batch=recipe.run.micro_batch), calibrated)
        measures[use] = measure(scores)
        if use == "held_out":
            families = by_family(scores, [item for sheet in collate.sheets for item in sheet.items])
    return Finished(folder / JUDGE, how, measures, families)


def _calibrated(judge: LogprobJudge, method: str, labelled: Sequence[Labelled]) -> tuple[CriteriaJudge, str]:
    """The judge with a calibration, where one can be fitted, and how that went."""
    if method == "none":
        return judge, "none, as the recipe says"
    if not labelled:
        return judge, "none: no rows were kept to fit it to"
    found = run_sync(gather_probabilities(judge, labelled))
    if not found.probabilities:
        return judge, f"none: all {found.left_out} verdicts failed (the model says neither yes nor no)"
    try:
        calibration = fit_calibration(judge, found.probabilities, found.labels, method=method, groups=found.groups)
    except ConfigError as error:
        return judge, f"none: {error.message}"
    left_out = f"; {found.left_out} verdicts failed and were left out" if found.left_out else ""
    return Calibrated(judge, calibration), f"{calibration}{left_out}"


def _through(scores: Scores, judge: CriteriaJudge) -> Scores:
    """The scores as the calibrated judge gives them."""
    if not isinstance(judge, Calibrated):
        return scores
    after = np.array([judge.calibration(float(p)) for p in scores.probabilities.clip(0.0, 1.0)])
    return Scores(after, scores.labels, scores.outside, scores.loss)


def by_family(scores: Scores, items: Sequence[Labelled]) -> dict[str, dict[str, float]]:
    """Measures by the first tag of the criteria; those without tags are in none."""
    rows: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        if item.criterion.tags:
            rows.setdefault(item.criterion.tags[0], []).append(number)
    found: dict[str, dict[str, float]] = {}
    for family, numbers in sorted(rows.items()):
        part = Scores(scores.probabilities[numbers], scores.labels[numbers], scores.outside[numbers], scores.loss)
        known = measure(part)
        names = [name for name in ("auc", "accuracy", "count") if name in known]
        found[family] = {name: known[name] for name in names} | {"met": float(part.labels.mean())}
    return found
