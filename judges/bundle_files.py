"""The files of a judge bundle: where bundles are, what is in one, and whether it is still what was saved."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from importlib.resources import files
from pathlib import Path

from rubricate.chat.local_source import content_hash
from rubricate.data.io import parse_json, write_json
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_object
from rubricate.types import fingerprint

__all__ = ["MANIFEST", "bundle_folders", "find_bundle", "hashes", "new_folder", "read_manifest", "write_manifest"]

MANIFEST = "bundle.json"
FORMAT = 1
_READMES = ("README", "README.md", "README.rst", "README.txt")


def bundle_folders() -> tuple[Path, ...]:
    """Where bundles are looked for by name: `RUBRICATE_JUDGES`, else `XDG_DATA_HOME/rubricate/judges`, else
    `~/.local/share/rubricate/judges`; then those that ship with the package. They need not exist."""
    own = os.environ.get("RUBRICATE_JUDGES")
    if not own:
        base = os.environ.get("XDG_DATA_HOME")
        own = os.path.join(base or os.path.join("~", ".local", "share"), "rubricate", "judges")
    return Path(os.path.expanduser(own)), Path(str(files("rubricate.judges"))) / "bundles"


def find_bundle(place: str | os.PathLike[str]) -> Path:
    """The folder of a bundle, by path or name; `bundle:` in front is left aside. Raises ConfigError."""
    text = os.fspath(place).removeprefix("bundle:")
    if not text:
        raise ConfigError("no judge bundle is named", hint="give its path or name, such as bundle:runs/mine/judge")
    path = Path(os.path.expanduser(text))  # unlike the method of Path, it leaves ~ of an unknown user alone
    named = [folder / text for folder in bundle_folders() if Path(text).name == text]
    named = [folder for folder in named if os.path.isfile(folder / MANIFEST)]
    if os.path.isfile(path / MANIFEST):  # unlike the method of Path, false for a name that can be no file's
        if named and isinstance(place, str) and named[0].resolve() != path.resolve():
            raise ConfigError(
                f"there are two judge bundles {text!r}: here, and {named[0]}",
                hint=f"write ./{text} or the whole path of the other one",
            )
        return path.resolve()
    if os.path.exists(path):
        raise ConfigError(f"{text} is no judge bundle", hint=f"a bundle is a folder with a file {MANIFEST}")
    folders = bundle_folders()
    if Path(text).name != text:
        raise ConfigError(f"there is no judge bundle at {text}")
    if named:
        return named[0].resolve()
    known = sorted({entry.parent.name for folder in folders for entry in folder.glob(f"*/{MANIFEST}")})
    hint = f"there are: {', '.join(known)}" if known else f"give the path of one, or put it into {folders[0]}"
    raise ConfigError(f"there is no judge bundle {text!r}", hint=hint)


@contextlib.contextmanager
def new_folder(folder: Path, *, overwrite: bool) -> Generator[Path]:
    """A folder that takes the place of `folder` when the block ends, and leaves no trace when it raises.

    Raises ConfigError for a place that is taken (with `overwrite`, by anything but a bundle), or in a bundle.
    """
    try:
        target = Path(
            os.path.expanduser(folder)
        ).resolve()  # through links: what they lead to is replaced, not they
    except ValueError as error:
        raise ConfigError(f"{str(folder)!r} is no folder's name: {error}", hint="choose another name") from None
    within = next((above for above in target.parents if os.path.isfile(above / MANIFEST)), None)
    if within is not None:
        raise ConfigError(
            f"{target} is in the judge bundle {within}", hint="nothing may come into one once it is saved"
        )
    if not target.parent.is_dir():
        raise ConfigError(f"the folder {target.parent} does not exist", hint="create it first")
    if os.path.exists(target) and not (overwrite and (target / MANIFEST).is_file()):
        hint = f"{target.name} is no judge bundle: choose another name" if overwrite else "choose another name"
        raise ConfigError(f"{target} exists already", hint=hint)
    mark = secrets.token_hex(4)
    part, old = (target.with_name(f".{target.name}.{mark}.{kind}") for kind in ("part", "old"))
    try:
        part.mkdir()
        yield part
        if target.exists():
            os.replace(target, old)
        os.replace(part, target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error}") from error
    finally:
        if os.path.exists(old) and not os.path.exists(
            target
        ):  # unlike the method of Path, no error for a long name
            os.replace(old, target)
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def hashes(folder: Path) -> dict[str, str]:
    """Hash of every file of a bundle by its path in it, but for the manifest, hidden files and a README at the top.

    Of files beyond 64 MiB the hash covers the size and samples. Raises FormatError for a link, which could lead out
    of the bundle.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST or name.startswith(".") or name in _READMES:
            continue
        if path.is_symlink():
            raise FormatError("a bundle holds no links", source=str(path), hint="put the file itself there")
        if path.is_file():
            found[name] = content_hash(path)
    return found


def write_manifest(folder: Path, fields: Mapping[str, object]) -> None:
    """Write the manifest of a bundle whose other files are there."""
    record = {"format": FORMAT, **fields, "files": hashes(folder)}
    write_json(folder / MANIFEST, {**record, "fingerprint": fingerprint(record)})


def read_manifest(folder: Path) -> Mapping[str, object]:
    """The manifest of a bundle, when it and every file are what was saved.

    Raises FormatError that names the file that was changed, is missing, or has come since.
    """
    path = folder / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot be read: {error}", source=str(path)) from None
    record = as_object(parse_json(text, source=str(path), line=None))
    if record is None:
        raise FormatError("expected a JSON object", source=str(path))
    if record.get("format") != FORMAT:
        raise FormatError(
            f"this version reads format {FORMAT}, not {record.get('format')!r}",
            source=str(path),
            field="format",
            hint="save the judge anew, or use the version of rubricate that saved it",
        )
    content = {name: value for name, value in record.items() if name != "fingerprint"}
    if record.get("fingerprint") != fingerprint(content):
        raise FormatError("this file was changed", source=str(path), hint="save the judge anew")
    saved, there = as_object(record.get("files")) or {}, hashes(folder)
    for name in sorted({*saved, *there}):
        if saved.get(name) != there.get(name):
            why = "has come since" if name not in saved else "is missing" if name not in there else "was changed"
            raise FormatError(
                f"this file of a judge bundle {why}", source=str(folder / name), hint="save the judge anew"
            )
    return content
