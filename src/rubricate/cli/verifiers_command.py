"""The parameters of `rubricate verifiers`."""

from __future__ import annotations

from typing import Annotated

import typer

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["verifiers"]

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Explain this one, with its arguments.")]


def verifiers(name: Name = None, import_: opt.Imports = None, debug: opt.Debug = False) -> None:
    """List the code checks that decide hard rules, or explain one."""
    with reported(debug):
        from rubricate.cli.imports import import_code
        from rubricate.cli.verifier_list import explained, listed

        for module in import_ or ():
            import_code(module)
        print(listed() if name is None else explained(name))
