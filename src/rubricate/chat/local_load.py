"""Loads a local model: a Hugging Face directory, a GGUF file by way of a converted copy, a base with an adapter."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import torch

from rubricate.chat.local_source import Source, gguf_copy
from rubricate.chat.local_torch import CausalModel, ChatTokenizer
from rubricate.errors import ConfigError, MissingExtraError, RubricateError

__all__ = ["empty_cache", "load_model", "loading", "pick_device", "pick_dtype"]

_LOG = logging.getLogger(__name__)
_STALE_S = 24 * 3600

# transformers changes torch's defaults while it builds a model: two loadings at once break each other, for good
_loading = threading.Lock()


def _after_fork() -> None:
    global _loading
    _loading = threading.Lock()  # the parent's may be in the hands of a thread that the child does not have


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Models(Protocol):
    def from_pretrained(self, path: str, **options: object) -> tuple[CausalModel, Mapping[str, object]]: ...


class _Tokenizers(Protocol):
    def from_pretrained(self, path: str, **options: object) -> ChatTokenizer: ...


class _Result(Protocol):
    missing_keys: Sequence[str]
    unexpected_keys: Sequence[str]


class _Configs(Protocol):
    def from_pretrained(self, path: str) -> object: ...


class _Peft(Protocol):
    PeftConfig: _Configs

    def inject_adapter_in_model(self, peft_config: object, model: CausalModel) -> object: ...

    def load_peft_weights(self, path: str, *, device: str) -> Mapping[str, torch.Tensor]: ...

    def set_peft_model_state_dict(self, model: CausalModel, weights: Mapping[str, torch.Tensor]) -> _Result: ...


class _AdapterLayer(Protocol):
    def merge(self) -> None: ...


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
    # an adapter's small changes are added in full precision, then rounded with the weights, once
    first = dtype if source.adapter is None else torch.float32
    try:
        with loading():
            model, tokenizer = _load_gguf(source.path, first) if source.gguf else _load_folder(source.path, first)
    except RubricateError:
        raise
    except Exception as error:  # safetensors and tokenizers have exceptions of their own
        raise ConfigError(f"the model {source.spec!r} cannot be loaded: {error}") from error
    if source.adapter is not None:
        model = _with_adapter(model, source.adapter)
    return model.to(device=device, dtype=dtype).eval(), tokenizer


def _load_folder(path: Path, dtype: torch.dtype) -> tuple[CausalModel, ChatTokenizer]:
    import transformers

    tokenizers = cast("_Tokenizers", transformers.AutoTokenizer)
    tokenizer = tokenizers.from_pretrained(str(path), local_files_only=True)
    return _whole_model(str(path), dtype=dtype), tokenizer


def _whole_model(path: str, **options: object) -> CausalModel:
    """Raises ValueError where the files lack weights, which transformers would fill with random numbers."""
    import transformers

    models = cast("_Models", transformers.AutoModelForCausalLM)
    model, info = models.from_pretrained(path, local_files_only=True, output_loading_info=True, **options)
    lacking = sorted(str(name) for name in cast("Iterable[object]", info.get("missing_keys", ())))
    if lacking:
        raise ValueError(f"{len(lacking)} weights are missing, such as {lacking[0]}")
    return model


def _load_gguf(path: Path, dtype: torch.dtype) -> tuple[CausalModel, ChatTokenizer]:
    """From the converted copy where there is one; else convert, which takes 10 to 20 times as long, and keep it."""
    import transformers

    copy = gguf_copy(path)
    if copy.is_dir():
        try:
            model, tokenizer = _load_folder(copy, dtype)
            if tokenizer.chat_template:
                return model, tokenizer
            raise ValueError("there is no chat template")  # a file of the copy is lost, or never was: see anew
        except Exception as error:  # safetensors and tokenizers have exceptions of their own
            _LOG.warning("the converted copy %s is unreadable (%s); converting again", copy, error)
            shutil.rmtree(copy, ignore_errors=True)
    for package in ("gguf", "accelerate"):  # transformers reads the file with them
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra="local")
    tokenizers = cast("_Tokenizers", transformers.AutoTokenizer)
    place = str(path.parent)
    tokenizer = tokenizers.from_pretrained(place, gguf_file=path.name, local_files_only=True)
    # without dequantize=True transformers 5 keeps the blocks, and such a model cannot be saved
    unpacked = transformers.GgufConfig(dequantize=True)
    model = _whole_model(place, gguf_file=path.name, dtype=torch.float32, quantization_config=unpacked)
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
    """The model, changed in place: adapter layers put in, filled and merged."""
    try:
        import peft
        from peft.tuners.tuners_utils import BaseTunerLayer
    except ImportError:
        raise MissingExtraError("peft", extra="train") from None
    library = cast("_Peft", peft)
    misfit = f"the adapter {str(adapter)!r} does not fit the model"
    try:
        library.inject_adapter_in_model(library.PeftConfig.from_pretrained(str(adapter)), model)
        weights = library.load_peft_weights(str(adapter), device="cpu")
        # names are those of a model that peft has wrapped, which this one is not
        found = {name.removeprefix("base_model.model."): tensor for name, tensor in weights.items()}
        result = library.set_peft_model_state_dict(model, found)
    except Exception as error:  # peft raises whatever happens to break
        raise ConfigError(f"{misfit}: {error}", hint="name the base model that it was trained on") from error
    # layers without their tensors would silently stay as they were
    differing = [name for name in result.missing_keys if "lora_" in name] + list(result.unexpected_keys)
    if differing:
        raise ConfigError(
            f"{misfit}: {len(differing)} tensors differ, such as {min(differing)}",
            hint="name the base model that it was trained on",
        )
    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            cast("_AdapterLayer", module).merge()
    return model


@contextlib.contextmanager
def loading() -> Generator[None]:
    """Hold this while transformers loads a model: one at a time in the process, and without progress bars."""
    with _loading, _no_progress_bars():
        yield


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
