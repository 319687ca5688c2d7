"""Typed settings out of YAML, TOML or JSON: read, changed key by key, and checked, with the nearest right key."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from rubricate.data.io import read_values
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_array, as_object

__all__ = ["Part", "change_fields", "checked", "read_fields"]

T = TypeVar("T", bound=BaseModel)


class Part(BaseModel):
    """Base of settings: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def read_fields(path: str | os.PathLike[str]) -> dict[str, object]:
    """The one mapping that a file of settings holds. Raises FormatError."""
    found = list(read_values(path))
    fields = as_object(found[0].value) if len(found) == 1 else None
    if fields is None:
        raise FormatError("a recipe is one mapping of keys to values", source=os.fspath(path))
    return dict(fields)


def change_fields(fields: Mapping[str, object], changes: Sequence[str]) -> dict[str, object]:
    """The fields with changes such as `output.format=parquet` or `steps.0.options.least=5`, values in YAML.

    Raises ConfigError for a change that is none.
    """
    changed: object = dict(fields)
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{change!r} changes nothing", hint="write KEY=VALUE, such as output.format=parquet")
        changed = _put(changed, key.strip().split("."), read_value(text, change))
    return dict(as_object(changed) or {})


def read_value(text: str, what: str) -> object:
    """A value in YAML's notation; 2e-4, which YAML 1.1 takes for text, is a number. Raises ConfigError."""
    from yaml import YAMLError, safe_load

    try:
        value: object = safe_load(text)
    except YAMLError as error:
        raise ConfigError(f"the value of {what!r} cannot be read: {error}", hint="quote it as YAML") from None
    if isinstance(value, str) and any(letter.isdigit() for letter in value):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _put(here: object, path: Sequence[str], value: object) -> object:
    """A copy of nested mappings and lists with one value set."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    listed = as_array(here)
    if listed is not None:
        if not name.isdecimal() or int(name) >= len(listed):
            raise ConfigError(f"there is no element {name!r} in a list of {len(listed)}", hint="they count from 0")
        items = list(listed)
        items[int(name)] = _put(items[int(name)], rest, value)
        return items
    fields = dict(as_object(here) or {})
    fields[name] = _put(fields.get(name), rest, value)
    return fields


def checked(kind: type[T], fields: Mapping[str, object], source: str, *, at: str = "") -> T:
    """Settings of this kind.

    Args:
        kind: the settings' class.
        fields: keys and values.
        source: what they come from, for errors.
        at: place of the fields inside the source, such as `steps.0.options`.

    Raises ConfigError for the first thing that is wrong, with the nearest right key where a key is.
    """
    try:
        return kind.model_validate(dict(fields))
    except ValidationError as error:
        raise _readable(kind, error, source, at) from None


def _readable(kind: type[BaseModel], error: ValidationError, source: str, at: str) -> ConfigError:
    found = error.errors()
    first = next(
        (one for one in found if one["type"] == "extra_forbidden"), found[0]
    )  # a slip explains what is missing
    path = [str(part) for part in first["loc"]]
    key = ".".join([at, *path] if at else path)
    if first["type"] == "extra_forbidden":
        return ConfigError(f"{source}: there is no key {key!r}", hint=_nearest(kind, path, at))
    message = first["msg"].removeprefix("Value error, ")
    return ConfigError(f"{source}: {f'{key}: ' if key else ''}{message}", hint=_asked(kind, path))


def _nearest(kind: type[BaseModel], path: Sequence[str], at: str) -> str:
    known = [name for name in _fields_at(kind, path[:-1])]
    near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {'.'.join([*([at] if at else []), *path[:-1], near[0]])}?"
    everywhere = _all_keys(kind)
    far = difflib.get_close_matches(path[-1], [name.split(".")[-1] for name in everywhere], n=1, cutoff=0.8)
    if far:
        return f"did you mean {next(name for name in everywhere if name.split('.')[-1] == far[0])}?"
    return f"there are: {', '.join(known) or 'none'}"


def _asked(kind: type[BaseModel], path: Sequence[str]) -> str:
    names = [name for name in path if not name.isdecimal()]
    fields = _fields_at(kind, path[:-1]) if names else {}
    said = fields.get(path[-1]) if path else None
    return said or "see the recipe's fields"


def _fields_at(kind: type[BaseModel], path: Sequence[str]) -> dict[str, str]:
    """Names and descriptions of the keys at a place."""
    model: type[BaseModel] = kind
    named = False  # inside a mapping whose keys are the user's own
    for name in path:
        if named or name.isdecimal():
            named = False
            continue
        inner = _model_of(model, name)
        named = inner is not None and "dict" in str(model.model_fields[name].annotation)
        model = inner or model
    return {name: field.description or "" for name, field in model.model_fields.items()}


def _model_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The settings behind a key, alone or in a list or mapping; None for a plain value."""
    annotation: object = model.model_fields[name].annotation if name in model.model_fields else None
    return _inside(annotation)


def _inside(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inside(part)) is not None), None)


def _all_keys(kind: type[BaseModel], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name in kind.model_fields:
        inner = _model_of(kind, name)
        found += [prefix + name] if inner is None else [prefix + name, *_all_keys(inner, f"{prefix}{name}.")]
    return found
