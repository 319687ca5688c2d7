"""Several models' or experts' rubrics as one: duplicates merged, conflicts told, every criterion's origins kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Unpack

from rubricate.chat.base import ChatModel
from rubricate.embed import Embedder, connect_embedder, similar_pairs
from rubricate.errors import ConfigError
from rubricate.failures import failure
from rubricate.prompts import Prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import Criterion, Provenance
from rubricate.rubrics.filters.coding_rate import EmbeddingFunction, embedded
from rubricate.rubrics.generators.asking import Answered
from rubricate.rubrics.generators.base import Generated, GeneratorNote, Need, NoteKind
from rubricate.rubrics.generators.merge_pairs import (
    Decision,
    Member,
    Relation,
    conflict_of,
    groups_of,
    read_decisions,
    report,
    schema,
)
from rubricate.rubrics.generators.model import GENERATED, Asks, ModelGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis_asking import again
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Usage

__all__ = ["MergeGenerator"]

_SERIOUS = ("contradiction", "polarity")
"""Conflicts that a rubric should not have: whatever a response does, one of the two is against it."""


@dataclass(slots=True)
class _Work:
    """One merge: the members, what was decided, and what it cost."""

    members: list[Member]
    rubrics: int
    decisions: list[Decision] = field(default_factory=list[Decision])
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])
    failed: Failure | None = None


class MergeGenerator(ModelGenerator):
    """One rubric out of several for the same prompt: those of different models, or of experts.

    Criteria whose texts are alike (by embedding) are candidates, and a model decides each pair: the same, one wider
    than the other, opposed, or different. Embeddings put the opposite as close as the same, which is why the
    opposed ones are found, too, and why none is merged by its cosine alone. Only criteria that say the same, with
    the same polarity, condition and scale, become one: in the words that the model prefers, with the mean of their
    weights. Everything else is kept as it is. This is as careful as RubricHub's conservative merge (2601.08430)
    wants it; thresholds and rules are ours.

    Conflicts are told, never solved by stealth: in `extra["conflicts"]`, in the rubric's metadata under `merge`,
    and as the tag `conflict` on the criteria. Kinds: `contradiction` (no response can do well by both), `polarity`
    (the same thing rewarded and penalised), `weight` (merged, and weights or vetoes differ), `form` (the same
    under another condition or scale; both kept), `inconsistent` (same as two criteria that are not the same).
    `extra` also has `overlaps` (one wider than the other; both kept) and `undecided` (no answer; both kept).

    Contradictions whose texts are less alike than `cosine` are not found.

    Args:
        model: the judge that decides pairs.
        embedder: an embedder, its name, or any function from texts to vectors.
        cosine: from which two texts are candidates. .36 is where wordllama's paraphrases begin; another embedder
            has another scale.
        normalise: bring each rubric's weights to a largest one of 1 (`max`), or take them as they are (`none`).
        tolerance: difference of weights, on that scale, from which a merged pair is a conflict.
        on_conflict: of contradictions and opposite polarities: `keep` both, `drop` both, or `fail`.
        min_support: rubrics in which a criterion must be found; others are filtered out.
        most_pairs: candidates that are decided at most, the closest first; the rest is undecided.
        batch: pairs in one question.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "merge"
    needs = frozenset({Need.RUBRICS})

    def __init__(
        self,
        model: ChatModel,
        embedder: Embedder | EmbeddingFunction | str = "wordllama",
        *,
        cosine: float = 0.36,
        normalise: Literal["max", "none"] = "max",
        tolerance: float = 0.3,
        on_conflict: Literal["keep", "drop", "fail"] = "keep",
        min_support: int = 1,
        most_pairs: int = 200,
        batch: int = 10,
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        super().__init__(model, prompt or "generate_merge", **options)
        if normalise not in ("max", "none") or on_conflict not in ("keep", "drop", "fail"):
            hint = "normalise: max or none; on_conflict: keep, drop or fail"
            raise ConfigError(f"normalise is {normalise!r} and on_conflict {on_conflict!r}", hint=hint)
        if not -1.0 <= cosine <= 1.0 or not tolerance >= 0.0 or min(min_support, most_pairs, batch) < 1:
            raise ConfigError(
                "cosine is in [-1, 1], tolerance 0 or more, min_support, most_pairs and batch 1 or more"
            )
        self.embedder = connect_embedder(embedder) if isinstance(embedder, str) else embedder
        self.cosine, self.tolerance = cosine, tolerance
        self.normalise, self.on_conflict = normalise, on_conflict
        self.min_support, self.most_pairs, self.batch = min_support, most_pairs, batch

    def identity(self) -> dict[str, object]:
        """Adds the embedder and the options of this method."""
        names = ("cosine", "normalise", "tolerance", "on_conflict", "min_support", "most_pairs", "batch")
        own: dict[str, object] = {name: getattr(self, name) for name in names}
        one = self.embedder
        shown = one.fingerprint if isinstance(one, Embedder) else getattr(one, "__qualname__", type(one).__name__)
        return super().identity() | own | {"embedder": shown}

    def check(self, source: Source) -> None:
        """Adds: flat rubrics."""
        super().check(source)
        if any(rubric.groups for rubric in source.rubrics):
            raise ConfigError(f"{self.name} needs flat rubrics", hint="flatten them first")

    async def write(self, source: Source) -> Generated:
        """Find candidates, have them decided, and merge."""
        work = _Work(self._members(source.rubrics), len(source.rubrics))
        pairs = await self._candidates(work)
        await self._decide(work, source, pairs)
        if work.failed is not None:
            return Generated.failed(work.failed, usage=work.usage, notes=work.notes)
        return self._merged(work, source)

    def _members(self, rubrics: Sequence[Rubric]) -> list[Member]:
        labels = [_label(rubric, place) for place, rubric in enumerate(rubrics)]
        members: list[Member] = []
        for place, rubric in enumerate(rubrics):
            label = labels[place] if labels.count(labels[place]) == 1 else f"{labels[place]}#{place + 1}"
            top = max(one.weight for one in rubric.criteria)
            scale = top if self.normalise == "max" and top > 0 else 1.0
            members += [Member(one, place, f"{label}/{one.id}", one.weight / scale) for one in rubric.criteria]
        return members

    async def _candidates(self, work: _Work) -> list[Decision]:
        """Pairs of members whose texts are alike, the closest first."""
        if len(work.members) < 2:
            return []
        rows = await embedded([one.text for one in work.members], self.embedder)
        return [Decision(*pair) for pair in similar_pairs(rows, self.cosine)]

    async def _decide(self, work: _Work, source: Source, pairs: Sequence[Decision]) -> None:
        asked = pairs[: self.most_pairs]
        batches = [asked[at : at + self.batch] for at in range(0, len(asked), self.batch)]
        for batch, answer in zip(
            batches, await asyncio.gather(*(self._ask(work, source, one) for one in batches)), strict=True
        ):
            work.usage += answer.usage
            work.notes += answer.notes
            if answer.value is not None:
                work.decisions += [
                    replace(pair, relation=relation, keep=pair.second if second else pair.first)
                    for pair, (relation, second) in zip(batch, answer.value, strict=True)
                ]
            elif answer.failure is not None and answer.failure.cause is FailureCause.INFRASTRUCTURE:
                work.failed = work.failed or answer.failure
            else:
                work.decisions += batch
        work.decisions += pairs[self.most_pairs :]

    async def _ask(
        self, work: _Work, source: Source, pairs: Sequence[Decision]
    ) -> Answered[list[tuple[Relation, bool]]]:
        texts = [(work.members[one.first].text, work.members[one.second].text) for one in pairs]
        nonce = make_nonce(self.asking.options.run_key, source.task, *(text for pair in texts for text in pair))
        values: dict[str, object] = {
            "task": fence("task", source.task, nonce),
            "pairs": [f"{fence('A', a, nonce)}\n{fence('B', b, nonce)}" for a, b in texts],
        }
        return await self.asking.ask(
            again(self.messages(values)),
            lambda text: read_decisions(text, len(pairs)),
            schema=schema(len(pairs)),
        )

    def _merged(self, work: _Work, source: Source) -> Generated:
        groups, refused = groups_of(work.members, work.decisions)
        conflicts: list[dict[str, object]] = []
        serious: set[int] = set()
        for one in work.decisions:
            kind = conflict_of(one, work.members, self.tolerance)
            if kind:
                conflicts.append(report(kind, one, work.members))
            if kind in _SERIOUS:
                serious |= {one.first, one.second}
        conflicts += [report("inconsistent", one, work.members) for one in refused]
        overlaps = [one for one in work.decisions if one.relation in ("a_wider", "b_wider")]
        extra: dict[str, object] = {
            "conflicts": conflicts,
            "overlaps": [report(str(one.relation), one, work.members) for one in overlaps],
            "undecided": [report("undecided", one, work.members) for one in work.decisions if one.relation is None],
        }
        if serious and self.on_conflict == "fail":
            why = failure(FailureKind.AMBIGUOUS, f"the rubrics contradict each other in {len(serious)} criteria")
            return replace(Generated.failed(why, usage=work.usage, notes=work.notes), extra=extra)
        criteria = [self._one(work, group, serious) for group in groups if self._stays(work, group, serious)]
        if not criteria:
            why = failure(FailureKind.INCOMPLETE, "no criterion is left")
            return replace(Generated.failed(why, usage=work.usage, notes=work.notes), extra=extra)
        rubric = self.finish(criteria, source, scope=source.rubrics[0].scope)
        rubric = rubric.model_copy(update={"metadata": rubric.metadata | {"merge": extra}})
        return Generated(rubric, None, work.usage, tuple(work.notes), extra=extra)

    def _stays(self, work: _Work, group: Sequence[int], serious: set[int]) -> bool:
        """Whether a group becomes a criterion; notes why not."""
        reason = ""
        support = len({work.members[place].rubric for place in group})
        if support < self.min_support:
            reason = f"{support} of {work.rubrics} rubrics have it, {self.min_support} are needed"
        elif self.on_conflict == "drop" and serious.intersection(group):
            reason = "it is in conflict with another criterion"
        if reason:
            text = work.members[group[0]].criterion.text
            work.notes.append(GeneratorNote(NoteKind.FILTERED, reason, text))
        return not reason

    def _one(self, work: _Work, group: Sequence[int], serious: set[int]) -> Criterion:
        """The criterion of a group, with where its parts are from."""
        members = [work.members[place] for place in group]
        votes = [
            one.keep for one in work.decisions if one.relation == "same" and {one.first, one.second} <= {*group}
        ]
        chosen = max(group, key=lambda place: (votes.count(place), -place))
        base = work.members[chosen].criterion
        tags = dict.fromkeys(tag for one in members for tag in one.criterion.tags)
        if serious.intersection(group):
            tags["conflict"] = None
        for one in members:
            if one.criterion is not base and one.criterion.text != base.text:
                said = f"merged into {work.members[chosen].name}: {base.text}"
                work.notes.append(GeneratorNote(NoteKind.CHANGED, said, one.criterion.text))
        origins = [_origin(one) for one in members]
        support = len({one.rubric for one in members})
        more: Mapping[str, object] = {"merged_from": origins, "support": [support, work.rubrics]}
        changes: dict[str, object] = {
            "weight": sum(one.weight for one in members) / len(members),
            "veto": any(one.criterion.veto for one in members),
            "tags": tuple(tags),
            "provenance": Provenance(evidence=tuple(f"merged:{one.name}" for one in members)),
            "metadata": {"title": base.id} | base.metadata | more,
        }
        return base.model_copy(update=changes)

    async def aclose(self) -> None:
        """Close the model and the embedder."""
        await super().aclose()
        if isinstance(self.embedder, Embedder):
            await self.embedder.aclose()


def _label(rubric: Rubric, place: int) -> str:
    """A name for a rubric: the model that wrote it, else its generator, its id, or its place."""
    made = rubric.metadata.get(GENERATED)
    origin = next((one.provenance for one in rubric.criteria if one.provenance is not None), None)
    names = [] if origin is None else [origin.model, origin.generator]
    return next((name for name in names if name and made is not None), "") or rubric.id or f"rubric-{place + 1}"


def _origin(member: Member) -> dict[str, object]:
    """Where a merged criterion's part is from, JSON-ready."""
    provenance = member.criterion.provenance
    made = {} if provenance is None else {"provenance": provenance.model_dump(mode="json")}
    return member.described() | {"rubric": member.rubric} | made
