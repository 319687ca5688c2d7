"""Names of models, their options, and limits."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rubricate.chat import (
    BackEnd,
    ChatModel,
    ChatRequest,
    Limited,
    Limiter,
    Limits,
    Message,
    MockModel,
    connect,
    register_back_end,
    schemes,
)
from rubricate.chat.openai_sdk import OpenAIModel
from rubricate.chat.server import ServerModel
from rubricate.errors import ConfigError


def behind(name: str) -> ChatModel:
    model = connect(name)
    assert isinstance(model, Limited)
    return model.model


def test_server_names() -> None:
    model = behind("http://localhost:8000/v1?schema=llama.cpp&timeout=5#org/model-7b")
    assert isinstance(model, ServerModel)
    assert (model.name, model.model) == ("http://localhost:8000/v1#org/model-7b", "org/model-7b")
    assert (model.dialect.schema, model.timeout) == ("llama.cpp", 5)
    late = behind("https://host#m?context=4096&warm_tokens=null")
    assert isinstance(late, ServerModel)
    assert (late.url, late.model) == ("https://host/v1", "m")
    assert (late.capabilities.context, late.capabilities.warm_tokens) == (4096, None)
    more = behind("http://localhost:8000/v1?extra=%7B%22top_k%22%3A%201%7D")
    assert isinstance(more, ServerModel)
    assert more.dialect.extra == {"top_k": 1}
    keyword = connect("http://localhost:8000/v1", extra={"top_k": 1})
    assert isinstance(keyword, Limited) and isinstance(keyword.model, ServerModel)
    assert keyword.model.dialect.extra == {"top_k": 1}


def test_openai_names() -> None:
    model = behind("openai:ft:gpt-4o:org::id?reasoning_effort=low&sampling=false")
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.model) == ("openai:ft:gpt-4o:org::id", "ft:gpt-4o:org::id")
    assert model.dialect.extra == {"reasoning_effort": "low"}
    assert not model.dialect.sampling
    assert model.fingerprint != behind("openai:ft:gpt-4o:org::id").fingerprint


def test_options_are_decoded_once_and_typed() -> None:
    seen = dict[str, object]()

    def load(
        spec: str, *, adapter: str = "", threads: int = 0, flag: bool = False, api_key: str | None = None
    ) -> ChatModel:
        seen.update(spec=spec, adapter=adapter, threads=threads, flag=flag, api_key=api_key)
        return MockModel()

    register_back_end(BackEnd("testing", lambda: load, "testing:x", Limits(concurrency=7)))
    assert "testing" in schemes()
    model = connect("testing:/dir/a+b?adapter=/x%20y/a+b&threads=2&flag=true", api_key="sk-1")
    assert seen == {"spec": "/dir/a+b", "adapter": "/x y/a+b", "threads": 2, "flag": True, "api_key": "sk-1"}
    assert isinstance(model, Limited)
    assert model.limiter.limits == Limits(concurrency=7)
    connect("testing:a?adapter=NaN")
    assert seen["adapter"] == "NaN"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opnai:gpt-5", "did you mean openai:"),
        ("gpt-4o", "openai:gpt-4o"),
        ("HTTP://host", "did you mean http:"),
        ("nonsense", "mock:yes"),
        ("", "mock:yes"),
        ("mock:maybe", "mock: and one of yes"),
        ("http:host", "http://host:port/v1#model"),
        ("openai:", "openai:gpt-5-mini"),
        ("openai:m?tmeout=3", "did you mean 'timeout'"),
        ("mock:yes?zzz=3", "failure_rate"),
    ],
)
def test_wrong_names_say_what_to_write(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(name)
    assert hint in caught.value.hint


def test_a_key_in_a_name_is_refused_and_not_repeated() -> None:
    for name in ("openai:m?api_key=sk-secret", "http://host/v1?api_key=sk-secret#m", "http://u:sk-secret@host/v1"):
        with pytest.raises(ConfigError) as caught:
            connect(name)
        assert "sk-secret" not in str(caught.value)


def test_a_model_is_put_behind_one_limiter() -> None:
    raw, limiter = MockModel(), Limiter(Limits(concurrency=2))
    limited = connect(raw, limiter=limiter)
    assert isinstance(limited, Limited)
    assert (limited.model, limited.limiter) == (raw, limiter)
    assert connect(limited) is limited
    other = connect(limited, limits=Limits(concurrency=9))
    assert isinstance(other, Limited)
    assert (other.model, other.limiter.limits.concurrency) == (raw, 9)


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="not both"):
        connect("mock:yes", limits=Limits(), limiter=Limiter())
    with pytest.raises(ConfigError, match="given twice"):
        connect("mock:yes?seed=1", seed=2)
    with pytest.raises(ConfigError, match="made already"):
        connect(MockModel(), seed=2)
    with pytest.raises(ConfigError, match="no option 'api_key'"):
        connect("mock:yes", api_key="sk-1")


async def test_a_connected_mock_answers() -> None:
    request = ChatRequest((Message("user", "Is it so?"),))
    assert (await connect("mock:no").complete(request)).text == "no"


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, rubricate.chat as c; c.connect('openai:gpt-5-mini'); c.connect('http://h/v1#m')\n"
        "heavy = ('aiohttp', 'openai', 'torch', 'transformers', 'pydantic', 'numpy')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
