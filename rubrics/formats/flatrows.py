"""The columns of flat tables of criteria: their names, what their cells mean, and which rows belong together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rubricate.data.cells import Cell
from rubricate.data.columns import COLUMNS
from rubricate.data.jsontext import parse_json
from rubricate.data.values import walk
from rubricate.data.writing import json_text
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Place

__all__ = [
    "ALIASES",
    "FIELDS",
    "KNOWN",
    "NESTED",
    "PROMPTS",
    "RUBRIC",
    "TEXTS",
    "columns_of",
    "gather",
    "is_row",
    "opened",
    "rank",
    "single",
    "truth",
]

Row = Mapping[str, object]

ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "criterion_id"),
    "text": ("text", "criterion", "description"),
    "weight": ("weight", "points"),
}
"""Fields of a criterion whose column may have one of several names."""

FIELDS = (
    "id",
    "text",
    "weight",
    "polarity",
    "kind",
    "importance",
    "channel",
    "veto",
    "scale",
    "verifier",
    "condition",
    "tags",
    "path",
    "provenance",
    "metadata",
)
"""The columns of a criterion, in the order in which they are written."""

PROMPTS = COLUMNS["prompt"]
"""Columns of the rubric's prompt."""

RUBRIC = ("rubric_id", "rubric_name", "rubric_scope", "rubric_version", "rubric_metadata", "rubric_groups")
"""Columns of the rubric itself."""

NESTED = frozenset(
    {"scale", "verifier", "tags", "path", "provenance", "metadata", "rubric_metadata", "rubric_groups"}
)
"""Columns of lists and objects, which may come as JSON text."""

_OWN = frozenset({"polarity", "kind", "importance", "channel", "veto", "scale", "verifier", "condition", "path"})
KNOWN = frozenset({*FIELDS, *PROMPTS, *RUBRIC, *(name for names in ALIASES.values() for name in names)})
"""All columns with a meaning; any other is the criterion's metadata."""

TEXTS = frozenset(
    {*ALIASES["id"], *ALIASES["text"], "polarity", "kind", "importance", "channel", "condition"}
    | {"rubric_id", "rubric_name", "rubric_scope", "rubric_version"}
)
"""Columns that hold texts in CSV, even where they look like numbers."""


_FIRST = (
    *RUBRIC[:2],
    *PROMPTS,
    *(column for name in FIELDS[:-1] for column in ALIASES.get(name, (name,))),
)
_LAST = (FIELDS[-1], *RUBRIC[2:])


def rank(name: str) -> int:
    """Where a column stands: the rubric's id and prompt, the criterion's fields, unknown columns, the rest."""
    if name in _FIRST:
        return _FIRST.index(name)
    return len(_FIRST) + (1 + _LAST.index(name) if name in _LAST else 0)


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns of rows: each row's in its own order, those that earlier rows lack next to what precedes them."""
    found: list[str] = []
    for row in rows:
        if found == list(row):
            continue
        at = 0
        for name in row:
            if name in found:
                at = found.index(name) + 1
            else:
                found.insert(at, name)
                at += 1
    return found


def is_row(row: Row) -> bool:
    """Whether a row is a criterion that names its rubric or prompt, or has columns that only this format reads.

    `text` with such columns and no rubric is an entry of the native format, as long as that knows them all.
    """
    if not any(name in row for name in ALIASES["text"]):
        return False
    if "rubric_id" in row or any(row.get(name) is not None for name in PROMPTS):
        return True
    return not _OWN.isdisjoint(row) and ("text" not in row or any(name not in FIELDS for name in row))


def opened(name: str, value: object, place: Place) -> object:
    """The value of a column of lists or objects: itself, or what its JSON text holds. Raises FormatError."""
    if name not in NESTED or not isinstance(value, str):
        return value
    try:
        found = parse_json(value, line=None)
    except FormatError as error:
        wanted = '["a", "b"]' if name in ("tags", "path", "rubric_groups") else '{"name": "value"}'
        message = f"expected JSON text such as {wanted}: {error.detail}"
        raise place.error(message, hint=error.hint) from None
    for path, problem in walk(found):
        raise place.at(*path).error(f"the value {problem}")
    return found


def truth(value: object, place: Place) -> bool:
    """True or false; in a cell of CSV these words, in any case. Raises FormatError for anything else."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, Cell) else ""
    if word not in ("true", "false"):
        seen = repr(str(value)[:20]) if isinstance(value, str | int | float) else type(value).__name__
        raise place.error(f"expected true or false, got {seen}")
    return word == "true"


def gather(rows: Sequence[Row], place: Place) -> list[list[int]]:
    """Which rows make up a rubric each: those of one `rubric_id`, or else of one prompt, or else all of them.

    Raises FormatError for a row that is no object, or has no `rubric_id` where others have one.
    """
    if any(row.get("rubric_id") is not None for row in rows):
        names: tuple[str, ...] = ("rubric_id",)
    else:
        names = tuple(name for name in PROMPTS if any(row.get(name) is not None for row in rows))
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        values = [row.get(name) for name in names]
        if names and all(value is None for value in values):
            where = place.at(index, names[0])
            raise where.error("this row does not say which rubric it belongs to", hint="fill in the column")
        groups.setdefault(_key(values, place.at(index)), []).append(index)
    return list(groups.values())


def _key(values: Sequence[object], place: Place) -> str:
    # An id that is a whole number and the same as a text mean one rubric.
    plain = [str(value) if isinstance(value, int | str) else value for value in values]
    try:
        return json.dumps(plain)  # what is no JSON, such as NaN, is refused when it is read
    except RecursionError:
        raise place.error("the value is nested too deeply") from None


def single(rows: Sequence[Row], name: str, place: Place) -> tuple[object, Place]:
    """The one value that the rows of a rubric give a column, None where they give none, and where it stands.

    Raises FormatError where two rows differ.
    """
    found: object = None
    where = place.at(0, name)
    for index, row in enumerate(rows):
        value = row.get(name)
        if value is None:
            continue
        here = place.at(index, name)
        value = opened(name, value, here)
        if found is not None and value != found:
            message = f"the rows of a rubric differ here: {_short(value)}, and {_short(found)} before"
            raise here.error(message, hint="give it once, or the same in all rows")
        if found is None:
            found, where = value, here
    return found, where


def _short(value: object) -> str:
    fields, listed = as_object(value), as_array(value)
    text = json_text(value) if fields is not None or listed is not None else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
