"""The models, judges and embedders of a generating run, with their limits, budgets and kept answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rubricate.chat import AnswerCache, ChatModel, Limited, connect
from rubricate.chat.cache_contents import export_answers
from rubricate.cli.backing import Backing, Bounds, connect_judge
from rubricate.cli.estimate import CountingModel
from rubricate.data.records import Rollout
from rubricate.embed import Embedder, connect_embedder
from rubricate.errors import ConfigError
from rubricate.judges import PairwiseJudge, PointwisePairJudge
from rubricate.narrow import as_number, as_object
from rubricate.rubrics import Rubric
from rubricate.rubrics.filters import PairJudgeLike
from rubricate.rubrics.pipeline.recipe import GenerateRecipe, ModelSettings
from rubricate.types import Judge, Usage

__all__ = ["Workshop", "spent_before"]


class Workshop:
    """Makes what the steps of a recipe need, once a name. Pickles without connections.

    Args:
        recipe: the models by name, with their bounds.
        bounds: of the command line; they come before those of the recipe.
        answers: the file in which models' answers are kept, None for none.
        counting: models count what they would be asked, and answer nothing.

    Attributes:
        counters: counting models by name.
    """

    def __init__(
        self, recipe: GenerateRecipe, bounds: Bounds, answers: Path | None, *, counting: bool = False
    ) -> None:
        self.recipe = recipe
        self.bounds = bounds
        self.answers = answers
        self.counting = counting
        self._start()

    def _start(self) -> None:
        self._backings: dict[str, Backing] = {}
        self._judging: dict[str, Backing] = {}
        self._embedders: dict[str, Embedder] = {}
        self._limited: dict[str, Limited] = {}
        self._cache: AnswerCache | None = None
        self.counters: dict[str, CountingModel] = {}

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("recipe", "bounds", "answers", "counting")}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self._start()

    @property
    def models(self) -> dict[str, ChatModel]:
        """The models that were made, by name."""
        backings = {**self._judging, **self._backings}
        return {name: backing.model for name, backing in backings.items() if backing.model is not None}

    @property
    def usage(self) -> Usage:
        """What the limiters have seen in this run."""
        return sum((model.limiter.stats.usage for model in self._limited.values()), Usage())

    def model(self, name: str) -> ChatModel:
        """See `Supplies`."""
        found = self._backing(name).model
        if found is None:
            raise ConfigError(f"{name} is no model that could be asked", hint="name a model, as openai:gpt-5-mini")
        return found

    def judge(self, name: str) -> Judge[Rollout, Rubric]:
        """See `Supplies`."""
        backing = self._judge_backing(name)
        settings = self.recipe.settings_of(name)
        mode = settings.mode or backing.default_mode
        return backing.judge(backing.model, mode=mode, criteria_per_call=settings.criteria_per_call, view="final")

    def pair_judge(self, name: str) -> PairJudgeLike:
        """See `Supplies`. A model that judges by log-probability compares scores, any other is asked who wins."""
        settings = self.recipe.settings_of(name)
        backing = self._judge_backing(name)
        if (settings.mode or backing.default_mode) == "logprob" or backing.bundle is not None:
            return PointwisePairJudge(self.judge(name))
        return PairwiseJudge(self.model(name))

    def embedder(self, name: str) -> Embedder:
        """See `Supplies`."""
        if name not in self._embedders:
            self._embedders[name] = connect_embedder(name)
        return self._embedders[name]

    def check(self) -> None:
        """See `Supplies`."""
        for backing in (*self._backings.values(), *self._judging.values()):
            backing.check()

    async def aclose(self) -> None:
        """See `Supplies`."""
        for model in self.models.values():
            await model.aclose()
        for embedder in self._embedders.values():
            await embedder.aclose()

    def close_answers(self) -> None:
        """Write what is still to be written, and close the file of answers."""
        if self._cache is not None:
            self._cache.close()

    def _backing(self, name: str) -> Backing:
        """The model of that name as it is, not as the judge that may ship for it."""
        if name not in self._backings:
            settings = self.recipe.settings_of(name)
            self._backings[name] = self._kept(
                name, connect_judge(settings.name, self._bounds(settings), mode="reasoned")
            )
        return self._backings[name]

    def _judge_backing(self, name: str) -> Backing:
        if name not in self._judging:
            settings = self.recipe.settings_of(name)
            found = connect_judge(settings.name, self._bounds(settings), mode=settings.mode)
            self._judging[name] = (
                self._backing(name) if found.bundle is None else self._kept(f"{name}#judge", found)
            )
        return self._judging[name]

    def _kept(self, name: str, backing: Backing) -> Backing:
        """The same with the answers kept, and its limiter noted; or counting in place of asking."""
        model = backing.model
        if model is None:
            return backing
        if self.counting:
            backing.model = self.counters[name] = CountingModel(model)
            return backing
        if isinstance(model, Limited):
            self._limited[name] = model
        if self.answers is not None and backing.replay is None:
            if self._cache is None:
                self._cache = AnswerCache(self.answers, max_bytes=None)
            backing.cache = self._cache
            backing.model = connect(model, cache=self._cache)
        return backing

    def _bounds(self, settings: ModelSettings) -> Bounds:
        given = self.bounds
        bounds = Bounds(
            concurrency=given.concurrency or settings.concurrency,
            rpm=given.rpm or settings.rpm,
            tpm=given.tpm or settings.tpm,
            token_budget=settings.token_budget if given.token_budget is None else given.token_budget,
            budget=settings.budget if given.budget is None else given.budget,
            prices=given.prices or settings.prices,
        )
        if bounds.budget is None and bounds.token_budget is None:
            return bounds
        before = Usage() if self.answers is None or self.counting else spent_before(self.answers, settings.name)
        return _left(bounds, before, settings.name)


def _left(bounds: Bounds, before: Usage, name: str) -> Bounds:
    """The bounds without what was spent before. Raises ConfigError where nothing is left."""
    tokens, money = bounds.token_budget, bounds.budget
    used = before.prompt_tokens + before.completion_tokens
    if (tokens is not None and tokens <= used > 0) or (money is not None and money <= before.cost > 0.0):
        spent = f"{used:,} tokens" if money is None else f"{before.cost:.4f}"
        raise ConfigError(f"the budget of {name} is used up: {spent} were spent before", hint="raise it to go on")
    return Bounds(
        concurrency=bounds.concurrency,
        rpm=bounds.rpm,
        tpm=bounds.tpm,
        token_budget=None if tokens is None else tokens - used,
        budget=None if money is None else money - before.cost,
        prices=bounds.prices,
    )


def spent_before(answers: Path, model: str) -> Usage:
    """What the answers of a model that are kept in a file have cost."""
    total = Usage()
    if not answers.exists():
        return total
    try:
        lines = export_answers(answers, model=model)
        for raw in lines:
            entry = as_object(json.loads(raw)) or {}
            fields = as_object((as_object(entry.get("answer")) or {}).get("usage")) or {}
            whole = [int(as_number(fields.get(key)) or 0) for key in ("prompt_tokens", "completion_tokens")]
            total += Usage(0, *whole, cost=as_number(fields.get("cost")) or 0.0)
    except ConfigError as error:
        if "has no answers of" in error.message:
            return total
        raise
    return total
