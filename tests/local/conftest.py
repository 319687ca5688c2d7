"""Tiny random models with a byte-level tokenizer, made here, and short ways to ask them."""

from __future__ import annotations

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
        special_tokens=["<|start|>", "<|end|>", "<|pad|>"],
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
    engine.run(
        [
            Work(group, shared, lambda: True, lambda given, place=place: answers.update({place: given}), fail)
            for place, group in enumerate(groups)
        ]
    )
    return [answer for place in sorted(answers) for answer in answers[place]]


@pytest.fixture
def ask() -> Ask:
    """`ask(engine, requests, shared)` gives the answers, in this thread."""
    return ask_engine


@pytest.fixture
def user() -> Callable[..., ChatRequest]:
    """`user("text", max_tokens=1, ...)` is a request with that user message."""

    def request(text: str, **fields: object) -> ChatRequest:
        return ChatRequest((Message("user", text),), **fields)  # pyright: ignore[reportArgumentType] -- test helper

    return request
