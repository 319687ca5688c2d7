"""Auto-Rubric as a whole (2510.17314): rubrics of many prompts, a diverse few of them, one rubric for all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rubricate.embed import Embedder, connect_embedder
from rubricate.errors import ConfigError, RubricateError
from rubricate.failures import failure, failure_of
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.filters.coding_rate import EmbeddingFunction, Selection, select_texts
from rubricate.rubrics.generators.auto_rubric_themes import ThemesGenerator
from rubricate.rubrics.generators.base import DatasetGenerator, Generated, Generator, GeneratorNote, NoteKind
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric, Scope
from rubricate.types import FailureKind, Usage

__all__ = ["CoreRubricGenerator"]


@dataclass(slots=True)
class _Pool:
    """The criteria chosen so far, and what it took."""

    criteria: list[Criterion] = field(default_factory=list[Criterion])
    selection: Selection = Selection((), (), (), "all")
    sources: int = 0
    rubrics: int = 0
    seen: int = 0
    stopped: str = "all"
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])

    @property
    def rate(self) -> float:
        """Coding rate of what is chosen, in nats."""
        return self.selection.rates[-1] if self.selection.rates else 0.0


class CoreRubricGenerator(DatasetGenerator):
    """One rubric for a data set: rubrics of its prompts, those chosen that say most together, put into themes.

    A source that has rubrics is not written for. Of all criteria a few are chosen by coding rate, greedily, by
    `filters.select_texts` (the paper's formula; its released code leaves out the factor d and the half, and takes a
    failed embedding for a zero vector, where this fails). Up to `all_at_once` sources are taken together. More are
    taken in batches, in an order drawn by `seed`: each batch's criteria are added to those chosen before, and it
    ends after `patience` batches in a row that raise the coding rate by less than `min_increment`, or after
    `max_batches`, so that most of a large data set costs nothing.

    Args:
        generator: writes the rubric of one source: `AutoRubricGenerator`, whose rubrics are checked against the
            labels, or any other.
        themes: puts what is chosen into themes; None gives the chosen criteria as they are.
        embedder: embeds the criteria: an embedder, its name, or a function from texts to vectors.
        eps, min_gain, patience, limit: as in `filters.select_texts`; at most 200 criteria are chosen.
        min_increment: of the coding rate by a batch, in nats (.002).
        all_at_once: sources that are taken without batches (100).
        batch_size: sources a batch (10).
        max_batches: batches at most (50).
        seed: of the order of the batches, and of ties in the selection.
        concurrency: sources that are written for at the same time.

    Raises ConfigError for options outside their ranges.
    """

    name = "auto-rubric-core"

    def __init__(
        self,
        generator: Generator,
        themes: ThemesGenerator | None,
        *,
        embedder: Embedder | EmbeddingFunction | str = "wordllama",
        eps: float = 0.1,
        min_gain: float = 0.002,
        patience: int = 2,
        limit: int = 200,
        min_increment: float = 0.002,
        all_at_once: int = 100,
        batch_size: int = 10,
        max_batches: int = 50,
        seed: int = 0,
        concurrency: int = 16,
    ) -> None:
        counts = {"patience": patience, "limit": limit, "batch_size": batch_size, "max_batches": max_batches}
        wrong = next((name for name, value in {**counts, "concurrency": concurrency}.items() if value < 1), "")
        if wrong or all_at_once < 0 or not eps > 0.0:
            raise ConfigError(
                f"{wrong or 'eps or all_at_once'} is too small", hint="counts are 1 or more, eps above 0"
            )
        self.generator = generator
        self.themes = themes
        self.embedder = connect_embedder(embedder) if isinstance(embedder, str) else embedder
        self.eps, self.min_gain, self.patience, self.limit = eps, min_gain, patience, limit
        self.min_increment = min_increment
        self.all_at_once = all_at_once
        self.batch_size = batch_size
        self.max_batches = max_batches
        self.seed = seed
        self.concurrency = concurrency
        self.uses = generator.needs | generator.uses

    def identity(self) -> dict[str, object]:
        """The parts, and the options. A plain function for an embedder counts by its name."""
        names = (
            "eps",
            "min_gain",
            "patience",
            "limit",
            "min_increment",
            "all_at_once",
            "batch_size",
            "max_batches",
        )
        embedder = self.embedder
        named = embedder.fingerprint if isinstance(embedder, Embedder) else getattr(embedder, "__qualname__", "")
        own: dict[str, object] = {name: getattr(self, name) for name in (*names, "seed")}
        return own | {
            "generator": self.generator.fingerprint,
            "themes": None if self.themes is None else self.themes.fingerprint,
            "embedder": named,
        }

    def check(self, source: Source) -> None:
        """A source needs a rubric, or what the generator needs."""
        super().check(source)
        if not source.rubrics:
            self.generator.check(source)

    async def write_from(self, sources: Sequence[Source]) -> Generated:
        """Rubrics, selection, themes."""
        pool = _Pool()
        try:
            await self._collect(sources, pool)
        except RubricateError as error:  # of the embedder; generators do not raise
            if isinstance(error, ConfigError):
                raise
            return Generated.failed(failure_of(error), usage=pool.usage, notes=pool.notes)
        if not pool.criteria:
            why = failure(FailureKind.INCOMPLETE, f"none of {pool.sources} sources has a rubric")
            return Generated.failed(why, usage=pool.usage, notes=pool.notes)
        found = await self._joined(pool.criteria)
        notes = (*pool.notes, *found.notes)
        return replace(found, usage=pool.usage + found.usage, notes=notes, extra={"selection": _told(pool)})

    async def _joined(self, criteria: Sequence[Criterion]) -> Generated:
        if self.themes is not None:
            return await self.themes.structure(criteria)
        named = [one.model_copy(update={"id": f"c{n}", "path": ()}) for n, one in enumerate(criteria, start=1)]
        return Generated(Rubric(criteria=tuple(named), scope=Scope.DATASET))

    async def _collect(self, sources: Sequence[Source], pool: _Pool) -> None:
        """Write and choose, all at once or batch by batch."""
        if len(sources) <= self.all_at_once:
            await self._add(sources, pool)
            return
        order = list(sources)
        random.Random(self.seed).shuffle(order)
        batches = [order[at : at + self.batch_size] for at in range(0, len(order), self.batch_size)]
        weak = 0
        for batch in batches[: self.max_batches]:
            before = pool.rate
            await self._add(batch, pool)
            weak = weak + 1 if pool.rate - before < self.min_increment else 0
            if weak >= self.patience:
                pool.stopped = "patience"
                return
        pool.stopped = "max_batches" if len(batches) > self.max_batches else "all"

    async def _add(self, sources: Sequence[Source], pool: _Pool) -> None:
        """Add the criteria of these sources, and choose anew."""
        bare = [source for source in sources if not source.rubrics]
        written = iter(await self.generator.generate_batch(bare, concurrency=self.concurrency))
        texts = {one.text for one in pool.criteria}
        pool.sources += len(sources)
        for source in sources:
            rubrics = source.rubrics
            if not rubrics:
                made = next(written)
                pool.usage += made.usage
                if made.rubric is None:
                    told = made.failure.message if made.failure else ""
                    pool.notes.append(GeneratorNote(NoteKind.DROPPED, f"no rubric for {source.id!r}: {told}"))
                rubrics = () if made.rubric is None else (made.rubric,)
            pool.rubrics += len(rubrics)
            for one in (one for rubric in rubrics for one in rubric.criteria):
                pool.seen += 1
                if one.text not in texts:
                    texts.add(one.text)
                    pool.criteria.append(one)
        pool.selection = await select_texts(
            [one.text for one in pool.criteria],
            self.embedder,
            eps=self.eps,
            min_gain=self.min_gain,
            patience=self.patience,
            limit=self.limit,
            seed=self.seed,
        )
        pool.criteria = [pool.criteria[place] for place in pool.selection.places]

    async def aclose(self) -> None:
        """Close the models and the embedder."""
        await self.generator.aclose()
        if self.themes is not None:
            await self.themes.aclose()
        if isinstance(self.embedder, Embedder):
            await self.embedder.aclose()


def _told(pool: _Pool) -> dict[str, object]:
    """What was chosen of what, for the data set's card."""
    return {
        "sources": pool.sources,
        "rubrics": pool.rubrics,
        "criteria": pool.seen,
        "chosen": [one.text for one in pool.criteria],
        "rate": pool.rate,
        "ended": pool.selection.stopped,
        "stopped": pool.stopped,
    }
