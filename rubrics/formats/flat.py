"""Flat tables (ours): a criterion a row, for spreadsheets and CSV; JSON Lines, JSON and Parquet hold the same rows.

Columns, all but the text optional:

| column | holds |
|---|---|
| `rubric_id` | which rubric the criterion belongs to; without it the prompt says so, or the table is one rubric |
| `prompt` (or `question`, `instruction`, ...) | the rubric's prompt, the same in all its rows |
| `id` (`criterion_id`) | unique in its rubric; made where there is none |
| `text` (`criterion`, `description`) | the criterion |
| `weight`, or `points` with signs | a number in every row, or no column: all 1 |
| `polarity`, `kind`, `importance`, `channel`, `condition`, `veto` | as in the native format |
| `scale`, `verifier`, `tags`, `path`, `provenance`, `metadata` | JSON |
| `rubric_name`, `rubric_scope`, `rubric_version`, `rubric_metadata`, `rubric_groups` | the rubric's own |

`rubric_name` is the rubric's id where `rubric_id`, which must differ from rubric to rubric, does not say it. Rows
of a rubric need not follow one another. Any other column is kept in the criterion's metadata. Polarity is what its
column says, or else the sign of `points`, or else `reward`; `weight` has no sign. Rows with `text` that do not name
a rubric look like entries of the native format and are read as those, except in CSV; entries of other formats
without any column of ours are theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence

from pydantic import ValidationError

from rubricate.data.cells import settled
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    assign_ids,
    build_rubric,
    check_weights,
    objects_at,
    translate,
)
from rubricate.rubrics.formats.flatrows import (
    ALIASES,
    FIELDS,
    KNOWN,
    PROMPTS,
    TEXTS,
    columns_of,
    gather,
    is_row,
    opened,
    single,
    truth,
)
from rubricate.rubrics.formats.flatwriting import COLUMNS_MARK, MARK, ROWS, spread, written_rows
from rubricate.rubrics.formats.layout import check_reserved
from rubricate.rubrics.formats.losses import unmarked
from rubricate.rubrics.rubric import Group, Rubric

__all__ = ["FORMAT"]

_GIVEN, _ABSENT, _KEY = MARK + "given", MARK + "absent", MARK + "rubric_id"
_MADE = re.compile(r"rubric-\d+")

Row = Mapping[str, object]


def _is_record(record: Row) -> bool:
    listed = as_array(record.get(ROWS))
    rows = [as_object(item) for item in listed or ()] if len(record) == 1 else []
    texts = ALIASES["text"]
    return any(row is not None and any(name in row for name in texts) for row in rows)


# Reading


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is not None:
        if ROWS not in record:
            hint = f"fields here: {', '.join(record) or 'none'}"
            raise place.at(ROWS).error("this field is missing", hint=hint)
        others = [name for name in record if name != ROWS]
        if others:
            raise place.at(others[0]).error(f"a record of this format has one field, {ROWS!r}")
        place, value = place.at(ROWS), record[ROWS]
    rows = objects_at(value, place, "rows")
    if len(gather(rows, place)) > 1:
        hint = "load_rubrics reads files of several; here, take the rows of one"
        raise place.error("these rows belong to several rubrics", hint=hint)
    return _marked(_read(rows, place), rows)


def _read(rows: Sequence[Row], place: Place) -> Rubric:
    """The rubric of rows, without notes about their layout."""
    places = [place.at(index) for index in range(len(rows))]
    for row, where in zip(rows, places, strict=True):
        check_reserved(row, MARK, where)
    names = {field: _column(rows, field, place) for field in ALIASES}
    criteria = _criteria(rows, places, names)
    _check_ids(criteria, places, names["id"])
    rubric_id, metadata = _rubric_fields(rows, place)
    rubric = build_rubric(place, criteria, groups=_groups(rows, place), rubric_id=rubric_id, metadata=metadata)
    return _with_scope(rubric, rows, place)


def _column(rows: Sequence[Row], field: str, place: Place) -> str:
    """The column that holds a field. Raises FormatError where two could."""
    found = [name for name in ALIASES[field] if any(row.get(name) is not None for row in rows)]
    if len(found) > 1:
        index = next(i for i, row in enumerate(rows) if row.get(found[1]) is not None)
        message = f"the columns {found[0]!r} and {found[1]!r} both hold the {field}"
        raise place.at(index, found[1]).error(message, hint="rename one of them")
    present = [name for name in ALIASES[field] if any(name in row for row in rows)]
    return (found or present or list(ALIASES[field]))[0]


def _criteria(rows: Sequence[Row], places: Sequence[Place], names: Mapping[str, str]) -> list[Criterion]:
    points = names["weight"] == "points"
    some = any(names["weight"] in row for row in rows)
    weights = check_weights(rows, places, names["weight"], negative=points, default=None if some else 1.0)
    given = [_id(row, names["id"], at) for row, at in zip(rows, places, strict=True)]
    criteria: list[Criterion] = []
    ids = assign_ids(given, [None] * len(rows))
    for row, at, name, weight in zip(rows, places, ids, weights, strict=True):
        fields = _fields(row, at, names)
        fields |= {"id": name, "weight": abs(weight)}
        if weight < 0:
            if fields.setdefault("polarity", "penalty") != "penalty":
                raise at.at("polarity").error("points below 0 are a penalty, this says otherwise")
        elif points and weight > 0 and fields.get("polarity") == "penalty":
            raise at.at("polarity").error("points above 0 are a reward, this says otherwise")
        criteria.append(_build(fields, at, names))
    return criteria


def _id(row: Row, column: str, place: Place) -> str | None:
    value = row.get(column)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise place.at(column).error("an id is a text that is not blank, or a whole number")
    return str(value)


def _fields(row: Row, place: Place, names: Mapping[str, str]) -> dict[str, object]:
    """The fields of a criterion that a row gives, its id and weight apart."""
    text = row.get(names["text"])
    if text is None:
        hint = f"columns here: {', '.join(row)}"
        raise place.at(names["text"]).error("the text of the criterion is missing", hint=hint)
    fields: dict[str, object] = {"text": text}
    for name in FIELDS:
        value = row.get(name)
        if value is None or name in ALIASES:
            continue
        where = place.at(name)
        fields[name] = truth(value, where) if name == "veto" else opened(name, value, where)
    metadata = as_object(fields.get("metadata", {}))
    if metadata is None:
        raise place.at("metadata").error("expected an object")
    kept = {name: value for name, value in row.items() if name not in KNOWN}
    for name in kept:
        if name in metadata:
            raise place.at(name).error("this column is in the metadata too", hint="remove one of them")
    check_reserved(metadata, MARK, place.at("metadata"))
    return fields | {"metadata": {**kept, **metadata}}


def _build(fields: Row, place: Place, names: Mapping[str, str]) -> Criterion:
    kept = fields["metadata"]  # not through JSON: cells may still become numbers
    try:
        # Strict JSON mode: no text is taken for a number, no number for true or false.
        built = Criterion.model_validate_json(json.dumps({**fields, "metadata": {}}), strict=True)
    except ValidationError as error:
        raise translate(error, place, names) from None
    place.marks.setdefault(built.id, place)
    return built.model_copy(update={"metadata": dict(as_object(kept) or {})})


def _check_ids(criteria: Sequence[Criterion], places: Sequence[Place], column: str) -> None:
    seen: set[str] = set()
    for criterion, place in zip(criteria, places, strict=True):
        if criterion.id in seen:
            hint = "ids differ within a rubric; rows of several rubrics need a column rubric_id"
            raise place.at(column).error(f"the id {criterion.id!r} occurs twice in this rubric", hint=hint)
        seen.add(criterion.id)


def _rubric_fields(rows: Sequence[Row], place: Place) -> tuple[str, dict[str, object]]:
    """The rubric's id and metadata."""
    value, where = single(rows, "rubric_metadata", place)
    metadata = as_object({} if value is None else value)
    if metadata is None:
        raise where.error(f"expected an object, got {type(value).__name__}")
    check_reserved(metadata, MARK, where)
    prompts: dict[str, object] = {}
    for name in PROMPTS:
        prompt, where = single(rows, name, place)
        if prompt is None:
            continue
        if name in metadata:
            raise where.error("this column is in the rubric's metadata too", hint="remove one of them")
        prompts[name] = prompt
    named, _ = _text(rows, "rubric_name", place)
    rubric_id, _ = _text(rows, "rubric_id", place)
    return (rubric_id or "") if named is None else named, prompts | dict(metadata)


def _text(rows: Sequence[Row], name: str, place: Place) -> tuple[str | None, Place]:
    if name == "rubric_id":  # whole numbers and texts that are the same are one id
        value, where = next(
            ((row[name], place.at(i, name)) for i, row in enumerate(rows) if row.get(name) is not None),
            (None, place),
        )
    else:
        value, where = single(rows, name, place)
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise where.error(f"expected text, got {type(value).__name__}")
    return (None if value is None else str(value)), where


def _with_scope(rubric: Rubric, rows: Sequence[Row], place: Place) -> Rubric:
    scope, where = _text(rows, "rubric_scope", place)
    version, _ = _text(rows, "rubric_version", place)
    fields = {"scope": scope or "instance", "version": version or ""}
    try:
        plain = Rubric.model_validate_json(json.dumps({"criteria": [{"id": "c", "text": "t"}], **fields}))
    except ValidationError as error:
        raise translate(error, where, skip="scope") from None
    return rubric.model_copy(update={"scope": plain.scope, "version": plain.version})


def _groups(rows: Sequence[Row], place: Place) -> list[Group]:
    value, where = single(rows, "rubric_groups", place)
    if value is None:
        return []
    found: list[Group] = []
    for index, item in enumerate(objects_at(value, where, "groups")):
        try:
            found.append(Group.model_validate_json(json.dumps(item), strict=True))
        except ValidationError as error:
            raise translate(error, where.at(index)) from None
    return found


# What the source had that the default layout has not


def _marked(rubric: Rubric, rows: Sequence[Row]) -> Rubric:
    """The rubric with what its rows say in another way than `_dump` would, in its metadata."""
    rows, kept = _without_made_id(rows)
    marks: dict[str, object] = {_KEY: kept} if kept is not None else {}
    if not _same_order(rows, written_rows(rubric)):
        marks[COLUMNS_MARK] = columns_of(rows)
        rubric = rubric.model_copy(update={"metadata": rubric.metadata | marks})
    given: dict[str, object] = {}
    absent: dict[str, object] = {}
    for index, (row, written) in enumerate(zip(rows, written_rows(rubric), strict=True)):
        other = {n: v for n, v in row.items() if n not in written or settled(v) != settled(written[n])}
        less = [name for name in written if name not in row]
        given |= {str(index): other} if other else {}
        absent |= {str(index): less} if less else {}
    marks |= ({_GIVEN: given} if given else {}) | ({_ABSENT: absent} if absent else {})
    return rubric.model_copy(update={"metadata": rubric.metadata | marks}) if marks else rubric


def _same_order(rows: Sequence[Row], written: Sequence[Row]) -> bool:
    """Whether the columns stand as they are written; TOML moves tables to the end, which says nothing."""
    if columns_of(rows) == columns_of(written):
        return True
    return all(list(row) == _tables_last(usual) for row, usual in zip(rows, written, strict=True))


def _tables_last(row: Row) -> list[str]:
    """The columns of a row as TOML has them."""
    return sorted(row, key=lambda name: _is_table(row[name]))


def _is_table(value: object) -> bool:
    return as_object(value) is not None or any(as_object(part) is not None for part in as_array(value) or ())


def _without_made_id(rows: Sequence[Row]) -> tuple[list[Row], object]:
    """The rows as those of a rubric that needs no `rubric_name`, and the other id, where it was not made.

    Such an id only keeps the rubric apart from others of the file, and `spread` makes one where it is needed.
    """
    name = next((row["rubric_name"] for row in rows if row.get("rubric_name") is not None), None)
    kept = next((row["rubric_id"] for row in rows if row.get("rubric_id") is not None), None)
    if name is None or kept is None:
        return list(rows), None
    own = {"rubric_id": name} if name != "" else {}
    plain: list[Row] = []
    for row in rows:
        changed = {key: own.get(key, part) for key, part in row.items() if key != "rubric_name"}
        plain.append({key: part for key, part in changed.items() if key != "rubric_id" or own})
    return plain, None if _MADE.fullmatch(str(kept)) else kept


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    rows = written_rows(rubric)
    given, absent = as_object(rubric.metadata.get(_GIVEN)) or {}, as_object(rubric.metadata.get(_ABSENT)) or {}
    if given or absent:
        tried = [_altered(row, given.get(str(n)), absent.get(str(n)), rubric) for n, row in enumerate(rows)]
        if _reads_as(tried, rubric):
            rows = tried
    kept = rubric.metadata.get(_KEY)
    if kept is not None:
        name = {"rubric_id": kept, "rubric_name": rubric.id}
        rows = [(name if not n else {"rubric_id": kept}) | _without(row, name) for n, row in enumerate(rows)]
    return {ROWS: rows}


def _without(row: Row, names: Collection[str]) -> dict[str, object]:
    return {name: part for name, part in row.items() if name not in names}


def _altered(row: Row, given: object, absent: object, rubric: Rubric) -> dict[str, object]:
    less = as_array(absent) or ()
    fields = {name: part for name, part in row.items() if name not in less} | dict(as_object(given) or {})
    order = [str(name) for name in as_array(rubric.metadata.get(COLUMNS_MARK)) or ()]
    return {name: fields[name] for name in dict.fromkeys([*order, *fields]) if name in fields}


def _reads_as(rows: Sequence[Row], rubric: Rubric) -> bool:
    """Whether rows say what a rubric says: if it was changed since it was read, its source's words may not."""
    try:
        found = _read(rows, Place())
    except FormatError:
        return False
    return found == rubric.model_copy(update={"metadata": unmarked(rubric.metadata, MARK)})


def _losses(rubric: Rubric) -> list[str]:
    return []


FORMAT = Format(
    name="flat",
    shape='rows of {"rubric_id", "id", "text", "weight", "polarity", ...}, a criterion each, such as CSV',
    is_record=_is_record,
    is_item=is_row,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    texts=TEXTS,
    prompt=PROMPTS[0],
    prompts=PROMPTS[1:],
    messages=None,
    gather=gather,
    spread=spread,
)
