"""Narrowing of values that came out of a JSON, YAML or Parquet reader, for code that is fully typed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

__all__ = ["as_array", "as_number", "as_object"]


def as_object(value: object) -> Mapping[str, object] | None:
    """The value as a mapping with text keys, or None when it is not one."""
    if not isinstance(value, Mapping):
        return None
    mapping = cast("Mapping[object, object]", value)
    return cast("Mapping[str, object]", mapping) if all(isinstance(key, str) for key in mapping) else None


def as_array(value: object) -> Sequence[object] | None:
    """The value as a sequence, or None when it is not a list or tuple."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def as_number(value: object) -> float | None:
    """The value as a finite float, or None for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond the range of floats
        return None
