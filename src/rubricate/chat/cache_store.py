"""The SQLite file of an answer cache: its schema, its checks, and what is read from and written to it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rubricate.errors import ConfigError

__all__ = ["Entry", "ModelRow", "Store", "is_busy", "storage_error"]

APPLICATION = 0x52756272
"""`application_id` of our files: "Rubr"."""
SCHEMA = 1
CHUNK = 500
"""Keys in one query; SQLite before 3.32 takes 999."""
KEEP = 0.9
"""Eviction goes on until so much of the size bound is used."""

_TABLES = """
CREATE TABLE models (
    id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, name TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, model INTEGER NOT NULL REFERENCES models (id),
    value BLOB NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE INDEX answers_used ON answers (used);
"""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model whose answers are kept; `record` is its line in recordings."""

    fingerprint: str
    name: str
    record: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer to keep: its key (32 hex digits), its model, and itself as JSON."""

    key: str
    model: ModelRow
    value: bytes


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process held the file for longer than we wait."""
    return _code(error) in _BUSY


def _code(error: sqlite3.Error) -> int:
    code: object = getattr(error, "sqlite_errorcode", None)  # absent where the module itself found the fault
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR


def storage_error(path: Path, error: sqlite3.Error) -> ConfigError:
    """The error to raise for what SQLite says of the file."""
    code = _code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return ConfigError(
            f"{path} is damaged, or no answer cache: {error}",
            hint="nothing in it was changed; move it away or delete it (and its -wal and -shm), or name another",
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return ConfigError(
            f"the answer cache {path} cannot be written, the disk may be full: {error}",
            hint="free some space, or use `rubricate cache clear --older-than 30d`; what is in it is kept",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return ConfigError(
            f"the answer cache {path} cannot be opened for writing: {error}",
            hint="check that its folder exists and that both may be written, or name another place",
        )
    if code in _BUSY:
        hint = "try again when it is done, or name another place"
        return ConfigError(f"another process holds the answer cache {path}", hint=hint)
    return ConfigError(f"the answer cache {path} failed: {error}", hint="report this, with the message")


class Store:
    """One connection to the file. Not for two threads at once.

    Args:
        path: the file; made when it is not there, but not its folder.
        busy: seconds to wait for a lock that another process holds.
        max_bytes: size to keep below, None for no bound.

    Raises ConfigError for a file that is damaged, someone else's or of another version, and for a place where
    nothing can be written.
    """

    def __init__(self, path: Path, *, busy: float, max_bytes: int | None) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self._models: dict[str, int] = {}
        try:
            self._db = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise storage_error(path, error) from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._db.close()
            raise storage_error(path, error) from None
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the connection; the last one to close merges the write-ahead log into the file."""
        self._db.close()

    def _prepare(self) -> None:
        if not self._is_ours():
            # Before the first table: it decides the layout of the file.
            self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._to_wal()
            with self._transaction():
                if not self._is_ours():  # another process may have been faster
                    for statement in _TABLES.split(";"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                    self._db.execute(f"PRAGMA user_version = {SCHEMA}")
        self._to_wal()
        # A commit is in the operating system's hands when it returns: it survives the process, not a power cut.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA cache_size = -16000")
        self._db.execute("PRAGMA journal_size_limit = 33554432")

    def _is_ours(self) -> bool:
        """False for a file without anything in it. Raises ConfigError for another's, or another version's."""
        owner, version = self._number("PRAGMA application_id"), self._number("PRAGMA user_version")
        if owner == APPLICATION:
            if version != SCHEMA:
                raise ConfigError(
                    f"{self.path} is an answer cache of version {version}, and this program reads version {SCHEMA}",
                    hint="use the program that made it, name another file, or delete this one",
                )
            return True
        if owner or version or self._number("SELECT count(*) FROM sqlite_master"):
            raise ConfigError(f"{self.path} is another program's database", hint="name another file")
        return False

    def _to_wal(self) -> None:
        """Switch to write-ahead logging. SQLite's own waiting does not cover the switch, so it is tried again."""
        for attempt in range(50):
            try:
                (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or attempt == 49:
                    raise
                time.sleep(0.02)
            else:
                if mode != "wal":
                    raise ConfigError(
                        f"the answer cache {self.path} lies where SQLite cannot keep a write-ahead log",
                        hint="put it on a local disk: network file systems lack the shared memory that this needs",
                    )
                return

    def _number(self, query: str, *values: object) -> int:
        (value,) = self._db.execute(query, values).fetchone()
        return int(value or 0)

    @contextmanager
    def _transaction(self) -> Generator[None, None, None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself where the disk was full
            if self._db.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
            self._models.clear()
            raise

    def read(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The answers that are there, by key. Raises sqlite3.Error."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), CHUNK):
            part = [bytes.fromhex(key) for key in keys[start : start + CHUNK]]
            marks = ",".join("?" * len(part))
            rows = self._db.execute(f"SELECT key, value FROM answers WHERE key IN ({marks})", part)
            found.update((key.hex(), value) for key, value in rows)
        return found

    def write(self, entries: Sequence[Entry], touched: Iterable[str] = ()) -> int:
        """Keep answers in one transaction, and note which ones were used. Returns how many were evicted for them.

        A key that is there already keeps its first answer. Raises sqlite3.Error; then nothing is written.
        """
        now = time.time_ns()
        seconds = now // 1_000_000_000
        with self._transaction():
            self._db.executemany(
                "UPDATE answers SET used = ? WHERE key = ?", ((now, bytes.fromhex(key)) for key in touched)
            )
            self._db.executemany(
                "INSERT INTO answers (key, model, value, created, used) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET used = excluded.used",
                (
                    (bytes.fromhex(entry.key), self._model(entry.model), entry.value, seconds, now)
                    for entry in entries
                ),
            )
            gone = self._evict() if entries else 0
        if gone:
            self._give_back()
        return gone

    def _give_back(self) -> None:
        """Cut free pages off the file. The statement frees a page a step, and `execute` would take only one."""
        self._db.executescript("PRAGMA incremental_vacuum")

    def _model(self, model: ModelRow) -> int:
        found = self._models.get(model.record)
        if found is None:
            self._db.execute(
                "INSERT INTO models (fingerprint, name, record) VALUES (?, ?, ?)"
                " ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, record = excluded.record",
                (model.fingerprint, model.name, model.record),
            )
            found = self._number("SELECT id FROM models WHERE fingerprint = ?", model.fingerprint)
            self._models[model.record] = found
        return found

    @property
    def used_bytes(self) -> int:
        """Bytes of the pages in use, over all processes' answers."""
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def _evict(self) -> int:
        """Drop the least recently used answers until the size is within its bound. Within a transaction."""
        gone = 0
        while self.max_bytes is not None and (used := self.used_bytes) > self.max_bytes:
            count = self._number("SELECT count(*) FROM answers")
            if count == 0:
                break
            share = 1.0 - KEEP * self.max_bytes / used
            some = min(count, max(1, int(count * share)))
            self._db.execute(
                "DELETE FROM answers WHERE id IN (SELECT id FROM answers ORDER BY used, id LIMIT ?)", (some,)
            )
            gone += some
        return gone

    def models(self) -> list[tuple[ModelRow, int, int]]:
        """Each model with the number of its answers and their bytes, by name."""
        rows = self._db.execute(
            "SELECT fingerprint, name, record, count(answers.id), total(length(value)) FROM models"
            " LEFT JOIN answers ON answers.model = models.id GROUP BY models.id ORDER BY name, fingerprint"
        )
        return [(ModelRow(*row[:3]), row[3], int(row[4])) for row in rows]

    def created(self) -> tuple[int, int] | None:
        """When the oldest and the newest answer came, in seconds since 1970."""
        first, last = self._db.execute("SELECT min(created), max(created) FROM answers").fetchone()
        return None if first is None else (first, last)

    def answers(self, fingerprints: Sequence[str], before: int | None) -> Iterator[tuple[str, str, bytes]]:
        """Key, model fingerprint and value of the answers of these models, oldest first, from one snapshot."""
        where, values = _where(fingerprints, before)
        query = f"SELECT key, fingerprint, value FROM answers JOIN models ON models.id = answers.model{where}"
        for key, fingerprint, value in self._db.execute(f"{query} ORDER BY answers.id", values):
            yield key.hex(), fingerprint, value

    def clear(self, fingerprints: Sequence[str], before: int | None) -> int:
        """Drop the answers of these models that came before a time, and give the space back. Returns how many."""
        where, values = _where(fingerprints, before)
        inner = f"SELECT answers.id FROM answers JOIN models ON models.id = answers.model{where}"
        with self._transaction():
            gone = self._db.execute(f"DELETE FROM answers WHERE id IN ({inner})", values).rowcount
        self._give_back()
        with contextlib.suppress(sqlite3.OperationalError):  # others may be reading; the space comes back later
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return gone


def _where(fingerprints: Sequence[str], before: int | None) -> tuple[str, list[object]]:
    """The condition, with a leading space."""
    parts: list[str] = [f"fingerprint IN ({','.join('?' * len(fingerprints))})"]
    values: list[object] = list(fingerprints)
    if before is not None:
        parts.append("created < ?")
        values.append(before)
    return " WHERE " + " AND ".join(parts), values


def file_bytes(path: Path) -> int:
    """Bytes on disk of the file and its write-ahead log."""
    found: Mapping[str, int] = {
        name: os.stat(name).st_size for name in (str(path), f"{path}-wal") if os.path.exists(name)
    }
    return sum(found.values())
