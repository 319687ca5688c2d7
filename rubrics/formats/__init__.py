"""Formats of rubrics: native, RaR, HealthBench, PaperBench, Prometheus; reading, writing and converting them.

A format of your own is a `Format`, made known with `register_format`.
"""

from rubricate.rubrics.formats import (
    advancedif,
    drtulu,
    flat,
    healthbench,
    multichallenge,
    native,
    openinstruct,
    openrubrics,
    paperbench,
    prometheus,
    rar,
    rbr,
    rlcf,
    rubrichub,
    rubricjudge,
    tail,
)
from rubricate.rubrics.formats.base import (
    Format,
    Note,
    Options,
    Place,
    detect,
    formats,
    get_format,
    register_format,
)
from rubricate.rubrics.formats.paperbench import graded_scores, graded_verdicts
from rubricate.rubrics.formats.reading import (
    Imported,
    load_rubric,
    load_rubrics,
    parse_rubric,
    rubric_from_row,
)
from rubricate.rubrics.formats.writing import Converted, convert, dump_rubrics, save_rubrics

__all__ = [
    "Converted",
    "Format",
    "Imported",
    "Note",
    "Options",
    "Place",
    "convert",
    "detect",
    "dump_rubrics",
    "formats",
    "get_format",
    "graded_scores",
    "graded_verdicts",
    "load_rubric",
    "load_rubrics",
    "parse_rubric",
    "register_format",
    "rubric_from_row",
    "save_rubrics",
]

for _module in (
    advancedif,
    drtulu,
    flat,
    healthbench,
    multichallenge,
    native,
    openinstruct,
    openrubrics,
    paperbench,
    prometheus,
    rar,
    rbr,
    rlcf,
    rubrichub,
    rubricjudge,
    tail,
):
    register_format(_module.FORMAT)
