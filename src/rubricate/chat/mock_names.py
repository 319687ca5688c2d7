"""The names of mock models: `mock:yes`, `mock:p=0.7`, `mock:/path/script.jsonl`, and the reader of such scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from rubricate.chat.base import ChatRequest, Finish
from rubricate.chat.mock import Answer, FailRate, MockModel, Scripted
from rubricate.errors import (
    ChatError,
    ConfigError,
    ContextOverflowError,
    FormatError,
    RateLimitError,
    RequestError,
    ServerError,
)
from rubricate.narrow import as_number, as_object

__all__ = ["MOCK_NAMES", "load_mock", "read_script"]


def _echo(request: ChatRequest) -> str:
    return request.messages[-1].content


MOCK_NAMES: Mapping[str, Answer | Callable[[ChatRequest], Answer] | float] = {
    "yes": 1.0,
    "no": 0.0,
    "echo": _echo,
    "empty": "",
    "length": Scripted("cut", finish=Finish.LENGTH),
    "content_filter": Scripted(finish=Finish.CONTENT_FILTER),
    "refusal": Scripted(refusal="I cannot help with that."),
    "error": ServerError("scripted failure", status=500),
    "hang": Scripted(hang=True),
}

"""What each answers: a number is P(yes), and such a model also gives the JSON replies that our judges ask for."""

_ERRORS: Mapping[str, Callable[[str], ChatError]] = {
    "server": lambda message: ServerError(message, status=500),
    "rate_limit": RateLimitError,
    "request": lambda message: RequestError(message, status=400),
    "overflow": ContextOverflowError,
}

_FIELDS = (
    "text",
    "match",
    "times",
    "top",
    "p_yes",
    "finish",
    "reasoning",
    "refusal",
    "error",
    "retry_after",
    "hang",
)


def load_mock(spec: str, *, failure_rate: float = 0.0, seed: int = 0, latency: float = 0.0) -> MockModel:
    """The mock model of that name.

    Args:
        spec: a name of MOCK_NAMES; `p=0.7` for P(yes), as `yes` is `p=1`; or the path of a JSONL script (see
            read_script), which starts again when it is used up.
        failure_rate, seed: each call fails with that probability.
        latency: seconds before each answer.

    Raises ConfigError for an unknown name, FormatError for a script that cannot be read.
    """
    fail = FailRate(failure_rate, seed) if failure_rate else None
    name = f"mock:{spec}"
    known = _probability(spec[2:]) if spec.startswith("p=") else MOCK_NAMES.get(spec)
    if isinstance(known, int | float):
        return MockModel(p_yes=known, replies=True, fail=fail, latency=latency, name=name)
    if known is not None:
        return MockModel(known, fail=fail, latency=latency, name=name)
    if spec.endswith(".jsonl") or "/" in spec:
        return MockModel(read_script(spec), fail=fail, latency=latency, repeat=True, name=name)
    names = ", ".join([*MOCK_NAMES, "p=0.7", "/path/script.jsonl"])
    raise ConfigError(f"there is no mock model named {name!r}", hint=f"use mock: and one of {names}")


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"mock:p={text}: P(yes) must be a number in [0, 1]")
    return value


def read_script(path: str | Path) -> list[Answer]:
    """Read a script, a JSON object a line.

    Fields, all optional: `text`, `match`, `times`, `top`, `finish`, `reasoning`, `refusal`, `hang` as in Scripted;
    `p_yes` for `top` of yes and no; `error`, one of server, rate_limit, request and overflow, with `text` for its
    message and `retry_after` in seconds.

    Raises FormatError with the line and the field.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"the script cannot be read: {error}", source=str(path)) from None
    script: list[Answer] = [_line(text, str(path), at) for at, text in enumerate(lines, 1) if text.strip()]
    if not script:
        raise FormatError("the script is empty", source=str(path))
    return script


def _line(text: str, source: str, at: int) -> Scripted:
    def bad(message: str, field: str = "") -> FormatError:
        return FormatError(message, source=source, line=at, field=field)

    try:
        record = as_object(json.loads(text))
    except ValueError as error:
        raise bad(f"not JSON: {error}") from None
    if record is None:
        raise bad("not a JSON object")
    unknown = next((key for key in record if key not in _FIELDS), None)
    if unknown is not None:
        raise bad(f"unknown field; known are {', '.join(_FIELDS)}", unknown)
    for key in ("text", "match", "reasoning", "refusal", "finish", "error"):
        if not isinstance(record.get(key, ""), str):
            raise bad("must be a text", key)
    finish, kind = str(record.get("finish", "stop")), str(record.get("error", ""))
    if finish not in list(Finish):
        raise bad(f"must be one of {', '.join(Finish)}", "finish")
    if kind and kind not in _ERRORS:
        raise bad(f"must be one of {', '.join(_ERRORS)}", "error")
    error = _ERRORS[kind](str(record.get("text") or "scripted failure")) if kind else None
    if error is not None and "retry_after" in record:
        vars(error)["retry_after"] = as_number(record["retry_after"])
    times = as_number(record.get("times"))
    return Scripted(
        text=str(record.get("text", "")),
        match=str(record.get("match", "")),
        times=None if times is None else int(times),
        top=_top(record, bad),
        finish=Finish(finish),
        reasoning=str(record.get("reasoning", "")),
        refusal=str(record.get("refusal", "")),
        error=error,
        hang=record.get("hang") is True,
    )


def _top(record: Mapping[str, object], bad: Callable[[str, str], FormatError]) -> dict[str, float]:
    given: dict[str, object] = dict(as_object(record.get("top")) or {})
    if "p_yes" in record:
        p = as_number(record["p_yes"])
        given = {"yes": p, "no": None if p is None else 1.0 - p}
    top = dict[str, float]()
    for token, value in given.items():
        share = as_number(value)
        if share is None or not 0.0 <= share <= 1.0:
            raise bad("probabilities must be numbers in [0, 1]", "p_yes" if "p_yes" in record else "top")
        top[token] = share
    return top
