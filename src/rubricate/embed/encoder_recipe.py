"""How a directory's encoder makes one vector of a text: pooling, prompt and length. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_number, as_object

__all__ = ["POOLINGS", "Recipe", "read_recipe"]

POOLINGS = ("cls", "lasttoken", "mean")
_HARMLESS = {"Transformer", "Pooling", "Normalize", "Dropout"}
_NOTHING: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What sentence-transformers' files in a model directory say, or its defaults where there are none.

    Attributes:
        pooling: `mean` over the tokens of the attention mask, `cls` (the first token) or `lasttoken`.
        prompt: text put before every text.
        max_tokens: longer texts are cut, special tokens included; None leaves it to the tokenizer and the model.
        lower: texts are lower-cased first.
    """

    pooling: str = "mean"
    prompt: str = ""
    max_tokens: int | None = None
    lower: bool = False


def read_recipe(
    folder: Path, *, pooling: str | None = None, prompt: str | None = None, max_tokens: int | None = None
) -> Recipe:
    """The recipe of a model directory. What is given goes before what the files say.

    Field names as sentence-transformers 2 to 5 write them: `modules.json` (a list of `type` and `path`),
    `1_Pooling/config.json` (`pooling_mode_cls_token`, `pooling_mode_mean_tokens`, ..., or one `pooling_mode`),
    `sentence_bert_config.json` (`max_seq_length`, `do_lower_case`) and `config_sentence_transformers.json`
    (`prompts`, `default_prompt_name`).

    Raises ConfigError for files that cannot be read, and for modules and poolings that are not known here: to leave
    them out would give vectors that mean something else.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise ConfigError(f"there is no pooling {pooling!r}", hint=f"choose {', '.join(POOLINGS)}")
    if max_tokens is not None and max_tokens < 1:
        raise ConfigError(f"max_tokens must be at least 1, not {max_tokens}")
    place = folder / "1_Pooling"
    for module in as_array(_read(folder / "modules.json")) or ():
        entry = as_object(module) or _NOTHING
        kind = str(entry.get("type", "")).rsplit(".", 1)[-1]
        if kind not in _HARMLESS:
            raise ConfigError(
                f"the embedder {folder} has a module {kind!r}, which is not known here",
                hint="serve it (vLLM, text-embeddings-inference) and name its address",
            )
        if kind == "Pooling":
            place = folder / str(entry.get("path", ""))
    bert = as_object(_read(folder / "sentence_bert_config.json")) or _NOTHING
    length = as_number(bert.get("max_seq_length"))
    if max_tokens is None and length is not None and length > 0:
        max_tokens = int(length)
    prompt = _prompt(folder) if prompt is None else prompt
    return Recipe(
        pooling=pooling or _pooling(place / "config.json", prompt),
        prompt=prompt,
        max_tokens=max_tokens,
        lower=bert.get("do_lower_case") is True,
    )


def _pooling(file: Path, prompt: str) -> str:
    config = as_object(_read(file))
    if config is None:
        return "mean"
    named = config.get("pooling_mode")
    if isinstance(named, str):
        modes = [named]
    else:
        flags = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
        modes = [key.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens") for key in flags]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise ConfigError(
            f"{file}: pooling {' + '.join(sorted(modes)) or 'none'} is not known here",
            hint=f"give pooling= {', '.join(POOLINGS)} if the model was trained for one of them",
        )
    if prompt and config.get("include_prompt") is False:
        raise ConfigError(
            f"{file}: a prompt that is left out of the pooling is not known here", hint="give prompt=''"
        )
    return modes[0]


def _prompt(folder: Path) -> str:
    config = as_object(_read(folder / "config_sentence_transformers.json")) or _NOTHING
    name = config.get("default_prompt_name")
    prompt = (as_object(config.get("prompts")) or _NOTHING).get(name) if isinstance(name, str) else None
    return prompt if isinstance(prompt, str) else ""


def _read(file: Path) -> object:
    """The JSON value of a file, None where there is none."""
    if not file.is_file():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
