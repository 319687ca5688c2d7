"""The account of what a format cannot hold, so that nothing is left out silently."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rubricate.rubrics.criterion import BinaryScale, Polarity
from rubricate.rubrics.rubric import Rubric, Scope

__all__ = ["criterion_losses", "metadata_losses", "rubric_losses", "signed_losses", "some", "unmarked"]

_DEFAULTS: Mapping[str, object] = {
    "kind": None,
    "importance": None,
    "scale": BinaryScale(),
    "veto": False,
    "verifier": None,
    "condition": None,
    "channel": None,
    "tags": (),
    "path": (),
    "provenance": None,
}


def some(names: Sequence[str]) -> str:
    """Names in a row, five at most."""
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def criterion_losses(rubric: Rubric, held: Collection[str]) -> list[str]:
    """The set fields of criteria, apart from text, weight and polarity, that a format has no room for."""
    lost: list[str] = []
    for name, default in _DEFAULTS.items():
        ids = [c.id for c in rubric.criteria if name not in held and getattr(c, name) != default]
        if ids:
            lost.append(f"{name} ({some(ids)})")
    return lost


def rubric_losses(rubric: Rubric, held: Collection[str]) -> list[str]:
    """The same for the fields of the rubric itself."""
    lost = [] if "groups" in held or not rubric.groups else [f"groups ({some([g.id for g in rubric.groups])})"]
    if rubric.scope is not Scope.INSTANCE:
        lost.append(f"scope ({rubric.scope})")
    if rubric.version:
        lost.append(f"version ({rubric.version})")
    return lost


def metadata_losses(rubric: Rubric, fields: Collection[str], item_fields: Collection[str]) -> list[str]:
    """Metadata that has the name of one of the format's own fields, so that only one of the two can be written."""
    lost = [f"metadata.{name} of the rubric" for name in rubric.metadata if name in fields]
    for name in dict.fromkeys(name for c in rubric.criteria for name in c.metadata):
        ids = [c.id for c in rubric.criteria if name in c.metadata]
        if name in item_fields:
            lost.append(f"metadata.{name} ({some(ids)})")
    return lost


def unmarked(metadata: Mapping[str, object], marker: str) -> dict[str, object]:
    """Metadata without a format's own notes to itself, whose keys begin with `marker` (its name and a colon)."""
    return {key: value for key, value in metadata.items() if not key.startswith(marker)}


def signed_losses(rubric: Rubric) -> list[str]:
    """Penalties of weight 0: a signed number cannot say that they are penalties."""
    ids = [c.id for c in rubric.criteria if c.polarity is Polarity.PENALTY and c.weight == 0]
    return [f"polarity of weight 0 ({some(ids)})"] if ids else []
