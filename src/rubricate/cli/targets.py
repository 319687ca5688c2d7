"""Checks where a scoring run writes: what would fail at the end is said before anything is spent."""

from __future__ import annotations

import os
from pathlib import Path

from rubricate.cli.journal import journal_path
from rubricate.cli.records import check_parquet
from rubricate.errors import ConfigError

__all__ = ["check_page", "check_record", "check_target", "exists_already"]


def check_target(out: Path, *, data: Path, rubric: Path | None, overwrite: bool) -> None:
    """Check the output file.

    Args:
        out: the output file.
        data, rubric: files that are read, and must not be written over.
        overwrite: it may be there already; with a journal beside it, it always may.

    Raises ConfigError, MissingExtraError for Parquet without its package.
    """
    if out.suffix not in (".jsonl", ".parquet"):
        raise ConfigError(f"cannot tell what to write from the name {out}", hint="use .jsonl or .parquet")
    if out.suffix == ".parquet":
        check_parquet()
    _check_place(out, "--out")
    _check_apart(out, "--out", {"the input file": data, "the file with the rubric": rubric})
    if out.exists() and not (overwrite or journal_path(out).exists()):
        raise exists_already(out)


def exists_already(out: Path) -> ConfigError:
    """The error for an output that is there, with no journal of an unfinished run beside it."""
    return ConfigError(f"{out} exists already", hint="use --restart to score anew and replace it, or another --out")


def check_page(page: Path, *, out: Path, data: Path, rubric: Path | None) -> None:
    """Check the file of the page, which takes the place of what is there. Raises ConfigError."""
    _check_place(page, "--page")
    others = {
        "the input file": data,
        "the file with the rubric": rubric,
        "the output file": out,
        "the journal of the run": journal_path(out),
    }
    _check_apart(page, "--page", others)


def check_record(record: Path, others: dict[str, Path | None], *, out: Path, overwrite: bool) -> None:
    """Check the file of the recording, which holds the whole run or is of no use.

    Args:
        record: the recording.
        others: files that it must not be, by their roles.
        out: the output file; with a journal beside it the run goes on, and the recording with it.
        overwrite: it may be there already, without a journal too.

    Raises ConfigError.
    """
    _check_place(record, "--record")
    _check_apart(
        record, "--record", {**others, "the output file": out, "the journal of the run": journal_path(out)}
    )
    begun = record.exists() and record.stat().st_size > 0
    if overwrite or begun == journal_path(out).exists():
        return
    if begun:
        raise ConfigError(
            f"{record} exists already", hint="use --restart to record anew and replace it, or another --record"
        )
    raise ConfigError(
        f"{journal_path(out)} holds rows of a run that was not recorded in {record}",
        hint="use --restart to score and record them all, or leave --record out",
    )


def _check_place(path: Path, option: str) -> None:
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist", hint="create it first")
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, not a file", hint=f"name a file in it with {option}")
    target = Path(os.path.realpath(path))
    if (target.is_file() or not target.exists()) and not os.access(target.parent, os.W_OK):
        raise ConfigError(f"nothing can be written to the folder {path.parent}", hint=f"choose another {option}")


def _check_apart(path: Path, option: str, others: dict[str, Path | None]) -> None:
    for role, other in others.items():
        if other is not None and _same(path, other):
            raise ConfigError(f"{path} is {role}", hint=f"choose another {option}")


def _same(one: Path, other: Path) -> bool:
    """Whether two names are one file, or would be once it is written."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
