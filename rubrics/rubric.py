"""A rubric: weighted criteria, possibly in nested groups, with a content fingerprint."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion
from rubricate.types import fingerprint

__all__ = ["Group", "Rubric", "Scope", "compose"]


class Scope(enum.StrEnum):
    """What a rubric holds for: one prompt, a task, or a whole dataset."""

    INSTANCE = "instance"
    TASK = "task"
    DATASET = "dataset"


class Group(BaseModel):
    """An inner node of a nested rubric. Its score is the weighted mean of what it directly holds.

    Attributes:
        id: unique among the rubric's groups and criteria.
        text: title or requirement of the group.
        weight: its weight among its siblings.
        path: ids of the groups it sits in, outermost first; its own id is not part of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str = Field(min_length=1)
    text: str = ""
    weight: float = Field(default=1.0, ge=0.0)
    path: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)


class Rubric(BaseModel):
    """Weighted criteria that say what a good response to a prompt is. Frozen.

    Attributes:
        criteria: at least one, ids unique.
        groups: inner nodes, parents before children; criteria name them in `path`.
        id: name for people.
        scope: instance, task or dataset.
        version: counts up when a stored rubric changes; not part of the fingerprint.
        metadata: further fields of the source; not part of the fingerprint.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ignored_types=(cached_property,))

    criteria: tuple[Criterion, ...] = Field(min_length=1)
    groups: tuple[Group, ...] = ()
    id: str = ""
    scope: Scope = Scope.INSTANCE
    version: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("criteria")
    @classmethod
    def _unique(cls, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        twice = duplicates(criterion.id for criterion in criteria)
        if twice:
            raise ValueError(f"criterion ids must be unique; seen more than once: {', '.join(twice)}")
        return criteria

    @model_validator(mode="after")
    def _tree(self) -> Rubric:
        known: dict[str, tuple[str, ...]] = {}
        for group in self.groups:
            if group.id in known:
                raise ValueError(f"group ids must be unique; seen more than once: {group.id}")
            _check_path(group.id, group.path, known)
            known[group.id] = (*group.path, group.id)
        for criterion in self.criteria:
            if criterion.id in known:
                raise ValueError(f"{criterion.id!r} is the id of a group and of a criterion")
            _check_path(criterion.id, criterion.path, known)
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Rubric:
        """As pydantic's; the copy computes its own fingerprint."""
        copy = super().model_copy(update=update, deep=deep)
        vars(copy).pop("fingerprint", None)
        return copy

    @cached_property
    def fingerprint(self) -> str:
        """Content fingerprint: criteria and groups, without provenance, version and metadata."""
        criteria = [c.model_dump(mode="json", exclude={"provenance", "metadata"}) for c in self.criteria]
        groups = [g.model_dump(mode="json", exclude={"metadata"}) for g in self.groups]
        return fingerprint({"criteria": criteria, "groups": groups})

    @property
    def ids(self) -> tuple[str, ...]:
        """Criterion ids, in order."""
        return tuple(criterion.id for criterion in self.criteria)

    def __getitem__(self, criterion_id: str) -> Criterion:
        for criterion in self.criteria:
            if criterion.id == criterion_id:
                return criterion
        raise KeyError(criterion_id)

    def __len__(self) -> int:
        return len(self.criteria)

    def __add__(self, other: Rubric) -> Rubric:
        return compose([self, other])


def _check_path(name: str, path: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> None:
    if not path:
        return
    if path[-1] not in known:
        raise ValueError(f"{name!r} sits in the group {path[-1]!r}, which is not declared before it")
    if known[path[-1]] != path:
        raise ValueError(f"{name!r} has the path {'/'.join(path)}, its group {'/'.join(known[path[-1]])}")


def duplicates(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, each once, in order of their second occurrence."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return list(twice)


_NARROW = {Scope.DATASET: 0, Scope.TASK: 1, Scope.INSTANCE: 2}


def compose(rubrics: Sequence[Rubric]) -> Rubric:
    """One rubric out of several, such as a dataset's and an instance's: the criteria add up, in order.

    The result has the narrowest scope. Raises ConfigError when the same id stands for different criteria;
    the very same criterion in two of them is kept once.
    """
    if not rubrics:
        raise ConfigError("compose needs at least one rubric")
    criteria: dict[str, Criterion] = {}
    groups: dict[str, Group] = {}
    for rubric in rubrics:
        for group in rubric.groups:
            if groups.setdefault(group.id, group) != group:
                raise ConfigError(f"two different groups have the id {group.id!r}", hint="rename one of them")
        for criterion in rubric.criteria:
            if criteria.setdefault(criterion.id, criterion) != criterion:
                raise ConfigError(
                    f"two different criteria have the id {criterion.id!r}", hint="rename one before composing"
                )
    return Rubric(
        criteria=tuple(criteria.values()),
        groups=tuple(groups.values()),
        id="+".join(rubric.id for rubric in rubrics if rubric.id),
        scope=max((rubric.scope for rubric in rubrics), key=_NARROW.__getitem__),
        version="+".join(rubric.version for rubric in rubrics if rubric.version),
        metadata={key: value for rubric in rubrics for key, value in rubric.metadata.items()},
    )
