"""The steps that a row goes through by itself, as one stage: rows in, one outcome a row out.

An outcome has `number`, `id` and `line`; `rubric` (our own format), or `lost` (step, kind, reason, and whether
another run may do better); and where there is anything to say `notes` (kind and reason to number), `dropped` and
`flagged` (step, criterion, reason), `figures` (of filters), `extra`, `traces` and `usage`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from rubricate.errors import ConfigError
from rubricate.rubrics.filters import Case, Filter, Filtered, Trace
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.formats.native import FORMAT as NATIVE
from rubricate.rubrics.generators.base import DatasetGenerator, Generated, Generator, Need
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.pipeline.building import Names
from rubricate.rubrics.pipeline.filtering import GROUPS, build_filter, case_of
from rubricate.rubrics.pipeline.methods import build_method
from rubricate.rubrics.pipeline.parts import Supplies
from rubricate.rubrics.pipeline.recipe import GenerateRecipe, Step
from rubricate.rubrics.pipeline.rows import WorkRow, source_of
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureKind, Usage

__all__ = ["Chain"]

REASON = 300
"""Characters of a reason that are kept."""

_AGAIN = frozenset(
    {
        FailureKind.SERVER,
        FailureKind.RATE_LIMIT,
        FailureKind.REQUEST,
        FailureKind.DEADLINE,
        FailureKind.BUDGET,
        FailureKind.CIRCUIT_OPEN,
    }
)
"""Failures that do not lie in the row or in what a model said of it: another run may do better."""


@dataclass(slots=True)
class _Going:
    """A row on its way: its source, the rubrics made for it so far, and what is to be said of it."""

    row: WorkRow
    source: Source
    drafts: list[Rubric]
    lost: dict[str, object] | None = None
    notes: Counter[str] = field(default_factory=Counter[str])
    dropped: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    flagged: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    figures: dict[str, object] = field(default_factory=dict[str, object])
    extra: dict[str, object] = field(default_factory=dict[str, object])
    traces: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    usage: Usage = Usage()

    def lose(self, step: str, kind: str, reason: str, *, again: bool = False) -> None:
        """There will be no rubric."""
        self.lost = {"step": step, "kind": kind, "reason": reason[:REASON], "again": again}

    def outcome(self) -> dict[str, object]:
        """JSON-ready, without what is empty."""
        made: dict[str, object] = {"number": self.row.number, "id": self.source.id, "line": self.row.line}
        if self.lost is None:
            made["rubric"] = NATIVE.dump(self.drafts[-1], Place())
        else:
            made["lost"] = self.lost
        more = {
            "notes": dict(self.notes),
            "dropped": self.dropped,
            "flagged": self.flagged,
            "figures": self.figures,
            "extra": self.extra,
            "traces": self.traces,
        }
        made |= {name: value for name, value in more.items() if value}
        if self.usage != Usage():
            made["usage"] = asdict(self.usage)
        return made


@dataclass(frozen=True, slots=True)
class _Writing:
    """A step that generates."""

    label: str
    generator: Generator

    @property
    def starts_from_rubrics(self) -> bool:
        return Need.RUBRICS in self.generator.needs | self.generator.uses

    def identity(self) -> dict[str, object]:
        return {"generate": self.label, "fingerprint": self.generator.fingerprint}

    async def run(self, going: Sequence[_Going]) -> None:
        await asyncio.gather(*(self._one(one) for one in going))

    async def _one(self, one: _Going) -> None:
        source = one.source
        if self.starts_from_rubrics:
            source = replace(source, rubrics=tuple(one.drafts))
        try:
            self.generator.check(source)
        except ConfigError as error:
            one.lose(self.label, "unfit", error.message)
            return
        made = await self.generator.generate(source)
        self._take(one, made)

    def _take(self, one: _Going, made: Generated) -> None:
        one.usage += made.usage
        one.notes.update(f"{self.label}: {note.kind.value}: {note.reason}"[:REASON] for note in made.notes)
        if made.extra:
            one.extra[self.label] = dict(made.extra)
        if made.rubric is None:
            self._lose(one, made.failure)
        elif self.starts_from_rubrics:
            one.drafts = [made.rubric]
        else:
            one.drafts.append(made.rubric)

    def _lose(self, one: _Going, why: Failure | None) -> None:
        if why is not None:
            one.lose(self.label, why.kind.value, why.message, again=why.kind in _AGAIN)


@dataclass(frozen=True, slots=True)
class _Filtering:
    """A step that filters."""

    label: str
    filter: Filter

    def identity(self) -> dict[str, object]:
        return {"filter": self.label, "fingerprint": self.filter.fingerprint}

    async def run(self, going: Sequence[_Going]) -> None:
        done = await self.filter.apply([case_of(one.drafts[-1], one.source) for one in going])
        for one, case in zip(going, done.cases, strict=True):
            self._take(one, case, done)
        self._say(going, done)

    def _take(self, one: _Going, case: Case | None, done: Filtered) -> None:
        if case is not None:
            one.drafts = [case.rubric]

    def _say(self, going: Sequence[_Going], done: Filtered) -> None:
        for said in done.dropped:
            entry: dict[str, object] = {
                "step": self.label,
                "criterion": said.criterion_id,
                "reason": said.reason[:REASON],
            }
            going[said.case].dropped.append(entry)
            if said.what == "rubric":
                going[said.case].lose(self.label, "filtered", said.reason)
        for said in done.flagged:
            entry: dict[str, object] = {
                "step": self.label,
                "criterion": said.criterion_id,
                "reason": said.reason[:REASON],
            }
            going[said.case].flagged.append(entry)
        for trace in done.traces:
            going[trace.case].traces.append(_trace(trace))
        if going:  # what is known of the group as a whole stands with its first row
            going[0].usage += done.usage
            known = {name: [value, len(going)] for name, value in done.figures.items() if value is not None}
            going[0].figures |= known


def _trace(trace: Trace) -> dict[str, object]:
    return {
        "order": trace.order,
        "chosen": trace.pair.chosen,
        "rejected": trace.pair.rejected,
        "reply": trace.reply,
        "reason": trace.reason,
    }


@dataclass(frozen=True, slots=True)
class _Gathering:
    """A step that makes one rubric of all rows."""

    label: str
    generator: DatasetGenerator

    def identity(self) -> dict[str, object]:
        return {"gather": self.label, "fingerprint": self.generator.fingerprint}


_Made = _Writing | _Filtering


class Chain:
    """The recipe's steps of single rows as a stage. Pickles; each process makes its generators and filters anew.

    Args:
        recipe: the recipe.
        supplies: makes models, judges and embedders.
        source: name of the recipe, for errors.

    Raises ConfigError for a method, filter, option or part that is wrong, and for steps that do not go together.
    """

    def __init__(self, recipe: GenerateRecipe, supplies: Supplies, *, source: str = "the recipe") -> None:
        self.recipe = recipe
        self.supplies = supplies
        self.source = source
        self._steps: list[_Made] | None = None
        self._check_order()
        _ = self.gatherers  # what is wrong with them is said before rows are paid for

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_steps": None}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)

    @property
    def steps(self) -> list[_Made]:
        """The steps, made when they are first needed."""
        if self._steps is None:
            made = [self._make(place, step) for place, step in self.recipe.row_steps]
            self._steps = [step for step in made if not isinstance(step, _Gathering)]
        return self._steps

    @property
    def gatherers(self) -> list[tuple[str, DatasetGenerator]]:
        """What makes one rubric of all rows, with the methods' names."""
        made = [self._make(place, step) for place, step in self.recipe.gather_steps]
        return [(step.label, step.generator) for step in made if isinstance(step, _Gathering)]

    @property
    def first_generators(self) -> list[tuple[str, Generator]]:
        """The generators that start from the row alone, with their methods' names."""
        return [
            (step.label, step.generator)
            for step in self.steps
            if isinstance(step, _Writing) and (not step.starts_from_rubrics or step is self.steps[0])
        ]

    @property
    def later(self) -> list[str]:
        """Steps whose calls depend on what others made: methods that start from rubrics, filters that judge."""
        first = [label for label, _ in self.first_generators]
        judging = [
            step.label
            for step in self.steps
            if isinstance(step, _Filtering) and getattr(step.filter, "judge", None)
        ]
        return (
            [s.label for s in self.steps if isinstance(s, _Writing) and s.label not in first]
            + judging
            + [step.label for _, step in self.recipe.gather_steps]
        )

    @property
    def reads_rubrics(self) -> bool:
        """Whether rows bring rubrics of their own: the first step filters them, or starts from them."""
        if not self.steps:
            return False
        first = self.steps[0]
        return isinstance(first, _Filtering) or first.starts_from_rubrics

    @property
    def group(self) -> int:
        """Rows that a filter wants to see together."""
        return max((GROUPS.get(step.label, 1) for step in self.steps), default=1)

    def identity(self) -> list[dict[str, object]]:
        """What decides the outcome of a row besides the row: a fingerprint a step."""
        return [step.identity() for step in self.steps]

    def gather_identity(self) -> list[dict[str, object]]:
        """The same of the steps that gather."""
        return [_Gathering(*pair).identity() for pair in self.gatherers]

    def check(self, row: WorkRow) -> str:
        """Why a row can never have a rubric, "" where it may. Raises FormatError for one that cannot be read."""
        going = self._begin(row)
        for step in self.steps:
            if isinstance(step, _Filtering):
                return "" if going.drafts or step is not self.steps[0] else "it has no rubric"
            if step.starts_from_rubrics and step is not self.steps[0]:
                continue  # what it starts from is still to be made
            try:
                step.generator.check(replace(going.source, rubrics=tuple(going.drafts)))
            except ConfigError as error:
                return error.message.partition(" (row ")[0]
        return ""

    async def __call__(self, rows: Sequence[WorkRow]) -> list[dict[str, object]]:
        """An outcome a row, in order. Raises ConfigError for what is wrong with every row."""
        self.supplies.check()
        going = [self._begin(row) for row in rows]
        if self.steps and isinstance(self.steps[0], _Filtering):
            for one in going:
                if not one.drafts:
                    one.lose(self.steps[0].label, "unfit", "it has no rubric")
        for step in self.steps:
            alive = [one for one in going if one.lost is None]
            if alive:
                await step.run(alive)
        if any(one.lost is not None for one in going):
            self.supplies.check()  # calls that failed because answers cannot be kept end the run
        return [one.outcome() for one in going]

    async def aclose(self) -> None:
        """Release clients and models."""
        await self.supplies.aclose()

    def _begin(self, row: WorkRow) -> _Going:
        source = source_of(row, self.recipe.columns, rubrics=self.reads_rubrics)
        return _Going(row, source, list(source.rubrics))

    def _make(self, place: int, step: Step) -> _Made | _Gathering:
        recipe = self.recipe
        model = step.model or recipe.model
        named = {name for name in ("model", "judge", "embedder") if getattr(step, name) is not None}
        if step.kind != "filter" and recipe.judge is not None:
            named.add("judge")
        names = Names(
            model, step.judge or recipe.judge or model, step.embedder or recipe.embedder, frozenset(named)
        )
        at = f"steps.{place}.options"
        if step.kind == "filter":
            made = build_filter(step.label, step.options, self.supplies, names, source=self.source, at=at)
            return _Filtering(step.label, made)
        generator = build_method(step.label, step.options, self.supplies, names, source=self.source, at=at)
        if step.kind == "gather" and isinstance(generator, DatasetGenerator):
            return _Gathering(step.label, generator)
        if step.kind == "generate" and isinstance(generator, Generator):
            return _Writing(step.label, generator)
        if step.kind == "gather":
            raise ConfigError(
                f"{self.source}: the method {step.label!r} makes a rubric a row", hint=f"use generate: {step.label}"
            )
        raise ConfigError(
            f"{self.source}: the method {step.label!r} makes one rubric of all rows",
            hint=f"use gather: {step.label}",
        )

    def _check_order(self) -> None:
        """Raises ConfigError where a row would end up with several rubrics, or a filter would meet several."""
        open_drafts = 0
        for step in self.steps:
            if isinstance(step, _Writing):
                open_drafts = 1 if step.starts_from_rubrics else open_drafts + 1
            if open_drafts > 1 and (isinstance(step, _Filtering) or step is self.steps[-1]):
                raise ConfigError(
                    f"{self.source}: several steps write a rubric for the same row",
                    hint="let a step follow them that makes one of several, such as generate: merge",
                )
