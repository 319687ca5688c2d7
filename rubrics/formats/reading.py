"""Reading rubrics: a value, such as a column of a data set, or a whole file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath

from rubricate.data.cells import read_cells, settled
from rubricate.data.io import RUBRIC_COLUMNS, Row, Value, file_kind, lines_of, read_values
from rubricate.data.jsontext import parse_json
from rubricate.data.lines import Lines
from rubricate.data.values import Path, field_name, walk
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Format, Note, Options, Place, candidates, detect, formats, get_format
from rubricate.rubrics.rubric import Rubric

_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*[\[{"\]])')
"""How the JSON of a rubric begins; other brackets are those of a text."""

_NUMBERED = re.compile(r"\s*1[.)]\s")

__all__ = ["Imported", "load_rubric", "load_rubrics", "parse_at", "parse_rubric", "rubric_from_row"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file of rubrics held.

    Attributes:
        rubrics: one for each row.
        notes: what was done or noticed while reading.
        format: name of the format.
        rows: the rows that the rubrics were read from, in the same order.
        places: for each rubric, where its criteria stand, by id.
    """

    rubrics: tuple[Rubric, ...]
    notes: tuple[Note, ...]
    format: str
    rows: tuple[Row, ...]
    places: tuple[Mapping[str, Place], ...] = ()


def parse_rubric(
    value: object,
    *,
    format: str = "auto",
    source: str = "",
    line: int | None = None,
    field: str = "",
    notes: list[Note] | None = None,
    **options: str,
) -> Rubric:
    """A rubric out of a JSON-like value.

    Args:
        value: a record, a bare list of criteria, either of them as JSON text, a rubric in Prometheus' text form,
            or a Rubric, which is given back.
        format: a name out of `formats()`; `auto` takes the one format that the value looks like.
        source, line, field: where the value comes from, for error messages.
        notes: list that notes are added to.
        options: the format's own, such as `weights="paper"` for `rar`.

    Raises FormatError for anything that is not a rubric of that format, ConfigError for an unknown format or
    option.
    """
    path: Path = (field,) if field else ()
    place = Place(source, line, path, [] if notes is None else notes)
    return parse_at(value, place, format, options)


def parse_at(value: object, place: Place, name: str, options: Options) -> Rubric:
    """The same for a value whose place is known. Raises as `parse_rubric` does."""
    return _parse(value, place, name, options)[0]


def _parse(value: object, place: Place, name: str, options: Options) -> tuple[Rubric, str]:
    """The rubric, and the name of the format it is in."""
    if isinstance(value, Rubric):
        return value, "native"
    if isinstance(value, str):
        value = _from_text(str(value), place, name)
    problems = [(path, problem) for path, problem in walk(value)]
    for path, problem in problems:
        if "not a number" not in problem:
            raise place.at(*path).error(f"the value {problem}")
    if name == "auto" and not candidates(value):
        column = _rubric_column(value)
        if column:
            return _from_column(value, column, place, name, options)
    chosen = get_format(detect(value, place) if name == "auto" else name)
    _check_options(chosen.name, chosen.options, options)
    if name != "auto" and not chosen.fits(value) and _rubric_column(value):
        return _from_column(value, _rubric_column(value), place, name, options)
    try:
        rubric = chosen.parse(value, place, options)
    except RecursionError:
        raise place.error("the value is nested too deeply") from None
    for path, problem in problems:  # the format has named weights that are not finite; this is any other number
        raise place.at(*path).error(f"the value {problem}")
    return rubric, chosen.name


def _check_options(name: str, known: Sequence[str], options: Options) -> None:
    for option in options:
        if option not in known:
            hint = f"its options: {', '.join(known)}" if known else "it has no options"
            raise ConfigError(f"the format {name!r} has no option {option!r}", hint=hint)


def _from_text(text: str, place: Place, name: str) -> object:
    """The value to be read: the text itself where a format takes it so, or else the JSON it holds."""
    if candidates(text) if name == "auto" else get_format(name).fits(text):
        return text
    if not text.lstrip().startswith(("{", "[")):
        if name != "auto" and get_format(name).takes_text:
            return text  # the format says best what is wrong with it
        hint = "give a list of criteria, or JSON text of one; free text has to be split into criteria first"
        if _NUMBERED.match(text):
            hint = "end each item with [Hard Rule] or [Principle] (openrubrics), or (importance: 75/100) (rlcf)"
        raise place.error("the text is no JSON", hint=hint)
    try:
        return parse_json(text, line=None, allow_nonfinite=True)
    except FormatError as error:
        if name != "auto" and get_format(name).takes_text and not _JSON_START.match(text):
            return text  # such as a tag in brackets
        raise place.error(f"the text is no JSON that can be read: {error.detail}", hint=error.hint) from None


def _rubric_column(value: object) -> str:
    """The one column of a record that holds a rubric of some format, "" where there is none."""
    record = as_object(value) or {}
    found = [name for name in RUBRIC_COLUMNS if record.get(name) is not None]
    return found[0] if len(found) == 1 else ""


def _from_column(value: object, column: str, place: Place, name: str, options: Options) -> tuple[Rubric, str]:
    """The rubric in a column of a record; the other columns join its metadata."""
    record = dict(as_object(value) or {})
    rubric, found = _parse(record.pop(column), place.at(column), name, options)
    for path, problem in walk(record):  # numbers that are none; the format has named those of the rubric
        raise place.at(*path).error(f"the value {problem}")
    for key in record:
        if key in rubric.metadata:
            raise place.at(key).error("this column is in the rubric's metadata too", hint="remove one of them")
    return rubric.model_copy(update={"metadata": rubric.metadata | record}), found


def rubric_from_row(
    row: Row, *, format: str = "auto", notes: list[Note] | None = None, **options: str
) -> Rubric | None:
    """The rubric that a row of prompts and responses carries, None where it has none.

    It is read from the column `rubric` or `rubrics`, or from the row itself where that looks like a rubric
    (BiGGen, a row with `criteria`). Raises FormatError as `parse_rubric` does.
    """
    place = Place(row.source, row.line, (), [] if notes is None else notes)
    record = _row_cells(row.record, place, format) if row.cells else row.record
    column = _rubric_column(record)
    if column and not _needs_row(record, column, format):
        found = _parse(record[column], place.at(column), format, options)[0]
    elif column or candidates(record):
        found = _parse(record, place, format, options)[0]
    else:
        return None
    return _settled(found) if row.cells else found


def _needs_row(record: Mapping[str, object], column: str, name: str) -> bool:
    """Whether a rubric column is that of a format which reads it together with other columns of the row."""
    rest = {key: part for key, part in record.items() if key != column}
    if name == "auto":
        found = candidates(record)
        return len(found) == 1 and candidates(record[column]) != found and not candidates(rest)
    chosen = get_format(name)
    return chosen.fits(record) and not chosen.fits(record[column]) and not chosen.fits(rest)


def load_rubrics(
    path: str | PathLike[str], *, format: str = "auto", kind: str | None = None, **options: str
) -> Imported:
    """All rubrics of a file.

    Args:
        path: .jsonl, .json, .yaml, .toml, .parquet or .csv, as `rubricate.data.io.read_rows` takes them, or .txt
            and .md, which hold one rubric of a format that is a text. A row is a rubric; rows that are single
            criteria make up one rubric, or those of the `flat` format as many as their columns say; an object of
            objects, as BiGGen's file, is read as one rubric an entry, the key being its id. Cells of CSV that hold
            JSON text are read as what they hold (see `rubricate.data.cells`).
        format: a name out of `formats()`; `auto` takes the one that the rows look like.
        kind: what the file holds, where its name does not say.
        options: the format's own, such as `weights="paper"` for `rar`.

    Raises FormatError with file, line and field for the first row that does not fit, or when rows look like
    different formats; ConfigError for an unknown format or option.
    """
    notes: list[Note] = []
    kind = kind or file_kind(path)
    values = list(read_values(path, kind=kind, allow_nonfinite=True))
    cells = values[0].cells
    entries = list(_entries(_opened(values, format, notes), path, kind, notes, format))
    rubrics: list[Rubric] = []
    first = ""
    for value, place, own in entries:
        rubric, found = _parse(value, place, own, options)
        if first and found != first:
            message = f"this row looks like {found}, the rows before it like {first}"
            raise place.error(message, hint=f"split the file, or name the format: format={first!r}")
        first = first or found
        rubrics.append(_settled(rubric) if cells else rubric)
    rows = [
        Row(fspath(path), place.line or 1, _as_record(settled(value) if cells else value))
        for value, place, _ in entries
    ]
    return Imported(tuple(rubrics), tuple(notes), first, tuple(rows), tuple(place.marks for _, place, _ in entries))


def _cells(row: Mapping[str, object], place: Place, chosen: Format | None) -> dict[str, object]:
    """The values of a row of cells, those of a format as it wants them. Raises FormatError with the line."""
    try:
        return read_cells(row, chosen.texts, chosen.numbers) if chosen is not None else read_cells(row)
    except FormatError as error:
        raise place.at(error.field).error(error.detail, hint=error.hint) from None


def _row_cells(row: Mapping[str, object], place: Place, name: str) -> dict[str, object]:
    """The same for a row that is a record, or carries a rubric."""
    opened = _cells(row, place, None)
    found = candidates(opened) if name == "auto" else [name]
    chosen = get_format(found[0]) if len(found) == 1 else None
    return _cells(row, place, chosen) if chosen is not None and (chosen.texts or chosen.numbers) else opened


def _opened(values: Sequence[Value], name: str, notes: list[Note]) -> list[Value]:
    """The values of a file, those of cells with what the cells hold."""
    if not values[0].cells:
        return list(values)
    rows = [(as_object(value.value) or {}, Place(value.source, value.line, (), notes)) for value in values]
    opened = [_cells(row, place, None) for row, place in rows]
    chosen = _row_format(opened, name, cells=True)
    if chosen is None:
        opened = [_row_cells(row, place, name) for row, place in rows]
    elif chosen.texts or chosen.numbers:
        opened = [_cells(row, place, chosen) for row, place in rows]
    return [dataclasses.replace(value, value=row) for value, row in zip(values, opened, strict=True)]


def _settled(rubric: Rubric) -> Rubric:
    """The rubric with cells that ended up in the metadata read as numbers, true, false and null, if they are."""
    criteria = [
        c.model_copy(update={"metadata": settled(c.metadata)}) if c.metadata else c for c in rubric.criteria
    ]
    groups = [g.model_copy(update={"metadata": settled(g.metadata)}) if g.metadata else g for g in rubric.groups]
    update = {"criteria": tuple(criteria), "groups": tuple(groups), "metadata": settled(rubric.metadata)}
    return rubric.model_copy(update=update)


def load_rubric(path: str | PathLike[str], *, format: str = "auto", **options: str) -> Rubric:
    """The one rubric of a file. Raises FormatError as `load_rubrics` does, and when there are several."""
    found = load_rubrics(path, format=format, **options)
    if len(found.rubrics) != 1:
        hint = "put the rubrics into a column of the data, or choose one"
        raise FormatError(f"expected one rubric, found {len(found.rubrics)}", source=fspath(path), hint=hint)
    return found.rubrics[0]


def _as_record(value: object) -> dict[str, object]:
    record = as_object(value)
    return dict(record) if record is not None else {"rubric": value}


def _entries(
    values: Sequence[Value], path: str | PathLike[str], kind: str, notes: list[Note], name: str
) -> Iterator[tuple[object, Place, str]]:
    """The rubrics of a file, not yet read, each with its place and the name of its format, if that is known."""
    source, first = fspath(path), values[0]
    lines = lines_of(path, kind=kind)
    chosen = _row_format([value.value for value in values], name, cells=first.cells)
    if chosen is not None and chosen.gather is not None:
        whole = Place(source, first.line, (), notes, _Finder(lines, values, listed=True), rows=True)
        found = chosen.gather(_objects(values, whole), whole)
        whole.note("layout", _counted(len(values), len(found)))
        for indices in found:
            own = [values[index] for index in indices]
            place = Place(source, own[0].line, (), notes, _Finder(lines, own, listed=True), rows=True)
            yield [value.value for value in own], place, chosen.name
        return
    if kind != "text" and _is_criterion(first.value, name):
        whole = Place(source, first.line, (), notes, _Finder(lines, values, listed=True))
        whole.note("layout", f"the rows are criteria; together they are one rubric of {len(values)}")
        yield [value.value for value in values], whole, name
        return
    keyed = _keyed(first) if len(values) == 1 else None
    if keyed is not None:
        notes.append(Note("layout", f"an object of {len(keyed)} rubrics, read by key", source, first.line))
        for key, record in keyed.items():
            yield record, Place(source, first.line, (key,), notes, _Finder(lines, [first])), name
        return
    for value in values:
        yield value.value, Place(source, value.line, (), notes, _Finder(lines, [value])), name


def _counted(rows: int, rubrics: int) -> str:
    one = "1 row is a criterion" if rows == 1 else f"{rows} rows are criteria"
    return f"{one} of {rubrics} rubric{'' if rubrics == 1 else 's'}"


def _row_format(values: Sequence[object], name: str, *, cells: bool) -> Format | None:
    """The format that gathers rows into rubrics, where the rows are of such a one; None for any other file."""
    first = as_object(values[0])
    if first is None:
        return None
    if name != "auto":
        chosen = get_format(name)
        return chosen if chosen.gather is not None and not chosen.is_record(first) else None
    if candidates(first) or _rubric_column(first):
        return None
    found = candidates(values)
    if cells and found == ["native"]:
        found = ["flat"]  # which has the native fields as columns, and can read cells
    chosen = get_format(found[0]) if len(found) == 1 else None
    return chosen if chosen is not None and chosen.gather is not None else None


def _objects(values: Sequence[Value], place: Place) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    for index, value in enumerate(values):
        row = as_object(value.value)
        if row is None:
            raise place.at(index).error(f"expected an object, got {type(value.value).__name__}")
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class _Finder:
    """Gives the line of a path in a file. Where rows make up one value, the path begins with the row's index."""

    lines: Lines
    values: Sequence[Value]
    listed: bool = False

    def __call__(self, path: Path) -> int | None:
        value, rest = self.values[0], path
        if self.listed and path and isinstance(path[0], int):
            value, rest = self.values[path[0]], path[1:]
        found = self.lines((*value.place, *rest))
        return value.line if found is None else found


def _is_criterion(value: object, name: str) -> bool:
    """Whether a row is a single criterion: a text, a pair, or an object that looks like an entry of a bare list."""
    if isinstance(value, str):
        return not candidates(value) and not value.lstrip().startswith(("{", "["))
    if as_array(value) is not None:
        names = formats() if name == "auto" else [name]
        return any(get_format(known).is_list([value]) for known in names)
    record = as_object(value)
    if record is None or candidates(record) or _rubric_column(record):
        return False
    return bool(candidates([record])) if name == "auto" else get_format(name).is_item(record)


def _keyed(value: Value) -> dict[str, Mapping[str, object]] | None:
    """The entries of an object of records, each with its key as id; None where the value is something else."""
    outer = as_object(value.value)
    if not outer or candidates(outer) or _rubric_column(outer):
        return None
    records = {key: as_object(item) for key, item in outer.items()}
    found = {key: record for key, record in records.items() if record is not None and candidates(record)}
    if len(found) != len(records):
        return None
    for key, record in found.items():
        if str(record.get("id", key)) != key:
            message = f"the key {key!r} and the id {record['id']!r} differ"
            raise FormatError(message, source=value.source, line=value.line, field=field_name((key, "id")))
    return {key: record if "id" in record else {"id": key, **record} for key, record in found.items()}
