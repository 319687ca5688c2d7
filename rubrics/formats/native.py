"""Our own format: the fields of `Rubric` and `Criterion`, those with default values left out."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

from pydantic import ValidationError

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import assign_ids, check_weights, own_id, translate
from rubricate.rubrics.formats.rubricjudge import looks_named
from rubricate.rubrics.rubric import Group, Rubric

__all__ = ["FORMAT"]

_CRITERION = tuple(Criterion.model_fields)
_GROUP = tuple(Group.model_fields)
_RUBRIC = tuple(Rubric.model_fields)


def _is_record(record: Mapping[str, object]) -> bool:
    items = as_array(record.get("criteria"))
    return items is not None and not any(looks_named(as_object(item) or {}) for item in items)


def _is_item(item: Mapping[str, object]) -> bool:
    return "text" in item and not looks_named(item)


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        return _build({"criteria": _criteria(value, place)}, place, listed=True)
    if "criteria" not in record:
        raise place.at("criteria").error(
            "this field is missing", hint=f"fields here: {', '.join(record) or 'none'}"
        )
    fields: dict[str, object] = {"criteria": _criteria(record["criteria"], place.at("criteria"))}
    extra: dict[str, object] = {}
    for name, item in record.items():
        if name in _RUBRIC:
            if name not in fields and item is not None:
                fields[name] = item
        else:
            _unknown(name, _RUBRIC, place)
            extra[name] = item
    if extra:
        _keep(extra, fields, place)
    groups = as_array(fields.get("groups"))
    if groups is not None:
        fields["groups"] = _groups(groups, place.at("groups"))
    return _build(fields, place, listed=False)


def _keep(extra: Mapping[str, object], fields: dict[str, object], place: Place) -> None:
    """Put the fields of a record that are not ours, such as its prompt, into the rubric's metadata."""
    metadata = as_object(fields.get("metadata", {}))
    if metadata is None:
        return  # an error, which pydantic words
    for name in extra:
        if name in metadata:
            raise place.at(name).error("this field is there, and in the metadata too", hint="remove one of them")
    fields["metadata"] = dict(metadata) | dict(extra)
    place.note("unknown_field", f"kept in the rubric's metadata: {', '.join(extra)}")


def _unknown(name: str, known: tuple[str, ...], place: Place, *, strict: bool = False) -> None:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if near:
        raise place.at(name).error("there is no such field", hint=f"did you mean {near[0]!r}?")
    if strict:
        hint = f"fields: {', '.join(known)}; anything else goes into metadata"
        raise place.at(name).error("there is no such field", hint=hint)


def _criteria(value: object, place: Place) -> list[dict[str, object]]:
    """Criteria ready for pydantic: texts alone become criteria, null means not set, ids are made where missing."""
    listed = as_array(value)
    if listed is None:
        raise place.error(f"expected a list of criteria, got {type(value).__name__}")
    if not listed:
        raise place.error("a rubric needs at least one criterion")
    items: list[dict[str, object]] = []
    places = [place.at(index) for index in range(len(listed))]
    for item, where in zip(listed, places, strict=True):
        fields = {"text": item} if isinstance(item, str) else as_object(item)
        if fields is None:
            raise where.error(f"expected a criterion or its text, got {type(item).__name__}")
        items.append({name: part for name, part in fields.items() if part is not None})
    check_weights(items, places, "weight", negative=False, default=1.0)
    for item, where in zip(items, places, strict=True):
        for name in item:
            if name not in _CRITERION:
                _unknown(name, _CRITERION, where, strict=True)
        if "text" not in item:
            raise where.at("text").error("this field is missing", hint=f"fields here: {', '.join(item) or 'none'}")
        if "scale" in item:
            item["scale"] = _without_nulls(item["scale"])
    ids = assign_ids([own_id(item, where) for item, where in zip(items, places, strict=True)], [None] * len(items))
    for name, where in zip(ids, places, strict=True):
        place.marks.setdefault(name, where)
    return [item | {"id": name} for item, name in zip(items, ids, strict=True)]


def _groups(listed: object, place: Place) -> list[dict[str, object]]:
    groups: list[dict[str, object]] = []
    for index, item in enumerate(as_array(listed) or ()):
        fields = as_object(item)
        if fields is None:
            raise place.at(index).error(f"expected a group, got {type(item).__name__}")
        for name in fields:
            if name not in _GROUP:
                _unknown(name, _GROUP, place.at(index), strict=True)
        groups.append({name: part for name, part in fields.items() if part is not None})
    check_weights(groups, [place.at(i) for i in range(len(groups))], "weight", negative=False, default=1.0)
    return groups


def _without_nulls(value: object) -> object:
    """A scale without the null fields that tables put into it."""
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        return {name: _without_nulls(item) for name, item in fields.items() if item is not None}
    return [_without_nulls(item) for item in listed] if listed is not None else value


def _build(fields: Mapping[str, object], place: Place, *, listed: bool) -> Rubric:
    try:
        # Strict JSON mode: no text is taken for a number, no number for true or false.
        return Rubric.model_validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        if listed:  # the value is the list itself, so its errors have no leading `criteria`
            raise translate(error, place, skip="criteria") from None
        raise translate(error, place) from None


_CRITERION_DEFAULTS = Criterion(id="c", text="t").model_dump(mode="json", exclude={"id", "text"})
_GROUP_DEFAULTS = Group(id="g").model_dump(mode="json", exclude={"id"})
_RUBRIC_DEFAULTS: Mapping[str, object] = {"id": "", "scope": "instance", "version": "", "metadata": {}}


def _compact(fields: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name not in defaults or value != defaults[name]}


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    """The rubric's fields, without those that have their default value; ids, texts and scales are whole."""
    fields = {"id": rubric.id, "scope": rubric.scope.value, "version": rubric.version, "metadata": rubric.metadata}
    record = _compact(fields, _RUBRIC_DEFAULTS)
    if rubric.groups:
        record["groups"] = [_compact(group.model_dump(mode="json"), _GROUP_DEFAULTS) for group in rubric.groups]
    record["criteria"] = [
        _compact(criterion.model_dump(mode="json"), _CRITERION_DEFAULTS) for criterion in rubric.criteria
    ]
    return record


def _losses(rubric: Rubric) -> list[str]:
    return []


FORMAT = Format(
    name="native",
    shape='{"criteria": [{"text", "weight", "polarity", ...}, ...]}, or the list alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
)
