"""The registry of verifiers: hard rules that code decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rubricate.errors import ConfigError, VerifierError

__all__ = [
    "Check",
    "Input",
    "Verifier",
    "VerifierArgs",
    "get_verifier",
    "run_verifier",
    "verifier",
    "verifier_names",
]


class VerifierArgs(BaseModel):
    """Base of a verifier's arguments: unknown names and NaN are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Input:
    """What a verifier sees.

    Attributes:
        response: the response as the judge's view shows it (reasoning stripped by default).
        prompt: the prompt as text.
        reference: the reference answer, where there is one.
        finish: how generation ended, where known (`stop`, `length`).
    """

    response: str
    prompt: str = ""
    reference: str | None = None
    finish: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """What a verifier found: whether the criterion is met, and why, in a few words. `score` in [0, 1]."""

    met: bool
    reason: str = ""
    score: float | None = None


ArgsT = TypeVar("ArgsT", bound=VerifierArgs)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A registered verifier."""

    name: str
    args: type[VerifierArgs]
    run: Callable[[Input, Any], Check | bool]
    doc: str


_REGISTRY: dict[str, Verifier] = {}


def verifier(
    name: str, args: type[ArgsT]
) -> Callable[[Callable[[Input, ArgsT], Check | bool]], Callable[[Input, ArgsT], Check | bool]]:
    """Register a function as the verifier `name`.

    The function gets an `Input` and its typed arguments, and returns a `Check` or a bool. It raises VerifierError
    when it cannot decide; that becomes a failed verdict, never "not met".

    Raises ConfigError when the name is taken by another function.
    """

    def register(function: Callable[[Input, ArgsT], Check | bool]) -> Callable[[Input, ArgsT], Check | bool]:
        known = _REGISTRY.get(name)
        if known is not None and (known.run.__module__, known.run.__qualname__) != (
            function.__module__,
            function.__qualname__,
        ):
            raise ConfigError(f"a verifier named {name!r} exists already", hint="choose another name")
        _REGISTRY[name] = Verifier(name, args, function, (function.__doc__ or "").strip().split("\n")[0])
        return function

    return register


def verifier_names() -> list[str]:
    """Names of all registered verifiers, sorted."""
    return sorted(_REGISTRY)


def get_verifier(name: str) -> Verifier:
    """The verifier of that name. Raises VerifierError, with the nearest names, when there is none."""
    import difflib

    found = _REGISTRY.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _REGISTRY, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "see rubricate.judges.verifiers.verifier_names()"
        raise VerifierError(f"there is no verifier named {name!r}", hint=hint)
    return found


def run_verifier(name: str, args: Mapping[str, object], given: Input) -> Check:
    """Run a verifier. Raises VerifierError for an unknown name, wrong arguments, or a check that cannot decide."""
    found = get_verifier(name)
    try:
        typed = found.args.model_validate(dict(args))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise VerifierError(f"verifier {name!r}, argument {field!r}: {first['msg']}") from None
    result = found.run(given, typed)
    return Check(result) if isinstance(result, bool) else result
