"""Asking for a list of criteria: what breaks the rules is asked for again alone, or dropped with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rubricate.chat.base import Message
from rubricate.errors import ConfigError, ParseError
from rubricate.failures import ASK_AGAIN, failure
from rubricate.prompts import load_prompt
from rubricate.prompts.fence import fence, make_nonce
from rubricate.rubrics.criterion import Criterion
from rubricate.rubrics.generators.asking import Answered, Asking, whole_part
from rubricate.rubrics.generators.base import GeneratorNote, NoteKind
from rubricate.rubrics.linting import alint
from rubricate.rubrics.linting.base import chosen_rules
from rubricate.rubrics.linting.polarity import as_error
from rubricate.rubrics.rubric import Rubric
from rubricate.types import Failure, FailureKind, Usage

__all__ = ["CHECKS", "COPIED", "UNASKED", "Drafting", "Item", "ListRules", "Refused", "Schema", "faults"]

CHECKS = ("C506", "D101", "D102", "P201", "P202", "R401", "R402", "R403")
"""Rules of the linter that a generated criterion must pass: no placeholders, no duplicates, no text that
contradicts its polarity, and nothing that its judge does not see."""

COPIED = "Q703"
"""The linter's rule against long pieces of the reference answer."""

UNASKED = "Q701"
"""The linter's rule against a length, format or language that the prompt does not ask for."""

Schema = Callable[[int, int | None], Mapping[str, object]]
"""The JSON schema of an answer with at least and at most so many criteria."""

ON_BAD = ("mend", "drop")

_CUT = frozenset({FailureKind.LENGTH, FailureKind.INCOMPLETE})

_AVOIDS = re.compile(
    r"\W*(?:the (?:response|answer)\s+)?(?:avoids?|refrains? from|(?:should|must) (?:not|avoid))\b", re.I
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A criterion that a model proposed and that cannot be used.

    Attributes:
        text: what the model wrote.
        reason: why it is refused; the model is told.
        criterion: the criterion, where only a rule of the linter is against it.
        code: that rule.
    """

    text: str
    reason: str
    criterion: Criterion | None = None
    code: str = ""


Item = Criterion | Refused
"""What is read of one element of an answer. Ids are given at the end."""


@dataclass(frozen=True, slots=True)
class ListRules:
    """What a list of criteria must keep to.

    Attributes:
        least, most: numbers of criteria; None for no upper limit.
        checks: rules of the linter, as in `lint(select=...)`; none for no check.
        whole: what is wrong with a list of criteria as a whole, "" for nothing.
        on_bad: `mend` asks again for the criteria that were refused, and for no others; `drop` leaves them out
            where enough are left. What still cannot be used after all attempts is dropped in both cases, and with
            fewer than `least` left there is no rubric.
    """

    least: int = 1
    most: int | None = None
    checks: tuple[str, ...] = CHECKS
    whole: Callable[[Sequence[Criterion]], str] | None = None
    on_bad: Literal["mend", "drop"] = "mend"

    def __post_init__(self) -> None:
        if self.least < 1 or (self.most is not None and self.most < self.least):
            raise ConfigError(f"{self.least} to {self.most} criteria cannot be", hint="use 1 <= least <= most")
        if self.on_bad not in ON_BAD:
            raise ConfigError(f"on_bad is {self.on_bad!r}", hint=f"use {' or '.join(ON_BAD)}")
        chosen_rules(self.checks, ())  # an unknown rule is an error before anything is asked

    def identity(self) -> dict[str, object]:
        """JSON-ready content, for fingerprints."""
        return {
            "least": self.least,
            "most": self.most,
            "checks": list(self.checks),
            "whole": "" if self.whole is None else f"{self.whole.__module__}.{self.whole.__qualname__}",
            "on_bad": self.on_bad,
        }

    def fault(self, criteria: Sequence[Criterion]) -> str:
        """What is wrong with the list as a whole, "" for nothing."""
        return self.whole(criteria) if self.whole is not None else ""


async def faults(
    criteria: Sequence[Criterion], checks: Sequence[str], reference: str = "", task: str = ""
) -> dict[int, Refused]:
    """Which criteria break a rule of the linter, by place. Of two that are alike it is the later one.

    The rules see neither prompt nor reference answer, since judges may not see the latter either; only `UNASKED`
    sees both, and `COPIED` the reference.
    """
    if not criteria or not checks:
        return {}
    named = tuple(criterion.model_copy(update={"id": f"#{place}"}) for place, criterion in enumerate(criteria))
    found = await alint(Rubric(criteria=named), select=checks, ignore=(COPIED, UNASKED))
    seeing = [code for code, text in ((COPIED, reference), (UNASKED, task)) if text and code in checks]
    if seeing:
        known = Rubric(criteria=named, metadata={"reference": reference})
        found += await alint(known, select=seeing, prompts=task or None)
    refused: dict[int, Refused] = {}
    for finding in found:
        places = [int(name[1:]) for name in finding.criterion_ids]
        if not places:
            continue
        place = max(places) if finding.code.startswith("D") else places[0]
        reason = finding.message
        for other in places:  # the model knows no ids
            reason = reason.replace(f"'#{other}'", "another criterion")
        refused.setdefault(place, Refused(criteria[place].text, reason, criteria[place], finding.code))
    return refused


@dataclass(slots=True)
class _State:
    """What has been accepted and refused so far."""

    kept: list[Criterion] = field(default_factory=list[Criterion])
    refused: list[Refused] = field(default_factory=list[Refused])
    spare: list[Criterion] = field(default_factory=list[Criterion])
    cut: bool = False
    wanted: int = 0
    usage: Usage = Usage()
    notes: list[GeneratorNote] = field(default_factory=list[GeneratorNote])

    def start_over(self) -> None:
        """Ask for the whole list again, and keep this one in case nothing better comes."""
        self.spare, self.cut, self.kept, self.refused, self.wanted = self.kept, False, [], [], 0


class Drafting:
    """Asks for criteria until a list keeps to its rules, or the attempts are used up.

    Args:
        asking: model and options.
        rules: what the list must keep to.
        complain: tell the model what was wrong. False asks again in the same words, for models that were trained
            to answer one prompt.
    """

    def __init__(self, asking: Asking, rules: ListRules, *, complain: bool = True) -> None:
        self.asking = asking
        self.rules = rules
        self.complain = complain

    async def draft(
        self,
        messages: Sequence[Message],
        read: Callable[[str], Sequence[Item]],
        *,
        schema: Schema | None = None,
        reference: str = "",
        task: str = "",
        sample: int = 0,
    ) -> Answered[tuple[Criterion, ...]]:
        """The criteria, or why there are none, with what was asked again and dropped.

        Args:
            messages: the question; what to do otherwise is added to the last of them when it is asked again.
            read: what an answer's text holds; raises ParseError where it cannot be read at all.
            schema: of an answer.
            reference, task: the reference answer for the rule `COPIED`, and the prompt for `UNASKED`.
            sample: number of the question among several in the same words.
        """
        state, why = _State(), None
        for attempt in range(self.asking.options.max_attempts):
            if why is not None:
                state.notes += _reasked(state, why)
            items, why, text, cost = await self.asking.once(
                lambda complaint: self._messages(messages, state, complaint),
                read,
                None if schema is None else self._schema(schema, state.wanted),
                attempt,
                why,
                sample,
            )
            state.usage += cost
            if items is not None:
                await self._take(state, items, reference, task)
                why = self._unfinished(state)
            elif why is not None and why.kind in _CUT and not state.kept:
                await self._salvage(state, text, read, reference, task)
            if why is None or why.kind not in ASK_AGAIN:
                break
        return self._settled(state, why)

    def _schema(self, schema: Schema, wanted: int) -> Mapping[str, object]:
        return schema(wanted, wanted) if wanted else schema(self.rules.least, self.rules.most)

    def _messages(self, messages: Sequence[Message], state: _State, complaint: str) -> Sequence[Message]:
        if not complaint or not self.complain:
            return messages
        kept, refused = ([_listed(part) for part in parts] for parts in (state.kept, state.refused))
        nonce = make_nonce(self.asking.options.run_key, messages[-1].content, *kept, *refused)
        values: dict[str, object] = {
            "wanted": state.wanted,
            "complaint": complaint.rstrip("."),
            "kept": _fenced("accepted", kept, nonce),
            "refused": _fenced("refused", refused, nonce),
            "reasons": [one.reason for one in state.refused],
        }
        more = load_prompt("generate_again").render("item", values)
        return [*messages[:-1], Message(messages[-1].role, messages[-1].content.rstrip() + more.rstrip())]

    async def _take(self, state: _State, items: Sequence[Item], reference: str, task: str) -> None:
        good = [item for item in items if isinstance(item, Criterion)]
        bad = [item for item in items if isinstance(item, Refused)]
        if not self.complain or (len(items) > state.wanted and len(good) >= self.rules.least):
            state.kept = []  # the model wrote the whole list again: it was not told what to mend, or paid no heed
        merged = [*state.kept, *good]
        broken = await faults(merged, self.rules.checks, reference, task)
        state.kept = [one for place, one in enumerate(merged) if place not in broken]
        state.refused = [*bad, *(broken[place] for place in sorted(broken))]

    async def _salvage(
        self, state: _State, text: str, read: Callable[[str], Sequence[Item]], reference: str, task: str
    ) -> None:
        """Lay aside what a cut answer holds whole, in case that no later answer is better."""
        try:
            items = read(whole_part(text))
        except ParseError:
            return
        found = [item for item in items if isinstance(item, Criterion)]
        broken = await faults(found, self.rules.checks, reference, task)
        good = [one for place, one in enumerate(found) if place not in broken]
        if len(good) > len(state.spare):
            state.spare, state.cut = good, True

    def _unfinished(self, state: _State) -> Failure | None:
        """Why to ask again, None where the list is as it should be. Sets what to ask for."""
        rules, count = self.rules, len(state.kept)
        room = None if rules.most is None else rules.most - count
        if room is not None and room < 0:
            state.start_over()
            return _broken(
                f"there are {count} criteria, at most {rules.most} are allowed", FailureKind.OUT_OF_RANGE
            )
        missing = max(rules.least - count, 0)
        wanted = max(missing, len(state.refused) if rules.on_bad == "mend" else 0)
        state.wanted = wanted if room is None else min(wanted, room)
        if state.wanted:
            several = f"{count} of {count + len(state.refused)} criteria can be used"
            return _broken(f"{several}, and {rules.least} are needed" if missing else several)
        fault = rules.fault(state.kept)
        if fault:
            state.start_over()
            return _broken(fault, FailureKind.OUT_OF_RANGE)
        return None

    def _settled(self, state: _State, why: Failure | None) -> Answered[tuple[Criterion, ...]]:
        """The list after the last attempt: what cannot be used is dropped, and too few are a failure."""
        _rescue(state)
        enough = len(state.kept) >= self.rules.least
        criteria = state.kept if enough else state.spare
        if not enough and state.cut:
            state.notes.append(GeneratorNote(NoteKind.DROPPED, "all answers were cut; the end of one is left out"))
        criteria = _trimmed(criteria, self.rules.most, state.notes)
        state.notes += [GeneratorNote(NoteKind.DROPPED, one.reason, one.text) for one in state.refused]
        fault = self.rules.fault(criteria) if criteria else ""
        if len(criteria) >= self.rules.least and not fault:
            return Answered(tuple(criteria), None, "", state.usage, tuple(state.notes))
        if why is None or (fault and why.kind in ASK_AGAIN):
            few = f"{len(criteria)} criteria can be used, {self.rules.least} are needed"
            why = _broken(fault, FailureKind.OUT_OF_RANGE) if fault else _broken(few)
        return Answered(None, why, "", state.usage, tuple(state.notes))


def _broken(message: str, kind: FailureKind = FailureKind.INCOMPLETE) -> Failure:
    return failure(kind, message, retryable=True)


def _reasked(state: _State, why: Failure) -> list[GeneratorNote]:
    if state.wanted and state.refused:
        return [GeneratorNote(NoteKind.REASKED, one.reason, one.text) for one in state.refused]
    return [GeneratorNote(NoteKind.REASKED, why.message)]


def _listed(part: Criterion | Refused) -> str:
    return " ".join(part.text.split())


def _fenced(label: str, texts: Sequence[str], nonce: str) -> str:
    lines = [f"{number}. {text}" for number, text in enumerate(texts, start=1)]
    return fence(label, "\n".join(lines), nonce) if lines else ""


def _rescue(state: _State) -> None:
    """Pitfalls that are still worded as the avoidance of an error are worded as the error.

    Only where the words leave no doubt: "Never mentions the cost" may well be the error itself, and a text that is
    turned round wrongly would punish what is good.
    """
    for one in list(state.refused):
        if one.code != "P201" or one.criterion is None or _AVOIDS.match(one.text) is None:
            continue
        text = as_error(one.criterion)
        changes = {"text": text, "metadata": one.criterion.metadata | {"reworded_from": one.text}}
        state.kept.append(one.criterion.model_copy(update=changes))
        state.refused.remove(one)
        state.notes.append(GeneratorNote(NoteKind.CHANGED, f"worded as the error: {text}", one.text))


def _trimmed(criteria: list[Criterion], most: int | None, notes: list[GeneratorNote]) -> list[Criterion]:
    """At most so many, those with the least weight dropped, of equal ones the later."""
    if most is None or len(criteria) <= most:
        return criteria
    order = sorted(range(len(criteria)), key=lambda place: (-criteria[place].weight, place))
    for place in sorted(order[most:]):
        notes.append(GeneratorNote(NoteKind.DROPPED, f"more than {most} criteria", criteria[place].text))
    return [criteria[place] for place in sorted(order[:most])]
