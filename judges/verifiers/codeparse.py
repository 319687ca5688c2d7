"""Whether a piece of code parses, for the languages that need no package to tell."""

from __future__ import annotations

import ast
import importlib
import json
import re
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Protocol, cast

__all__ = ["PARSED_LANGUAGES", "canonical", "fault_in"]

_ALIASES = {
    "py": "python",
    "python3": "python",
    "py3": "python",
    "yml": "yaml",
    "jsonlines": "jsonl",
    "ndjson": "jsonl",
    "js": "javascript",
    "ts": "typescript",
    "sh": "bash",
    "shell": "bash",
    "zsh": "bash",
    "c++": "cpp",
    "cs": "csharp",
    "c#": "csharp",
    "rb": "ruby",
    "rs": "rust",
    "golang": "go",
    "md": "markdown",
}


def canonical(language: str) -> str:
    """One name for a language that goes by several."""
    return _ALIASES.get(language.lower(), language.lower())


def fault_in(language: str, code: str) -> str | None:
    """What keeps the code from parsing, in a few words; None when it parses or there is no parser for it."""
    parse = _PARSERS.get(canonical(language))
    if parse is None:
        return None
    try:
        parse(code)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (RecursionError, MemoryError):
        return "nested too deeply"
    except ValueError as error:
        return str(error).split("\n")[0][:120] or "does not parse"
    return None


# Filters of warnings belong to the process: only one thread at a time may set them aside.
_QUIET = threading.Lock()


def _python(code: str) -> None:
    with _QUIET, warnings.catch_warnings():
        # "\d" in a plain string is a warning, and an error under -W error; the code parses all the same.
        warnings.simplefilter("ignore")
        ast.parse(code)


def _json(code: str) -> None:
    json.loads(code)


def _json_lines(code: str) -> None:
    for line in code.split("\n"):
        if line.strip():
            json.loads(line)


# tomllib takes time quadratic in the parts of a dotted key.
_LONG_KEY = re.compile(r"\[{0,2}(?:\s*[\w\"'-]+\s*\.){200}")


def _toml(code: str) -> None:
    import tomllib

    if any(_LONG_KEY.match(line) for line in code.split("\n")):
        raise RecursionError
    tomllib.loads(code)


class _Yaml(Protocol):
    YAMLError: type[Exception]
    SafeLoader: type[object]

    def parse(self, stream: str, Loader: type[object]) -> Iterable[object]: ...


def _yaml(code: str) -> None:
    yaml = cast("_Yaml", importlib.import_module("yaml"))
    # libyaml's parser where it is built in: fifty times faster on a long document.
    loader = cast("type[object]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        for _ in yaml.parse(code, Loader=loader):
            pass
    except (yaml.YAMLError, UnicodeError) as error:
        raise ValueError(" ".join(str(error).split())) from None


_PARSERS: dict[str, Callable[[str], None]] = {
    "python": _python,
    "json": _json,
    "jsonl": _json_lines,
    "toml": _toml,
    "yaml": _yaml,
}

PARSED_LANGUAGES = tuple(_PARSERS)
"""Languages whose code is parsed."""
