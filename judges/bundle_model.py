"""The model of a judge bundle: what is saved of it, and on which back ends the saved one can run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rubricate.chat.base import ChatModel
from rubricate.chat.limited import innermost
from rubricate.chat.local import LocalModel
from rubricate.chat.local_host import resolved_dtype
from rubricate.chat.local_source import Source, resolve, weights_identity
from rubricate.errors import ConfigError, FormatError
from rubricate.judges.bundle_files import MANIFEST
from rubricate.narrow import as_object

__all__ = ["BACK_ENDS", "back_end_of", "connection", "is_moved", "save_model"]

BACK_ENDS = ("local", "vllm")
"""Those that load a model's files themselves: what is saved with one of them runs on the others."""

_ADAPTER, _WEIGHTS = "adapter", "weights"
_VLLM = "rubricate.chat.vllm"


def back_end_of(name: str) -> str:
    """The scheme of a model's name, such as `local`."""
    return name.partition(":")[0]


def save_model(model: ChatModel, name: str | None, folder: Path, *, weights: bool) -> dict[str, object]:
    """The model as the manifest has it, its adapter and, where asked for, its weights copied into the folder.

    Raises ConfigError for a model that cannot be had again by its name.
    """
    loaded = _loaded(model)
    if loaded is None:
        if weights:
            raise ConfigError(f"the weights of {model.name} are not on this machine", hint="leave `weights` out")
        name = name or model.name
        if name.removeprefix("decisions:").startswith("http") and "#" not in name:
            raise ConfigError(
                f"the server at {name} may serve another model tomorrow", hint="name it: http://host/v1#MODEL"
            )
        return {"name": name}
    scheme, adapter = loaded.scheme, loaded.source.adapter
    name = name or innermost(model).name.removesuffix(f"+{adapter.name}" if adapter else "")
    if back_end_of(name) != scheme or "?" in name:
        raise ConfigError(
            f"the name {name!r} does not tell where the model's weights are", hint=f"give model='{scheme}:...'"
        )
    spec = name.removeprefix(f"{scheme}:")
    source = resolve(spec, str(adapter) if adapter else None)
    saved: dict[str, object] = {"options": loaded.options(), "files": weights_identity(source)}
    if adapter is not None:
        shutil.copytree(adapter, folder / _ADAPTER)
        saved["adapter"] = _ADAPTER
    if weights and not source.gguf:
        shutil.copytree(source.path, folder / _WEIGHTS)
        saved["weights"] = _WEIGHTS
    elif weights:
        (folder / _WEIGHTS).mkdir()
        shutil.copy2(source.path, folder / _WEIGHTS / source.path.name)
        saved["weights"] = f"{_WEIGHTS}/{source.path.name}"
    elif Path(spec).expanduser().exists():
        name = f"{scheme}:{source.path}"
    return {"name": name, **saved}


def connection(path: Path, saved: Mapping[str, object], back_end: str | None) -> tuple[str, dict[str, object]]:
    """The name and the options with which `connect` gives the model of a bundle.

    Args:
        path: the bundle.
        saved: the model as the manifest has it.
        back_end: one of BACK_ENDS in place of the one that it was saved with.

    Raises ConfigError for a back end that cannot run it, FormatError for a manifest that leads elsewhere.
    """
    name, weights = str(saved.get("name")), saved.get("weights")
    own = scheme = back_end_of(name)
    if back_end is not None and back_end != own:
        if back_end not in BACK_ENDS or own not in BACK_ENDS:
            one = " and ".join(BACK_ENDS)
            raise ConfigError(
                f"the model {name} of {path.name} cannot run on {back_end!r}",
                hint=f"{one} load files that lie on this machine; all else is saved as it is asked",
            )
        scheme = back_end
    spec = name.removeprefix(f"{own}:")
    if isinstance(weights, str):
        if Path(weights).parts[:1] != (_WEIGHTS,) or ".." in Path(weights).parts:
            raise FormatError(
                "expected a path in this bundle",
                source=str(path / MANIFEST),
                field="model.weights",
                hint="save the judge anew",
            )
        spec = str(path / weights)
    options = dict(as_object(saved.get("options")) or {})
    if scheme != own:
        options = {key: value for key, value in options.items() if key == "dtype"}
    if saved.get("adapter"):
        options["adapter"] = str(path / _ADAPTER)
    return (f"{scheme}:{spec}" if own in BACK_ENDS else name), options


def is_moved(model: ChatModel, saved: Mapping[str, object]) -> bool:
    """Whether this is the bundle's model on another of BACK_ENDS: the same weights, tokenizer and adapter."""
    loaded, own = _loaded(model), back_end_of(str(saved.get("name")))
    if loaded is None or own not in BACK_ENDS or own == loaded.scheme:
        return False
    return weights_identity(loaded.source) == saved.get("files")


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model that loads its files itself.

    Attributes:
        scheme: its back end, one of BACK_ENDS.
        source: where its files are.
        options: gives what of its options changes its answers; what fits them to a machine is left out.
    """

    scheme: str
    source: Source
    options: Callable[[], dict[str, object]]


def _loaded(model: ChatModel) -> _Loaded | None:
    """The model behind all layers as one that loads its files itself; None for any other."""
    inner = innermost(model)
    if isinstance(inner, LocalModel):
        local = inner.options
        # `auto` is another dtype on another machine
        return _Loaded("local", inner.source, lambda: {"dtype": resolved_dtype(local)})
    if _VLLM not in sys.modules:  # its import needs torch, and no model of its can be there without it
        return None
    from rubricate.chat.vllm import VllmModel

    if not isinstance(inner, VllmModel):
        return None
    options = inner.options
    kept = {"max_model_len": options.max_model_len, "eager": options.eager, "engine": dict(options.engine)}
    dtype = options.resolved_dtype
    return _Loaded(
        "vllm", inner.source, lambda: {"dtype": dtype, **{name: value for name, value in kept.items() if value}}
    )
