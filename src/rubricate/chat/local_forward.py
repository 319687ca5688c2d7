"""Forward passes over batches of left-padded prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rubricate.chat.local_torch import KVCache, Network

__all__ = ["Batch", "prefill"]


@dataclass(slots=True)
class Batch:
    """Prompts in progress, left-padded.

    Attributes:
        network: the model.
        cache: keys and values of all tokens so far.
        mask: 1 for tokens, 0 for padding, int64 [rows, tokens so far].
        positions: position of the next token of each row, int64 [rows].
    """

    network: Network
    cache: KVCache
    mask: Tensor
    positions: Tensor

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Append a token to each row. Returns log-probabilities of the one after it, fp32 [rows, vocabulary]."""
        ids = torch.tensor(tokens, device=self.network.device).unsqueeze(1)
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], dim=1)
        logprobs = self.network.forward(ids, self.cache, mask=self.mask, positions=self.positions.unsqueeze(1))
        self.positions = self.positions + 1
        return logprobs[:, 0]

    @property
    def droppable(self) -> bool:
        """Whether `keep` works: recurrent states and sliding windows are left as they are."""
        return self.network.plain_cache

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows."""
        index = torch.tensor(rows, device=self.network.device)
        self.cache.batch_select_indices(index)
        self.mask = self.mask[index]
        self.positions = self.positions[index]


def prefill(network: Network, prompts: Sequence[Sequence[int]]) -> tuple[Batch, Tensor]:
    """Run whole prompts as one left-padded batch.

    Returns the batch and the log-probabilities of the first new token, fp32 [prompts, vocabulary].
    """
    longest = max(len(prompt) for prompt in prompts)
    gaps = [longest - len(prompt) for prompt in prompts]
    ids = torch.tensor([[0] * gap + list(prompt) for gap, prompt in zip(gaps, prompts, strict=True)])
    padding = torch.tensor(gaps).unsqueeze(1)
    mask = (torch.arange(longest).unsqueeze(0) >= padding).long().to(network.device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    cache = network.new_cache()
    # without padding the mask is left out, which lets attention take its fastest path
    padded = any(gaps)
    logprobs = network.forward(
        ids.to(network.device), cache, mask=mask if padded else None, positions=positions if padded else None
    )
    return Batch(network, cache, mask, positions[:, -1] + 1), logprobs[:, 0]
