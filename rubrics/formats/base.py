"""What a format is, the registry of formats, and the place in a source that errors and notes speak of."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as factory

from rubricate.data.values import Path, field_name
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.rubric import Rubric

__all__ = ["Format", "Note", "Options", "Place", "candidates", "detect", "formats", "get_format", "register_format"]

Options = Mapping[str, str]


def _never(text: str) -> bool:
    return False


def _no_options(rubric: Rubric) -> Options:
    return {}


def _no_list(items: Sequence[object]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader or writer of rubrics did, or noticed, and that is no error.

    Attributes:
        kind: `duplicate_id`, `polarity`, `weights`, `layout`, `unknown_field` or `lossy`.
        message: one sentence for people.
        source, line, field: where, as in FormatError.
        criterion_id: the criterion or group it is about, where it is about one.
    """

    kind: str
    message: str
    source: str = ""
    line: int | None = None
    field: str = ""
    criterion_id: str = ""

    def __str__(self) -> str:
        return str(FormatError(self.message, source=self.source, line=self.line, field=self.field))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source a value stands; makes errors and collects notes.

    Attributes:
        source: file name, or what stands for it.
        line: line of the record, None where there is none.
        path: keys and indices from the record to the value.
        notes: list that notes are added to, shared by all places of one reading.
        find: gives the line of a path more exactly, where the file is a document of many lines.
        marks: where each criterion of the rubric being read stands, by id; shared by all its places.
        rows: the path begins with the number of a row among those of one rubric; the line says which it is.
    """

    source: str = ""
    line: int | None = None
    path: Path = ()
    notes: list[Note] = factory(default_factory=list[Note])
    find: Callable[[Path], int | None] | None = None
    marks: dict[str, Place] = factory(default_factory=dict[str, "Place"])
    rows: bool = False

    def at(self, *parts: str | int) -> Place:
        """The place of a part of this value."""
        return dataclasses.replace(self, path=(*self.path, *parts))

    @property
    def field(self) -> str:
        """The path as people write it, such as `criteria[3].weight`; the column alone where rows are criteria."""
        return field_name(self.path[1:] if self.rows and isinstance(next(iter(self.path), ""), int) else self.path)

    def exact_line(self) -> int | None:
        """The line of this very value, or of its record where the source is no document of many lines."""
        found = self.find(self.path) if self.find is not None else None
        return self.line if found is None else found

    def error(self, message: str, *, hint: str = "") -> FormatError:
        """An error about the value at this place, to be raised."""
        return FormatError(message, source=self.source, line=self.exact_line(), field=self.field, hint=hint)

    def note(self, kind: str, message: str, *, criterion_id: str = "") -> None:
        """Add a note about the value at this place."""
        self.notes.append(Note(kind, message, self.source, self.exact_line(), self.field, criterion_id))


@dataclass(frozen=True, slots=True)
class Format:
    """A format of rubrics.

    Attributes:
        name: what users call it.
        shape: how a record looks, in a few words.
        is_record: whether an object looks like a rubric of this format. It is about shape, not validity: what
            looks like it is read by `parse`, whose errors say what is wrong.
        is_item: whether an object looks like one criterion in a bare list of them.
        parse: a rubric out of a record or a bare list of criteria; raises FormatError.
        dump: the record of a rubric; raises FormatError for what cannot be said in this format at all.
        losses: what `dump` would leave out, in words, empty where nothing is lost.
        options: names of the options that `parse` takes.
        options_of: the options with which the record of a rubric is read as that rubric.
        is_text: whether a plain text looks like a rubric of this format; `parse` then takes the text.
        is_list: whether a list of other things than objects, such as pairs, looks like a rubric of this format.
        prompt: the field of a record that holds the prompt, "" where the format has none.
        prompts: the fields that hold it in other layouts of the format, or inside a cell.
        messages: the prompt is a list of chat messages, not a text; None where it may be either.
        texts: columns that hold texts in CSV, whatever their cells look like; JSON text in them is not opened.
        numbers: columns that hold numbers in CSV, besides `weight` and `points`.
        gather: which rows of a file belong together, as lists of their indices, where each row is one criterion of
            a rubric; None where a row is a rubric. Rows that look like such a format look like no other.
        spread: the rows of several records of such a format, and the order of the columns.
    """

    name: str
    shape: str
    is_record: Callable[[Mapping[str, object]], bool]
    is_item: Callable[[Mapping[str, object]], bool]
    parse: Callable[[object, Place, Options], Rubric]
    dump: Callable[[Rubric, Place], dict[str, object]]
    losses: Callable[[Rubric], list[str]]
    options: tuple[str, ...] = ()
    options_of: Callable[[Rubric], Options] = _no_options
    is_text: Callable[[str], bool] = _never
    is_list: Callable[[Sequence[object]], bool] = _no_list
    prompt: str = ""
    prompts: tuple[str, ...] = ()
    messages: bool | None = False
    texts: Collection[str] = ()
    numbers: Collection[str] = ()
    gather: Callable[[Sequence[Mapping[str, object]], Place], list[list[int]]] | None = None
    spread: Callable[[Sequence[Mapping[str, object]]], tuple[list[dict[str, object]], list[str]]] | None = None

    @property
    def takes_text(self) -> bool:
        """Whether some plain text is a rubric of this format."""
        return self.is_text is not _never

    def fits(self, value: object) -> bool:
        """Whether a record, a bare list of criteria, or a text looks like this format."""
        if isinstance(value, str):
            return self.is_text(value)
        fields, listed = as_object(value), as_array(value)
        if fields is not None:
            return self.is_record(fields)
        return self.is_list(listed or ()) or any(self.is_item(item) for item in _items(listed or ()))


def _items(listed: Sequence[object]) -> list[Mapping[str, object]]:
    """The objects of a bare list; a text alone is a criterion of the native format."""
    items = [{"text": item} if isinstance(item, str) else as_object(item) for item in listed]
    return [item for item in items if item is not None]


_REGISTRY: dict[str, Format] = {}


def register_format(new: Format) -> None:
    """Make a format known by its name. Raises ConfigError when another has that name."""
    if _REGISTRY.get(new.name, new) != new or new.name == "auto":
        raise ConfigError(f"a format named {new.name!r} exists already", hint="choose another name")
    _REGISTRY[new.name] = new


def formats() -> list[str]:
    """Names of all known formats, sorted."""
    return sorted(_REGISTRY)


def get_format(name: str) -> Format:
    """The format of that name. Raises ConfigError, with the nearest names, when there is none."""
    found = _REGISTRY.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _REGISTRY, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"formats: {', '.join(formats())}"
        raise ConfigError(f"there is no rubric format named {name!r}", hint=hint)
    return found


def candidates(value: object) -> list[str]:
    """Names of the formats that a value looks like, sorted."""
    listed = as_array(value)
    if listed is None:
        return [name for name in formats() if _REGISTRY[name].fits(value)]
    items = _items(listed)
    found = [
        name for name in formats() if _REGISTRY[name].is_list(listed) or any(map(_REGISTRY[name].is_item, items))
    ]
    return [name for name in found if _REGISTRY[name].gather is not None] or found


def detect(value: object, place: Place | None = None) -> str:
    """The name of the one format that a record, or a bare list of criteria, looks like.

    Raises FormatError when it looks like none, or like several; the message lists them and how to choose.
    """
    place = place or Place()
    found = candidates(value)
    if len(found) == 1:
        return found[0]
    if found:
        hint = f"name one: format={found[0]!r}"
        raise place.error(f"this could be any of the formats {', '.join(found)}", hint=hint)
    meant = _meant(value)
    if meant:
        raise place.error(f"{_describe(value)} looks like no known rubric format", hint=f"did you mean {meant}?")
    shapes = "".join(f"\n    {name}: {_REGISTRY[name].shape}" for name in formats())
    raise place.error(f"{_describe(value)} looks like no known rubric format", hint=f"the formats are{shapes}")


_NAMES = ("criteria", "criterion", "description", "points", "rubric", "rubrics", "text", "weight")


def _meant(value: object) -> str:
    """The names that fields would need to be a rubric's, "" where no other names help."""
    fields = as_object(value) or {}
    near = {name: difflib.get_close_matches(name.strip().lower(), _NAMES, n=3, cutoff=0.6) for name in fields}
    for choice in range(3):
        wanted = {name: found[min(choice, len(found) - 1)] for name, found in near.items() if found}
        renamed = {wanted.get(name, name): part for name, part in fields.items()}
        if (
            renamed.keys() != fields.keys()
            and len(renamed) == len(fields)
            and (candidates(renamed) or candidates([renamed]))
        ):
            return ", ".join(f"{new!r} by {name!r}" for name, new in wanted.items() if new != name)
    return ""


def _describe(value: object) -> str:
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        names = ", ".join(list(fields)[:12]) or "none"
        return f"an object with the fields {names}"
    if listed is None:
        return f"a value of type {type(value).__name__}"
    if not listed:
        return "an empty list"
    first = as_object(listed[0])
    return f"a list of {_describe(first) if first is not None else type(listed[0]).__name__}"
