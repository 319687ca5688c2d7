"""`rubricate cache`: what is in the answer cache, export and import as recordings, clearing."""

from __future__ import annotations

import re
import time
from pathlib import Path

from rubricate.chat.cache import MAX_BYTES
from rubricate.chat.cache_contents import (
    add_answers,
    cache_contents,
    clear_cache,
    default_cache_path,
    export_answers,
)
from rubricate.chat.recording import recorded_entries
from rubricate.cli.summary import counted, table
from rubricate.data.io import atomic
from rubricate.errors import ConfigError

__all__ = ["read_age", "run_clear", "run_export", "run_import", "show_stats"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_OLDEST = 1e12
"""Seconds. No answer is older, and a time so long ago is still a number that SQLite can hold."""


def read_age(text: str | None) -> float | None:
    """`--older-than` in seconds. Raises ConfigError."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if found is None:
        raise ConfigError(f"--older-than {text!r} is no age", hint="as in 90s, 15m, 12h, 30d or 4w")
    return min(float(found[1]) * _UNITS[found[2]], _OLDEST)


def show_stats(path: Path | None) -> None:
    """Print what is in the cache. Raises ConfigError."""
    place = path or default_cache_path()
    found = cache_contents(place)
    lines = [
        ("answers", f"{found.answers:,}"),
        ("in use", _size(found.used_bytes)),
        ("on disk", _size(found.file_bytes)),
    ]
    if found.span is not None:
        lines += [("oldest", _day(found.span[0])), ("newest", _day(found.span[1]))]
    lines += [
        (f"  {name} ({fingerprint})", f"{counted(count, 'answer')}, {_size(size)}")
        for name, fingerprint, count, size in found.models
        if count
    ]
    print(f"{place}\n{table(lines)}")


def _size(number: int) -> str:
    for unit, bound in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= bound:
            return f"{number / bound:.1f} {unit}"
    return f"{number} bytes"


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def run_export(out: Path, path: Path | None, model: str | None, older_than: str | None) -> None:
    """Write the answers to a recording, in one step. Raises ConfigError."""
    if out.exists():
        raise ConfigError(f"{out} exists already", hint="name another file, or remove it")
    if not out.parent.is_dir():
        raise ConfigError(f"the folder {out.parent} does not exist", hint="create it first")
    lines = export_answers(path or default_cache_path(), model=model, older_than=read_age(older_than))
    count = 0
    with atomic(out) as file:
        for line in lines:
            count += line.startswith(b'{"key"')
            file.write(line)
    print(f"written: {out}, {counted(count, 'answer')}")


def run_import(source: Path, path: Path | None) -> None:
    """Add the answers of a recording to the cache. Raises ConfigError, FormatError."""
    place = path or default_cache_path()
    added = add_answers(place, recorded_entries(source), max_bytes=MAX_BYTES)
    print(f"{counted(added, 'answer')} added to {place}")


def run_clear(path: Path | None, model: str | None, older_than: str | None, *, everything: bool) -> None:
    """Drop answers. Raises ConfigError."""
    if not (model or older_than or everything):
        raise ConfigError(
            "nothing says which answers to drop", hint="give --model, --older-than, or --all to drop every one"
        )
    place = path or default_cache_path()
    gone = clear_cache(place, model=model, older_than=read_age(older_than))
    print(f"{counted(gone, 'answer')} dropped from {place}")
