"""The folder of a run: what it was asked for and where it ran, written before it starts; and what came out."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from rubricate.data.io import parse_json, write_json, write_text, write_yaml
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_object
from rubricate.training.recipe import Recipe
from rubricate.version import __version__

__all__ = ["RunFolder"]

_PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate", "tokenizers")


class RunFolder:
    """A run's folder, opened for a new run or to go on with one.

    Args:
        path: the folder; made where it is not there.
        recipe: of the run.
        resume: go on with the run that lies there.

    Raises ConfigError where another run lies there, or none to go on with, or one of another recipe.
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
        path.mkdir(parents=True, exist_ok=True)

    def describe(self, data: Mapping[str, object], *, threads: int, device: str) -> None:
        """Write the resolved recipe, versions, machine and data. On going on, check that the data are the same.

        Args:
            data: with a `fingerprint`.
            threads: CPU threads.
            device: that is trained on.
        """
        old = self._record()
        if old is not None:
            before = (as_object(old.get("data")) or {}).get("fingerprint")
            if before != data.get("fingerprint"):
                raise ConfigError(
                    "the data are not those that the run began with", hint="start a new run with another --out"
                )
        write_yaml(self.path / "recipe.yaml", self.recipe.resolved())
        record = {
            "recipe": self.recipe.resolved(),
            "versions": _versions(),
            "machine": {**_machine(), "threads": threads, "device": device},
            "data": data,
        }
        write_json(self.path / "run.json", record)

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
        with contextlib.suppress(FormatError, OSError, UnicodeDecodeError):
            return as_object(parse_json(path.read_text(encoding="utf-8"))) or {}
        return {}

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
