"""The methods that make rubrics, by name. A new one is one line here; its module is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rubricate.errors import ConfigError
from rubricate.rubrics.generators.base import DatasetGenerator, Generator
from rubricate.rubrics.pipeline.building import Entry, Names, PartKind, build, pick
from rubricate.rubrics.pipeline.parts import Supplies

__all__ = ["METHODS", "Method", "build_method", "gathers"]

Method = Entry

_AT = "rubricate.rubrics.generators"

_PAIRS: Mapping[str, PartKind] = {"judge": "pair_judge"}

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "auto_rubric": Method(
            f"{_AT}.auto_rubric_ready:AutoRubricPairs", "proposed and revised until it predicts the pair", _PAIRS
        ),
        "auto_rubric_core": Method(
            f"{_AT}.auto_rubric_ready:AutoRubricDataset",
            "one rubric of all: a diverse few, in themes",
            _PAIRS,
            ("embedder",),
        ),
        "auto_rubric_scores": Method(
            f"{_AT}.auto_rubric_ready:AutoRubricScores", "the same by scores of ranked or labelled responses"
        ),
        "carmo": Method(f"{_AT}.dynamic:CarmoGenerator", "criteria for one query (CARMO)"),
        "checklist": Method(f"{_AT}.checklist:ChecklistGenerator", "yes/no questions, weights 0-100 (RLCF)"),
        "contrastive": Method(f"{_AT}.contrastive:ContrastiveGenerator", "from preference pairs (OpenRubrics)"),
        "hacking": Method(
            f"{_AT}.hacking:HackingGenerator", "one rubric of vetoes, from abnormally high rewards (Rubicon)"
        ),
        "merge": Method(
            f"{_AT}.merge:MergeGenerator", "one rubric of several, conflicts reported", needs=("embedder",)
        ),
        "policy": Method(f"{_AT}.policy:PolicyGenerator", "from a written policy, clause by clause"),
        "predefined": Method(f"{_AT}.reference:PredefinedGenerator", "the same four criteria for all, no model"),
        "principles": Method(f"{_AT}.dynamic:PrinciplesGenerator", "weighted principles (SPCT)"),
        "recursive": Method(f"{_AT}.recursive:RecursiveGenerator", "splits what many responses meet (RRD)"),
        "reference": Method(f"{_AT}.reference:ReferenceGenerator", "from prompt and reference answer (RaR)"),
        "rubicon": Method(f"{_AT}.synthesis:RubiconGenerator", "rubric first, by scope (Rubicon)"),
        "search": Method(f"{_AT}.search:SearchGenerator", "grounded in what a search finds (DR Tulu)"),
        "tail": Method(
            f"{_AT}.tail:TailGenerator", "rewritten on the best pair of a pool (Chasing the Tail)", needs=("judge",)
        ),
        "themes": Method(f"{_AT}.auto_rubric_themes:ThemesGenerator", "criteria of a rubric put into themes"),
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


def gathers(name: str) -> bool:
    """Whether a method makes one rubric of all rows, and none a row. Raises ConfigError for a name that is none."""
    kind = pick(METHODS, name, "method").load()
    return issubclass(kind, DatasetGenerator) and not issubclass(kind, Generator)
