"""Rubrics from a written policy: every criterion names and quotes its clause; the uncovered are told."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Unpack

from rubricate.bridge import run_sync
from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError, ParseError
from rubricate.failures import failure
from rubricate.narrow import as_array, as_object
from rubricate.prompts import Prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import Criterion, Importance, Polarity, Provenance
from rubricate.rubrics.generators.asking import Answered, read_json
from rubricate.rubrics.generators.base import DatasetGenerator, Generated, GeneratorNote, NoteKind
from rubricate.rubrics.generators.drafts import CHECKS, Item, Refused, faults
from rubricate.rubrics.generators.model import Asks, ModelGenerator
from rubricate.rubrics.generators.policy_text import Clause, Policy, read_policy
from rubricate.rubrics.generators.search_quotes import find_quote
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis_asking import again, text_field
from rubricate.rubrics.rubric import Scope
from rubricate.types import Failure, FailureCause, FailureKind, Usage

__all__ = ["CATEGORIES", "PolicyGenerator"]

CATEGORIES: Mapping[str, tuple[Polarity, Importance, float]] = {
    "required": (Polarity.REWARD, Importance.ESSENTIAL, 1.0),
    "recommended": (Polarity.REWARD, Importance.OPTIONAL, 0.5),
    "forbidden": (Polarity.PENALTY, Importance.PITFALL, 1.0),
}
"""Polarity, importance and weight of what a clause demands, prefers, or rules out (ours)."""

_ANY = Source("any")
_POINTS = re.compile(r"\b(?:the|this|that) clause\b|\bclause \W?\d", re.I)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one answer holds."""

    items: list[tuple[str, Item]]
    aside: dict[str, str]


@dataclass(slots=True)
class _Book:
    """What has become of the clauses so far."""

    wanted: list[Clause]
    kept: list[Criterion] = field(default_factory=list[Criterion])
    aside: dict[str, str] = field(default_factory=dict[str, str])
    repeated: set[str] = field(default_factory=set[str])
    complaints: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def uncovered(self) -> list[Clause]:
        """The clauses that have no criterion and were not set aside."""
        done = {str(one.metadata["clause"]) for one in self.kept} | set(self.aside) | self.repeated
        return [clause for clause in self.wanted if clause.id not in done]


class PolicyGenerator(ModelGenerator, DatasetGenerator):
    """Criteria out of a written policy: a constitution, a specification, the propositions of Rule-Based Rewards.

    `generate_from` (with or without prompts as examples of use) makes one rubric of the whole policy, of scope
    dataset: a constitution as a reward (Constitutional AI, 2212.08073). `generate` makes the criteria for one
    prompt, from the clauses that matter for it, as deliberative alignment (2412.16339) gives a judge the part of
    the specification that the prompt calls for.

    Every criterion names its clause, and quotes it: a quotation that does not stand in the clause, letter by letter
    but for blanks and the shapes of quotation marks, is refused. Clauses without a usable criterion are asked about
    again, with the reasons, `max_attempts` times in all; `extra["uncovered"]` then lists those that have none, and
    `extra["set_aside"]` those that the model says no response could follow or break. Both are in the rubric's
    metadata, too: a policy is covered only where somebody has looked at both lists.

    Args:
        model: writes the criteria.
        policy: the policy, or the path of its file; see `read_policy`.
        batch: clauses in one question.
        most: criteria of one clause at most.
        quote_words: words that a quotation has at least.
        veto: what the policy forbids vetoes the reward.
        examples: prompts that `generate_from` shows at most.
        checks: rules of the linter that each criterion must pass.
        prompt: a template of one's own.
        options: how the model is asked; see `AskOptions`.
    """

    name = "policy"

    def __init__(
        self,
        model: ChatModel,
        policy: Policy | str | os.PathLike[str],
        *,
        batch: int = 12,
        most: int = 4,
        quote_words: int = 3,
        veto: bool = False,
        examples: int = 3,
        checks: Sequence[str] = CHECKS,
        prompt: Prompt | None = None,
        **options: Unpack[Asks],
    ) -> None:
        options.setdefault("max_tokens", 4096)
        super().__init__(model, prompt or "generate_policy", **options)
        if min(batch, most, quote_words) < 1 or examples < 0:
            raise ConfigError("batch, most and quote_words are 1 or more, examples 0 or more")
        self.policy = policy if isinstance(policy, Policy) else read_policy(policy)
        self.batch = batch
        self.most = most
        self.quote_words = quote_words
        self.veto = veto
        self.examples = examples
        self.checks = tuple(checks)

    def identity(self) -> dict[str, object]:
        """Adds the policy and the options of this method."""
        names = ("batch", "most", "quote_words", "veto", "examples")
        own: dict[str, object] = {name: getattr(self, name) for name in names}
        return super().identity() | own | {"policy": self.policy.fingerprint, "checks": list(self.checks)}

    async def generate_from(self, sources: Sequence[Source] = ()) -> Generated:
        """One rubric of the whole policy; the sources' prompts, where there are any, show what it is applied to."""
        return await super().generate_from(list(sources) or [_ANY])

    def generate_from_sync(self, sources: Sequence[Source] = ()) -> Generated:
        """`generate_from` for sync callers."""
        return run_sync(self.generate_from(sources))

    async def write_from(self, sources: Sequence[Source]) -> Generated:
        """Criteria for every clause, and again for those that have none."""
        shown = [one.task for one in sources if one is not _ANY][: self.examples]
        book = _Book(list(self.policy.clauses))
        for attempt in range(self.asking.options.max_attempts):
            if not book.uncovered or not await self._round(book, book.uncovered, "", shown, attempt):
                break
        made = self._settled(book, Source("any", id=self.policy.name), Scope.DATASET)
        left: list[dict[str, object]] = [
            {"clause": one.id, "line": one.line, "text": one.text} for one in book.uncovered
        ]
        aside = [{"clause": name, "why": why} for name, why in book.aside.items()]
        report: dict[str, object] = {"clauses": len(book.wanted), "uncovered": left, "set_aside": aside}
        return _with_report(made, report)

    async def write(self, source: Source) -> Generated:
        """Criteria for one prompt, from the clauses that matter for it."""
        book = _Book(list(self.policy.clauses))
        await self._round(book, book.wanted, source.task, [], 0)
        made = self._settled(book, source, Scope.INSTANCE)
        used = list(dict.fromkeys(str(one.metadata["clause"]) for one in book.kept))
        return _with_report(made, {"clauses": len(book.wanted), "used": used})

    async def _round(
        self, book: _Book, clauses: Sequence[Clause], task: str, examples: Sequence[str], attempt: int
    ) -> bool:
        """Ask about these clauses, batch by batch at once; whether it is worth while to ask again."""
        if attempt:
            for clause in clauses:
                why = "; ".join(book.complaints.get(clause.id, ())) or "it has no criterion and was not set aside"
                book.notes.append(GeneratorNote(NoteKind.REASKED, f"clause {clause.id}: {why}"))
        batches = [clauses[at : at + self.batch] for at in range(0, len(clauses), self.batch)]
        answers = await asyncio.gather(*(self._ask(book, one, task, examples, attempt) for one in batches))
        book.complaints = {}
        away = False
        for answer in answers:
            book.usage += answer.usage
            book.notes += answer.notes
            if answer.failure is not None:
                book.failures.append(answer.failure)
                away = away or answer.failure.cause is FailureCause.INFRASTRUCTURE
        items = [item for answer in answers if answer.value is not None for item in answer.value.items]
        for answer in answers:
            book.aside |= {} if answer.value is None else answer.value.aside
        await self._take(book, items)
        return not away

    async def _ask(
        self, book: _Book, clauses: Sequence[Clause], task: str, examples: Sequence[str], attempt: int
    ) -> Answered[_Answer]:
        said = [f"{name}: {why}" for one in clauses for name in [one.id] for why in book.complaints.get(name, ())]
        shown = "\n\n".join(_shown(one) for one in clauses)
        nonce = make_nonce(self.asking.options.run_key, task, shown, *examples, *said)
        values: dict[str, object] = {
            "task": fence("task", task, nonce) if task else "",
            "examples": [fence(f"example_{at}", one, nonce) for at, one in enumerate(examples, start=1)],
            "clauses": fence("clauses", shown, nonce),
            "complaints": fence("refused", "\n".join(said), nonce) if said else "",
            "quote_words": self.quote_words,
            "most": self.most,
        }
        known = {one.id for one in clauses}
        return await self.asking.ask(
            again(self.messages(values)), lambda text: self._read(text, known, task), schema=_SCHEMA, sample=attempt
        )

    def _read(self, text: str, known: set[str], task: str) -> _Answer:
        """The criteria of an answer, each with the clause it is about, and the clauses that are set aside."""
        value = read_json(text)
        fields = as_object(value) or {"criteria": value}
        listed, aside = as_array(fields.get("criteria")), as_array(fields.get("set_aside"))
        if listed is None:
            raise ParseError("the answer has no list 'criteria'", reply=text)
        if not listed and not aside and not task:
            raise ParseError("no clause has a criterion, and none is set aside", kind="incomplete", reply=text)
        items = [self._item(one, known) for one in listed]
        reasons: dict[str, str] = {}
        for one in aside or ():
            entry = as_object(one) or {}
            clause = self.policy.get(text_field(entry, "clause", "id"))
            if clause is not None and clause.id in known:
                reasons[clause.id] = text_field(entry, "why", "reason") or "no reason given"
        used = {name for name, item in items if isinstance(item, Criterion)}
        return _Answer(items, {name: why for name, why in reasons.items() if name not in used})

    def _item(self, value: object, known: set[str]) -> tuple[str, Item]:
        """One element as a criterion, or why it is none, with its clause's id ("" where it names none)."""
        fields = as_object(value) or {}
        said = text_field(fields, "criterion", "description", "text")
        name, quote = text_field(fields, "clause", "clause_id"), text_field(fields, "quote")
        clause = self.policy.get(name)
        if clause is None or clause.id not in known:
            return "", Refused(said or str(value)[:200], f"it names no clause that it was asked about ({name!r})")
        if not said:
            return clause.id, Refused(str(value)[:200], "it has no text")
        if _POINTS.search(said):
            return clause.id, Refused(said, "it points to a clause, which its graders do not know")
        category = CATEGORIES.get(text_field(fields, "category").casefold())
        if category is None:
            return clause.id, Refused(said, f"its category must be one of {', '.join(CATEGORIES)}")
        span = find_quote(quote, clause.text, least_words=self.quote_words)
        if span is None and (not clause.lead or find_quote(quote, clause.lead, least_words=1) is None):
            short = "is too short or " if quote and len(quote.split()) < self.quote_words else ""
            return clause.id, Refused(
                said, f"its quotation {short}does not stand in clause {clause.id}: {quote[:80]!r}"
            )
        polarity, importance, weight = category
        title = text_field(fields, "title")
        metadata: dict[str, object] = {"title": title} if title else {}
        metadata |= {"clause": clause.id, "quote": span.text if span is not None else quote}
        metadata |= {"policy": self.policy.name} if self.policy.name else {}
        metadata |= {} if clause.line is None else {"line": clause.line}
        return clause.id, Criterion(
            id="new",
            text=said,
            weight=weight,
            polarity=polarity,
            importance=importance,
            veto=self.veto and polarity is Polarity.PENALTY,
            condition=text_field(fields, "condition") or None,
            provenance=Provenance(evidence=(f"clause:{clause.id}",)),
            metadata=metadata,
        )

    async def _take(self, book: _Book, items: Sequence[tuple[str, Item]]) -> None:
        """Keep what passes the linter's rules, and note the rest against its clause."""
        good = [one for _, one in items if isinstance(one, Criterion)]
        refused = [(name, one) for name, one in items if isinstance(one, Refused)]
        before = len(book.kept)
        merged = [*book.kept, *good]
        broken = await faults(merged, self.checks)
        refused += [(str(merged[at].metadata["clause"]), one) for at, one in sorted(broken.items()) if at >= before]
        book.kept += [one for at, one in enumerate(merged) if at >= before and at not in broken]
        for name in dict.fromkeys(str(one.metadata["clause"]) for one in good):
            of_clause = [one for one in book.kept if one.metadata["clause"] == name]
            for one in of_clause[self.most :]:
                book.kept.remove(one)
                book.notes.append(GeneratorNote(NoteKind.DROPPED, f"clause {name} has {self.most}", one.text))
        for name, one in refused:
            book.notes.append(GeneratorNote(NoteKind.DROPPED, one.reason, one.text))
            book.complaints.setdefault(name, []).append(one.reason)
            if one.code.startswith("D") and name:
                book.repeated.add(name)  # another clause's criterion says the same

    def _settled(self, book: _Book, source: Source, scope: Scope) -> Generated:
        away = next((one for one in book.failures if one.cause is FailureCause.INFRASTRUCTURE), None)
        why = away
        if why is None and not book.kept:
            why = next(iter(book.failures), None) or failure(FailureKind.INCOMPLETE, "no clause has a criterion")
        if why is not None:
            return Generated.failed(why, usage=book.usage, notes=book.notes)
        rubric = self.finish(book.kept, source, scope=scope)
        return Generated(rubric, None, book.usage, tuple(book.notes))


def _with_report(made: Generated, report: dict[str, object]) -> Generated:
    if made.rubric is None:
        return Generated(None, made.failure, made.usage, made.notes, extra=report)
    rubric = made.rubric.model_copy(update={"metadata": made.rubric.metadata | {"policy": report}})
    return Generated(rubric, None, made.usage, made.notes, extra=report)


def _shown(clause: Clause) -> str:
    where = " > ".join(clause.heading)
    lead = f"{clause.lead} ... " if clause.lead else ""
    return f"[{clause.id}]{f' ({where})' if where else ''}\n{lead}{clause.text}"


_TEXT: Mapping[str, object] = {"type": "string"}


def _array(fields: Mapping[str, object]) -> dict[str, object]:
    entry = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "array", "items": entry}


_ITEM = dict.fromkeys(("clause", "quote", "title"), _TEXT) | {
    "category": {"type": "string", "enum": list(CATEGORIES)},
    "criterion": _TEXT,
    "condition": _TEXT,
}
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"criteria": _array(_ITEM), "set_aside": _array({"clause": _TEXT, "why": _TEXT})},
    "required": ["criteria", "set_aside"],
    "additionalProperties": False,
}
