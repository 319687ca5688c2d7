"""Walking JSON-like values: paths for error messages, and what no rubric or record may hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rubricate.narrow import as_array, as_object

__all__ = ["MAX_DEPTH", "Path", "field_name", "walk"]

Path = tuple[str | int, ...]
"""Keys and indices that lead to a part of a value, outermost first."""

MAX_DEPTH = 100
"""Values nested deeper than this are refused: every JSON library has such a limit, and they differ."""


def field_name(path: Sequence[str | int]) -> str:
    """A path as people write it: `("criteria", 3, "weight")` is `criteria[3].weight`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _scalar_problem(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return "" if value.isascii() or _encodable(value) else "holds half of a surrogate pair, which is not text"
    if isinstance(value, int):
        return "" if value.bit_length() <= 1024 else "is too large a number"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {spoken(value)}, which is not a number"
    return f"is of type {type(value).__name__}, which JSON cannot hold"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def spoken(value: float) -> str:
    """NaN and the infinities as JSON writers spell them; other numbers shortly."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:g}"


def walk(value: object) -> Iterator[tuple[Path, str]]:
    """Everything in a value that is not plain, finite JSON: the path of each and what is wrong with it.

    No recursion: a value nested too deeply, or one that contains itself, is reported like anything else.
    """
    todo: list[tuple[Path, object]] = [((), value)]
    while todo:
        path, item = todo.pop()
        fields, listed = as_object(item), as_array(item)
        if (fields is not None or listed is not None) and len(path) >= MAX_DEPTH:
            yield path, f"is nested deeper than {MAX_DEPTH} levels"
        elif fields is not None:
            for key in fields:
                if not key.isascii() and not _encodable(key):
                    yield path, "has a key that is not text"
            todo.extend([((*path, key), part) for key, part in fields.items()][::-1])
        elif listed is not None:
            todo.extend([((*path, index), part) for index, part in enumerate(listed)][::-1])
        else:
            problem = _scalar_problem(item)
            if problem:
                yield path, problem
