"""HealthBench (openai/simple-evals): a conversation and items with signed `points` and `tags`.

The judge reports whether an item is met, for items of negative points too: those are penalties, their weight is the
absolute value. The tag `axis:accuracy` makes `accuracy` the criterion's channel; all tags are kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    assign_ids,
    build_criterion,
    build_rubric,
    check_weights,
    holds_items,
    note_polarity,
    open_listing,
    own_id,
    signed,
    text_at,
    with_id,
    written_ids,
)
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, signed_losses
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT"]

_AXIS = "axis:"
_ITEM_FIELDS = ("criterion", "points", "tags")
_NAMES = {"text": "criterion", "channel": "tags"}


def _is_item(item: Mapping[str, object]) -> bool:
    # Entries whose tags are an object are RubricHub's.
    return "points" in item and as_object(item.get("tags")) is None


def _is_record(record: Mapping[str, object]) -> bool:
    return holds_items(record, "rubrics", _is_item)


def _parse(value: object, place: Place, options: Options) -> Rubric:
    listing = open_listing(value, place, field="rubrics", id_field="prompt_id")
    items, places = listing.items, listing.places
    points = check_weights(items, places, "points", negative=True)
    ids = assign_ids([own_id(item, at) for item, at in zip(items, places, strict=True)], [None] * len(items))
    criteria = [
        _criterion(item, at, name, weight)
        for item, at, name, weight in zip(items, places, ids, points, strict=True)
    ]
    return build_rubric(listing.where, criteria, rubric_id=listing.rubric_id, metadata=listing.metadata)


def _criterion(item: Mapping[str, object], place: Place, name: str, points: float) -> Criterion:
    tags = _tags(item.get("tags"), place.at("tags"))
    axes = [tag.removeprefix(_AXIS) for tag in tags if tag.startswith(_AXIS)]
    if len(axes) > 1:
        place.at("tags").note("layout", f"several axes; the channel is the first, {axes[0]!r}", criterion_id=name)
    fields = {
        "id": name,
        "text": text_at(item, "criterion", place),
        "weight": abs(points),
        "polarity": Polarity.PENALTY if points < 0 else Polarity.REWARD,
        "channel": axes[0] if axes else None,
        "tags": tags,
        "metadata": {key: part for key, part in item.items() if key not in _ITEM_FIELDS},
    }
    criterion = build_criterion(fields, place, _NAMES)
    note_polarity(criterion, place.at("criterion"))
    return criterion


def _tags(value: object, place: Place) -> tuple[str, ...]:
    if value is None:
        return ()
    listed = as_array(value)
    if listed is None:
        raise place.error(f"expected a list of tags, got {type(value).__name__}")
    tags: list[str] = []
    for index, tag in enumerate(listed):
        if not isinstance(tag, str):
            raise place.at(index).error(f"a tag is text, not {type(tag).__name__}")
        tags.append(tag)
    return tuple(tags)


def _written_tags(criterion: Criterion) -> list[str]:
    """The tags, and one for the channel where no tag says it."""
    tags = list(criterion.tags)
    if criterion.channel is not None and not any(tag.startswith(_AXIS) for tag in tags):
        tags.append(_AXIS + criterion.channel)
    return tags


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    items: list[dict[str, object]] = []
    for criterion, name in zip(rubric.criteria, written_ids(rubric, [None] * len(rubric)), strict=True):
        item: dict[str, object] = {} if name is None else {"id": name}
        item |= {"criterion": criterion.text, "points": signed(criterion), "tags": _written_tags(criterion)}
        items.append(item | {key: part for key, part in criterion.metadata.items() if key not in (*item, "id")})
    metadata = {key: part for key, part in rubric.metadata.items() if key != "rubrics"}
    return with_id(rubric, "prompt_id", metadata) | {"rubrics": items}


def _losses(rubric: Rubric) -> list[str]:
    other = [
        criterion.id
        for criterion in rubric.criteria
        if next((tag for tag in _written_tags(criterion) if tag.startswith(_AXIS)), None)
        not in (None, _AXIS + (criterion.channel or ""))
    ]
    return [
        *signed_losses(rubric),
        *criterion_losses(rubric, {"channel", "tags"}),
        *([f"channel, which differs from the axis tag ({', '.join(other)})"] if other else []),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, {"rubrics"}, _ITEM_FIELDS),
    ]


FORMAT = Format(
    name="healthbench",
    shape='{"prompt", "rubrics": [{"criterion", "points", "tags"}, ...], "example_tags"}, or the list alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="prompt",
    messages=True,
)
