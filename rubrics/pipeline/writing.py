"""Writes a data set: shards of JSON Lines or Parquet, or a folder of `datasets`; all of it or nothing."""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Literal, Protocol, cast

from rubricate.data.hygiene_columns import Column
from rubricate.data.tables import Layout
from rubricate.data.writing import json_text, write_text
from rubricate.errors import ConfigError, MissingExtraError

__all__ = ["BATCH", "DatasetWriter", "check_folder", "check_packages", "is_ours", "sweep"]

BATCH = 500
"""Rows of a Parquet row group, which is what is held in memory."""

_MARK = "report.json"

Kind = Literal["jsonl", "parquet", "datasets"]


def is_ours(folder: Path) -> bool:
    """Whether a folder is a data set that was written here, or empty, so that another may take its place."""
    return folder.is_dir() and ((folder / _MARK).exists() or not any(folder.iterdir()))


def check_folder(folder: Path) -> None:
    """Raises ConfigError for a folder that cannot be written, or that is something else."""
    if folder.suffix in (".jsonl", ".parquet", ".json", ".csv"):
        hint = f"a data set is a folder: use {folder.with_suffix('')}, and output.format for what is in it"
        raise ConfigError(f"{folder} is the name of a file", hint=hint)
    if not folder.parent.is_dir():
        raise ConfigError(f"the folder {folder.parent} does not exist", hint="create it first")
    if folder.exists() and not is_ours(folder):
        raise ConfigError(f"{folder} is there, and no data set that was written here", hint="choose another folder")
    if not os.access(folder.parent, os.W_OK):
        raise ConfigError(f"nothing can be written to the folder {folder.parent}", hint="choose another folder")


def check_packages(kind: Kind) -> None:
    """Raises MissingExtraError for a format whose package is missing."""
    if kind == "parquet":
        _module("pyarrow.parquet", "pyarrow", "parquet")
    elif kind == "datasets":
        _module("datasets", "datasets", "train")


def _module(name: str, package: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingExtraError(package, extra=extra) from None


class _Shard(Protocol):
    """A file of rows that is being written."""

    def add(self, record: Mapping[str, object]) -> None: ...

    def close(self) -> None: ...


class DatasetWriter:
    """Writes a folder, which takes the place of the one that is there when the block ends without an error.

    Rows go to `data/PART-00000-of-00003.jsonl` (or .parquet); for `datasets`, to what `load_from_disk` reads.
    In Parquet a column whose values are not of one plain type is one of JSON texts, in every shard alike;
    `rubricate.data.read_rows` gives the values back.

    Args:
        folder: the data set's folder.
        kind: what it holds.
        counts: rows of each part.
        rows_per_shard: rows of a shard at most.
        columns: what the columns of all rows hold.
    """

    def __init__(
        self,
        folder: Path,
        kind: Kind,
        counts: Mapping[str, int],
        *,
        rows_per_shard: int,
        columns: Sequence[Column],
    ) -> None:
        self.folder = folder
        self.part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
        self._kind = kind
        self._counts = counts
        self._size = rows_per_shard
        self._columns = columns
        self._open: dict[str, _Shard] = {}
        self._done: dict[str, int] = {}
        self._sides: dict[str, IO[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> DatasetWriter:
        (self.part / "data").mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._stack.close()
            shutil.rmtree(self.part, ignore_errors=True)

    def add(self, part: str, record: Mapping[str, object]) -> None:
        """Write a row."""
        done = self._done.get(part, 0)
        if done % self._size == 0:
            self._close(part)
            self._open[part] = self._shard(part, done // self._size)
        self._open[part].add(record)
        self._done[part] = done + 1

    def side(self, name: str, record: Mapping[str, object]) -> None:
        """Write a line to a file beside the data, such as `dropped.jsonl`."""
        file = self._sides.get(name)
        if file is None:
            file = self._sides[name] = self._stack.enter_context(open(self.part / name, "wb"))
        file.write(json_text(record).encode() + b"\n")

    def text(self, name: str, text: str) -> None:
        """Write a text beside the data, such as the card."""
        write_text(self.part / name, text)

    def _shard(self, part: str, index: int) -> _Shard:
        total = max(1, -(-self._counts[part] // self._size))
        ending = "jsonl" if self._kind == "jsonl" else "parquet"
        path = self.part / "data" / f"{part}-{index:05d}-of-{total:05d}.{ending}"
        return _Lines(path) if self._kind == "jsonl" else _Table(path, self._columns, sum(self._counts.values()))

    def _close(self, part: str) -> None:
        shard = self._open.pop(part, None)
        if shard is not None:
            shard.close()

    def _finish(self) -> None:
        for part in list(self._open):
            self._close(part)
        for file in self._sides.values():
            file.flush()
            os.fsync(file.fileno())
        self._stack.close()
        if self._kind == "datasets":
            self._save()
        _sync(self.part)
        _replace(self.part, self.folder)

    def _save(self) -> None:
        """Turn the shards into a folder of `datasets`."""
        library = _module("datasets", "datasets", "train")
        files = {
            part: sorted(str(path) for path in (self.part / "data").glob(f"{part}-*.parquet"))
            for part, count in self._counts.items()
            if count
        }
        library.disable_progress_bars()
        try:
            if files:
                cache = str(self.part / "cache")
                loaded = {
                    part: library.Dataset.from_parquet(names, cache_dir=cache) for part, names in files.items()
                }
                library.DatasetDict(loaded).save_to_disk(str(self.part))
        finally:
            library.enable_progress_bars()
        shutil.rmtree(self.part / "data")
        shutil.rmtree(self.part / "cache", ignore_errors=True)


class _Lines:
    """A shard of JSON Lines."""

    def __init__(self, path: Path) -> None:
        self._source = str(path)
        self._file = open(path, "wb")
        self._count = 0

    def add(self, record: Mapping[str, object]) -> None:
        self._count += 1
        self._file.write(json_text(record, source=self._source, line=self._count).encode() + b"\n")

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


class _Arrow(Protocol):
    """What we use of pyarrow's writer."""

    def write_table(self, table: object) -> None: ...

    def close(self) -> None: ...


class _Table:
    """A shard of Parquet, a row group at a time."""

    def __init__(self, path: Path, columns: Sequence[Column], rows: int) -> None:
        self._arrow = _module("pyarrow", "pyarrow", "parquet")
        types = {column.name: _type_of(column) for column in columns}
        self._json = [name for name, kind in types.items() if kind == "json"]
        self._bare = {name for name, kind in types.items() if kind not in ("json", "text")}
        absent = tuple(column.name for column in columns if column.rows < rows)
        named = {
            "json": self._arrow.string(),
            "text": self._arrow.string(),
            "integer": self._arrow.int64(),
            "number": self._arrow.float64(),
            "boolean": self._arrow.bool_(),
        }
        schema = self._arrow.schema({name: named[kind] for name, kind in types.items()})
        note = Layout(tuple(self._json), absent).note()
        self._schema = schema.with_metadata(note) if self._json or absent else schema
        parquet = _module("pyarrow.parquet", "pyarrow", "parquet")
        self._writer = cast("_Arrow", parquet.ParquetWriter(str(path), self._schema))
        self._rows: list[dict[str, object]] = []

    def add(self, record: Mapping[str, object]) -> None:
        row = {name: _plain(value) for name, value in record.items()}
        row |= {name: None for name in self._bare if row.get(name) == ""}  # an empty cell among numbers
        for name in self._json:
            if name in row:
                row[name] = json_text(record[name])
        self._rows.append(row)
        if len(self._rows) == BATCH:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def _plain(value: object) -> object:
    """Texts without halves of surrogate pairs, which Arrow cannot hold; they become escapes."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _type_of(column: Column) -> str:
    """The plain type that holds all values of a column, else `json`."""
    kinds = list(column.types)
    if not kinds:
        return "text"
    if len(kinds) > 1 or kinds[0] not in ("text", "integer", "number", "boolean"):
        return "json"
    if kinds[0] == "integer" and max(abs(column.low or 0.0), abs(column.high or 0.0)) >= 2.0**63:
        return "json"
    return kinds[0]


def sweep(folder: Path) -> None:
    """Remove what a killed process left beside a data set's folder while it wrote it."""
    for ending in ("part", "old"):
        for left in folder.parent.glob(f".{folder.name}.????????.{ending}"):
            shutil.rmtree(left, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Bring names of files to disk, so that the rename does not outlive them."""
    if os.name == "posix":
        for place in (folder, *(entry for entry in folder.iterdir() if entry.is_dir())):
            opened = os.open(place, os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def _replace(part: Path, folder: Path) -> None:
    old: Path | None = None
    if folder.exists():
        old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
        os.rename(folder, old)
    os.rename(part, folder)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
