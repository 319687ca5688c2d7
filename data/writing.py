"""Writers that never leave half a file: a temporary file is written, synced, and renamed into place."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import secrets
import stat
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import IO, cast

from rubricate.data.values import field_name, walk
from rubricate.errors import FormatError

__all__ = [
    "atomic",
    "json_text",
    "write_csv",
    "write_json",
    "write_jsonl",
    "write_parquet",
    "write_text",
    "write_toml",
    "write_yaml",
]


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Generator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends, and leaves no trace when it raises.

    The data is on disk before the rename. A name that ends in `.gz` is compressed. What is not a regular file
    (a pipe, /dev/stdout) is written directly. Raises FormatError for a folder that is missing or not writable.
    """
    target = FilePath(os.path.realpath(path))
    source = os.fspath(path)
    if target.is_dir():
        raise FormatError("this is a folder, not a file", source=source, hint="name a file in it")
    if not target.parent.is_dir():
        raise FormatError(f"the folder {target.parent} does not exist", source=source, hint="create it first")
    special = target.exists() and not stat.S_ISREG(target.stat().st_mode)
    part = target if special else target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        raw = open(part, "wb" if special else "xb")
    except OSError as error:
        raise FormatError(f"cannot be written: {error.strerror}", source=source) from None
    try:
        with raw:
            if target.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield raw
            if not special:
                raw.flush()
                os.fsync(raw.fileno())
        if not special:
            _replace(part, target)
    except BaseException:
        if not special:
            part.unlink(missing_ok=True)
        raise


def _replace(part: FilePath, target: FilePath) -> None:
    if target.exists():
        os.chmod(part, stat.S_IMODE(target.stat().st_mode))
    os.replace(part, target)
    if os.name == "posix":  # the rename itself survives a power cut only once the folder is synced
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def json_text(value: object, *, source: str = "", line: int | None = None, indent: int | None = None) -> str:
    """A value as JSON that every reader takes. Halves of surrogate pairs, if any, are escaped.

    Raises FormatError, with the field, for NaN, Infinity and what JSON cannot hold.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        for path, problem in walk(value):
            raise FormatError(f"the value {problem}", source=source, line=line, field=field_name(path)) from None
        raise FormatError(f"cannot be written as JSON: {error}", source=source, line=line) from None
    return text


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8, atomically. Raises FormatError as `atomic` does.

    Halves of surrogate pairs, which models cut off in mid-character produce, are written as escapes.
    """
    with atomic(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write a value as indented JSON, atomically. Raises FormatError as `json_text` does."""
    write_text(path, json_text(value, source=os.fspath(path), indent=2) + "\n")


def write_yaml(path: str | os.PathLike[str], value: Mapping[str, object] | Sequence[object]) -> None:
    """Write a value as YAML, atomically. Raises FormatError for what JSON could not hold either."""
    json_text(value, source=os.fspath(path))
    _check_depth(value, os.fspath(path))
    from rubricate.data.yamltext import yaml_text  # loads PyYAML

    write_text(path, yaml_text(value))


def _check_depth(value: object, source: str, line: int | None = None) -> None:
    """Raises FormatError for values nested so deeply that readers refuse them, and some writers break."""
    for path, problem in walk(value):
        if "nested" in problem:
            raise FormatError(f"the value {problem}", source=source, line=line, field=field_name(path))


def write_toml(path: str | os.PathLike[str], value: Mapping[str, object]) -> None:
    """Write a record as TOML, atomically; several records are the array `rows` of one (`[[rows]]`).

    Raises FormatError, with the field, for null, which TOML has not, and for what JSON could not hold either.
    """
    from rubricate.data.tomltext import toml_text  # loads tomli_w

    write_text(path, toml_text(value, source=os.fspath(path)))


def write_csv(
    path: str | os.PathLike[str],
    records: Iterable[Mapping[str, object]],
    *,
    delimiter: str = ",",
    columns: Sequence[str] = (),
) -> int:
    """Write records as CSV (or, with a tab as `delimiter`, TSV), atomically, and return how many.

    All of them are held in memory. A text is written as it is, anything else as JSON text (`2`, `true`, `[1, 2]`);
    a column that a record lacks is an empty cell, and so are an empty text and null: `rubricate.data.cells` has an
    encoding that keeps these apart. `columns` come first, in that order; by default columns stand as they appear.

    Raises FormatError with the row and column of a value that JSON cannot hold, and for records without columns.
    """
    from rubricate.data.tables import csv_text

    source = os.fspath(path)
    lines: list[dict[str, str]] = []
    for number, record in enumerate(records, start=1):
        json_text(record, source=source, line=number)
        lines.append({name: item if isinstance(item, str) else _cell(item) for name, item in record.items()})
    write_text(path, csv_text(lines, source, delimiter, columns))
    return len(lines)


def _cell(value: object) -> str:
    return "" if value is None else json_text(value)


def write_jsonl(path: str | os.PathLike[str], records: Iterable[Mapping[str, object]]) -> int:
    """Write records as JSON Lines, atomically, and return how many. Streams: records may be a generator.

    Raises FormatError with the line and field of a value that JSON cannot hold; the old file then stays.
    """
    count = 0
    source = os.fspath(path)
    with atomic(path) as file:
        for count, record in enumerate(records, start=1):
            file.write(json_text(record, source=source, line=count).encode() + b"\n")
    return count


def write_parquet(
    path: str | os.PathLike[str],
    records: Iterable[Mapping[str, object]],
    *,
    json_columns: Collection[str] = (),
    exact: bool = False,
    columns: Sequence[str] = (),
) -> int:
    """Write records as Parquet, atomically, and return how many. All of them are held in memory.

    Args:
        path: the file.
        records: one row each; a column that a record lacks is null in its row. In a column of objects, Arrow
            gives every object the fields of all of them, null where it had none.
        json_columns: columns stored as JSON text, which keeps nested values exactly as they are.
        exact: store as JSON text every column whose values Arrow would change, and note in the file which these
            are and where a field is missing, so that `read_rows` gives back every record as it is here.
        columns: columns that come first, in that order, where `exact`; by default they stand as they appear.

    Raises FormatError naming the column whose values do not fit one type, MissingExtraError without pyarrow.
    """
    from rubricate.data.tables import exact_table, parquet_table, write_table

    source = os.fspath(path)
    rows: list[dict[str, object]] = []
    for line, record in enumerate(records, start=1):
        row = dict(record)
        _check_depth({name: part for name, part in row.items() if name not in json_columns}, source, line)
        for name in json_columns:
            if name in row:
                row[name] = json_text(row[name], source=source, line=line)
        rows.append(row)
    table = exact_table(rows, source, columns) if exact else parquet_table(rows, source)
    with atomic(path) as file:
        write_table(table, file, source, list(dict.fromkeys(key for row in rows for key in row)))
    return len(rows)
