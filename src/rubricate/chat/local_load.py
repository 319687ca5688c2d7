"""Loads a local model: a Hugging Face directory, a GGUF file by way of a converted copy, a base with an adapter."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Protocol, cast

import torch

from rubricate.chat.local_source import Source, gguf_copy, tensor_names
from rubricate.chat.local_torch import CausalModel, ChatTokenizer
from rubricate.errors import ConfigError, MissingExtraError

__all__ = ["empty_cache", "load_model", "pick_device", "pick_dtype"]

_LOG = logging.getLogger(__name__)
_STALE_S = 24 * 3600


class _Models(Protocol):
    def from_pretrained(self, path: str, **options: object) -> CausalModel: ...


class _Tokenizers(Protocol):
    def from_pretrained(self, path: str, **options: object) -> ChatTokenizer: ...


class _Adapted(Protocol):
    def merge_and_unload(self) -> CausalModel: ...


class _Adapters(Protocol):
    def from_pretrained(self, model: CausalModel, path: str) -> _Adapted: ...


class _Peft(Protocol):
    PeftModel: _Adapters

    def get_peft_model_state_dict(self, model: _Adapted) -> Mapping[str, torch.Tensor]: ...


def pick_device(device: str) -> str:
    """`auto` is the GPU where there is one, else the CPU. Raises ConfigError for a device that is not there."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used: {reason}", hint="device='cpu' always works") from None
    return device


def pick_dtype(dtype: str, device: str) -> torch.dtype:
    """`auto` is float32 on the CPU, where scores are then exact to 1e-5, and bfloat16 on a GPU."""
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if dtype not in known:
        raise ConfigError(f"there is no dtype {dtype!r}", hint="choose auto, float32 or bfloat16")
    return known[dtype]


def empty_cache() -> None:
    """Give freed GPU memory back to the system."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def load_model(source: Source, *, device: str, dtype: torch.dtype) -> tuple[CausalModel, ChatTokenizer]:
    """The model, in evaluation mode on its device, and its tokenizer. Uses no network.

    An adapter is merged into the weights.

    Raises ConfigError for weights that cannot be loaded, MissingExtraError where peft is needed and missing.
    """
    try:
        with _no_progress_bars():
            model, tokenizer = _load_gguf(source.path, dtype) if source.gguf else _load_folder(source.path, dtype)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ConfigError(f"the model {source.spec!r} cannot be loaded: {error}") from error
    if source.adapter is not None:
        model = _with_adapter(model, source.adapter)
    return model.to(device=device, dtype=dtype).eval(), tokenizer


def _load_folder(path: Path, dtype: torch.dtype) -> tuple[CausalModel, ChatTokenizer]:
    import transformers

    models = cast("_Models", transformers.AutoModelForCausalLM)
    tokenizers = cast("_Tokenizers", transformers.AutoTokenizer)
    tokenizer = tokenizers.from_pretrained(str(path), local_files_only=True)
    return models.from_pretrained(str(path), dtype=dtype, local_files_only=True), tokenizer


def _load_gguf(path: Path, dtype: torch.dtype) -> tuple[CausalModel, ChatTokenizer]:
    """From the converted copy where there is one; else convert, which takes 10 to 20 times as long, and keep it."""
    import transformers

    copy = gguf_copy(path)
    if copy.is_dir():
        try:
            return _load_folder(copy, dtype)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            _LOG.warning("the converted copy %s is unreadable (%s); converting again", copy, error)
            shutil.rmtree(copy, ignore_errors=True)
    if importlib.util.find_spec("gguf") is None:  # transformers reads the file with it
        raise MissingExtraError("gguf", extra="local")
    models = cast("_Models", transformers.AutoModelForCausalLM)
    tokenizers = cast("_Tokenizers", transformers.AutoTokenizer)
    place, options = str(path.parent), {"gguf_file": path.name, "local_files_only": True}
    tokenizer = tokenizers.from_pretrained(place, **options)
    # without dequantize=True transformers 5 keeps the blocks, and such a model cannot be saved
    unpacked = transformers.GgufConfig(dequantize=True)
    model = models.from_pretrained(place, dtype=torch.float32, quantization_config=unpacked, **options)
    _keep(model, tokenizer, copy)
    return model, tokenizer


def _keep(model: CausalModel, tokenizer: ChatTokenizer, copy: Path) -> None:
    """Save the converted model under `copy`, whole or not at all. Where that fails, it is converted every time."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        _sweep(copy.parent)
        draft = Path(tempfile.mkdtemp(prefix=".tmp-", dir=copy.parent))
    except OSError as error:
        _LOG.warning("cannot keep the converted model under %s: %s", copy.parent, error)
        return
    try:
        model.save_pretrained(str(draft))
        tokenizer.save_pretrained(str(draft))
        os.rename(draft, copy)
    except Exception as error:  # safetensors has an exception of its own for a full disk
        shutil.rmtree(draft, ignore_errors=True)
        if not copy.is_dir():  # else another process was first
            _LOG.warning("cannot keep the converted model under %s: %s", copy.parent, error)


def _sweep(folder: Path) -> None:
    """Remove drafts that killed processes have left."""
    for draft in folder.glob(".tmp-*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE_S:
                shutil.rmtree(draft, ignore_errors=True)


def _with_adapter(model: CausalModel, adapter: Path) -> CausalModel:
    try:
        import peft
    except ImportError:
        raise MissingExtraError("peft", extra="train") from None
    library = cast("_Peft", peft)
    try:
        adapted = library.PeftModel.from_pretrained(model, str(adapter))
        expected = library.get_peft_model_state_dict(adapted)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ConfigError(f"the adapter {str(adapter)!r} does not fit the model: {error}") from error
    # peft only warns where tensors are missing, and leaves the layers as they were
    differing = {name for name in set(expected) ^ tensor_names(adapter) if "lora_" in name}
    if differing:
        raise ConfigError(
            f"the adapter {str(adapter)!r} does not fit the model: {len(differing)} tensors differ, such as "
            f"{min(differing)}",
            hint="name the base model that it was trained on",
        )
    if not callable(getattr(adapted, "merge_and_unload", None)):
        raise ConfigError(f"the adapter {str(adapter)!r} is of a kind that cannot be merged", hint="train a LoRA")
    return adapted.merge_and_unload()


@contextlib.contextmanager
def _no_progress_bars() -> Generator[None]:
    """Without transformers' own progress bars, which would tear the caller's; as they were afterwards."""
    from transformers.utils import logging as bars

    shown = bars.is_progress_bar_enabled()
    if shown:
        bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
