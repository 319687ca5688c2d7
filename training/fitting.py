"""The training loop of a recipe under TRL: its arguments, and the run from the last whole checkpoint on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import torch

from rubricate.training.answer_trainer import AnswerTrainer, SheetCollator
from rubricate.training.base_models import Base, with_adapters
from rubricate.training.journal import Journal, Standing, is_measure, last_checkpoint, standing
from rubricate.training.recipe import Recipe
from rubricate.training.text_trainer import TextCollator, TextTrainer

__all__ = ["Fit", "fit"]

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class Fit:
    """A model that has been trained.

    Attributes:
        model: with the weights that are kept: the best or the last.
        steps: optimiser's steps in all.
        seconds: of training, evaluations included.
        best_step: of the checkpoint that evaluated best; None where the last is kept.
        expired: whether the time limit ended it.
        metrics: of the held-out rows with the weights that are kept.
    """

    model: torch.nn.Module
    steps: int
    seconds: float
    best_step: int | None
    expired: bool
    metrics: Mapping[str, float]


class _State(Protocol):
    global_step: int
    best_global_step: int | None


class _Accelerator(Protocol):
    def unwrap_model(self, model: torch.nn.Module, *, keep_fp32_wrapper: bool) -> torch.nn.Module: ...


class _Trainer(Protocol):
    accelerator: _Accelerator
    model: torch.nn.Module
    state: _State

    def train(self, *, resume_from_checkpoint: str | None) -> object: ...

    def evaluate(self) -> dict[str, float]: ...

    def _load_from_checkpoint(self, resume_from_checkpoint: str) -> None: ...

    def remove_callback(self, callback: type[object]) -> object: ...


class _Tables(Protocol):
    def from_dict(self, mapping: Mapping[str, Sequence[int]]) -> object: ...


def fit(
    recipe: Recipe,
    base: Base,
    train: SheetCollator | TextCollator,
    held_out: SheetCollator | TextCollator | None,
    folder: Path,
    *,
    resume: bool,
    say: Callable[[str], None] | None = None,
) -> Fit:
    """Train a model.

    Args:
        recipe: what to do.
        base: the model; it is changed in place, or gets adapters.
        train, held_out: the rows, in collators of the objective's kind.
        folder: of the run. Metrics go to `metrics.jsonl`, checkpoints under `checkpoints`.
        resume: go on from the last whole checkpoint there, if there is one.
        say: is given a line a measurement.
    """
    last = last_checkpoint(folder / CHECKPOINTS) if resume else None
    model = base.module if recipe.lora is None else with_adapters(base, recipe.lora, seed=recipe.run.seed)
    journal = Journal(
        folder,
        resumed=None if last is None else last[0],
        minutes=recipe.run.max_minutes,
        evaluates=held_out is not None,
        say=say,
    )
    stood = None if last is None else standing(last[1])
    trainer = _trainer(recipe, base, model, train, held_out, folder, journal, stood)
    if last is not None and stood is not None and _is_over(recipe, stood, journal):
        _restore(trainer, recipe, stood, last[1])
    else:
        trainer.train(resume_from_checkpoint=None if last is None else str(last[1]))
    seconds = journal.close()
    metrics = trainer.evaluate() if held_out is not None else {}
    best = trainer.state.best_global_step if recipe.run.keep_best and held_out is not None else None
    # accelerate has put autocast around it; the judge will run without
    model = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    measures = {name: value for name, value in metrics.items() if is_measure(name)}
    known = {name.removeprefix("eval_"): value for name, value in measures.items() if name.startswith("eval_")}
    expired = journal.expired and not (stood is not None and stood.all_steps)
    return Fit(model, trainer.state.global_step, seconds, best, expired, known)


def _is_over(recipe: Recipe, stood: Standing, journal: Journal) -> bool:
    """Whether nothing is left to do after a checkpoint. A run that its time has ended may have been given more."""
    idle = recipe.run.patience is not None and stood.unimproved >= recipe.run.patience
    return stood.over and (stood.all_steps or idle or journal.expired)


def _restore(trainer: _Trainer, recipe: Recipe, stood: Standing, last: Path) -> None:
    """The weights and the state that a run ended with; the trainer itself would make one more step."""
    from transformers import TrainerState

    trainer.state = cast("_State", TrainerState.load_from_json(str(last / "trainer_state.json")))
    kept = stood.best if recipe.run.keep_best and stood.best is not None else last
    trainer._load_from_checkpoint(str(kept))  # pyright: ignore[reportPrivateUsage] -- there is no public way


def _trainer(
    recipe: Recipe,
    base: Base,
    model: torch.nn.Module,
    train: SheetCollator | TextCollator,
    held_out: SheetCollator | TextCollator | None,
    folder: Path,
    journal: Journal,
    stood: Standing | None,
) -> _Trainer:
    from transformers.trainer_callback import EarlyStoppingCallback, PrinterCallback

    callbacks: list[object] = [journal]
    if recipe.run.patience is not None and held_out is not None:
        stopping = EarlyStoppingCallback(early_stopping_patience=recipe.run.patience)
        stopping.early_stopping_patience_counter = 0 if stood is None else stood.unimproved
        callbacks.append(stopping)
    count, more = len(train), 0 if held_out is None else len(held_out)
    collate = train
    if isinstance(train, TextCollator) and isinstance(held_out, TextCollator):
        # TRL has one collator for both: held-out rows follow on the others
        collate = train.of([*train.rows, *held_out.rows])
    make = cast("Callable[..., _Trainer]", TextTrainer if isinstance(train, TextCollator) else AnswerTrainer)
    trainer = make(
        model=model,
        args=_arguments(recipe, base, folder, evaluates=held_out is not None, first=stood is None),
        data_collator=collate,
        train_dataset=_numbers(0, count),
        eval_dataset=_numbers(count, count + more) if more else None,
        processing_class=base.tokenizer,
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)  # the journal prints
    if isinstance(trainer, AnswerTrainer) and isinstance(held_out, SheetCollator):
        trainer.held_out = held_out
    return trainer


def _numbers(first: int, last: int) -> object:
    """A data set of rows' numbers: the collator has the rows themselves."""
    from datasets import Dataset

    return cast("_Tables", Dataset).from_dict({"sheet": list(range(first, last))})


def _arguments(recipe: Recipe, base: Base, folder: Path, *, evaluates: bool, first: bool) -> object:
    """TRL's arguments for a recipe."""
    from trl.trainer.sft_config import SFTConfig

    run, optimiser = recipe.run, recipe.optimiser
    keeps_best = run.keep_best and evaluates
    by_area = recipe.objective == "answer"
    return cast("Callable[..., object]", SFTConfig)(
        output_dir=str(folder / CHECKPOINTS),
        use_cpu=base.model.device.type == "cpu",
        bf16=recipe.model.precision == "bf16_autocast",
        num_train_epochs=run.epochs,
        max_steps=run.max_steps or -1,
        per_device_train_batch_size=run.micro_batch,
        per_device_eval_batch_size=run.micro_batch,
        gradient_accumulation_steps=run.batch // run.micro_batch,
        learning_rate=optimiser.learning_rate,
        lr_scheduler_type=optimiser.schedule,
        warmup_steps=optimiser.warmup,
        weight_decay=optimiser.weight_decay,
        max_grad_norm=optimiser.clip,
        adam_beta1=optimiser.betas[0],
        adam_beta2=optimiser.betas[1],
        seed=run.seed,
        data_seed=run.seed,
        activation_checkpointing=run.gradient_checkpointing,
        logging_steps=run.log_every,
        logging_nan_inf_filter=False,  # it would show the last loss that was a number in place of this one
        eval_strategy="steps" if evaluates else "no",
        eval_steps=run.eval_every,
        eval_on_start=evaluates and first,
        save_strategy="steps",
        save_steps=run.eval_every,
        save_total_limit=2,
        load_best_model_at_end=keeps_best,
        metric_for_best_model=("eval_auc" if by_area else "eval_loss") if evaluates else None,
        greater_is_better=by_area if evaluates else None,
        prediction_loss_only=True,
        remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        max_length=None,
        dataloader_pin_memory=base.model.device.type != "cpu",
        disable_tqdm=True,
        report_to="none",
    )
