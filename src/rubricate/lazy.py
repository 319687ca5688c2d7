"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public names live in other modules.

    Args:
        package: the package's `__name__`.
        home: for each name the module that it is loaded from.
    """

    def get(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, listed
