"""Options of the commands, each with its help, and the readers of those that are small languages."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rubricate.errors import ConfigError

__all__ = [
    "Budget",
    "ByResponse",
    "CacheFile",
    "Columns",
    "Concurrency",
    "Data",
    "Deadline",
    "Debug",
    "DemoJudge",
    "DryRun",
    "Folder",
    "FormatOptions",
    "Imports",
    "Judge",
    "JudgeMode",
    "Limit",
    "Lossy",
    "MinCoverage",
    "Missing",
    "Mode",
    "NoModel",
    "OnFailure",
    "OnMissing",
    "Out",
    "Page",
    "PageRows",
    "PerCall",
    "Preset",
    "Prices",
    "Quiet",
    "ReadAs",
    "Record",
    "RequestRate",
    "Restart",
    "RubricColumn",
    "RubricFile",
    "RubricFormat",
    "Seen",
    "Source",
    "Target",
    "TokenBudget",
    "TokenRate",
    "View",
    "WeightDefault",
    "WriteAs",
    "read_columns",
    "read_format_options",
    "read_per_call",
    "read_prices",
]


class Mode(enum.StrEnum):
    """How the judge works; see `rubricate.judges.build_judge`."""

    LOGPROB = "logprob"
    REASONED = "reasoned"
    HOLISTIC = "holistic"
    LIKERT = "likert"


class Missing(enum.StrEnum):
    """What an unknown verdict does; see `rubricate.rewardmodels.Aggregation`."""

    MASK = "mask"
    SKIP = "skip"
    PESSIMISTIC = "pessimistic"


class OnFailure(enum.StrEnum):
    """What a failed verdict does that the response caused."""

    MASK = "mask"
    FLOOR = "floor"


class View(enum.StrEnum):
    """What judges see of a response."""

    FINAL = "final"
    TRAJECTORY = "trajectory"


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Rows with a prompt and a response, or a list of responses.")
]
Judge = Annotated[
    str,
    typer.Option(
        metavar="MODEL",
        help="The judge's model: openai:NAME, http://HOST:PORT/v1#NAME, local:smollm2, local:/DIR, mock:yes, "
        "replay:FILE; bundle:NAME or bundle:DIR for a saved judge; none for verifiers alone.",
    ),
]
RubricFile = Annotated[Path | None, typer.Option(metavar="FILE", help="File with one rubric for every row.")]
RubricColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column with each row's rubric; it adds up with --rubric.  [default: rubric, without --rubric]",
    ),
]
RubricFormat = Annotated[
    str, typer.Option("--from", metavar="FORMAT", help="Format of the rubrics; auto recognises it.")
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Output, .jsonl or .parquet.  [default: DATA's name + .rewards.jsonl]"),
]
JudgeMode = Annotated[
    Mode | None,
    typer.Option(help="How the judge works.  [default: logprob for local: and mock:p=X, else reasoned]"),
]
PerCall = Annotated[str, typer.Option(metavar="N", help="Criteria a call in reasoned mode, or 'all'.")]
Seen = Annotated[View, typer.Option(help="What judges see of a response.")]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How verdicts become a reward: weighted, rar, healthbench, dr_tulu, tail and others.  "
        "[default: weighted; rar_implicit in the modes holistic and likert]",
    ),
]
OnMissing = Annotated[
    Missing | None, typer.Option(help="What an unknown verdict does.  [default: the preset's, mostly mask]")
]
MinCoverage = Annotated[
    float | None,
    typer.Option(metavar="X", help="Share of the weight that must be known, with --missing skip or pessimistic."),
]
WeightDefault = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="X",
        help="Weight of criteria without an importance, for presets that weigh by it, such as rar.  "
        "[default: they are an error]",
    ),
]
ByResponse = Annotated[
    OnFailure | None, typer.Option(help="What a failure does that the response caused.  [default: mask]")
]
Concurrency = Annotated[int | None, typer.Option(min=1, metavar="N", help="Responses, and calls, at once.")]
RequestRate = Annotated[float | None, typer.Option(metavar="N", help="Requests a minute at most.")]
TokenRate = Annotated[float | None, typer.Option(metavar="N", help="Tokens a minute at most.")]
TokenBudget = Annotated[int | None, typer.Option(metavar="N", help="Tokens in all at most.")]
Budget = Annotated[float | None, typer.Option(metavar="MONEY", help="Money in all at most; needs --prices.")]
Prices = Annotated[
    str | None,
    typer.Option(metavar="P,C", help="Money for a million prompt and completion tokens, as in 0.25,2.00."),
]
Deadline = Annotated[float | None, typer.Option(metavar="S", help="Seconds for one response at most.")]
Page = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write an HTML page of the verdicts; it replaces a file of that name."),
]
PageRows = Annotated[int, typer.Option(min=1, metavar="N", help="Responses on the page at most.")]
CacheFile = Annotated[
    str | None,
    typer.Option(
        metavar="[FILE]",
        help="Keep the model's answers, and look there first: what was answered once is not paid for again. "
        "[default FILE: answers.sqlite in RUBRICATE_CACHE or the user's cache folder]",
    ),
]
Record = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Record the model's answers and errors (.jsonl); --judge replay:FILE plays them without the model.",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Score the first N rows only.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=NAME", help="Column that plays a role: prompt, response, responses, reference, id."),
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE_OR_FILE",
        help="Python module, or file ending in .py, to import first: it may register verifiers with @verifier. "
        "Can be given several times.",
    ),
]
Restart = Annotated[bool, typer.Option("--restart", help="Throw earlier results away and score anew.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the input; estimate calls and tokens.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE", help="Rubrics: .jsonl, .json, .yaml, .toml, .csv, .tsv, .parquet, .txt or .md."
    ),
]
Target = Annotated[
    Path,
    typer.Argument(metavar="TARGET", help="Where to write them; the name's ending says in which kind of file."),
]
ReadAs = Annotated[str, typer.Option("--from", metavar="FORMAT", help="Format of SOURCE; auto recognises it.")]
WriteAs = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="FORMAT",
        help="Format of TARGET: native, flat, rar, healthbench, openrubrics, drtulu, openinstruct, tail, "
        "rubrichub, rlcf, prometheus, paperbench, advancedif, multichallenge, rubricjudge, rbr.",
    ),
]
FormatOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the format that is read, such as weights=paper for rar. May be repeated.",
    ),
]
Lossy = Annotated[bool, typer.Option("--lossy", help="Leave out what the target format cannot hold.")]

Folder = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the page and the records.")]
DemoJudge = Annotated[str, typer.Option(metavar="MODEL", help="The judge's model.")]
NoModel = Annotated[bool, typer.Option("--no-model", help="Verifiers alone, without a model.")]


def read_columns(values: Sequence[str]) -> dict[str, str]:
    """`--column` options as role and column. Raises ConfigError for what is not ROLE=NAME."""
    return _pairs(values, "--column", "ROLE=NAME", "prompt=question")


def read_format_options(values: Sequence[str]) -> dict[str, str]:
    """`--option` of formats as name and value. Raises ConfigError for what is not NAME=VALUE."""
    return _pairs(values, "--option", "NAME=VALUE", "weights=paper")


def _pairs(values: Sequence[str], option: str, form: str, example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for value in values:
        name, equals, given = value.partition("=")
        if not equals or not name or not given:
            raise ConfigError(f"{option} {value!r} is not {form}", hint=f"as in {option} {example}")
        pairs[name] = given
    return pairs


def read_prices(value: str | None) -> tuple[float, float] | None:
    """`--prices` as money for a million prompt and completion tokens. Raises ConfigError."""
    if value is None:
        return None
    try:
        prompt, completion = (float(part) for part in value.split(","))
    except ValueError:
        hint = "as in --prices 0.25,2.00"
        raise ConfigError(f"--prices {value!r} is not PROMPT,COMPLETION", hint=hint) from None
    return prompt, completion


def read_per_call(value: str) -> int | None:
    """`--criteria-per-call` as a number, None for all. Raises ConfigError."""
    if value == "all":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise ConfigError(f"--criteria-per-call {value!r} is neither a number from 1 nor 'all'")
    return int(value)
