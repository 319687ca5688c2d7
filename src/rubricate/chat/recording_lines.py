"""Answers and errors of models as JSON, exactly: the values of the answer cache and the lines of recordings."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields

from rubricate import errors
from rubricate.chat.base import Capabilities, ChatModel, Completion, Finish, TokenLogprob
from rubricate.errors import RubricateError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import Usage

__all__ = [
    "HEADER",
    "answer_of",
    "answer_record",
    "as_line",
    "error_of",
    "error_record",
    "model_record",
    "read_capabilities",
]

VERSION = 1
HEADER: Mapping[str, object] = {"recording": "rubricate", "version": VERSION}
"""First line of a recording."""

_COUNTS = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")
_Rebuild = Callable[[type[RubricateError], Mapping[str, object]], RubricateError]
_rebuild: _Rebuild = RubricateError("").__reduce__()[0]


def as_line(record: Mapping[str, object]) -> bytes:
    """The record as a line of UTF-8 JSON. Halves of surrogate pairs, which UTF-8 has no place for, are escaped."""
    try:
        raw = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        raw = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    return raw + b"\n"


def answer_record(answer: Completion) -> dict[str, object]:
    """A completion as JSON values. What has its default is left out."""
    usage = answer.usage
    spent: dict[str, object] = {name: getattr(usage, name) for name in _COUNTS if getattr(usage, name)}
    if usage.cost:
        spent["cost"] = _finite(usage.cost)
    record: dict[str, object] = {"text": answer.text, "finish": answer.finish.value, "usage": spent}
    if answer.logprobs is not None:
        record["logprobs"] = [_token(token) for token in answer.logprobs]
    if answer.reasoning:
        record["reasoning"] = answer.reasoning
    if answer.refusal:
        record["refusal"] = answer.refusal
    if answer.prompt_logprobs is not None:
        record["prompt_logprobs"] = [_token(token) for token in answer.prompt_logprobs]
    return record


def _token(token: TokenLogprob) -> list[object]:
    if not token.top:
        return [token.token, _finite(token.logprob)]
    return [token.token, _finite(token.logprob), [[text, _finite(value)] for text, value in token.top]]


def _finite(value: float) -> float | str:
    """JSON has no infinity; as text, `float` reads it again."""
    return value if math.isfinite(value) else str(value)


def answer_of(record: Mapping[str, object]) -> Completion:
    """The completion that `answer_record` wrote. Raises ValueError for anything else."""
    text = record.get("text")
    if not isinstance(text, str):
        raise ValueError("an answer without a text")
    return Completion(
        text,
        Finish(str(record.get("finish"))),
        _usage(record.get("usage")),
        _tokens_of(record.get("logprobs")),
        str(record.get("reasoning", "")),
        str(record.get("refusal", "")),
        _tokens_of(record.get("prompt_logprobs")),
    )


def _tokens_of(value: object) -> tuple[TokenLogprob, ...] | None:
    return None if value is None else tuple(_token_of(item) for item in as_array(value) or ())


def _usage(value: object) -> Usage:
    spent = as_object(value)
    if spent is None:
        raise ValueError("an answer without its usage")
    calls, prompt, completion, cached = (int(as_number(spent.get(name)) or 0) for name in _COUNTS)
    return Usage(calls, prompt, completion, cached, _float(spent.get("cost", 0.0)))


def _token_of(value: object) -> TokenLogprob:
    match value:  # most of what is read, by far
        case [str() as text, float() as number]:
            return TokenLogprob(text, number)
        case _:
            token, logprob, *more = _parts(value)
    top = [_parts(pair) for pair in (_parts(more[0], 0) if more else ())]
    return TokenLogprob(str(token), _float(logprob), tuple((str(pair[0]), _float(pair[1])) for pair in top))


def _parts(value: object, least: int = 2) -> Sequence[object]:
    found = as_array(value)
    if found is None or len(found) < least:
        raise ValueError("a token without its log-probability")
    return found


def _float(value: object) -> float:
    if isinstance(value, int | float | str):
        return float(value)
    raise ValueError(f"{value!r} is no number")


def error_record(error: RubricateError) -> dict[str, object]:
    """An error as JSON values: the name of its type in `rubricate.errors`, and what it carries."""
    kind = next(cls for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
    carried = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float | None)}
    numbers = {name: _finite(value) for name, value in carried.items() if isinstance(value, float)}
    return {"type": kind.__name__, **carried, **numbers}


def error_of(record: Mapping[str, object]) -> RubricateError:
    """The error that `error_record` wrote. Raises ValueError for anything else."""
    name = record.get("type")
    kind: object = getattr(errors, name, None) if isinstance(name, str) and name in errors.__all__ else None
    told = isinstance(record.get("message"), str)
    if not (told and isinstance(kind, type) and issubclass(kind, RubricateError)):
        raise ValueError(f"{name!r} is no error of this version")
    return _rebuild(kind, {name: value for name, value in record.items() if name != "type"})


def model_record(model: ChatModel, fingerprint: str) -> dict[str, object]:
    """What a replay must know of a model besides its answers. Names and fingerprints hold no keys."""
    return {"model": fingerprint, "name": model.name, "capabilities": asdict(model.capabilities)}


def read_capabilities(value: object) -> Capabilities:
    """Capabilities as `model_record` wrote them; fields that this version does not know are left aside."""
    record = as_object(value) or {}
    known = {item.name for item in fields(Capabilities)}
    flags = {name: item for name, item in record.items() if name in known}

    def number(name: str) -> int | None:
        found = as_number(flags.get(name))
        return None if found is None else int(found)

    return Capabilities(
        logprobs=flags.get("logprobs") is True,
        json_schema=flags.get("json_schema") is True,
        prefill=flags.get("prefill") is True,
        context=number("context"),
        warm_tokens=number("warm_tokens"),
    )
