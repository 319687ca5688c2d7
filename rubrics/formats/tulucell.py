"""The column `ground_truth` of DR Tulu's and open-instruct's rows: an object, its JSON text, or a list of cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rubricate.data.jsontext import parse_json
from rubricate.data.values import walk
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.common import Item
from rubricate.rubrics.formats.tulu import Dialect

__all__ = ["Cell", "close_cell", "filled", "looks_like_payload", "open_cell", "verifier_names"]

_STYLES: Mapping[str, tuple[bool, tuple[str, str]]] = {
    "json": (True, (", ", ": ")),
    "utf8": (False, (", ", ": ")),
    "compact": (True, (",", ":")),
    "compact_utf8": (False, (",", ":")),
}
"""Ways to write JSON text: whether other characters than ASCII are escaped, and the separators."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The object in a `ground_truth` column, where it stands, and the marks that say how it was written."""

    payload: Item
    where: Place
    marks: dict[str, object]

    def check_numbers(self) -> None:
        """Raise FormatError for a number that is none, once the weights have been named better."""
        for path, problem in walk(self.payload):
            raise self.where.at(*path).error(f"the value {problem}")


def verifier_names(record: Item) -> list[str]:
    """The verifiers that the column `dataset` names, in lower case, as open-instruct compares them."""
    value = record.get("dataset")
    names = [value] if isinstance(value, str) else as_array(value) or ()
    return [name.lower() if isinstance(name, str) else "" for name in names]


def looks_like_payload(value: object) -> bool:
    """Whether a cell, or one of a list of cells, holds rubrics, as an object or as JSON text."""
    for part in as_array(value) or [value]:
        fields = as_object(part)
        if fields is not None and {"rubrics", "Answer Critical"} & fields.keys():
            return True
        if isinstance(part, str) and part.lstrip()[:1] in ("{", "[") and _names_rubrics(part):
            return True
    return False


def _names_rubrics(text: str) -> bool:
    plain = text.replace('\\"', '"').replace(
        "'", '"'
    )  # JSON text inside JSON text; Python's own, which is an error
    return '"rubrics"' in plain or '"Answer Critical"' in plain


def open_cell(record: Item, place: Place, dialect: Dialect) -> Cell:
    """The rubrics in `ground_truth`: an object, its JSON text, or a list, or JSON text of one, with these in it.

    Raises FormatError for anything else, with the path inside the text.
    """
    where = place.at("ground_truth")
    if "ground_truth" not in record:
        raise where.error("this field is missing", hint=f"fields here: {', '.join(record) or 'none'}")
    value, marks = record["ground_truth"], dict[str, object]()
    if isinstance(value, str) and value.lstrip().startswith("["):  # a list in CSV
        marks[dialect.mark("list")], value = value, _decoded(value, where)
    listed = as_array(value)
    if listed is not None:
        index = _pick(listed, verifier_names(record))
        if index is None:
            raise where.error("no rubrics in this list")
        marks[dialect.mark("before")] = list(listed[:index])
        marks[dialect.mark("after")] = list(listed[index + 1 :])
        value, where = listed[index], where.at(index)
    payload = as_object(_decoded(value, where) if isinstance(value, str) else value)
    if payload is None:
        raise where.error("expected an object with `rubrics`, or the JSON text of one")
    for path, problem in walk(payload):
        if "not a number" not in problem:
            raise where.at(*path).error(f"the value {problem}")
    return Cell(payload, where, marks | _style(value, payload, dialect))


def _pick(cells: Sequence[object], names: Sequence[str]) -> int | None:
    found = [index for index, part in enumerate(cells) if part is not None and looks_like_payload([part])]
    named = [index for index, name in enumerate(names[: len(cells)]) if name == "rubric"]
    return next(iter([*named, *found, *range(len(cells))]), None)


def _decoded(text: str, where: Place) -> object:
    try:
        return parse_json(text, line=None, allow_nonfinite=True)
    except FormatError as error:
        raise where.error(f"the text is no JSON that can be read: {error.detail}", hint=error.hint) from None


def _style(value: object, payload: Item, dialect: Dialect) -> dict[str, object]:
    """The mark that gives the same text again: a style, or the text itself where no style does."""
    if not isinstance(value, str):
        return {dialect.mark("style"): "object"}
    style = next((name for name in _STYLES if _encoded(payload, name) == value), None)
    if style is None:
        return {dialect.mark("cell"): value}
    return {} if style == "json" else {dialect.mark("style"): style}


def _encoded(payload: object, style: str) -> str:
    escaped, separators = _STYLES[style]
    return json.dumps(payload, ensure_ascii=escaped, separators=separators)


def filled(skeleton: Item, lists: Mapping[str, object]) -> dict[str, object]:
    """A payload's skeleton, in which null stands for a list that was read, with the lists in their places."""
    return {key: lists.get(key, part) for key, part in skeleton.items()} | dict(lists)


def close_cell(payload: dict[str, object], metadata: Item, dialect: Dialect) -> object:
    """The cell of a payload, written as the marks in the metadata say; JSON text where they say nothing."""
    style, text = metadata.get(dialect.mark("style")), metadata.get(dialect.mark("cell"))
    cell: object = payload
    if isinstance(text, str) and _same(text, payload):
        cell = text
    elif style != "object":
        cell = _encoded(payload, style if isinstance(style, str) and style in _STYLES else "json")
    before, after = (as_array(metadata.get(dialect.mark(side))) for side in ("before", "after"))
    if before is None:
        return cell
    listed, text = [*before, cell, *(after or ())], metadata.get(dialect.mark("list"))
    if not isinstance(text, str):
        return listed
    return text if _same(text, listed) else _encoded(listed, "json")


def _same(text: str, value: object) -> bool:
    try:
        return parse_json(text, line=None) == value
    except FormatError:
        return False
