"""The text objective under TRL: completions, several in a row where they fit, each seeing itself only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from trl.trainer.sft_trainer import SFTTrainer

from rubricate.training.text_rows import TextRow
from rubricate.training.tree_rows import IGNORED, pack

__all__ = ["TextCollator", "TextTrainer"]


class TextCollator:
    """Makes one batch out of the numbers of some rows.

    Args:
        rows: all of them; a batch names them by number.
        row_tokens: pack rows up to so many tokens; 0 gives each a row of its own, padded.
        pad: token of the padding.
        plain: leave the mask to the model, which it needs where its layers have windows of their own; goes with
            `row_tokens` 0.
    """

    def __init__(self, rows: Sequence[TextRow], *, row_tokens: int, pad: int = 0, plain: bool = False) -> None:
        self.rows = rows
        self.plain = plain
        self.row_tokens = row_tokens
        self.pad = pad

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, rows: Sequence[TextRow]) -> TextCollator:
        """One of other rows, otherwise the same."""
        return TextCollator(rows, row_tokens=self.row_tokens, pad=self.pad, plain=self.plain)

    def __call__(self, examples: Sequence[Mapping[str, int]]) -> dict[str, Tensor]:
        """The batch of a data loader's examples, each `{"sheet": number}`.

        int64 [rows, length], and a mask bool [rows, 1, length, length] (plain: int64 [rows, length]).
        """
        chosen = [self.rows[example["sheet"]] for example in examples]
        packed = pack([len(row.ids) for row in chosen], self.row_tokens)
        length = max(sum(len(chosen[number].ids) for number in row) for row in packed)
        ids = torch.full((len(packed), length), self.pad, dtype=torch.int64)
        labels = torch.full_like(ids, IGNORED)
        positions = torch.zeros_like(ids)
        mask = torch.eye(length, dtype=torch.bool).repeat(len(packed), 1, 1, 1)
        for place, row in enumerate(packed):
            begin = 0
            for number in row:
                end = begin + len(chosen[number].ids)
                ids[place, begin:end] = torch.tensor(chosen[number].ids.tolist())
                # a first token follows on nothing, least of all on the row before it
                labels[place, begin + 1 : end] = torch.tensor(chosen[number].labels.tolist()[1:], dtype=torch.int64)
                positions[place, begin:end] = torch.arange(end - begin)
                mask[place, 0, begin:end, begin:end] = torch.ones(end - begin, end - begin, dtype=torch.bool).tril()
                begin = end
        if self.plain:
            seen = torch.tensor([[len(chosen[row[0]].ids)] for row in packed])
            return {"input_ids": ids, "labels": labels, "attention_mask": (torch.arange(length) < seen).long()}
        return {"input_ids": ids, "labels": labels, "position_ids": positions, "attention_mask": mask}


class TextTrainer(SFTTrainer):
    """TRL's SFTTrainer, without a model card a checkpoint."""

    def create_model_card(self, *args: object, **kwargs: object) -> None:
        """Nothing: a run has its own page."""
