"""Entries of a reply about several criteria: which criterion each belongs to, whatever the JSON around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rubricate.errors import ConfigError
from rubricate.judges.parsing.fields import Field, find_fields, fold_key, reason_in, unwrap
from rubricate.judges.parsing.marks import Standing
from rubricate.judges.parsing.text import fold
from rubricate.narrow import as_array, as_object

__all__ = ["Entry", "Ids", "Keys", "entries_in", "is_scalar", "listed_lines"]

ID_KEYS = set("id criterionid cid rubricid itemid key code criteriaid".split())
NAME_KEYS = set(
    "criterion name title criterionname text description item requirement question label statement kriterium "
    "基準 标准".split()
)
INDEX_KEYS = set("index idx number no num position criterionindex criterionnumber rank order".split())
CONTAINERS = (
    "verdicts results criteria evaluations evaluation judgements judgments assessments scores ratings answers "
    "items checklist"
    " rubric final finalverdicts finalscores output list entries"
).split()
_FILLER = re.compile(r"^(?:criterion|criteria|kriterium|item|rubric|id|no|nr|#)\b[\s.:#]*", re.I)
_TRAILING = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, slots=True)
class Keys:
    """Names of the fields of an entry.

    Attributes:
        value: key of the verdict or score.
        aliases: other keys it goes by.
        container: key of the list.
    """

    value: str
    aliases: tuple[str, ...]
    container: str


@dataclass(slots=True)
class Entry:
    """What a reply says about one criterion.

    Attributes:
        id: an identifier as the reply gives it, in a field meant for it.
        name: a name or text of the criterion.
        index: a number in place of, or beside, an identifier.
        fields: the verdicts, usually one.
        section: text in which the verdict stands, for replies in prose.
        reason: the reason given.
        place: position among unlabelled entries, and how many there are.
        corrects: it is announced as a correction.
        part: part of the reply.
    """

    id: str | None = None
    name: str | None = None
    index: int | None = None
    fields: list[Field] = field(default_factory=list[Field])
    section: str = ""
    reason: str = ""
    place: tuple[int, int] | None = None
    corrects: bool = False
    part: int = 0


class Ids:
    """The identifiers that were asked for.

    Args:
        ids: in the order asked.
        known: further identifiers that may occur and belong to nobody here.
        aliases: other names of an identifier, by name.
    """

    def __init__(
        self, ids: Sequence[str], known: Sequence[str] = (), aliases: Mapping[str, str] | None = None
    ) -> None:
        self.ids = tuple(ids)
        if not self.ids or len(set(self.ids)) != len(self.ids) or any(not one.strip() for one in self.ids):
            raise ConfigError(f"criterion ids must be distinct and not blank, got {list(self.ids)[:20]}")
        folded = [fold(one) or one for one in (*self.ids, *known)]
        every = (*self.ids, *known)
        self._folded = {word: one for word, one in zip(folded, every, strict=True) if folded.count(word) == 1}
        for alias, one in (aliases or {}).items():
            self._folded.setdefault(fold(alias), one)
        self.spellings = (*self.ids, *(aliases or {}))
        self.known = frozenset(known)
        numbers = [match.group(1) for one in self.ids if (match := _TRAILING.search(one))]
        numbered = len(numbers) == len(self.ids) == len(set(numbers))
        self._numbers = dict(zip((int(one) for one in numbers), self.ids, strict=True)) if numbered else {}

    def owner(self, name: str) -> str | None:
        """The identifier that a text names: itself, or differing only in case, edges and blanks."""
        if name in self.ids or name in self.known:
            return name
        bare = name.strip()
        found = self._folded.get(fold(bare) or bare)
        if found is None:
            found = self._folded.get(fold(_FILLER.sub("", bare)))
        if found is None:
            head = re.split(r"\s*[:\u2013\u2014|]\s|\.\s|\s[-(]\s?", bare, maxsplit=1)[0]
            found = self._folded.get(fold(head)) if head != bare else None
        return found

    def numbered(self, number: int) -> str | None:
        """The identifier that ends in this number, where all identifiers end in different numbers."""
        return self._numbers.get(number)

    def at(self, index: int, base: int) -> str | None:
        """The identifier at a position."""
        place = index - base
        return self.ids[place] if 0 <= place < len(self.ids) else None

    def base_of(self, indices: Sequence[int], told: int | None) -> int | None:
        """Where the reply's numbering starts, None when that cannot be known.

        Numbers outside the range that was told show that the judge counted otherwise.
        """
        low, high, count = min(indices), max(indices), len(self.ids)
        if told is not None:
            return told if told <= low and high < told + count else None
        if low == 0:
            return 0 if high < count else None
        return 1 if high == count and low >= 1 else None


def is_scalar(value: object) -> bool:
    """Whether a value can be a verdict by itself."""
    return value is None or isinstance(value, str | bool | int | float)


def listed_lines(value: object, keys: Keys) -> str:
    """Lines of a list of texts ("tone: met", ...) or of one text that stands where the list should, else empty."""
    record = as_object(value)
    inner = value
    if record is not None:
        inner = next((one for name, one in record.items() if fold_key(name) == fold_key(keys.container)), None)
    items = as_array(inner)
    if items is not None and items and all(isinstance(item, str) and ":" in item for item in items):
        return "\n".join(str(item) for item in items)
    return inner if isinstance(inner, str) and record is not None else ""


def entries_in(value: object, ids: Ids, keys: Keys, part: int = 0) -> list[Entry]:
    """The entries of a JSON reply."""
    found = list(_entries(value, ids, keys, False, 0))
    for entry in found:
        entry.part = part
    return found


def _entries(value: object, ids: Ids, keys: Keys, contained: bool, depth: int) -> Iterator[Entry]:
    value = unwrap(value)
    if depth > 6:
        return
    items = as_array(value)
    if items is not None:
        yield from _listed(items, ids, keys, depth)
        return
    record = as_object(value)
    if record is None:
        return
    entry = _entry(record, keys)
    if entry is not None and (entry.id or entry.name or entry.index is not None):
        yield entry
        return
    if not contained and entry is not None and len(ids.ids) == 1 and not _owned(record, ids):
        yield Entry(fields=entry.fields, reason=entry.reason, place=(0, 1))
        return
    yield from _inner(record, ids, keys, contained, depth)


def _inner(record: Mapping[str, object], ids: Ids, keys: Keys, contained: bool, depth: int) -> Iterator[Entry]:
    containers = [fold_key(keys.container), *CONTAINERS]
    owned = _owned(record, ids)
    opened = False
    for name, inner in record.items():
        if name in owned or fold_key(name) not in containers:
            continue
        if as_array(unwrap(inner)) is not None or as_object(unwrap(inner)) is not None:
            opened = True
            yield from _entries(inner, ids, keys, True, depth + 1)
    for name, inner in record.items():
        if name in owned or (contained and not opened):
            yield _mapped(name, inner, keys)
        elif (
            owned
            and is_scalar(inner)
            and not opened
            and fold_key(name) not in ("reason", "overall", "summary", "comment")
        ):
            yield _mapped(name, inner, keys)
    if not owned and not opened and not contained:
        if record and all(name.strip().isdecimal() for name in record):
            yield from (_mapped(name, inner, keys) for name, inner in record.items())
        for name, inner in record.items():
            if fold_key(name) in (
                "arguments",
                "parameters",
                "input",
                "result",
                "response",
                "function",
                "toolcalls",
                "data",
            ):
                yield from _entries(inner, ids, keys, False, depth + 1)


def _owned(record: Mapping[str, object], ids: Ids) -> list[str]:
    return [name for name in record if ids.owner(name) is not None]


def _mapped(name: str, value: object, keys: Keys) -> Entry:
    """An entry of an object that maps identifiers to verdicts."""
    record = as_object(value)
    number = int(name) if name.strip().isdecimal() else None
    if record is None:
        return Entry(id=name, index=number, fields=[Field(name, value, Standing.PLAIN, False, True)])
    return Entry(
        id=name, index=number, fields=find_fields(record, keys.value, keys.aliases), reason=reason_in(record)
    )


def _pair(item: object, ids: Ids) -> tuple[str, object] | None:
    """An identifier and its verdict as a list of two."""
    both = as_array(item)
    if both is None or len(both) != 2 or not isinstance(both[0], str) or ids.owner(both[0]) is None:
        return None
    return both[0], both[1]


def _listed(items: Sequence[object], ids: Ids, keys: Keys, depth: int) -> Iterator[Entry]:
    pairs = [pair for item in items if (pair := _pair(item, ids)) is not None]
    if pairs and len(pairs) == len(items):
        yield from (_mapped(name, value, keys) for name, value in pairs)
        return
    if items and all(isinstance(item, str) and ":" in item for item in items):
        return
    if items and all(is_scalar(item) for item in items):
        for place, item in enumerate(items):
            yield Entry(fields=[Field("", item, Standing.PLAIN, False, True)], place=(place, len(items)))
        return
    records = [as_object(unwrap(item)) for item in items]
    entries = [_entry(record, keys) if record is not None else None for record in records]
    unlabelled = [one for one in entries if one and not (one.id or one.name or one.index is not None)]
    if unlabelled and len(unlabelled) == len(items):
        for place, entry in enumerate(unlabelled):
            entry.place = (place, len(items))
            yield entry
        return
    for item, entry in zip(items, entries, strict=True):
        if entry is not None and (entry.id or entry.name or entry.index is not None):
            yield entry
        elif entry is None and not is_scalar(item):
            yield from _entries(item, ids, keys, True, depth + 1)


def _entry(record: Mapping[str, object], keys: Keys) -> Entry | None:
    """The record as an entry, None when it holds neither a verdict nor an identifier."""
    fields = _own_fields(record, keys)
    entry = Entry(fields=fields, reason=reason_in(record) if fields else "")
    taken = {one.key for one in fields}
    for name, value in record.items():
        folded = fold_key(name)
        if name in taken or isinstance(value, bool):
            continue
        if folded in ID_KEYS and isinstance(value, str | int):
            entry.id = str(value)
            entry.index = (
                value if isinstance(value, int) else (int(value) if value.strip().isdecimal() else entry.index)
            )
        elif folded in NAME_KEYS and isinstance(value, str):
            entry.name = value
        elif folded in INDEX_KEYS and (
            isinstance(value, int) or (isinstance(value, str) and value.strip().isdecimal())
        ):
            entry.index = int(value)
    return (
        entry
        if fields or (entry.id is not None and not any(as_object(one) or as_array(one) for one in record.values()))
        else None
    )


def _own_fields(record: Mapping[str, object], keys: Keys) -> list[Field]:
    flat = {name: value for name, value in record.items() if fold_key(name) not in CONTAINERS or is_scalar(value)}
    return find_fields(flat, keys.value, keys.aliases)
