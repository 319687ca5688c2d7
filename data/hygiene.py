"""Data-set hygiene in one pass: duplicates and benchmark items out, split by prompt, licence and source kept."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rubricate.bridge import run_sync
from rubricate.data.columns import Columns, read_prompt
from rubricate.data.hygiene_benchmarks import Decontaminator, Overlap
from rubricate.data.hygiene_columns import ColumnReport, licence_of, with_origin
from rubricate.data.hygiene_duplicates import Deduplicator, Duplicate
from rubricate.data.hygiene_split import check_shares, split_of
from rubricate.data.turns import prompt_of
from rubricate.errors import ConfigError, FormatError

__all__ = ["Cleaned", "Cleaner", "HygieneReport", "Removed"]

_BATCH = 1024


@dataclass(frozen=True, slots=True)
class Removed:
    """Why a row was taken out.

    Attributes:
        rule: `exact_duplicate`, `near_duplicate` or `contaminated`.
        reason: one sentence.
        duplicate, overlap: what it repeats (row numbers count all rows given), or what it holds of a benchmark.
    """

    rule: Literal["exact_duplicate", "near_duplicate", "contaminated"]
    reason: str
    duplicate: Duplicate | None = None
    overlap: Overlap | None = None


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A row after hygiene.

    Attributes:
        row: its number among the rows given, from 0.
        record: the row with all its columns, and `source`, `license` and, where rows are split, `split`.
        split: the part it belongs to, "" where rows are not split.
        removed: why it was taken out; None where it stays.
    """

    row: int
    record: dict[str, object]
    split: str = ""
    removed: Removed | None = None


@dataclass
class HygieneReport:
    """Counts of a pass.

    Attributes:
        rows, kept: rows given, and rows left.
        removed: rows by the rule that took them out.
        benchmarks: contaminated rows by benchmark.
        splits: rows left by part.
        licences: rows left by licence, `unknown` where no column says it.
        shortened: comparisons in which near duplicates may have been missed (see `Deduplicator`).
        columns: what the columns of the rows left hold.
    """

    rows: int = 0
    kept: int = 0
    removed: Counter[str] = field(default_factory=Counter[str])
    benchmarks: Counter[str] = field(default_factory=Counter[str])
    splits: Counter[str] = field(default_factory=Counter[str])
    licences: Counter[str] = field(default_factory=Counter[str])
    shortened: int = 0
    columns: ColumnReport = field(default_factory=ColumnReport)

    def to_dict(self) -> dict[str, object]:
        """Plain JSON-ready values, for a data set's card."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "removed": dict(self.removed),
            "benchmarks": dict(self.benchmarks),
            "splits": dict(self.splits),
            "licences": dict(self.licences),
            "shortened": self.shortened,
            "columns": [column.to_dict() for column in self.columns.columns],
        }


class Cleaner:
    """Cleans rows in one pass, a batch at a time.

    Contaminated rows are taken out first, and are nothing that a later row could repeat; then duplicate prompts.

    Args:
        deduplicator: finds duplicates by prompt, and remembers rows of earlier calls; None leaves them in.
        decontaminator: finds benchmark items in prompts; None looks for none.
        splits: part to share, as in `split_of`; None leaves rows unsplit.
        seed: of the split.
        source, licence: for rows that do not say their own.
        columns: role to column where a name is not accepted, as in `rubricate.data.columns`.
        meanings: what columns hold, for the report.

    Attributes:
        report: counts of all rows so far.

    Raises ConfigError for shares that are none.
    """

    def __init__(
        self,
        *,
        deduplicator: Deduplicator | None = None,
        decontaminator: Decontaminator | None = None,
        splits: Mapping[str, float] | None = None,
        seed: int | str = 0,
        source: str | None = None,
        licence: str | None = None,
        columns: Mapping[str, str] | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> None:
        if splits is not None:
            check_shares(splits)
        if seed != 0 and splits is None:
            raise ConfigError("a seed without splits does nothing", hint="give splits={'train': 0.9, 'test': 0.1}")
        self.deduplicator = deduplicator
        self.decontaminator = decontaminator
        self.splits = splits
        self.seed = seed
        self.source = source
        self.licence = licence
        self.columns = columns or {}
        self.report = HygieneReport(columns=ColumnReport(meanings))

    def clean(self, records: Iterable[Mapping[str, object]]) -> Iterator[Cleaned]:
        """Every row, in order, those taken out with the reason. Reads one batch ahead.

        Raises FormatError, naming the row's number, for a row without a prompt; and what an embedder raises.
        """
        given = iter(records)
        while batch := list(itertools.islice(given, _BATCH)):
            yield from run_sync(self._batch(batch))

    async def aclean(self, records: Iterable[Mapping[str, object]]) -> AsyncIterator[Cleaned]:
        """As `clean`, for async callers."""
        given = iter(records)
        while batch := list(itertools.islice(given, _BATCH)):
            for one in await self._batch(batch):
                yield one
            await asyncio.sleep(0)

    async def _batch(self, batch: list[Mapping[str, object]]) -> list[Cleaned]:
        first = self.report.rows
        prompts = [self._prompt(record, first + place) for place, record in enumerate(batch)]
        found: list[Overlap | None] = [None] * len(batch)
        if self.decontaminator is not None:
            found = await self.decontaminator.find_many(prompts)
        return [
            self._cleaned(record, prompt, overlap)
            for record, prompt, overlap in zip(batch, prompts, found, strict=True)
        ]

    def _prompt(self, record: Mapping[str, object], row: int) -> str:
        try:
            prompt, _ = read_prompt(Columns(record, self.columns), response=False)
        except FormatError as error:
            raise FormatError(error.detail, source=f"row {row}", field=error.field, hint=error.hint) from error
        return prompt_of(prompt)

    def _cleaned(self, record: Mapping[str, object], prompt: str, overlap: Overlap | None) -> Cleaned:
        report = self.report
        row = report.rows
        report.rows += 1
        carried = with_origin(record, source=self.source, licence=self.licence)
        removed = self._removed(prompt, overlap)
        if removed is not None:
            report.removed[removed.rule] += 1
            if removed.overlap is not None:
                report.benchmarks[removed.overlap.benchmark] += 1
            return Cleaned(row, carried, removed=removed)
        split = "" if self.splits is None else split_of(prompt, self.splits, seed=self.seed)
        if split:
            carried["split"] = split
            report.splits[split] += 1
        report.kept += 1
        report.licences[licence_of(carried) or "unknown"] += 1
        report.columns.add(carried)
        return Cleaned(row, carried, split)

    def _removed(self, prompt: str, overlap: Overlap | None) -> Removed | None:
        # Rows are numbered by the deduplicator, so that contaminated ones have to be counted there too.
        if overlap is not None:
            if self.deduplicator is not None:
                self.deduplicator.skip()
            where = f"item {overlap.item} of {overlap.benchmark}"
            return Removed("contaminated", f"it holds {where} ({overlap.rule})", overlap=overlap)
        if self.deduplicator is None:
            return None
        found = self.deduplicator.add(prompt)
        self.report.shortened = self.deduplicator.shortened
        if found is None:
            return None
        if found.kind == "exact":
            return Removed("exact_duplicate", f"it has the prompt of row {found.of}", found)
        return Removed("near_duplicate", f"its prompt is nearly that of row {found.of}", found)
