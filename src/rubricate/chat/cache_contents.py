"""What is in an answer cache: an overview, clearing, export as a recording, import."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rubricate.chat.cache_store import Entry, Store, file_bytes, storage_error
from rubricate.chat.local_source import cache_root
from rubricate.chat.recording_lines import HEADER, as_line
from rubricate.errors import ConfigError

__all__ = [
    "CacheContents",
    "add_answers",
    "cache_contents",
    "clear_cache",
    "default_cache_path",
    "export_answers",
    "make_default_folder",
]

BUSY = 10.0
"""Seconds to wait for another process's write."""
BATCH = 1000


def default_cache_path() -> Path:
    """Where answers are kept where nobody says otherwise: `answers.sqlite` in `RUBRICATE_CACHE`, else in
    `XDG_CACHE_HOME/rubricate`, else in `~/.cache/rubricate`."""
    return cache_root() / "answers.sqlite"


def make_default_folder(path: Path) -> None:
    """Make the folder of the default place, and of no other: a slip in a name makes no folders."""
    if path != default_cache_path().absolute():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "set RUBRICATE_CACHE to a folder that can be written, or name a file"
        raise ConfigError(
            f"the folder {path.parent} of the answer cache cannot be made: {error}", hint=hint
        ) from None


@dataclass(frozen=True, slots=True)
class CacheContents:
    """What is in the file: models by name and fingerprint with their answers and bytes; when the oldest and the
    newest came (seconds since 1970); bytes in use and on disk."""

    models: Sequence[tuple[str, str, int, int]]
    span: tuple[int, int] | None
    used_bytes: int
    file_bytes: int

    @property
    def answers(self) -> int:
        """Answers in all."""
        return sum(count for _, _, count, _ in self.models)


@contextmanager
def _store(path: Path, max_bytes: int | None = None) -> Generator[Store, None, None]:
    """A connection of its own: work on it may take long, and others go on reading and writing meanwhile."""
    path = path.expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"there is no answer cache {path}", hint="`rubricate score ... --cache` makes one")
    store = Store(path, busy=BUSY, max_bytes=max_bytes)
    try:
        yield store
    except sqlite3.Error as error:
        raise storage_error(path, error) from None
    finally:
        store.close()


def cache_contents(path: Path) -> CacheContents:
    """What is in the file. Raises ConfigError, also where there is none."""
    with _store(path) as store:
        models = [(model.name, model.fingerprint, count, size) for model, count, size in store.models()]
        return CacheContents(models, store.created(), store.used_bytes, file_bytes(path))


def clear_cache(path: Path, *, model: str | None = None, older_than: float | None = None) -> int:
    """Drop answers, and give their space back. Returns how many.

    Args:
        path: the file.
        model: only those of this model, by name or fingerprint.
        older_than: only those that came longer ago than so many seconds.

    Raises ConfigError, also for a model that has no answers here.
    """
    before = None if older_than is None else int(time.time() - older_than)
    with _store(path) as store:
        return store.clear(_fingerprints(store, model), before)


def export_answers(path: Path, *, model: str | None = None, older_than: float | None = None) -> Iterator[bytes]:
    """The lines of a recording that holds the answers, oldest first. Arguments and errors as in `clear_cache`."""
    before = None if older_than is None else int(time.time() - older_than)
    with _store(path) as store:
        chosen = _fingerprints(store, model)
        yield as_line(HEADER)
        for row, count, _ in store.models():
            if row.fingerprint in chosen and count:
                yield row.record.encode() + b"\n"
        for key, fingerprint, value in store.answers(chosen, before):
            yield b'{"key":"%s","model":"%s","answer":%s}\n' % (key.encode(), fingerprint.encode(), value)


def add_answers(path: Path, entries: Iterable[Entry], *, max_bytes: int | None = None) -> int:
    """Keep answers that come from elsewhere, such as a recording, a batch at a time; the file is made if need be.

    Returns how many were not there yet. Raises ConfigError.
    """
    path = path.expanduser().absolute()
    make_default_folder(path)
    Store(path, busy=BUSY, max_bytes=max_bytes).close()
    with _store(path, max_bytes) as store:
        before = sum(count for _, count, _ in store.models())
        waiting: list[Entry] = []
        for entry in entries:
            waiting.append(entry)
            if len(waiting) == BATCH:
                store.write(waiting)
                waiting.clear()
        store.write(waiting)
        return sum(count for _, count, _ in store.models()) - before


def _fingerprints(store: Store, model: str | None) -> list[str]:
    rows = [row for row, _, _ in store.models()]
    found = [row.fingerprint for row in rows if model is None or model in (row.name, row.fingerprint)]
    if model is not None and not found:
        names = ", ".join(sorted({row.name for row in rows})) or "none"
        raise ConfigError(f"{store.path} has no answers of {model!r}", hint=f"models in it: {names}")
    return found
