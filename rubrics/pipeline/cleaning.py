"""Hygiene of all rows in one pass: which stay, which part each belongs to, and why the others went."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rubricate.data.hygiene import Cleaner, Removed
from rubricate.data.hygiene_benchmarks import Benchmark, Decontaminator
from rubricate.data.hygiene_duplicates import Deduplicator
from rubricate.rubrics.pipeline.recipe import HygieneSettings
from rubricate.rubrics.pipeline.rows import WorkRow, dataset_rows, source_of

__all__ = ["Cleaning", "clean_rows", "make_cleaner"]


@dataclass(slots=True)
class Cleaning:
    """What a pass of hygiene found.

    Attributes:
        parts: for each row by its number the part it belongs to, -1 for one that was taken out or not given.
        names: names of the parts.
        why: rule and reason of each row that was taken out, by its number.
        report: counts, JSON-ready.
    """

    parts: array[int] = field(default_factory=lambda: array("b"))
    names: tuple[str, ...] = ("train",)
    why: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    report: Mapping[str, object] = field(default_factory=dict[str, object])

    def keeps(self, number: int) -> bool:
        """Whether the row stays."""
        return number < len(self.parts) and self.parts[number] >= 0

    def part_of(self, number: int) -> str:
        """The part of a row that stays."""
        return self.names[self.parts[number]]


def make_cleaner(settings: HygieneSettings, columns: Mapping[str, str]) -> Cleaner:
    """The cleaner of these settings. Raises ConfigError, and FormatError for a benchmark that cannot be read."""
    prompt_roles = {role: name for role, name in columns.items() if role in ("prompt", "system")}
    found = [_benchmark(name, path) for name, path in settings.benchmarks.items()]
    return Cleaner(
        deduplicator=None
        if settings.duplicates == "off"
        else Deduplicator(threshold=settings.threshold, near=settings.duplicates == "near"),
        decontaminator=Decontaminator(found) if found else None,
        splits=settings.splits,
        seed=settings.seed if settings.splits else 0,
        source=settings.source,
        licence=settings.licence,
        columns=prompt_roles,
    )


def _benchmark(name: str, path: str) -> Benchmark:
    return Benchmark(name, tuple(dict.fromkeys(source_of(row, {}).task for row in dataset_rows(path))), path)


def clean_rows(settings: HygieneSettings, columns: Mapping[str, str], rows: Iterable[WorkRow]) -> Cleaning:
    """Go through rows in order. Raises FormatError for a row without a prompt, ConfigError for wrong settings."""
    cleaner = make_cleaner(settings, columns)
    names = tuple(settings.splits or {"train": 1.0})
    found = Cleaning(names=names)
    numbers = array("q")

    def given() -> Iterator[Mapping[str, object]]:
        for row in rows:
            numbers.append(row.number)
            yield row.record

    for cleaned in cleaner.clean(given()):
        number = numbers[cleaned.row]
        found.parts.extend([-1] * (number + 1 - len(found.parts)))
        if cleaned.removed is None:
            found.parts[number] = names.index(cleaned.split) if cleaned.split else 0
        else:
            found.why[number] = _why(cleaned.removed, numbers)
    found.report = cleaner.report.to_dict()
    return found


def _why(removed: Removed, numbers: array[int]) -> tuple[str, str]:
    if removed.duplicate is None:
        return removed.rule, removed.reason
    like = "it has the prompt of" if removed.rule == "exact_duplicate" else "its prompt is nearly that of"
    return removed.rule, f"{like} row {numbers[removed.duplicate.of] + 1}"
