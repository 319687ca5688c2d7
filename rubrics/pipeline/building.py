"""Making a method or filter out of its place, options and parts: its constructor's signature is the schema."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError

from rubricate.errors import ConfigError
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics.pipeline.parts import Supplies
from rubricate.rubrics.pipeline.settings import checked

__all__ = ["Entry", "Names", "PartKind", "build", "options_model", "pick"]

PartKind = Literal["model", "judge", "pair_judge", "embedder"]
_USUAL: Mapping[str, PartKind] = {"model": "model", "judge": "judge", "embedder": "embedder"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a registry.

    Attributes:
        home: `module:Class`; the module is imported when it is used.
        about: what it does, in a few words.
        needs: parameters with a default that get their part all the same; other such get one that the step names.
        parts: constructor parameters that are parts, where they are not the usual `model`, `judge` (of single
            responses) and `embedder`: name to kind.
    """

    home: str
    about: str
    parts: Mapping[str, PartKind] = field(default_factory=dict[str, "PartKind"])
    needs: tuple[str, ...] = ()

    def load(self) -> type[object]:
        """The class."""
        module, _, name = self.home.partition(":")
        return cast("type[object]", getattr(import_module(module), name))


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the parts that a step may use, and which of them (`model`, `judge`, `embedder`) it names itself."""

    model: str | None = None
    judge: str | None = None
    embedder: str | None = None
    named: frozenset[str] = frozenset()

    def of(self, kind: PartKind) -> str | None:
        """The name of that part."""
        return {"model": self.model, "judge": self.judge, "pair_judge": self.judge, "embedder": self.embedder}[kind]


def pick(table: Mapping[str, Entry], name: str, what: str) -> Entry:
    """The line of that name. Raises ConfigError with the nearest one."""
    found = table.get(name)
    if found is None:
        near = difflib.get_close_matches(name, table, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(table))}"
        raise ConfigError(f"there is no {what} {name!r}", hint=hint)
    return found


@cache
def options_model(kind: type[object]) -> type[BaseModel]:
    """The options of a class: its constructor's parameters that a file of settings can hold."""
    init = cast("Callable[..., object]", vars(kind).get("__init__") or getattr(kind, "__init__"))  # noqa: B009
    fields: dict[str, tuple[object, object]] = {}
    for parameter in list(inspect.signature(init).parameters.values())[1:]:
        hint = _hint(init, parameter.name)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            fields |= _unpacked(hint)
        elif Prompt in (hint, *get_args(hint)):
            fields[parameter.name] = (str, None)
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL and (hint := _plain(hint)) is not None:
            required = parameter.default is inspect.Parameter.empty
            fields[parameter.name] = (hint, ... if required else cast("object", parameter.default))
    make = cast("Callable[..., type[BaseModel]]", create_model)  # whose own types know no computed fields
    return make(f"{kind.__name__}Options", __config__=ConfigDict(extra="forbid"), **fields)


def _hint(init: Callable[..., object], name: str) -> object:
    """What a parameter takes, None where that cannot be told: its names may not be known where it is used."""
    said: object = init.__annotations__.get(name)
    holder = type("_", (), {"__annotations__": {name: said}, "__module__": init.__module__})
    try:
        return get_type_hints(holder, include_extras=True)[name]
    except NameError:
        return None


def _unpacked(hint: object) -> dict[str, tuple[object, object]]:
    """The fields of `**options: Unpack[SomeTypedDict]`."""
    for inner in get_args(hint):
        if is_typeddict(inner):
            return {name: (said, None) for name, said in get_type_hints(inner).items()}
    return {}


def _plain(hint: object) -> object:
    """What of a hint a file of settings can hold: of several types those that it can; None for nothing."""
    if hint is None or hint is type(None):
        return None
    try:
        TypeAdapter(cast("type[object]", hint))
    except PydanticSchemaGenerationError:
        if get_origin(hint) not in (Union, UnionType):
            return None
        parts = [part for one in get_args(hint) if (part := _plain(one)) is not None]
        nothing = [type(None)] if parts and type(None) in get_args(hint) else []
        return Union[tuple([*parts, *nothing])] if parts else None  # noqa: UP007 - known only now
    return hint


def build(
    entry: Entry, options: Mapping[str, object], supplies: Supplies, names: Names, *, source: str, at: str
) -> object:
    """The object that a line, its options and its parts make.

    Args:
        entry: the line.
        options: as a file of settings has them.
        supplies: makes the parts.
        names: names of the parts.
        source, at: where the options come from, for errors.

    Raises ConfigError for options that do not exist or do not fit, with the nearest right one, and for a part that
    nobody named. MissingExtraError for missing packages.
    """
    kind = entry.load()
    parts = _parts(entry, kind, supplies, names, f"{source}: {at.rpartition('.')[0] or at}")
    taken = {name: value for name, value in options.items() if name not in parts}
    twice = sorted(set(options) & set(parts))
    if twice:
        raise ConfigError(f"{source}: {at}.{twice[0]} is no option", hint=f"name the {twice[0]} beside the options")
    _check_open(kind, parts, f"{source}: {at}")
    settings = checked(options_model(kind), taken, source, at=at)
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    if isinstance(given.get("prompt"), str) and options_model(kind).model_fields["prompt"].annotation is str:
        given["prompt"] = load_prompt(str(given["prompt"]))
    try:
        return kind(**parts, **given)
    except ConfigError as error:
        raise ConfigError(f"{source}: {at}: {error.message}", hint=error.hint) from None


def _check_open(kind: type[object], parts: Mapping[str, object], where: str) -> None:
    """Raises ConfigError for a class that needs what neither options nor parts can give."""
    known = {*options_model(kind).model_fields, *parts}
    for parameter in inspect.signature(kind).parameters.values():
        variable = parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        if not variable and parameter.default is inspect.Parameter.empty and parameter.name not in known:
            raise ConfigError(f"{where}: {kind.__name__} needs a {parameter.name}, which no recipe can give")


def _parts(entry: Entry, kind: type[object], supplies: Supplies, names: Names, where: str) -> dict[str, object]:
    makers: Mapping[PartKind, Callable[[str], object]] = {
        "model": supplies.model,
        "judge": supplies.judge,
        "pair_judge": supplies.pair_judge,
        "embedder": supplies.embedder,
    }
    found: dict[str, object] = {}
    for parameter in list(inspect.signature(kind).parameters.values()):
        role = entry.parts.get(parameter.name) or _USUAL.get(parameter.name)
        if role is None:
            continue
        name = names.of(role)
        optional = parameter.default is not inspect.Parameter.empty
        if optional and parameter.name not in entry.needs and role.removeprefix("pair_") not in names.named:
            continue
        if name is not None:
            found[parameter.name] = makers[role](name)
        elif not optional:
            option = "judge" if role == "pair_judge" else role
            raise ConfigError(
                f"{where}: a {option} is needed and none is named", hint=f"give --{option} or {option}:"
            )
    return found
