"""RLCF (2507.18624): checklists of yes/no questions with weights from 0 to 100, in the field `requirements`.

Three layouts, and the text of a generator, are read and written back as they were:

- pairs `[[question, weight], ...]`, in the rows of `data/requirement_generation/write_requirements.py`
  (`instruction`, `raw_response`, `requirements`, `orig_row`, `orig_row_idx`, `source_file`);
- one text, "1) ... (importance: 100/100)" for each item, in the rows of
  `data/generate_wildchat_openrlhf_dataset.py`, which are those of viswavi/wildchecklists (`prompt`, `chosen`,
  `rejected`, `chosen_score`, `rejected_score`, `requirements`);
- two columns, `requirements` with texts and `importances` with numbers (the same script's option `--texture`);
- "Key Criteria Questions:", lines "- ...? (100)", `<END>`: what the generator says.

Source: viswavi/RLCF 643ebee. Every item is a reward. Its judge gives each item a whole number from 0 to 100, and
the mean of its samples counts (`construct_offline_preference_data.py`), so that is the scale; the option
`scale="binary"` reads yes/no questions instead, as for its A/B judge. The universal requirement that the scoring
step appends is an item like any other, with the tag `universal`; it is one item that lists two demands, numbered
1) and 2). Weights above 100 are noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import BinaryScale, Criterion, NumericScale
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.checklist_text import (
    Question,
    has_importances,
    is_checklist_text,
    read_checklist,
    write_checklist,
)
from rubricate.rubrics.formats.common import (
    build_criterion,
    build_rubric,
    check_weights,
    number,
    record_id,
    with_id,
)
from rubricate.rubrics.formats.layout import (
    arranged,
    check_reserved,
    order_mark,
    plain_losses,
    record_order,
    refuse_penalties,
)
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT", "SCALE", "UNIVERSAL"]

SCALE = NumericScale(low=0.0, high=100.0, integer=True)
"""Scale of an item: the whole number that RLCF's judge gives."""

UNIVERSAL = "universal"
"""Tag of the requirement that is appended to every checklist."""

_MARK = "rlcf:"
_TEXT, _ORDER, _LAYOUT = _MARK + "text", _MARK + "order", _MARK + "layout"
_FIELD, _IMPORTANCES = "requirements", "importances"
_UNIVERSAL_START = "does the response satisfy the following two criteria:"
_SCALES: Mapping[str, NumericScale | BinaryScale] = {"0-100": SCALE, "binary": BinaryScale()}


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_list(items: Sequence[object]) -> bool:
    """Whether pairs of a question and a number are among the items: lists of two texts are other things."""
    pairs = [pair for item in items if (pair := as_array(item)) is not None and len(pair) == 2]
    return any(isinstance(pair[0], str) and isinstance(pair[1], int | float | None) for pair in pairs)


def _is_record(record: Mapping[str, object]) -> bool:
    if _FIELD not in record or {"sub_tasks", "weight"} & record.keys():  # a PaperBench tree has one or both
        return False
    value = record[_FIELD]
    if isinstance(value, str):
        return is_checklist_text(value) or {"chosen", "rejected"} <= record.keys()
    listed = as_array(value)
    if listed is None:
        return False
    return not listed or _IMPORTANCES in record or any(as_array(item) is not None for item in listed)


# Reading


def _parse(value: object, place: Place, options: Options) -> Rubric:
    scale = _scale(options)
    record = as_object(value)
    if record is None:
        items, marks = _questions(value, place)
        return build_rubric(place, _criteria(items, place, scale), metadata=marks)
    check_reserved(record, _MARK, place)
    where = place.at(_FIELD)
    if _FIELD not in record:
        raise where.error("this field is missing", hint=f"fields here: {', '.join(record) or 'none'}")
    if _IMPORTANCES in record and not isinstance(record[_FIELD], str) and not _has_pairs(record[_FIELD]):
        items, marks = _columns(record, place), {_LAYOUT: "columns"}
    else:
        items, marks = _questions(record[_FIELD], where)
    own = (_FIELD, _IMPORTANCES) if marks.get(_LAYOUT) == "columns" else (_FIELD,)
    rubric_id, metadata = record_id({name: part for name, part in record.items() if name not in own}, "id")
    marks |= order_mark(_ORDER, record, record_order(record, own))
    criteria = _criteria(items, where, scale)
    return build_rubric(where, criteria, rubric_id=rubric_id, metadata=metadata | marks)


def _scale(options: Options) -> NumericScale | BinaryScale:
    name = options.get("scale", "0-100")
    if name not in _SCALES:
        raise ConfigError(f"the option scale has no value {name!r}", hint=f"choose among {', '.join(_SCALES)}")
    return _SCALES[name]


def _has_pairs(value: object) -> bool:
    return any(as_array(item) is not None for item in as_array(value) or ())


def _questions(value: object, place: Place) -> tuple[list[Question], dict[str, object]]:
    """The items of a text or of a list of pairs, and the marks of its layout."""
    if isinstance(value, str):
        items = read_checklist(value, place)
        bullets = not has_importances(value)
        marks: dict[str, object] = {_LAYOUT: "generated" if bullets else "text"}
        return items, marks | ({_TEXT: value} if value != write_checklist(items, bullets=bullets) else {})
    return [_pair(item, index, place) for index, item in enumerate(_listed(value, place))], {}


def _listed(value: object, place: Place) -> Sequence[object]:
    listed = as_array(value)
    if listed is None:
        hint = "give a list of [question, weight], or a text"
        raise place.error(f"expected a checklist, got {type(value).__name__}", hint=hint)
    if not listed:
        raise place.error("a rubric needs at least one entry in its list of requirements")
    return listed


def _pair(item: object, index: int, place: Place) -> Question:
    pair, where = as_array(item), place.at(index)
    if pair is None or len(pair) != 2:
        got = type(item).__name__ if pair is None else f"a list of {len(pair)}"
        raise where.error(f"expected [question, weight], got {got}")
    return Question(_question(pair[0], where.at(0)), _weight(pair[1], index, where.at(1)))


def _question(value: object, place: Place) -> str:
    if not isinstance(value, str):
        raise place.error(f"expected text, got {type(value).__name__}")
    if not value.strip():
        raise place.error("the text is blank")
    return value


def _weight(value: object, index: int, place: Place) -> float:
    try:
        return check_weights([{"id": f"c{index + 1}", "weight": value}], [place], "weight", negative=False)[0]
    except FormatError as error:
        raise place.error(error.detail, hint=error.hint) from None


def _columns(record: Mapping[str, object], place: Place) -> list[Question]:
    texts = _listed(record[_FIELD], place.at(_FIELD))
    weights = as_array(record[_IMPORTANCES])
    if weights is None:
        raise place.at(_IMPORTANCES).error(f"expected a list, got {type(record[_IMPORTANCES]).__name__}")
    if len(weights) != len(texts):
        raise place.at(_IMPORTANCES).error(f"{len(weights)} importances for {len(texts)} requirements")
    return [
        Question(_question(text, place.at(_FIELD, index)), _weight(weight, index, place.at(_IMPORTANCES, index)))
        for index, (text, weight) in enumerate(zip(texts, weights, strict=True))
    ]


def _tags(text: str) -> tuple[str, ...]:
    return (UNIVERSAL,) if " ".join(text.lower().split()).startswith(_UNIVERSAL_START) else ()


def _criteria(items: Sequence[Question], place: Place, scale: NumericScale | BinaryScale) -> list[Criterion]:
    criteria: list[Criterion] = []
    for index, item in enumerate(items):
        fields = {
            "id": f"c{index + 1}",
            "text": item.text,
            "weight": item.weight,
            "scale": scale,
            "tags": _tags(item.text),
        }
        criteria.append(build_criterion(fields, place, {}))
        if item.weight > 100:
            message = f"'c{index + 1}' has the weight {item.weight:g}; this format has 0 to 100"
            place.note("weights", message, criterion_id=f"c{index + 1}")
    return criteria


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    refuse_penalties(rubric, "rlcf", place)
    layout = rubric.metadata.get(_LAYOUT)
    items = _items(rubric)
    own: dict[str, object]
    if layout == "columns":
        own = {_FIELD: [item.text for item in items], _IMPORTANCES: [number(item.weight) for item in items]}
    elif layout in ("text", "generated"):
        own = {_FIELD: _checked(rubric, place)}
    else:
        own = {_FIELD: [[item.text, number(item.weight)] for item in items]}
    metadata = {key: part for key, part in unmarked(rubric.metadata, _MARK).items() if key not in own}
    return arranged(with_id(rubric, "id", metadata) | own, rubric.metadata.get(_ORDER))


def _items(rubric: Rubric) -> list[Question]:
    return [Question(criterion.text, criterion.weight) for criterion in rubric.criteria]


def _said(text: object) -> list[Question]:
    """The items of a text, none where it cannot be read."""
    try:
        return read_checklist(text, Place()) if isinstance(text, str) else []
    except FormatError:
        return []


def _text(rubric: Rubric) -> str:
    """The source's text where it still says what the criteria say, or else the plain one of its layout."""
    kept, items = rubric.metadata.get(_TEXT), _items(rubric)
    if isinstance(kept, str) and _said(kept) == items:
        return kept
    return write_checklist(items, bullets=rubric.metadata.get(_LAYOUT) == "generated")


def _checked(rubric: Rubric, place: Place) -> str:
    """The text to write. Raises FormatError where a reader would find other items in it."""
    text = _text(rubric)
    shape = [(item.text.split(), item.weight) for item in _said(text)]
    if shape != [(item.text.split(), item.weight) for item in _items(rubric)]:
        hint = "take numbers, bullets and importances at the start or end of lines out of the criteria's texts"
        raise place.error("this checklist, written as a text, would be read as another one", hint=hint)
    return text


def _losses(rubric: Rubric) -> list[str]:
    written = rubric.metadata.get(_LAYOUT) in ("text", "generated")
    said = _said(_text(rubric)) if written else []
    spaced = [c.id for c, item in zip(rubric.criteria, said, strict=False) if c.text != item.text]
    scaled = [c.id for c in rubric.criteria if c.scale != SCALE]
    tagged = [c.id for c in rubric.criteria if c.tags != _tags(c.text)]
    own = (_FIELD, _IMPORTANCES) if rubric.metadata.get(_LAYOUT) == "columns" else (_FIELD,)
    return [
        *plain_losses(rubric),
        *([f"scale ({', '.join(scaled)}): read again as 0 to 100"] if scaled else []),
        *([f"tags ({', '.join(tagged)})"] if tagged else []),
        *([f"spaces at the ends of text ({', '.join(spaced)})"] if spaced else []),
        *criterion_losses(rubric, {"scale", "tags"}),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, own, ()),
    ]


FORMAT = Format(
    name="rlcf",
    shape='{"prompt", "requirements": [[question, weight], ...]}, or "1) ... (importance: 100/100)"; or alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    options=("scale",),
    is_text=is_checklist_text,
    prompt="prompt",
    prompts=("instruction",),
    is_list=_is_list,
)
