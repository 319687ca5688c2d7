"""Recursive decomposition and filtering (RRD, 2602.05125): what several responses meet is split in two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Unpack

import numpy as np

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.failures import failure
from rubricate.narrow import as_object
from rubricate.prompts import Prompt, load_prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import Criterion, Polarity, Provenance
from rubricate.rubrics.filters.answers import Misalignment
from rubricate.rubrics.filters.base import Case
from rubricate.rubrics.filters.judging import RubricJudge
from rubricate.rubrics.filters.whitening import whiten
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.base import Generated, Generator, GeneratorNote, Need, NoteKind
from rubricate.rubrics.generators.drafts import CHECKS, Drafting, Item, ListRules, Refused
from rubricate.rubrics.generators.model import Asks, ModelGenerator, evidence_of, list_schema
from rubricate.rubrics.generators.recursive_checks import numbered, read_checks, rejected, schema
from rubricate.rubrics.generators.recursive_pool import Pool, Scored, joined, usable
from rubricate.rubrics.generators.source import Source, Text, text_of
from rubricate.rubrics.generators.synthesis_asking import again, text_field
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Usage

__all__ = ["RecursiveGenerator"]


@dataclass(slots=True)
class _Run:
    """One decomposition: what is accepted, and how it is going."""

    source: Source
    pool: Pool
    texts: list[str]
    items: list[Scored] = field(default_factory=list[Scored])
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])
    rejects: int = 0
    rounds: int = 0
    stopped: str = ""
    failed: Failure | None = None

    def reject(self, one: Criterion, reason: str) -> None:
        """Count a criterion that a rejection test took out."""
        self.rejects += 1
        self.notes.append(GeneratorNote(NoteKind.FILTERED, reason, one.text))


class RecursiveGenerator(ModelGenerator):
    """A rubric refined by splitting, from a prompt and a pool of responses (RRD, 2602.05125).

    A criterion that `min_met` responses or more meet tells them apart badly, and is split into exactly two finer
    ones, written from those responses. A part is rejected where it overlaps with another criterion, contradicts
    one, or points the wrong way (the weak response passes and the strong one fails); the parts that pass are split
    in turn. It ends where nothing is left to split, after `most_rejects` rejections, or at `most` criteria. The
    weights come from the pool's scores by `whiten`.

    It begins with the source's first rubric, with that of `start`, or with criteria that it asks for. Weak and
    strong are the rejected and chosen response of the first pair, the last and first of ranked ones, or those of
    lowest and highest label; a source without any of these is not tested for alignment. Scores that failed are
    unknown: they meet nothing, and a criterion with too few of them is dropped, since it can have no weight.

    What becomes of the criterion that was split is not in what could be read of the paper: here its parts replace
    it where one of them is accepted, and it stays, unsplit, where none is (ours).

    Args:
        model: proposes, splits and compares criteria.
        judge: scores the responses.
        start: writes the first criteria.
        weights: `whitened`; `even`, all 1; `kept`, those of the first rubric, each shared out among its parts.
        min_met: responses that meet a criterion which is split (2).
        most_rejects: rejections after which it ends (15).
        max_rounds: levels of splitting; None for no limit (EvoLM: 6).
        most: criteria at which it ends (ours).
        overlap: share of meaning from which two criteria overlap, in (0, 1] (.7).
        threshold: score from which a response meets a criterion.
        shown: responses that a splitting prompt shows at most.
        least, most_start: numbers of criteria asked for at first.
        shrink, ridge: of the whitened weights (.1 and 1e-4).
        checks: rules of the linter that each criterion must pass.
        prompt: a template of one's own for the first criteria.
        options: how the model is asked; see `AskOptions`.
    """

    name = "recursive"

    def __init__(
        self,
        model: ChatModel,
        judge: RubricJudge,
        *,
        start: Generator | None = None,
        weights: Literal["whitened", "even", "kept"] = "whitened",
        min_met: int = 2,
        most_rejects: int = 15,
        max_rounds: int | None = None,
        most: int = 40,
        overlap: float = 0.7,
        threshold: float = 0.5,
        shown: int = 4,
        least: int = 3,
        most_start: int = 8,
        shrink: float = 0.1,
        ridge: float = 1e-4,
        checks: Sequence[str] = CHECKS,
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        super().__init__(model, prompt or "generate_recursive", **options)
        if weights not in ("whitened", "even", "kept"):
            raise ConfigError(f"weights is {weights!r}", hint="use whitened, even or kept")
        if min(min_met, most_rejects, most, shown) < 1 or (max_rounds is not None and max_rounds < 0):
            raise ConfigError("min_met, most_rejects, most and shown are 1 or more, max_rounds 0 or more")
        if not 0.0 < overlap <= 1.0 or not 0.0 < threshold <= 1.0:
            raise ConfigError(f"overlap is {overlap} and threshold {threshold}", hint="both are in (0, 1]")
        if not 0.0 <= shrink <= 1.0 or not ridge > 0.0:
            raise ConfigError(f"shrink is {shrink} and ridge {ridge}", hint="use [0, 1], and above 0")
        self.judge = judge
        self.start = start
        self.weights = weights
        self.min_met, self.most_rejects, self.max_rounds, self.most = min_met, most_rejects, max_rounds, most
        self.overlap, self.threshold, self.shown = overlap, threshold, shown
        self.shrink, self.ridge = shrink, ridge
        self.rules = ListRules(least, most_start, tuple(checks))
        self.halves = ListRules(2, 2, tuple(checks))
        self.needs = frozenset() if start is None else start.needs
        given = frozenset({Need.CANDIDATES, Need.RANKED, Need.PAIR, Need.LABELS, Need.RUBRICS})
        self.uses = given if start is None else given | start.uses

    def identity(self) -> dict[str, object]:
        """Adds the judge, the other prompts and the options of this method."""
        names = ("weights", "min_met", "most_rejects", "max_rounds", "most", "overlap", "threshold", "shown")
        own: dict[str, object] = {name: getattr(self, name) for name in (*names, "shrink", "ridge")}
        own["prompts"] = [load_prompt(f"generate_recursive_{name}").fingerprint for name in ("split", "check")]
        own |= {"judge": self.judge.fingerprint, "start": self.start and self.start.fingerprint}
        return super().identity() | own | {"rules": self.rules.identity()}

    def check(self, source: Source) -> None:
        """Adds: two responses or more, and no nested rubric to start from."""
        super().check(source)
        row = f" (row {source.id})" if source.id else ""
        if len(source.responses) < 2:
            hint = "columns candidates, ranked, or chosen and rejected"
            raise ConfigError(f"{self.name} needs two responses or more{row}", hint=hint)
        if source.rubrics and source.rubrics[0].groups:
            raise ConfigError(f"{self.name} needs a flat rubric to start from{row}", hint="flatten it first")

    async def write(self, source: Source) -> Generated:
        """Begin, split while there is something to split, and weigh."""
        run = _Run(source, Pool(self.judge, source.rollouts()), [text_of(one) for one in source.responses])
        await self._begin(run)
        level = run.items
        while run.failed is None and level and not run.stopped:
            if self.max_rounds is not None and run.rounds >= self.max_rounds:
                run.stopped = "rounds"
                break
            level = await self._round(run, level)
        return self._settled(run)

    async def _begin(self, run: _Run) -> None:
        """The first criteria, judged, without those that point the wrong way."""
        criteria = await self._first(run)
        if not criteria:
            return
        criteria = await self._aligned(run, criteria)
        run.items = await run.pool.score(criteria) if criteria else []
        run.failed = run.failed or _away(run.pool, run.items)

    async def _first(self, run: _Run) -> list[Criterion]:
        if run.source.rubrics:
            given = run.source.rubrics[0].criteria
            return [_given(one) for one in given]
        if self.start is not None:
            made = await self.start.generate(run.source)
            run.usage, run.notes, run.failed = made.usage, [*made.notes], made.failure
            return [] if made.rubric is None else [_given(one) for one in made.rubric.criteria]
        values = self.fenced(run.source.task, responses=run.texts) | {
            "least": self.rules.least,
            "most": self.rules.most,
        }
        answer = await Drafting(self.asking, self.rules).draft(self.messages(values), _read, schema=_schema)
        run.usage, run.notes, run.failed = answer.usage, [*answer.notes], answer.failure
        made = Provenance(evidence=evidence_of("response", *run.texts))
        return [one.model_copy(update={"provenance": made}) for one in answer.value or ()]

    async def _round(self, run: _Run, level: Sequence[Scored]) -> list[Scored]:
        """Split the criteria of one level that enough responses meet; gives the parts that were accepted."""
        accepted: list[Scored] = []
        wide = [one for one in level if len(one.meeting(self.threshold)) >= self.min_met]
        run.rounds += bool(wide)
        for parent in wide:
            if run.rejects >= self.most_rejects or len(run.items) >= self.most:
                run.stopped = "rejects" if run.rejects >= self.most_rejects else "most"
                break
            parts = await self._tested(run, parent, await self._split(run, parent))
            if run.failed is not None:
                break
            if parts:
                share = parent.criterion.weight / len(parts)
                parts = [one.model_copy(update={"weight": share}) for one in parts]
                scored = await run.pool.score(parts, parent.depth + 1)
                run.failed = _away(run.pool, scored)
                if run.failed is not None:
                    break
                at = run.items.index(parent)
                run.items[at : at + 1] = scored
                accepted += scored
        if run.rejects >= self.most_rejects:
            run.stopped = "rejects"
        return accepted

    async def _split(self, run: _Run, parent: Scored) -> list[Criterion]:
        """Exactly two finer criteria, seen from responses that meet the one; none where none can be had."""
        one = parent.criterion
        seen = [run.texts[place] for place in parent.meeting(self.threshold)[: self.shown]]
        others = numbered([other.criterion.text for other in run.items if other is not parent])
        values = self.fenced(run.source.task, criterion=one.text, responses=seen, others=others)
        values["penalty"] = one.polarity is Polarity.PENALTY
        messages = self.messages(values, load_prompt("generate_recursive_split"))
        answer = await Drafting(self.asking, self.halves).draft(messages, _read, schema=_schema)
        run.usage += answer.usage
        run.notes += answer.notes
        if answer.failure is not None:
            self._not_had(run, answer.failure, one, "it could not be split, and stays")
        evidence = (*evidence_of("criterion", one.text), *evidence_of("response", *seen))
        return [_part(half, one, evidence) for half in answer.value or ()]

    def _not_had(self, run: _Run, why: Failure, one: Criterion, said: str) -> None:
        """Servers and budgets end the work, to be done again; what a model's answers lack does not."""
        if why.cause is FailureCause.INFRASTRUCTURE:
            run.failed = why
        run.rejects += 1
        run.notes.append(GeneratorNote(NoteKind.FILTERED, f"{said}: {why.message}", one.text))

    async def _tested(self, run: _Run, parent: Scored, parts: Sequence[Criterion]) -> list[Criterion]:
        """The parts that pass the rejection tests."""
        if not parts or run.failed is not None:
            return []
        there = [one.criterion.text for one in run.items if one is not parent]
        existing, new = numbered(there), numbered([one.text for one in parts], len(there) + 1)
        nonce = make_nonce(self.asking.options.run_key, run.source.task, existing, new)
        values: dict[str, object] = {
            "task": fence("task", run.source.task, nonce),
            "existing": fence("existing", existing, nonce) if there else "",
            "new": fence("new", new, nonce),
        }
        messages = self.messages(values, load_prompt("generate_recursive_check"))
        answer = await self.asking.ask(
            again(messages),
            lambda text: read_checks(text, len(there), len(parts)),
            schema=schema(len(parts)),
        )
        run.usage += answer.usage
        run.notes += answer.notes
        if answer.value is None:
            why = answer.failure or failure(FailureKind.INCOMPLETE, "there is no answer")
            for one in parts:
                self._not_had(run, why, one, "overlap and conflict could not be checked")
            return []
        reasons = rejected(answer.value, len(there), self.overlap)
        texts = [*there, *(one.text for one in parts)]
        passed: list[Criterion] = []
        for number, one in enumerate(parts, start=len(there) + 1):
            if number in reasons:
                said, other = reasons[number]
                run.reject(one, f"{said} another criterion: {texts[other - 1]}")
            else:
                passed.append(one)
        return await self._aligned(run, passed)

    async def _aligned(self, run: _Run, criteria: Sequence[Criterion]) -> list[Criterion]:
        """Without those that the weak response passes and the strong one fails."""
        ends = _ends(run.source)
        if ends is None or not criteria:
            return list(criteria)
        weak, strong = run.source.rollouts(ends)
        named = tuple(one.model_copy(update={"id": f"n{place}"}) for place, one in enumerate(criteria))
        case = Case(Rubric(criteria=named), run.source.prompt, weak=weak, strong=strong)
        done = await Misalignment(self.judge, threshold=self.threshold).apply([case])
        run.usage += done.usage
        reasons = {dropped.criterion_id: dropped.reason for dropped in done.dropped}
        for one, name in zip(criteria, (one.id for one in named), strict=True):
            if name in reasons:
                run.reject(one, reasons[name])
        return [one for one, name in zip(criteria, named, strict=True) if name.id not in reasons]

    def _settled(self, run: _Run) -> Generated:
        usage = run.usage + run.pool.usage
        items = usable(run.items, 2) if self.weights == "whitened" else run.items
        for one in run.items:
            if one not in items:
                reason = "its weight is not known: too few responses could be judged by it"
                run.notes.append(GeneratorNote(NoteKind.FILTERED, reason, one.criterion.text))
        why = run.failed
        if why is None and not items:
            why = run.pool.failure or failure(FailureKind.INCOMPLETE, "every criterion was rejected")
        if why is not None:
            return Generated.failed(why, usage=usage, notes=run.notes)
        rubric = self._weighed(run, items)
        counts = {"rejects": run.rejects, "rounds": run.rounds, "stopped": run.stopped or "nothing to split"}
        return Generated(rubric, None, usage, tuple(run.notes), extra={"recursive": counts})

    def _weighed(self, run: _Run, items: Sequence[Scored]) -> Rubric:
        criteria = [one.criterion for one in items]
        if self.weights != "kept":
            criteria = [one.model_copy(update={"weight": 1.0}) for one in criteria]
        rubric = self.finish(criteria, run.source)
        if self.weights != "whitened":
            return rubric
        return whiten(rubric, joined(items, rubric.ids), shrink=self.shrink, ridge=self.ridge)

    async def aclose(self) -> None:
        """Close the model, the judge and the generator of the first criteria."""
        await super().aclose()
        await self.judge.aclose()
        if self.start is not None:
            await self.start.aclose()


def _away(pool: Pool, scored: Sequence[Scored]) -> Failure | None:
    """The failure of a judge that was away while a criterion was judged: the row is to be done again."""
    unknown = any(np.isnan(one.scores).all() and one.failed for one in scored)
    away = pool.failure is not None and pool.failure.cause is FailureCause.INFRASTRUCTURE
    return pool.failure if unknown and away else None


def _ends(source: Source) -> tuple[Text, Text] | None:
    """A weak and a strong response, where the source says which are."""
    if source.pairs:
        return source.pairs[0].rejected, source.pairs[0].chosen
    if len(source.ranked) > 1:
        return source.ranked[-1], source.ranked[0]
    if source.labels and min(source.labels) < max(source.labels):
        low, high = source.labels.index(min(source.labels)), source.labels.index(max(source.labels))
        return source.candidates[low], source.candidates[high]
    return None


def _read(text: str) -> list[Item]:
    found: list[Item] = []
    for value in read_items(text, "criteria", "rubric", "rubrics"):
        fields = as_object(value) or {}
        said, title = text_field(fields, "criterion", "description"), text_field(fields, "title")
        if not said:
            found.append(Refused(str(value)[:200], "it is no object with title and criterion"))
        else:
            found.append(Criterion(id="new", text=said, metadata={"title": title} if title else {}))
    return found


def _schema(least: int, most: int | None) -> dict[str, object]:
    text = {"type": "string"}
    return list_schema("criteria", {"title": text, "criterion": text}, least, most)


def _given(one: Criterion) -> Criterion:
    """A criterion that another method or a person wrote; it keeps its id, and where it is from."""
    origin = {} if one.provenance is None else {"origin": one.provenance.model_dump(mode="json")}
    return one.model_copy(update={"metadata": {"title": one.id} | one.metadata | origin})


def _part(half: Criterion, parent: Criterion, evidence: tuple[str, ...]) -> Criterion:
    """A finer criterion, with what it has from the one that was split."""
    kept = parent.model_dump(include={"polarity", "kind", "importance", "condition", "channel", "tags"})
    metadata = half.metadata | {"part_of": parent.text}
    return half.model_copy(update=kept | {"provenance": Provenance(evidence=evidence), "metadata": metadata})
