"""Tiny random models with a byte-level tokenizer, made here, and short ways to ask them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

import pytest
import torch

from rubricate.chat.base import ChatRequest, Completion, Message
from rubricate.chat.local_engine import Engine, open_engine
from rubricate.chat.local_host import LocalOptions, Work
from rubricate.chat.local_source import resolve
from rubricate.errors import ChatError

TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
CONTEXT = 4096


ARCHITECTURES = {"llama": "llama", "qwen3": "qwen3", "sliding": "mistral"}


class Named(Protocol):
    """transformers' factories, as far as they are used here."""

    def for_model(self, model_type: str, **settings: object) -> object: ...

    def from_config(self, config: object) -> Saved: ...


class Saved(Protocol):
    def save_pretrained(self, path: str) -> object: ...


def build_tokenizer(template: str = TEMPLATE) -> Saved:
    """A token for each byte, a few merges, and three special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=280,
        special_tokens=["<|start|>", "<|end|>", "<|pad|>", "<repo_name>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(["the answer is yes or no, and the cat sat on the mat"] * 4, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|end|>", pad_token="<|pad|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|start|>"]})
    fast.chat_template = template
    return cast("Saved", fast)


def build_model(kind: str, *, seed: int = 0, context: int = CONTEXT) -> Saved:
    """A random model whose next-token distributions are far from uniform."""
    import transformers

    sizes: dict[str, object] = {
        "vocab_size": 280,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": context,
        "initializer_range": 0.25,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "tie_word_embeddings": True,
    }
    own: dict[str, dict[str, object]] = {"qwen3": {"head_dim": 8}, "sliding": {"sliding_window": 16}}
    torch.default_generator.manual_seed(seed)
    config = cast("Named", transformers.AutoConfig).for_model(ARCHITECTURES[kind], **sizes, **own.get(kind, {}))
    return cast("Named", transformers.AutoModelForCausalLM).from_config(config)


def save_model(folder: Path, kind: str = "llama", *, seed: int = 0, template: str = TEMPLATE) -> Path:
    build_model(kind, seed=seed).save_pretrained(str(folder))
    build_tokenizer(template).save_pretrained(str(folder))
    return folder


MakeModel = Callable[..., Path]
Ask = Callable[[Engine, Sequence[ChatRequest], bool], list[Completion | ChatError]]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`models("qwen3")` is the directory of such a model; `llama` and `sliding` are there too."""
    made: dict[str, Path] = {}

    def model(kind: str) -> Path:
        if kind not in made:
            made[kind] = save_model(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return model


@pytest.fixture
def make_model() -> MakeModel:
    """`make_model(folder, kind, seed=, template=)` saves a tiny model there."""
    return save_model


@pytest.fixture(scope="session")
def engines(models: Callable[[str], Path]) -> Callable[..., Engine]:
    """`engines("qwen3")` is a loaded fp32 engine, shared by all tests; options make one of its own."""
    made: dict[str, Engine] = {}

    def engine(kind: str, **options: object) -> Engine:
        settings = LocalOptions(dtype="float32", device="cpu", **options)  # pyright: ignore[reportArgumentType] -- test
        if options:
            return open_engine(resolve(str(models(kind))), settings, f"local:{kind}")
        if kind not in made:
            made[kind] = open_engine(resolve(str(models(kind))), settings, f"local:{kind}")
        return made[kind]

    return engine


def ask_engine(engine: Engine, requests: Sequence[ChatRequest], shared: bool) -> list[Completion | ChatError]:
    answers: dict[int, list[Completion | ChatError]] = {}

    def fail(error: Exception) -> None:
        raise error

    groups = [requests] if shared else [[request] for request in requests]
    sharing = engine.sharing
    if not shared:
        engine.sharing = False
    engine.store.clear()
    try:
        engine.run(
            [
                Work(group, lambda: True, lambda given, place=place: answers.update({place: given}), fail)
                for place, group in enumerate(groups)
            ]
        )
    finally:
        if not shared:
            engine.sharing = sharing
    return [answer for place in sorted(answers) for answer in answers[place]]


@pytest.fixture
def ask() -> Ask:
    """`ask(engine, requests, shared)` gives the answers, in this thread: from one work, with nothing kept from
    before; or, where `shared` is False, from a work each, in plain batches."""
    return ask_engine


@pytest.fixture
def user() -> Callable[..., ChatRequest]:
    """`user("text", max_tokens=1, ...)` is a request with that user message."""

    def request(text: str, **fields: object) -> ChatRequest:
        return ChatRequest((Message("user", text),), **fields)  # pyright: ignore[reportArgumentType] -- test helper

    return request


def save_gguf(path: Path, *, seed: int = 0) -> Path:
    """A random two-layer Llama with the tokenizer of the other models, as GGUF in fp32."""
    import gguf
    import numpy as np

    saved = path.parent / f"{path.stem}-tokenizer"
    build_tokenizer().save_pretrained(str(saved))
    model = json.loads((saved / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    tokens = sorted(model["vocab"], key=lambda token: model["vocab"][token])
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(48)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    draw = np.random.default_rng(seed)
    shapes = {"token_embd": (len(tokens), 32), "output_norm": (32,)}
    for block in range(2):
        wide = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32)}
        wide |= {"ffn_gate": (48, 32), "ffn_up": (48, 32), "ffn_down": (32, 48)}
        shapes |= {f"blk.{block}.{name}": shape for name, shape in wide.items()}
        shapes |= {f"blk.{block}.attn_norm": (32,), f"blk.{block}.ffn_norm": (32,)}
    for name, shape in shapes.items():
        values = np.ones(shape) if len(shape) == 1 else draw.normal(0, 0.25, shape)
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def make_gguf() -> Callable[..., Path]:
    """`make_gguf(path, seed=)` writes a tiny GGUF model there."""
    return save_gguf


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("RUBRICATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Engine], list[int]]:
    """`count(engine)` is a list that grows with the tokens of each forward pass from now on."""

    def counter(engine: Engine) -> list[int]:
        sizes: list[int] = []
        forward = engine.network.forward

        def counted(ids: torch.Tensor, *args: object, **options: object) -> torch.Tensor:
            sizes.append(ids.numel())
            return forward(ids, *args, **options)  # pyright: ignore[reportArgumentType] -- passed on as they came

        monkeypatch.setattr(engine.network, "forward", counted)
        return sizes

    return counter
