"""The filters of rubrics, by name, and what a filter sees of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import combinations
from types import MappingProxyType
from typing import cast

from rubricate.data.records import Preference, Rollout
from rubricate.rubrics.filters import Case, Filter, FormRules
from rubricate.rubrics.generators.source import Source, text_of
from rubricate.rubrics.pipeline.building import Entry, Names, build, pick
from rubricate.rubrics.pipeline.parts import Supplies
from rubricate.rubrics.rubric import Rubric

__all__ = ["FILTERS", "GROUPS", "build_filter", "case_of"]

_AT = "rubricate.rubrics.filters"

FILTERS: Mapping[str, Entry] = MappingProxyType(
    {
        "correctness": Entry(
            f"{_AT}.pools:Correctness", "criteria that go with correctness (RLCER)", needs=("judge",)
        ),
        "discrimination": Entry(
            f"{_AT}.pools:Discrimination", "criteria that tell responses apart", needs=("judge",)
        ),
        "form": Entry(f"{_AT}.rules:Form", "counts, lengths, weights, copies"),
        "label_consistency": Entry(
            f"{_AT}.consistency:LabelConsistency",
            "rubrics by which a judge names the preferred response (OpenRubrics)",
            {"judge": "pair_judge"},
        ),
        "leakage": Entry(f"{_AT}.rules:Leakage", "criteria that quote the reference answer"),
        "misalignment": Entry(
            f"{_AT}.answers:Misalignment", "criteria that a weak response passes and a strong fails"
        ),
        "redundancy": Entry(f"{_AT}.redundancy:Redundancy", "criteria that say the same", needs=("embedder",)),
        "self_contained": Entry(f"{_AT}.rules:SelfContained", "criteria that can be judged alone"),
        "validity": Entry(f"{_AT}.answers:Validity", "criteria that are valid (RLAC)"),
    }
)
"""Filter name to what makes it. One line a filter."""

GROUPS: Mapping[str, int] = MappingProxyType({"label_consistency": 16})
"""Filters that compare rows with one another, and how many they see together; the others look at one row."""

_FORM_RULES = frozenset(one.name for one in fields(FormRules))


def build_filter(
    name: str,
    options: Mapping[str, object],
    supplies: Supplies,
    names: Names,
    *,
    source: str = "the recipe",
    at: str = "options",
) -> Filter:
    """The filter of that name. The rules of `form` may stand among its options.

    Raises ConfigError for a name, option or part that is wrong, with the nearest right one.
    """
    entry = pick(FILTERS, name, "filter")
    if name == "form":
        rules = {key: value for key, value in options.items() if key in _FORM_RULES}
        rest = {key: value for key, value in options.items() if key not in _FORM_RULES}
        options = rest | ({"rules": rules} if rules else {})
    return cast("Filter", build(entry, options, supplies, names, source=source, at=at))


def case_of(rubric: Rubric, source: Source) -> Case:
    """What a filter sees of a row: its pairs (those that its ranking induces, where it has no other), its responses
    as a pool, its labels as correctness, and the ends of its ranking, labels or pair as strong and weak response.
    """
    responses = source.candidates if source.labels else source.responses
    pool = tuple(source.rollouts(responses))
    correct = tuple(source.labels) if source.labels and all(0.0 <= label <= 1.0 for label in source.labels) else ()
    weak, strong = _ends(source, pool)
    return Case(
        rubric,
        source.prompt,
        source.reference,
        id=source.id,
        pairs=source.pairs or _induced(source),
        pool=pool,
        correct=correct,
        weak=weak,
        strong=strong,
    )


def _induced(source: Source) -> tuple[Preference, ...]:
    texts = [text_of(response) for response in source.ranked]
    return tuple(
        Preference(source.prompt, better, worse, source.reference, source.id)
        for better, worse in combinations(texts, 2)
        if better != worse
    )


def _ends(source: Source, pool: tuple[Rollout, ...]) -> tuple[Rollout | None, Rollout | None]:
    """The weak and the strong response, None where nothing ranks them."""
    if source.pairs:
        weak, strong = source.rollouts([source.pairs[0].rejected, source.pairs[0].chosen])
        return weak, strong
    if len(source.ranked) > 1:
        weak, strong = source.rollouts([source.ranked[-1], source.ranked[0]])
        return weak, strong
    if source.labels and min(source.labels) < max(source.labels):
        order = sorted(range(len(pool)), key=source.labels.__getitem__)
        return pool[order[0]], pool[order[-1]]
    return None, None
