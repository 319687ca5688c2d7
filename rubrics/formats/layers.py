"""For formats whose records are rows of many columns: values inside JSON texts, and the order of the columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from rubricate.data.jsontext import parse_json
from rubricate.data.values import walk
from rubricate.errors import FormatError
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.layout import order_mark
from rubricate.rubrics.rubric import Rubric

__all__ = ["json_layer", "layer_text", "same", "with_order"]


def json_layer(text: str, place: Place) -> object:
    """The value of a JSON text that stands in a field.

    Raises FormatError that names the field, and the path inside the text, for broken JSON and for values that JSON
    files cannot hold (NaN, half of a surrogate pair, nesting that is too deep).
    """
    try:
        value = parse_json(text, line=None)
    except FormatError as error:
        where = place.at(error.field) if error.field else place
        raise where.error(f"the text is no JSON that can be read: {error.detail}", hint=error.hint) from None
    for path, problem in walk(value):
        raise place.at(*path).error(f"the value {problem}")
    return value


def layer_text(value: object) -> str:
    """A value as JSON text, as Python's json module writes it by default: the way published data sets do."""
    return json.dumps(value)


def same(one: object, other: object) -> bool:
    """Whether two JSON values are the same: unlike `==`, 1, 1.0 and true differ, and so do two orders of keys."""
    return json.dumps(one) == json.dumps(other)


def with_order(
    rubric: Rubric, record: Mapping[str, object], dump: Callable[[Rubric, Place], Mapping[str, object]], mark: str
) -> Rubric:
    """The rubric, with the order of the record's fields in its metadata where `dump` would write another."""
    kept = order_mark(mark, record, list(dump(rubric, Place())))
    return rubric.model_copy(update={"metadata": rubric.metadata | kept}) if kept else rubric
