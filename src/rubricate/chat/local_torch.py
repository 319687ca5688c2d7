"""The small typed surface of torch and transformers that the local back end uses. Import it only where torch may
be loaded."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

import torch
from torch import Tensor

__all__ = ["AddedToken", "CacheLayer", "CausalModel", "ChatTokenizer", "KVCache", "Network", "floats", "ints"]

_EXPLICIT_MASK = ("sdpa", "eager")  # attention implementations that take a mask of shape [batch, 1, query, key]


class CacheLayer(Protocol):
    """Keys and values of one layer, each of shape [batch, heads, tokens, head size]."""

    keys: Tensor
    values: Tensor


class KVCache(Protocol):
    """transformers' growing key-value cache. Forward passes and all methods change it in place."""

    layers: Sequence[CacheLayer]

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int) -> object: ...

    def crop(self, tokens_to_remove: int) -> None:
        """With a negative number: remove so many tokens from the end."""
        ...

    def batch_select_indices(self, indices: Tensor) -> None: ...


class _Output(Protocol):
    logits: Tensor


class _CacheFactory(Protocol):
    def __call__(self, *, config: object) -> KVCache: ...


class CausalModel(Protocol):
    """A causal language model of transformers."""

    config: object
    generation_config: object

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def __call__(self, **inputs: object) -> _Output: ...

    def forward(self, **inputs: object) -> _Output: ...

    def eval(self) -> CausalModel: ...

    def modules(self) -> Iterator[torch.nn.Module]: ...

    def to(self, *, device: str, dtype: torch.dtype) -> CausalModel: ...

    def save_pretrained(self, save_directory: str) -> object: ...


class AddedToken(Protocol):
    """A token that was added to a tokenizer's vocabulary."""

    content: str
    special: bool


class ChatTokenizer(Protocol):
    """A tokenizer of transformers."""

    chat_template: str | None
    eos_token_id: int | None

    @property
    def all_special_tokens(self) -> list[str]: ...

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]: ...

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, str]],
        *,
        tokenize: bool,
        add_generation_prompt: bool,
        **kwargs: object,
    ) -> str: ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...

    def decode(
        self, token_ids: Sequence[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str: ...

    def save_pretrained(self, save_directory: str) -> object: ...


def ints(tensor: Tensor) -> list[int]:
    """A one-dimensional integer tensor as a list."""
    return cast("list[int]", tensor.tolist())  # pyright: ignore[reportUnknownMemberType] -- torch leaves it untyped


def floats(tensor: Tensor) -> list[float]:
    """A one-dimensional floating-point tensor as a list."""
    return cast("list[float]", tensor.tolist())  # pyright: ignore[reportUnknownMemberType] -- as above


class Network:
    """A model whose forward pass is called the same way whatever its class and version name the arguments.

    Args:
        model: in evaluation mode, on its device.
    """

    def __init__(self, model: CausalModel) -> None:
        from transformers.cache_utils import DynamicCache

        names = inspect.signature(model.forward).parameters
        self.model = model
        self.device = model.device
        self.dtype = model.dtype
        self._new_cache = cast("_CacheFactory", DynamicCache)
        self._cache_name = "cache" if "cache" in names else "past_key_values"  # renamed in transformers 5
        self._positions = "position_ids" in names
        self._keep = "logits_to_keep" in names
        layers = [type(layer).__name__ for layer in self.new_cache().layers]
        #: every layer keeps the keys and values of all tokens, so that rows and tokens can be taken out
        self.plain_cache = bool(layers) and set(layers) == {"DynamicLayer"}
        #: tokens can be given positions and an attention mask of their own
        self.free_mask = (
            self.plain_cache
            and self._positions
            and getattr(model.config, "_attn_implementation", "") in _EXPLICIT_MASK
        )

    def new_cache(self) -> KVCache:
        """An empty cache for this model."""
        return self._new_cache(config=self.model.config)

    def forward(
        self,
        ids: Tensor,
        cache: KVCache,
        *,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        """Log-probabilities of the next token, fp32, after each kept position.

        Args:
            ids: tokens, int64 [batch, n].
            cache: what went before; grows by n.
            mask: 1 for tokens that may be seen, [batch, cached + n]; or additive, [1, 1, n, cached + n]; None where
                there is no padding.
            positions: int64 [batch, n]; None where they follow on the cache.
            keep: positions in 0..n-1 whose log-probabilities are wanted, int64 [k]; None for the last one.

        Returns:
            fp32 [batch, k, vocabulary].
        """
        inputs: dict[str, object] = {"input_ids": ids, self._cache_name: cache, "use_cache": True}
        if mask is not None:
            inputs["attention_mask"] = mask
        if positions is not None and self._positions:
            inputs["position_ids"] = positions
        if self._keep:
            inputs["logits_to_keep"] = 1 if keep is None else keep
        logits = self.model(**inputs).logits
        if not self._keep:
            logits = logits[:, -1:] if keep is None else logits[:, keep]
        return torch.log_softmax(logits.float(), dim=-1)
