"""What steps are made with besides their options: models, judges, embedders, given by whoever runs the pipeline."""

from __future__ import annotations

from typing import Protocol

from rubricate.chat.base import ChatModel
from rubricate.data.records import Rollout
from rubricate.embed.base import Embedder
from rubricate.rubrics.filters.consistency import PairJudgeLike
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Judge

__all__ = ["Supplies"]


class Supplies(Protocol):
    """Makes models, judges and embedders by name. Pickles: each process connects anew.

    The same name gives the same object, so that calls share its limits. Nothing is asked before the first call.
    All raise ConfigError for a name that is none.
    """

    def model(self, name: str) -> ChatModel:
        """The chat model."""
        ...

    def judge(self, name: str) -> Judge[Rollout, Rubric]:
        """A judge of single responses, by that model."""
        ...

    def pair_judge(self, name: str) -> PairJudgeLike:
        """A judge of pairs, by that model."""
        ...

    def embedder(self, name: str) -> Embedder:
        """The embedder."""
        ...

    def check(self) -> None:
        """Raises ConfigError for what must end the run, such as answers that cannot be kept."""
        ...

    async def aclose(self) -> None:
        """Release clients and models."""
        ...
