"""Recipes of rubric data sets: which steps a row goes through, with which models, and what is written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from rubricate.rubrics.pipeline.settings import Part, change_fields, checked, read_fields

__all__ = [
    "GenerateRecipe",
    "HygieneSettings",
    "ModelSettings",
    "OutputSettings",
    "Step",
    "load_generate_recipe",
]


class ModelSettings(Part):
    """A chat model, its bounds, and how it judges where it is a judge."""

    name: str
    """Name of the model, as `openai:gpt-5-mini`; see `rubricate.chat.connect`."""
    concurrency: int | None = Field(default=None, ge=1)
    """Calls at once."""
    rpm: float | None = Field(default=None, gt=0.0)
    """Requests a minute at most."""
    tpm: float | None = Field(default=None, gt=0.0)
    """Tokens a minute at most."""
    token_budget: int | None = Field(default=None, ge=0)
    """Tokens in all at most."""
    budget: float | None = Field(default=None, ge=0.0)
    """Money in all at most; needs `prices`."""
    prices: tuple[float, float] | None = None
    """Money for a million prompt and completion tokens, as in [0.25, 2.0]."""
    mode: str | None = None
    """How it judges: reasoned, logprob, holistic or likert; by default as goes with the model."""
    criteria_per_call: int | None = Field(default=1, ge=1)
    """Criteria a call where it judges in reasoned mode; null for all."""


class HygieneSettings(Part):
    """Duplicates and benchmark items out, rows split by prompt, licence and source kept."""

    duplicates: Literal["near", "exact", "off"] = "near"
    """Which repeated prompts are taken out."""
    threshold: float = Field(default=0.8, gt=0.0, le=1.0)
    """Jaccard similarity of prompts from which they are near duplicates."""
    benchmarks: dict[str, str] = Field(default_factory=dict[str, str])
    """Name of a benchmark to the file of its rows: rows whose prompt holds one of its prompts are taken out."""
    splits: dict[str, float] | None = None
    """Part to share, such as {train: 0.9, test: 0.1}; a row's part depends on its prompt alone."""
    seed: int = 0
    """Of the split."""
    source: str | None = None
    """Where rows come from that do not say so themselves."""
    licence: str | None = None
    """Licence of rows that do not say their own."""


class Step(Part):
    """One step: `generate`, `filter`, `hygiene` or `gather`, and what goes with it."""

    generate: str | None = None
    """A method, such as reference; see METHODS."""
    filter: str | None = None
    """A filter, such as form; see FILTERS."""
    hygiene: HygieneSettings | None = None
    """Clean the rows; as the first step before anything is paid for, as the last one what is left."""
    gather: str | None = None
    """A method that makes one rubric of all rows that are left; it holds them in memory."""
    model: str | None = None
    """The model that writes: a key of `models` or a model's name; else the recipe's `model`."""
    judge: str | None = None
    """The model that judges: a key of `models` or a model's name; else the recipe's `judge`."""
    embedder: str | None = None
    """The embedder; else the recipe's `embedder`."""
    options: dict[str, object] = Field(default_factory=dict[str, object])
    """Options of the method or filter."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in ("generate", "filter", "hygiene", "gather") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("a step has one of generate, filter, hygiene and gather")
        if self.hygiene is not None and (self.model or self.judge or self.embedder or self.options):
            raise ValueError("hygiene takes no model, judge, embedder or options: its settings are its own keys")
        return self

    @property
    def kind(self) -> Literal["generate", "filter", "hygiene", "gather"]:
        """What it does."""
        if self.generate is not None:
            return "generate"
        if self.gather is not None:
            return "gather"
        return "filter" if self.filter is not None else "hygiene"

    @property
    def label(self) -> str:
        """Its name for people: the method or filter."""
        return self.generate or self.filter or self.gather or "hygiene"


class OutputSettings(Part):
    """What is written."""

    format: Literal["jsonl", "parquet", "datasets"] = "jsonl"
    """Shards of JSON Lines or Parquet, or a folder of the library `datasets`."""
    rows_per_shard: int = Field(default=10_000, ge=1)
    """Rows of a shard at most; a shard of Parquet is held in memory while it is written."""
    title: str = ""
    """Title of the data set's card."""
    licence: str | None = None
    """Licence of the data set, for its card."""


class GenerateRecipe(Part):
    """How a data set of rubrics is made. Read one with `load_generate_recipe`."""

    about: str = ""
    """What the recipe is for; it is printed on the card."""
    models: dict[str, ModelSettings] = Field(default_factory=dict[str, ModelSettings])
    """Models by the names that steps use."""
    model: str | None = None
    """The model of steps that name none: a key of `models` or a model's name."""
    judge: str | None = None
    """The judge of steps that name none; the model, unless given."""
    embedder: str = "wordllama"
    """The embedder of steps that name none."""
    columns: dict[str, str] = Field(default_factory=dict[str, str])
    """Which column plays a role, such as `prompt: question`."""
    steps: tuple[Step, ...] = Field(min_length=1)
    """What a row goes through, in order."""
    output: OutputSettings = Field(default_factory=lambda: OutputSettings())
    """What is written."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        kinds = [step.kind for step in self.steps]
        rows = kinds[: len(kinds) - len(self.gather_steps)]
        if "gather" in rows:
            raise ValueError("gather comes last, since it looks at the rows that are left")
        if "hygiene" in rows[1:-1]:
            raise ValueError("hygiene is the first step or the last one but gather, since it looks at all rows")
        if not self.row_steps and not self.gather_steps:
            raise ValueError("there is no step that generates, filters or gathers")
        return self

    @property
    def row_steps(self) -> tuple[tuple[int, Step], ...]:
        """The steps that each row goes through by itself, with their places."""
        return tuple((place, step) for place, step in enumerate(self.steps) if step.kind in ("generate", "filter"))

    @property
    def gather_steps(self) -> tuple[tuple[int, Step], ...]:
        """The steps at the end that gather, with their places."""
        first = next((n for n in range(len(self.steps), 0, -1) if self.steps[n - 1].kind != "gather"), 0)
        return tuple((place, self.steps[place]) for place in range(first, len(self.steps)))

    @property
    def before(self) -> HygieneSettings | None:
        """Hygiene before anything is generated."""
        return self.steps[0].hygiene

    @property
    def after(self) -> HygieneSettings | None:
        """Hygiene of what is left."""
        last = len(self.steps) - len(self.gather_steps) - 1
        return self.steps[last].hygiene if last > 0 else None

    def settings_of(self, name: str) -> ModelSettings:
        """The settings of a model that a step names, by key or by name."""
        return self.models.get(name) or ModelSettings(name=name)

    def resolved(self) -> dict[str, object]:
        """Every field, JSON-ready."""
        return self.model_dump(mode="json")


def load_generate_recipe(
    place: str | os.PathLike[str] | Mapping[str, object], changes: Sequence[str] = (), *, source: str = "the recipe"
) -> GenerateRecipe:
    """A recipe out of a YAML, TOML or JSON file, or of its fields, with changes such as `output.format=parquet`.

    `source` is what errors call fields that come from no file.

    Raises ConfigError for a key that does not exist (with the nearest one that does) or a value that does not fit,
    FormatError for a file that cannot be read.
    """
    if isinstance(place, Mapping):
        return checked(GenerateRecipe, change_fields(place, changes), source)
    return checked(GenerateRecipe, change_fields(read_fields(place), changes), os.fspath(place))
