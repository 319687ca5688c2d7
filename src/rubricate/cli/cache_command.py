"""The parameters of `rubricate cache`, and of `--cache` where other commands have it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["BareCache", "cache_app"]

cache_app = typer.Typer(
    help="Look into the answer cache, export it, and clear it.", no_args_is_help=True, rich_markup_mode=None
)

_At = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The cache.  [default: answers.sqlite in RUBRICATE_CACHE or the user's cache folder]"
    ),
]
_Of = Annotated[str | None, typer.Option(metavar="MODEL", help="Only answers of this model: name or fingerprint.")]
_Age = Annotated[
    str | None,
    typer.Option(metavar="AGE", help="Only answers that came longer ago, as in 90s, 15m, 12h, 30d or 4w."),
]
_Sure = Annotated[bool, typer.Option("--all", help="All answers, where neither model nor age is given.")]


class BareCache(TyperCommand):
    """A command whose option `--cache` may stand without a value, for the default place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare `--cache` an empty value. Arguments after `--` are no options.

        The context's type is another in each version of typer, and so is that of its errors.
        """
        end = args.index("--") if "--" in args else len(args)
        taken = ""
        for at, argument in enumerate(args[:end]):
            if argument == "--cache" and (at + 1 >= end or args[at + 1].startswith("-")):
                args[at] = "--cache="
            elif argument == "--cache":
                taken = args[at + 1]
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if taken and type(error).__name__ == "MissingParameter":
                said = f"{taken!r} was read as the file of --cache: put DATA first, or --cache last"
                vars(error)["message"] = said
            raise


@cache_app.command()
def stats(path: _At = None, debug: opt.Debug = False) -> None:
    """Show how many answers of which models there are, their size and their age."""
    with reported(debug):
        from rubricate.cli.caching import show_stats

        show_stats(path)


@cache_app.command()
def export(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write the recording, .jsonl.")],
    path: _At = None,
    model: _Of = None,
    older_than: _Age = None,
    debug: opt.Debug = False,
) -> None:
    """Write the answers as a recording, for --judge replay:OUT or for `rubricate cache import` elsewhere."""
    with reported(debug):
        from rubricate.cli.caching import run_export

        run_export(out, path, model, older_than)


@cache_app.command(name="import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A recording, .jsonl.")],
    path: _At = None,
    debug: opt.Debug = False,
) -> None:
    """Add the answers of a recording; its errors are left out, and answers that are there already stay."""
    with reported(debug):
        from rubricate.cli.caching import run_import

        run_import(source, path)


@cache_app.command()
def clear(
    path: _At = None,
    model: _Of = None,
    older_than: _Age = None,
    everything: _Sure = False,
    debug: opt.Debug = False,
) -> None:
    """Drop answers, and give their space back to the disk."""
    with reported(debug):
        from rubricate.cli.caching import run_clear

        run_clear(path, model, older_than, everything=everything)
