"""What filters of rubrics have in common: the case under a filter, what it dropped and why, and the pipeline."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

from rubricate.bridge import run_sync
from rubricate.data.records import Preference, Rollout, Turn
from rubricate.data.turns import prompt_of
from rubricate.errors import ConfigError
from rubricate.rubrics.filters.table import ScoreTable
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Usage

__all__ = [
    "Case",
    "Dropped",
    "Filter",
    "Filtered",
    "Flagged",
    "Said",
    "Trace",
    "Unknown",
    "apply",
    "apply_sync",
    "without",
]

Unknown = Literal["keep", "drop"]
"""What becomes of a criterion or rubric of which too little is known: kept and flagged, or dropped."""

Figure = float | int | str | None


@dataclass(frozen=True, slots=True)
class Case:
    """A rubric under the filters, with what is known around it.

    Attributes:
        rubric: the rubric.
        prompt: the prompt it is for, as text or turns; "" where there is none.
        reference: the reference answer, where there is one.
        id: name of the case; the rubric's id where it is empty.
        pairs: the preference pairs that the rubric was written from.
        held_out: pairs of the same prompt that its generator did not see.
        pool: responses to the prompt. Filters that look at a pool judge these.
        correct: for each response of the pool whether it is correct (or how far, in [0, 1]); None: not known.
        weak, strong: a weak and a strong response, as RRD's alignment test needs them.
        table: scores of the pool, where it has been judged; filters that need it and find none have it judged, and
            hand it on.
    """

    rubric: Rubric
    prompt: str | tuple[Turn, ...] = ""
    reference: str | None = None
    id: str = ""
    pairs: tuple[Preference, ...] = ()
    held_out: tuple[Preference, ...] = ()
    pool: tuple[Rollout, ...] = ()
    correct: tuple[float | None, ...] = ()
    weak: Rollout | None = None
    strong: Rollout | None = None
    table: ScoreTable | None = None

    @property
    def name(self) -> str:
        """The case's id, else the rubric's."""
        return self.id or self.rubric.id

    @property
    def prompt_text(self) -> str:
        """The prompt as one text; a conversation keeps its roles."""
        return prompt_of(self.prompt)


@dataclass(frozen=True, slots=True)
class Said:
    """What a filter says of a rubric or criterion.

    Attributes:
        what: `rubric` or `criterion`.
        criterion_id: the criterion's id, "" for a rubric.
        filter: name of the filter.
        reason: one sentence.
        figures: the numbers it rests on, by name.
        case: place of the case among those the pipeline was given, from 0.
        name: the case's name.
    """

    what: Literal["rubric", "criterion"]
    criterion_id: str
    filter: str
    reason: str
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])
    case: int = 0
    name: str = ""

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={_shown(value)}" for key, value in self.figures.items())
        where = f"case {self.name or self.case + 1}" + (f", {self.criterion_id}" if self.criterion_id else "")
        return f"{where}: {self.filter}: {self.reason}" + (f" ({shown})" if shown else "")


def _shown(value: Figure) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Dropped(Said):
    """A rubric or criterion that a filter took out."""


@dataclass(frozen=True, slots=True)
class Flagged(Said):
    """A rubric or criterion that stays, and that a person should look at."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A judge's reply about a pair that it predicted right, for training a judge.

    Attributes:
        case: place of the case among those the pipeline was given.
        pair: the pair that was judged.
        rubric: the rubric it was judged by.
        order: `given` where the chosen response was shown first, else `swapped`.
        reply: the reply's text, "" where the judge keeps none.
        reason: the judge's reason.
    """

    case: int
    pair: Preference
    rubric: Rubric
    order: Literal["given", "swapped"]
    reply: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Filtered:
    """What is left after one filter, or several.

    Attributes:
        cases: the case at each place, with the criteria that are left; None where the rubric was dropped.
        dropped: what was taken out, and why.
        flagged: what stays and should be looked at.
        figures: figures of a filter as a whole, as `FILTER.NAME`, such as
            `label_consistency.permuted_keep_rate`; None where there was nothing to compute it from.
        traces: replies of the judge that label consistency keeps.
        usage: what the judges cost.
    """

    cases: tuple[Case | None, ...]
    dropped: tuple[Dropped, ...] = ()
    flagged: tuple[Flagged, ...] = ()
    figures: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    traces: tuple[Trace, ...] = ()
    usage: Usage = Usage()

    @property
    def kept(self) -> list[Case]:
        """The cases that are left, in order."""
        return [case for case in self.cases if case is not None]

    @property
    def counts(self) -> dict[str, int]:
        """How much each filter dropped: `FILTER.rubric` and `FILTER.criterion` to number."""
        return dict(Counter(f"{one.filter}.{one.what}" for one in self.dropped))

    def summary(self) -> str:
        """A few lines for people: what is left, what each filter dropped and why most often, and the figures."""
        criteria = sum(len(case.rubric) for case in self.kept)
        lines = [f"{len(self.kept)} of {len(self.cases)} rubrics left, with {criteria} criteria"]
        reasons = Counter((one.filter, one.what, _kind_of(one.reason)) for one in self.dropped)
        lines += [f"{name}: dropped {count} x {what}: {why}" for (name, what, why), count in reasons.most_common()]
        for name, value in self.figures.items():
            lines.append(f"{name}: {'not known' if value is None else f'{value:.4g}'}")
        flags = Counter((one.filter, _kind_of(one.reason)) for one in self.flagged)
        lines += [f"{name}: flagged {count} x {why}" for (name, why), count in flags.most_common()]
        return "\n".join(lines)


def _kind_of(reason: str) -> str:
    """A reason without what it quotes, so that equal ones count together."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "...", reason)


class Filter(Protocol):
    """Takes rubrics, or criteria of rubrics, out, and says why.

    `name` is for people and in every `Dropped`; `fingerprint` changes with everything that can change a decision.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def apply(self, cases: Sequence[Case]) -> Filtered:
        """One entry a case, in order. A judgement that failed never counts as a number."""
        ...


async def apply(filters: Iterable[Filter], cases: Sequence[Case]) -> Filtered:
    """Filters one after the other; each sees what those before it left, judged pools included.

    Places (`case`) in what was dropped and flagged are those of `cases`. Raises ConfigError for two filters with
    one name, whose figures would be one another's; and what a filter raises.
    """
    listed = list(filters)
    names = Counter(one.name for one in listed)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ConfigError(f"two filters are named {twice[0]!r}", hint="give one of them name=...")
    done = Filtered(tuple(cases))
    for one in listed:
        places = [place for place, case in enumerate(done.cases) if case is not None]
        left = [case for case in done.cases if case is not None]
        done = _joined(done, await one.apply(left), places)
    return done


def apply_sync(filters: Iterable[Filter], cases: Sequence[Case]) -> Filtered:
    """As `apply`, for sync callers."""
    return run_sync(apply(filters, cases))


_SaidT = TypeVar("_SaidT", bound=Said)


def _joined(before: Filtered, result: Filtered, places: Sequence[int]) -> Filtered:
    """What a filter made of the cases at these places, added to what was there."""

    def placed(said: Sequence[_SaidT]) -> tuple[_SaidT, ...]:
        return tuple(replace(one, case=places[one.case]) for one in said)

    cases = list(before.cases)
    for place, case in zip(places, result.cases, strict=True):
        cases[place] = case
    return Filtered(
        tuple(cases),
        before.dropped + placed(result.dropped),
        before.flagged + placed(result.flagged),
        {**before.figures, **result.figures},
        before.traces + tuple(replace(one, case=places[one.case]) for one in result.traces),
        before.usage + result.usage,
    )


class Outcome:
    """Collects what a filter says of one case, and makes the case that is left."""

    def __init__(self, name: str, place: int, case: Case, unknown: Unknown = "keep") -> None:
        self.name = name
        self.place = place
        self.case = case
        self.unknown: Unknown = unknown
        self.dropped: list[Dropped] = []
        self.flagged: list[Flagged] = []
        self.traces: list[Trace] = []
        self.usage = Usage()
        self._gone = False

    def drop(self, criterion_id: str, reason: str, **figures: Figure) -> None:
        """Take a criterion out."""
        place, name = self.place, self.case.name
        self.dropped.append(Dropped("criterion", criterion_id, self.name, reason, figures, place, name))

    def drop_rubric(self, reason: str, **figures: Figure) -> None:
        """Take the whole rubric out."""
        self._gone = True
        self.dropped.append(Dropped("rubric", "", self.name, reason, figures, self.place, self.case.name))

    def flag(self, criterion_id: str, reason: str, **figures: Figure) -> None:
        """Leave a criterion in (the rubric, for the id ""), and say what is the matter with it."""
        what = "criterion" if criterion_id else "rubric"
        self.flagged.append(Flagged(what, criterion_id, self.name, reason, figures, self.place, self.case.name))

    def not_known(self, criterion_id: str, reason: str, **figures: Figure) -> None:
        """Too little is known of a criterion (the rubric, for the id ""): what the option says happens to it."""
        if self.unknown == "keep":
            self.flag(criterion_id, f"unknown, kept: {reason}", **figures)
        elif criterion_id:
            self.drop(criterion_id, f"unknown, dropped: {reason}", **figures)
        else:
            self.drop_rubric(f"unknown, dropped: {reason}", **figures)

    def left(self) -> Case | None:
        """The case without what was dropped; None where no criterion is left."""
        if self._gone:
            return None
        ids = {one.criterion_id for one in self.dropped}
        rubric = without(self.case.rubric, ids) if ids else self.case.rubric
        if rubric is None:
            self.drop_rubric("no criterion is left", criteria=len(self.case.rubric))
            return None
        return replace(self.case, rubric=rubric) if ids else self.case


def collected(outcomes: Sequence[Outcome], figures: Mapping[str, float | None] | None = None) -> Filtered:
    """The outcomes of all cases, in order, as one result."""
    cases = tuple(one.left() for one in outcomes)  # first: it may drop a rubric that lost all criteria
    return Filtered(
        cases,
        tuple(said for one in outcomes for said in one.dropped),
        tuple(said for one in outcomes for said in one.flagged),
        figures or {},
        tuple(trace for one in outcomes for trace in one.traces),
        sum((one.usage for one in outcomes), Usage()),
    )


def without(rubric: Rubric, ids: Iterable[str]) -> Rubric | None:
    """The rubric without these criteria and the groups that they leave empty; None where none is left.

    Weights stay as they are: what they are divided by is the aggregation's affair. Raises ConfigError for an id
    that the rubric does not have.
    """
    gone = set(ids)
    strange = gone - set(rubric.ids)
    if strange:
        raise ConfigError(f"the rubric has no criterion {sorted(strange)[0]!r}")
    criteria = tuple(criterion for criterion in rubric.criteria if criterion.id not in gone)
    if not criteria:
        return None
    used = {name for criterion in criteria for name in criterion.path}
    groups = tuple(group for group in rubric.groups if group.id in used)
    return rubric.model_copy(update={"criteria": criteria, "groups": groups})


def check_unknown(unknown: str) -> None:
    """Raises ConfigError for anything but `keep` and `drop`."""
    if unknown not in ("keep", "drop"):
        raise ConfigError(f"unknown is {unknown!r}", hint="use 'keep' or 'drop'")


_T = TypeVar("_T")
_R = TypeVar("_R")


async def each(work: Callable[[_T], Awaitable[_R]], items: Sequence[_T], concurrency: int) -> list[_R]:
    """The results for all items, in order, of at most so many at a time; the first error ends them all."""
    gate = asyncio.Semaphore(concurrency)

    async def gated(item: _T) -> _R:
        async with gate:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(gated(item)) for item in items]
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    return [task.result() for task in started]
