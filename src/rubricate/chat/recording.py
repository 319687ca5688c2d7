"""Recordings: the answers and errors of a run in a JSON Lines file, and what reads them again.

The first line says what the file is; then come lines for models and lines for outcomes. An outcome belongs to a
scope (a row of a scoring run), a request's key, and the number of times that the scope had asked it before, so that
a replay gives each asker what it got, in whatever order they ask. Where a line comes twice, the later one holds.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from rubricate.chat.base import Completion
from rubricate.chat.cache import is_settled
from rubricate.chat.cache_store import Entry, ModelRow
from rubricate.chat.recording_file import open_locked, write_whole
from rubricate.chat.recording_lines import HEADER, answer_of, as_line, error_of
from rubricate.errors import ConfigError, FormatError, RubricateError
from rubricate.narrow import as_object

__all__ = ["CUT", "Index", "Place", "Recording", "Turns", "open_recording", "recorded_entries", "recording_scope"]

Outcome = Completion | RubricateError
CUT = "cut"
"""Name of the field of an outcome that never came: its caller stopped waiting, as at a deadline."""


@dataclass(frozen=True, slots=True)
class Place:
    """Whose outcome it is: scope, key, and how often the scope had asked for it before."""

    scope: str
    key: str
    turn: int

    def fields(self) -> dict[str, object]:
        """Its part of a line; what has its default is left out."""
        more: dict[str, object] = {"scope": self.scope} if self.scope else {}
        return {"key": self.key, **more, **({"turn": self.turn} if self.turn else {})}


@dataclass(slots=True)
class _Scope:
    name: str
    asked: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])  # by whose Turns, and key


_CURRENT: ContextVar[_Scope | None] = ContextVar("rubricate_recording_scope", default=None)


@contextmanager
def recording_scope(name: str) -> Generator[None, None, None]:
    """Outcomes in this block, and in tasks started in it, are recorded and replayed as those of `name`.

    Give one to each piece of work whose requests may equal those of another, such as a row of a file: a replay then
    does not mix up what became of them, in whatever order they run. Names must not repeat within a run.
    """
    token = _CURRENT.set(_Scope(name))
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Turns:
    """Numbers the requests of a scope that have equal keys; those outside any scope are numbered together.

    Args:
        whose: what counts; those of one name count on from each other in a scope, as models that share a file do.
    """

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._lock = threading.Lock()
        self._outside = _Scope("")

    def take(self, key: str) -> Place:
        """The place of the request that is asked now."""
        scope = _CURRENT.get() or self._outside
        mark = (self._whose, key)
        with self._lock:
            turn = scope.asked[mark]
            scope.asked[mark] += 1
        return Place(scope.name, key, turn)


class Index:
    """Where in a recording which outcome lies.

    Attributes:
        models: the file's lines for models, by fingerprint.
        end: where the last whole line ends. What follows was cut off when its writer was killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.models: dict[str, Mapping[str, object]] = {}
        self.end = 0
        self._places: dict[tuple[str, str, int], int] = {}
        self._any: dict[str, int] = {}
        for record, start in self._lines():
            self._add(record, start)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        """Whether there is an outcome for that key, in any scope."""
        return key in self._any

    def _lines(self) -> Iterator[tuple[Mapping[str, object], int]]:
        hint = "check the name after replay:"
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            raise FormatError("a recording is a file that can be read again", source=str(self.path), hint=hint)
        try:
            file = open(self.path, "rb")
        except OSError as error:
            raise FormatError(
                f"the recording cannot be read: {error.strerror}", source=str(self.path), hint=hint
            ) from None
        with file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    return
                record = _parse(raw)
                if number == 1:
                    _check_header(record, self.path)
                elif record is None:
                    hint = "the file was changed or damaged; record the run again"
                    raise FormatError("not a line of a recording", source=str(self.path), line=number, hint=hint)
                else:
                    yield record, self.end
                self.end += len(raw)

    def _add(self, record: Mapping[str, object], start: int) -> None:
        key, model = record.get("key"), record.get("model")
        if not isinstance(key, str):
            if isinstance(model, str):
                self.models[model] = record
            return
        turn = record.get("turn", 0)
        self._places[str(record.get("scope", "")), key, turn if isinstance(turn, int) else 0] = start
        if "answer" in record or key not in self._any:
            self._any[key] = start

    def find(self, place: Place, *, elsewhere: bool = False) -> Mapping[str, object] | None:
        """The line of that place; with `elsewhere` any line of that key, preferably an answer's, if it has none."""
        start = self._places.get((place.scope, place.key, place.turn))
        if start is None and elsewhere:
            start = self._any.get(place.key)
        if start is None:
            return None
        with open(self.path, "rb") as file:
            file.seek(start)
            record = _parse(file.readline())
        if record is None or record.get("key") != place.key:
            raise FormatError("the recording was changed while it was in use", source=str(self.path))
        return record


def _parse(raw: bytes) -> Mapping[str, object] | None:
    try:
        return as_object(json.loads(raw))
    except (ValueError, RecursionError):
        return None


def _check_header(record: Mapping[str, object] | None, path: Path) -> None:
    if record is None or record.get("recording") != HEADER["recording"]:
        hint = "make one with `rubricate score ... --record FILE.jsonl`"
        raise FormatError("this is no recording", source=str(path), line=1, hint=hint)
    if record.get("version") != HEADER["version"]:
        raise FormatError(
            f"a recording of version {record.get('version')}, and this program reads version {HEADER['version']}",
            source=str(path),
            line=1,
            hint="replay it with the program that made it",
        )


def read_outcome(record: Mapping[str, object], path: Path) -> Outcome | None:
    """The answer or error of a line, None for one that never came. Raises FormatError."""
    answer, error = as_object(record.get("answer")), as_object(record.get("error"))
    try:
        if answer is not None:
            return answer_of(answer)
        if error is not None:
            return error_of(error)
    except (ValueError, TypeError) as wrong:
        message = f"the outcome of {record.get('key')} cannot be read: {wrong}"
        raise FormatError(message, source=str(path)) from None
    if record.get(CUT) is True:
        return None
    raise FormatError(f"the line of {record.get('key')} holds no outcome", source=str(path))


def recorded_entries(path: Path) -> Iterator[Entry]:
    """The settled answers of a recording, for an answer cache. Errors and empty answers are left out.

    Raises FormatError, before the first is asked for, where the file is no recording.
    """
    return _entries(path, Index(path))


def _entries(path: Path, index: Index) -> Iterator[Entry]:
    with open(path, "rb") as file:
        for raw in file:
            record = _parse(raw)
            key, model = (record or {}).get("key"), (record or {}).get("model")
            if record is None or not isinstance(key, str) or not isinstance(model, str):
                continue
            answer = read_outcome(record, path)
            described = index.models.get(model)
            if described is None:
                raise FormatError(f"the recording does not describe the model {model}", source=str(path))
            if isinstance(answer, Completion) and is_settled(answer):
                about = as_line(described).decode().rstrip("\n")
                row = ModelRow(model, str(described.get("name", "")), about)
                yield Entry(key, row, as_line(as_object(record["answer"]) or {}).rstrip(b"\n"))


class Recording:
    """A recording that grows. Give it to `connect(name, record=...)`; several models may share it.

    A line is written in one call, so a killed process leaves whole lines (a power cut may cost the last few). What
    is in the file already is kept: an answer in it is given again and not paid for twice, an error is asked again,
    so a run that was stopped goes on. It is opened and locked when it is first needed. Recordings hold answers and
    errors, no requests and no API keys.

    Args:
        path: the file; its folder must exist.
        restart: throw away what is in it.

    Raises ConfigError, when it is first used, when another process is recording into it or it cannot be written;
    FormatError when it is no recording.
    """

    def __init__(self, path: str | Path, *, restart: bool = False) -> None:
        self.path = Path(path).expanduser().absolute()
        self._restart = restart
        self._prepare()

    def _prepare(self) -> None:
        self.turns = Turns(f"record:{self.path}")
        self._lock = threading.RLock()
        self._file = -1
        self._closer: weakref.finalize[[int], Recording] | None = None
        self._index: Index | None = None
        self._described: dict[str, Mapping[str, object]] = {}
        self._failure: ConfigError | None = None

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        _register(self)  # a copy in this process goes on with this object, which holds the lock
        return open_recording, (self.path,)

    @property
    def failure(self) -> ConfigError | None:
        """Why the recording lacks something, None where it lacks nothing."""
        return self._failure

    def open(self) -> None:
        """Open and lock the file, so that what is wrong with it is known at once. Raises as the class says."""
        with self._lock:
            if self._file >= 0:
                return
            busy = ConfigError(
                f"another process is recording into {self.path}", hint="wait for it to end, or name another file"
            )
            file = open_locked(self.path, busy=busy, hint="check that its folder exists, or name another file")
            try:
                self._load(file)
            except BaseException:
                os.close(file)
                raise
            self._file = file
            self._closer = weakref.finalize(self, os.close, file)

    def _load(self, file: int) -> None:
        restart, self._restart = self._restart, False
        if _is_begun(file, self.path) and not restart:
            self._index = Index(self.path)
            os.ftruncate(file, self._index.end)
            os.lseek(file, 0, os.SEEK_END)
            self._described.update(self._index.models)
        else:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            self._write_lines(file, as_line(HEADER))

    def find(self, place: Place) -> Completion | None:
        """The answer that the file held for that place when it was opened, if it is settled."""
        self.open()
        record = None if self._index is None else self._index.find(place)
        outcome = None if record is None else read_outcome(record, self.path)
        return outcome if isinstance(outcome, Completion) and is_settled(outcome) else None

    def write(self, model: Mapping[str, object], outcomes: Sequence[tuple[Place, Mapping[str, object]]]) -> None:
        """Write outcomes, and first what is new about their model. Raises ConfigError; then none is there."""
        self.open()
        name = str(model["model"])
        lines = [as_line({**place.fields(), "model": name, **outcome}) for place, outcome in outcomes]
        with self._lock:
            if self._described.get(name) != model:
                lines.insert(0, as_line(model))
            self._write_lines(self._file, b"".join(lines))
            self._described[name] = model

    def _write_lines(self, file: int, raw: bytes) -> None:
        end = os.lseek(file, 0, os.SEEK_END)
        try:
            write_whole(file, raw)
        except OSError as error:
            os.ftruncate(file, end)
            self._failure = ConfigError(
                f"the recording {self.path} cannot be written: {error.strerror}",
                hint="what is in it is kept; free some space and run the same again",
            )
            raise self._failure from None

    def close(self) -> None:
        """Bring the file to disk, and let go of it. The next use opens it again."""
        with self._lock:
            if self._file >= 0:
                os.fsync(self._file)
                if self._closer is not None:
                    self._closer()
                self._file = -1


def _is_begun(file: int, path: Path) -> bool:
    """False for a new file, or one whose writer was killed over the first line. Raises FormatError for any other
    that is no recording: nobody's file is written over."""
    os.lseek(file, 0, os.SEEK_SET)
    first, end, _ = os.read(file, 4096).partition(b"\n")
    if not end and as_line(HEADER).startswith(first):
        return False
    _check_header(_parse(first), path)
    return True


_RECORDINGS: weakref.WeakValueDictionary[tuple[Path, int], Recording] = weakref.WeakValueDictionary()
"""By path and process: a forked child opens the file anew, and is told that its parent holds it."""
_RECORDINGS_LOCK = threading.Lock()


def open_recording(place: Recording | str | Path) -> Recording:
    """The recording at that place; models that name the same file in one process share one object."""
    if isinstance(place, Recording):
        return place
    path = Path(place).expanduser().absolute()
    with _RECORDINGS_LOCK:
        found = _RECORDINGS.get((path, os.getpid()))
        if found is None:
            found = _RECORDINGS[path, os.getpid()] = Recording(path)
        return found


def _register(recording: Recording) -> None:
    with _RECORDINGS_LOCK:
        _RECORDINGS.setdefault((recording.path, os.getpid()), recording)
