"""`--import`: runs a module or file of the user's, so that the verifiers that it registers can be used."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

from rubricate.errors import ConfigError

__all__ = ["import_code"]


def import_code(name: str) -> None:
    """Import a module by its dotted name (looked for in the current folder too), or run a file ending in `.py`.

    Raises ConfigError, naming module or file, for whatever goes wrong in it.
    """
    try:
        if name.endswith(".py"):
            _run(Path(name))
        else:
            if os.getcwd() not in sys.path:
                sys.path.insert(0, os.getcwd())
            importlib.import_module(name)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ConfigError(
            f"--import {name}: {type(error).__name__}: {error}",
            hint="give a module's dotted name or a file ending in .py; --debug shows where it failed",
        ) from error


def _run(path: Path) -> None:
    name = path.stem if path.stem not in sys.modules else f"imported_{path.stem}"  # it must not hide another module
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what it defines can be found by name, as when it is pickled
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
