"""OpenRubrics (2510.07743): a rubric is one text, a numbered list of items that close with a tag.

    1. The response has at most three sentences. [Hard Rule]
    2. The response explains before it concludes. [Principle]

Columns as code that loads OpenRubrics/OpenRubrics (`instruction`, `rubric`, `source`) and OpenRubrics/OpenRubric-v2
(`instruction`, `response_a`, `response_b`, `winner`, `rubric`, ...) names them. RUBRIC-ARROW (2605.29156;
Haoxiang03/RUBRIC-ARROW d116811) keeps the same text as the one element of a list, `rubrics`. The form of an item is
that of the generator's prompt (`rubric-generator/common.py`, 4b60d75).

Every item is a reward. The tag is the criterion's kind; the paper weighs nothing, so weights are 1. The option
`weights="arrow"` takes RUBRIC-ARROW's: 3 for hard rules, 1 for principles (`TAG_WEIGHTS` in its `scoring.py`).

Texts come from language models. What can be read without guessing is read, with a note; what cannot is an error
that names the item and its line (see `read_tagged_list`). A text that the list alone would not give again is kept
in the metadata, and written back as long as the criteria say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, CriterionKind
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import build_criterion, build_rubric, record_id, with_id
from rubricate.rubrics.formats.layout import (
    arranged,
    check_reserved,
    order_mark,
    plain_losses,
    record_order,
    refuse_penalties,
)
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.formats.tagged_text import TAGS, TextItem, is_tagged_list, read_tagged_list
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT", "KIND_WEIGHTS"]

KIND_WEIGHTS: Mapping[CriterionKind, float] = {CriterionKind.HARD_RULE: 3.0, CriterionKind.PRINCIPLE: 1.0}
"""Weights of the kinds in RUBRIC-ARROW (2605.29156)."""

_MARK = "openrubrics:"
_TEXT, _ORDER, _LAYOUT = _MARK + "text", _MARK + "order", _MARK + "layout"
_COLUMNS = ("rubric", "rubrics")


def _column(record: Mapping[str, object]) -> str:
    """The column that holds a tagged text, alone or as the one element of a list; "" where there is none."""
    return next((name for name in _COLUMNS if _holds_text(record.get(name))), "")


def _holds_text(value: object) -> bool:
    listed = as_array(value)
    texts = [value] if listed is None else listed
    return any(isinstance(text, str) and is_tagged_list(text) for text in texts)


def _is_record(record: Mapping[str, object]) -> bool:
    return bool(_column(record))


def _is_item(item: Mapping[str, object]) -> bool:
    return False


# Reading


def _parse(value: object, place: Place, options: Options) -> Rubric:
    weighted = _weighted(options)
    record = as_object(value)
    if record is None:
        return _build(_as_text(value, place), place, weighted, "", {})
    check_reserved(record, _MARK, place)
    column = _column(record) or next((name for name in _COLUMNS if name in record), "rubric")
    if column not in record:
        raise place.at(column).error("this field is missing", hint=f"fields here: {', '.join(record) or 'none'}")
    where, layout, text = place.at(column), column, record[column]
    listed = as_array(text)
    if listed is not None:
        if len(listed) != 1:
            raise where.error(f"expected one text in this list, found {len(listed)}", hint="join the items")
        where, layout, text = place.at(column, 0), column + "[]", listed[0]
    rubric_id, metadata = record_id({name: part for name, part in record.items() if name != column}, "id")
    metadata |= {_LAYOUT: layout} if layout != "rubric" else {}
    metadata |= order_mark(_ORDER, record, record_order(record, (column,)))
    return _build(_as_text(text, where), where, weighted, rubric_id, metadata)


def _weighted(options: Options) -> bool:
    name = options.get("weights", "equal")
    if name not in ("equal", "arrow"):
        raise ConfigError(f"the option weights has no value {name!r}", hint="choose among equal, arrow")
    return name == "arrow"


def _as_text(value: object, place: Place) -> str:
    if not isinstance(value, str):
        hint = "give the text, or a record with it in `rubric`"
        raise place.error(f"expected a text with a numbered list, got {type(value).__name__}", hint=hint)
    if not value.strip():
        raise place.error("the text is blank")
    return value


def _build(text: str, place: Place, weighted: bool, rubric_id: str, metadata: dict[str, object]) -> Rubric:
    items = read_tagged_list(text, place)
    criteria = [_criterion(index, item, place, weighted) for index, item in enumerate(items)]
    if _written(criteria) != text:
        metadata = metadata | {_TEXT: text}
    return build_rubric(place, criteria, rubric_id=rubric_id, metadata=metadata)


def _criterion(index: int, item: TextItem, place: Place, weighted: bool) -> Criterion:
    if weighted and item.kind is None:
        raise place.error(f"{item.name} has no tag, and so no weight", hint="add [Hard Rule] or [Principle]")
    weight = KIND_WEIGHTS[item.kind] if weighted and item.kind is not None else 1.0
    fields = {"id": f"c{index + 1}", "text": item.text, "kind": item.kind, "weight": weight}
    return build_criterion(fields, place, {})


# Writing


def _written(criteria: Sequence[Criterion]) -> str:
    return "\n".join(
        f"{index}. {' '.join(criterion.text.split())} {TAGS[criterion.kind or CriterionKind.PRINCIPLE]}"
        for index, criterion in enumerate(criteria, start=1)
    )


def _said(items: Sequence[TextItem | Criterion]) -> list[tuple[str, CriterionKind | None]]:
    return [(item.text, item.kind) for item in items]


def _text(rubric: Rubric) -> str:
    """The source's text where it still says what the criteria say, or else the plain list."""
    kept = rubric.metadata.get(_TEXT)
    if isinstance(kept, str):
        try:
            items = read_tagged_list(kept, Place())
        except FormatError:
            items = []
        if _said(items) == _said(rubric.criteria):
            return kept
    return _written(rubric.criteria)


def _checked(rubric: Rubric, place: Place) -> str:
    """The text to write. Raises FormatError where a reader would find other items in it."""
    text = _text(rubric)
    try:
        items = read_tagged_list(text, Place())
    except FormatError as error:
        raise place.error(f"the criteria cannot be written as a list: {error.detail}", hint=error.hint) from None
    for item, criterion in zip(items, rubric.criteria, strict=False):
        if item.text.split() != criterion.text.split():
            hint = "take numbers at the start of lines, tags in brackets and stray ** out of it"
            raise place.error(f"the text of {criterion.id!r} would be read as something else", hint=hint)
    if len(items) != len(rubric):
        raise place.error(f"the list would be read as {len(items)} items, not {len(rubric)}")
    return text


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    refuse_penalties(rubric, "openrubrics", place)
    column, listed = _layout(rubric)
    text = _checked(rubric, place)
    metadata = {key: part for key, part in unmarked(rubric.metadata, _MARK).items() if key != column}
    record = with_id(rubric, "id", metadata) | {column: [text] if listed else text}
    return arranged(record, rubric.metadata.get(_ORDER))


def _layout(rubric: Rubric) -> tuple[str, bool]:
    """The column to write, and whether the text is the one element of a list there."""
    layout = rubric.metadata.get(_LAYOUT)
    column = layout.removesuffix("[]") if isinstance(layout, str) else ""
    return (column, layout != column) if column in _COLUMNS else ("rubric", False)


def _losses(rubric: Rubric) -> list[str]:
    verbatim = _text(rubric) == rubric.metadata.get(_TEXT)
    untagged = [c.id for c in rubric.criteria if c.kind is None and not verbatim]
    spaced = [c.id for c in rubric.criteria if " ".join(c.text.split()) != c.text and not verbatim]
    weighted = [c.id for c in rubric.criteria if c.weight != 1.0]
    return [
        *plain_losses(rubric),
        *([f"weight ({', '.join(weighted)})"] if weighted else []),
        *([f"kind, which is not set ({', '.join(untagged)}): written as [Principle]"] if untagged else []),
        *([f"spaces and line breaks in text ({', '.join(spaced)})"] if spaced else []),
        *criterion_losses(rubric, {"kind"}),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, {_layout(rubric)[0]}, ()),
    ]


FORMAT = Format(
    name="openrubrics",
    shape='{"instruction", "rubric": "1. The response ... [Hard Rule]\\n2. ... [Principle]"}, or the text alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    options=("weights",),
    is_text=is_tagged_list,
    prompt="instruction",
)
