"""The rejection tests of a recursive decomposition (RRD, 2602.05125): what a model says of overlap and conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rubricate.errors import ParseError
from rubricate.narrow import as_number, as_object
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.model import list_schema

__all__ = ["Check", "numbered", "read_checks", "rejected", "schema"]


@dataclass(frozen=True, slots=True)
class Check:
    """What a model says of one new criterion.

    Attributes:
        overlap: share of its meaning that the closest other criterion has, in [0, 1].
        closest, conflict: numbers of criteria, 0 for none.
    """

    overlap: float
    closest: int
    conflict: int


def numbered(texts: Sequence[str], first: int = 1) -> str:
    """Texts as a numbered list, a line each."""
    return "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, start=first))


def schema(count: int) -> dict[str, object]:
    """JSON schema of the answer for so many new criteria."""
    whole = {"type": "integer", "minimum": 0}
    fields = {"new": whole, "overlap": whole | {"maximum": 100}, "closest": whole, "conflict": whole}
    return list_schema("checks", fields, count, count)


def read_checks(text: str, existing: int, new: int) -> dict[int, Check]:
    """The checks of an answer by the number of the new criterion, which follow those that are there.

    Raises ParseError for a criterion that is missing, named twice or unknown, and for numbers that cannot be.
    """
    wanted = range(existing + 1, existing + new + 1)
    found: dict[int, Check] = {}
    for value in read_items(text, "checks"):
        fields = as_object(value) or {}
        number = _whole(fields, "new", 0, existing + new, text)
        if number not in wanted:
            raise ParseError(f"there is no new criterion {number}", kind="out_of_range", reply=text)
        check = Check(
            _whole(fields, "overlap", 0, 100, text) / 100,
            _whole(fields, "closest", 0, existing + new, text),
            _whole(fields, "conflict", 0, existing + new, text),
        )
        if check.overlap and not check.closest:
            raise ParseError(f"criterion {number} overlaps, and `closest` says with none", reply=text)
        if number in (check.closest, check.conflict):
            raise ParseError(f"criterion {number} is compared with itself", kind="out_of_range", reply=text)
        if found.setdefault(number, check) != check:
            raise ParseError(f"criterion {number} is checked twice, differently", kind="ambiguous", reply=text)
    missing = [number for number in wanted if number not in found]
    if missing:
        raise ParseError(f"the check of criterion {missing[0]} is missing", kind="incomplete", reply=text)
    return found


def _whole(fields: Mapping[str, object], name: str, low: int, high: int, text: str) -> int:
    number = as_number(fields.get(name))
    if number is None or not number.is_integer() or not low <= number <= high:
        message = f"{name} is {fields.get(name)!r}; it must be a whole number from {low} to {high}"
        raise ParseError(message, kind="out_of_range", reply=text)
    return int(number)


def rejected(checks: Mapping[int, Check], existing: int, limit: float) -> dict[int, tuple[str, int]]:
    """Number of a new criterion to why it is rejected, and the criterion that speaks against it.

    It overlaps by `limit` or more with a criterion, or contradicts one, that is there or is a new one that was
    accepted before it: of two new ones the later goes.
    """
    found: dict[int, list[tuple[str, int]]] = {number: [] for number in checks}
    for number, check in checks.items():
        said = [("it contradicts", check.conflict)] if check.conflict else []
        if check.closest and check.overlap >= limit:
            said.append((f"{check.overlap:.0%} of its meaning is in", check.closest))
        for why, other in said:
            later, earlier = (number, other) if other <= existing else (max(number, other), min(number, other))
            found[later].append((why, earlier))
    reasons: dict[int, tuple[str, int]] = {}
    for number in sorted(checks):
        against = [(why, other) for why, other in found[number] if other not in reasons]
        if against:
            reasons[number] = against[0]
    return reasons
