"""Chasing the Tail (2509.21500): a prompt and `rubrics`, a list of `criterion` and `weight`, with two counts.

Every item is a reward: the paper's generator words items so that "yes" is good, and weighs them from 1 to 3
(Jun-Kai-Zhang/rubrics 9ca0991, `generator/prompts/generate_rubrics.txt`). The fields `prompt`, `rubrics`,
`number_of_criteria` and `total_weight` are as the card of faezeb/chasing-the-tail-complete, a copy of
JunkaiZ/Rubrics with more columns, lists them. The authors' working files (`generator/utils.py`, 14bc65c) have the
list under `criteria`, with a `local_id`; native has a list of that name too and wins the detection, so those are
read as format "tail" by name only.

Counts that contradict the list get a note, no error: neither the authors' code nor ours reads them. They are
written back as long as the list is as it was, and counted anew once it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.narrow import as_number, as_object
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    Listing,
    assign_ids,
    build_criterion,
    build_rubric,
    check_weights,
    holds_items,
    number,
    open_listing,
    own_id,
    text_at,
    with_id,
    written_ids,
)
from rubricate.rubrics.formats.layout import (
    arranged,
    check_reserved,
    item_order,
    order_mark,
    record_order,
    refuse_penalties,
)
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT"]

_MARK = "tail:"
_ORDER, _COUNTS, _FIELD = _MARK + "order", _MARK + "counts", _MARK + "field"
_COUNT_FIELDS = ("number_of_criteria", "total_weight")
_ITEM_FIELDS = ("criterion", "weight")
_WEIGHTS = (1.0, 2.0, 3.0)


def _is_item(item: Mapping[str, object]) -> bool:
    # `points` and `tags` are HealthBench's; the others are formats whose items have a criterion among other fields.
    return "criterion" in item and not {"points", "tags", "text", "description"} & item.keys()


def _is_entry(item: Mapping[str, object]) -> bool:
    return "criterion" in item and not {"points", "tags", "text"} & item.keys()


def _is_record(record: Mapping[str, object]) -> bool:
    return bool(record.get("rubrics")) and holds_items(record, "rubrics", _is_entry) and not _has_points(record)


def _has_points(record: Mapping[str, object]) -> bool:
    return holds_items(record, "rubrics", lambda item: "points" in item)


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    field = "criteria" if record is not None and "criteria" in record and "rubrics" not in record else "rubrics"
    listing = open_listing(value, place, field=field, id_field="id")
    items, places = listing.items, listing.places
    weights = check_weights(items, places, "weight", negative=False)
    ids = assign_ids([own_id(item, at) for item, at in zip(items, places, strict=True)], [None] * len(items))
    criteria = [
        _criterion(item, at, name, weight)
        for item, at, name, weight in zip(items, places, ids, weights, strict=True)
    ]
    _note_weights(criteria, listing)
    metadata = dict(listing.metadata)
    if record is not None:
        check_reserved(record, _MARK, place)
        marks = _count_marks(record, criteria, place)
        marks |= order_mark(_ORDER, record, record_order(record, (field, *_COUNT_FIELDS)))
        marks |= {_FIELD: field} if field != "rubrics" else {}
        metadata = {name: part for name, part in metadata.items() if name not in _COUNT_FIELDS} | marks
    return build_rubric(listing.where, criteria, rubric_id=listing.rubric_id, metadata=metadata)


def _criterion(item: Mapping[str, object], place: Place, name: str, weight: float) -> Criterion:
    check_reserved(item, _MARK, place)
    metadata = {key: part for key, part in item.items() if key not in _ITEM_FIELDS}
    fields = {
        "id": name,
        "text": text_at(item, "criterion", place),
        "weight": weight,
        "metadata": metadata | order_mark(_ORDER, item, item_order(item, _ITEM_FIELDS)),
    }
    return build_criterion(fields, place, {"text": "criterion"})


def _note_weights(criteria: list[Criterion], listing: Listing) -> None:
    for criterion, place in zip(criteria, listing.places, strict=True):
        if criterion.weight not in _WEIGHTS:
            message = f"{criterion.id!r} has the weight {criterion.weight:g}; this format has 1, 2 and 3"
            place.at("weight").note("weights", message, criterion_id=criterion.id)


# Counts


def _counted(criteria: tuple[Criterion, ...] | list[Criterion]) -> dict[str, object]:
    total = sum(criterion.weight for criterion in criteria)
    return {"number_of_criteria": len(criteria), "total_weight": number(total)}


def _count_marks(record: Mapping[str, object], criteria: list[Criterion], place: Place) -> dict[str, object]:
    """What the source says about the list, where the list says otherwise. Raises FormatError for no number."""
    found = _counted(criteria)
    written: dict[str, object] = {}
    for name in _COUNT_FIELDS:
        value = record.get(name)
        if value is not None and as_number(value) is None:
            raise place.at(name).error(f"expected a number, got {value!r:.30}", hint="or leave the field out")
        if name in record and value != found[name]:
            written[name] = value
        if value is not None and value != found[name]:
            place.at(name).note("layout", f"{value} is stated, the list makes {found[name]}")
    return {_COUNTS: {"written": written, "found": found}} if written else {}


def _counts(rubric: Rubric) -> dict[str, object]:
    """The counts to write: the source's own where nothing that they count has changed."""
    found = _counted(rubric.criteria)
    kept = as_object(rubric.metadata.get(_COUNTS)) or {}
    if kept.get("found") != found:
        return found
    return found | dict(as_object(kept.get("written")) or {})


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    refuse_penalties(rubric, "tail", place)
    items: list[dict[str, object]] = []
    for criterion, name in zip(rubric.criteria, written_ids(rubric, [None] * len(rubric)), strict=True):
        item: dict[str, object] = {} if name is None else {"id": name}
        item |= {"criterion": criterion.text, "weight": number(criterion.weight)}
        extra = unmarked(criterion.metadata, _MARK)
        item |= {key: part for key, part in extra.items() if key not in item and key != "id"}
        items.append(arranged(item, criterion.metadata.get(_ORDER)))
    field = "criteria" if rubric.metadata.get(_FIELD) == "criteria" else "rubrics"
    own = {field: items} | _counts(rubric)
    metadata = {key: part for key, part in unmarked(rubric.metadata, _MARK).items() if key not in own}
    return arranged(with_id(rubric, "id", metadata) | own, rubric.metadata.get(_ORDER), _COUNT_FIELDS)


def _losses(rubric: Rubric) -> list[str]:
    field = "criteria" if rubric.metadata.get(_FIELD) == "criteria" else "rubrics"
    return [
        *criterion_losses(rubric, ()),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, {field, *_COUNT_FIELDS}, _ITEM_FIELDS),
    ]


FORMAT = Format(
    name="tail",
    shape='{"prompt", "rubrics": [{"criterion", "weight"}, ...], "number_of_criteria", ...}, or the list alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="prompt",
    numbers=_COUNT_FIELDS,
)
