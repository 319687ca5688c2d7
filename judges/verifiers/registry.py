"""The registry of verifiers: hard rules that code decides."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from rubricate.errors import ConfigError, RubricateError, VerifierError

__all__ = [
    "Check",
    "Input",
    "Verifier",
    "VerifierArgs",
    "check_verifier",
    "get_verifier",
    "run_verifier",
    "run_verifier_async",
    "verifier",
    "verifier_names",
]


class VerifierArgs(BaseModel):
    """Base of a verifier's arguments: unknown names and NaN are refused.

    The schema is built when the verifier first runs, so that importing fifty verifiers stays cheap.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


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
    """What a verifier found: whether the criterion is met, and why, in a few words.

    Attributes:
        met: the verdict.
        reason: what was found, for people. It never quotes more than a few words of the response.
        score: partial credit in [0, 1] for criteria with an ordinal or numeric scale: exactly 1 when met, below
            1 when not. None stands for 1 or 0, after `met`. The built-in verifiers leave it None unless asked
            for it (`partial`), so that a binary criterion stays binary.
        value: the quantity measured (words counted, ratio found), where there is one.

    Raises ValueError for a score outside [0, 1] or one that contradicts `met`.
    """

    met: bool
    reason: str = ""
    score: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        if self.score is None:
            return
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"the score {self.score} of a check is outside [0, 1]")
        if (self.score == 1.0) != self.met:
            raise ValueError(f"met={self.met} contradicts the score {self.score}: it is 1 exactly when met")


ArgsT = TypeVar("ArgsT", bound=VerifierArgs)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A registered verifier.

    Attributes:
        name: what a criterion's `verifier.name` says.
        args: class of its arguments.
        run: the function.
        doc: first line of the function's docstring.
        run_async: the same check for an event loop, where running it takes long; None for all others.
    """

    name: str
    args: type[VerifierArgs]
    run: Callable[[Input, Any], Check | bool]
    doc: str
    run_async: Callable[[Input, Any], Awaitable[Check | bool]] | None = None


_REGISTRY: dict[str, Verifier] = {}


def verifier(
    name: str,
    args: type[ArgsT] = VerifierArgs,
    *,
    run_async: Callable[[Input, ArgsT], Awaitable[Check | bool]] | None = None,
) -> Callable[[Callable[[Input, ArgsT], Check | bool]], Callable[[Input, ArgsT], Check | bool]]:
    """Register a function as the verifier `name`; without `args` it takes no arguments.

    The function gets an `Input` and its typed arguments, and returns a `Check` or a bool. It raises VerifierError
    when it cannot decide; that becomes a failed verdict, never "not met". Any other exception is taken for a
    fault in the function and becomes a VerifierError too.

        class Sign(VerifierArgs):
            name: str

        @verifier("signed_by", Sign)
        def signed_by(given: Input, args: Sign) -> Check:
            return Check(given.response.rstrip().endswith(args.name), f"looked for {args.name}")

    A check that waits for something (a process of its own) would hold the judge's event loop: it gives `run_async`
    for use there, which must find the same.

    Registering the same function again (a module reloaded, or imported under a second name) replaces it.

    Raises ConfigError when the name is blank or taken by another function, when `args` is not a class of
    VerifierArgs, or when the function is a coroutine: verifiers run synchronously.
    """
    if not name.strip():
        raise ConfigError("a verifier needs a name")
    if VerifierArgs not in getattr(args, "__mro__", ()):
        raise ConfigError(
            f"the arguments of verifier {name!r} must be a class derived from VerifierArgs, not {args!r}"
        )

    def register(function: Callable[[Input, ArgsT], Check | bool]) -> Callable[[Input, ArgsT], Check | bool]:
        if inspect.iscoroutinefunction(function):
            raise ConfigError(f"verifier {name!r} is a coroutine function; write it with plain `def`")
        known = _REGISTRY.get(name)
        if known is not None and _identity(known.run).isdisjoint(_identity(function)):
            raise ConfigError(f"a verifier named {name!r} exists already", hint="choose another name")
        _REGISTRY[name] = Verifier(name, args, function, (inspect.getdoc(function) or "").split("\n")[0], run_async)
        return function

    return register


def _identity(function: Callable[..., object]) -> set[tuple[str, str]]:
    """Where a function was written, by module and by file: a script is `__main__` here and a module elsewhere."""
    owner: object = function if hasattr(function, "__qualname__") else type(function)
    name = str(getattr(owner, "__qualname__", ""))
    places = {(str(getattr(owner, "__module__", "")), name)}
    code = getattr(function, "__code__", None)
    if inspect.iscode(code):
        places.add((code.co_filename, name))
    return places


def verifier_names() -> list[str]:
    """Names of all registered verifiers, sorted."""
    return sorted(_REGISTRY)


def get_verifier(name: str) -> Verifier:
    """The verifier of that name. Raises VerifierError, with the nearest names, when there is none."""
    found = _REGISTRY.get(name)
    if found is None:
        raise VerifierError(f"there is no verifier named {name!r}", hint=_suggest(name))
    return found


def _suggest(name: str) -> str:
    near = difflib.get_close_matches(name, _REGISTRY, n=3)
    # An official identifier is known by its second half: `no_comma` for `punctuation:no_comma`.
    near += [known for known in _REGISTRY if known.partition(":")[2] == name and known not in near]
    if not near:
        return "see rubricate.judges.verifiers.verifier_names()"
    return f"did you mean {' or '.join(near)}?"


def check_verifier(name: str, args: Mapping[str, object]) -> None:
    """Raises VerifierError when `run_verifier` would, whatever the response: unknown name or wrong arguments."""
    _validated(get_verifier(name), args)


def run_verifier(name: str, args: Mapping[str, object], given: Input) -> Check:
    """Run a verifier.

    Raises VerifierError, and nothing else, for an unknown name, wrong arguments (the message names the argument),
    a check that cannot decide, or a verifier that breaks (the original exception is its cause).
    """
    found = get_verifier(name)
    typed = _validated(found, args)
    with _explained(name):
        # Typed functions return what they must; others may return anything.
        return _checked(name, cast("object", found.run(given, typed)))


async def run_verifier_async(name: str, args: Mapping[str, object], given: Input) -> Check:
    """Run a verifier from an event loop: one that takes long does not hold it. Raises as `run_verifier` does."""
    found = get_verifier(name)
    if found.run_async is None:
        return run_verifier(name, args, given)
    typed = _validated(found, args)
    with _explained(name):
        return _checked(name, cast("object", await found.run_async(given, typed)))


@contextmanager
def _explained(name: str) -> Generator[None, None, None]:
    """Whatever a verifier raises, as a VerifierError that names it."""
    try:
        yield
    except VerifierError as error:
        if error.message.startswith(f"verifier {name!r}"):
            raise
        raise VerifierError(f"verifier {name!r}: {error.message}", hint=error.hint) from error
    except RubricateError as error:
        raise VerifierError(f"verifier {name!r}: {error.message}", hint=error.hint) from error
    except Exception as error:
        raise VerifierError(
            f"verifier {name!r} broke: {type(error).__name__}: {error}",
            hint="this is a fault in the verifier, not in the response",
        ) from error


def _checked(name: str, result: object) -> Check:
    if isinstance(result, Check):
        return result
    if isinstance(result, bool):
        return Check(result)
    if inspect.iscoroutine(result):
        result.close()
    raise VerifierError(
        f"verifier {name!r} returned {type(result).__name__}; it must return a Check or True or False"
    )


def _validated(found: Verifier, args: Mapping[str, object]) -> VerifierArgs:
    try:
        return found.args.model_validate(dict(args))
    except ValidationError as error:
        raise VerifierError(_explain(found, error), hint=_accepted(found)) from None
    except Exception as error:
        raise VerifierError(
            f"verifier {found.name!r}: its arguments cannot be read: {type(error).__name__}: {error}",
            hint=_accepted(found),
        ) from error


def _explain(found: Verifier, error: ValidationError) -> str:
    problems: list[str] = []
    for entry in error.errors(include_url=False, include_context=False, include_input=False)[:3]:
        # Beyond the field and positions in it, `loc` names branches of a union, which mean nothing to a user.
        field = ".".join(
            str(part) for position, part in enumerate(entry["loc"]) if not position or isinstance(part, int)
        )
        message = entry["msg"].removeprefix("Value error, ")
        if entry["type"] == "extra_forbidden":
            near = difflib.get_close_matches(field, _fields(found), n=1)
            message = "there is no such argument" + (f"; did you mean {near[0]!r}?" if near else "")
        problem = f"argument {field!r}: {message}" if field else message
        if problem not in problems:
            problems.append(problem)
    return f"verifier {found.name!r}, {'; '.join(problems)}"


def _fields(found: Verifier) -> list[str]:
    return [field.alias or name for name, field in found.args.model_fields.items()]


def _accepted(found: Verifier) -> str:
    fields = _fields(found)
    return f"it takes {', '.join(fields)}" if fields else "it takes no arguments"
