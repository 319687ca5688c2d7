"""Forward passes over batches: left-padded prompts, and many suffixes behind one prefix that is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from rubricate.chat.local_torch import KVCache, Network

__all__ = ["Batch", "Prefix", "common_prefix", "prefill", "sharing_is_exact"]


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


def common_prefix(prompts: Sequence[list[int]]) -> int:
    """Number of tokens that all prompts begin with, short enough that each keeps at least one of its own."""
    low, high = min(prompts), max(prompts)
    shared = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return max(min(shared, min(len(prompt) for prompt in prompts) - 1), 0)


class Prefix:
    """A prefix whose keys and values are computed once, for any number of suffixes.

    The suffixes are laid one after another in a single row. Each token sees the prefix and the tokens of its own
    suffix before it, and has the position that it would have behind the prefix alone: the arithmetic of separate
    prompts, without a copy of the prefix for each, and without padding (ours).

    Args:
        network: a model with `free_mask`.
        ids: the prefix, at least one token.
    """

    def __init__(self, network: Network, ids: Sequence[int]) -> None:
        self.network = network
        self.length = len(ids)
        self._cache = network.new_cache()
        self._spans: list[tuple[int, int]] = []
        network.forward(torch.tensor([ids], device=network.device), self._cache)

    def run(self, suffixes: Sequence[Sequence[int]]) -> Tensor:
        """Log-probabilities of the token after each suffix, fp32 [suffixes, vocabulary]."""
        self._forget()
        ends = list(accumulate(len(suffix) for suffix in suffixes))
        self._spans = list(zip([0, *ends[:-1]], ends, strict=True))
        device = self.network.device
        ids = torch.tensor([[token for suffix in suffixes for token in suffix]], device=device)
        offsets = torch.cat([torch.arange(len(suffix)) for suffix in suffixes]).to(device)
        logprobs = self.network.forward(
            ids,
            self._cache,
            mask=self._mask(offsets),
            positions=(offsets + self.length).unsqueeze(0),
            keep=torch.tensor(ends, device=device) - 1,
        )
        return logprobs[0]

    def unpack(self, rows: Sequence[int]) -> Batch:
        """These suffixes of the last run, each with a copy of the prefix, as a batch that can go on."""
        lengths = [self._spans[row][1] - self._spans[row][0] for row in rows]
        longest = max(lengths)
        prefix = list(range(self.length))
        index: list[list[int]] = []
        for row, length in zip(rows, lengths, strict=True):
            start, end = self._spans[row]
            own = range(self.length + start, self.length + end)
            index.append([0] * (longest - length) + prefix + list(own))
        device = self.network.device
        places = torch.tensor(index, device=device)
        padding = torch.tensor([longest - length for length in lengths], device=device).unsqueeze(1)
        mask = (torch.arange(self.length + longest, device=device).unsqueeze(0) >= padding).long()
        cache = self.network.new_cache()
        for number, layer in enumerate(self._cache.layers):
            # [heads, tokens, size] indexed by [rows, length] gives [heads, rows, length, size]
            keys, values = (part[0][:, places].transpose(0, 1) for part in (layer.keys, layer.values))
            cache.update(keys, values, number)
        return Batch(self.network, cache, mask, mask.sum(dim=1))

    def _forget(self) -> None:
        """Take the suffixes of the last run out of the cache, which the forward pass has grown in place."""
        if self._spans:
            self._cache.crop(-self._spans[-1][1])
            self._spans = []

    def _mask(self, offsets: Tensor) -> Tensor:
        """Additive mask [1, 1, n, prefix + n]: 0 where a token may look, the lowest number elsewhere."""
        suffix = (offsets == 0).cumsum(dim=0)
        order = torch.arange(len(offsets), device=offsets.device)
        seen = (suffix.unsqueeze(1) == suffix) & (order.unsqueeze(1) >= order)
        blocked = torch.finfo(self.network.dtype).min
        own = torch.zeros(seen.shape, dtype=self.network.dtype, device=offsets.device).masked_fill(~seen, blocked)
        return torch.cat([own.new_zeros(len(offsets), self.length), own], dim=1)[None, None]


def sharing_is_exact(network: Network, prompt: Sequence[int]) -> bool:
    """Try a shared prefix on a few tokens of a prompt and compare it with separate prompts.

    A model may take positions and masks and still use them in a way of its own. False for those, and for models
    that cannot do it at all.
    """
    if not network.free_mask or len(prompt) < 4:
        return False
    sample = list(prompt[:24])
    cut = len(sample) // 2
    suffixes = [sample[cut:], sample[:1], sample[cut:][::-1]]
    try:
        shared = Prefix(network, sample[:cut]).run(suffixes)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    separate = torch.cat([prefill(network, [sample[:cut] + suffix])[1] for suffix in suffixes])
    likely = separate > separate.max(dim=-1, keepdim=True).values - 8.0  # rounding grows where nothing is likely
    moved = ((shared - separate).abs() * likely).sum(dim=-1) / likely.sum(dim=-1)
    # measured on SmolLM2: rounding moves log-probabilities by 1e-5 in fp32 and 0.1 in bf16 in the mean, plain
    # batching too; wrong positions or masks by 2.5 in either
    return float(moved.max()) <= (1e-3 if network.dtype == torch.float32 else 0.4)
