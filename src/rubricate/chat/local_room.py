"""How much a pass may hold at once, so that memory stays within its bound."""

from __future__ import annotations

from functools import cached_property

import torch

from rubricate.chat.local_torch import Network

__all__ = ["Room"]

_PACKED_CPU = 768  # tokens of one pass: enough to keep a CPU busy; attention grows with their square
_PACKED = 4096  # elsewhere
_LEAST = 16  # tokens: smaller passes gain little memory and cost much time
_LOGITS_COPIES = 3  # of a row's log-probabilities in fp32, while they are made and read


class Room:
    """Sizes of passes and batches for a bound in bytes.

    What a pass needs is estimated: keys and values of the longest prompt and of the pass, the mask, activations,
    and log-probabilities over the vocabulary for each prompt that ends in it.

    Args:
        network: the model.
        limit: bytes for the prompts at work.
        max_batch_tokens: bound on the tokens of a batch, prompts and answers.
    """

    def __init__(self, network: Network, limit: int, max_batch_tokens: int) -> None:
        self._network = network
        self._limit = limit
        self._max_batch_tokens = max_batch_tokens

    @property
    def batch_tokens(self) -> int:
        """Tokens of one batch at most, prompts and answers of all its rows."""
        if not self._network.plain_cache:
            return self._max_batch_tokens
        return max(1, min(self._max_batch_tokens, self._limit // self._sizes[0]))

    @property
    def rows(self) -> int:
        """Prompts that may end in one pass."""
        return max(1, self._limit // 4 // (self._sizes[1] * 4 * _LOGITS_COPIES))

    def tokens(self, longest: int) -> int:
        """Tokens of one pass, where the longest prompt has so many."""
        most = min(_PACKED_CPU if self._network.device.type == "cpu" else _PACKED, self._max_batch_tokens)
        kept = self._sizes[0]
        mask = (longest + most) * self._network.dtype.itemsize
        left = self._limit * 3 // 4 - longest * kept
        return max(min(_LEAST, most), min(most, left // (kept + mask + self._activations)))

    @property
    def _activations(self) -> int:
        """Bytes of one token inside a layer, roughly: states, queries, the wide middle of the feed-forward part."""
        sizes = [getattr(self._network.model.config, name, None) for name in ("hidden_size", "intermediate_size")]
        hidden, wide = (size if isinstance(size, int) else 4096 for size in sizes)
        return (8 * hidden + 3 * wide) * self._network.dtype.itemsize

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Bytes of keys and values of a token, and the size of the vocabulary, seen on one token."""
        cache = self._network.new_cache()
        with torch.inference_mode():
            logprobs = self._network.forward(
                torch.zeros(1, 1, dtype=torch.int64, device=self._network.device), cache
            )
        kept = sum(
            part.numel() * part.element_size() for layer in cache.layers for part in (layer.keys, layer.values)
        )
        return kept, logprobs.shape[-1]
