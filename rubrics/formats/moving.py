"""What a rubric needs on its way to another format: its prompt in place, and no notes of the old format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rubricate.data.columns import COLUMNS
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Format, Note, formats, get_format
from rubricate.rubrics.rubric import Rubric

__all__ = ["moved"]

_ANY = ("native", "flat")
"""Formats that hold rubrics of every other, marks and prompt columns included."""

Fields = Mapping[str, object]


def moved(
    rubrics: Sequence[Rubric], source: Format, target: Format, notes: list[Note], path: str = ""
) -> list[Rubric]:
    """Rubrics read in one format, made ready to be written in another.

    The prompt goes to the target's column, as text or messages as that wants, where this loses nothing: a text is
    a message of the user, and the reverse. What the source keeps in the metadata for itself, under `NAME:`, is left
    out, with one note in all. Native rubrics keep everything, so that they can go back.
    """
    if source == target or target.name == "native":
        return list(rubrics)
    dropped: dict[str, None] = {}
    made = [_unmarked(_with_prompt(rubric, source, target), _marks(source, target), dropped) for rubric in rubrics]
    if dropped:
        message = f"left out, as only its own format reads it: {', '.join(dropped)}; native keeps it"
        notes.append(Note("layout", message, path))
    return made


def _marks(source: Format, target: Format) -> tuple[str, ...]:
    names = formats() if source.name in _ANY else [source.name]
    return tuple(f"{name}:" for name in names if name not in ("native", target.name))


def _unmarked(rubric: Rubric, marks: tuple[str, ...], dropped: dict[str, None]) -> Rubric:
    """The rubric without the metadata under these marks, whose keys are added to `dropped`.

    Nor do criteria keep their ids twice, as formats do in which ids may be missing.
    """

    def kept(metadata: Fields) -> dict[str, dict[str, object]]:
        dropped.update(dict.fromkeys(name for name in metadata if name.startswith(marks)))
        return {"metadata": {name: part for name, part in metadata.items() if not name.startswith(marks)}}

    criteria = tuple(
        c.model_copy(update=kept({key: part for key, part in c.metadata.items() if key != "id" or part != c.id}))
        for c in rubric.criteria
    )
    groups = tuple(g.model_copy(update=kept(g.metadata)) if g.metadata else g for g in rubric.groups)
    return rubric.model_copy(update={"criteria": criteria, "groups": groups} | kept(rubric.metadata))


# Prompts


def _with_prompt(rubric: Rubric, source: Format, target: Format) -> Rubric:
    """The rubric with its prompt under the name of the target, where it has one that fits; all else as it was."""
    metadata = rubric.metadata
    if not target.prompt or target.prompt in metadata or _has_own(metadata, source, target):
        return rubric
    for name, value in _prompts(metadata, source):
        shaped = _shaped(value, target.messages)
        if shaped is not None:
            rest = {key: part for key, part in metadata.items() if key != name}
            return rubric.model_copy(update={"metadata": {target.prompt: shaped} | rest})
    return rubric


def _has_own(metadata: Fields, source: Format, target: Format) -> bool:
    """Whether the prompt stands already where the target has it in another layout of its own."""
    if source.name not in _ANY and target.name not in _ANY:
        return False
    other = any(name in metadata for name in target.prompts)
    return other or any(name.startswith(f"{target.name}:") for name in metadata)


def _prompts(metadata: Fields, source: Format) -> Iterator[tuple[str, object]]:
    """Columns that hold a prompt and their values, the source's own first; then what it keeps of its cells."""
    every = [name for other in map(get_format, formats()) for name in (other.prompt, *other.prompts)]
    own = (source.prompt, *source.prompts)
    names = dict.fromkeys([*own, *COLUMNS["prompt"], *(every if source.name in _ANY else ())])
    yield from ((name, metadata[name]) for name in names if name in metadata)
    marks = (f"{source.name}:",) if source.name not in _ANY else tuple(f"{name}:" for name in formats())
    cells = [as_object(part) or {} for key, part in metadata.items() if key.startswith(marks)]
    yield from (("", cell[name]) for cell in cells for name in names if name in cell)


def _shaped(value: object, messages: bool | None) -> object:
    """A prompt as messages or as a text, or either; None where it cannot be that without loss."""
    listed = [as_object(item) for item in as_array(value) or ()]
    turns = [turn for turn in listed if turn is not None and "role" in turn]
    if isinstance(value, str) and value.strip():
        return [{"role": "user", "content": value}] if messages else value
    if not turns or len(turns) != len(listed):
        return None
    if messages is not False:
        return value
    content = turns[0].get("content")
    alone = len(turns) == 1 and set(turns[0]) == {"role", "content"} and turns[0]["role"] == "user"
    return content if alone and isinstance(content, str) and content.strip() else None
