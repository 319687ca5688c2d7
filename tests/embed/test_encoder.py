"""An encoder in this process, on tiny models with random weights that are made here."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import pytest

from rubricate.bridge import run_sync
from rubricate.chat import deadline
from rubricate.embed import Embedder, Vectors, connect_embedder
from rubricate.embed.encoder_recipe import Recipe, read_recipe
from rubricate.errors import ConfigError, DeadlineError, FormatError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

WORDS = ["the", "response", "cites", "sources", "never", "clear", "is", "a", "query", ":"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["the response cites sources", "a", "is the response clear", "never " * 12, "sources sources"]


class _Saved(Protocol):
    def save_pretrained(self, save_directory: str) -> object: ...


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with 16 dimensions, and its tokenizer."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(SPECIAL + WORDS), encoding="utf-8")
    tokenizer = BertTokenizer(vocab=str(folder / "vocab.txt"), model_max_length=24)
    cast("_Saved", tokenizer).save_pretrained(str(folder))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=15, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, initializer_range=0.5,
    )  # fmt: skip
    cast("_Saved", BertModel(config)).save_pretrained(str(folder))
    return folder


@pytest.fixture
def copied(bert: Path, tmp_path: Path) -> Path:
    """The same directory, to be changed."""
    for file in bert.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def write(file: Path, value: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def by_hand(folder: Path, texts: Sequence[str], pooling: str) -> Vectors:
    """One text at a time, so without padding or masks."""
    from transformers import BertModel

    model = BertModel.from_pretrained(str(folder)).eval()  # pyright: ignore[reportUnknownMemberType]
    vocabulary = {word: index for index, word in enumerate(SPECIAL + WORDS)}
    rows: list[Vectors] = []
    for text in texts:
        ids = [2, *(vocabulary[word] for word in text.split()), 3]
        with torch.inference_mode():
            hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        rows.append({"mean": hidden.mean(axis=0), "cls": hidden[0], "lasttoken": hidden[-1]}[pooling])
    table = np.stack(rows)
    return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True), dtype=np.float32)


def embed(folder: Path, texts: Sequence[str], options: str = "") -> Vectors:
    return run_sync(connect_embedder(f"local:{folder}?device=cpu{options}").embed(texts))


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_padded_batches_give_the_vectors_of_texts_alone(bert: Path, pooling: str) -> None:
    vectors = embed(bert, TEXTS, f"&pooling={pooling}")
    assert vectors.shape == (5, 16) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, by_hand(bert, TEXTS, pooling), atol=1e-5)


def test_many_texts_in_several_batches_keep_their_order(bert: Path) -> None:
    many = [f"{WORDS[i % 8]} {WORDS[i // 8 % 8]} " + "clear " * (i % 20) for i in range(900)]
    vectors = embed(bert, many)
    np.testing.assert_allclose(vectors[::90], by_hand(bert, many[::90], "mean"), atol=1e-5)
    np.testing.assert_allclose(embed(bert, many[::-1])[::-1], vectors, atol=1e-5)


def test_sentence_transformers_files_are_honoured(copied: Path) -> None:
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in
               (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))]  # fmt: skip
    write(copied / "modules.json", modules)
    flags = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "include_prompt": True}
    write(copied / "1_Pooling" / "config.json", {"word_embedding_dimension": 16, **flags})
    np.testing.assert_allclose(embed(copied, TEXTS), by_hand(copied, TEXTS, "cls"), atol=1e-5)
    write(copied / "1_Pooling" / "config.json", {"embedding_dimension": 16, "pooling_mode": "lasttoken"})
    np.testing.assert_allclose(embed(copied, TEXTS), by_hand(copied, TEXTS, "lasttoken"), atol=1e-5)
    write(copied / "config_sentence_transformers.json", {"prompts": {"q": "query : "}, "default_prompt_name": "q"})
    write(copied / "sentence_bert_config.json", {"max_seq_length": 6, "do_lower_case": True})
    assert read_recipe(copied) == Recipe("lasttoken", "query : ", 6, True)
    # [CLS] query : the response [SEP]
    np.testing.assert_allclose(
        embed(copied, ["THE response cites sources"]),
        by_hand(copied, ["query : the response"], "lasttoken"),
        atol=1e-5,
    )
    assert read_recipe(copied, pooling="mean", prompt="", max_tokens=9) == Recipe("mean", "", 9, True)


@pytest.mark.parametrize(
    ("file", "value", "message"),
    [
        ("modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}], "module 'Dense'"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pooling max is not known"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
            "cls . mean is not known",
        ),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "pooling none"),
    ],
)
def test_what_would_change_the_vectors_and_is_not_known_is_refused(
    copied: Path, file: str, value: object, message: str
) -> None:
    write(copied / file, value)
    with pytest.raises(ConfigError, match=message):
        connect_embedder(f"local:{copied}")


def test_files_that_are_broken_or_options_that_make_no_sense(copied: Path) -> None:
    for option, message in (("pooling=max", "no pooling 'max'"), ("max_tokens=0", "at least 1")):
        with pytest.raises(ConfigError, match=message):
            connect_embedder(f"local:{copied}?{option}")
    with pytest.raises(ConfigError, match="no dtype"):
        embed(copied, ["a"], "&dtype=int8")
    (copied / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        embed(copied, ["a"])
    (copied / "modules.json").write_text("{")
    with pytest.raises(ConfigError, match=r"modules\.json cannot be read"):
        connect_embedder(f"local:{copied}")


def test_weights_that_are_missing_are_not_made_up(copied: Path) -> None:
    from safetensors.torch import load_file, save_file  # pyright: ignore[reportUnknownVariableType]

    file = copied / "model.safetensors"
    weights = load_file(file)
    # the pooler is not used, and many encoders come without one
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, file, {"format": "pt"})
    assert embed(copied, ["a"]).shape == (1, 16)
    save_file({k: v for k, v in weights.items() if "layer.1" not in k}, file, {"format": "pt"})
    with pytest.raises(ConfigError, match="weights are missing, such as .*layer.1"):
        embed(copied, ["a"])


def test_a_text_of_unknown_words_alone_is_named(bert: Path) -> None:
    with pytest.raises(FormatError, match="no token that the model knows") as caught:
        embed(bert, ["the response", "🙂 日本語"])
    assert caught.value.field == "texts[1]"
    assert embed(bert, ["the 日本語 response 🙂"]).shape == (1, 16)


def test_long_texts_are_cut_with_a_warning(bert: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubricate"):
        vectors = embed(bert, ["clear " * 5000, "clear " * 22, "clear"])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert "2 texts fill or exceed 24 tokens" in caplog.text


def test_threads_loops_pickles_and_fingerprints(bert: Path, copied: Path) -> None:
    embedder = connect_embedder(f"local:{bert}?device=cpu")
    assert embedder.dimensions is None and run_sync(embedder.embed([])).shape == (0, 0)

    def use(who: int) -> Vectors:
        return run_sync(embedder.embed(TEXTS)) if who % 2 else asyncio.run(embedder.embed(TEXTS))

    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(use, range(4)):
            np.testing.assert_allclose(vectors, by_hand(bert, TEXTS, "mean"), atol=1e-5)
    assert embedder.dimensions == 16
    copy: Embedder = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_allclose(run_sync(copy.embed(TEXTS)), use(0), atol=1e-6)
    # the same files elsewhere are the same model; another pooling is another embedder
    assert copy.fingerprint == embedder.fingerprint == connect_embedder(f"local:{copied}").fingerprint
    assert embedder.fingerprint != connect_embedder(f"local:{bert}?pooling=cls").fingerprint
    run_sync(embedder.aclose())
    assert use(0).shape == (5, 16)


async def test_a_deadline_ends_the_work(bert: Path) -> None:
    with deadline(0), pytest.raises(DeadlineError):
        await connect_embedder(f"local:{bert}?device=cpu").embed(["a"])


def test_a_gguf_file_is_no_encoder(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match="GGUF file, not an encoder"):
        connect_embedder(f"local:{tmp_path / 'm.gguf'}")
