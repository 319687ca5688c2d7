"""The embedded default: the same vectors as the package's own formula, whatever stands around a text."""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rubricate.bridge import run_sync
from rubricate.chat import deadline
from rubricate.embed import Vectors, connect_embedder, cosine
from rubricate.embed.wordllama import WordLlamaEmbedder
from rubricate.errors import ConfigError, DeadlineError, FormatError, MissingExtraError

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")
if importlib.util.find_spec("wordllama") is None:
    pytest.skip("the package wordllama is not installed", allow_module_level=True)

TEXTS = [
    "The response cites at least two sources.",
    "a",
    "日本語の回答は丁寧である",
    "🙂🙂 \u200b e\u0301 \x00 \n\t tabs",
    "<s> </s> <unk>",
    "x" * 5000,
    "cites sources and is clear. " * 2000,
]


def embed(texts: list[str]) -> Vectors:
    return run_sync(connect_embedder("wordllama").embed(texts))


def by_the_package(texts: list[str]) -> Vectors:
    """Padded batches, masked means, norms: the package's formula on its two files."""
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
    from tokenizers import Tokenizer

    found = importlib.util.find_spec("wordllama")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0])
    table = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"].astype(np.float32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.enable_padding()  # pyright: ignore[reportUnknownMemberType]
    tokenizer.no_truncation()
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    mask = np.array([one.attention_mask for one in encoded], dtype=np.float32)[..., None]
    rows = (table[np.array([one.ids for one in encoded])] * mask).sum(axis=1) / mask.sum(axis=1)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def test_vectors_are_those_of_the_package() -> None:
    vectors = embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 256) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[:6], by_the_package(TEXTS[:6]), atol=2e-6)
    np.testing.assert_allclose(vectors[6:], by_the_package(TEXTS[6:]), atol=2e-5)  # a float32 sum of 14,000
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_the_texts_around_it() -> None:
    many = [f"criterion {i} of many" for i in range(1500)]
    whole = embed(many[:700] + TEXTS + many[700:])
    alone = np.concatenate([embed([text]) for text in TEXTS])
    assert (whole[700 : 700 + len(TEXTS)] == alone).all()
    assert (whole[1490] == embed([many[1490 - len(TEXTS)]])[0]).all()


def test_close_texts_are_close_and_so_are_negations() -> None:
    table = cosine(
        embed(["The answer cites its sources.", "Sources are cited in the answer."]),
        embed(["The answer does not cite its sources.", "The tone is warm and friendly."]),
    )
    assert (table[:, 0] > 0.6).all() and (table[:, 1] < 0.5).all()


def test_blank_and_broken_texts_are_named() -> None:
    for bad in ("", " \n\t", "\u3000"):
        with pytest.raises(FormatError, match="blank") as caught:
            embed(["fine", bad])
        assert caught.value.field == "texts[1]"
    with pytest.raises(FormatError, match=r"U\+D800.*at 3") as caught:
        embed(["fine", "fine", "ab \ud800"])
    assert caught.value.field == "texts[2]"
    with pytest.raises(ConfigError, match="list of texts"):
        run_sync(connect_embedder().embed("one text"))
    assert embed([]).shape == (0, 256)


def test_threads_loops_and_pickles() -> None:
    embedder = connect_embedder("wordllama")
    run_sync(embedder.aclose())  # so that the threads load it

    def use(who: int) -> Vectors:
        return run_sync(embedder.embed(TEXTS)) if who % 2 else asyncio.run(embedder.embed(TEXTS))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(use, range(4)))
    copy: WordLlamaEmbedder = pickle.loads(pickle.dumps(embedder))
    assert len(pickle.dumps(embedder)) < 1000 and copy.fingerprint == embedder.fingerprint
    for vectors in (*found, run_sync(copy.embed(TEXTS))):
        assert (vectors == found[0]).all()


async def test_a_deadline_ends_long_work() -> None:
    with deadline(0), pytest.raises(DeadlineError):
        await connect_embedder().embed(["a"])


def test_without_the_package_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> importlib.machinery.ModuleSpec | None:
        return None

    embedder = connect_embedder()
    run_sync(embedder.aclose())
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", nothing)
        with pytest.raises(MissingExtraError, match="pip install --no-deps wordllama"):
            run_sync(embedder.embed(["a"]))
        with pytest.raises(MissingExtraError):
            _ = embedder.fingerprint


def test_broken_files_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "wordllama"
    for name in ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"):
        (package / name).parent.mkdir(parents=True)
        (package / name).write_text("not what it should be")
    spec = importlib.machinery.ModuleSpec("wordllama", None)
    spec.submodule_search_locations = [str(package)]
    embedder = connect_embedder()
    run_sync(embedder.aclose())
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: spec)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        with pytest.raises(ConfigError, match="cannot be read"):
            run_sync(embedder.embed(["a"]))


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from rubricate.bridge import run_sync; from rubricate.embed import connect_embedder;"
        "heavy = {'torch', 'transformers', 'aiohttp', 'openai', 'wordllama', 'tokenizers', 'safetensors'};"
        "e = connect_embedder(); print(sorted(heavy & set(sys.modules)));"
        "run_sync(e.embed(['a'])); print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["[]", "['safetensors', 'tokenizers']"]
