"""The parameters of `rubricate generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["generate"]

_In = Annotated[
    Path,
    typer.Option(
        "--in",
        metavar="DATA",
        help="Rows with a prompt and what the method needs: a file, a folder of shards, or a `datasets` folder.",
    ),
]
_Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder of the data set.")]
_Method = Annotated[
    str | None, typer.Option(metavar="NAME", help="The method, such as reference, contrastive or checklist.")
]
_Recipe = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A recipe of several steps, in place of --method.")
]
_Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="The model that writes, as openai:NAME or http://HOST:PORT/v1#NAME."),
]
_Judge = Annotated[
    str | None, typer.Option(metavar="MODEL", help="The model that judges in filters.  [default: the model]")
]
_Embedder = Annotated[str | None, typer.Option(metavar="NAME", help="The embedder.  [default: wordllama]")]
_Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the method, as least=5. Repeatable."),
]
_Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="NAME", help="A filter after the method, as form or leakage. Repeatable."),
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe, as steps.0.options.least=5."),
]
_Format = Annotated[
    str | None,
    typer.Option("--format", metavar="KIND", help="What is written: jsonl, parquet or datasets.  [default: jsonl]"),
]
_Shard = Annotated[int | None, typer.Option(min=1, metavar="N", help="Rows of a shard at most.  [default: 10000]")]
_Engine = Annotated[str, typer.Option(metavar="NAME", help="What runs it: local.")]
_Answers = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep the models' answers there for other runs, and count what they cost in the budget.  "
        "[default: beside OUT, until it is written]",
    ),
]
_Push = Annotated[
    str | None, typer.Option(metavar="OWNER/NAME", help="Upload the data set to the hub, where HF_TOKEN is set.")
]
_Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="The first N rows only.")]
_Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME", help="Column that plays a role: prompt, reference, chosen, rejected, ranked, id."
    ),
]


# One parameter an option: the length of this signature is that of the command's interface.
def generate(
    data: _In,
    out: _Out,
    method: _Method = None,
    model: _Model = None,
    recipe: _Recipe = None,
    judge: _Judge = None,
    embedder: _Embedder = None,
    option: _Options = None,
    filter_: _Filters = None,
    change: _Set = None,
    output: _Format = None,
    rows_per_shard: _Shard = None,
    column: _Columns = None,
    concurrency: opt.Concurrency = None,
    rpm: opt.RequestRate = None,
    tpm: opt.TokenRate = None,
    token_budget: opt.TokenBudget = None,
    budget: opt.Budget = None,
    prices: opt.Prices = None,
    engine: _Engine = "local",
    answers: _Answers = None,
    limit: _Limit = None,
    push: _Push = None,
    import_: opt.Imports = None,
    restart: opt.Restart = False,
    dry_run: opt.DryRun = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Make a data set of rubrics from rows of prompts, by a method or a recipe of several steps.

    The folder holds the rows that have a rubric, in shards, with a card; dropped.jsonl says why the others have
    none. A run that is stopped or killed goes on where it stopped when the same command is given again.

    Exit codes: 0 done, 1 not complete (budget, server) or nothing written, 2 bad input, 130 stopped.
    """
    with reported(debug):
        from rubricate.cli.backing import Bounds
        from rubricate.cli.generating import GenerateOptions, run_generate
        from rubricate.rubrics.pipeline.recipe import load_generate_recipe

        given = _fields(method, recipe, option or (), filter_ or ())
        given |= {
            name: value for name, value in (("model", model), ("judge", judge), ("embedder", embedder)) if value
        }
        name = str(recipe) if recipe else "the options"
        changes = list(change or ())
        changes += [f"output.format={output}"] if output else []
        changes += [f"output.rows_per_shard={rows_per_shard}"] if rows_per_shard else []
        if column:
            given["columns"] = {**_mapping(given.get("columns")), **opt.read_columns(column)}
        chosen = GenerateOptions(
            data=data,
            out=out,
            recipe=load_generate_recipe(given, changes, source=name),
            recipe_name=name,
            bounds=Bounds(
                concurrency=concurrency,
                rpm=rpm,
                tpm=tpm,
                token_budget=token_budget,
                budget=budget,
                prices=opt.read_prices(prices),
            ),
            engine=engine,
            answers=answers,
            imports=tuple(import_ or ()),
            limit=limit,
            push=push,
            restart=restart,
            dry_run=dry_run,
            quiet=quiet,
        )
        raise typer.Exit(run_generate(chosen))


def _mapping(value: object) -> Mapping[str, object]:
    from rubricate.narrow import as_object

    return as_object(value) or {}


def _fields(
    method: str | None, recipe: Path | None, option: Sequence[str], filters: Sequence[str]
) -> dict[str, object]:
    """The recipe's fields: those of the file, or of the one step that the options describe. Raises ConfigError."""
    from rubricate.errors import ConfigError
    from rubricate.rubrics.pipeline.methods import gathers
    from rubricate.rubrics.pipeline.settings import read_fields, read_value

    if (method is None) == (recipe is None):
        raise ConfigError(
            "give a method or a recipe, one of them", hint="as in --method reference, or --recipe FILE"
        )
    if recipe is not None:
        if option or filters:
            raise ConfigError("--option and --filter go with --method", hint="use --set with a recipe")
        return read_fields(recipe)
    pairs: dict[str, object] = {}
    for value in option:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise ConfigError(f"--option {value!r} is not NAME=VALUE", hint="as in --option least=5")
        pairs[name] = read_value(text, value)
    made = {"gather" if gathers(method or "") else "generate": method, "options": pairs}
    listed: list[object] = [{"filter": name} for name in filters]
    return {"steps": [*listed, made] if "gather" in made else [made, *listed]}
