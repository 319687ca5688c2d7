"""The end of a generating run: hygiene of what is left, the data set, its card and figures, and the push."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rubricate.cli.journal import Journal
from rubricate.data.hygiene_columns import ColumnReport
from rubricate.data.turns import prompt_of
from rubricate.data.writing import json_text
from rubricate.errors import ConfigError, MissingExtraError
from rubricate.narrow import as_object
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.pipeline.card import Card, render_card
from rubricate.rubrics.pipeline.chain import Chain
from rubricate.rubrics.pipeline.cleaning import Cleaning, clean_rows
from rubricate.rubrics.pipeline.gathering import Gathered, gather, read_native
from rubricate.rubrics.pipeline.recipe import GenerateRecipe
from rubricate.rubrics.pipeline.report import Report
from rubricate.rubrics.pipeline.rows import WorkRow, source_of
from rubricate.rubrics.pipeline.writing import DatasetWriter
from rubricate.version import __version__

__all__ = ["Finish", "check_token", "push"]

Outcome = Mapping[str, object]
_UNREACHED: Outcome = {
    "lost": {"step": "run", "kind": "not_reached", "reason": "the run stopped before it", "again": True}
}


class Finish:
    """Writes the data set out of the journal, in the order of the input.

    The input is gone through once for the counts and once for the rows, so that memory does not grow with it.

    Args:
        recipe: what was done.
        out: the data set's folder.
        data: name of the input.
        rows: goes through the input.
        journal: holds the outcomes.
        places: where, by row.
        chain: the steps.
        before: what hygiene before generation took out.
    """

    def __init__(
        self,
        recipe: GenerateRecipe,
        out: Path,
        data: Path,
        rows: Callable[[], Iterator[WorkRow]],
        journal: Journal,
        places: array[int],
        chain: Chain,
        before: Cleaning | None,
    ) -> None:
        self.recipe = recipe
        self.out = out
        self.data = data
        self.report = Report()
        self._rows = rows
        self._journal = journal
        self._places = places
        self._chain = chain
        self._before = before
        self._after: Cleaning | None = None
        self._columns = ColumnReport()
        self._bare = not chain.steps  # nothing is made a row: the rows are there to be gathered from
        self.gathered: list[Gathered] = []

    async def gather(self) -> None:
        """Let the steps that gather see the rows that are left; those rows are then in memory."""
        self._clean()
        gatherers = self._chain.gatherers
        sources = list(self._sources()) if gatherers else []
        for label, generator in gatherers:
            self.gathered.append(await gather(label, generator, sources))

    def _sources(self) -> Iterator[Source]:
        for row, outcome in self._outcomes():
            if "lost" not in outcome:
                source = source_of(row, self.recipe.columns)
                rubric = as_object(outcome.get("rubric"))
                yield source if rubric is None else replace(source, rubrics=(read_native(rubric),))

    def _clean(self) -> None:
        if self.recipe.after is not None and self._after is None:
            self._after = clean_rows(self.recipe.after, self.recipe.columns, self._written())

    def write(self) -> Report:
        """Write everything; what is there of an earlier run gives way to it."""
        self._clean()
        self._count()
        output = self.recipe.output
        with DatasetWriter(
            self.out,
            output.format,
            self.report.splits,
            rows_per_shard=output.rows_per_shard,
            columns=self._columns.columns,
        ) as writer:
            for row, outcome in self._outcomes():
                self._write_row(writer, row, outcome)
            for made in self.gathered:
                self._write_gathered(writer, made)
            card = self._card()
            writer.text("README.md", render_card(card))
            writer.text("report.json", json_text(card.to_dict(), indent=2) + "\n")
        return self.report

    def lines(self) -> list[tuple[str, str]]:
        """Label and value of each line of the summary."""
        report = self.report
        lines = [("rows", f"{report.rows:,}"), ("with a rubric", f"{report.written:,}")]
        lines += [(f"  without: {name}", f"{count:,}") for name, count in report.lost.most_common(12)]
        if report.written:
            criteria = sum(size * count for size, count in report.criteria.items())
            lines.append(("criteria a rubric", f"{criteria / report.written:.2f}"))
        dropped = sum(report.dropped.values())
        if dropped:
            lines.append(("criteria dropped by filters", f"{dropped:,}"))
        for name, (total, count) in sorted(report.figures.items()):
            lines.append((f"  {name}", f"{total / count:.3f}"))
        for made in self.gathered:
            count = "none" if made.rubric is None else f"{len(read_native(made.rubric))} criteria"
            lines.append((f"{made.label}, of {made.rows:,} rows", count))
        used = sum((made.usage for made in self.gathered), report.usage)
        lines.append(("model calls", f"{used.calls:,}"))
        if used.calls:
            lines += [
                ("prompt tokens", f"{used.prompt_tokens:,}"),
                ("completion tokens", f"{used.completion_tokens:,}"),
            ]
        if used.cost:
            lines.append(("cost", f"{used.cost:.4f}"))
        return lines

    def _outcomes(self) -> Iterator[tuple[WorkRow, Outcome]]:
        """Each row with its outcome; rows that were taken out before or not reached have a made one."""
        held = array("q", (place for place in self._places if place >= 0))
        records = self._journal.read_many(held)
        for row, place in zip(self._rows(), self._places, strict=True):
            if place >= 0:
                yield row, self._cleaned(row, next(records), self._after)
            else:
                yield row, self._cleaned(row, {} if self._bare else _UNREACHED, self._before)

    def _cleaned(self, row: WorkRow, outcome: Outcome, cleaning: Cleaning | None) -> Outcome:
        """The outcome, or what hygiene says of the row."""
        why = None if cleaning is None else cleaning.why.get(row.number)
        if why is None:
            return outcome
        rest = {name: value for name, value in outcome.items() if name not in ("rubric", "lost")}
        return rest | {"lost": {"step": "hygiene", "kind": why[0], "reason": why[1], "again": False}}

    def _written(self) -> Iterator[WorkRow]:
        """The rows with a rubric, for hygiene."""
        return (row for row, outcome in self._outcomes() if "lost" not in outcome)

    def _part(self, row: WorkRow) -> str:
        for cleaning in (self._after, self._before):
            if cleaning is not None and len(cleaning.names) > 1:
                return cleaning.part_of(row.number)
        return self._after.names[0] if self._after else self._before.names[0] if self._before else "train"

    def _count(self) -> None:
        report = self.report
        for row, outcome in self._outcomes():
            report.rows += 1
            report.add_outcome(outcome)
            lost = as_object(outcome.get("lost"))
            if lost is not None:
                step, kind, reason = (str(lost.get(name)) for name in ("step", "kind", "reason"))
                report.lose(step, kind, reason, again=bool(lost.get("again")))
                continue
            if self._bare:
                continue
            source = source_of(row, self.recipe.columns)
            rubric = as_object(outcome.get("rubric")) or {}
            report.add_rubric(rubric, prompt_of(source.prompt), self._part(row))
            self._columns.add(self._record(row, outcome))

    def _record(self, row: WorkRow, outcome: Outcome) -> dict[str, object]:
        """The row as it is written: its columns, with an id, its origin where hygiene says it, and the rubric."""
        record = {name: value for name, value in row.record.items() if name not in ("rubric", "rubrics")}
        if not any(name in record for name in ("id", "prompt_id", "QUESTION_ID", self.recipe.columns.get("id"))):
            record = {"id": str(outcome.get("id") or row.name), **record}
        hygiene = self.recipe.after or self.recipe.before
        if hygiene is not None:
            from rubricate.data.hygiene_columns import with_origin

            record = with_origin(record, source=hygiene.source, licence=hygiene.licence)
        parts = [one for one in (self._after, self._before) if one is not None and len(one.names) > 1]
        split: dict[str, object] = {"split": self._part(row)} if parts else {}
        return record | split | {"rubric": outcome["rubric"]}

    def _write_row(self, writer: DatasetWriter, row: WorkRow, outcome: Outcome) -> None:
        name = str(outcome.get("id") or row.name)
        lost = as_object(outcome.get("lost"))
        if lost is None and self._bare:
            return
        if lost is None:
            writer.add(self._part(row), self._record(row, outcome))
        else:
            said = {key: lost.get(key) for key in ("step", "kind", "reason")}
            writer.side("dropped.jsonl", {"id": name, "row": row.number + 1, **said})
        place = {"id": name, "row": row.number + 1}
        for extra in ("extra", "traces", "flagged"):
            if outcome.get(extra) and (lost is None or extra == "extra"):
                writer.side(f"{extra}.jsonl", {**place, extra: outcome[extra]})

    def _write_gathered(self, writer: DatasetWriter, made: Gathered) -> None:
        if made.rubric is not None:
            name = "rubric.json" if len(self.gathered) == 1 else f"rubric-{made.label}.json"
            writer.text(name, json_text(made.rubric, indent=2) + "\n")
        if made.extra:
            writer.side("extra.jsonl", {"gather": made.label, "extra": made.extra})

    def _card(self) -> Card:
        return Card(
            self.recipe,
            self.report,
            self._columns.columns,
            [*self._chain.identity(), *self._chain.gather_identity()],
            {} if self._before is None else self._before.report,
            {} if self._after is None else self._after.report,
            self.data.name,
            __version__,
            [made.to_dict() for made in self.gathered],
        )


def check_token() -> None:
    """Raises ConfigError where nothing may be pushed from here, MissingExtraError without the package."""
    _hub_token()


def _hub_token() -> str:
    try:
        hub = importlib.import_module("huggingface_hub")
    except ModuleNotFoundError:
        raise MissingExtraError("huggingface_hub", extra="train") from None
    token: object = hub.get_token()
    if not isinstance(token, str) or not token:
        raise ConfigError(
            "--push needs a token of the hub, and there is none",
            hint="set HF_TOKEN to one that may write, or log in with `hf auth login`",
        )
    return token


def push(folder: Path, name: str) -> None:
    """Upload a data set's folder to the hub as the data set `OWNER/NAME`, private if it is new.

    Raises ConfigError where the hub refuses it; the folder stays as it is.
    """
    token = _hub_token()
    hub = importlib.import_module("huggingface_hub")
    try:
        hub.HfApi(token=token).create_repo(name, repo_type="dataset", private=True, exist_ok=True)
        hub.HfApi(token=token).upload_folder(repo_id=name, folder_path=str(folder), repo_type="dataset")
    except (OSError, ValueError) as error:  # the hub's errors are one or the other
        said = " ".join(str(error).split())[:200]
        raise ConfigError(f"{folder} is written, but could not be pushed to {name}: {said}") from None
    print(f"pushed: {name}")
