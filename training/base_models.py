"""The model that a recipe trains: loaded where the judge will load it from, or tiny and random; with adapters."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import torch

from rubricate.chat.local_load import load_model, pick_device
from rubricate.chat.local_path import sharing_is_exact
from rubricate.chat.local_source import resolve
from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import CausalModel, ChatTokenizer, Network
from rubricate.errors import ConfigError
from rubricate.training.recipe import LoraSettings, ModelSettings

__all__ = [
    "TINY",
    "Base",
    "can_share",
    "check_sharing",
    "load_base",
    "make_tiny",
    "quiet",
    "save_adapter",
    "with_adapters",
]

TINY = "tiny"
"""Name of the model that is made by code."""

_TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
_VOCABULARY = 2000


@dataclass(frozen=True, slots=True)
class Base:
    """A loaded model.

    Attributes:
        name: by which `connect` finds the same weights, `local:...`.
        model: on its device, in the recipe's dtype.
        tokenizer: its own.
        codec: turns a judge's requests into tokens.
        vocabulary: number of tokens.
    """

    name: str
    model: CausalModel
    tokenizer: ChatTokenizer
    codec: Codec
    vocabulary: int

    @property
    def module(self) -> torch.nn.Module:
        """The model as torch sees it."""
        return cast("torch.nn.Module", self.model)


class _Saved(Protocol):
    def save_pretrained(self, path: str) -> object: ...


class _Configs(Protocol):
    def for_model(self, model_type: str, **settings: object) -> object: ...


class _Models(Protocol):
    def from_config(self, config: object) -> _Saved: ...


class _Adapted(Protocol):
    """A model that peft has wrapped."""

    peft_config: dict[str, object]

    def save_pretrained(self, path: str, *, save_embedding_layers: bool) -> object: ...


class _TensorFiles(Protocol):
    def load_file(self, filename: str) -> Mapping[str, torch.Tensor]: ...

    def save_file(
        self, tensors: Mapping[str, torch.Tensor], filename: str, metadata: Mapping[str, str]
    ) -> object: ...


def load_base(settings: ModelSettings, *, tiny: Path) -> Base:
    """The model of a recipe.

    Args:
        settings: of the recipe.
        tiny: where the model `tiny` lies; see `make_tiny`.

    Raises ConfigError for a model that is not on this machine, MissingExtraError for a missing package.
    """
    spec = str(tiny) if settings.name == TINY else settings.name.removeprefix("local:")
    device = pick_device(settings.device)
    dtype = torch.bfloat16 if settings.precision == "bf16" else torch.float32
    model, tokenizer = load_model(resolve(spec), device=device, dtype=dtype)
    context: object = getattr(model.config, "max_position_embeddings", None)
    name = f"local:{spec}"
    codec = Codec(tokenizer, name=name, context=context if isinstance(context, int) else None, stops=frozenset())
    vocabulary: object = getattr(model.config, "vocab_size", 0)
    return Base(name, model, tokenizer, codec, vocabulary if isinstance(vocabulary, int) else 0)


def can_share(base: Base, prompt: Sequence[int]) -> bool:
    """Whether several prompts can be in one row, each seeing itself only; tried out on some tokens."""
    with torch.no_grad():
        return sharing_is_exact(Network(base.model), prompt)


def check_sharing(base: Base, prompt: Sequence[int]) -> None:
    """Raises ConfigError for a model in which prompts of one row would see one another."""
    if not can_share(base, prompt):
        raise ConfigError(
            f"{base.name}: prompts cannot share a row, since its attention takes no mask of one's own",
            hint="the objective answer needs a model with plain attention, such as Llama, Qwen or SmolLM2",
        )


def make_tiny(folder: Path, texts: Sequence[str], *, seed: int = 0) -> None:
    """Save a random two-layer model with a vocabulary made of these texts, for tests and first tries."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=["<|start|>", "<|end|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # both answers often enough to be tokens of their own
    read = [text.encode(errors="replace").decode() for text in texts]  # halves of surrogate pairs are no text
    core.train_from_iterator([*read, *["Answer: yes", "Answer: no"] * (10 * len(read) + 10)], trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|end|>", pad_token="<|pad|>")
    fast.chat_template = _TEMPLATE
    sizes: dict[str, object] = {
        "vocab_size": core.get_vocab_size(),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "tie_word_embeddings": True,
    }
    torch.default_generator.manual_seed(seed)
    config = cast("_Configs", transformers.AutoConfig).for_model("llama", **sizes)
    cast("_Models", transformers.AutoModelForCausalLM).from_config(config).save_pretrained(str(folder))
    cast("_Saved", fast).save_pretrained(str(folder))


def with_adapters(base: Base, settings: LoraSettings, *, seed: int) -> torch.nn.Module:
    """The model with fresh adapters, in which nothing else is trained."""
    from peft import LoraConfig, get_peft_model

    targets = settings.targets if isinstance(settings.targets, str) else list(settings.targets)
    config = LoraConfig(
        r=settings.r,
        # peft takes fractions, whatever it declares
        lora_alpha=settings.alpha,  # pyright: ignore[reportArgumentType] -- declared int
        lora_dropout=settings.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    torch.default_generator.manual_seed(seed)
    try:
        return cast("Callable[..., torch.nn.Module]", get_peft_model)(base.model, config)
    except ValueError as error:
        raise ConfigError(f"lora.targets: {error}", hint="all-linear fits every model") from None


def save_adapter(model: torch.nn.Module, folder: Path, *, base: str) -> None:
    """Save the adapters of a model, in bf16.

    They are rounded in the model, too: what it says afterwards is what the saved ones say.

    Args:
        base: name of the model that they are for.
    """
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(torch.bfloat16).to(parameter.dtype)
    adapted = cast("_Adapted", model)
    for config in adapted.peft_config.values():
        # a path of this machine would mean nothing on another
        setattr(config, "base_model_name_or_path", base)  # noqa: B010 -- peft's type does not matter here
    # else it asks the hub whether the vocabulary has changed, which it has not
    adapted.save_pretrained(str(folder), save_embedding_layers=False)
    _halve(folder / "adapter_model.safetensors")
    (folder / "README.md").unlink(missing_ok=True)


def _halve(path: Path) -> None:
    from safetensors import torch as library

    files = cast("_TensorFiles", library)
    tensors = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in files.load_file(str(path)).items()}
    files.save_file(tensors, str(path), metadata={"format": "pt"})


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Without the progress bars of the training libraries, and their warnings about one another."""
    from transformers.utils import logging as bars

    # of weights that are tied, a checkpoint has one, which they take for a loss; they order checkpoints by time
    logs = [logging.getLogger(name) for name in ("transformers.trainer", "transformers.trainer_utils")]
    levels, shown = [log.level for log in logs], bars.is_progress_bar_enabled()
    for log in logs:
        log.setLevel(logging.ERROR)
    bars.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            said = "`is_gradient_checkpointing` is deprecated"
            warnings.filterwarnings("ignore", message=said, category=FutureWarning)
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
        if shown:
            bars.enable_progress_bar()
