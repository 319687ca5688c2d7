"""From rows of prompts to a data set of rubrics: recipes of steps, the engines that run them, shards and the card.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubricate.lazy import lazy_names

if TYPE_CHECKING:  # the same names for type checkers, which do not follow __getattr__
    from rubricate.rubrics.pipeline.chain import Chain
    from rubricate.rubrics.pipeline.engine import Engine, LocalEngine, Stage
    from rubricate.rubrics.pipeline.filtering import FILTERS
    from rubricate.rubrics.pipeline.methods import METHODS, Method, build_method
    from rubricate.rubrics.pipeline.parts import Supplies
    from rubricate.rubrics.pipeline.recipe import GenerateRecipe, load_generate_recipe
    from rubricate.rubrics.pipeline.rows import WorkRow, dataset_rows
    from rubricate.rubrics.pipeline.writing import DatasetWriter

_HOME = {
    "Chain": "rubricate.rubrics.pipeline.chain",
    "DatasetWriter": "rubricate.rubrics.pipeline.writing",
    "Engine": "rubricate.rubrics.pipeline.engine",
    "FILTERS": "rubricate.rubrics.pipeline.filtering",
    "GenerateRecipe": "rubricate.rubrics.pipeline.recipe",
    "LocalEngine": "rubricate.rubrics.pipeline.engine",
    "METHODS": "rubricate.rubrics.pipeline.methods",
    "Method": "rubricate.rubrics.pipeline.methods",
    "Stage": "rubricate.rubrics.pipeline.engine",
    "Supplies": "rubricate.rubrics.pipeline.parts",
    "WorkRow": "rubricate.rubrics.pipeline.rows",
    "build_method": "rubricate.rubrics.pipeline.methods",
    "dataset_rows": "rubricate.rubrics.pipeline.rows",
    "load_generate_recipe": "rubricate.rubrics.pipeline.recipe",
}

__all__ = [
    "FILTERS",
    "METHODS",
    "Chain",
    "DatasetWriter",
    "Engine",
    "GenerateRecipe",
    "LocalEngine",
    "Method",
    "Stage",
    "Supplies",
    "WorkRow",
    "build_method",
    "dataset_rows",
    "load_generate_recipe",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
