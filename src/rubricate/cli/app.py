"""The commands. What they do is in the modules that they import when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rubricate.cli import options as opt
from rubricate.cli.cache_command import BareCache, cache_app
from rubricate.cli.convert_command import convert
from rubricate.cli.doctor_command import doctor
from rubricate.cli.generate_command import generate
from rubricate.cli.lint_command import lint
from rubricate.cli.reporting import reported
from rubricate.cli.train_command import train_app
from rubricate.cli.verifiers_command import verifiers

__all__ = ["app"]

app = typer.Typer(
    help="Score responses against rubrics: verifiers and language-model judges in, rewards out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"rubricate {version('rubricate')}")
        except PackageNotFoundError:
            print("rubricate (not installed)")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """What is common to all commands."""


# One parameter an option: the length of this signature is that of the command's interface.
@app.command(cls=BareCache)
def score(
    data: opt.Data,
    judge: opt.Judge,
    rubric: opt.RubricFile = None,
    rubric_column: opt.RubricColumn = None,
    rubric_format: opt.RubricFormat = "auto",
    option: opt.FormatOptions = None,
    out: opt.Out = None,
    mode: opt.JudgeMode = None,
    criteria_per_call: opt.PerCall = "1",
    view: opt.Seen = opt.View.FINAL,
    aggregation: opt.Preset = None,
    missing: opt.OnMissing = None,
    min_coverage: opt.MinCoverage = None,
    on_failure: opt.ByResponse = None,
    weight_default: opt.WeightDefault = None,
    concurrency: opt.Concurrency = None,
    rpm: opt.RequestRate = None,
    tpm: opt.TokenRate = None,
    token_budget: opt.TokenBudget = None,
    budget: opt.Budget = None,
    prices: opt.Prices = None,
    deadline: opt.Deadline = None,
    cache: opt.CacheFile = None,
    record: opt.Record = None,
    page: opt.Page = None,
    page_rows: opt.PageRows = 1000,
    limit: opt.Limit = None,
    column: opt.Columns = None,
    import_: opt.Imports = None,
    restart: opt.Restart = False,
    dry_run: opt.DryRun = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Score the responses in a file.

    Writes a record with reward and verdicts for each response, in the order of the input. A run that is stopped or
    killed goes on where it stopped when the same command is given again: what is done is kept in OUT.journal.
    Responses without a reward have the value null and a failure; those whose failure does not lie in the response
    (server, rate limit, deadline, budget) are tried again when the command is run again.

    Exit codes: 0 all scored, 1 some not, 2 bad input, 130 stopped.
    """
    with reported(debug):
        from rubricate.cli.score import ScoreOptions, run_score

        chosen = ScoreOptions(
            data=data,
            judge=judge,
            out=out or Path(f"{data.name.split('.')[0]}.rewards.jsonl"),
            rubric=rubric,
            rubric_column=rubric_column,
            rubric_format=rubric_format,
            format_options=opt.read_format_options(option or ()),
            columns=opt.read_columns(column or []),
            mode=mode and mode.value,
            criteria_per_call=opt.read_per_call(criteria_per_call),
            view=view.value,
            aggregation=aggregation,
            missing=missing and missing.value,
            min_coverage=min_coverage,
            on_failure=on_failure and on_failure.value,
            weight_default=weight_default,
            imports=tuple(import_ or ()),
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            token_budget=token_budget,
            budget=budget,
            prices=opt.read_prices(prices),
            deadline=deadline,
            limit=limit,
            cache=cache,
            record=record,
            page=page,
            page_rows=page_rows,
            restart=restart,
            dry_run=dry_run,
            quiet=quiet,
        )
        raise typer.Exit(run_score(chosen))


def demo(
    out: opt.Folder = Path("out"),
    judge: opt.DemoJudge = "local:smollm2",
    no_model: opt.NoModel = False,
    debug: opt.Debug = False,
) -> None:
    """Score the bundled demo data and say how far the verdicts agree with its gold labels."""
    with reported(debug):
        from rubricate.cli.demo import run_demo

        run_demo(out, None if no_model else judge)


for _command in (convert, lint, verifiers, doctor, demo, generate):
    app.command()(_command)
app.add_typer(cache_app, name="cache")
app.add_typer(train_app, name="train")
