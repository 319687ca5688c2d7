"""The package list, the folder map and the links say the same."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
FOLDERS: dict[str, str] = SETUP["package-dir"]


def packages_on_disk() -> list[str]:
    found: list[str] = []
    for package, folder in FOLDERS.items():
        top = ROOT / folder
        for path, names, files in os.walk(top):
            names[:] = [name for name in names if name != "__pycache__"]
            if "__init__.py" in files:
                found.append(".".join([package, *Path(path).relative_to(top).parts]))
    return sorted(found)


def test_every_package_is_declared() -> None:
    assert packages_on_disk() == SETUP["packages"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
@pytest.mark.parametrize("package", [name for name in FOLDERS if "." in name])
def test_link_points_to_the_folder(package: str) -> None:
    link = ROOT / "src" / package.replace(".", "/")
    assert link.is_symlink()
    assert link.resolve() == (ROOT / FOLDERS[package]).resolve()
