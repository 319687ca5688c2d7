"""What the formats share: reading parts of records, weights, ids, and errors in the source's words."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from rubricate.data.values import spoken
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.rubric import Group, Rubric

__all__ = [
    "Listing",
    "assign_ids",
    "build_criterion",
    "build_rubric",
    "check_weights",
    "holds_items",
    "label",
    "note_polarity",
    "number",
    "objects_at",
    "open_listing",
    "optional_text",
    "own_id",
    "record_id",
    "signed",
    "text_at",
    "translate",
    "with_id",
    "written_ids",
]

Item = Mapping[str, object]


# Reading parts of a record


@dataclass(frozen=True, slots=True)
class Listing:
    """A rubric that is a list of items, alone or in a record: the items, where the list stands, and the rest."""

    items: list[Item]
    where: Place
    rubric_id: str
    metadata: dict[str, object]

    @property
    def places(self) -> list[Place]:
        """Where each item stands."""
        return [self.where.at(index) for index in range(len(self.items))]


def open_listing(value: object, place: Place, *, field: str, id_field: str) -> Listing:
    """A list of items, or a record that has one in `field`. Raises FormatError for anything else."""
    record = as_object(value)
    if record is None:
        return Listing(objects_at(value, place), place, "", {})
    if field not in record:
        raise place.at(field).error("this field is missing", hint=f"fields here: {', '.join(record) or 'none'}")
    where = place.at(field)
    rubric_id, metadata = record_id({name: item for name, item in record.items() if name != field}, id_field)
    return Listing(objects_at(record[field], where), where, rubric_id, metadata)


def holds_items(record: Item, field: str, is_item: Callable[[Item], bool]) -> bool:
    """Whether a record has a list in `field` with such an item in it; an empty list is one too."""
    listed = as_array(record.get(field))
    if listed is None:
        return False
    items = [as_object(item) for item in listed]
    return not listed or any(item is not None and is_item(item) for item in items)


def objects_at(value: object, place: Place, what: str = "criteria") -> list[Item]:
    """The objects of a list. Raises FormatError for anything else, and for an empty list."""
    listed = as_array(value)
    if listed is None:
        raise place.error(f"expected a list of {what}, got {type(value).__name__}")
    if not listed:
        raise place.error(f"a rubric needs at least one entry in its list of {what}")
    items: list[Item] = []
    for index, item in enumerate(listed):
        fields = as_object(item)
        if fields is None:
            raise place.at(index).error(f"expected an object, got {type(item).__name__}")
        items.append(fields)
    return items


def text_at(item: Item, key: str, place: Place) -> str:
    """The text of a field. Raises FormatError when it is missing, blank or no text."""
    value = item.get(key)
    if key not in item:
        raise place.at(key).error("this field is missing", hint=f"fields here: {', '.join(item) or 'none'}")
    if not isinstance(value, str):
        raise place.at(key).error(f"expected text, got {type(value).__name__}")
    if not value.strip():
        raise place.at(key).error("the text is blank")
    return value


def optional_text(item: Item, key: str, place: Place) -> str | None:
    """The text of a field that may be missing or null. Raises FormatError for a value of another type."""
    value = item.get(key)
    if value is not None and not isinstance(value, str):
        raise place.at(key).error(f"expected text, got {type(value).__name__}")
    return value


def label(item: Item, index: int) -> str:
    """What an entry is called in messages: its id, its title, or its number."""
    for key in ("id", "title"):
        name = item.get(key)
        if isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip():
            return str(name)
    return f"c{index + 1}"


# Weights


def _weight_problem(value: object, negative: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:20]!r}"
    if not isinstance(value, int | float):
        return f"a {type(value).__name__}"
    if isinstance(value, float) and not math.isfinite(value):
        return spoken(value)
    if isinstance(value, int) and not -(2**53) <= value <= 2**53:
        return "a number too large to be held exactly"
    return f"{value:g}, which is negative" if value < 0 and not negative else ""


def check_weights(
    items: Sequence[Item], places: Sequence[Place], key: str, *, negative: bool, default: float | None = None
) -> list[float]:
    """The weights of all entries, signs included.

    Args:
        items, places: the entries and where they stand.
        key: the field that holds the weight.
        negative: whether negative weights are part of the format.
        default: weight of an entry without the field; None makes the field required.

    Raises FormatError that names every entry whose weight is missing, not a number (true, false and texts are
    none), not finite, or negative where the format has no signs.
    """
    weights: list[float] = []
    bad: list[tuple[Place, str]] = []
    for index, (item, place) in enumerate(zip(items, places, strict=True)):
        value = item.get(key, default)
        problem = "none" if key not in item and default is None else _weight_problem(value, negative)
        if problem:
            bad.append((place.at(key), f"{label(item, index)!r} has {problem}"))
        elif isinstance(value, int | float):
            weights.append(float(value))
    if bad:
        kind = "numbers" if negative else "numbers >= 0"
        said = ", ".join(text for _, text in bad)
        near = [name for item in items if key not in item for name in _near_weight(item)]
        hint = f"did you mean {near[0]}?" if near else _weight_hint(said)
        raise bad[0][0].error(f"{key} must be finite {kind}: {said}", hint=hint)
    return weights


def _near_weight(item: Item) -> list[str]:
    """What fields of an item without a weight may have been meant to be."""
    own = ("weight", "points")
    names = [name for name in item if name not in own]
    return [f"{near!r} by {name!r}" for name in names for near in difflib.get_close_matches(name.lower(), own, n=1)]


def _weight_hint(said: str) -> str:
    if "which is negative" in said:
        return 'what a response must not do has a positive weight and, in the native format, "polarity": "penalty"'
    if "the text" in said:
        return "write numbers without quotes; YAML 1.1 reads 1e3 as text, so write 1000"
    return "write a number for each"


def number(value: float) -> int | float:
    """A weight as it is written: whole numbers without a decimal point."""
    return int(value) if float(value).is_integer() and abs(value) <= 2**53 else value


def signed(criterion: Criterion) -> int | float:
    """Weight with the sign of the polarity, for formats that write penalties as negative numbers."""
    return number(criterion.sign * criterion.weight)


_GOOD = re.compile(
    r"\W*(?:the (?:response|answer|model)\s+)?(?:should\s+|must\s+)?(?:avoid|refrain|abstain|steers? clear)", re.I
)
_BAD = re.compile(
    r"\W*(?:the (?:response|answer|model)\s+)?(?:fails? to|omits?\b|neglects?\b|overlooks?\b|ignores?\b"
    r"|does not (?:mention|include|address|consider|state|provide|explain|identify|discuss|specify))",
    re.I,
)


def note_polarity(criterion: Criterion, place: Place, *, pitfall: bool = False) -> None:
    """Note a criterion whose words and sign seem to contradict each other (a heuristic, ours; English only)."""
    if criterion.polarity is Polarity.PENALTY and _GOOD.match(criterion.text):
        place.note(
            "polarity",
            f"{criterion.id!r} is a penalty, yet its text describes good behaviour: a response that meets it loses",
            criterion_id=criterion.id,
        )
    elif pitfall and criterion.polarity is Polarity.REWARD and _BAD.match(criterion.text):
        place.note(
            "polarity",
            f"{criterion.id!r} is a pitfall of positive weight, yet its text describes an error, which it rewards",
            criterion_id=criterion.id,
        )


# Ids


def _slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-_")[:60]


def assign_ids(explicit: Sequence[str | None], titles: Sequence[str | None]) -> list[str]:
    """An id for every entry: its own, or else one made of its title, or else `c` and its number.

    Made ids are unique and the same every time; own ids are kept as they are, repeated ones too.
    """
    taken = {name for name in explicit if name is not None}
    ids: list[str] = []
    for index, (own, title) in enumerate(zip(explicit, titles, strict=True)):
        name = own
        if name is None:
            base = _slug(title or "") or f"c{index + 1}"
            name, suffix = base, 2
            while name in taken:
                name, suffix = f"{base}-{suffix}", suffix + 1
            taken.add(name)
        ids.append(name)
    return ids


def written_ids(rubric: Rubric, titles: Sequence[str | None]) -> list[object]:
    """For each criterion the id to write, or None where a reader would make the same one of the titles written.

    An id that the source wrote (kept in the metadata) is written again, with its own type.
    """
    written: list[object] = [
        None if "id" not in c.metadata else (own if str(own := c.metadata["id"]) == c.id else c.id)
        for c in rubric.criteria
    ]
    while True:  # an id written out makes room among the made ones, so look again until nothing changes
        made = assign_ids([None if name is None else str(name) for name in written], titles)
        wrong = [index for index, (name, c) in enumerate(zip(made, rubric.criteria, strict=True)) if name != c.id]
        if not wrong:
            return written
        for index in wrong:
            written[index] = rubric.criteria[index].id


def own_id(item: Item, place: Place) -> str | None:
    """The id that an entry brings along, None where it has none. Raises FormatError for a blank or odd one."""
    value = item.get("id")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise place.at("id").error("an id is a text that is not blank, or a whole number")
    return str(value)


def record_id(record: Item, key: str) -> tuple[str, dict[str, object]]:
    """A rubric's id out of a record, and the record's other fields (with the id, where it is not plain text)."""
    value = record.get(key)
    rest = {name: item for name, item in record.items() if name != key}
    if isinstance(value, str) and value:
        return value, rest
    if key not in record:
        return "", rest
    number_id = isinstance(value, int) and not isinstance(value, bool)
    return (str(value) if number_id else ""), {key: value} | rest


def with_id(rubric: Rubric, key: str, metadata: Mapping[str, object]) -> dict[str, object]:
    """Metadata as the first fields of a record, the rubric's id under `key` where it has one."""
    if not rubric.id or (key in metadata and str(metadata[key]) == rubric.id):
        return dict(metadata)
    return {key: rubric.id} | {name: value for name, value in metadata.items() if name != key}


# Building, with errors in the source's words


def translate(
    error: ValidationError, place: Place, names: Mapping[str, str] | None = None, *, skip: str = ""
) -> FormatError:
    """A FormatError for the first complaint of pydantic, naming the source's field.

    `names` maps our field to the source's; `skip` is a leading field that the source does not have.
    """
    issues = error.errors(include_url=False, include_context=False, include_input=False)
    inner = {issue["loc"][:end] for issue in issues for end in range(len(issue["loc"]))}
    # A list that lacks its broken entries is no problem of its own.
    issues = [issue for issue in issues if issue["type"] != "too_short" or issue["loc"] not in inner]
    locations = [_location(issue["loc"], names or {}) for issue in issues]
    places = [place.at(*(parts[1:] if skip and parts[:1] == [skip] else parts)) for parts in locations]
    message = issues[0]["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if len(issues) > 1:
        message += f" (and {len(issues) - 1} more problem{'s' if len(issues) > 2 else ''})"
    hint = next((_EXAMPLES[part] for part in locations[0] if part in _EXAMPLES), "")
    if issues[0]["type"] == "string_type":
        hint = "YAML reads yes, no, on, off and numbers as such: quote them"
    return places[0].error(message, hint=hint)


_EXAMPLES: Mapping[str | int, str] = {
    "scale": 'such as {"type": "numeric", "low": 0, "high": 10}, or {"type": "ordinal", "levels": '
    '[{"label": "bad", "value": 0}, {"label": "good", "value": 1}]}',
    "verifier": 'such as {"name": "words", "args": {"max": 20}}',
}
"""Right values of the fields that are objects."""


def _location(loc: Sequence[str | int], names: Mapping[str, str]) -> list[str | int]:
    parts: list[str | int] = []
    for index, part in enumerate(loc):
        if index and loc[index - 1] == "scale" and part in ("binary", "ordinal", "numeric"):
            continue  # pydantic names the member of the union, which is no field
        parts.append(names.get(part, part) if isinstance(part, str) and not parts else part)
    return parts


def build_criterion(fields: Mapping[str, object], place: Place, names: Mapping[str, str]) -> Criterion:
    """A criterion. Raises FormatError in the source's words: `names` maps our field to the source's."""
    try:
        criterion = Criterion.model_validate(fields)
    except ValidationError as error:
        raise translate(error, place, names) from None
    place.marks.setdefault(criterion.id, place)
    return criterion


def build_rubric(
    place: Place,
    criteria: Sequence[Criterion],
    *,
    groups: Sequence[Group] = (),
    rubric_id: str = "",
    metadata: Mapping[str, object] | None = None,
) -> Rubric:
    """A rubric. Raises FormatError for ids that occur twice and the like."""
    try:
        return Rubric(criteria=tuple(criteria), groups=tuple(groups), id=rubric_id, metadata=dict(metadata or {}))
    except ValidationError as error:
        raise translate(error, place) from None
