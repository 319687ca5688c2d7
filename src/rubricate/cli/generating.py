"""`rubricate generate`: the run from options to a data set, its card, a summary and an exit code."""

from __future__ import annotations

import asyncio
import sys
import time
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from rubricate.cli.backing import Bounds
from rubricate.cli.generating_estimate import Sample, estimate_costs
from rubricate.cli.generating_finish import Finish, check_token, push
from rubricate.cli.generating_parts import Workshop
from rubricate.cli.imports import import_code
from rubricate.cli.journal import Journal, journal_path
from rubricate.cli.preflight import load_in_process
from rubricate.cli.progress import Step, progress
from rubricate.cli.summary import counted, table
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.pipeline.chain import Chain
from rubricate.rubrics.pipeline.cleaning import Cleaning, clean_rows
from rubricate.rubrics.pipeline.engine import Engine, LocalEngine
from rubricate.rubrics.pipeline.recipe import GenerateRecipe
from rubricate.rubrics.pipeline.rows import WorkRow, dataset_rows
from rubricate.rubrics.pipeline.writing import check_folder, check_packages, sweep
from rubricate.types import FailureKind, fingerprint

__all__ = ["GenerateOptions", "run_generate"]

AT_ONCE = 32
"""Rows in work at once where the caller says nothing."""

HOPELESS = 20
"""The run stops when so many rows, or twice as many as are in work, failed in a row by no fault of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """The options of `rubricate generate`; see its help."""

    data: Path
    out: Path
    recipe: GenerateRecipe
    recipe_name: str = "the recipe"
    bounds: Bounds = field(default_factory=Bounds)
    engine: str = "local"
    answers: Path | None = None
    imports: tuple[str, ...] = ()
    limit: int | None = None
    push: str | None = None
    restart: bool = False
    dry_run: bool = False
    quiet: bool = False

    @property
    def answers_path(self) -> Path:
        """Where models' answers are kept: in the file named, else beside the output until it is written."""
        return self.answers or self.out.with_name(f"{self.out.name}.answers.sqlite")

    def rows(self) -> Iterator[WorkRow]:
        """The rows of the input."""
        return islice(dataset_rows(self.data), self.limit)


def engine_of(name: str) -> Engine:
    """The engine of that name. Raises ConfigError."""
    if name == "local":
        return LocalEngine()
    raise ConfigError(f"there is no engine {name!r}", hint="use local")


@dataclass(slots=True)
class _Survey:
    """What the input holds.

    Attributes:
        rows: all rows.
        unfit: rows that can never have a rubric, by reason.
        sample: rows to estimate from, without unfit ones and those that hygiene took out.
        cleaning: what hygiene before generation found.
    """

    rows: int = 0
    unfit: dict[str, int] = field(default_factory=dict[str, int])
    sample: Sample = field(default_factory=Sample)
    cleaning: Cleaning | None = None

    @property
    def given(self) -> int:
        """Rows that the steps are to see."""
        return self.rows - (len(self.cleaning.why) if self.cleaning else 0)


def run_generate(options: GenerateOptions) -> int:
    """Make a data set of rubrics. Returns the exit code: 0, or 1 where it is not complete, or has no rows.

    Raises RubricateError for bad input or options, KeyboardInterrupt when stopped; the journal then holds what is
    done.
    """
    for name in options.imports:
        import_code(name)
    recipe = options.recipe
    engine = engine_of(options.engine)
    _check(options)
    workshop = Workshop(recipe, options.bounds, None if options.dry_run else options.answers_path)
    if options.restart and not options.dry_run and options.answers is None:
        _remove_answers(options.answers_path)
    chain = Chain(recipe, workshop, source=options.recipe_name)
    _check_budget(options, workshop)
    before = _stamp(options.data)
    survey = _survey(options, chain)
    _say_estimate(options, survey)
    if options.dry_run:
        return 0
    for model in workshop.models.values():
        asyncio.run(load_in_process(model))
    began = time.monotonic()
    settings: dict[str, object] = {
        "command": "generate",
        "columns": dict(recipe.columns),
        "steps": {f"step {place}": step for place, step in enumerate(chain.identity(), start=1)},
    }
    with Journal(journal_path(options.out), settings, restart=options.restart) as journal:
        sweep(options.out)
        if len(journal) and not options.quiet:
            print(f"going on with {journal.path}: {counted(len(journal), 'row')} done", file=sys.stderr)
        run = _Run(options, chain, journal, survey, workshop)
        finish = Finish(
            recipe, options.out, options.data, options.rows, journal, run.places, chain, survey.cleaning
        )
        try:
            asyncio.run(_work(run, engine, finish))
        except (KeyboardInterrupt, asyncio.CancelledError):
            journal.sync()
            hint = f"stopped; what is done is in {journal.path}. Run the same command again to go on."
            print(hint, file=sys.stderr)
            raise KeyboardInterrupt from None
        finally:
            workshop.close_answers()
        if _stamp(options.data) != before:
            raise FormatError(
                "the data was changed while it was worked on",
                source=str(options.data),
                hint="run the same command again: rows that are the same are not done again",
            )
        report = finish.write()
        print(table([*finish.lines(), ("seconds", f"{time.monotonic() - began:.1f}")]))
        print(f"\nwritten: {options.out} ({options.out / 'README.md'} says what is in it)")
        code = _close(options, journal, report.again, run.stopped)
    if options.push:
        push(options.out, options.push)
    return code if report.written or any(made.rubric for made in finish.gathered) else 1


async def _work(run: _Run, engine: Engine, finish: Finish) -> None:
    """The rows, and once all are done what is made of all of them."""
    try:
        await run.go(engine)
        if not run.incomplete:
            await finish.gather()
    finally:
        await run.aclose()


def _check(options: GenerateOptions) -> None:
    """Raises for what would fail at the end: folder, packages, token."""
    check_folder(options.out)
    check_packages(options.recipe.output.format)
    if options.push:
        check_token()
    begun = journal_path(options.out).exists()
    full = options.out.exists() and any(options.out.iterdir())
    if full and not (begun or options.restart or options.dry_run):
        raise ConfigError(
            f"{options.out} exists already", hint="use --restart to begin anew and replace it, or another --out"
        )


def _check_budget(options: GenerateOptions, workshop: Workshop) -> None:
    """Raises ConfigError for one budget of several models, whose limits know nothing of each other."""
    bounds = options.bounds
    if (bounds.budget is not None or bounds.token_budget is not None) and len(_names(options, workshop)) > 1:
        raise ConfigError(
            "there are several models, and one budget",
            hint="give each model its own in the recipe: models: {writer: {name: ..., budget: ...}}",
        )


def _names(options: GenerateOptions, workshop: Workshop) -> set[str]:
    return {options.recipe.settings_of(name.removesuffix("#judge")).name for name in workshop.models}


def _stamp(data: Path) -> list[tuple[str, int, int]]:
    """Tells whether the data is still the same. Raises ConfigError for what cannot be read twice."""
    if data.exists() and not (data.is_file() or data.is_dir()):
        raise ConfigError(
            f"{data} is a pipe or device, and the data is read more than once", hint="save it to a file"
        )
    files = [data] if data.is_file() else sorted(path for path in data.rglob("*") if path.is_file())
    return [(str(path), found.st_size, found.st_mtime_ns) for path in files for found in [path.stat()]]


def _remove_answers(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _survey(options: GenerateOptions, chain: Chain) -> _Survey:
    """Read every row once: what cannot be read, or can never have a rubric, is known before anything is spent."""
    found = _Survey()
    if options.recipe.before is not None:
        found.cleaning = clean_rows(options.recipe.before, options.recipe.columns, options.rows())
    for row in options.rows():
        found.rows += 1
        if found.cleaning is not None and not found.cleaning.keeps(row.number):
            continue
        why = chain.check(row)
        if why:
            found.unfit[why] = found.unfit.get(why, 0) + 1
        else:
            found.sample.add(row)
    for why, count in found.unfit.items():
        print(f"note: {counted(count, 'row')} cannot have a rubric: {why}", file=sys.stderr)
    if found.given and not found.sample.seen:
        raise ConfigError(
            f"no row of {options.data} can have a rubric: {next(iter(found.unfit))}",
            hint="--column ROLE=NAME says which column plays a role; see rubricate.rubrics.generators.source",
        )
    return found


def _say_estimate(options: GenerateOptions, survey: _Survey) -> None:
    """What the run will ask at least: on standard output where nothing else is done, else beside the progress."""
    if options.quiet and not options.dry_run:
        return
    workshop = Workshop(options.recipe, options.bounds, None, counting=True)
    chain = Chain(options.recipe, workshop, source=options.recipe_name)
    costs = estimate_costs(chain, workshop, survey.sample)
    lines = [("rows", f"{survey.rows:,}")]
    if survey.cleaning is not None:
        lines.append(("  taken out by hygiene", f"{len(survey.cleaning.why):,}"))
    if survey.unfit:
        lines.append(("  without what the method needs", f"{sum(survey.unfit.values()):,}"))
    lines += costs.lines()
    print(table(lines), file=sys.stdout if options.dry_run else sys.stderr)
    budget = options.bounds.budget
    if budget is not None and costs.money is not None and budget < costs.money[0]:
        print(f"note: the budget of {budget:g} is below the least that this costs", file=sys.stderr)


class _Run:
    """Runs the steps over the rows that the journal does not hold yet, and commits each outcome.

    Attributes:
        places: where the journal holds the outcome of each row, -1 for none (8 bytes a row).
        stopped: why the run ended early, "" where it did not.
        incomplete: it did, or rows failed by no fault of theirs.
    """

    def __init__(
        self, options: GenerateOptions, chain: Chain, journal: Journal, survey: _Survey, workshop: Workshop
    ) -> None:
        self.places = array("q", [-1]) * survey.rows
        self.stopped = ""
        self.incomplete = False
        self._options = options
        self._chain = chain
        self._journal = journal
        self._survey = survey
        self._workshop = workshop
        self._at_once = options.bounds.concurrency or AT_ONCE
        self._open: dict[int, tuple[str, int | None]] = {}
        self._lost = self._criteria = self._failed = self._fine = 0

    async def go(self, engine: Engine) -> None:
        """Until all rows have an outcome, or the run has to stop. Raises ConfigError where all is refused."""
        chain = self._chain
        if not chain.steps:
            return
        groups = max(1, self._at_once // chain.group)
        try:
            with progress(
                self._survey.given,
                quiet=self._options.quiet,
                doing="generating",
                items="rows",
                more=self._more,
            ) as step:
                async with aclosing(engine.run(chain, self._groups(step), at_once=groups)) as done:
                    async for rows, outcomes in done:
                        for row, outcome in zip(rows, outcomes, strict=True):
                            self._commit(row, outcome)
                            step(1)
        except asyncio.CancelledError:
            print("\nstopping, waiting for calls in flight…", file=sys.stderr, flush=True)
            raise

    async def aclose(self) -> None:
        """Release clients and models."""
        await self._chain.aclose()

    async def _groups(self, step: Step) -> AsyncIterator[Sequence[WorkRow]]:
        """Rows that are to be done, as many together as the steps want to see."""
        group: list[WorkRow] = []
        cleaning = self._survey.cleaning
        for count, row in enumerate(self._options.rows(), start=1):
            if cleaning is not None and not cleaning.keeps(row.number):
                continue
            key = _key(row)
            found = self._journal.take(key)
            if found is not None and not found[1]:
                self.places[row.number] = found[0]
                self._fine += 1
                step(1, before=True)
            elif not self.stopped:
                self._open[row.number] = key, found[0] if found else None
                group.append(row)
            if len(group) == self._chain.group:
                yield group
                group = []
            if count % 500 == 0:
                await asyncio.sleep(0)  # answers that came meanwhile are read
        if group and not self.stopped:
            yield group

    def _commit(self, row: WorkRow, outcome: Mapping[str, object]) -> None:
        key, replaces = self._open.pop(row.number)
        lost = as_object(outcome.get("lost"))
        again = bool(lost and lost.get("again"))
        self.places[row.number] = self._journal.append(key, outcome, retry=again, replaces=replaces)
        self._lost += lost is not None
        self._criteria += len(as_array(outcome.get("dropped")) or ())
        if lost is None or not again:
            self._failed = 0
            self._fine += 1
            return
        self._failed += 1
        self.incomplete = True
        self._judge_failure(str(lost.get("kind")), str(lost.get("reason")))

    def _judge_failure(self, kind: str, reason: str) -> None:
        """Whether to go on after a row that failed by no fault of its own."""
        said = " ".join(reason.split())
        if kind == FailureKind.BUDGET.value:
            self.stopped = self.stopped or f"the budget would be passed: {said}"
        if not self._fine and kind == FailureKind.REQUEST.value and self._failed >= HOPELESS:
            raise ConfigError(
                f"the model refused each of the first {self._failed} rows: {said}",
                hint="check the key, the model's name and the server's address, then run the same command again",
            )
        if self._failed >= max(HOPELESS, 2 * self._at_once):
            self.stopped = self.stopped or f"the last {self._failed} rows all failed: {said}"

    def _more(self) -> str:
        """Cost so far and what was dropped, for the progress."""
        used = self._workshop.usage
        parts = [f"cost {used.cost:.4f}"] if used.cost else []
        if not used.cost and used.prompt_tokens:
            parts = [f"{used.prompt_tokens + used.completion_tokens:,} tokens"]
        if self._lost:
            parts.append(f"{self._lost} without a rubric")
        if self._criteria:
            parts.append(f"{self._criteria} criteria dropped")
        return ", ".join(parts)


def _key(row: WorkRow) -> str:
    """Identifies a row by its content."""
    return fingerprint(["generate", dict(row.record)])


def _close(options: GenerateOptions, journal: Journal, again: int, stopped: str) -> int:
    """Remove what is of no further use, and say what another run would do. Returns the exit code."""
    if stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
    if again:
        print(
            f"run the same command again to try the other {counted(again, 'row')} (from {journal.path})",
            file=sys.stderr,
        )
        return 1
    beyond = journal.untaken if options.limit is not None else 0
    if beyond:
        print(f"{beyond} rows beyond --limit stay in {journal.path}, for a run without it", file=sys.stderr)
    else:
        journal.discard()
        if options.answers is None:
            _remove_answers(options.answers_path)
    return 0
