"""`rubricate convert`: rubrics from one format to another, with what there is to say about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rubricate.cli.summary import counted
from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics.formats import convert, formats, get_format

__all__ = ["check_format_options", "run_convert"]

SHOWN = 5
"""Notes of a kind that are shown; the rest are counted."""


def check_format_options(options: Mapping[str, str]) -> None:
    """Raises ConfigError for an option that no format has."""
    known = {name for form in formats() for name in get_format(form).options}
    for name in options.keys() - known:
        raise ConfigError(f"no format has an option {name!r}", hint=f"options: {', '.join(sorted(known))}")


def run_convert(
    source: Path, target: Path, read_as: str, write_as: str, *, lossy: bool, options: Mapping[str, str]
) -> None:
    """Convert a file and print notes. Raises FormatError and ConfigError as `rubricate.rubrics.formats.convert`."""
    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigError(f"{target} is the file to be read", hint="choose another target")
    check_format_options(options)
    try:
        done = convert(source, target, from_format=read_as, to_format=write_as, lossy=lossy, **options)
    except FormatError as error:
        if "lossy=True" in error.hint:
            error.hint = "--lossy leaves them out, with a note; the native format holds everything"
        elif "no format" in error.message:
            error.hint = f"formats: {', '.join(formats())}"
        raise
    counts = Counter[str]()
    for note in done.notes:
        counts[note.kind] += 1
        if counts[note.kind] <= SHOWN:
            print(f"note ({note.kind}): {note}", file=sys.stderr)
    for kind, count in counts.items():
        if count > SHOWN:
            print(f"note ({kind}): {count - SHOWN} more of this kind", file=sys.stderr)
    print(f"{counted(done.count, 'rubric')} read as {done.read_as}, written as {done.written_as} to {target}")
