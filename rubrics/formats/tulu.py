"""What the formats of DR Tulu and open-instruct share: entries of a text and a signed weight, inside a JSON cell.

Both score an entry 0, 1 or 2 and halve that, so every criterion has the scale `TERNARY`. A negative weight is a
penalty. `rubrics_types` ("persistent", "evolving") become the criteria's tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rubricate.narrow import as_array
from rubricate.rubrics.criterion import Criterion, Importance, Level, OrdinalScale, Polarity
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.common import (
    Item,
    assign_ids,
    build_criterion,
    build_rubric,
    check_weights,
    note_polarity,
    objects_at,
    optional_text,
    own_id,
    signed,
    text_at,
    written_ids,
)
from rubricate.rubrics.formats.layout import arranged, check_reserved, item_order, order_mark
from rubricate.rubrics.formats.losses import criterion_losses, signed_losses
from rubricate.rubrics.rubric import Rubric

__all__ = [
    "ITEM_FIELDS",
    "TERNARY",
    "Dialect",
    "Entry",
    "build_criteria",
    "parse_list",
    "payload_losses",
    "read_rubrics",
    "weighted_entries",
    "without_ids",
    "without_marks",
    "write_items",
    "write_rubrics",
]

TERNARY = OrdinalScale(
    levels=(
        Level(label="0", value=0.0, description="not met"),
        Level(label="1", value=1.0, description="met in part"),
        Level(label="2", value=2.0, description="fully met"),
    )
)
"""The scale of both systems, 0 to 2; scores are 0, 0.5 and 1. The descriptions are ours: their prompts say none."""

ITEM_FIELDS = ("description", "weight")
_PREFIXES = ("drtulu:", "openinstruct:")
_TITLES = {"description": "title", "rubric_item": "type", "Ingredient": "Handle"}
"""The names of an entry's text, in the order they are looked for, each with the name of the title beside it."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One of the two formats: its name, which begins its marks, and the weight of an entry that has none.

    Attributes:
        name: name of the format.
        default: weight of an entry without one; None makes the weight required.
    """

    name: str
    default: float | None = None

    def mark(self, key: str) -> str:
        """A metadata key of this format's own."""
        return f"{self.name}:{key}"

    @property
    def prefix(self) -> str:
        """How this format's own metadata keys begin."""
        return f"{self.name}:"

    @property
    def order(self) -> str:
        """The mark for the order of a record's or an entry's fields."""
        return self.mark("order")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list, with what its list says about it.

    Attributes:
        item, place: the entry and where it stands.
        weight: sign included.
        tag: the part of the rubric it belongs to, "" where nothing says.
        importance: its category, where the list is one.
        fixed: the weight comes from the list; the entry has none of its own.
    """

    item: Item
    place: Place
    weight: float
    tag: str = ""
    importance: Importance | None = None
    fixed: bool = False


# Reading entries


def read_rubrics(payload: Item, where: Place, dialect: Dialect) -> list[Entry]:
    """The entries of `rubrics`, tagged with `rubrics_types` where there are any."""
    items = objects_at(payload.get("rubrics"), where.at("rubrics"), "rubrics")
    tags = _types(payload.get("rubrics_types"), where.at("rubrics_types"), len(items))
    return weighted_entries(items, where.at("rubrics"), tags, dialect)


def weighted_entries(items: Sequence[Item], where: Place, tags: Sequence[str], dialect: Dialect) -> list[Entry]:
    """Entries with weights of their own. Raises FormatError that names every wrong weight."""
    places = [where.at(index) for index in range(len(items))]
    weights = check_weights(items, places, "weight", negative=True, default=dialect.default)
    return [Entry(*parts) for parts in zip(items, places, weights, tags, strict=True)]


def parse_list(value: object, place: Place, dialect: Dialect) -> Rubric:
    """The rubric of a bare list of entries."""
    items = objects_at(value, place)
    return build_rubric(place, build_criteria(weighted_entries(items, place, [""] * len(items), dialect), dialect))


def _types(value: object, place: Place, count: int) -> list[str]:
    if value is None:
        return [""] * count
    types: list[str] = []
    for index, name in enumerate(as_array(value) or ()):
        if not isinstance(name, str) or not name.strip():
            raise place.at(index).error("a type is a text, such as 'persistent' or 'evolving'")
        types.append(name)
    if len(types) != count:
        raise place.error(f"expected a list of {count} types, one for each of the rubrics, got {_amount(value)}")
    return types


def _amount(value: object) -> str:
    listed = as_array(value)
    return str(len(listed)) if listed is not None else f"a {type(value).__name__}"


def build_criteria(entries: Sequence[Entry], dialect: Dialect) -> list[Criterion]:
    """The criteria of entries, with ids that are unique among all of them unless the source repeats its own."""
    titles = [optional_text(entry.item, _TITLES[_text_key(entry.item)], entry.place) for entry in entries]
    ids = assign_ids([own_id(entry.item, entry.place) for entry in entries], titles)
    criteria = [_criterion(entry, name, dialect) for entry, name in zip(entries, ids, strict=True)]
    return without_ids(criteria, titles, [entry.item for entry in entries])


def without_ids(criteria: list[Criterion], titles: Sequence[str | None], items: Sequence[Item]) -> list[Criterion]:
    """The criteria without the ids in their metadata, where the same ids are written without these.

    A rubric from elsewhere, whose metadata holds none, is thus read as it was written.
    """
    bare = [c.model_copy(update={"metadata": _without(c.metadata, "id")}) for c in criteria]
    names = written_ids(Rubric.model_construct(criteria=tuple(bare)), titles)
    written = [{} if name is None else {"id": name} for name in names]
    given = [{"id": item["id"]} if "id" in item else {} for item in items]
    return bare if written == given else criteria


def _without(fields: Item, name: str) -> dict[str, object]:
    return {key: part for key, part in fields.items() if key != name}


def _text_key(item: Item) -> str:
    return next((key for key in _TITLES if key in item), "description")


def _criterion(entry: Entry, name: str, dialect: Dialect) -> Criterion:
    item, key = entry.item, _text_key(entry.item)
    check_reserved(item, dialect.prefix, entry.place)
    if entry.fixed and "weight" in item:
        hint = "remove it, or write the entry into a list `rubrics`"
        raise entry.place.at("weight").error("entries of this list have no weights of their own", hint=hint)
    fields = {
        "id": name,
        "text": text_at(item, key, entry.place),
        "weight": abs(entry.weight),
        "polarity": Polarity.PENALTY if entry.weight < 0 else Polarity.REWARD,
        "importance": entry.importance,
        "scale": TERNARY,
        "tags": (entry.tag,) if entry.tag else (),
        "metadata": {name: part for name, part in item.items() if name not in (key, "weight")}
        | _marks(entry, key, dialect),
    }
    criterion = build_criterion(fields, entry.place, {"text": key})
    note_polarity(criterion, entry.place.at(key))
    return criterion


def _marks(entry: Entry, key: str, dialect: Dialect) -> dict[str, object]:
    """What the source wrote otherwise than we would: name of the text, kind of number, order of the fields."""
    item, weight = entry.item, entry.item.get("weight")
    marks: dict[str, object] = {}
    if key != "description":
        marks[dialect.mark("text")] = key
    if "weight" not in item and not entry.fixed:
        marks[dialect.mark("unweighted")] = True
    if isinstance(weight, float) and weight.is_integer():
        marks[dialect.mark("float")] = True
    own = [name for name in (key, "weight") if name in item]
    return marks | order_mark(dialect.order, item, item_order(item, own))


# Writing entries


def write_rubrics(rubric: Rubric, dialect: Dialect) -> dict[str, object]:
    """The lists `rubrics` and, where every criterion has one tag, `rubrics_types`."""
    lists: dict[str, object] = {"rubrics": write_items(rubric, rubric.criteria, dialect)}
    types = _tags(rubric)
    return lists if types is None else lists | {"rubrics_types": types}


def _tags(rubric: Rubric) -> list[str] | None:
    """The one tag of each criterion; None where one has none, several, or a blank one."""
    tags = [tag for criterion in rubric.criteria for tag in criterion.tags if tag.strip()]
    return tags if all(len(c.tags) == 1 for c in rubric.criteria) and len(tags) == len(rubric) else None


def write_items(
    rubric: Rubric, criteria: Sequence[Criterion], dialect: Dialect, *, weighted: bool = True
) -> list[dict[str, object]]:
    """The entries of some of a rubric's criteria, with their weights or without."""
    titles = [_title(criterion, dialect) for criterion in rubric.criteria]
    names = dict(zip(rubric.ids, written_ids(rubric, titles), strict=True))
    return [_write_item(criterion, names[criterion.id], dialect, weighted) for criterion in criteria]


def without_marks(metadata: Item) -> dict[str, object]:
    """Metadata without either format's notes to itself: one's rows are read by the other."""
    return {key: part for key, part in metadata.items() if not key.startswith(_PREFIXES)}


def _written_key(criterion: Criterion, dialect: Dialect) -> str:
    key = criterion.metadata.get(dialect.mark("text"))
    return key if isinstance(key, str) and key in _TITLES else "description"


def _title(criterion: Criterion, dialect: Dialect) -> str | None:
    title = criterion.metadata.get(_TITLES[_written_key(criterion, dialect)])
    return title if isinstance(title, str) else None


def _write_item(criterion: Criterion, name: object, dialect: Dialect, weighted: bool) -> dict[str, object]:
    metadata, weight = criterion.metadata, signed(criterion)
    item: dict[str, object] = {} if name is None else {"id": name}
    item[_written_key(criterion, dialect)] = criterion.text
    if weighted and not (metadata.get(dialect.mark("unweighted")) and weight == dialect.default):
        item["weight"] = float(weight) if metadata.get(dialect.mark("float")) else weight
    extra = without_marks(metadata)
    item |= {key: part for key, part in extra.items() if key not in (*item, "id", "weight")}
    return arranged(item, metadata.get(dialect.order))


def payload_losses(rubric: Rubric, held: Sequence[str] = ()) -> list[str]:
    """What a list of weighted entries cannot hold of a rubric's criteria."""
    scales = [c.id for c in rubric.criteria if c.scale != TERNARY]
    tagged = [c.id for c in rubric.criteria if c.tags]
    return [
        *signed_losses(rubric),
        *criterion_losses(rubric, {"scale", "tags", *held}),
        *([f"scale, which is 0, 1, 2 here ({', '.join(scales[:5])})"] if scales else []),
        *([f"tags, unless each has one ({', '.join(tagged[:5])})"] if tagged and _tags(rubric) is None else []),
    ]
