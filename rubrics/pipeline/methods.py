"""The methods that make rubrics, by name. A new one is one line here; its module is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rubricate.errors import ConfigError
from rubricate.rubrics.generators.base import DatasetGenerator, Generator
from rubricate.rubrics.pipeline.building import Entry, Names, build, pick
from rubricate.rubrics.pipeline.parts import Supplies

__all__ = ["METHODS", "Method", "build_method"]

Method = Entry

_AT = "rubricate.rubrics.generators"

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "carmo": Method(f"{_AT}.dynamic:CarmoGenerator", "criteria for one query (CARMO)"),
        "checklist": Method(f"{_AT}.checklist:ChecklistGenerator", "yes/no questions, weights 0-100 (RLCF)"),
        "contrastive": Method(f"{_AT}.contrastive:ContrastiveGenerator", "from preference pairs (OpenRubrics)"),
        "predefined": Method(f"{_AT}.reference:PredefinedGenerator", "the same four criteria for all, no model"),
        "principles": Method(f"{_AT}.dynamic:PrinciplesGenerator", "weighted principles (SPCT)"),
        "recursive": Method(f"{_AT}.recursive:RecursiveGenerator", "splits what many responses meet (RRD)"),
        "reference": Method(f"{_AT}.reference:ReferenceGenerator", "from prompt and reference answer (RaR)"),
        "trained": Method(f"{_AT}.trained:TrainedGenerator", "a model trained to write rubrics (Rubric-RM)"),
    }
)
"""Method name to what makes it. One line a method."""


def build_method(
    name: str,
    options: Mapping[str, object],
    supplies: Supplies,
    names: Names,
    *,
    source: str = "the recipe",
    at: str = "options",
) -> Generator | DatasetGenerator:
    """The generator of that name.

    Raises ConfigError for a name, option or part that is wrong, with the nearest right one.
    """
    made = build(pick(METHODS, name, "method"), options, supplies, names, source=source, at=at)
    if not isinstance(made, Generator | DatasetGenerator):
        raise ConfigError(
            f"the method {name!r} makes no rubrics", hint="it must be a Generator or DatasetGenerator"
        )
    return made
