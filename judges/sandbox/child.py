"""The inside of the sandbox: reads a request, locks itself in, then compiles and runs the untrusted check.

This module runs in an interpreter of its own and imports the standard library and RestrictedPython alone. It ends
by `os._exit`, so that nothing that a check left behind runs after its verdict.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rubricate.judges.sandbox.facades import preload
from rubricate.judges.sandbox.language import Forbidden, Guards, SourceError, compile_check
from rubricate.judges.sandbox.seccomp import FilterError, install, self_test

__all__ = ["main"]

_OUTPUT = 1
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;_'\"+-*/()[]<>=")
_EXCEPTIONS = {
    kind: kind.__name__
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}


class _Witness:
    """Sees what goes wrong where no exception reaches the caller.

    As the only finder, it is asked for what was not loaded before the filter and cannot be loaded any more. As the
    interpreter's hook, it gets exceptions of generators that are dropped, a used-up limit among them.
    """

    def __init__(self) -> None:
        self.wanted = ""
        self.lost = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        self.wanted = self.wanted or name

    def hook(self, unraisable: object) -> None:
        self.lost = True

    def watch(self) -> None:
        """Take the places of all finders and of the hook."""
        sys.meta_path[:] = [self]
        sys.unraisablehook = self.hook

    def forget(self) -> None:
        """Begin with the next text."""
        self.wanted, self.lost = "", False


def main() -> NoReturn:
    """Serve one request from standard input, then exit."""
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))
    say = _speaker(str(request["nonce"]))
    witness = _Witness()
    try:
        _enclose(request)
    except (FilterError, OSError, ValueError) as error:
        say("unsupported", str(error))
        os._exit(1)
    if request["restricted"]:
        witness.watch()
    gc.freeze()  # what is there already never goes away, so that each collection is short
    say("ready", "")
    run = _runner(request, witness)
    for index, text in enumerate(request["texts"]):
        outcome, detail = run(text)
        say(f"{index} {outcome}", detail)
    say("end", "")
    os._exit(0)


def _speaker(nonce: str) -> Callable[[str, str], None]:
    def say(what: str, detail: str) -> None:
        plain = "".join(character if character in _PLAIN else "?" for character in detail[:160])
        os.write(_OUTPUT, f"{nonce} {what} {plain}\n".encode("ascii"))

    return say


def _enclose(request: Mapping[str, Any]) -> None:
    """Limits, closed descriptors, then the filter; all that needs the system has been loaded by now."""
    preload()
    # Whatever is printed goes nowhere: the result's descriptor is not for it.
    sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None
    os.close(0)
    os.closerange(2, 64)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + request["cpu"]) + 2
    limits = {
        "RLIMIT_AS": request["memory"],
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": seconds,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_NOFILE": 2,
        "RLIMIT_NPROC": 0,
    }
    # A limit that this system does not have; without a filter, one that it does not let us set either (macOS).
    spared = (AttributeError,) if request["seccomp"] else (AttributeError, OSError, ValueError)
    for name, value in limits.items():
        with contextlib.suppress(*spared):
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (bound, bound))
    if request["seccomp"]:
        library = ctypes.CDLL(None)
        library.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG: die with the parent
        library.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: no one may look inside
        install(_OUTPUT)
        self_test()


def _runner(request: Mapping[str, Any], witness: _Witness) -> Callable[[str], tuple[str, str]]:
    """A function that runs the check on one text, with new globals each time."""
    restricted: bool = request["restricted"]
    source: str = request["source"]
    try:
        code = compile_check(source) if restricted else compile(source, "<check>", "exec")
    except Forbidden as error:
        unusable = "forbidden", str(error)
    except (SourceError, SyntaxError, ValueError) as error:
        unusable = "source", str(error)
    except (MemoryError, RecursionError) as error:
        unusable = "memory", f"{type(error).__name__} while the source was compiled"
    else:

        def run(text: str) -> tuple[str, str]:
            guards = Guards()
            witness.forget()
            outcome = _outcome(lambda: _call(code, guards, request["function"], text, restricted))
            # Cycles that this text left must neither fill the memory of the next one nor raise in its time.
            gc.collect()
            if guards.refused:
                return "forbidden", guards.refused
            if witness.wanted:
                return "forbidden", f"the library wanted to import {witness.wanted}"
            if witness.lost:
                return "error", "an exception where nobody could catch it"
            return outcome

        return run
    return lambda text: unusable


def _call(code: Any, guards: Guards, name: str, text: str, restricted: bool) -> object:
    namespace = guards.namespace() if restricted else {"__builtins__": builtins, "__name__": "check"}
    exec(code, namespace)
    function = namespace.get(name)
    if not callable(function):
        raise _NoFunctionError
    return function(text)


class _NoFunctionError(Exception):
    """The source does not define the function."""


def _outcome(call: Callable[[], object]) -> tuple[str, str]:
    """What came of a call. Nothing of the objects that a check makes is called or printed here."""
    try:
        result = call()
    except _NoFunctionError:
        return "source", "it does not define the function"
    except MemoryError:
        return "memory", ""
    except Forbidden as error:
        return "forbidden", str(error) if type(error) is Forbidden else ""
    except BaseException as error:
        name = _EXCEPTIONS.get(type(error))
        return "error", f"{name}, line {_line(error)}" if name else "an exception of a class of its own"
    # Identity, since an object could claim to be equal to both, and `bool` has no other instances.
    if result is True:
        return "met", ""
    if result is False:
        return "unmet", ""
    kind = type(result)
    return "bad_result", kind.__name__ if kind in (int, str, float, list, dict, type(None), tuple) else "an object"


def _line(error: BaseException) -> int:
    """The last line of the check's own that the exception passed."""
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<check>":
            line = step.tb_lineno
        step = step.tb_next
    return line
