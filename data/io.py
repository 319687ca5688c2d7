"""Readers of rows (JSON Lines, JSON, YAML, TOML, Parquet, CSV) that know every line, and atomic writers."""

from __future__ import annotations

import difflib
import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import IO

from rubricate.data.columns import COLUMNS, RUBRIC_COLUMNS, rollouts_from_record
from rubricate.data.jsontext import parse_json, split_json
from rubricate.data.lines import Lines
from rubricate.data.records import Rollout
from rubricate.data.values import Path
from rubricate.data.writing import (
    atomic,
    write_csv,
    write_json,
    write_jsonl,
    write_parquet,
    write_text,
    write_toml,
    write_yaml,
)
from rubricate.errors import FormatError
from rubricate.narrow import as_object

__all__ = [
    "COLUMNS",
    "RUBRIC_COLUMNS",
    "Row",
    "Value",
    "atomic",
    "file_kind",
    "find_line",
    "lines_of",
    "read_rollouts",
    "read_rows",
    "read_values",
    "rollouts_from_row",
    "write_csv",
    "write_json",
    "write_jsonl",
    "write_parquet",
    "write_text",
    "write_toml",
    "write_yaml",
]

_KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
    ".md": "text",
}


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a file: an element of its list, a line, a row.

    Attributes:
        source: the file's name, as the caller gave it.
        line: line, from 1, on which it starts (JSON, JSON Lines, YAML, TOML), on which it ends (CSV), or its
            number (Parquet).
        value: what was read: JSON types only.
        place: path inside the document, for `find_line`.
        cells: the value is a row of texts out of CSV, which knows no other type.
    """

    source: str
    line: int
    value: object
    place: Path = ()
    cells: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file, with the file's name and the record's line (see `Value`)."""

    source: str
    line: int
    record: dict[str, object]
    place: Path = ()
    cells: bool = False


def file_kind(path: str | os.PathLike[str]) -> str:
    """What a file holds, by its name: jsonl, json, yaml, toml, parquet, csv, tsv or text. `.gz` is left aside.

    Raises FormatError for any other name.
    """
    name = FilePath(path).name.lower().removesuffix(".gz")
    kind = _KINDS.get(FilePath(name).suffix)
    if kind is None:
        raise FormatError(
            "the file's name does not say what it holds",
            source=os.fspath(path),
            hint=f"known endings: {', '.join(_KINDS)}; all but .parquet also with .gz",
        )
    return kind


def read_rows(path: str | os.PathLike[str], *, kind: str | None = None, allow_empty: bool = False) -> Iterator[Row]:
    """The records of a file, one at a time; JSON Lines, Parquet and CSV are not read ahead.

    Args:
        path: a .jsonl, .json (a list of objects, or one), .yaml (the same, or several documents), .toml (one
            record, or several as `[[rows]]`), .parquet or .csv file; text files may be compressed (.gz) and begin
            with a byte order mark.
        kind: what the file holds, where its name does not say (see `file_kind`).
        allow_empty: a file without rows is no error.

    Raises FormatError, at the call for a file that cannot be opened, while reading for a line that cannot be
    read, is not an object, repeats a key or holds NaN or Infinity. MissingExtraError for Parquet without pyarrow.
    """
    values = read_values(path, kind=kind, allow_empty=allow_empty)
    return (Row(value.source, value.line, _record(value), value.place, value.cells) for value in values)


def _record(value: Value) -> dict[str, object]:
    record = as_object(value.value)
    if record is None:
        kind = type(value.value).__name__
        hint = "a .txt or .md file is one text; rows belong in a .jsonl or .csv file" if kind == "str" else ""
        message = f"expected an object with named fields, got {kind}"
        raise FormatError(message, source=value.source, line=value.line, hint=hint)
    return dict(record)


def read_values(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    allow_empty: bool = False,
    allow_nonfinite: bool = False,
) -> Iterator[Value]:
    """As `read_rows`, for values of any type; a .txt or .md file is one text.

    `allow_nonfinite` lets NaN pass, for callers that name it better.
    """
    kind = kind or file_kind(path)
    if kind not in _KINDS.values():
        raise FormatError(f"unknown kind of file {kind!r}", source=os.fspath(path), hint="see file_kind")
    _require_file(path)
    return _nonempty(_read(path, kind, allow_nonfinite), os.fspath(path), allow_empty)


def _require_file(path: str | os.PathLike[str]) -> None:
    file, source = FilePath(path), os.fspath(path)
    if file.is_dir():
        raise FormatError("this is a folder, not a file", source=source, hint="name a file in it")
    if file.is_symlink() and not file.exists():
        raise FormatError(
            "this is a link to a file that is not there", source=source, hint=f"it names {file.readlink()}"
        )
    if not file.exists():
        siblings = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
        near = difflib.get_close_matches(file.name, siblings, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"looked in {file.parent.resolve()}"
        raise FormatError("there is no such file", source=source, hint=hint)
    if not os.access(file, os.R_OK):
        raise FormatError("the file may not be read", source=source, hint="check its permissions")


def _nonempty(values: Iterator[Value], source: str, allow_empty: bool) -> Iterator[Value]:
    empty = True
    for value in values:
        empty = False
        yield value
    if empty and not allow_empty:
        raise FormatError("the file holds no rows", source=source)


def _read(path: str | os.PathLike[str], kind: str, nonfinite: bool) -> Iterator[Value]:
    source = os.fspath(path)
    if kind == "jsonl":
        yield from _jsonl(path, source, nonfinite)
    elif kind == "parquet":
        from rubricate.data.tables import parquet_rows

        for number, row in parquet_rows(FilePath(path), source, allow_nonfinite=nonfinite):
            yield Value(source, number, row)
    elif kind in ("csv", "tsv"):
        from rubricate.data.tables import csv_rows

        lines = (text for _, text, _ in _lines(path, source))
        for number, row in csv_rows(lines, source, "," if kind == "csv" else "\t"):
            yield Value(source, number, row, cells=True)
    else:
        for line, value, place in _split(_text(path, source), kind, source, nonfinite):
            yield Value(source, line, value, place)


def _split(text: str, kind: str, source: str, nonfinite: bool) -> Iterator[tuple[int, object, Path]]:
    """The values of a document, with line and path."""
    if kind == "json":
        return split_json(text, source=source, allow_nonfinite=nonfinite)
    if kind == "yaml":
        from rubricate.data.yamltext import split_yaml  # loads PyYAML

        return split_yaml(text, source=source, allow_nonfinite=nonfinite)
    if kind == "toml":
        from rubricate.data.tomltext import split_toml

        return split_toml(text, source=source, allow_nonfinite=nonfinite)
    return iter([(1, text, ())] if text.strip() else [])


def _open(path: str | os.PathLike[str]) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path, "rb") if os.fspath(path).lower().endswith(".gz") else open(path, "rb")


def _lines(path: str | os.PathLike[str], source: str) -> Iterator[tuple[int, str, bool]]:
    """Line number, text, and whether the line is complete (ends in a line feed)."""
    number = 0
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, start=1):
                yield number, _decode(raw, source, number), raw.endswith(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"cannot be read further: {error}", source=source, line=number + 1) from None


def _text(path: str | os.PathLike[str], source: str) -> str:
    return "".join(text for _, text, _ in _lines(path, source))


def _decode(raw: bytes, source: str, number: int) -> str:
    if number == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "save the file as UTF-8"
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            hint = "it looks like UTF-16; save it as UTF-8"
        elif raw.startswith(b"\x1f\x8b"):
            hint = "it is compressed; give its name the ending .gz"
        message = f"not UTF-8 text: byte 0x{raw[error.start]:02x} at position {error.start} of the line"
        raise FormatError(message, source=source, line=number, hint=hint) from None


def _jsonl(path: str | os.PathLike[str], source: str, nonfinite: bool) -> Iterator[Value]:
    for number, text, complete in _lines(path, source):
        if not text.strip():
            continue
        try:
            value = parse_json(text.rstrip("\n"), source=source, line=number, allow_nonfinite=nonfinite)
        except FormatError as error:
            raise _line_error(error, text, complete) from None
        yield Value(source, number, value)


def _line_error(error: FormatError, text: str, complete: bool) -> FormatError:
    """The error with the usual cause: a line that was cut off, or a JSON document spread over lines."""
    hint = error.hint
    if "not valid JSON" in error.detail:
        if not complete:
            hint = "the last line has no end: it was cut off while being written; remove or complete it"
        elif text.strip() in ("{", "[", "[{"):
            hint = "each line must be a whole object; a document of many lines belongs in a .json file"
    return FormatError(error.detail, source=error.source, line=error.line, field=error.field, hint=hint)


def lines_of(path: str | os.PathLike[str], *, kind: str | None = None) -> Lines:
    """The lines of the values of a file, for many questions: the file is read again once, at the first of them."""
    try:
        kind = kind or file_kind(path)
    except FormatError:
        kind = ""
    return Lines(lambda: _text(path, os.fspath(path)), kind)


def find_line(path: str | os.PathLike[str], place: Sequence[str | int], *, kind: str | None = None) -> int | None:
    """The line, from 1, on which the value at `place` (a `Value.place` and a path into it) starts.

    It reads the file again, so it is for a single question; `lines_of` answers many. None for files that are not
    JSON, YAML or TOML documents.
    """
    return lines_of(path, kind=kind)(place)


def rollouts_from_row(row: Row, *, columns: Mapping[str, str] | None = None) -> list[Rollout]:
    """The rollouts of a row: one for a response, several for a group. See `rubricate.data.columns.COLUMNS`.

    Args:
        row: a record and its place.
        columns: which column plays a role, such as `{"prompt": "question"}`, where several could.

    Ids are the row's `id`, or else its line; the members of a group add `#0`, `#1` and so on.
    Raises FormatError with the row's line and the field.
    """
    try:
        return rollouts_from_record(row.record, default_id=str(row.line), columns=columns)
    except FormatError as error:
        raise FormatError(
            error.detail, source=row.source, line=row.line, field=error.field, hint=error.hint
        ) from None


def read_rollouts(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None
) -> Iterator[tuple[Row, list[Rollout]]]:
    """Each row of a file with its rollouts.

    Raises FormatError as `read_rows` and `rollouts_from_row` do, and for an id that occurs twice.
    """
    seen: dict[str, int] = {}
    for row in read_rows(path):
        rollouts = rollouts_from_row(row, columns=columns)
        for rollout in rollouts:
            first = seen.setdefault(rollout.id, row.line)
            if first != row.line:
                message = f"the id {rollout.id!r} is taken by line {first}"
                raise FormatError(message, source=row.source, line=row.line, field="id", hint="ids must differ")
        yield row, rollouts
