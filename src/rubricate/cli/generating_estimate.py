"""What a generating run would ask, from a sample of its rows, without asking it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rubricate.cli.estimate import CHARACTERS
from rubricate.cli.generating_parts import Workshop
from rubricate.errors import ConfigError
from rubricate.rubrics.pipeline.chain import Chain
from rubricate.rubrics.pipeline.rows import WorkRow, source_of

__all__ = ["Costs", "Sample", "estimate_costs"]

SAMPLE = 200
"""Rows that an estimate rests on."""


@dataclass(slots=True)
class Sample:
    """Rows drawn evenly from a stream whose length is not known (reservoir sampling, seeded)."""

    rows: list[WorkRow] = field(default_factory=list[WorkRow])
    seen: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def add(self, row: WorkRow) -> None:
        """Take a row into account."""
        self.seen += 1
        if len(self.rows) < SAMPLE:
            self.rows.append(row)
        elif (place := self._random.randrange(self.seen)) < SAMPLE:
            self.rows[place] = row


@dataclass(slots=True)
class Costs:
    """What the first requests of all rows come to. Answers that are asked for again, later rounds of a method and
    judges in filters depend on what is answered, and are not in it.

    Attributes:
        calls: requests.
        prompt_tokens: tokens of their prompts, about.
        answer_tokens: tokens that the answers may have at most.
        money: lowest and highest cost, None where no prices are known.
        open: steps that are not in it, since they work on what others have made.
    """

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    money: tuple[float, float] | None = None
    open: tuple[str, ...] = ()

    def lines(self) -> list[tuple[str, str]]:
        """Label and value of each."""
        lines = [
            ("calls, at least", f"{self.calls:,}"),
            ("prompt tokens, about", f"{self.prompt_tokens:,}"),
            ("answer tokens, at most", f"{self.answer_tokens:,}"),
        ]
        if self.money is not None:
            lines.append(("cost of these", f"{self.money[0]:.4f} to {self.money[1]:.4f}"))
        if self.open:
            lines.append(("not estimated", ", ".join(self.open)))
        return lines


def estimate_costs(chain: Chain, workshop: Workshop, sample: Sample) -> Costs:
    """Render what the sampled rows would ask first, and scale it to all rows.

    Args:
        chain: the steps, made with the workshop.
        workshop: one whose models count.
        sample: rows of the input.
    """
    if not sample.rows:
        return Costs()
    asyncio.run(_ask(chain, sample.rows))
    scale = sample.seen / len(sample.rows)
    costs = Costs(open=tuple(chain.later))
    low = high = 0.0
    priced = True
    for name, counter in workshop.counters.items():
        calls = round(counter.calls * scale)
        prompt = round(counter.characters / CHARACTERS * scale)
        answer = round(counter.answer_tokens * scale)
        costs.calls += calls
        costs.prompt_tokens += prompt
        costs.answer_tokens += answer
        prices = workshop.bounds.prices or workshop.recipe.settings_of(name.removesuffix("#judge")).prices
        priced = priced and (prices is not None or not calls)
        low += prompt * (prices or (0.0, 0.0))[0] / 1e6
        high += (prompt * (prices or (0.0, 0.0))[0] + answer * (prices or (0.0, 0.0))[1]) / 1e6
    if priced and costs.calls:
        costs.money = (low, high)
    return costs


async def _ask(chain: Chain, rows: Sequence[WorkRow]) -> None:
    """Each generator by itself: its first request is counted and refused, which ends its work on the row."""
    for row in rows:
        source = source_of(row, chain.recipe.columns, rubrics=chain.reads_rubrics)
        for _, generator in chain.first_generators:
            try:
                await generator.generate(replace(source))
            except ConfigError:
                continue  # a row that lacks what the method needs costs nothing
