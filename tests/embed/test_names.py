"""Names of embedders, and the hashed embedder for tests."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.bridge import run_sync
from rubricate.embed import Embedder, MockEmbedder, Vectors, connect_embedder, cosine
from rubricate.embed.server import ServerEmbedder
from rubricate.errors import ConfigError, FormatError


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wordlama", "did you mean wordllama"),
        ("Mock", "did you mean mock"),
        ("", "names look like"),
        ("openai", "names look like"),
        ("openai:", "name is missing"),
        ("mock:yes", "no mock embedder 'yes'"),
        ("wordllama:big", "one wordllama only"),
        ("mock?colour=1", "colour"),
        ("mock?dimensions=0", "at least 1"),
        ("openai:m?api_key=sk-1", "must not hold a key"),
        ("http://user:pw@host/v1#m", "user name or password"),
        ("http:/host", "not the address"),
        ("local:/no/such/place", "no local model"),
    ],
)
def test_names_that_name_nothing(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        connect_embedder(name)
    assert "sk-1" not in str(caught.value) and "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("wordllama", "wordllama"),
        ("mock", "mock"),
        ("openai:text-embedding-3-small?dimensions=256", "openai:text-embedding-3-small"),
        ("http://host:1/v1#org/model", "http://host:1/v1#org/model"),
        ("http://host:1", "http://host:1/v1"),
        ("https://host/v1/embeddings?batch=8#m", "https://host/v1#m"),
        ("https://host/v1#m?batch=8", "https://host/v1#m"),
    ],
)
def test_names(name: str, called: str) -> None:
    embedder = connect_embedder(name)
    assert embedder.name == called
    assert connect_embedder(embedder) is embedder
    if "batch" in name:
        assert isinstance(embedder, ServerEmbedder) and embedder.batch == 8


def test_options_are_given_once_and_to_names_alone() -> None:
    with pytest.raises(ConfigError, match="twice"):
        connect_embedder("mock?dimensions=4", dimensions=4)
    with pytest.raises(ConfigError, match="made already"):
        connect_embedder(MockEmbedder(), dimensions=4)
    with pytest.raises(ConfigError, match="no API key"):
        connect_embedder("mock", api_key="sk-1")
    assert connect_embedder("mock", dimensions=5).dimensions == 5


def test_the_mock_is_the_same_in_every_process_and_close_for_shared_words() -> None:
    texts = ["The answer cites sources.", "the answer cites good sources", "warm tone", "!?"]
    embedder = connect_embedder("mock?dimensions=256")
    vectors = run_sync(embedder.embed(texts))
    table = cosine(vectors, vectors)
    assert table[0, 1] > 0.6 and abs(table[0, 2]) < 0.3
    code = (
        "from rubricate.embed import MockEmbedder; from rubricate.bridge import run_sync; import sys;"
        f"sys.stdout.buffer.write(run_sync(MockEmbedder(256).embed({texts!r})).tobytes())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert other == vectors.tobytes()
    copy: Embedder = pickle.loads(pickle.dumps(embedder))
    assert copy.fingerprint == embedder.fingerprint != MockEmbedder(64).fingerprint


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_every_text_has_a_unit_vector_or_is_named(texts: list[str]) -> None:
    try:
        vectors = run_sync(MockEmbedder().embed(texts))
    except FormatError as error:
        index = int(error.field.removeprefix("texts[").removesuffix("]"))
        assert not texts[index].strip() or any("\ud800" <= character <= "\udfff" for character in texts[index])
    else:
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


class Broken(Embedder):
    """Gives whatever it is told to."""

    name = "broken"

    def __init__(self, *rows: list[float]) -> None:
        self.rows = np.array(rows, dtype=np.float32)

    @property
    def fingerprint(self) -> str:
        return "0"

    @property
    def dimensions(self) -> None:
        return None

    async def _embed(self, texts: list[str]) -> Vectors:
        return self.rows


def test_no_embedder_gets_a_row_without_direction_past_the_interface() -> None:
    with pytest.raises(FormatError, match="zero vector") as caught:
        run_sync(Broken([1, 0], [0, 0]).embed(["a", "b"]))
    assert caught.value.field == "texts[1]"
    with pytest.raises(FormatError, match="not finite"):
        run_sync(Broken([float("nan"), 0], [1, 0]).embed(["a", "b"]))
    tiny = run_sync(Broken([1e-30, 0], [3, 4]).embed(["a", "b"]))
    np.testing.assert_allclose(tiny, [[1, 0], [0.6, 0.8]], atol=1e-7)
