"""One string names a model everywhere: the back ends, their schemes, and `connect`, which makes the model."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rubricate.chat.base import ChatModel
from rubricate.chat.cache import AnswerCache, open_cache
from rubricate.chat.cache_model import Cached
from rubricate.chat.limited import Final, Limited
from rubricate.chat.limiter import Limiter
from rubricate.chat.limits import Limits
from rubricate.chat.recording import Recording, open_recording
from rubricate.chat.recording_model import Recorder
from rubricate.errors import ConfigError
from rubricate.narrow import as_number

__all__ = ["BackEnd", "connect", "register_back_end", "schemes"]


@dataclass(frozen=True, slots=True)
class BackEnd:
    """A family of models.

    Attributes:
        scheme: what a name begins with, up to the colon.
        loader: gives the function that makes a model from what stands behind the scheme. It imports that function
            when it is called; the function's keyword-only parameters are the options of names.
        example: a name, for error messages.
        limits: used where the caller gives none.
    """

    scheme: str
    loader: Callable[[], Callable[..., ChatModel]]
    example: str
    limits: Limits = Limits()


def _openai() -> Callable[..., ChatModel]:
    from rubricate.chat.openai_sdk import load_openai

    return load_openai


def _server() -> Callable[..., ChatModel]:
    from rubricate.chat.server import load_server

    return load_server


def _decisions() -> Callable[..., ChatModel]:
    from rubricate.chat.decisions import load_decisions

    return load_decisions


def _local() -> Callable[..., ChatModel]:
    from rubricate.chat.local import load_local

    return load_local


def _vllm() -> Callable[..., ChatModel]:
    from rubricate.chat.vllm import load_vllm

    return load_vllm


def _mock() -> Callable[..., ChatModel]:
    from rubricate.chat.mock_names import load_mock

    return load_mock


def _replay() -> Callable[..., ChatModel]:
    from rubricate.chat.replay import load_replay

    return load_replay


# A model in this process has a batcher of its own, fails alike every time, and may take long over an answer.
_IN_PROCESS = Limits(concurrency=None, max_attempts=1, attempt_timeout=None, breaker_failures=None)

_BACK_ENDS: dict[str, BackEnd] = {}


def register_back_end(back_end: BackEnd) -> None:
    """Add a family of models, or replace the one of that scheme."""
    _BACK_ENDS[back_end.scheme] = back_end


for _back_end in (
    BackEnd("openai", _openai, "openai:gpt-5-mini"),
    BackEnd("http", _server, "http://localhost:8000/v1#model"),
    BackEnd("https", _server, "https://host/v1#model"),
    BackEnd("decisions", _decisions, "decisions:http://localhost:8000/v1"),
    BackEnd("local", _local, "local:smollm2", _IN_PROCESS),
    BackEnd("vllm", _vllm, "vllm:/DIR", _IN_PROCESS),
    BackEnd("mock", _mock, "mock:yes", Limits(concurrency=None, attempt_timeout=None)),
    BackEnd("replay", _replay, "replay:RUN.jsonl"),
):
    register_back_end(_back_end)


def schemes() -> list[str]:
    """What a model's name may begin with, sorted."""
    return sorted(_BACK_ENDS)


def connect(
    name: str | ChatModel,
    *,
    limits: Limits | None = None,
    limiter: Limiter | None = None,
    api_key: str | None = None,
    cache: AnswerCache | str | Path | None = None,
    record: Recording | str | Path | None = None,
    **options: object,
) -> ChatModel:
    """The model of that name, behind a limiter. Nothing is loaded or asked before its first call.

    Names are `openai:MODEL` (OPENAI_API_KEY and OPENAI_BASE_URL are read), `http://HOST:PORT/v1#MODEL` or https
    (without `#MODEL` the server is asked; RUBRICATE_API_KEY is read), `local:smollm2`, `local:/DIR`,
    `local:/FILE.gguf`, `vllm:/DIR` (vLLM without a server), `decisions:http://HOST:PORT/v1#MODEL` (a server's
    decisions API, for DecisionsJudge), `replay:/RECORDING.jsonl`, and `mock:yes`, `mock:no`, `mock:p=0.7`,
    `mock:/SCRIPT.jsonl` among others. Options of the back end follow `?`, as in
    `local:/DIR?adapter=/LORA&dtype=float32`, or are given as keywords.

    Args:
        name: the name, or a model, which is put behind a limiter unless it is behind one already.
        limits: bounds for this model alone.
        limiter: a limiter to share with other models, in place of `limits`.
        api_key: for back ends that take one. It stays out of names, fingerprints and messages.
        cache: answers are looked up there first, and kept: an AnswerCache, or the path of one.
        record: what becomes of every request is written there: a Recording, or the path of one.

    A replay has no limiter, and takes no cache: it gives what was recorded.

    Raises ConfigError for an unknown name or option, MissingExtraError for a missing package.
    """
    if limits is not None and limiter is not None:
        raise ConfigError("give limits or a limiter, not both", hint="make one Limiter(limits) and share it")
    if isinstance(name, ChatModel):
        if options or api_key is not None:
            raise ConfigError(
                "options go with a name; this model is made already", hint="set them where it is made"
            )
        return _kept(_limit(name, limits, limiter, Limits()), cache, record)
    back_end, spec, query = _split(name)
    given = {**query, **options}
    twice = sorted(set(query) & set(options))
    if twice:
        raise ConfigError(f"option {twice[0]!r} is given twice, in the name and as a keyword")
    if api_key is not None:
        given["api_key"] = api_key
    load = back_end.loader()
    _check_options(back_end, load, given)
    return _kept(_limit(load(spec, **given), limits, limiter, back_end.limits), cache, record)


def _kept(
    model: ChatModel, cache: AnswerCache | str | Path | None, record: Recording | str | Path | None
) -> ChatModel:
    """The model behind a cache and a recording."""
    if cache is not None:
        if isinstance(model, Final):
            raise ConfigError("a replay takes no cache: it gives what was recorded", hint="leave the cache out")
        if not isinstance(model, Limited):
            raise ConfigError(
                "one cache stands between limits and recording", hint="give all of them to one connect"
            )
        model = Cached(model, open_cache(cache))
    return model if record is None else Recorder(model, open_recording(record))


def _limit(model: ChatModel, limits: Limits | None, limiter: Limiter | None, default: Limits) -> ChatModel:
    if isinstance(model, Final):
        return model
    if isinstance(model, Cached | Recorder):
        if limits is None and limiter is None:
            return model
        raise ConfigError("limits go under cache and recording", hint="give all of them to one connect")
    if isinstance(model, Limited):
        if limits is None and limiter is None:
            return model
        model = model.model
    return Limited(model, limiter or Limiter(limits or default))


def _split(name: str) -> tuple[BackEnd, str, dict[str, object]]:
    """The back end, what stands behind the scheme, and the options in the name."""
    scheme, colon, rest = name.partition(":")
    back_end = _BACK_ENDS.get(scheme)
    if not colon or back_end is None:
        raise _unknown(name.partition("?")[0], scheme)
    if rest.startswith("//"):
        return back_end, *_split_url(name)
    spec, _, query = rest.partition("?")
    return back_end, spec, _options(query)


def _split_url(name: str) -> tuple[str, dict[str, object]]:
    """`http://host/v1?a=1#model`, or with the options after the model."""
    parts = urlsplit(name)
    model, _, late = parts.fragment.partition("?")
    url = f"{parts.scheme}://{parts.netloc}{parts.path}"
    return f"{url}#{model}" if model else url, {**_options(parts.query), **_options(late)}


def _options(query: str) -> dict[str, object]:
    """Options of a query part: numbers, true, false, null and JSON as such, all else as text. `+` stays a plus."""
    options = dict[str, object]()
    for pair in filter(None, query.split("&")):
        key, _, text = pair.partition("=")
        if key == "api_key":
            raise ConfigError("a model's name must not hold a key", hint="give api_key, or set the variable")
        options[unquote(key)] = _value(unquote(text))
    return options


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    # json reads NaN and Infinity, which no option means.
    return text if isinstance(value, float) and as_number(value) is None else value


def _check_options(back_end: BackEnd, load: Callable[..., ChatModel], given: Mapping[str, object]) -> None:
    parameters = inspect.signature(load).parameters.values()
    known = [item.name for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY]
    if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters):
        return
    for option in given:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known) or 'none'}"
            raise ConfigError(f"{back_end.scheme}: models have no option {option!r}", hint=hint)


def _unknown(name: str, scheme: str) -> ConfigError:
    near = difflib.get_close_matches(scheme.lower(), _BACK_ENDS, n=1)
    examples = ", ".join(back_end.example for back_end in _BACK_ENDS.values())
    hint = f"names look like {examples}"
    if near:
        hint = f"did you mean {near[0]}:…? {hint}"
    elif ":" not in name and scheme.lower().startswith(("gpt-", "o1", "o3", "o4")):
        hint = f"did you mean openai:{name}? {hint}"
    return ConfigError(f"{name!r} does not name a model", hint=hint)
