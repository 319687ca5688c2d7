"""Rows of a file, of a folder of shards, or of a data set that the library `datasets` has saved."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

from rubricate.data.io import Row, file_kind, read_rows
from rubricate.data.jsontext import parse_json
from rubricate.data.writing import json_text
from rubricate.errors import FormatError, MissingExtraError
from rubricate.narrow import as_object
from rubricate.rubrics.formats import rubric_from_row
from rubricate.rubrics.generators.source import Source, source_from_record
from rubricate.rubrics.rubric import Rubric

__all__ = ["WorkRow", "dataset_rows", "own_rubric", "source_of"]

_OTHER = ("dropped.jsonl", "extra.jsonl", "report.json", "dataset_dict.json", "dataset_info.json", "state.json")


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A row on its way through the steps. Its fields are JSON values and short texts, so that it crosses processes.

    Attributes:
        number: its place among all rows, from 0.
        source, line: file and line that it comes from.
        name: its id, where it brings none.
        record: its columns.
        cells: it is a row of texts out of CSV.
    """

    number: int
    source: str
    line: int
    name: str
    record: Mapping[str, object]
    cells: bool = False

    def row(self) -> Row:
        """As the readers have it."""
        return Row(self.source, self.line, dict(self.record), cells=self.cells)


class _Loaded(Protocol):
    """What we use of a data set that `datasets` has loaded."""

    def __iter__(self) -> Iterator[Mapping[str, object]]: ...

    def keys(self) -> list[str]: ...


def dataset_rows(path: str | os.PathLike[str]) -> Iterator[WorkRow]:
    """The rows of a file, of all data files of a folder in the order of their names, or of a folder that
    `datasets` has saved; one at a time.

    Raises FormatError as `read_rows` does, MissingExtraError for a saved data set without the package.
    """
    place = Path(path)
    folder = place.is_dir()
    if not folder:
        rows = read_rows(path)
    elif (place / "state.json").exists() or (place / "dataset_dict.json").exists():
        rows = _saved(place)
    else:
        rows = (row for file in _files(place) for row in read_rows(file, allow_empty=True))
    for number, row in enumerate(rows):
        name = str(number + 1 if folder else row.line)  # lines of several files are not unique
        yield WorkRow(number, row.source, row.line, name, row.record, row.cells)


def _files(folder: Path) -> list[Path]:
    inside = folder / "data" if (folder / "data").is_dir() else folder
    found = [entry for entry in sorted(inside.iterdir()) if entry.name not in _OTHER and _is_data(entry)]
    if not found:
        hint = "name a file of rows, or a folder with .jsonl or .parquet files"
        raise FormatError("the folder holds no data files", source=str(folder), hint=hint)
    return found


def _is_data(path: Path) -> bool:
    try:
        return path.is_file() and file_kind(path) not in ("text", "yaml", "toml")
    except FormatError:
        return False


def _saved(folder: Path) -> Iterator[Row]:
    try:
        library = importlib.import_module("datasets")
    except ModuleNotFoundError:
        raise MissingExtraError("datasets", extra="train") from None
    if (folder / "dataset_dict.json").exists():
        splits = sorted(entry.name for entry in folder.iterdir() if (entry / "state.json").exists())
        if len(splits) != 1:
            hint = f"name one of its parts, as {folder / (splits[0] if splits else 'train')}"
            raise FormatError(f"the data set has the parts {', '.join(splits)}", source=str(folder), hint=hint)
        folder = folder / splits[0]
    loaded = cast("_Loaded", library.load_from_disk(str(folder)))
    for line, record in enumerate(loaded, start=1):
        json_text(
            record, source=str(folder), line=line
        )  # images, dates and the like have no place in a prompt's row
        yield Row(str(folder), line, dict(record))


def source_of(row: WorkRow, columns: Mapping[str, str], *, rubrics: bool = False) -> Source:
    """The source that a row is.

    Args:
        row: the row.
        columns: role and column, where several columns could play the role.
        rubrics: read its own rubric too.

    Raises FormatError with file, line and field.
    """
    own = own_rubric(row) if rubrics else None
    record = row.record
    try:
        found = source_from_record(record, default_id=row.name, columns=columns)
    except FormatError as error:
        raise FormatError(
            error.detail, source=row.source, line=row.line, field=error.field, hint=error.hint
        ) from None
    return found if own is None else replace(found, rubrics=(own,))


def own_rubric(row: WorkRow) -> Rubric | None:
    """The rubric in a row's own column, None where it has none. Raises FormatError."""
    record = dict(row.record)
    for name in ("rubric", "rubrics"):
        value = record.get(name)
        if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
            parsed = parse_json(value, source=row.source, line=row.line)
            record[name] = parsed if as_object(parsed) is not None or isinstance(parsed, list) else value
    return rubric_from_row(replace(row, record=record).row())
