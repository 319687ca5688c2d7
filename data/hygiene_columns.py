"""Columns of a data set: which hold licence and source, what each column means, and what is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rubricate.data.columns import COLUMNS, RUBRIC_COLUMNS
from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_number, as_object

__all__ = [
    "LICENCE_COLUMNS",
    "SOURCE_COLUMNS",
    "Column",
    "ColumnReport",
    "describe_columns",
    "licence_of",
    "source_of",
    "with_origin",
]

LICENCE_COLUMNS = ("license", "licence")
"""Columns that hold a row's licence."""

SOURCE_COLUMNS = ("source", "question_source", "data_source", "dataset")
"""Columns that hold where a row comes from."""

_MEANINGS = {
    **{name: "the prompt that responses answer, as text or messages" for name in COLUMNS["prompt"]},
    **{name: "text put before the prompt as a system turn" for name in COLUMNS["system"]},
    **{name: "a response to the prompt" for name in COLUMNS["response"]},
    **{name: "several responses to the prompt" for name in COLUMNS["responses"]},
    **{name: "a reference answer" for name in COLUMNS["reference"]},
    **{name: "name of the row" for name in COLUMNS["id"]},
    **{name: "how generation of the response ended" for name in COLUMNS["finish"]},
    **{name: "the rubric: weighted criteria for responses to the prompt" for name in RUBRIC_COLUMNS},
    **{name: "licence of the row" for name in LICENCE_COLUMNS},
    **{name: "where the row comes from" for name in SOURCE_COLUMNS},
    "chosen": "the preferred response of a pair",
    "rejected": "the other response of a pair",
    "split": "part of the data set that the row belongs to, by its prompt",
}
_DISTINCT = 50  # values of a column that are counted; a column with more is no label


def _first(record: Mapping[str, object], names: Iterable[str]) -> str | None:
    found = (record[name] for name in names if name in record)
    return next((text for value in found if isinstance(value, str) and (text := value.strip())), None)


def licence_of(record: Mapping[str, object]) -> str | None:
    """The row's licence, None where no column says it: it is then unknown, not free."""
    return _first(record, LICENCE_COLUMNS)


def source_of(record: Mapping[str, object]) -> str | None:
    """Where the row comes from, None where no column says it."""
    return _first(record, SOURCE_COLUMNS)


def with_origin(
    record: Mapping[str, object], *, source: str | None = None, licence: str | None = None
) -> dict[str, object]:
    """The row with the columns `source` and `license`, which every row of a written data set has.

    What the row says of itself stays; where it says nothing, the given values stand, or None for unknown. All other
    columns are carried through as they are.
    """
    carried = dict(record)
    own_source, own_licence = source_of(record), licence_of(record)
    carried["source"] = own_source if own_source is not None else source
    carried["license"] = own_licence if own_licence is not None else licence
    return carried


@dataclass
class Column:
    """What is known of a column.

    Attributes:
        name: the column's name.
        meaning: what it holds; "" where nobody said so.
        rows: rows that have it, null included.
        missing: rows that have it with null or an empty text.
        types: JSON types of its other values, with how often each occurs.
        shortest, longest, characters: least, greatest and total length of its texts, in characters; None and 0
            where it has none.
        low, high: least and greatest number; None where there is none.
        values: its texts and how often each occurs, where there are at most 50 different ones; else None.
    """

    name: str
    meaning: str = ""
    rows: int = 0
    missing: int = 0
    types: Counter[str] = field(default_factory=Counter[str])
    shortest: int | None = None
    longest: int | None = None
    characters: int = 0
    low: float | None = None
    high: float | None = None
    values: Counter[str] | None = field(default_factory=Counter[str])

    def add(self, value: object) -> None:
        """Take a value into account."""
        self.rows += 1
        if value is None or value == "":
            self.missing += 1
            return
        self.types[_type_of(value)] += 1
        number = as_number(value)
        if isinstance(value, str):
            self._add_text(value)
        elif number is not None:
            self.low = number if self.low is None else min(self.low, number)
            self.high = number if self.high is None else max(self.high, number)

    def _add_text(self, text: str) -> None:
        length = len(text)
        self.characters += length
        self.shortest = length if self.shortest is None else min(self.shortest, length)
        self.longest = length if self.longest is None else max(self.longest, length)
        if self.values is not None:
            self.values[text[:200]] += 1
            if len(self.values) > _DISTINCT:
                self.values = None

    def to_dict(self) -> dict[str, object]:
        """Plain JSON-ready values, for a data set's card."""
        return {
            "name": self.name,
            "meaning": self.meaning,
            "rows": self.rows,
            "missing": self.missing,
            "types": dict(self.types),
            "shortest": self.shortest,
            "longest": self.longest,
            "characters": self.characters,
            "low": self.low,
            "high": self.high,
            "values": dict(self.values.most_common()) if self.values else None,
        }


class ColumnReport:
    """Describes the columns of rows that pass by, in memory that does not grow with them.

    Args:
        meanings: what columns hold, by name; those of this package's own columns are known.
    """

    def __init__(self, meanings: Mapping[str, str] | None = None) -> None:
        self._meanings = {**_MEANINGS, **(meanings or {})}
        self._found: dict[str, Column] = {}
        self.rows = 0

    def add(self, record: Mapping[str, object]) -> None:
        """Take a row into account."""
        self.rows += 1
        for name, value in record.items():
            column = self._found.get(name)
            if column is None:
                column = self._found[name] = Column(name, self._meanings.get(name, ""))
            column.add(value)

    @property
    def columns(self) -> list[Column]:
        """The columns, in the order in which they first occurred."""
        return list(self._found.values())

    def check(self) -> None:
        """Raises ConfigError, naming them, where columns have no documented meaning."""
        bare = [column.name for column in self.columns if not column.meaning]
        if bare:
            raise ConfigError(
                f"nothing says what these columns hold: {', '.join(bare)}", hint="give meanings={column: text}"
            )


def describe_columns(
    records: Iterable[Mapping[str, object]], meanings: Mapping[str, str] | None = None
) -> list[Column]:
    """What the columns of some rows hold."""
    found = ColumnReport(meanings)
    for record in records:
        found.add(record)
    return found.columns


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if as_array(value) is not None:
        return "list"
    return "object" if as_object(value) is not None else type(value).__name__
