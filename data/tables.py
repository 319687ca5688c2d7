"""Rows of tables: Parquet (with pyarrow) and CSV."""

from __future__ import annotations

import csv
import datetime
import decimal
import importlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import ModuleType
from typing import IO

from rubricate.data.jsontext import parse_json
from rubricate.data.values import field_name, walk
from rubricate.data.writing import json_text
from rubricate.errors import FormatError, MissingExtraError
from rubricate.narrow import as_array, as_object

__all__ = ["Layout", "csv_rows", "csv_text", "exact_table", "parquet_rows", "parquet_table", "write_table"]

LONGEST = 2**30
"""Characters that a cell of a CSV file may hold."""


def _pyarrow(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pyarrow":
            raise
        raise MissingExtraError("pyarrow", extra="parquet") from None


def parquet_rows(path: FilePath, source: str, *, allow_nonfinite: bool = False) -> Iterator[tuple[int, object]]:
    """The rows of a Parquet file, a batch at a time, numbered from 1.

    What `write_parquet(exact=True)` wrote comes back as it was: see `Layout`.
    Dates become ISO texts, and decimals the numbers that JSON has, where these are the same. Raises FormatError for
    a broken file and for values that JSON cannot hold (NaN included, unless allowed), MissingExtraError without
    pyarrow.
    """
    parquet = _pyarrow("pyarrow.parquet")
    arrow = _pyarrow("pyarrow")
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            layout = Layout.read(file.schema_arrow.metadata)
            _check_names(file.schema_arrow.names, source)
            for batch in file.iter_batches(batch_size=1024):
                rows: Sequence[object] = batch.to_pylist()
                for row in rows:
                    number += 1
                    plain = layout.restore(_plain(row), source, number, allow_nonfinite)
                    yield number, _checked(plain, source, number, allow_nonfinite)
    # Broken pages can hold texts that are no UTF-8, and a broken header sizes that no memory has.
    except (arrow.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise FormatError(f"not readable as Parquet: {error}", source=source, line=number or None) from None


def _check_names(names: Sequence[str], source: str) -> None:
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise FormatError("two columns have this name", source=source, field=twice[0], hint="rename one of them")


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
    if isinstance(value, decimal.Decimal) and value.is_finite() and decimal.Decimal(repr(float(value))) == value:
        return float(value)
    return value


def _checked(row: object, source: str, number: int, allow_nonfinite: bool) -> object:
    for path, problem in walk(row):
        if allow_nonfinite and "not a number" in problem:
            continue
        hint = "write null for an unknown value" if "not a number" in problem else "leave the column out"
        raise FormatError(f"the value {problem}", source=source, line=number, field=field_name(path), hint=hint)
    return row


_LAYOUT = b"rubricate.layout"


@dataclass(frozen=True, slots=True)
class Layout:
    """How columns of a Parquet file hold what Arrow's types do not: a note in the file's metadata.

    Attributes:
        json: columns of JSON texts, as their values differ in type or in the fields they have.
        absent: columns in which null stands for a record that lacks the field.
    """

    json: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes] | None) -> Layout:
        """The layout out of a file's metadata; files of other writers have none, and are taken as they are."""
        try:
            fields = as_object(json.loads((metadata or {}).get(_LAYOUT, b"{}"))) or {}
        except ValueError:
            return cls()
        found = [tuple(str(name) for name in as_array(fields.get(part)) or ()) for part in ("json", "absent")]
        return cls(*found)

    def note(self) -> dict[bytes, bytes]:
        """The metadata that `read` understands."""
        return {_LAYOUT: json.dumps({"json": self.json, "absent": self.absent}).encode()}

    def restore(self, row: object, source: str, number: int, nonfinite: bool) -> object:
        """A row as it was before it was laid out."""
        fields = as_object(row)
        if fields is None or not (self.json or self.absent):
            return row
        found: dict[str, object] = {}
        for name, value in fields.items():
            if value is None and name in self.absent:
                continue
            if isinstance(value, str) and name in self.json:
                found[name] = self._parsed(value, name, source, number, nonfinite)
            else:
                found[name] = value
        return found

    def _parsed(self, text: str, name: str, source: str, number: int, nonfinite: bool) -> object:
        try:
            return parse_json(text, allow_nonfinite=nonfinite)
        except FormatError as error:
            message = f"this column is one of JSON texts: {error.detail}"
            raise FormatError(message, source=source, line=number, field=name, hint=error.hint) from None


def exact_table(records: Sequence[Mapping[str, object]], source: str, columns: Sequence[str] = ()) -> object:
    """An Arrow table from which `parquet_rows` gives back every record as it was, types of numbers included.

    A column whose values Arrow would change becomes one of JSON texts. Raises FormatError as `json_text` does.
    """
    arrow = _pyarrow("pyarrow")
    names = _names(records, columns)
    arrays: dict[str, object] = {}
    as_json: list[str] = []
    absent = [name for name in names if any(name not in record for record in records)]
    for name in names:
        values = [record.get(name) for record in records]
        array = _faithful(arrow, values, name in absent and any(record.get(name, 0) is None for record in records))
        if array is None:
            as_json.append(name)
            texts = [
                json_text(record[name], source=source, line=line) if name in record else None
                for line, record in enumerate(records, start=1)
            ]
            array = arrow.array(texts, arrow.string())
        arrays[name] = array
    table = arrow.table(arrays)
    layout = Layout(tuple(as_json), tuple(absent))
    return table.replace_schema_metadata(layout.note()) if as_json or absent else table


def _names(records: Sequence[Mapping[str, object]], first: Sequence[str]) -> list[str]:
    found = dict.fromkeys(key for record in records for key in record)
    return list(dict.fromkeys([*(name for name in first if name in found), *found]))


def _faithful(arrow: ModuleType, values: Sequence[object], ambiguous: bool) -> object:
    """An array that holds exactly these values, None where Arrow has no such array."""
    if ambiguous or all(value is None for value in values) or _has_empty_object(values):
        return None
    try:
        array = arrow.array(values)
        same = json_text(_plain(array.to_pylist())) == json_text(list(values))
    except (arrow.ArrowException, OverflowError, ValueError):
        return None
    return array if same else None


def _has_empty_object(value: object) -> bool:
    """Whether there is an object without fields in a value: Parquet has no struct without fields."""
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        return not fields or any(_has_empty_object(part) for part in fields.values())
    return any(_has_empty_object(part) for part in listed or ())


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
    # The limit, which counts for the whole process, guards against files that are no CSV; rubrics are longer.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names: list[str] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not names:
                names = _header(cells, source, delimiter)
                continue
            if len(cells) != len(names):
                message = f"the row has {len(cells)} cells, the header has {len(names)}"
                hint = "put cells that hold commas or line breaks in double quotes"
                raise FormatError(message, source=source, line=reader.line_num, hint=hint)
            yield reader.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        hint = "use JSON Lines for long texts" if "field larger" in str(error) else ""
        raise FormatError(f"not valid CSV: {error}", source=source, line=reader.line_num, hint=hint) from None


_MARKS = {";": "semicolons", "\t": "tabs", ",": "commas"}


_OTHERS = {",": ";\t", "\t": ";"}
"""What may separate the cells instead; the lone column of a TSV file may well have a comma in its name."""


def _header(cells: Sequence[str], source: str, delimiter: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    other = next((mark for mark in _OTHERS[delimiter] if mark in cells[0]), "")
    if len(names) == 1 and other:
        message = f"the cells are separated by {_MARKS[other]}, not {_MARKS[delimiter]}"
        hint = "save it with commas, or with tabs as .tsv, and numbers as 1.5"
        raise FormatError(message, source=source, line=1, hint=hint)
    for index, name in enumerate(names):
        if not name:
            hint = "name it, or remove it: spreadsheets leave empty columns at the end"
            raise FormatError(f"column {index + 1} has no name", source=source, line=1, hint=hint)
        if name in names[:index]:
            raise FormatError("two columns have this name", source=source, line=1, field=name)
    return names


def csv_text(rows: Sequence[Mapping[str, str]], source: str, delimiter: str, columns: Sequence[str] = ()) -> str:
    """Rows of texts as CSV text with a header, the cell empty where a row lacks a column.

    Raises FormatError for column names that would not be read back (blank ones, spaces at their ends), and where
    there is no column at all.
    """
    names = _names(rows, columns)
    for name in names:
        if not name or name != name.strip():
            message = f"a column of a table cannot have the name {name!r}"
            raise FormatError(message, source=source, hint="rename the field, or write .jsonl")
    if not names:
        raise FormatError("a table needs at least one column", source=source, hint="write .jsonl")
    lines = [delimiter.join(_quoted(name, delimiter, len(names)) for name in names)]
    for number, row in enumerate(rows, start=1):
        for name, cell in row.items():
            for _, problem in walk(cell):
                raise FormatError(f"the text {problem}", source=source, line=number, field=name)
        lines.append(delimiter.join(_quoted(row.get(name, ""), delimiter, len(names)) for name in names))
    return "\n".join(lines) + "\n"


def _quoted(cell: str, delimiter: str, width: int) -> str:
    # Written here, since the csv module of some versions leaves carriage returns without quotes.
    odd = any(mark in cell for mark in (delimiter, '"', "\n", "\r")) or cell != cell.strip("\ufeff ")
    return '"' + cell.replace('"', '""') + '"' if odd or (width == 1 and not cell) else cell
