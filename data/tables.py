"""Rows of tables: Parquet (with pyarrow) and CSV."""

from __future__ import annotations

import csv
import datetime
import decimal
import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from types import ModuleType
from typing import IO

from rubricate.data.values import field_name, walk
from rubricate.errors import FormatError, MissingExtraError
from rubricate.narrow import as_array, as_object

__all__ = ["csv_rows", "parquet_rows", "parquet_table"]


def _pyarrow(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pyarrow":
            raise
        raise MissingExtraError("pyarrow", extra="parquet") from None


def parquet_rows(path: FilePath, source: str, *, allow_nonfinite: bool = False) -> Iterator[tuple[int, object]]:
    """The rows of a Parquet file, a batch at a time, numbered from 1.

    Dates become ISO texts and whole decimals integers, as JSON has neither. Raises FormatError for a broken file
    and for values that JSON cannot hold (NaN included, unless allowed), MissingExtraError without pyarrow.
    """
    parquet = _pyarrow("pyarrow.parquet")
    arrow = _pyarrow("pyarrow")
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                rows: Sequence[object] = batch.to_pylist()
                for row in rows:
                    number += 1
                    yield number, _checked(_plain(row), source, number, allow_nonfinite)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, OSError) as error:
        raise FormatError(f"not readable as Parquet: {error}", source=source, line=number or None) from None


def _plain(value: object) -> object:
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        return {key: _plain(item) for key, item in fields.items()}
    if listed is not None:
        return [_plain(item) for item in listed]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value


def _checked(row: object, source: str, number: int, allow_nonfinite: bool) -> object:
    for path, problem in walk(row):
        if allow_nonfinite and "not a number" in problem:
            continue
        hint = "write null for an unknown value" if "not a number" in problem else "leave the column out"
        raise FormatError(f"the value {problem}", source=source, line=number, field=field_name(path), hint=hint)
    return row


def parquet_table(records: Sequence[Mapping[str, object]], source: str) -> object:
    """An Arrow table with every column that any record has; null where a record lacks it.

    Raises FormatError, naming the column, where the records' values do not fit one Arrow type.
    """
    arrow = _pyarrow("pyarrow")
    columns = dict.fromkeys(key for record in records for key in record)
    arrays: dict[str, object] = {}
    for name in columns:
        try:
            arrays[name] = arrow.array([record.get(name) for record in records])
        except (arrow.ArrowException, OverflowError, ValueError) as error:
            raise FormatError(
                f"the values of this column do not fit one Parquet type: {error}",
                source=source,
                field=name,
                hint="write .jsonl, or name the column in json_columns to store it as JSON text",
            ) from None
    table: object = arrow.table(arrays)
    return table


def write_table(table: object, file: IO[bytes], source: str, columns: Collection[str]) -> None:
    """Write an Arrow table as Parquet. Raises FormatError for what Parquet cannot hold, such as empty structs."""
    arrow = _pyarrow("pyarrow")
    try:
        _pyarrow("pyarrow.parquet").write_table(table, file)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise FormatError(
            f"Parquet cannot hold one of the columns {', '.join(columns)}: {error}",
            source=source,
            hint="write .jsonl, or name the nested columns in json_columns to store them as JSON text",
        ) from None


def csv_rows(lines: Iterator[str], source: str, delimiter: str) -> Iterator[tuple[int, object]]:
    """The rows of a CSV text as records of texts, with the line each ends on. The first row names the columns.

    Raises FormatError for repeated or blank column names and for rows of another length.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names: list[str] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not names:
                names = _header(cells, source)
                continue
            if len(cells) != len(names):
                message = f"the row has {len(cells)} cells, the header has {len(names)}"
                hint = "put cells that hold commas or line breaks in double quotes"
                raise FormatError(message, source=source, line=reader.line_num, hint=hint)
            yield reader.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        hint = "use JSON Lines for long texts" if "field larger" in str(error) else ""
        raise FormatError(f"not valid CSV: {error}", source=source, line=reader.line_num, hint=hint) from None


def _header(cells: Sequence[str], source: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    for index, name in enumerate(names):
        if not name:
            raise FormatError(f"column {index + 1} has no name", source=source, line=1)
        if name in names[:index]:
            raise FormatError("two columns have this name", source=source, line=1, field=name)
    return names
