"""Writing rubrics in a format, and converting files from one to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath

from rubricate.data.cells import written_cells
from rubricate.data.io import file_kind
from rubricate.data.tomltext import ROWS
from rubricate.data.writing import (
    json_text,
    write_csv,
    write_json,
    write_jsonl,
    write_parquet,
    write_text,
    write_toml,
    write_yaml,
)
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Format, Note, Place, formats, get_format
from rubricate.rubrics.formats.checking import changes, without_nulls
from rubricate.rubrics.formats.losses import some
from rubricate.rubrics.formats.moving import moved
from rubricate.rubrics.formats.reading import load_rubrics
from rubricate.rubrics.rubric import Rubric

__all__ = ["Converted", "convert", "dump_rubrics", "save_rubrics"]


@dataclass(frozen=True, slots=True)
class Converted:
    """What `convert` did: how many rubrics, from which format to which, and what there is to say about it."""

    count: int
    read_as: str
    written_as: str
    notes: tuple[Note, ...]


def dump_rubrics(
    rubrics: Rubric | Sequence[Rubric],
    format: str = "native",
    *,
    lossy: bool = False,
    notes: list[Note] | None = None,
    source: str = "",
) -> list[dict[str, object]]:
    """The records of rubrics in a format.

    Args:
        rubrics: one or several.
        format: a name out of `formats()`.
        lossy: write what the format can hold, with a note about the rest, in place of an error.
        notes: list that notes are added to.
        source: file the records are for, for error messages.

    Raises FormatError, naming rubric and fields, for what the format cannot hold, or what would be read otherwise,
    unless `lossy`; and, lossy or not, where leaving something out would change what is good (penalties in a format
    without them), and for a rubric that could not be read again.
    """
    chosen = get_format(format)
    collected: list[Note] = [] if notes is None else notes
    records: list[dict[str, object]] = []
    for index, rubric in enumerate([rubrics] if isinstance(rubrics, Rubric) else rubrics):
        place = Place(source, index + 1 if source else None, (), collected)
        record = chosen.dump(rubric, place)
        lost = chosen.losses(rubric)
        if chosen.name != "native" and (lossy or not lost):
            changed = changes(rubric, record, chosen, place)
            lost = lost or [f"{name}, which would be read otherwise" for name in changed]
        if lost and not lossy:
            name = f"rubric {rubric.id!r}" if rubric.id else f"rubric {index + 1}"
            hint = "lossy=True leaves them out, with a note; native holds everything"
            raise place.error(f"{format} cannot hold these fields of {name}: {'; '.join(lost)}", hint=hint)
        if lost:
            place.note("lossy", f"left out, since {format} cannot hold it: {'; '.join(lost)}")
        records.append(record)
    return records


def save_rubrics(
    rubrics: Rubric | Sequence[Rubric], path: str | PathLike[str], format: str = "native", *, lossy: bool = False
) -> tuple[Note, ...]:
    """Write rubrics to a .jsonl, .json, .yaml, .toml, .parquet, .csv, .tsv or .txt file, atomically.

    JSON and YAML hold the record itself where there is one rubric, a list where there are several; TOML an array
    `rows` of them. A table (Parquet, CSV) of native rubrics has a column `rubric` of JSON text; the fields of the
    other formats become columns, whose cells in CSV hold JSON text where they hold no text. Rubrics of the `flat`
    format are a row for each criterion. A text file holds one rubric of a format that is a text.

    Returns the notes. Raises FormatError as `dump_rubrics` does, and for what a kind of file cannot hold (null in
    TOML, a number in a column of prompts in CSV), before anything is written.
    """
    kind = file_kind(path)
    notes: list[Note] = []
    records = dump_rubrics(rubrics, format, lossy=lossy, notes=notes, source=fspath(path))
    given = [rubrics] if isinstance(rubrics, Rubric) else rubrics
    target = _Target(get_format(format), fspath(path), lossy, notes)
    if kind == "toml":
        records = [_for_toml(record, rubric, target) for record, rubric in zip(records, given, strict=True)]
    _write(records, path, kind, target)
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class _Target:
    """The format to write, the file's name, whether something may be left out, and where that is noted."""

    format: Format
    source: str
    lossy: bool
    notes: list[Note]

    def lose(self, message: str, field: str = "", line: int | None = None, *, hint: str = "") -> None:
        """Note that something is left out. Raises FormatError unless that is wanted."""
        if not self.lossy:
            hint = "; ".join(part for part in (hint, "lossy=True leaves it out, with a note") if part)
            raise FormatError(message, source=self.source, line=line, field=field, hint=hint)
        self.notes.append(Note("lossy", f"left out: {message}", self.source, line, field))


def _write(records: Sequence[dict[str, object]], path: str | PathLike[str], kind: str, target: _Target) -> None:
    rows, columns = list(records), list[str]()
    spread = target.format.spread
    if spread is not None:
        rows, columns = spread(records)
    whole = rows[0] if len(rows) == 1 and spread is None else rows
    if kind == "jsonl":
        write_jsonl(path, rows)
    elif kind == "json":
        write_json(path, whole)
    elif kind == "yaml":
        write_yaml(path, whole)
    elif kind == "toml":
        write_toml(path, {ROWS: rows} if len(rows) != 1 or spread is not None else rows[0])
    elif kind == "text":
        write_text(path, _single_text(records, target))
    else:
        if target.format.name == "native":
            rows = [dict[str, object](rubric=json_text(record)) for record in records]
        if kind == "parquet":
            write_parquet(path, rows, exact=True, columns=columns)
        else:
            cells = [_row_cells(row, number, target) for number, row in enumerate(rows, start=1)]
            write_csv(path, cells, delimiter="," if kind == "csv" else "\t", columns=columns)


def _for_toml(record: dict[str, object], rubric: Rubric, target: _Target) -> dict[str, object]:
    """The record without null fields, which TOML lacks, where its reader does without them."""
    if target.format.name == "native":
        return _without_nulls(record)
    if target.format.spread is not None:
        return record
    bare, names = without_nulls(record, rubric, target.format)
    if names:
        message = f"left out, as TOML has no null: {some(names)}"
        target.notes.append(Note("layout", message, target.source))
    return bare


def _without_nulls(record: dict[str, object]) -> dict[str, object]:
    """A native record without the fields of provenances that are not set."""
    criteria: list[object] = []
    for item in as_array(record["criteria"]) or ():
        fields = dict(as_object(item) or {})
        origin = as_object(fields.get("provenance"))
        if origin is not None:
            fields["provenance"] = {name: part for name, part in origin.items() if part is not None}
        criteria.append(fields)
    return record | {"criteria": criteria}


def _row_cells(row: dict[str, object], number: int, target: _Target) -> dict[str, str]:
    cells, lost = written_cells(row, target.format.texts)
    opened = [name for name in target.format.texts if as_object(row.get(name)) or as_array(row.get(name))]
    if opened:
        message = "written as JSON text, which this column of a CSV file holds"
        target.notes.extend(Note("layout", message, target.source, number, name) for name in sorted(opened))
    for name in lost:
        kind = type(row[name]).__name__
        target.lose(f"this column of a CSV file holds texts, and a {kind} would be read as one", name, number)
    return cells


def _single_text(records: Sequence[dict[str, object]], target: _Target) -> str:
    """The text that is the one rubric. Raises FormatError where there is none, or several."""
    if len(records) != 1:
        message = f"a text file holds one rubric, not {len(records)}"
        raise FormatError(message, source=target.source, hint="write .jsonl")
    record = records[0]
    found = [name for name, value in record.items() if isinstance(value, str) and target.format.is_text(value)]
    if len(found) != 1:
        able = [name for name in formats() if get_format(name).takes_text]
        message = f"this rubric has no form in {target.format.name} that is a text alone"
        hint = f"write .json, or one of the formats {', '.join(able)}"
        raise FormatError(message, source=target.source, hint=hint)
    others = [name for name in record if name != found[0]]
    if others:
        target.lose(f"a text file holds the rubric alone, without {', '.join(others)}", hint="write .json")
    return str(record[found[0]])


def convert(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    from_format: str = "auto",
    to_format: str = "native",
    lossy: bool = False,
    **options: str,
) -> Converted:
    """Read rubrics in one format and write them in another. Nothing is written unless everything could be read.

    The prompt moves to the column where the target format has it, as text or messages as that format wants. What
    the source format keeps for itself in the metadata goes along to native files alone.

    Raises FormatError and ConfigError as `load_rubrics` and `save_rubrics` do.
    """
    found = load_rubrics(source, format=from_format, **options)
    notes = list(found.notes)
    rubrics = moved(found.rubrics, get_format(found.format), get_format(to_format), notes, fspath(source))
    notes += save_rubrics(rubrics, target, to_format, lossy=lossy)
    return Converted(len(rubrics), found.format, to_format, tuple(notes))
