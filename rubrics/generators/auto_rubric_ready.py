"""Auto-Rubric put together out of a model and a judge, for recipes and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.embed import Embedder
from rubricate.rubrics.filters.coding_rate import EmbeddingFunction
from rubricate.rubrics.filters.consistency import PairJudgeLike
from rubricate.rubrics.filters.judging import RubricJudge
from rubricate.rubrics.generators.auto_rubric import AutoRubricGenerator
from rubricate.rubrics.generators.auto_rubric_core import CoreRubricGenerator
from rubricate.rubrics.generators.auto_rubric_predict import PairPredictor, ScorePredictor
from rubricate.rubrics.generators.auto_rubric_themes import ThemesGenerator
from rubricate.rubrics.generators.model import Asks

__all__ = ["AutoRubricDataset", "AutoRubricOptions", "AutoRubricPairs", "AutoRubricScores"]


class AutoRubricOptions(Asks, total=False):
    """Options of `AutoRubricGenerator`, which says what they mean."""

    max_epochs: int
    judge_attempts: int
    least: int
    most: int
    quote_words: int | None
    checks: Sequence[str]
    on_bad: Literal["mend", "drop"]
    propose: str
    revise: str


class AutoRubricPairs(AutoRubricGenerator):
    """`AutoRubricGenerator` for preference pairs, which a judge must decide right in both orders.

    Args:
        model: proposes and revises.
        judge: compares two responses by a rubric.
        options: as in `AutoRubricGenerator` and `AskOptions`.
    """

    def __init__(self, model: ChatModel, judge: PairJudgeLike, **options: Unpack[AutoRubricOptions]) -> None:
        super().__init__(model, PairPredictor(judge), **options)


class AutoRubricScores(AutoRubricGenerator):
    """`AutoRubricGenerator` for ranked or labelled responses, each judged alone.

    Args:
        model: proposes and revises.
        judge: judges one response by a rubric.
        compare, low, high, tolerance: as in `ScorePredictor`.
        options: as in `AutoRubricGenerator` and `AskOptions`.
    """

    def __init__(
        self,
        model: ChatModel,
        judge: RubricJudge,
        *,
        compare: Literal["order", "label"] = "order",
        low: float = 0.0,
        high: float = 1.0,
        tolerance: float = 0.5,
        **options: Unpack[AutoRubricOptions],
    ) -> None:
        predictor = ScorePredictor(judge, compare=compare, low=low, high=high, tolerance=tolerance)
        super().__init__(model, predictor, **options)


class AutoRubricDataset(CoreRubricGenerator):
    """Auto-Rubric as published: rubrics of preference pairs, a diverse few of them, five themes with tips.

    Args:
        model: proposes, revises, and puts into themes.
        judge: compares two responses by a rubric.
        embedder: as in `CoreRubricGenerator`.
        themes, tips, form: as in `ThemesGenerator`; 0 themes give the chosen criteria as they are.
        limit, min_gain, patience, all_at_once, batch_size, max_batches, order_seed, concurrency: as in
            `CoreRubricGenerator`, whose `seed` is `order_seed` here.
        options: as in `AutoRubricGenerator` and `AskOptions`.
    """

    def __init__(
        self,
        model: ChatModel,
        judge: PairJudgeLike,
        embedder: Embedder | EmbeddingFunction | str = "wordllama",
        *,
        themes: int = 5,
        tips: int | None = None,
        form: Literal["themes", "tips"] = "themes",
        limit: int = 200,
        min_gain: float = 0.002,
        patience: int = 2,
        all_at_once: int = 100,
        batch_size: int = 10,
        max_batches: int = 50,
        order_seed: int = 0,
        concurrency: int = 16,
        **options: Unpack[AutoRubricOptions],
    ) -> None:
        super().__init__(
            AutoRubricPairs(model, judge, **options),
            ThemesGenerator(model, themes=themes, tips=tips, form=form) if themes else None,
            embedder=embedder,
            limit=limit,
            min_gain=min_gain,
            patience=patience,
            all_at_once=all_at_once,
            batch_size=batch_size,
            max_batches=max_batches,
            seed=order_seed,
            concurrency=concurrency,
        )
