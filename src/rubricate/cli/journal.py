"""The journal of a long run: one line a finished row, so that a killed run goes on where it stopped.

The first line holds the run's settings, each further line a row's key and its record. Lines are written in one call
as rows finish, so a killed process loses none of them; they are brought to disk in batches where a sync of every
line would cost more than a tenth of the time, so a power cut can lose the last few. An operating-system lock on the
file keeps a second process out and falls away with the process that holds it.
"""

from __future__ import annotations

import json
import os
import time
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rubricate.chat.recording_file import open_locked, write_whole
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_object

__all__ = ["Journal", "differences", "journal_path"]

VERSION = 1
SYNC_SHARE = 10
"""A line is synced at once unless the last sync began less than this many times its own length ago."""


def journal_path(out: Path) -> Path:
    """Where the journal of an output file lies: beside it."""
    return out.with_name(f"{out.name}.journal")


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """The settings that differ, as `name: old -> new`, sorted by name."""
    before, after = _flat(old), _flat(new)
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name, 'not set')} -> {after.get(name, 'not set')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _flat(value: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, item in value.items():
        inner = as_object(item)
        if inner is not None:
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[prefix + key] = json.dumps(item, ensure_ascii=False)
    return flat


class Journal:
    """An open, locked journal. Use as a context manager.

    Args:
        path: the journal file.
        settings: what decides the records, such as judge, aggregation and rubric; JSON values.
        restart: throw away what is there.

    Attributes:
        new: nothing was there when it was opened, not even settings; never so with `restart`.

    Raises ConfigError when another process holds it, or when it was made with other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, object], *, restart: bool = False) -> None:
        self.path = path
        self._synced = self._sync_cost = 0.0
        self._dirty = False
        self.new = False
        busy = ConfigError(
            f"another process is writing to the same output (it holds {path})",
            hint="wait for it to end, or choose another --out",
        )
        self._file = open_locked(path, busy=busy, hint="choose another --out")
        try:
            if restart:
                os.ftruncate(self._file, 0)
            keys, offsets = self._load(settings)
            self.new = self.new and not restart
        except BaseException:
            os.close(self._file)
            raise
        self._index = _Index(keys, offsets)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Rows that were committed when the journal was opened."""
        return len(self._index)

    @property
    def untaken(self) -> int:
        """Rows that were there when it was opened and that nobody has taken."""
        return self._index.untaken

    def take(self, key: str) -> tuple[int, bool] | None:
        """Where the committed row with that key lies, and whether it is to be scored again; None if there is none.

        Rows with equal keys are handed out once each, in the order in which they were committed.
        """
        place = self._index.take(int(key, 16))
        return None if place is None else (abs(place), place < 0)

    def append(
        self, key: str, record: Mapping[str, object], *, retry: bool = False, replaces: int | None = None
    ) -> int:
        """Commit a row and return where it lies.

        Args:
            key: 16 hex digits that identify the row's content.
            record: what is to be written out for it.
            retry: a later run shall score the row again.
            replaces: place of the line that this one stands for.
        """
        line: dict[str, object] = {"key": key, "record": record}
        if retry:
            line["retry"] = True
        if replaces is not None:
            line["replaces"] = replaces
        place = self._end
        self._write(line)
        return place

    def read(self, place: int) -> Mapping[str, object]:
        """The record that lies there. Raises FormatError when the journal was changed meanwhile."""
        with open(self.path, "rb") as file:
            file.seek(place)
            found = _parse(file.readline())
        record = as_object(found.get("record")) if found else None
        if record is None:
            raise FormatError("the journal was changed while it was in use", source=str(self.path))
        return record

    def read_many(self, places: array[int]) -> Iterator[Mapping[str, object]]:
        """The records at these places, in that order, one at a time."""
        with open(self.path, "rb") as file:
            for place in places:
                file.seek(place)
                found = _parse(file.readline())
                record = as_object(found.get("record")) if found else None
                if record is None:
                    raise FormatError("the journal was changed while it was in use", source=str(self.path))
                yield record

    def sync(self) -> None:
        """Bring every line to disk."""
        if self._dirty:
            began = time.monotonic()
            os.fsync(self._file)
            self._synced, self._sync_cost, self._dirty = began, time.monotonic() - began, False

    def close(self) -> None:
        """Sync, and let go of the lock. Once is enough; more does no harm."""
        if self._file >= 0:
            self.sync()
            os.close(self._file)
            self._file = -1

    def discard(self) -> None:
        """Remove the file while the lock is still held."""
        self._dirty = False
        self.path.unlink(missing_ok=True)
        self.close()

    def _write(self, value: Mapping[str, object]) -> None:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        raw = data.encode("utf-8", "surrogatepass") + b"\n"
        try:
            write_whole(self._file, raw)
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written: {error.strerror}",
                hint="what is in it is kept; run the same command again when there is room",
            ) from None
        self._end += len(raw)
        self._dirty = True
        if time.monotonic() - self._synced >= SYNC_SHARE * self._sync_cost:
            self.sync()

    def _load(self, settings: Mapping[str, object]) -> tuple[array[int], array[int]]:
        """Keys and places of the committed rows; places of rows to be scored again are negative."""
        keys, places = array("Q"), array("q")
        replaced: set[int] = set()
        self._end = 0
        with open(self.path, "rb") as file:
            first = file.readline()
            if not first.endswith(b"\n"):  # new, or the process died while writing the first line
                self.new = True
                self._begin(settings)
                return keys, places
            self._check(_parse(first) or {}, settings)
            self._end = file.tell()
            for raw in file:
                if not raw.endswith(b"\n"):
                    break  # torn: the process died while writing it
                line = _parse(raw)
                if line is not None and isinstance(line.get("key"), str):
                    keys.append(int(str(line["key"]), 16))
                    places.append(-self._end if line.get("retry") else self._end)
                    if isinstance(line.get("replaces"), int):
                        replaced.add(int(str(line["replaces"])))
                self._end += len(raw)
        os.ftruncate(self._file, self._end)
        os.lseek(self._file, self._end, os.SEEK_SET)
        if replaced:
            kept = [index for index, place in enumerate(places) if abs(place) not in replaced]
            keys, places = array("Q", (keys[index] for index in kept)), array("q", (places[i] for i in kept))
        return keys, places

    def _begin(self, settings: Mapping[str, object]) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._write({"journal": "rubricate", "version": VERSION, "settings": settings})

    def _check(self, header: Mapping[str, object], settings: Mapping[str, object]) -> None:
        old = as_object(header.get("settings"))
        if old is None or header.get("version") != VERSION:
            raise ConfigError(
                f"{self.path} is not a journal of this version", hint="remove it, or use --restart to begin anew"
            )
        # Through JSON, so that tuples and lists compare equal.
        changed = differences(old, json.loads(json.dumps(settings)))
        if changed:
            raise ConfigError(
                f"{self.path} holds rows that were made with other settings: {'; '.join(changed)}",
                hint="use the old settings, another --out, or --restart to throw these rows away",
            )


def _parse(raw: bytes) -> Mapping[str, object] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        return as_object(json.loads(raw.decode("utf-8", "surrogatepass")))
    except ValueError:
        return None


class _Index:
    """Keys to places in 20 bytes a row, so that files of millions of rows fit."""

    def __init__(self, keys: array[int], places: array[int]) -> None:
        found: NDArray[np.uint64] = np.array(keys, dtype=np.uint64)
        order = np.argsort(found, kind="stable")
        self._keys = found[order]
        self._places: NDArray[np.int64] = np.array(places, dtype=np.int64)[order]
        self._taken: NDArray[np.int32] = np.zeros(len(found), dtype=np.int32)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def untaken(self) -> int:
        return len(self._keys) - int(self._taken.sum())

    def take(self, key: int) -> int | None:
        first = int(np.searchsorted(self._keys, np.uint64(key)))
        if first >= len(self._keys) or int(self._keys[first]) != key:
            return None
        place = first + int(self._taken[first])
        if place >= len(self._keys) or int(self._keys[place]) != key:
            return None
        self._taken[first] += 1
        return int(self._places[place])
