"""The parameters of `rubricate convert`."""

from __future__ import annotations

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["convert"]


def convert(
    source: opt.Source,
    target: opt.Target,
    read_as: opt.ReadAs = "auto",
    write_as: opt.WriteAs = "native",
    option: opt.FormatOptions = None,
    lossy: opt.Lossy = False,
    debug: opt.Debug = False,
) -> None:
    """Convert rubrics from one format to another.

    What was done or looks odd is listed. Nothing is written unless every rubric could be read.
    """
    with reported(debug):
        from rubricate.cli.conversion import run_convert

        run_convert(source, target, read_as, write_as, lossy=lossy, options=opt.read_format_options(option or ()))
