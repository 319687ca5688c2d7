"""The parameters of `rubricate train`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["train_app"]

train_app = typer.Typer(help="Train judges and rubric generators.", no_args_is_help=True, rich_markup_mode=None)

_Recipe = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe's name (paper, paper-generator, small, tiny) or file.")
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the recipe, such as run.seed=1. Repeatable."),
]
_OutFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Folder of the run.  [default: runs/RECIPE]")
]
_Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")]
_JudgeFrom = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Fit a judge to your own labels: rows with prompt, response, rubric and gold, as `score` reads. "
        "They are trained on beside generated checks; a part is held out to evaluate and calibrate.",
    ),
]


@train_app.callback()
def root() -> None:
    """What is common to all trainers."""


@train_app.command()
def sft(
    recipe: _Recipe = "small",
    change: _Set = None,
    out: _OutFolder = None,
    resume: _Resume = False,
    judge_from: _JudgeFrom = None,
    debug: opt.Debug = False,
) -> None:
    """Fine-tune a model by a recipe, with TRL.

    The folder of the run holds the resolved recipe, metrics, checkpoints, a page with curves, and what was trained:
    for a judge a bundle that `rubricate score --judge bundle:DIR/judge` takes.
    """
    # Read when torch is loaded: threads that spin while they wait slow training many times on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with reported(debug):
        from rubricate.cli.training import run_sft

        run_sft(recipe, change or (), out, resume=resume, judge_from=judge_from)
