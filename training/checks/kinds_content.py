"""Kinds that ask what a response says: single points, combinations of them, their order."""

from __future__ import annotations

from rubricate.training.checks.banks import Point
from rubricate.training.checks.known import Known
from rubricate.training.checks.offers import Offer

__all__ = ["content"]


def content(known: Known) -> list[Offer]:
    """All kinds about points."""
    return [*_single(known), *_pairs(known), *_several(known), *_order(known), *_opening(known)]


def _single(known: Known) -> list[Offer]:
    found: list[Offer] = []
    missed = known.draft.missed
    for points, met in ((known.true[:3], True), (known.false[:4], False)):
        for point in points:
            weight = 0.5 if point.id in missed else 0.0
            key, names = f"states {point.id}", known.names(point)
            found += known.ask("states", met, key=key, fill=known.fill(a=point), weight=weight, parts=names)
    return found


def _pair(known: Known, first: list[Point], second: list[Point]) -> tuple[Point, Point] | None:
    """Two different points, one of each list, so that neither list is always named first by the order alone."""
    if not first or not second:
        return None
    one = first[0]
    rest = [point for point in second if point.id != one.id]
    return (one, known.rng.choice(rest[:2])) if rest else None


def _pairs(known: Known) -> list[Offer]:
    """Both, either, one but not the other: in all four combinations of truth."""
    true, false = known.true, known.false
    found: list[Offer] = []
    for first, second, a, b in (
        (true, true, True, True),
        (true, false, True, False),
        (false, true, False, True),
        (false, false, False, False),
    ):
        pair = _pair(known, first, second)
        if pair is None:
            continue
        fill = known.fill(a=pair[0], b=pair[1])
        key = " ".join(sorted(point.id for point in pair))
        names = known.names(*pair)
        found += known.ask("both", a and b, key=f"both {key}", fill=fill, parts=names)
        found += known.ask("either", a or b, key=f"either {key}", fill=fill, parts=names)
        found += known.ask("but_not", a and not b, key=f"but_not {key}", fill=fill, parts=names)
    return found


def _several(known: Known) -> list[Offer]:
    """At least so many of three points."""
    points = [*known.true[:2], *known.false[:2]]
    if len(points) < 3:
        return []
    known.rng.shuffle(points)
    points = points[:3]
    stated = {point.id for point in known.true}
    count = sum(point.id in stated for point in points)
    fill = known.fill(a=points[0], b=points[1], c=points[2])
    names = {1: "one", 2: "two", 3: "three"} if known.language == "en" else {1: "1", 2: "2", 3: "3"}
    parts = known.names(*points)
    found: list[Offer] = []
    for n in (1, 2):
        found += known.ask(
            "at_least", count >= n, key="at_least", bucket=str(n), fill=fill | {"n": names[n]}, parts=parts
        )
    return found


def _order(known: Known) -> list[Offer]:
    draft = known.draft
    order = [name for name in draft.stated if any(point.id == name for point in known.true)]
    if len(order) < 2 or "repeated" in draft.marks:
        return []
    one, two = sorted(known.rng.sample(range(len(order)), 2))
    points = {point.id: point for point in known.true}
    early, late = points[order[one]], points[order[two]]
    found = known.ask("order", True, key="order", fill=known.fill(a=early, b=late), parts=known.names(early))
    return found + known.ask("order", False, key="order", fill=known.fill(a=late, b=early), parts=known.names(late))


def _opening(known: Known) -> list[Offer]:
    draft = known.draft
    if draft.first is None:
        return []
    origin, key = draft.first
    others = [point for point in known.true if not (origin == "point" and point.id == key)]
    first = [point for point in known.true if origin == "point" and point.id == key]
    found: list[Offer] = []
    for points, met in ((first, True), (others, False)):
        for point in points[:1]:
            fill, names = known.fill(a=point), known.names(point)
            found += known.ask("opens_with", met, key="opens_with", fill=fill, parts=names)
    return found
