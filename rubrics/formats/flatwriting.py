"""Writing flat tables of criteria: the columns that a rubric needs, and ids that keep rubrics of a file apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubricate.data.writing import json_text
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.formats.common import number, signed, written_ids
from rubricate.rubrics.formats.flatrows import ALIASES, FIELDS, KNOWN, PROMPTS, columns_of, rank
from rubricate.rubrics.formats.losses import unmarked
from rubricate.rubrics.rubric import Group, Rubric, Scope

__all__ = ["COLUMNS_MARK", "MARK", "ROWS", "spread", "written_rows"]

MARK = "flat:"
COLUMNS_MARK = MARK + "columns"
ROWS = "rows"
"""The one field of a record of this format."""

_CRITERION = Criterion(id="c", text="t").model_dump(mode="json")
_GROUP = Group(id="g").model_dump(mode="json")
_WRITTEN = ("id", "text", "weight", "polarity")
"""Columns that every row has, unless the source did without them."""

Row = Mapping[str, object]


def written_rows(rubric: Rubric) -> list[dict[str, object]]:
    """A row for each criterion, in the columns that its source had and those that it needs besides."""
    columns = [str(name) for name in as_array(rubric.metadata.get(COLUMNS_MARK)) or ()]
    names = {field: next((n for n in columns if n in ALIASES[field]), ALIASES[field][0]) for field in ALIASES}
    made = written_ids(rubric, [None] * len(rubric)) if columns and names["id"] not in columns else rubric.ids
    rows: list[dict[str, object]] = []
    shared, first = _rubric_columns(rubric)
    for index, (criterion, own) in enumerate(zip(rubric.criteria, made, strict=True)):
        row = shared | _row(criterion, names, columns)
        if own is None:
            del row[names["id"]]
        row |= {} if index else first
        rows.append(_ordered(row, columns))
    return rows


def _row(criterion: Criterion, names: Mapping[str, str], columns: Sequence[str]) -> dict[str, object]:
    """The columns of a criterion: its id, text, weight and polarity, and of the others those that are set."""
    points = names["weight"] == "points"
    fields = criterion.model_dump(mode="json", exclude={"metadata"})
    fields["weight"] = signed(criterion) if points else number(criterion.weight)
    said = points and (criterion.weight > 0 or criterion.polarity is Polarity.REWARD)
    row: dict[str, object] = {}
    for name in FIELDS[:-1]:
        asked = name in _WRITTEN and (not columns or names.get(name, name) in columns)
        if name in ("id", "text"):
            row[names[name]] = fields[name]
        elif asked or fields[name] != _CRITERION[name]:
            row[names.get(name, name)] = fields[name]
    if points and said and "polarity" not in columns:
        row.pop("polarity", None)
    odd = {name: part for name, part in criterion.metadata.items() if not _is_column(name)}
    row |= {name: part for name, part in criterion.metadata.items() if name not in odd}
    return row | ({"metadata": odd} if odd else {})


def _is_column(name: str) -> bool:
    """Whether a field of the metadata can be a column of its own."""
    return bool(name) and name == name.strip() and name not in KNOWN and not name.startswith(MARK)


def _rubric_columns(rubric: Rubric) -> tuple[dict[str, object], dict[str, object]]:
    """What stands in every row of a rubric, and what in its first row alone."""
    metadata = unmarked(rubric.metadata, MARK)
    shared: dict[str, object] = {"rubric_id": rubric.id} if rubric.id else {}
    prompts = {name: metadata[name] for name in PROMPTS if isinstance(metadata.get(name), str | list)}
    rest = {name: part for name, part in metadata.items() if name not in prompts}
    groups = [
        {name: part for name, part in group.model_dump(mode="json").items() if name == "id" or part != _GROUP[name]}
        for group in rubric.groups
    ]
    first: dict[str, object] = {}
    if rubric.scope is not Scope.INSTANCE:
        first["rubric_scope"] = rubric.scope.value
    if rubric.version:
        first["rubric_version"] = rubric.version
    return shared | prompts, first | ({"rubric_metadata": rest} if rest else {}) | (
        {"rubric_groups": groups} if groups else {}
    )


def _ordered(row: Row, columns: Sequence[str]) -> dict[str, object]:
    order = columns or sorted(row, key=rank)
    return {name: row[name] for name in dict.fromkeys([*order, *row]) if name in row}


def spread(records: Sequence[Row]) -> tuple[list[dict[str, object]], list[str]]:
    """The rows of several records, each rubric with an id of its own, and the order of the columns.

    Ids are made (`rubric-1`, ...) where rubrics have none, or the same, and no prompts that keep them apart.
    """
    groups = [[dict(as_object(row) or {}) for row in as_array(record[ROWS]) or ()] for record in records]
    taken = {str(rows[0]["rubric_id"]) for rows in groups if "rubric_id" in rows[0]}
    seen: set[str] = set()
    prompts = [[rows[0].get(name) for name in PROMPTS] for rows in groups]
    apart = len({json_text(prompt) for prompt in prompts}) == len(groups) and all(map(any, prompts))
    alone = not taken and (apart or len(groups) == 1)
    found: list[dict[str, object]] = []
    for index, rows in enumerate(groups):
        own = rows[0].get("rubric_id")
        if alone or (own is not None and str(own) not in seen):
            seen.add(str(own))
            found += rows
            continue
        made = index + 1
        while f"rubric-{made}" in taken:
            made += len(groups)
        taken.add(f"rubric-{made}")
        ids: dict[str, object] = {"rubric_id": f"rubric-{made}"}
        name = {"rubric_name": rows[0].get("rubric_name", "" if own is None else own)}
        for number_, row in enumerate(rows):
            found.append(
                ids | ({} if number_ else name) | {key: part for key, part in row.items() if key not in ids}
            )
    in_order = all(list(row) == sorted(row, key=rank) for row in found)
    return found, sorted(columns_of(found), key=rank) if in_order else columns_of(found)
