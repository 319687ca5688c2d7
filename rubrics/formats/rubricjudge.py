"""The rubric file of verifiers' RubricJudge: a TOML or JSON list `criteria` of `name`, `text`, `weight`, `choices`.

`choices` are ordered from worst to best and scored evenly by rank; by default they are no and yes. Weights are
finite, >= 0 (1 by default) and at least one is positive; names differ; a criterion has no other fields. A JSON
file may be the list alone. Names and rules as in verifiers/v1/judges/rubric.py of PrimeIntellect-ai/verifiers
(02e49f1).

A criterion's name is its id; `["no", "yes"]` is the binary scale, other choices an ordinal one with values from 0
by 1. There are no penalties: one that is written has its choices turned round, worst first, so that what is good
stays good, and counts as a loss, since its weight then also earns. Where a record might be of the native format
too, this one wins: criteria of the native format have neither a `name` nor `choices`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import BinaryScale, Criterion, OrdinalScale, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    build_criterion,
    build_rubric,
    check_weights,
    number,
    open_listing,
    text_at,
    with_id,
)
from rubricate.rubrics.formats.layers import with_order
from rubricate.rubrics.formats.layout import arranged, check_reserved
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT", "looks_named"]

_MARK = "rubricjudge:"
_KEYS, _ORDER = _MARK + "fields", _MARK + "order"
_FIELDS = ("name", "text", "weight", "choices")
_NAMES = {"id": "name", "scale": "choices"}
_DEFAULT = ["no", "yes"]


def looks_named(item: Mapping[str, object]) -> bool:
    """Whether a criterion is known by a name or has choices, which those of the native format never have."""
    return "id" not in item and bool({"name", "choices"} & item.keys())


def _is_item(item: Mapping[str, object]) -> bool:
    return looks_named(item) and "text" in item


def _is_record(record: Mapping[str, object]) -> bool:
    items = as_array(record.get("criteria"))
    return items is not None and any(looks_named(as_object(item) or {}) for item in items)


def _parse(value: object, place: Place, options: Options) -> Rubric:
    listing = open_listing(value, place, field="criteria", id_field="id")
    check_reserved(listing.metadata, _MARK, place)
    named = [{**item, "title": item.get("name")} for item in listing.items]  # messages call an entry by its title
    weights = check_weights(named, listing.places, "weight", negative=False, default=1.0)
    criteria = [
        _criterion(item, at, weight)
        for item, at, weight in zip(listing.items, listing.places, weights, strict=True)
    ]
    if not any(weights):
        raise listing.where.error("no criterion has a positive weight", hint="give at least one a weight above 0")
    rubric = build_rubric(place, criteria, rubric_id=listing.rubric_id, metadata=listing.metadata)
    record = as_object(value)
    return rubric if record is None else with_order(rubric, record, _dump, _ORDER)


def _criterion(item: Mapping[str, object], place: Place, weight: float) -> Criterion:
    for name in item:
        if name not in _FIELDS:
            near = difflib.get_close_matches(name, _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"fields: {', '.join(_FIELDS)}"
            raise place.at(name).error("there is no such field", hint=hint)
    fields: dict[str, object] = {"id": text_at(item, "name", place), "text": text_at(item, "text", place)}
    fields |= {"weight": weight, "metadata": {}}
    if "choices" in item:
        choices = _choices(item["choices"], place.at("choices"))
        if choices != _DEFAULT:
            levels = [{"label": choice, "value": float(rank)} for rank, choice in enumerate(choices)]
            fields["scale"] = {"type": "ordinal", "levels": levels}
    criterion = build_criterion(fields, place, _NAMES)
    if list(_item(criterion)) == list(item):
        return criterion
    return criterion.model_copy(update={"metadata": {_KEYS: list(item)}})


def _choices(value: object, place: Place) -> list[str]:
    listed = as_array(value)
    if listed is None:
        raise place.error(f"expected a list of choices, got {type(value).__name__}")
    choices: list[str] = []
    for index, choice in enumerate(listed):
        where = place.at(index)
        if not isinstance(choice, str):
            hint = "quote yes and no" if isinstance(choice, bool) else ""
            raise where.error(f"a choice is text, not {type(choice).__name__}", hint=hint)
        if not choice:
            raise where.error("the choice is empty")
        if choice in choices:
            raise where.error(f"the choice {choice!r} is there twice")
        choices.append(choice)
    if len(choices) < 2:
        raise place.error("at least two choices are needed, from worst to best")
    return choices


# Writing


def _labels(criterion: Criterion) -> list[str]:
    """The choices, worst first."""
    scale = criterion.scale
    labels = [level.label for level in scale.levels] if isinstance(scale, OrdinalScale) else list(_DEFAULT)
    return labels[::-1] if criterion.polarity is Polarity.PENALTY else labels


def _item(criterion: Criterion) -> dict[str, object]:
    """The criterion as it is written: the fields its source had, or those that differ from the defaults."""
    values: dict[str, object] = {"name": criterion.id, "text": criterion.text}
    values |= {"weight": number(criterion.weight), "choices": _labels(criterion)}
    kept = [name for name in as_array(criterion.metadata.get(_KEYS)) or () if isinstance(name, str)]
    plain = {"weight": values["weight"] == 1, "choices": values["choices"] == _DEFAULT}
    return arranged({n: v for n, v in values.items() if n in kept or not plain.get(n, False)}, kept)


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    if not any(criterion.weight for criterion in rubric.criteria):
        raise place.error("rubricjudge needs a criterion of positive weight", hint="give at least one a weight")
    metadata = {name: part for name, part in unmarked(rubric.metadata, _MARK).items() if name != "criteria"}
    record = with_id(rubric, "id", metadata) | {"criteria": [_item(criterion) for criterion in rubric.criteria]}
    return arranged(record, rubric.metadata.get(_ORDER))


def _losses(rubric: Rubric) -> list[str]:
    lost = criterion_losses(rubric, {"scale"}) + rubric_losses(rubric, ())
    for what, ids in {
        "polarity of penalties, whose choices are turned round": _penalties(rubric.criteria),
        "scale": [c.id for c in rubric.criteria if not isinstance(c.scale, BinaryScale | OrdinalScale)],
        "values and descriptions of the levels": [c.id for c in rubric.criteria if not _ranked(c)],
    }.items():
        if ids:
            lost.append(f"{what} ({', '.join(ids)})")
    for criterion in rubric.criteria:  # a field that is not its own makes verifiers refuse the file
        lost += [f"metadata.{name} ({criterion.id})" for name in unmarked(criterion.metadata, _MARK)]
    return lost + metadata_losses(rubric, {"criteria"}, ())


def _penalties(criteria: Sequence[Criterion]) -> list[str]:
    return [criterion.id for criterion in criteria if criterion.polarity is Polarity.PENALTY]


def _ranked(criterion: Criterion) -> bool:
    """Whether the levels are what a reader makes of their labels: their values the ranks, no descriptions."""
    scale = criterion.scale
    if not isinstance(scale, OrdinalScale):
        return True
    same = [level.value for level in scale.levels] == list(range(len(scale.levels)))
    return same and not any(level.description for level in scale.levels) and _labels(criterion) != _DEFAULT


FORMAT = Format(
    name="rubricjudge",
    shape='{"criteria": [{"name", "text", "weight", "choices"}, ...]}, or the list alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
)
