"""Generators of rubrics: from prompts, references, preference pairs and candidates to weighted criteria.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubricate.lazy import lazy_names

if TYPE_CHECKING:  # the same names for type checkers, which do not follow __getattr__
    from rubricate.rubrics.generators.asking import AskOptions
    from rubricate.rubrics.generators.base import (
        DatasetGenerator,
        Generated,
        Generator,
        GeneratorNote,
        Need,
        NoteKind,
    )
    from rubricate.rubrics.generators.cached import PromptRubrics
    from rubricate.rubrics.generators.checklist import ChecklistGenerator
    from rubricate.rubrics.generators.dynamic import CarmoGenerator, PrinciplesGenerator
    from rubricate.rubrics.generators.model import ModelGenerator
    from rubricate.rubrics.generators.reference import PredefinedGenerator, ReferenceGenerator, generic_rubric
    from rubricate.rubrics.generators.source import (
        SOURCE_COLUMNS,
        Source,
        read_sources,
        source_from_record,
        source_from_row,
    )
    from rubricate.rubrics.generators.trained import TrainedGenerator, read_rubric_text

_HOME = {
    "AskOptions": "rubricate.rubrics.generators.asking",
    "CarmoGenerator": "rubricate.rubrics.generators.dynamic",
    "ChecklistGenerator": "rubricate.rubrics.generators.checklist",
    "DatasetGenerator": "rubricate.rubrics.generators.base",
    "Generated": "rubricate.rubrics.generators.base",
    "Generator": "rubricate.rubrics.generators.base",
    "GeneratorNote": "rubricate.rubrics.generators.base",
    "ModelGenerator": "rubricate.rubrics.generators.model",
    "Need": "rubricate.rubrics.generators.base",
    "NoteKind": "rubricate.rubrics.generators.base",
    "PredefinedGenerator": "rubricate.rubrics.generators.reference",
    "PrinciplesGenerator": "rubricate.rubrics.generators.dynamic",
    "PromptRubrics": "rubricate.rubrics.generators.cached",
    "ReferenceGenerator": "rubricate.rubrics.generators.reference",
    "SOURCE_COLUMNS": "rubricate.rubrics.generators.source",
    "Source": "rubricate.rubrics.generators.source",
    "TrainedGenerator": "rubricate.rubrics.generators.trained",
    "generic_rubric": "rubricate.rubrics.generators.reference",
    "read_rubric_text": "rubricate.rubrics.generators.trained",
    "read_sources": "rubricate.rubrics.generators.source",
    "source_from_record": "rubricate.rubrics.generators.source",
    "source_from_row": "rubricate.rubrics.generators.source",
}

__all__ = [
    "SOURCE_COLUMNS",
    "AskOptions",
    "CarmoGenerator",
    "ChecklistGenerator",
    "DatasetGenerator",
    "Generated",
    "Generator",
    "GeneratorNote",
    "ModelGenerator",
    "Need",
    "NoteKind",
    "PredefinedGenerator",
    "PrinciplesGenerator",
    "PromptRubrics",
    "ReferenceGenerator",
    "Source",
    "TrainedGenerator",
    "generic_rubric",
    "read_rubric_text",
    "read_sources",
    "source_from_record",
    "source_from_row",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
