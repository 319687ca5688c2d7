"""`rubricate lint` run in the process of the test."""

from __future__ import annotations

import typer
from typer.testing import CliRunner, Result

from rubricate.cli.lint_command import lint

__all__ = ["run"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(lint)


def run(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, list(arguments))
