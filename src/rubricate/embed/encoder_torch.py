"""An encoder of transformers, loaded: tokens and pooled vectors. Import it only where torch may be loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import torch
import transformers
from torch import Tensor

from rubricate.chat.local_load import loading, pick_device, pick_dtype
from rubricate.chat.local_source import read_context
from rubricate.embed.base import Vectors
from rubricate.embed.encoder_recipe import Recipe
from rubricate.errors import ConfigError

__all__ = ["Encoder", "load_encoder"]


class _Output(Protocol):
    last_hidden_state: Tensor


class _Config(Protocol):
    is_encoder_decoder: bool


class _Network(Protocol):
    config: _Config

    def __call__(self, *, input_ids: Tensor, attention_mask: Tensor) -> _Output: ...

    def to(self, *, device: str) -> _Network: ...

    def eval(self) -> _Network: ...


class _Networks(Protocol):
    def from_pretrained(self, path: str, **options: object) -> tuple[_Network, Mapping[str, object]]: ...


class _Tokenizer(Protocol):
    model_max_length: int
    pad_token_id: int | None
    all_special_ids: list[int]

    def __call__(self, text: Sequence[str], **options: object) -> Mapping[str, list[list[int]]]: ...


class _Tokenizers(Protocol):
    def from_pretrained(self, path: str, **options: object) -> _Tokenizer: ...


class Encoder:
    """A model and its tokenizer.

    Attributes:
        max_tokens: texts are cut to so many tokens, None for no bound.
    """

    def __init__(
        self, network: _Network, tokenizer: _Tokenizer, recipe: Recipe, device: str, max_tokens: int | None
    ) -> None:
        self._network = network
        self._tokenizer = tokenizer
        self._recipe = recipe
        self._device = device
        self._special = frozenset(tokenizer.all_special_ids)
        self.max_tokens = max_tokens

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids with the special tokens of the model, cut at `max_tokens`."""
        prepared = [self._recipe.prompt + (text.lower() if self._recipe.lower else text) for text in texts]
        options: dict[str, object] = {"padding": False, "truncation": self.max_tokens is not None}
        if self.max_tokens is not None:
            options["max_length"] = self.max_tokens
        return self._tokenizer(prepared, **options)["input_ids"]

    def known(self, tokens: Sequence[int]) -> bool:
        """Whether a text has a token that is neither special nor the one for unknown words."""
        return any(token not in self._special for token in tokens)

    def forward(self, rows: Sequence[Sequence[int]]) -> Vectors:
        """Pooled vectors of texts given as tokens, of shape (n, d). Raises ConfigError where the model fails."""
        width = max(len(row) for row in rows)
        pad = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows], device=self._device)
        lengths = torch.tensor([len(row) for row in rows], device=self._device)
        mask = (torch.arange(width, device=self._device)[None, :] < lengths[:, None]).long()
        try:
            with torch.inference_mode():
                hidden = self._network(input_ids=ids, attention_mask=mask).last_hidden_state.float()
                pooled = self._pool(hidden, mask, lengths)
        except (IndexError, RuntimeError) as error:
            hint = "give a smaller max_tokens"
            message = f"the model fails on {len(rows)} texts of up to {width} tokens: {error}"
            raise ConfigError(message, hint=hint) from error
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)

    def _pool(self, hidden: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        if self._recipe.pooling == "cls":
            return hidden[:, 0]
        if self._recipe.pooling == "lasttoken":
            return hidden[torch.arange(len(hidden), device=hidden.device), lengths - 1]
        return (hidden * mask[:, :, None]).sum(dim=1) / lengths[:, None]


def load_encoder(folder: Path, recipe: Recipe, *, device: str, dtype: str) -> Encoder:
    """Load a model directory. Uses no network.

    Raises ConfigError for what cannot be loaded, lacks weights, or is an encoder with a decoder.
    """
    place = pick_device(device)
    networks = cast("_Networks", transformers.AutoModel)
    tokenizers = cast("_Tokenizers", transformers.AutoTokenizer)
    options = {"local_files_only": True, "output_loading_info": True, "dtype": pick_dtype(dtype, place)}
    try:
        with loading():
            tokenizer = tokenizers.from_pretrained(str(folder), local_files_only=True)
            network, info = networks.from_pretrained(str(folder), **options)
    except Exception as error:  # safetensors and tokenizers have exceptions of their own
        raise ConfigError(f"the embedder {folder} cannot be loaded: {error}") from error
    # transformers fills what is missing with random numbers; the pooler, which many encoders lack, is not used
    lacking = sorted(str(name) for name in cast("Iterable[object]", info.get("missing_keys", ())))
    lacking = [name for name in lacking if "pooler" not in name]
    if lacking:
        raise ConfigError(f"the embedder {folder}: {len(lacking)} weights are missing, such as {lacking[0]}")
    if network.config.is_encoder_decoder:
        hint = "use an encoder, or serve it and name its address"
        raise ConfigError(f"the embedder {folder} is an encoder with a decoder", hint=hint)
    bounds = [recipe.max_tokens, tokenizer.model_max_length, read_context(folder)]
    # a tokenizer without a bound gives 1e30
    known = [bound for bound in bounds if bound is not None and bound < 1 << 30]
    return Encoder(network.to(device=place).eval(), tokenizer, recipe, place, min(known, default=None))
