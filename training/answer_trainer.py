"""The answer objective under TRL: cross-entropy on the answer token of questions that share their prefixes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from trl.trainer.sft_trainer import SFTTrainer

from rubricate.chat.local_torch import floats
from rubricate.training.measures import Scores, measure
from rubricate.training.questions import AnswerTokens, Sheet
from rubricate.training.tree_rows import IGNORED, TreeBatch, lay_rows

__all__ = ["AnswerTrainer", "SheetCollator", "answer_loss", "score_sheets"]


class _Logits(Protocol):
    logits: Tensor


class Forward(Protocol):
    """A causal language model, as it is called here."""

    def __call__(self, **inputs: object) -> _Logits: ...


class _Arguments(Protocol):
    average_tokens_across_devices: bool


class _Accelerator(Protocol):
    num_processes: int


class _Callbacks(Protocol):
    def on_evaluate(self, args: object, state: object, control: object, metrics: Mapping[str, float]) -> object: ...


class _Parts(Protocol):
    """What the trainer below uses of its base class, which leaves most of it untyped."""

    args: _Arguments
    accelerator: _Accelerator
    callback_handler: _Callbacks
    model: torch.nn.Module
    state: object
    control: object
    _total_train_tokens: int

    def compute_loss_context_manager(self) -> object: ...

    def log(self, logs: dict[str, float]) -> None: ...


class SheetCollator:
    """Makes one batch of rows out of the numbers of some sheets.

    Args:
        sheets: all of them; a batch names them by number.
        tokens: the answers' tokens.
        row_tokens: as far as a row is filled; see `lay_rows`.
        pad: token of the padding.
    """

    def __init__(self, sheets: Sequence[Sheet], tokens: AnswerTokens, *, row_tokens: int, pad: int = 0) -> None:
        self.sheets = sheets
        self.tokens = tokens
        self.row_tokens = row_tokens
        self.pad = pad

    def __len__(self) -> int:
        return len(self.sheets)

    def __call__(self, examples: Sequence[Mapping[str, int]]) -> dict[str, Tensor]:
        """The batch of a data loader's examples, each `{"sheet": number}`."""
        batch = self.rows([example["sheet"] for example in examples])
        return {
            "input_ids": batch.input_ids,
            "position_ids": batch.position_ids,
            "attention_mask": batch.attention_mask,
            "labels": batch.labels,
            # says that labels stand where they are predicted; the trainer counts them for the mean
            "shift_labels": batch.labels,
            "tokens": torch.tensor(batch.tokens),
        }

    def rows(self, numbers: Sequence[int]) -> TreeBatch:
        """The rows of these sheets."""
        chosen = [self.sheets[number] for number in numbers]
        labels = [[self.tokens.yes if item.met else self.tokens.no for item in sheet.items] for sheet in chosen]
        prompts = [sheet.prompts for sheet in chosen]
        return lay_rows(prompts, labels, row_tokens=self.row_tokens, pad=self.pad)


def answer_loss(model: Forward, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Sum of the cross-entropies (nats) of the answers over the whole vocabulary, and the logits at the answers.

    Only the logits of the positions that answer are computed, fp32 [rows, answers, vocabulary].
    """
    labels = inputs["labels"]
    output = model(
        input_ids=inputs["input_ids"],
        position_ids=inputs["position_ids"],
        attention_mask=inputs["attention_mask"],
        logits_to_keep=labels.shape[1],
        use_cache=False,
    )
    logits = output.logits[:, -labels.shape[1] :].float()
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return loss, logits


@dataclass(frozen=True, slots=True)
class _Read:
    """Answers of a pass: P(yes) among the answers, and the mass outside them."""

    yes: Tensor
    outside: Tensor


def _read(logits: Tensor, tokens: AnswerTokens) -> _Read:
    """Logits [n, vocabulary] as the judge reads them: all spellings of an answer together."""
    mass = torch.softmax(logits, dim=-1)
    yes = mass[:, list(tokens.yes_all)].sum(dim=-1)
    no = mass[:, list(tokens.no_all)].sum(dim=-1)
    return _Read(yes / (yes + no), 1.0 - yes - no)


def score_sheets(
    model: torch.nn.Module,
    collate: SheetCollator,
    *,
    batch: int = 4,
    context: Callable[[], object] | None = None,
) -> Scores:
    """Ask a model about all sheets of a collator. It stays in the mode, training or evaluation, that it was in.

    Args:
        model: as it is trained or loaded.
        collate: with the sheets.
        batch: sheets in one pass.
        context: makes a context manager for the passes, such as autocast.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    probabilities = np.full(sum(len(sheet.items) for sheet in collate.sheets), np.nan)
    outside = np.zeros_like(probabilities)
    starts = np.cumsum([0, *(len(sheet.items) for sheet in collate.sheets)])
    loss = 0.0
    # alike in length together: less padding
    order = sorted(range(len(collate.sheets)), key=lambda number: collate.sheets[number].size)
    entered = context or torch.no_grad
    with torch.no_grad():
        for first in range(0, len(order), batch):
            numbers = order[first : first + batch]
            rows = collate.rows(numbers)
            with cast("torch.no_grad", entered()):
                inputs = {
                    "input_ids": rows.input_ids.to(device),
                    "position_ids": rows.position_ids.to(device),
                    "attention_mask": rows.attention_mask.to(device),
                    "labels": rows.labels.to(device),
                }
                total, logits = answer_loss(cast("Forward", model), inputs)
            loss += float(total)
            for row, places in enumerate(rows.places):
                read = _read(logits[row, -len(places) :], collate.tokens)
                index = [int(starts[numbers[sheet]]) + number for sheet, number in places]
                probabilities[index] = floats(read.yes.double())
                outside[index] = floats(read.outside.double())
    model.train(was_training)
    labels: NDArray[np.bool_] = np.array([item.met for sheet in collate.sheets for item in sheet.items])
    return Scores(probabilities, labels, outside, loss / max(len(labels), 1))


class AnswerTrainer(SFTTrainer):
    """TRL's SFTTrainer on sheets: its loss is that of the answers, its evaluation that of a judge.

    Batches come from a `SheetCollator`. Metrics: the loss (nats an answer), and of an evaluation AUC, accuracy and
    the mass outside yes and no.
    """

    held_out: SheetCollator | None = None

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor | tuple[Tensor, Mapping[str, Tensor]]:
        """Mean cross-entropy of the answers, over all answers of an optimiser's step."""
        total, logits = answer_loss(cast("Forward", model), inputs)
        count = (inputs["labels"] != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        loss = total / count
        trainer = cast("_Parts", self)
        if num_items_in_batch is not None and trainer.args.average_tokens_across_devices:
            loss = loss * trainer.accelerator.num_processes  # the mean over ranks divides by it again
        trainer._total_train_tokens += int(inputs["tokens"])  # pyright: ignore[reportPrivateUsage] -- TRL's own count
        return (loss, {"logits": logits}) if return_outputs else loss

    def create_model_card(self, *args: object, **kwargs: object) -> None:
        """Nothing: a run has its own page."""

    def evaluate(
        self,
        eval_dataset: object = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Score the held-out sheets. Metrics carry the prefix."""
        if self.held_out is None:
            return {}
        trainer = cast("_Parts", self)
        scores = score_sheets(trainer.model, self.held_out, context=trainer.compute_loss_context_manager)
        if not math.isfinite(scores.loss):
            trainer.log({f"{metric_key_prefix}_loss": scores.loss})  # where it is refused
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in measure(scores).items()}
        trainer.log(dict(metrics))
        trainer.control = trainer.callback_handler.on_evaluate(
            trainer.args, trainer.state, trainer.control, metrics
        )
        return metrics
