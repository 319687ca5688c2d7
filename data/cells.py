"""Cells of CSV files that hold more than texts: JSON text in them, and numbers, and how they are told from texts.

A cell that is JSON text of a list or an object is read as that. A number, true, false or null is read as such where
nothing wants a text (`settled`), if it is written as JSON writers write it: `5` is a number, `007` and `1.10` are
texts, so that writing it again gives the same cell. A text that would be taken for something else is written as
JSON text, in quotes: `"5"`, `""`. An empty cell is a field that is not there. Columns of which a format says that
they are texts are never anything else, so that only an empty text needs its quotes there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rubricate.data.columns import COLUMNS
from rubricate.data.jsontext import parse_json
from rubricate.data.writing import json_text
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object

__all__ = ["Cell", "read_cells", "settled", "written_cells"]

_TEXTS = frozenset(name for role in ("prompt", "system", "response", "finish") for name in COLUMNS[role])
"""Columns whose cells are texts, or JSON text of messages, but never numbers."""

_WEIGHTS = frozenset({"weight", "points"})
"""Columns in which any number that JSON knows is read as one."""


class Cell(str):
    """A cell's text that may stand for a number, true, false or null, as long as nobody has taken it for a text."""

    __slots__ = ()


_NONE = object()


def _json(text: str, column: str) -> object:
    """The value of a JSON text, or a mark where it is none. Raises FormatError for JSON that is not allowed."""
    try:
        return parse_json(text, line=None, allow_nonfinite=True)
    except FormatError as error:
        if error.detail.startswith(("not valid JSON", "not readable")):
            return _NONE
        field = f"{column}.{error.field}" if error.field else column
        raise FormatError(error.detail, field=field, hint=error.hint) from None


def _scalar(text: str, *, canonical: bool = True) -> object:
    """The number, true, false or null that a text is JSON for, or a mark where it is another text."""
    if not text or (text[0] not in "-0123456789" and text not in ("true", "false", "null")):
        return _NONE
    try:
        value = parse_json(text, line=None)
        return value if not canonical or json_text(value) == text else _NONE
    except FormatError:
        return _NONE


def _opened(column: str, text: str, texts: Collection[str], numbers: Collection[str] = _WEIGHTS) -> object:
    """What a cell that is not empty holds; a Cell where that depends on who asks."""
    if text[0] == '"' and text[-1] == '"':
        value = _json(text, column)
        if isinstance(value, str) and json_text(value) == text and _mistaken(column, value, texts):
            return value
        return text
    if column in texts:
        return text
    if text.lstrip().startswith(("[", "{")):
        value = _json(text, column)
        return text if value is _NONE else value
    if column in numbers:
        value = _scalar(text.strip(), canonical=False)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else Cell(text)
    if column in _TEXTS:
        return text
    if column in ("id", "idx") or column.endswith("_id"):
        value = _scalar(text)
        return value if isinstance(value, int) and not isinstance(value, bool) else Cell(text)
    return Cell(text)


def _mistaken(column: str, text: str, texts: Collection[str]) -> bool:
    """Whether a text, as a cell, would be read as something else."""
    if not text:
        return True
    found = settled(_opened(column, text, texts))
    return not isinstance(found, str) or found != text


def read_cells(
    row: Mapping[str, object], texts: Collection[str] = (), numbers: Collection[str] = ()
) -> dict[str, object]:
    """The values of a row of cells: lists, objects, texts, weights, whole numbers as ids, and otherwise Cells.

    Args:
        row: columns and cells.
        texts: columns that hold texts whatever their cells look like.
        numbers: columns that hold numbers, besides `weight` and `points`.

    Raises FormatError, naming the column, for JSON text with a key that occurs twice, or nested too deeply.
    """
    numbers = _WEIGHTS.union(numbers)
    return {
        name: _opened(name, value, texts, numbers) if isinstance(value, str) else value
        for name, value in row.items()
        if value != ""
    }


def settled(value: object) -> object:
    """A value with every Cell in it read as the number, true, false or null that it is, or else as a text."""
    if isinstance(value, Cell):
        found = _scalar(value)
        return str(value) if found is _NONE else found
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        return {name: settled(item) for name, item in fields.items()}
    return [settled(item) for item in listed] if listed is not None else value


def written_cells(record: Mapping[str, object], texts: Collection[str] = ()) -> tuple[dict[str, str], list[str]]:
    """The cells of a record, and the columns that cannot hold their value: a number where texts are expected.

    `texts` as for `read_cells`; a list or an object becomes its JSON text there, and is read as that text.

    Raises FormatError, naming the column, for values that JSON cannot hold.
    """
    cells: dict[str, str] = {}
    lost: list[str] = []
    for name, value in record.items():
        if isinstance(value, str):
            cells[name] = json_text(value) if _mistaken(name, value, texts) else value
        elif name in {*texts, *_TEXTS} and as_object(value) is None and as_array(value) is None:
            lost.append(name)
        else:
            cells[name] = json_text(value)
    return cells, lost
