"""The filter of criteria that ask for the same twice: by their texts' embeddings, by their verdicts, or both."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rubricate.embed import Embedder, similar_pairs
from rubricate.errors import ConfigError
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.filters.base import Case, Filtered, Outcome, collected, each
from rubricate.rubrics.filters.coding_rate import EmbeddingFunction, embedded
from rubricate.rubrics.filters.judging import JudgeSource, identity_of, samples_of, with_table
from rubricate.rubrics.filters.table import correlation
from rubricate.rubrics.linting.words import Text
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Usage, fingerprint

__all__ = ["Redundancy", "Requires"]

Requires = Literal["either", "both"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two criteria by their places, and how alike they are. None: not looked at, or not known."""

    first: int
    second: int
    cosine: float | None
    correlation: float | None
    responses: int

    @property
    def figures(self) -> dict[str, float | int | str | None]:
        """The numbers that were looked at."""
        found: dict[str, float | int | str | None] = {} if self.cosine is None else {"cosine": self.cosine}
        return found | ({"correlation": self.correlation, "responses": self.responses} if self.responses else {})


class Redundancy:
    """Drops the one of two criteria that say the same: the lighter, of equal weights the later.

    By embedding: a cosine of at least `cosine`. Embeddings put the opposite as close as the same: texts that
    differ in a negation, a number or a name are not alike. By verdicts: a correlation over the pool of at least
    `correlation`; with few responses that happens by chance, and two criteria that a good response meets go
    together without being the same. Only criteria of one group, sign, condition and scale are compared, and none
    with one that was dropped already: of a chain whose ends differ, the ends stay.

    Args:
        embedder: an embedder, or any function from texts to vectors; None leaves the texts unlooked at.
        judge: judges pools that come without a table; None uses the tables that are there.
        verdicts: look at verdicts; None does so where there is a judge.
        require: where texts and verdicts are looked at: `both` must be alike, or `either`. Where a pair's
            correlation is not known (failed judgements, no variation), `both` keeps the two and flags the pair.
        cosine, correlation: thresholds. The cosine's is the linter's for wordllama, where a pair probably says the
            same (ours); another embedder has another scale.
        min_known: responses that two criteria need to have scores of.
        repeats: judgements a response.
        concurrency: cases that are judged at the same time.

    Raises ConfigError where neither texts nor verdicts are to be looked at, and for options outside their ranges.
    """

    def __init__(
        self,
        embedder: Embedder | EmbeddingFunction | None = None,
        judge: JudgeSource | None = None,
        *,
        verdicts: bool | None = None,
        require: Requires = "both",
        cosine: float = 0.8,
        correlation: float = 0.95,
        min_known: int = 4,
        repeats: int = 1,
        concurrency: int = 16,
        name: str = "redundancy",
    ) -> None:
        self.verdicts = judge is not None if verdicts is None else verdicts
        if embedder is None and not self.verdicts:
            raise ConfigError("redundancy looks at texts or verdicts", hint="give embedder=... or verdicts=True")
        if require not in get_args(Requires):
            raise ConfigError(f"require is {require!r}", hint=f"use one of {', '.join(get_args(Requires))}")
        if not -1.0 <= cosine <= 1.0 or not -1.0 <= correlation <= 1.0:
            raise ConfigError(f"cosine is {cosine} and correlation {correlation}", hint="both are in [-1, 1]")
        if min_known < 2 or repeats < 1 or concurrency < 1:
            raise ConfigError("min_known is 2 or more, repeats and concurrency 1 or more")
        if judge is not None:
            samples_of(judge, repeats)  # a judge that cannot be repeated is an error before anything is paid for
        self.embedder = embedder
        self.judge = judge
        self.require: Requires = require
        self.cosine = cosine
        self.correlation = correlation
        self.min_known = min_known
        self.repeats = repeats
        self.concurrency = concurrency
        self.name = name

    @property
    def fingerprint(self) -> str:
        """Of embedder, judge and options."""
        embedder = self.embedder
        shown = embedder.fingerprint if isinstance(embedder, Embedder) else getattr(embedder, "__qualname__", None)
        options = [self.verdicts, self.require, self.cosine, self.correlation, self.min_known, self.repeats]
        return fingerprint(["redundancy", shown, identity_of(self.judge, self.repeats), options])

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order. The texts of all cases are embedded in one call, each once."""
        cosines = await self._cosines(cases) if self.embedder is not None else [None for _ in cases]

        async def one(item: tuple[int, Case]) -> Outcome:
            place, case = item
            usage = Usage()
            if self.verdicts:
                case, usage = await with_table(case, self.judge, self.repeats)
            outcome = Outcome(self.name, place, case)
            outcome.usage = usage
            if self.verdicts and case.table is None and self.embedder is None:
                outcome.flag("", "unknown, kept: there is no pool of responses to look at")
            self._decide(outcome, case.rubric, list(self._pairs(case, cosines[place])))
            return outcome

        return collected(await each(one, list(enumerate(cases)), self.concurrency))

    async def _cosines(self, cases: Sequence[Case]) -> list[dict[tuple[int, int], float] | None]:
        """For each case the cosines of its pairs of criteria that reach the threshold."""
        if self.embedder is None:
            return [None for _ in cases]
        texts = list(dict.fromkeys(one.text for case in cases for one in case.rubric.criteria))
        rows = await embedded(texts, self.embedder)
        places = {text: place for place, text in enumerate(texts)}
        return [
            {
                (first, second): value
                for first, second, value in similar_pairs(
                    rows[[places[one.text] for one in case.rubric.criteria]], self.cosine
                )
            }
            for case in cases
        ]

    def _pairs(self, case: Case, cosines: dict[tuple[int, int], float] | None) -> Iterator[_Pair]:
        """The pairs that may be compared and are alike in one way at least."""
        texts = [Text(one.text) for one in case.rubric.criteria]
        for (first, a), (second, b) in itertools.combinations(enumerate(case.rubric.criteria), 2):
            if not _comparable(a, b):
                continue
            cosine = None if cosines is None else cosines.get((first, second))
            if cosine is not None and _apart(texts[first], texts[second]):
                cosine = None
            if cosine is None and cosines is not None and self.require == "both":
                continue
            value, count = None, 0
            if self.verdicts and case.table is not None:
                value, count = correlation(case.table.means(a.id), case.table.means(b.id))
                value = value if count >= self.min_known else None
            if cosine is not None or (value is not None and value >= self.correlation):
                yield _Pair(first, second, cosine, value, count)

    def _decide(self, outcome: Outcome, rubric: Rubric, pairs: Sequence[_Pair]) -> None:
        """Drop one of each pair that is alike enough, the most alike pairs first."""
        gone = set[int]()
        ordered = sorted(pairs, key=lambda p: (-(p.cosine or 0.0), -(p.correlation or 0.0), p.first, p.second))
        for pair in ordered:
            if gone & {pair.first, pair.second}:
                continue
            kept, lost = _kept(rubric, pair)
            a, b = rubric.criteria[kept], rubric.criteria[lost]
            needs = self.verdicts and pair.cosine is not None and self.require == "both"
            if needs and pair.correlation is None:
                reason = f"its text is like that of {a.id!r}; whether the verdicts agree is not known"
                outcome.flag(b.id, f"unknown, kept: {reason}", **pair.figures)
            elif not needs or (pair.correlation is not None and pair.correlation >= self.correlation):
                gone.add(lost)
                outcome.drop(b.id, f"it says the same as {a.id!r}", **pair.figures)


def _comparable(a: Criterion, b: Criterion) -> bool:
    return (a.path, a.polarity, a.condition, a.scale) == (b.path, b.polarity, b.condition, b.scale)


def _apart(one: Text, two: Text) -> bool:
    """Whether texts differ in what embeddings hardly see: a negation, a number, a name."""
    return one.negative != two.negative or one.names != two.names


def _kept(rubric: Rubric, pair: _Pair) -> tuple[int, int]:
    """Which of two is kept and which is dropped: a veto stays, then the heavier, then the earlier."""
    a, b = rubric.criteria[pair.first], rubric.criteria[pair.second]
    second = (b.veto, b.weight) > (a.veto, a.weight)
    return (pair.second, pair.first) if second else (pair.first, pair.second)
