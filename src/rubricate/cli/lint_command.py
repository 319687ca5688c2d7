"""The parameters of `rubricate lint`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["FailOn", "Kind", "Output", "lint"]


class Output(enum.StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


class FailOn(enum.StrEnum):
    """The least severity that makes the exit code 1."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


class Kind(enum.StrEnum):
    """What a file holds; see `rubricate.data.io.file_kind`."""

    JSONL = "jsonl"
    JSON = "json"
    YAML = "yaml"
    TOML = "toml"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    TEXT = "text"


Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE...", help="Rubrics, or rows with rubrics, in any format and kind of file; no folders."
    ),
]
RowColumn = Annotated[
    str | None, typer.Option("--rubric-column", metavar="NAME", help="Column of each row that holds its rubric.")
]
PromptColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column with the prompt.  [default: prompt, question, instruction, …]"),
]
FileKind = Annotated[Kind | None, typer.Option("--kind", help="What the files hold, where their names do not say.")]
Select = Annotated[
    list[str] | None,
    typer.Option(metavar="CODES", help="Run these rules only: codes, beginnings of codes, names; commas between."),
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="CODES", help="Leave these rules out.")]
FailLevel = Annotated[FailOn, typer.Option("--fail-on", help="Exit with 1 for findings from this severity on.")]
OutputForm = Annotated[Output, typer.Option("--output", help="How findings are written.")]
EmbedWith = Annotated[
    str | None,
    typer.Option("--embedder", metavar="NAME", help="Also find criteria that may mean the same: wordllama, …"),
]
Similarity = Annotated[
    float | None,
    typer.Option(metavar="X", help="Cosine of the embedder from which criteria are reported.  [default: 0.6]"),
]
AskModel = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", help="Also ask a model which criteria the prompt does not ask for."),
]
Explain = Annotated[str | None, typer.Option(metavar="CODE", help="Explain a rule, and exit.")]
ListRules = Annotated[bool, typer.Option("--list-rules", help="List all rules, and exit.")]


def lint(
    files: Files = None,
    read_as: opt.RubricFormat = "auto",
    option: opt.FormatOptions = None,
    kind: FileKind = None,
    rubric_column: RowColumn = None,
    prompt_column: PromptColumn = None,
    select: Select = None,
    ignore: Ignore = None,
    fail_on: FailLevel = FailOn.WARNING,
    output: OutputForm = Output.TEXT,
    embedder: EmbedWith = None,
    similarity: Similarity = None,
    model: AskModel = None,
    import_: opt.Imports = None,
    explain: Explain = None,
    list_rules: ListRules = False,
    debug: opt.Debug = False,
) -> None:
    """Say what is wrong with rubrics before anything is spent on them.

    Each finding has a code, a line and a fix. A criterion or rubric with {"lint": {"ignore": ["C501"]}} in its
    metadata is not reported for those rules.

    Exit codes: 0 clean, 1 findings from --fail-on on, 2 bad input.
    """
    with reported(debug):
        from rubricate.cli import linting

        if list_rules or explain is not None:
            print(linting.rule_list() if list_rules else linting.explained(explain or ""))
            return
        chosen = linting.LintOptions(
            files=tuple(files or ()),
            read_as=read_as,
            options=opt.read_format_options(option or ()),
            kind=kind.value if kind else None,
            rubric_column=rubric_column,
            prompt_column=prompt_column,
            select=linting.codes(select or ()),
            ignore=linting.codes(ignore or ()),
            fail_on=None if fail_on is FailOn.NEVER else fail_on.value,
            output=output.value,
            embedder=embedder,
            similarity=similarity,
            model=model,
            imports=tuple(import_ or ()),
        )
        raise typer.Exit(linting.run_lint(chosen))
