"""Whether a rubric comes back from the record that a format writes, so that no format changes one silently."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.formats.base import Format, Place, formats
from rubricate.rubrics.formats.losses import some
from rubricate.rubrics.formats.reading import parse_at
from rubricate.rubrics.rubric import Group, Rubric

__all__ = ["changes", "without_nulls"]

Fields = Mapping[str, object]


def changes(rubric: Rubric, record: object, chosen: Format, place: Place) -> list[str]:
    """What of a rubric is read otherwise out of its record, in words, empty where it comes back as it was.

    Formats' marks in the metadata are no part of it; nor is what a reader adds: tags to the criterion's (an axis
    is a channel and a tag in HealthBench), and metadata that repeats its id (which RaR writes as a title). Raises
    FormatError for a record that cannot be read at all.
    """
    try:
        again = parse_at(record, Place(), chosen.name, chosen.options_of(rubric))
    except FormatError as error:
        where = f" ({error.field})" if error.field else ""
        message = f"{chosen.name} cannot hold this rubric, since nobody could read it again: {error.detail}{where}"
        raise place.error(message, hint=error.hint) from None
    return _rubric_changes(_plain(rubric, chosen), _plain(again, chosen))


def without_nulls(record: Fields, rubric: Rubric, chosen: Format) -> tuple[dict[str, object], list[str]]:
    """A record without its null fields, and the paths of these; as it was where that would change its rubric.

    A column that is null, and kept as metadata, is the same as no column; a null inside a value is not.
    """
    found: list[str] = []
    bare = _bare(record, "", found)
    fields = as_object(bare) or {}
    try:
        again = parse_at(fields, Place(), chosen.name, chosen.options_of(rubric))
    except FormatError:
        return dict(record), []
    same = _plain(rubric, chosen, nulls=False) == _plain(again, chosen, nulls=False)
    return (dict(fields), found) if same else (dict(record), [])


def _bare(value: object, path: str, found: list[str]) -> object:
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        found += [f"{path}{name}" for name, part in fields.items() if part is None]
        return {name: _bare(part, f"{path}{name}.", found) for name, part in fields.items() if part is not None}
    if listed is None:
        return value
    return [_bare(part, f"{path.removesuffix('.')}[{index}].", found) for index, part in enumerate(listed)]


def _plain(rubric: Rubric, chosen: Format, *, nulls: bool = True) -> dict[str, object]:
    """The rubric's fields, without formats' marks, and without null metadata if so asked.

    The prompt is called the same in all layouts of a format.
    """
    names = dict.fromkeys(chosen.prompts, chosen.prompt) if chosen.prompt not in rubric.metadata else {}
    marks = tuple(f"{name}:" for name in formats())

    def fields(part: Criterion | Group | Rubric, without: set[str]) -> dict[str, object]:
        metadata = {
            (names.get(name, name) if isinstance(part, Rubric) else name): value
            for name, value in part.metadata.items()
            if not name.startswith(marks) and (nulls or value is not None)
        }
        return {**part.model_dump(exclude={"metadata", *without}), "metadata": metadata}

    return fields(rubric, {"criteria", "groups"}) | {
        "criteria": [fields(criterion, set()) for criterion in rubric.criteria],
        "groups": [fields(group, set()) for group in rubric.groups],
    }


def _rubric_changes(before: Fields, after: Fields) -> list[str]:
    found = [name for name in ("id", "scope", "version") if before[name] != after[name]]
    found += [f"{name} of the rubric" for name in _metadata_changes(before, after)]
    if before["groups"] != after["groups"]:
        found.append("groups")
    changed: dict[str, list[str]] = {}
    for one, other in zip_longest(as_array(before["criteria"]) or (), as_array(after["criteria"]) or ()):
        old, new = as_object(one), as_object(other)
        if old is None or new is None:
            found.append("number of criteria")
            break
        for name in _criterion_changes(old, new):
            changed.setdefault(name, []).append(str(old["id"]))
    return [*found, *(f"{name} ({some(ids)})" for name, ids in changed.items())]


def _criterion_changes(before: Fields, after: Fields) -> list[str]:
    own, tags = as_array(before["tags"]) or (), as_array(after["tags"]) or ()
    found = [name for name in before if name not in ("metadata", "tags") and before[name] != after[name]]
    found += [] if list(tags[: len(own)]) == list(own) else ["tags"]
    return found + _metadata_changes(before, after)


def _metadata_changes(before: Fields, after: Fields) -> list[str]:
    old, new = as_object(before["metadata"]) or {}, as_object(after["metadata"]) or {}
    added = [name for name, part in new.items() if name not in old and str(part) != after["id"]]
    return [f"metadata.{name}" for name in (*(n for n in old if old[n] != new.get(n, ...)), *added)]
