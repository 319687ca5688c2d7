"""Recipes: everything that decides a training run, typed, documented, read from YAML and changed key by key."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from rubricate.data.io import read_values
from rubricate.errors import ConfigError, FormatError
from rubricate.narrow import as_object

__all__ = [
    "AnswerSettings",
    "DataSettings",
    "LoraSettings",
    "ModelSettings",
    "OptimiserSettings",
    "Recipe",
    "RunSettings",
    "TextSettings",
    "load_recipe",
    "recipe_names",
]


_Seed = Annotated[int, Field(ge=0, lt=2**32)]  # as numpy takes them
_Beta = Annotated[float, Field(ge=0.0, lt=1.0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """`lora.r=yes` is no rank of 1."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and {int, float} & {kind, *getattr(kind, "__args__", ())}:
            raise ValueError(f"expected a number, not {str(value).lower()}")
        return value


class DataSettings(_Part):
    """Where rows come from, and what becomes of those that are too long."""

    train: tuple[str, ...] = Field(default=("checks",), min_length=1)
    """Sources: files of rows, or `checks` for generated checks (objective `answer` only)."""
    held_out: tuple[str, ...] = ()
    """Sources to evaluate on. None: `held_out_share` of the training files' prompts; without files, checks."""
    calibration: tuple[str, ...] = ()
    """Sources to fit the calibration to (objective `answer`). None: as with `held_out`."""
    held_out_share: float = Field(default=0.1, ge=0.0, lt=0.5)
    """Part of the files' prompts that is evaluated on, and as much again to calibrate, where no files are named."""
    repeat: int = Field(default=1, ge=1)
    """Times that an epoch goes through the files, where `checks` are many and the files' rows few (`answer`)."""
    sheets: int = Field(default=1000, ge=1)
    """Responses to generate where `checks` are trained on."""
    held_out_sheets: int = Field(default=100, ge=1)
    """Responses to generate where `checks` are evaluated on, and as many to calibrate."""
    checks_per_response: int = Field(default=10, ge=1)
    """Generated checks of a response."""
    without_kinds: tuple[str, ...] = ()
    """Kinds of generated checks to leave out everywhere; `counted` is all that code decides by counting."""
    seed: _Seed = 0
    """Of generated checks and of what is held out."""
    max_tokens: int = Field(default=1024, ge=8)
    """Most tokens of a row (objective `text`) or of one question (objective `answer`)."""
    too_long: Literal["drop", "error", "truncate"] = "drop"
    """What to do with rows above `max_tokens`. `truncate` cuts the end; questions cannot be cut. It is reported."""
    columns: dict[str, str] = Field(default_factory=dict[str, str])
    """Which column plays a role in labelled rows, such as `prompt: question`."""


class ModelSettings(_Part):
    """What is trained."""

    name: str
    """`local:smollm2`, a model's folder, a hub id that is in the local cache, or `tiny` for a random model."""
    precision: Literal["fp32", "bf16_autocast", "bf16"] = "fp32"
    """fp32; fp32 weights with bf16 arithmetic where it is safe; or bf16 weights (adapters stay fp32)."""
    device: str = "auto"
    """`auto` (the GPU where there is one), `cpu` or `cuda`."""


class LoraSettings(_Part):
    """Low-rank adapters (Hu et al. 2021, arXiv 2106.09685)."""

    r: int = Field(default=16, ge=1, le=2**14)
    """Rank."""
    alpha: float = Field(default=32.0, gt=0.0)
    """Scale: updates are multiplied by alpha / r."""
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Of the adapters' inputs."""
    targets: str | tuple[str, ...] = "all-linear"
    """Names of the layers, or `all-linear` for every linear layer but the last."""


class OptimiserSettings(_Part):
    """AdamW and its schedule."""

    learning_rate: float = Field(default=2e-4, gt=0.0)
    """At its highest."""
    schedule: Literal["cosine", "linear", "constant", "constant_with_warmup"] = "cosine"
    """How the rate falls after the warm-up."""
    warmup: float = Field(default=0.05, ge=0.0, lt=1.0)
    """Part of all steps in which the rate rises."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """Of AdamW."""
    clip: float = Field(default=1.0, gt=0.0)
    """Largest norm of the gradient."""
    betas: tuple[_Beta, _Beta] = (0.9, 0.999)
    """Of AdamW."""


class RunSettings(_Part):
    """How long, how much at a time, and what is kept."""

    epochs: float = Field(default=1.0, gt=0.0)
    """Times that the training rows are gone through."""
    max_steps: int | None = Field(default=None, ge=1)
    """Optimiser's steps, in place of `epochs`."""
    max_minutes: float | None = Field(default=None, gt=0.0)
    """Stop after so many minutes of training, those before a resumption included. The schedule does not know."""
    batch: int = Field(default=8, ge=1)
    """Rows (objective `text`) or responses with all their checks (`answer`) in an optimiser's step of a process."""
    micro_batch: int = Field(default=4, ge=1)
    """As many of them in one pass; it must divide `batch`."""
    eval_every: int = Field(default=50, ge=1)
    """Steps between evaluations; a checkpoint is written at each."""
    log_every: int = Field(default=10, ge=1)
    """Steps between lines of training metrics; it must divide `eval_every`."""
    keep_best: bool = True
    """The result is the checkpoint that evaluated best (AUC, or loss with objective `text`), not the last."""
    patience: int | None = Field(default=None, ge=1)
    """Stop when so many evaluations in a row were no better than the best."""
    seed: _Seed = 0
    """Of weights, order of the data and dropout."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """CPU threads; None for torch's own choice."""
    gradient_checkpointing: bool = False
    """Recompute activations, to spare memory."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch % self.micro_batch:
            raise ValueError(f"micro_batch {self.micro_batch} does not divide batch {self.batch}")
        if self.eval_every % self.log_every:
            raise ValueError(f"log_every {self.log_every} does not divide eval_every {self.eval_every}")
        return self


class TextSettings(_Part):
    """Objective `text`: the next token of completions."""

    packing: bool = True
    """Several rows in one of `max_tokens`, each seeing itself only. Left out, with a note, where the model's
    attention takes no mask of one's own."""
    assistant_only: bool = True
    """Rows of messages: train on the assistant's turns only, where the chat template tells them apart."""


class AnswerSettings(_Part):
    """Objective `answer`: the answer token of a log-probability judge, on criteria that share their prefix."""

    row_tokens: int = Field(default=1024, ge=0)
    """Responses are packed into rows of about so many tokens; 0 gives each a row of its own."""
    show_reference: bool = True
    """Show the reference answer where there is one."""
    prompt: str = "logprob_judge"
    """The judge's prompt: one of the package's, or the path of a template of your own."""
    prefill: str = "Answer:"
    """Text that the answer begins with; none for a judge that is to run on servers that cannot continue one."""
    view: Literal["final", "trajectory"] = "final"
    """What the judge sees of a response."""
    calibration: Literal["platt", "isotonic", "none"] = "platt"
    """Fitted to the calibration rows after training."""
    bundle_weights: bool | None = None
    """Copy the model's weights into the bundle. None: where they are in no other place."""


class Recipe(_Part):
    """A training run.

    Read one with `load_recipe`. Unknown keys are errors.
    """

    objective: Literal["text", "answer"]
    """`text`: next token of completions. `answer`: yes or no of a log-probability judge."""
    about: str = ""
    """What the recipe is for."""
    model: ModelSettings
    lora: LoraSettings | None = Field(default_factory=lambda: LoraSettings())
    """None trains all weights."""
    data: DataSettings = Field(default_factory=lambda: DataSettings())
    optimiser: OptimiserSettings = Field(default_factory=lambda: OptimiserSettings())
    run: RunSettings = Field(default_factory=lambda: RunSettings())
    text: TextSettings = Field(default_factory=lambda: TextSettings())
    answer: AnswerSettings = Field(default_factory=lambda: AnswerSettings())

    @model_validator(mode="after")
    def _fits(self) -> Self:
        generated = "checks" in (*self.data.train, *self.data.held_out, *self.data.calibration)
        if self.objective == "text" and generated:
            raise ValueError("data: checks are for the objective answer; name files of prompt and completion")
        if self.objective == "answer" and self.data.too_long == "truncate":
            raise ValueError("data.too_long: a judge's question cannot be cut; use drop or error")
        return self

    def resolved(self) -> dict[str, object]:
        """Every field, JSON-ready."""
        return self.model_dump(mode="json")


def recipe_names() -> list[str]:
    """Recipes that ship with the package."""
    folder = files("rubricate.training").joinpath("recipes")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_recipe(
    place: str | os.PathLike[str], changes: Sequence[str] = (), *, values: Mapping[str, object] | None = None
) -> Recipe:
    """A recipe by its name or path, with changes.

    Args:
        place: one of `recipe_names()`, or a YAML, TOML or JSON file.
        changes: `a.b=value`, the value in YAML's notation.
        values: the same as a mapping, applied after them.

    Raises ConfigError for a recipe that is not there, a key that does not exist (with the nearest one that does) or
    a value that does not fit, FormatError for a file that cannot be read.
    """
    source = os.fspath(place)
    fields = _read(source)
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise ConfigError(f"{change!r} changes nothing", hint="write --set key=value, such as run.seed=1")
        _put(fields, key.strip(), _value(text, change))
    for key, value in (values or {}).items():
        _put(fields, key, value)
    try:
        return Recipe.model_validate(fields)
    except ValidationError as error:
        raise _readable(error, source) from None


def _read(source: str) -> dict[str, object]:
    named = source in recipe_names()
    if not named and not os.path.exists(source):  # unlike Path's, false for what can be no file's name
        near = difflib.get_close_matches(source, recipe_names(), n=1)
        hint = f"did you mean {near[0]}?" if near else f"give a file, or one of {', '.join(recipe_names())}"
        raise ConfigError(f"there is no recipe {source!r}", hint=hint)
    if named:
        from rubricate.data.yamltext import split_yaml

        text = files("rubricate.training").joinpath("recipes", f"{source}.yaml").read_text(encoding="utf-8")
        found: list[object] = [value for _, value, _ in split_yaml(text, source=source)]
    else:
        found = [value.value for value in read_values(source, allow_empty=True)]
    fields = as_object(found[0]) if len(found) == 1 else None
    if fields is None:
        raise FormatError("a recipe is one mapping of keys to values", source=source)
    return dict(fields)


def _value(text: str, change: str) -> object:
    from yaml import YAMLError, safe_load

    try:
        value: object = safe_load(text)
    except YAMLError as error:
        raise ConfigError(f"the value of {change!r} cannot be read: {error}", hint="quote it as YAML") from None
    # YAML 1.1 takes 2e-4 for text; what is quoted is meant as text
    if isinstance(value, str) and text.strip() == value:
        try:
            return float(value) if any(letter.isdigit() for letter in value) else value
        except ValueError:
            return value
    return value


def _put(fields: dict[str, object], key: str, value: object) -> None:
    """Set a dotted key in nested mappings."""
    *path, last = key.split(".")
    here = fields
    for name in path:
        inner = dict(as_object(here.get(name)) or {})
        here[name] = inner
        here = inner
    here[last] = value


def _readable(error: ValidationError, source: str) -> ConfigError:
    """The first thing that is wrong, with the nearest right key where a key is."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    key = ".".join(path)
    if first["type"] == "extra_forbidden":
        known = _keys_at(path[:-1])
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
        everywhere = difflib.get_close_matches(path[-1], [k.split(".")[-1] for k in _all_keys()], n=1, cutoff=0.8)
        if near:
            hint = f"did you mean {'.'.join([*path[:-1], near[0]])}?"
        elif everywhere:
            hint = f"did you mean {next(k for k in _all_keys() if k.split('.')[-1] == everywhere[0])}?"
        else:
            hint = f"there are: {', '.join(known)}"
        return ConfigError(f"{source}: there is no key {key!r}", hint=hint)
    message = _EXPECTED.get(first["type"], first["msg"].removeprefix("Value error, "))
    return ConfigError(f"{source}: {f'{key}: ' if key else ''}{message}", hint=_about(path))


_EXPECTED = {
    "tuple_type": "expected a list, such as [a, b]",
    "string_type": "expected text; in quotes, if it is to be empty or looks like something else",
    "dict_type": "expected keys with values, such as {a: b}",
    "model_type": "expected keys with values, such as {a: b}",
    "missing": "this must be given",
}


def _about(path: Sequence[str]) -> str:
    """What a recipe says of the field at a path."""
    model: type[BaseModel] = Recipe
    for name in path[:-1]:
        model = _model_of(model, name) or model
    field = model.model_fields.get(path[-1]) if path else None
    text = " ".join((field.description or "").split()) if field is not None else ""
    return f"it means: {text}" if text else "see the recipe's fields"


def _keys_at(path: Sequence[str]) -> list[str]:
    model: type[BaseModel] = Recipe
    for name in path:
        model = _model_of(model, name) or model
    return list(model.model_fields)


def _model_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The settings behind a key, None for a plain value."""
    annotation: object = model.model_fields[name].annotation if name in model.model_fields else None
    options = cast("tuple[object, ...]", getattr(annotation, "__args__", ())) or (annotation,)
    return next((kind for kind in options if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _all_keys() -> list[str]:
    found: list[str] = []
    for name in Recipe.model_fields:
        inner = _model_of(Recipe, name)
        found += [name] if inner is None else [f"{name}.{key}" for key in inner.model_fields]
    return found
