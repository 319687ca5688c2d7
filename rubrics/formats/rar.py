"""Rubrics as Rewards (2507.17746): rows with a list of `title`, `description`, `weight`.

Polarity is the sign of the weight. The data (and the paper's generation prompt) give pitfalls a negative weight and
a description of the error itself ("Does not mention ...", "Recommends ..."): those are penalties. The paper's own
examples word pitfalls positively ("Avoids ...") with a positive weight: those are rewards. Nothing is turned round;
a text that contradicts its sign gets a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion, Importance, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    assign_ids,
    build_criterion,
    build_rubric,
    check_weights,
    holds_items,
    note_polarity,
    number,
    open_listing,
    optional_text,
    own_id,
    signed,
    text_at,
    with_id,
    written_ids,
)
from rubricate.rubrics.formats.layout import check_reserved
from rubricate.rubrics.formats.losses import (
    criterion_losses,
    metadata_losses,
    rubric_losses,
    signed_losses,
    unmarked,
)
from rubricate.rubrics.rubric import Rubric

__all__ = ["CATEGORY_WEIGHTS", "FORMAT"]

CATEGORY_WEIGHTS: Mapping[str, Mapping[Importance, float]] = {
    "paper": {
        Importance.ESSENTIAL: 1.0,
        Importance.IMPORTANT: 0.7,
        Importance.OPTIONAL: 0.3,
        Importance.PITFALL: 0.9,
    },
    "v1": {
        Importance.ESSENTIAL: 1.0,
        Importance.IMPORTANT: 0.7,
        Importance.OPTIONAL: 0.3,
        Importance.PITFALL: 0.8,
    },
}
"""Weights of the categories for explicit aggregation: the paper, and its first version (2507.17746v1)."""

_MARK = "rar:"
_PREFIX, _WEIGHT = _MARK + "prefix", _MARK + "weight"
_CATEGORY = re.compile(r"\s*(essential|important|optional|pitfall)\s+criteri(?:a|on)\s*:\s*", re.I)
_NAMES = {"text": "description"}
_ITEM_FIELDS = ("description", "weight")


def _is_item(item: Mapping[str, object]) -> bool:
    if "description" in item:
        return "score1_description" not in item
    return "weight" in item and not {"text", "criterion", "points", "requirements"} & item.keys()


def _is_record(record: Mapping[str, object]) -> bool:
    return holds_items(record, "rubric", _is_item)


def _parse(value: object, place: Place, options: Options) -> Rubric:
    table = _table(options)
    listing = open_listing(value, place, field="rubric", id_field="id")
    items, places = listing.items, listing.places
    weights = check_weights(items, places, "weight", negative=True)
    titles = [optional_text(item, "title", at) for item, at in zip(items, places, strict=True)]
    ids = assign_ids([own_id(item, at) for item, at in zip(items, places, strict=True)], titles)
    criteria = [
        _criterion(item, at, name, weight)
        for item, at, name, weight in zip(items, places, ids, weights, strict=True)
    ]
    if table is not None:
        criteria = _by_category(criteria, weights, table, listing.where)
    return build_rubric(listing.where, criteria, rubric_id=listing.rubric_id, metadata=listing.metadata)


def _table(options: Options) -> Mapping[Importance, float] | None:
    name = options.get("weights", "numeric")
    if name == "numeric":
        return None
    if name not in CATEGORY_WEIGHTS:
        choices = ", ".join(["numeric", *CATEGORY_WEIGHTS])
        raise ConfigError(f"the option weights has no value {name!r}", hint=f"choose among {choices}")
    return CATEGORY_WEIGHTS[name]


def _criterion(item: Mapping[str, object], place: Place, name: str, weight: float) -> Criterion:
    description = text_at(item, "description", place)
    metadata = {key: part for key, part in item.items() if key not in _ITEM_FIELDS}
    check_reserved(item, _MARK, place)
    found = _CATEGORY.match(description)
    text, importance = description, None
    if found and description[found.end() :].strip():
        text, importance = description[found.end() :], Importance(found[1].lower())
        metadata[_PREFIX] = found[0]
    fields = {
        "id": name,
        "text": text,
        "weight": abs(weight),
        "polarity": Polarity.PENALTY if weight < 0 else Polarity.REWARD,
        "importance": importance,
        "metadata": metadata,
    }
    criterion = build_criterion(fields, place, _NAMES)
    note_polarity(criterion, place.at("description"), pitfall=importance is Importance.PITFALL)
    return criterion


def _by_category(
    criteria: Sequence[Criterion], weights: Sequence[float], table: Mapping[Importance, float], place: Place
) -> list[Criterion]:
    """Weights by category; the numbers of the source stay in the metadata."""
    without = [criterion.id for criterion in criteria if criterion.importance is None]
    if without:
        raise place.error(
            f"no category in the description of {', '.join(map(repr, without))}",
            hint='begin it with, for example, "Essential Criteria: ", or keep the numbers: weights=numeric',
        )
    place.note("weights", "the numeric weights are replaced by the weights of the categories")
    return [
        criterion.model_copy(
            update={
                "weight": table[criterion.importance or Importance.ESSENTIAL],
                "metadata": criterion.metadata | {_WEIGHT: number(weight)},
            }
        )
        for criterion, weight in zip(criteria, weights, strict=True)
    ]


def _prefix(criterion: Criterion) -> str:
    """The category in front of the description: as the source wrote it, unless the importance has changed."""
    if criterion.importance is None:
        return ""
    prefix = criterion.metadata.get(_PREFIX)
    found = _CATEGORY.fullmatch(prefix) if isinstance(prefix, str) else None
    if found and found[1].lower() == criterion.importance:
        return found[0]
    return f"{criterion.importance.capitalize()} Criteria: "


def _titles(rubric: Rubric) -> list[str | None]:
    """The titles to write: the source's; criteria from elsewhere are called by their ids, if these are names."""
    titles = [title if isinstance(title := c.metadata.get("title"), str) else None for c in rubric.criteria]
    needed = written_ids(rubric, titles)
    return [
        criterion.id if name is not None and not {"id", "title"} & criterion.metadata.keys() else title
        for criterion, title, name in zip(rubric.criteria, titles, needed, strict=True)
    ]


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    titles = _titles(rubric)
    items: list[dict[str, object]] = []
    for criterion, title, name in zip(rubric.criteria, titles, written_ids(rubric, titles), strict=True):
        extra = unmarked(criterion.metadata, _MARK)
        item: dict[str, object] = {} if name is None else {"id": name}
        if title is not None or "title" in extra:
            item["title"] = title
        item |= {"description": _prefix(criterion) + criterion.text, "weight": signed(criterion)}
        items.append(item | {key: part for key, part in extra.items() if key not in item and key != "id"})
    metadata = {key: part for key, part in rubric.metadata.items() if key != "rubric"}
    return with_id(rubric, "id", metadata) | {"rubric": items}


def _losses(rubric: Rubric) -> list[str]:
    return [
        *signed_losses(rubric),
        *criterion_losses(rubric, {"importance"}),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, {"rubric"}, _ITEM_FIELDS),
    ]


FORMAT = Format(
    name="rar",
    shape='{"question", "rubric": [{"title", "description", "weight"}, ...], ...}, or the list alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="question",
    options=("weights",),
)
