"""Stub."""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT"]


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_record(record: Mapping[str, object]) -> bool:
    return False


def _parse(value: object, place: Place, options: Options) -> Rubric:
    raise place.error("not yet")


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    raise place.error("not yet")


def _losses(rubric: Rubric) -> list[str]:
    return []


FORMAT = Format(
    name="multichallenge",
    shape="",
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
)
