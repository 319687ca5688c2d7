"""The answer cache: what a model has answered once is kept in one SQLite file and not paid for again.

Any number of threads, event loops and processes may share the file. An answer is committed before it is returned:
concurrent ones are committed together by one background thread, off the event loop. A commit outlives the process
(`kill -9`), though not a power cut, after which the file is sound and the last few answers may be missing.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from rubricate.chat.base import Completion, Outcome
from rubricate.chat.cache_contents import default_cache_path, make_default_folder
from rubricate.chat.cache_flights import Flights
from rubricate.chat.cache_store import Entry, ModelRow, Store, is_busy, storage_error
from rubricate.chat.recording_lines import answer_of, answer_record, as_line
from rubricate.errors import ChatError, ConfigError
from rubricate.narrow import as_object
from rubricate.types import Usage

__all__ = ["AnswerCache", "CacheStats", "is_settled", "open_cache"]

log = logging.getLogger(__name__)

MAX_BYTES = 4 << 30
TOUCHED = 1000
"""So many uses are noted at once, with the next answers that are kept or when the cache is closed."""


def is_settled(answer: Completion) -> bool:
    """Whether asking again is of no use: all answers but empty ones, which judges hold to be worth another try.

    Cut, filtered and refused answers are settled: the same request would be cut, filtered or refused again, and a
    judge that asks once more asks for more tokens or with another sample index.
    """
    return answer.outcome is not Outcome.EMPTY


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache object has done so far.

    Attributes:
        hits: answers found in the file.
        shared: answers that a concurrent request for the same was waiting for.
        misses: requests that went to the model.
        stored: answers kept.
        dropped: answers that could not be kept because other processes held the file.
        evicted: answers dropped to keep the size.
        saved: what hits and shared answers had cost when they were paid for.
    """

    hits: int = 0
    shared: int = 0
    misses: int = 0
    stored: int = 0
    dropped: int = 0
    evicted: int = 0
    saved: Usage = Usage()


@dataclass(slots=True)
class _Batch:
    """Answers that will be committed together; `done` holds nothing but the news that they were tried."""

    entries: list[Entry] = field(default_factory=list[Entry])
    done: Future[None] = field(default_factory=Future[None])


@dataclass(slots=True)
class _Open:
    """Connections, the thread that writes, and what concurrent calls share. One a process."""

    reader: Store
    writer: Store
    pid: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)  # of the reader
    executor: ThreadPoolExecutor = field(init=False)
    writing: int = 0  # that thread

    def __post_init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="rubricate-cache", initializer=self._begin)

    def _begin(self) -> None:
        self.writing = threading.get_ident()

    def close(self) -> None:
        """Wait for what is being written, then close. A forked child leaves its parent's connections alone."""
        if self.pid == os.getpid():
            # The last reference to a cache may go on the writing thread, which cannot wait for itself.
            self.executor.shutdown(wait=threading.get_ident() != self.writing)
            self.writer.close()
            self.reader.close()


_ABANDONED: list[_Open] = []  # a parent's connections: SQLite forbids to close them in a forked child


class AnswerCache:
    """Answers of models by request, in one SQLite file (write-ahead log).

    Give it to `connect(name, cache=...)`. Nothing is opened before the first use. It pickles as its path and
    options, and a forked child opens the file anew. Put the file on a local disk: SQLite's write-ahead log does not
    work over network file systems.

    Args:
        path: the file, by default `default_cache_path()`, whose folder is made; no other folder is.
        max_bytes: size to keep below; the least recently used answers go first. None for no bound.
        busy_timeout: seconds to wait for another process's write. After that answers are passed on without being
            kept, with one warning.

    Raises ConfigError, when it is first used, for a file that is damaged, of another version or not ours; and, from
    the next request that would be asked, when answers cannot be written: no more is paid for what cannot be kept.
    The answers already paid for are returned, and are kept once there is room again.
    """

    def __init__(
        self, path: str | Path | None = None, *, max_bytes: int | None = MAX_BYTES, busy_timeout: float = 10.0
    ) -> None:
        self.path = Path(path).expanduser().absolute() if path is not None else default_cache_path().absolute()
        self.max_bytes = max_bytes
        self.busy_timeout = busy_timeout
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._opened: _Open | None = None
        self._closer: weakref.finalize[[], AnswerCache] | None = None
        self.flights = Flights()
        self._pending: _Batch | None = None
        self._unsaved: list[Entry] = []
        self._touched: dict[str, None] = {}
        self._failure: ConfigError | None = None
        self._warned = False
        self._counts: Counter[str] = Counter()
        self._saved = Usage()

    def __repr__(self) -> str:
        return f"AnswerCache({str(self.path)!r})"

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "max_bytes": self.max_bytes, "busy_timeout": self.busy_timeout}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._start()

    @property
    def stats(self) -> CacheStats:
        """Hits, misses and the like of this object."""
        with self._lock:
            return CacheStats(**self._counts, saved=self._saved)

    @property
    def failure(self) -> ConfigError | None:
        """Why answers cannot be kept at present, None where they can."""
        return self._failure

    def count(self, **more: int) -> None:
        """Add to the counters of `stats`."""
        with self._lock:
            self._counts.update(more)

    def _current(self) -> _Open:
        if self._pid != os.getpid():  # a fork has copied the lock in whatever state it was in
            if self._opened is not None:
                _ABANDONED.append(self._opened)
            if self._closer is not None:
                self._closer.detach()
            self._start()
        with self._lock:
            if self._opened is None:
                make_default_folder(self.path)
                writer = self._connection()
                self._opened = _Open(self._connection(), writer)
                self._closer = weakref.finalize(self, self._opened.close)
            return self._opened

    def _connection(self) -> Store:
        return Store(self.path, busy=self.busy_timeout, max_bytes=self.max_bytes)

    def open(self) -> None:
        """Open the file, so that what is wrong with it is known at once. Raises ConfigError."""
        self._current()

    def flush(self) -> None:
        """Wait until all is written, and the uses of answers are noted."""
        if self._opened is not None and self._opened.pid == os.getpid():
            self._schedule([]).result()

    def close(self) -> None:
        """Flush, and close the file, when nobody is using this object. The next use opens it again."""
        self.flush()
        with self._lock:
            closer, self._closer, self._opened = self._closer, None, None
        if closer is not None:
            closer()

    def look_up(self, keys: Sequence[str]) -> dict[str, Completion]:
        """The answers that are kept, by key. Their usage is empty: nothing was paid now. Raises ConfigError."""
        opened = self._current()
        try:
            with opened.lock:
                found = opened.reader.read(keys)
        except sqlite3.Error as error:
            if is_busy(error):  # as good as not there
                return {}
            raise storage_error(self.path, error) from None
        answers = {key: self._parsed(value) for key, value in found.items()}
        if answers:
            with self._lock:
                self._touched.update(dict.fromkeys(answers))
                for answer in answers.values():
                    self._saved += answer.usage
            if len(self._touched) >= TOUCHED:
                self._schedule([])
        return {key: replace(answer, usage=Usage()) for key, answer in answers.items()}

    def share(self, answer: Completion) -> Completion:
        """The answer for one who did not pay for it."""
        with self._lock:
            self._saved += answer.usage
        self.count(shared=1)
        return replace(answer, usage=Usage())

    def _parsed(self, value: bytes) -> Completion:
        try:
            return answer_of(as_object(json.loads(value)) or {})
        except (ValueError, TypeError, RecursionError) as error:
            broken = sqlite3.DatabaseError(f"an answer in it cannot be read: {error}")
            broken.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise storage_error(self.path, broken) from None

    async def keep(self, model: ModelRow, answers: Iterable[tuple[str, Completion | ChatError]]) -> None:
        """Keep settled answers, and return when they are committed, or cannot be: see `failure`."""
        entries = [
            Entry(key, model, as_line(answer_record(answer)).rstrip(b"\n"))
            for key, answer in answers
            if isinstance(answer, Completion) and is_settled(answer)
        ]
        if entries:
            await asyncio.shield(asyncio.wrap_future(self._schedule(entries)))

    async def require_room(self) -> None:
        """Raises ConfigError while answers cannot be written; tries first to write those that are waiting."""
        if self._failure is not None:
            with self._lock:
                waiting, self._unsaved = self._unsaved, []
            await asyncio.shield(asyncio.wrap_future(self._schedule(waiting)))
        if self._failure is not None:
            raise copy.copy(self._failure)

    def _schedule(self, entries: Sequence[Entry]) -> Future[None]:
        """Hand answers to the writing thread: what comes while it writes is committed together."""
        opened = self._current()
        with self._lock:
            batch = self._pending
            if batch is None:
                batch = self._pending = _Batch()
                opened.executor.submit(self._flush, opened.writer)
            batch.entries += entries
            return batch.done

    def _flush(self, writer: Store) -> None:
        with self._lock:
            batch, self._pending = self._pending, None
            touched, self._touched = list(self._touched), {}
        if batch is None:
            return
        try:
            if not (batch.entries or touched):
                return
            evicted = writer.write(batch.entries, touched)
            self._failure = None
            self.count(stored=len(batch.entries), evicted=evicted)
        except sqlite3.Error as error:
            self._not_kept(batch.entries, error)
        except Exception as error:  # a bug must not leave callers waiting
            self._not_kept(batch.entries, sqlite3.DatabaseError(repr(error)))
        finally:
            batch.done.set_result(None)

    def _not_kept(self, entries: Sequence[Entry], error: sqlite3.Error) -> None:
        if is_busy(error):
            self.count(dropped=len(entries))
            if not self._warned:
                self._warned = True
                log.warning(
                    "the answer cache %s was locked by another process for %g s; answers are passed on without "
                    "being kept",
                    self.path,
                    self.busy_timeout,
                )
            return
        with self._lock:
            self._unsaved += entries
            self._failure = storage_error(self.path, error)


_CACHES: weakref.WeakValueDictionary[Path, AnswerCache] = weakref.WeakValueDictionary()
_CACHES_LOCK = threading.Lock()


def open_cache(place: AnswerCache | str | Path | None = None) -> AnswerCache:
    """The cache at that place; models that name the same file in one process share one object."""
    if isinstance(place, AnswerCache):
        return place
    with _CACHES_LOCK:
        path = Path(place).expanduser().absolute() if place is not None else default_cache_path().absolute()
        found = _CACHES.get(path)
        if found is None:
            found = _CACHES[path] = AnswerCache(path)
        return found
