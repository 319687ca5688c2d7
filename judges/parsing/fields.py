"""Looking up the asked-for fields in a JSON reply, whatever they are wrapped in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from rubricate.judges.parsing.jsonlike import Conflict
from rubricate.judges.parsing.labels import announcement
from rubricate.judges.parsing.marks import Mark, Standing
from rubricate.judges.parsing.objects import find_json
from rubricate.judges.parsing.text import clean, mend_surrogates
from rubricate.judges.parsing.vocabulary import Unreadable
from rubricate.narrow import as_array, as_object

__all__ = ["Field", "find_fields", "fold_key", "is_error", "marks_of", "reason_in", "unwrap"]

T = TypeVar("T")
_JOINTS = re.compile(r"[\W_]+")
_WRAPPERS = set(
    "arguments parameters args input output result results evaluation judgement judgment assessment answer final "
    "response"
    " finalanswer data function functioncall toolcall toolcalls content grade review verdict message "
    "payload".split()
)
_REASONS = (
    "reason reasons reasoning explanation justification rationale analysis comment comments note notes critique "
    "feedback"
    " evidence thoughts begründung razón 理由 原因 이유"
).split()
_PREFIXES = {
    "final": (Standing.FINAL, False),
    "overall": (Standing.FINAL, False),
    "total": (Standing.FINAL, False),
    "revised": (Standing.PLAIN, True),
    "corrected": (Standing.PLAIN, True),
    "updated": (Standing.PLAIN, True),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field that was asked for, and how its key announces it."""

    key: str
    value: object
    standing: Standing
    correction: bool
    main: bool


@lru_cache(maxsize=4096)
def fold_key(key: str) -> str:
    """A key without case, blanks, `_` and `-`."""
    return _JOINTS.sub("", clean(key).casefold())


def unwrap(value: object) -> object:
    """A value that is JSON in a string, as function calls carry it, or the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        inner = find_json(value)
        return value if inner is None else inner
    return value


def find_fields(value: object, key: str, aliases: Sequence[str], depth: int = 0) -> list[Field]:
    """The fields named `key`, or one of the aliases where there is none of that name.

    "final_" and the like in front of the key are understood. Without either, the usual wrappers are opened: the
    arguments of a tool call, a `result` object, a list of one.
    """
    items = as_array(value)
    if items is not None:
        return find_fields(items[0], key, aliases, depth + 1) if len(items) == 1 and depth < 5 else []
    record = as_object(value)
    if record is None or depth > 5:
        return []
    main = [field for name, inner in record.items() if (field := _field(name, inner, fold_key(key), main=True))]
    if main:
        return main
    names = [fold_key(alias) for alias in aliases]
    other = [
        field
        for alias in names
        for name, inner in record.items()
        if (field := _field(name, inner, alias, main=False))
    ]
    if other:
        return other
    found: list[Field] = []
    for name, inner in record.items():
        if fold_key(name) in _WRAPPERS:
            found += find_fields(unwrap(inner), key, aliases, depth + 1)
    return found


def _field(name: str, value: object, wanted: str, *, main: bool) -> Field | None:
    folded = fold_key(name)
    if folded == wanted:
        return Field(name, value, Standing.PLAIN, False, main)
    for prefix, (standing, correction) in _PREFIXES.items():
        if folded in (prefix + wanted, wanted + prefix):
            return Field(name, value, standing, correction, main)
    return None


def marks_of(
    fields: Sequence[Field], read: Callable[[object], T | Unreadable], part: int, lead: str = ""
) -> list[Mark[T]]:
    """The fields as marks. Placeholders of a repeated template are dropped, and so are aliases that say nothing.

    Args:
        fields: what was found in a JSON value.
        read: reads a value.
        part: part of the reply.
        lead: the line that announces the JSON value ("Final verdict:").
    """
    announced, corrects = announcement(lead)
    marks: list[Mark[T]] = []
    for field in fields:
        value = read(field.value)
        if value is Unreadable.PLACEHOLDER or (value is Unreadable.UNKNOWN and not field.main):
            continue
        standing = field.standing if field.standing is not Standing.PLAIN else announced
        marks.append(Mark(value, standing, field.correction or corrects, part))
    return marks


def is_error(value: object) -> bool:
    """Whether a JSON reply reports an error or a refusal in place of an answer."""
    record = as_object(value)
    return record is not None and any(fold_key(key) in ("error", "errors", "refusal", "refused") for key in record)


def reason_in(value: object) -> str:
    """The reason given in a JSON object, empty when there is none."""
    record = as_object(value)
    if record is None:
        return ""
    by_key: Mapping[str, object] = {fold_key(key): inner for key, inner in record.items()}
    for name in _REASONS:
        text = _as_text(by_key.get(name))
        if text:
            return mend_surrogates(text)
    for inner in _nested(record):
        text = reason_in(inner)
        if text:
            return text
    return ""


def _nested(record: Mapping[str, object]) -> Iterator[object]:
    for key, inner in record.items():
        if fold_key(key) in _WRAPPERS and not isinstance(inner, Conflict):
            yield unwrap(inner)


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    items = as_array(value)
    if items is not None and all(isinstance(item, str) for item in items):
        return "\n".join(str(item) for item in items)
    return ""
