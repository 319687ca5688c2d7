"""The rows that a scoring run works on, read one at a time, and a survey of them before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from rubricate.cli.conversion import check_format_options
from rubricate.cli.records import row_key
from rubricate.data.io import RUBRIC_COLUMNS, Row, read_rows, rollouts_from_row
from rubricate.data.records import Rollout
from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import Rubric, compose
from rubricate.rubrics.formats import get_format, load_rubric, parse_rubric, rubric_from_row

__all__ = ["Inputs", "Survey", "Unit"]

IDS = 100_000


@dataclass(frozen=True, slots=True)
class Unit:
    """One response to score: its place among all responses, the line of its row, and its rubric."""

    number: int
    line: int
    rollout: Rollout
    rubric: Rubric
    gold: Mapping[str, bool] | None = None

    @property
    def key(self) -> str:
        """Identifies id and content; see `row_key`."""
        return row_key(self.rollout, self.rubric.fingerprint)


@dataclass(slots=True)
class Survey:
    """What a file asks for.

    Attributes:
        rows, responses: lines and responses in them.
        code, model: criteria to be decided by code and by a model, over all responses.
        channels: names of all channels, in order of appearance.
        repeated: the first response whose id an earlier one has: the id and both lines; looked for among the first
            `IDS` responses, so that memory stays bounded.
    """

    rows: int = 0
    responses: int = 0
    code: int = 0
    model: int = 0
    channels: dict[str, None] = field(default_factory=dict[str, None])
    repeated: tuple[str, int, int] | None = None
    _ids: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, unit: Unit) -> None:
        """Take a response into account."""
        self._note_id(unit)
        asked = [criterion for criterion in unit.rubric.criteria if criterion.verifier is None]
        self.responses += 1
        self.code += len(unit.rubric.criteria) - len(asked)
        self.model += len(asked)
        self.channels.update({c.channel: None for c in unit.rubric.criteria if c.channel is not None})

    def _note_id(self, unit: Unit) -> None:
        if self.repeated is None and len(self._ids) < IDS:
            first = self._ids.setdefault(unit.rollout.id, unit.line)
            if first != unit.line:
                self.repeated = unit.rollout.id, first, unit.line
                self._ids.clear()


class Inputs:
    """The responses of a file, each with its rubric. Can be gone through more than once.

    Args:
        path: rows with a prompt and a response, or a group of responses.
        rubric: file with one rubric that holds for every row.
        column: column with each row's own rubric; it adds up with the file's. Where neither is given, a column
            `rubric` or `rubrics` is taken.
        columns: which column plays a role, such as `{"prompt": "question"}`.
        limit: go no further than so many rows.
        format: format of the rubrics, `auto` to recognise it.
        options: that format's own.
    """

    def __init__(
        self,
        path: Path,
        *,
        rubric: Path | None = None,
        column: str | None = None,
        columns: Mapping[str, str] | None = None,
        limit: int | None = None,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.column = column
        self.rubric_path = rubric
        self.limit = limit
        self._columns = dict(columns or {})
        self._format = format
        self._options = dict(options or {})
        if format != "auto":
            get_format(format)  # refuses a name that is none
        check_format_options(self._options)
        self._shared = None if rubric is None else load_rubric(rubric, format=format, **self._options)

    @property
    def shared(self) -> Rubric | None:
        """The rubric that holds for every row, where there is one."""
        return self._shared

    @property
    def identity(self) -> dict[str, object]:
        """What of this decides a reward besides the rows themselves."""
        return {"fingerprint": self._shared.fingerprint if self._shared else None, "column": self.column}

    def __iter__(self) -> Iterator[Unit]:
        number = 0
        for row in islice(read_rows(self.path), self.limit):
            rubric = self._rubric(row)
            rollouts = rollouts_from_row(row, columns=self._columns)
            for rollout, gold in zip(rollouts, _gold(row, len(rollouts)), strict=True):
                yield Unit(number, row.line, rollout, rubric, gold)
                number += 1

    def survey(self, *, check: Callable[[Unit, str], None] | None = None) -> Survey:
        """Read every row once: what does not fit is found before anything is spent.

        Args:
            check: called with each response and the file's name; raises for what cannot be used.

        Raises FormatError for rows that cannot be read.
        """
        found = Survey()
        line = -1
        for unit in self:
            if check is not None:
                check(unit, str(self.path))
            found.rows += unit.line != line
            line = unit.line
            found.add(unit)
        return found

    def notes(self, found: Survey) -> list[str]:
        """What looks odd about the data, but is no error."""
        notes: list[str] = []
        if self._shared is not None and self.column is None:
            first = next(read_rows(self.path)).record
            notes += [
                f"the column {name} is not read, as --rubric gives every row its rubric "
                f"(--rubric-column {name} adds it)"
                for name in RUBRIC_COLUMNS
                if first.get(name) is not None
            ]
        if found.repeated is not None:
            name, line, again = found.repeated
            notes.append(f"the id {name!r} is on line {line} and on line {again}: tell their records by `line`")
        return notes

    def _rubric(self, row: Row) -> Rubric:
        own = self._own_rubric(row)
        parts = [part for part in (self._shared, own) if part is not None]
        if not parts:
            present = [name for name in RUBRIC_COLUMNS if name in row.record]
            if present:
                raise _without_rubric(row, present)
            raise FormatError(
                f"no rubric: there is no column {' or '.join(RUBRIC_COLUMNS)}",
                source=row.source,
                line=row.line,
                hint=f"use --rubric FILE or --rubric-column NAME; columns here: {', '.join(row.record)}",
            )
        return parts[0] if len(parts) == 1 else compose(parts)

    def _own_rubric(self, row: Row) -> Rubric | None:
        if self.column is None:
            if self._shared is not None:
                return None
            return rubric_from_row(row, format=self._format, notes=None, **self._options)
        value = row.record.get(self.column)
        if value is None and self.column in row.record:
            raise _without_rubric(row, [self.column])
        if value is None:
            hint = f"columns here: {', '.join(row.record)}"
            raise FormatError("no rubric here", source=row.source, line=row.line, field=self.column, hint=hint)
        return parse_rubric(
            value,
            format=self._format,
            source=row.source,
            line=row.line,
            field=self.column,
            notes=None,
            **self._options,
        )


def _without_rubric(row: Row, columns: Sequence[str]) -> FormatError:
    """The error for a row whose rubric columns give no rubric."""
    if all(row.record[column] is None for column in columns):
        what = "null in this row, so it has no rubric"
        hint = "fill it in, leave the row out, or give all rows one rubric with --rubric FILE"
    else:
        what = "not the only one that may hold the rubric"
        hint = f"choose one with --rubric-column: {' or '.join(columns)}"
    return FormatError(f"the column is {what}", source=row.source, line=row.line, field=columns[0], hint=hint)


def _gold(row: Row, count: int) -> Sequence[Mapping[str, bool] | None]:
    """Gold labels in the column `gold`: an object a response, criterion ids to true or false; None where absent."""
    value = row.record.get("gold")
    listed = as_array(value) if count > 1 else as_array(value) or [value]
    if listed is None or len(listed) != count:
        return [None] * count
    found: list[Mapping[str, bool] | None] = []
    for item in listed:
        labels = as_object(item)
        found.append({key: label for key, label in labels.items() if isinstance(label, bool)} if labels else None)
    return found
