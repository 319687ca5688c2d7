"""Writing rubrics in a format, and converting files from one to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath

from rubricate.data.io import file_kind
from rubricate.data.writing import json_text, write_json, write_jsonl, write_parquet, write_yaml
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Format, Note, Place, get_format
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

    Raises FormatError, naming rubric and fields, for what the format cannot hold, unless `lossy`; and, lossy or
    not, where leaving something out would change what is good (penalties in a format without them).
    """
    chosen = get_format(format)
    collected: list[Note] = [] if notes is None else notes
    records: list[dict[str, object]] = []
    for index, rubric in enumerate([rubrics] if isinstance(rubrics, Rubric) else rubrics):
        place = Place(source, index + 1 if source else None, (), collected)
        record = chosen.dump(rubric, place)
        lost = chosen.losses(rubric)
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
    """Write rubrics to a .jsonl, .json, .yaml or .parquet file, atomically, and return the notes.

    JSON and YAML hold the record itself where there is one rubric, a list where there are several. A Parquet file
    of native rubrics has a column `rubric` of JSON text; the other formats become columns.

    Raises FormatError as `dump_rubrics` does, before anything is written.
    """
    notes: list[Note] = []
    records = dump_rubrics(rubrics, format, lossy=lossy, notes=notes, source=fspath(path))
    _write(records, path, format)
    return tuple(notes)


def _write(records: Sequence[dict[str, object]], path: str | PathLike[str], format: str) -> None:
    kind = file_kind(path)
    if kind == "jsonl":
        write_jsonl(path, records)
    elif kind == "json":
        write_json(path, records[0] if len(records) == 1 else list(records))
    elif kind == "yaml":
        write_yaml(path, records[0] if len(records) == 1 else list(records))
    elif kind == "parquet":
        rows = [{"rubric": json_text(record)} for record in records] if format == "native" else records
        write_parquet(path, rows)
    else:
        raise FormatError("rubrics are not written as CSV", source=fspath(path), hint="use .jsonl or .json")


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

    The prompt moves to the column where the target format has it, as text or messages as that format wants.

    Raises FormatError and ConfigError as `load_rubrics` and `save_rubrics` do.
    """
    found = load_rubrics(source, format=from_format, **options)
    rubrics = found.rubrics
    chosen = get_format(to_format)
    if chosen.prompt and to_format != found.format:
        rubrics = tuple(_moved(rubric, chosen) for rubric in rubrics)
    notes = save_rubrics(rubrics, target, to_format, lossy=lossy)
    return Converted(len(rubrics), found.format, to_format, (*found.notes, *notes))


def _moved(rubric: Rubric, target: Format) -> Rubric:
    """The rubric with its prompt under the name of the target, where it has one that fits; all else as it was."""
    column = target.prompt
    names = [name for name in ("prompt", "question", "input", "instruction") if name in rubric.metadata]
    if not names or column in names:
        return rubric
    reshape: Callable[[object], object] = _as_messages if target.messages else _as_text
    value = reshape(rubric.metadata[names[0]])
    if value is None:
        return rubric
    rest = {name: part for name, part in rubric.metadata.items() if name != names[0]}
    return rubric.model_copy(update={"metadata": {column: value} | rest})


def _as_messages(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _as_text(value: object) -> object:
    """A text, or the text of a lone user message; None for longer conversations, which are no single text."""
    if isinstance(value, str):
        return value
    listed = as_array(value) or ()
    message = as_object(listed[0]) if len(listed) == 1 else None
    return message["content"] if message is not None and set(message) == {"role", "content"} else None
