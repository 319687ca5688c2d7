"""Command line of rubricate."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 some responses unscored, 2 bad input, 130 stopped.

    Args:
        arguments: what follows the program's name; None takes those of the process.
    """
    from rubricate.cli.app import app

    app(args=None if arguments is None else list(arguments), prog_name="rubricate")
