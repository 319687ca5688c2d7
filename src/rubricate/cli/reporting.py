"""What is common to all commands: errors of this package as a line and a hint, and exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer

from rubricate.errors import RubricateError

__all__ = ["reported"]


class _WithoutTraceback(logging.Formatter):
    def formatException(self, ei: object) -> str:  # noqa: N802 - the name is logging's
        return ""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).rstrip()


@contextmanager
def reported(debug: bool) -> Generator[None, None, None]:
    """Errors of this package as one line and a hint, exit code 2; a stop by Ctrl-C as exit code 130."""
    handler = logging.StreamHandler()
    handler.setFormatter((logging.Formatter if debug else _WithoutTraceback)("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    try:
        yield
    except RubricateError as error:
        if debug:
            raise
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
