"""DR Tulu (2511.19399): the rubrics of its training data, of its two generators, and of its buffer.

Read in rlresearch/dr-tulu (convert_rar_data.py at 208887e; longform_rubric_rewards.py and rubric_utils.py under
open_instruct/search_rewards; the adaptive rubrics' utilities) and in code that reads rl-research/dr-tulu-rl-data:

- a data row: `ground_truth`, JSON text of `{"query", "rubrics": [{"description", "weight", "title"}],
  "rubrics_types"}`, beside `messages`, `dataset` ("general_rubric"), `source`, `question_type`;
- that object alone;
- the evolving generator's `{"question", "positive_rubrics", "negative_rubrics"}` of `description` and `title`,
  which count +1 and -1;
- the persistent generator's `{"Question", "Answer Critical", "Valuable", "Context"}` of `Ingredient`, `Handle` and
  `Specifics`, alone or in a row. The reward averages the answer-critical ones and reads no others, so these weigh
  1 and the others 0;
- an entry of the buffer, `{"persistent_rubrics", "active_rubrics", "inactive_rubrics", "static_rubrics"}`, of which
  the persistent and the active ones are in force; the code keeps it in memory, so a file of it is somebody's dump.

Every criterion is judged 0, 1 or 2. A negative weight is a penalty. The parts of the buffer are tags: `persistent`,
`evolving`. A row whose `dataset` is "rubric" is open-instruct's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Importance, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import build_rubric, holds_items, objects_at, record_id, with_id
from rubricate.rubrics.formats.layout import arranged, check_reserved, order_mark
from rubricate.rubrics.formats.losses import metadata_losses, rubric_losses
from rubricate.rubrics.formats.tulu import (
    ITEM_FIELDS,
    Dialect,
    Entry,
    build_criteria,
    parse_list,
    payload_losses,
    read_rubrics,
    weighted_entries,
    without_marks,
    write_items,
    write_rubrics,
)
from rubricate.rubrics.formats.tulucell import close_cell, filled, looks_like_payload, open_cell, verifier_names
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT"]

_DIALECT = Dialect("drtulu")
_PAYLOAD, _LAYOUT = _DIALECT.mark("ground_truth"), _DIALECT.mark("layout")
_DATASETS = {"general_rubric", "rl_rag_longform"}
_LISTS = ("rubrics", "rubrics_types")
_QUERIES = ("query", "Question")


@dataclass(frozen=True, slots=True)
class _Section:
    """A list of entries: its field, their tag, their weight where it is fixed, their category where it is one."""

    field: str
    tag: str
    weight: float | None = None
    importance: Importance | None = None

    def holds(self, criterion: Criterion) -> bool:
        """Whether a criterion belongs here, its weight apart."""
        positive = criterion.polarity is Polarity.REWARD
        same_sign = self.weight is None or (self.weight >= 0) == positive
        return criterion.tags == (self.tag,) and criterion.importance is self.importance and same_sign


_SECTIONS: Mapping[str, tuple[_Section, ...]] = {
    "evolving": (
        _Section("positive_rubrics", "evolving", 1.0),
        _Section("negative_rubrics", "evolving", -1.0),
    ),
    "persistent": (
        _Section("Answer Critical", "persistent", 1.0, Importance.ESSENTIAL),
        _Section("Valuable", "persistent", 0.0, Importance.IMPORTANT),
        _Section("Context", "persistent", 0.0, Importance.OPTIONAL),
    ),
    "buffer": (
        _Section("persistent_rubrics", "persistent"),
        _Section("active_rubrics", "evolving"),
    ),
}
_SIGNS: Mapping[str, tuple[str, ...]] = {
    "evolving": ("positive_rubrics", "negative_rubrics"),
    "persistent": ("Answer Critical",),
    "buffer": ("persistent_rubrics", "active_rubrics"),
}
"""The fields that show which of the layouts in sections a record has."""

_TAKEN = (*_LISTS, *(field for fields in _SIGNS.values() for field in fields))
"""Fields that cannot be columns of a payload, since they would be read."""


def _layout(record: Mapping[str, object]) -> str:
    """The layout in sections that a record has, or "" for `rubrics` and for anything else."""
    return next((name for name, fields in _SIGNS.items() if any(field in record for field in fields)), "")


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_entry(item: Mapping[str, object]) -> bool:
    return "description" in item and not {"points", "criterion", "text"} & item.keys()


def _has_points(item: Mapping[str, object]) -> bool:
    return "points" in item


def _is_row(record: Mapping[str, object]) -> bool:
    names = verifier_names(record)
    if "ground_truth" not in record or "rubric" in names:
        return False
    return not _DATASETS.isdisjoint(names) or looks_like_payload(record["ground_truth"])


def _is_record(record: Mapping[str, object]) -> bool:
    if _is_row(record):
        return True
    layout = _layout(record)
    if layout == "buffer":
        return any(as_array(record.get(field)) is not None for field in _SIGNS[layout])
    if layout:
        return True
    named = any(name in record for name in (*_QUERIES, "rubrics_types"))
    # A list that is empty, or in which any entry has points, is HealthBench's.
    return named and holds_items(record, "rubrics", _is_entry) and not holds_items(record, "rubrics", _has_points)


# Reading


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        return parse_list(value, place, _DIALECT)
    check_reserved(record, _DIALECT.prefix, place)
    if _is_row(record) or ("ground_truth" in record and not _layout(record) and "rubrics" not in record):
        return _parse_row(record, place)
    entries, lists, layout = _entries(record, place)
    criteria = build_criteria(entries, _DIALECT)
    rubric_id, metadata = record_id({key: part for key, part in record.items() if key not in lists}, "id")
    if not layout and metadata.get("query") == "" and "Question" not in metadata:
        del metadata["query"]  # written again for every payload that has none
    head = [name for name, given in (("id", rubric_id), ("query", _lacks_query(metadata, layout))) if given]
    written = [section.field for section in _SECTIONS.get(layout, ())] or [
        name for name in lists if record[name] is not None
    ]
    marks = order_mark(_DIALECT.order, record, [*head, *metadata, *written]) | ({_LAYOUT: layout} if layout else {})
    return build_rubric(place, criteria, rubric_id=rubric_id, metadata=metadata | marks)


def _lacks_query(metadata: Mapping[str, object], layout: object) -> bool:
    return not layout and not any(name in metadata for name in _QUERIES)


def _parse_row(record: Mapping[str, object], place: Place) -> Rubric:
    cell = open_cell(record, place, _DIALECT)
    entries, lists, _ = _entries(cell.payload, cell.where)
    criteria = build_criteria(entries, _DIALECT)
    cell.check_numbers()
    rubric_id, metadata = record_id({key: part for key, part in record.items() if key != "ground_truth"}, "id")
    usual = [*(["id"] if rubric_id else []), *metadata, "ground_truth"]
    skeleton = {key: None if key in lists else part for key, part in cell.payload.items()}
    marks = {_PAYLOAD: skeleton} | cell.marks | order_mark(_DIALECT.order, record, usual)
    return build_rubric(cell.where, criteria, rubric_id=rubric_id, metadata=metadata | marks)


def _entries(payload: Mapping[str, object], where: Place) -> tuple[list[Entry], list[str], str]:
    """The entries of a payload, the fields they were read from, and the layout."""
    layout = _layout(payload)
    if not layout:
        if "rubrics" not in payload:
            hint = f"fields here: {', '.join(payload) or 'none'}"
            raise where.at("rubrics").error("this field is missing", hint=hint)
        lists = [name for name in _LISTS if name in payload]
        return read_rubrics(payload, where, _DIALECT), lists, ""
    sections = [section for section in _SECTIONS[layout] if section.field in payload]
    entries = [entry for section in sections for entry in _section(payload[section.field], section, where)]
    if not entries:
        names = " and ".join(section.field for section in sections)
        raise where.at(sections[0].field).error(f"a rubric needs at least one entry in {names}")
    _note(payload, where, layout)
    return entries, [section.field for section in sections], layout


def _section(value: object, section: _Section, where: Place) -> list[Entry]:
    place = where.at(section.field)
    if as_array(value) is not None and not as_array(value):
        return []
    items = objects_at(value, place, "rubrics")
    if section.weight is None:
        return weighted_entries(items, place, [section.tag] * len(items), _DIALECT)
    return [
        Entry(item, place.at(index), section.weight, section.tag, section.importance, fixed=True)
        for index, item in enumerate(items)
    ]


def _note(payload: Mapping[str, object], where: Place, layout: str) -> None:
    inactive = as_array(payload.get("inactive_rubrics")) if layout == "buffer" else None
    if inactive:
        where.at("inactive_rubrics").note("layout", f"{len(inactive)} inactive rubrics are kept, but not in force")
    if layout == "persistent" and (payload.get("Valuable") or payload.get("Context")):
        where.note("weights", "only the answer-critical rubrics count, as in DR Tulu's reward; the others weigh 0")


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    sections = _in_sections(rubric)
    return _plain(_as_list(rubric)) if sections is None else sections


def _skeleton(rubric: Rubric) -> Mapping[str, object] | None:
    """The payload of a row without its lists; None where the rubric did not come in a row."""
    return as_object(rubric.metadata.get(_PAYLOAD))


def _in_sections(rubric: Rubric) -> dict[str, object] | None:
    """The record in the layout in sections that the rubric was read in; None where it had none, or outgrew it."""
    skeleton = _skeleton(rubric)
    layout = rubric.metadata.get(_LAYOUT) if skeleton is None else _layout(skeleton)
    sections = _SECTIONS.get(layout) if isinstance(layout, str) else None
    if sections is None:
        return None
    order = as_array(rubric.metadata.get(_DIALECT.order))
    given = skeleton if skeleton is not None else order
    lists: dict[str, object] = {}
    for section in sections:
        criteria = [criterion for criterion in rubric.criteria if section.holds(criterion)]
        if criteria or given is None or section.field in given:
            lists[section.field] = write_items(rubric, criteria, _DIALECT, weighted=section.weight is None)
    record = _assembled(rubric, lists)
    try:
        return record if _parse(record, Place(), {}) == rubric else None
    except FormatError:
        return None


def _as_list(rubric: Rubric) -> Rubric:
    """A rubric that outgrew its layout in sections, as one that came as a list of descriptions."""
    skeleton, metadata = _skeleton(rubric), dict(rubric.metadata)
    if not metadata.pop(_LAYOUT, None) and not (skeleton and _layout(skeleton)):
        return rubric
    fields = [_DIALECT.order, *(section.field for sections in _SECTIONS.values() for section in sections)]
    kept = {"query" if key == "question" else key: part for key, part in (skeleton or metadata).items()}
    kept = {key: part for key, part in kept.items() if key not in fields}
    text = _DIALECT.mark("text")
    criteria = [
        c.model_copy(update={"metadata": {key: part for key, part in c.metadata.items() if key != text}})
        for c in rubric.criteria
    ]
    changes = {"metadata": metadata | {_PAYLOAD: kept} if skeleton else kept, "criteria": tuple(criteria)}
    return rubric.model_copy(update=changes)


def _plain(rubric: Rubric) -> dict[str, object]:
    """The record with a list of weighted entries, in a row where the rubric came in one."""
    lists = write_rubrics(rubric, _DIALECT)
    if _skeleton(rubric) is not None:
        return _assembled(rubric, lists)
    metadata = {key: part for key, part in rubric.metadata.items() if key not in _TAKEN}
    order = as_array(metadata.get(_DIALECT.order))
    if _lacks_query(metadata, "") and (order is None or "query" in order):
        metadata = {"query": ""} | metadata
    if order is not None and "rubrics_types" in order:
        lists = {"rubrics_types": None} | lists
    return _assembled(rubric.model_copy(update={"metadata": metadata}), lists)


def _assembled(rubric: Rubric, lists: dict[str, object]) -> dict[str, object]:
    metadata = without_marks(rubric.metadata)
    skeleton = _skeleton(rubric)
    if skeleton is not None:
        cell = close_cell(filled(skeleton, lists), rubric.metadata, _DIALECT)
        lists = {"ground_truth": cell}
    kept = {key: part for key, part in metadata.items() if key not in lists}
    return arranged(with_id(rubric, "id", kept) | lists, rubric.metadata.get(_DIALECT.order))


def _losses(rubric: Rubric) -> list[str]:
    if _in_sections(rubric) is not None:
        return []
    fields = _TAKEN if _skeleton(rubric) is None else ("ground_truth",)
    return [
        *payload_losses(rubric),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, fields, ITEM_FIELDS),
    ]


FORMAT = Format(
    name="drtulu",
    shape='{"ground_truth": {"query", "rubrics": [{"description", "weight"}, ...]}, ...} (or its JSON text), that '
    'object alone, {"question", "positive_rubrics", "negative_rubrics"}, or {"Question", "Answer Critical", ...}',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="query",
    prompts=("question", "Question", "messages"),
    texts=("ground_truth",),
)
