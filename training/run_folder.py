"""The folder of a run: what it was asked for and where it ran, written before it starts; and what came out."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import os
import platform
import re
import secrets
import shutil
from collections.abc import Generator, Mapping
from pathlib import Path

from rubricate.data.io import parse_json, write_json, write_text, write_yaml
from rubricate.errors import ConfigError, FormatError, RubricateError
from rubricate.narrow import as_object
from rubricate.training.recipe import Recipe
from rubricate.version import __version__

__all__ = ["RunFolder", "room", "whole_folder"]

_PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "tokenizers")
_LEAVES = (
    "checkpoints",
    "model",
    "adapter",
    "judge",
)  # written over in a run, so none of another origin may be there
_UNFINISHED = re.compile(r"\.(base|model|adapter|judge)\.[0-9a-f]{8}\.(part|old)")


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextlib.contextmanager
def room(folder: Path) -> Generator[None]:
    """Raises ConfigError where a block fails because its files cannot be written, whichever library says so."""
    try:
        yield
    except RubricateError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        # a full disk is a RuntimeError of torch's archive writer
        if (error.errno if isinstance(error, OSError) else None) in _FULL or "inline_container" in str(error):
            raise _no_room(folder, error) from error
        raise
    except Exception as error:
        if type(error).__name__ == "SafetensorError" and "I/O" in str(error):  # of a library that is loaded later
            raise _no_room(folder, error) from error
        raise


def _no_room(folder: Path, error: Exception) -> ConfigError:
    said = str(error).splitlines()[0]
    return ConfigError(f"{folder} cannot be written: {said}", hint="make room, and go on with --resume")


@contextlib.contextmanager
def whole_folder(folder: Path) -> Generator[Path]:
    """A folder that takes the place of `folder` when the block ends, and leaves no trace when it raises."""
    mark = secrets.token_hex(4)
    part, old = (folder.with_name(f".{folder.name}.{mark}.{kind}") for kind in ("part", "old"))
    part.mkdir(parents=True)
    try:
        yield part
        if folder.exists():
            os.replace(folder, old)
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


class RunFolder:
    """A run's folder, opened for a new run or to go on with one.

    Args:
        path: the folder; made where it is not there.
        recipe: of the run.
        resume: go on with the run that lies there.

    Until it is closed no other run can be opened there. What a killed run has left half-written is removed.

    Raises ConfigError where another run lies there or goes on, none lies there to go on with, or one of another
    recipe; where folders lie that a run would write over; and where nothing can be written.
    """

    def __init__(self, path: Path, recipe: Recipe, *, resume: bool) -> None:
        self.path = path
        self.recipe = recipe
        self.resume = resume
        old = self._record()
        if old is not None and not resume:
            raise ConfigError(f"a run lies in {path}", hint="go on with it by --resume, or choose another --out")
        if old is None and resume:
            raise ConfigError(f"no run lies in {path} to go on with", hint="leave --resume out")
        if old is not None:
            self._check(as_object(old.get("recipe")) or {})
        taken = [name for name in _LEAVES if (path / name).exists()] if old is None else []
        if taken:
            raise ConfigError(
                f"{path} holds {taken[0]}/, but no run", hint="a run would write over it: choose another --out"
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(path)
        except OSError as error:
            raise ConfigError(
                f"no run can be written to {path}: {error.strerror}", hint="choose another --out"
            ) from None
        for rest in path.iterdir():
            if _UNFINISHED.fullmatch(rest.name):
                shutil.rmtree(rest, ignore_errors=True)

    def close(self) -> None:
        """Let other runs open the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def describe(self, data: Mapping[str, object], *, threads: int, device: str) -> list[str]:
        """Write the resolved recipe, versions, machine and data. On going on, check that the data are the same.

        Args:
            data: with a `fingerprint`.
            threads: CPU threads.
            device: that is trained on.

        Returns what differs from the run that is gone on with and may change what comes out.
        """
        old = self._record()
        notes: list[str] = []
        if old is not None:
            before = (as_object(old.get("data")) or {}).get("fingerprint")
            if before != data.get("fingerprint"):
                raise ConfigError(
                    "the data are not those that the run began with", hint="start a new run with another --out"
                )
            notes = _moved(as_object(old.get("versions")) or {})
        write_yaml(self.path / "recipe.yaml", self.recipe.resolved())
        record = {
            "recipe": self.recipe.resolved(),
            "versions": _versions(),
            "machine": {**_machine(), "threads": threads, "device": device},
            "data": data,
        }
        write_json(self.path / "run.json", record)
        return notes

    def write(self, name: str, value: Mapping[str, object]) -> None:
        """Write a JSON file of the run."""
        write_json(self.path / name, value)

    def page(self, text: str) -> Path:
        """Write the page, and give its path."""
        write_text(self.path / "page.html", text)
        return self.path / "page.html"

    def _record(self) -> Mapping[str, object] | None:
        path = self.path / "run.json"
        if not path.exists():
            return None
        record: Mapping[str, object] | None = None
        with contextlib.suppress(FormatError, OSError, UnicodeDecodeError):
            record = as_object(parse_json(path.read_text(encoding="utf-8")))
        if record is None or as_object(record.get("recipe")) is None:
            raise ConfigError(f"{path} cannot be read: it is no run's record", hint="choose another --out")
        return record

    def _check(self, old: Mapping[str, object]) -> None:
        """A run may be given more time or steps to go on; all else would be another run."""
        now = _flat(self.recipe.resolved())
        before = _flat(old)
        free = {"run.max_minutes", "run.threads", "about"}
        differing = sorted(key for key in {*now, *before} - free if now.get(key) != before.get(key))
        if differing:
            key = differing[0]
            raise ConfigError(
                f"the run in {self.path} has {key} = {before.get(key)!r}, not {now.get(key)!r}",
                hint="go on with the same recipe, or choose another --out",
            )


def _locked(path: Path) -> int | None:
    """A lock on the folder, which ends with the process; None where the file system or the machine has none."""
    if os.environ.get("RANK", "0") != "0":  # of the processes of one run, one has it
        return None
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ConfigError(
            f"another run goes on in {path}", hint="wait for its end, or choose another --out"
        ) from None
    except OSError:
        os.close(handle)
        return None
    return handle


def _moved(before: Mapping[str, object]) -> list[str]:
    """The versions that are others now."""
    now = _versions()
    differing = [name for name in now if name in before and before[name] != now[name]]
    said = ", ".join(f"{name} {now[name]} (it began with {before[name]})" for name in differing)
    return [f"the run goes on with other versions: {said}"] if said else []


def _flat(fields: Mapping[str, object], before: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in fields.items():
        inner = as_object(value)
        found |= {before + name: value} if inner is None else _flat(inner, f"{before}{name}.")
    return found


def _versions() -> dict[str, str]:
    versions = {"rubricate": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def _machine() -> dict[str, object]:
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {"system": platform.system(), "cpu": cpu, "cores": os.cpu_count() or 0}
