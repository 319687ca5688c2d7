"""Every spot of a JSON value that something else can be put into. Imported as `spots`."""

from __future__ import annotations

from typing import cast

__all__ = ["Holder", "Record", "put", "spots"]

Record = dict[str, object]
Holder = dict[str, object] | list[object]


def spots(value: object) -> list[tuple[Holder, str | int]]:
    """Every place in a value that something else can be put into."""
    found: list[tuple[Holder, str | int]] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            fields = cast("Record", item)
            found += [(fields, name) for name in fields]
            todo += fields.values()
        elif isinstance(item, list):
            listed = cast("list[object]", item)
            found += [(listed, index) for index in range(len(listed))]
            todo += listed
    return found


def put(holder: Holder, key: str | int, value: object) -> None:
    if isinstance(holder, dict):
        holder[str(key)] = value
    else:
        holder[int(key)] = value
