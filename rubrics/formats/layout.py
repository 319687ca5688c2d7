"""What layouts need: a record's order of fields, kept where a format would write another; what lists cannot say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rubricate.narrow import as_array
from rubricate.rubrics.criterion import Polarity
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.rubric import Rubric

__all__ = [
    "arranged",
    "check_reserved",
    "item_order",
    "order_mark",
    "plain_losses",
    "record_order",
    "refuse_penalties",
]


def record_order(record: Mapping[str, object], own: Sequence[str], key: str = "id") -> list[str]:
    """The order in which `with_id(...) | own fields` writes a record: id, other columns, the format's own."""
    first = [key] if key in record else []
    return [*first, *(name for name in record if name not in (*own, key)), *own]


def item_order(item: Mapping[str, object], own: Sequence[str]) -> list[str]:
    """The order in which an item is written: its id, the format's own fields, and the rest."""
    first = ["id"] if "id" in item else []
    return [*first, *own, *(name for name in item if name not in (*own, "id"))]


def order_mark(mark: str, record: Mapping[str, object], written: Sequence[str]) -> dict[str, object]:
    """Metadata that holds the order of a record's fields under `mark`; none where `written` is the same."""
    return {} if list(record) == list(written) else {mark: list(record)}


def arranged(record: Mapping[str, object], order: object, optional: Collection[str] = ()) -> dict[str, object]:
    """A record with its fields in the order that was kept, new ones last.

    Args:
        record: what is to be written.
        order: the list that `order_mark` kept, None for none.
        optional: fields that are left out where the kept order lacks them.
    """
    names = [name for name in as_array(order) or () if isinstance(name, str)]
    if not names:
        return dict(record)
    first = {name: record[name] for name in names if name in record}
    return first | {name: part for name, part in record.items() if name not in first and name not in optional}


def check_reserved(fields: Mapping[str, object], mark: str, place: Place) -> None:
    """Raises FormatError for a field whose name begins with a format's own mark, such as `tail:`."""
    for name in fields:
        if name.startswith(mark):
            raise place.at(name).error(
                f"field names that begin with {mark!r} are reserved", hint="rename the field"
            )


def refuse_penalties(rubric: Rubric, name: str, place: Place) -> None:
    """Raises FormatError for penalties, in formats where every item is a reward."""
    bad = [criterion.id for criterion in rubric.criteria if criterion.polarity is Polarity.PENALTY]
    if bad:
        raise place.error(
            f"{name} has no penalties, and would reward the error: {', '.join(map(repr, bad))}",
            hint="word them positively, or leave them out",
        )


def plain_losses(rubric: Rubric) -> list[str]:
    """Ids and metadata of criteria, in formats whose items have neither and are called c1, c2 ... by place."""
    named = [c.id for index, c in enumerate(rubric.criteria) if c.id != f"c{index + 1}"]
    extra = dict.fromkeys(name for c in rubric.criteria for name in c.metadata)
    return [*([f"id ({', '.join(named)})"] if named else []), *(f"metadata.{name} of criteria" for name in extra)]
