"""What a generator of rubrics is, what it needs, and what comes of it."""

from __future__ import annotations

import abc
import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rubricate.bridge import run_sync
from rubricate.errors import ConfigError, RubricateError
from rubricate.failures import failure, failure_of
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureKind, Usage, fingerprint

__all__ = ["DatasetGenerator", "Generated", "GeneratorNote", "Generator", "Need", "NoteKind"]


class Need(enum.StrEnum):
    """What a generator needs of a source."""

    REFERENCE = "reference"
    PAIR = "pair"
    RANKED = "ranked"
    CANDIDATES = "candidates"
    LABELS = "labels"
    RUBRICS = "rubrics"


class NoteKind(enum.StrEnum):
    """What a note is about.

    `reasked`: a reply, or a part of it, was asked for again. `dropped`: something that a model proposed is not in
    the rubric. `changed`: it is in there in other words. `filtered`: a filter of the method took it out.
    """

    REASKED = "reasked"
    DROPPED = "dropped"
    CHANGED = "changed"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True)
class GeneratorNote:
    """Something that happened on the way to a rubric.

    Attributes:
        kind: what it is about.
        reason: why, in a sentence.
        text: the criterion's text, "" where it is about a whole reply.
    """

    kind: NoteKind
    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of generating one rubric: the rubric, or why there is none.

    Attributes:
        rubric: None where `failure` says why.
        failure: set when there is no rubric, and only then. Its cause `response` means that the model answered
            and the answer could not be used.
        usage: calls, tokens and cost, failed attempts included.
        notes: what was asked again, dropped or changed, in order.
        source_id: id of the source.
        extra: what else the method yields, by name, such as rows for fine-tuning. JSON-ready.
    """

    rubric: Rubric | None
    failure: Failure | None = None
    usage: Usage = Usage()
    notes: tuple[GeneratorNote, ...] = ()
    source_id: str = ""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        if (self.rubric is None) != (self.failure is not None):
            raise ValueError("a generated rubric is there, or a failure says why not")

    @classmethod
    def failed(cls, why: Failure, *, usage: Usage | None = None, notes: Sequence[GeneratorNote] = ()) -> Generated:
        """A rubric that could not be had."""
        return cls(None, why, usage or Usage(), tuple(notes))

    def counts(self) -> dict[str, int]:
        """Kind of note to number of notes; every kind is there."""
        return {kind.value: sum(note.kind is kind for note in self.notes) for kind in NoteKind}


_HELD: Mapping[Need, tuple[str, str]] = {
    Need.REFERENCE: ("a reference answer", "column reference or reference_answer"),
    Need.PAIR: ("a preference pair", "columns chosen and rejected"),
    Need.RANKED: ("responses ranked best first", "column ranked"),
    Need.CANDIDATES: ("candidate responses", "column candidates or responses"),
    Need.LABELS: ("labelled candidates", "columns candidates and labels"),
    Need.RUBRICS: ("rubrics to start from", "column rubric"),
}


def _has(source: Source, need: Need) -> bool:
    held: Mapping[Need, object] = {
        Need.REFERENCE: source.reference and source.reference.strip(),
        Need.PAIR: source.pairs,
        Need.RANKED: len(source.ranked) > 1,
        Need.CANDIDATES: source.candidates,
        Need.LABELS: source.labels,
        Need.RUBRICS: source.rubrics,
    }
    return bool(held[need])


class _Identified(abc.ABC):
    """What generators of single rubrics and of data sets have in common.

    Attributes:
        name: the method's name, which becomes the provenance of what it makes.
        needs: what every source must have.
        uses: what else of a source it looks at, where it is there.
    """

    name: str = ""
    needs: frozenset[Need] = frozenset()
    uses: frozenset[Need] = frozenset()

    @abc.abstractmethod
    def identity(self) -> dict[str, object]:
        """JSON-ready content of the fingerprint: everything that can change a rubric."""

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change what it generates: models, prompts, options."""
        return fingerprint(self.identity() | {"generator": f"{type(self).__module__}.{type(self).__qualname__}"})

    def check(self, source: Source) -> None:
        """Raises ConfigError for a source from which this can never make a rubric, before anything is paid for."""
        for need in Need:
            if need in self.needs and not _has(source, need):
                what, where = _HELD[need]
                row = f" (row {source.id})" if source.id else ""
                raise ConfigError(f"{self.name} needs {what}, and this source has none{row}", hint=where)
        if not source.task.strip():
            raise ConfigError(f"the source {source.id!r} has an empty prompt", hint="leave it out")

    async def aclose(self) -> None:
        """Release clients and models."""
        return None

    def close(self) -> None:
        """`aclose` for sync callers."""
        run_sync(self.aclose())


class Generator(_Identified):
    """Makes one rubric out of one source. Pickles if its models do.

    A subclass writes `write`, which may raise ChatError and ParseError: they become the typed failure.
    """

    @abc.abstractmethod
    async def write(self, source: Source) -> Generated:
        """The rubric for a source that `check` has passed."""

    async def generate(self, source: Source) -> Generated:
        """The rubric for a source, or why there is none.

        Raises ConfigError for a source that lacks what this needs; nothing else that a source or a model can bring
        about.
        """
        self.check(source)
        try:
            generated = await self.write(source)
        except ConfigError:
            raise  # a setting is wrong, and would be for every source
        except RubricateError as error:
            generated = Generated.failed(failure_of(error))
        return replace(generated, source_id=source.id)

    async def generate_batch(self, sources: Sequence[Source], *, concurrency: int = 16) -> list[Generated]:
        """A result a source, in order, at most `concurrency` in work at once.

        A source that lacks what this needs is a failed result of the kind `request`. Raises ConfigError where the
        concurrency is below 1.
        """
        if concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency}", hint="use at least 1")
        gate = asyncio.Semaphore(concurrency)

        async def one(source: Source) -> Generated:
            try:
                self.check(source)
            except ConfigError as error:
                why = failure(FailureKind.REQUEST, error.message)
                return replace(Generated.failed(why), source_id=source.id)
            async with gate:
                return await self.generate(source)

        return list(await asyncio.gather(*(one(source) for source in sources)))

    def generate_sync(self, source: Source) -> Generated:
        """`generate` for sync callers, notebooks included."""
        return run_sync(self.generate(source))

    def generate_batch_sync(self, sources: Sequence[Source], *, concurrency: int = 16) -> list[Generated]:
        """`generate_batch` for sync callers."""
        return run_sync(self.generate_batch(sources, concurrency=concurrency))


class DatasetGenerator(_Identified):
    """Makes one rubric out of many sources, such as a data set's general rubric. Pickles if its models do.

    A subclass writes `write_from`, which may raise ChatError and ParseError: they become the typed failure.
    """

    @abc.abstractmethod
    async def write_from(self, sources: Sequence[Source]) -> Generated:
        """The rubric for sources that `check` has passed."""

    async def generate_from(self, sources: Sequence[Source]) -> Generated:
        """The rubric for all the sources together, or why there is none.

        Raises ConfigError for no sources, and for one that lacks what this needs.
        """
        if not sources:
            raise ConfigError(f"{self.name} needs at least one source")
        for source in sources:
            self.check(source)
        try:
            return await self.write_from(sources)
        except ConfigError:
            raise
        except RubricateError as error:
            return Generated.failed(failure_of(error))

    def generate_from_sync(self, sources: Sequence[Source]) -> Generated:
        """`generate_from` for sync callers."""
        return run_sync(self.generate_from(sources))
