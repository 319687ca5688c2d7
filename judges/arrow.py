"""RUBRIC-ARROW's judge: all criteria of a rubric in one call, p(true) and p(false) of each from its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError, RubricateError
from rubricate.judges.arrow_reply import Flag, read_flags
from rubricate.judges.base import ModelJudge, Shown, failure, failure_of, sound_tokens
from rubricate.judges.mass import shortfall
from rubricate.judges.parsing.agreed import agreed
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import BinaryScale, Criterion
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["ArrowJudge"]

_COMPLAINTS = {
    FailureKind.EMPTY: "it was empty",
    FailureKind.LENGTH: "it was too long; keep each explanation to one sentence",
    FailureKind.AMBIGUOUS: "it contradicted itself, or gave several objects",
    FailureKind.INCOMPLETE: "it left out a key, or its value was not true or false",
    FailureKind.UNPARSABLE: "it was not the JSON object that was asked for",
}
"""Failures that another call may mend, and what the model is told of them."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A criterion with its number in the rubric, from 1."""

    number: int
    criterion: Criterion

    @property
    def text(self) -> str:
        return self.criterion.text

    @property
    def condition(self) -> str | None:
        return self.criterion.condition

    @property
    def met(self) -> str:
        return f"criteria_met_{self.number}"

    @property
    def applies(self) -> str:
        return f"applies_{self.number}"

    @property
    def explanation(self) -> str:
        return f"explanation_{self.number}"

    @property
    def keys(self) -> list[str]:
        """All keys, in the order of the reply."""
        return [self.explanation, *([self.applies] if self.condition else []), self.met]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What all requests about a response begin with, and the texts in it that are not ours."""

    text: str
    quoted: tuple[str, ...]


_Round = tuple[dict[int, Verdict], dict[int, Failure], Usage]
"""What one call brought, by number: verdicts, why others are missing, and what it cost."""


class ArrowJudge(ModelJudge):
    """Asks for all criteria in one call and takes each verdict from the probabilities of its `true` and `false`.

    The reply is JSON with `explanation_i` and `criteria_met_i` for every i (RUBRIC-ARROW, 2605.29156). Of each
    verdict, `score` is P(met) = p(true) / (p(true) + p(false)); `probability` is p(true) plus half of what lies on
    neither, so that 2 * probability - 1 is the paper's p(true) - p(false) exactly: the presets `rubric_arrow_judge`
    and `rubric_arrow_policy` sum that. All spellings of the two words count, in one token or several; where their
    mass is small the verdict failed (`low_mass`), where the paper's code gives 0 in silence.

    What is missing, contradictory or unreadable is asked again, alone, on the same prefix, until `max_attempts`.
    Contradictory is a flag that another object of the reply, its own explanation, or the words behind the object
    speak against (`read_flags`); a quotation of the response does not.
    Criteria with a condition have an `applies_i` (ours); where P(applies) < 0.5 they do not apply. Only binary
    criteria can be asked this way; others are failed verdicts.

    Args:
        shown: what the judge sees and how; see `Shown`.
        max_outside: largest share of probability outside true and false, in [0, 1].
        top_logprobs: alternatives to ask for; servers allow 20 as a rule.
        text_verdicts: where the server gives no log-probabilities, take the words as they stand, which makes scores
            0 and 1 (the paper's +1 and -1) without a probability. Otherwise such verdicts failed (`no_logprobs`).
        max_attempts: calls that one criterion takes part in at most, the first included.
        max_tokens: tokens for a reply with one criterion; each further one adds `tokens_per_criterion`.
        temperature, seed: sampling parameters.
        sample: index of this judge among repeated ones, so that caches keep their answers apart.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        max_outside: float = 0.5,
        top_logprobs: int = 20,
        text_verdicts: bool = False,
        max_attempts: int = 3,
        max_tokens: int = 300,
        tokens_per_criterion: int = 120,
        temperature: float = 0.0,
        seed: int | None = None,
        sample: int = 0,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("arrow_judge"), **shown)
        if max_attempts < 1:
            raise ConfigError(f"max_attempts is {max_attempts}", hint="use 1 or more")
        self.max_outside = max_outside
        self.top_logprobs = top_logprobs
        self.text_verdicts = text_verdicts
        self.max_attempts = max_attempts
        self.max_tokens = max_tokens
        self.tokens_per_criterion = tokens_per_criterion
        self.temperature = temperature
        self.seed = seed
        self.sample = sample

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("max_outside", "top_logprobs", "text_verdicts", "max_attempts", "max_tokens")
        names += ("tokens_per_criterion", "temperature", "seed", "sample")
        return super().identity() | {name: getattr(self, name) for name in names}

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            material = self.material(rollout)
            shown = _Shown(self.prompt.render("shared", material.values()), material.quoted)
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        items = [
            _Item(number, criterion)
            for number, criterion in enumerate(criteria, start=1)
            if isinstance(criterion.scale, BinaryScale)
        ]
        verdicts, failures, usage = await self._ask(shown, items) if items else ({}, {}, Usage())
        again = [item for item in items if item.number in failures]
        for found, why, cost in await asyncio.gather(*(self._again(shown, i, failures[i.number]) for i in again)):
            verdicts |= found
            failures |= why
            usage += cost
        return Judgement(
            tuple(
                verdicts.get(number) or self._failed(criterion, failures.get(number))
                for number, criterion in enumerate(criteria, start=1)
            ),
            usage=usage,
        )

    async def _ask(
        self, shown: _Shown, items: Sequence[_Item], attempt: int = 0, why: Failure | None = None
    ) -> _Round:
        keys = [f'"{key}"' for item in items for key in item.keys]
        complaint = _COMPLAINTS[why.kind] if why is not None else ""
        block = self.prompt.render("item", {"criteria": items, "keys": keys, "complaint": complaint})
        tokens = self.max_tokens + self.tokens_per_criterion * (len(items) - 1)
        request = ChatRequest(
            self.messages(shown.text, block),
            max_tokens=tokens * 3 if why is not None and why.kind is FailureKind.LENGTH else tokens,
            temperature=self.temperature,
            seed=self.seed,
            top_logprobs=self.top_logprobs,
            sample=self.sample * self.max_attempts + attempt,
        )
        (reply,) = await self.model.complete_many([request])
        if isinstance(reply, ChatError):
            return {}, dict.fromkeys((item.number for item in items), failure_of(reply)), Usage()
        try:
            reply.require_text(self.model.name)
            read = self._read(reply, items, shown.quoted)
        except (AnswerError, ParseError) as error:
            read = dict.fromkeys((item.number for item in items), failure_of(error))
        found = {number: verdict for number, verdict in read.items() if isinstance(verdict, Verdict)}
        missing = {number: why for number, why in read.items() if isinstance(why, Failure)}
        return found, missing, reply.usage

    async def _again(self, shown: _Shown, item: _Item, why: Failure) -> _Round:
        """Ask for one criterion, alone, until it is answered, the attempts are used up, or asking is no use."""
        usage = Usage()
        for attempt in range(1, self.max_attempts):
            if why.kind not in _COMPLAINTS:
                break
            found, missing, cost = await self._ask(shown, [item], attempt, why)
            usage += cost
            if found:
                return found, {}, usage
            why = missing[item.number]
        return {}, {item.number: why}, usage

    def _read(
        self, reply: Completion, items: Sequence[_Item], quoted: Sequence[str]
    ) -> dict[int, Verdict | Failure]:
        if reply.logprobs:
            sound = sound_tokens(reply.logprobs, self.model.name)
            if isinstance(sound, Failure):
                return dict.fromkeys((item.number for item in items), sound)
        keys = [key for item in items for key in (item.met, item.applies)]
        agreed(lambda text: _values(replace(reply, text=text, logprobs=None), keys, quoted), reply.text, quoted)
        flags, texts = read_flags(reply, keys, quoted)
        return {item.number: self._verdict(item, flags, texts) for item in items}

    def _verdict(self, item: _Item, flags: Mapping[str, Flag], texts: Mapping[str, str]) -> Verdict | Failure:
        reason = texts.get(item.explanation, "")
        if item.condition:
            applies = self._probability(flags.get(item.applies), item.applies)
            if isinstance(applies, Failure):
                return applies
            if applies[0] < 0.5:
                return Verdict.not_applicable(item.criterion.id, judge=self.name, reason=reason)
        flag = flags.get(item.met)
        read = self._probability(flag, item.met)
        if flag is None or isinstance(read, Failure):
            return read if isinstance(read, Failure) else _missing(item.met)
        raw = "true" if flag.value else "false"
        return Verdict(item.criterion.id, read[0], probability=read[1], raw=raw, reason=reason, judge=self.name)

    def _probability(self, flag: Flag | None, key: str) -> tuple[float, float | None] | Failure:
        """P(true) among true and false, and p(true) plus half of the rest; or why there is none."""
        if flag is None:
            return _missing(key)
        if not flag.clear:
            said = f"the reply contradicts itself on {key!r}, or its tokens do not spell that as the answer has it"
            return failure(FailureKind.AMBIGUOUS, said)
        if flag.mass is None:
            if self.text_verdicts:
                return float(flag.value), None
            return failure(FailureKind.NO_LOGPROBS, f"{self.model.name} returned no log-probabilities")
        mass, share = flag.mass, flag.mass.p_true
        shares = {"true": mass.true, "false": mass.false}
        unknown = dict.fromkeys(shares, mass.unknown)
        short = shortfall(shares, unknown, self.max_outside, "true and false")
        if short or share is None:
            return failure(FailureKind.LOW_MASS, f"{short}, at {key!r}")
        return share, min(max((1.0 + mass.signed) / 2.0, 0.0), 1.0)

    def _failed(self, criterion: Criterion, why: Failure | None) -> Verdict:
        only = failure(FailureKind.REQUEST, "only binary criteria can be judged by true and false")
        return Verdict.failed(criterion.id, why or only, judge=self.name)


def _values(reply: Completion, keys: Sequence[str], quoted: Sequence[str]) -> dict[str, tuple[bool, bool]]:
    """What the words of a reply say, by key."""
    return {key: (flag.value, flag.clear) for key, flag in read_flags(reply, keys, quoted)[0].items()}


def _missing(key: str) -> Failure:
    return failure(FailureKind.INCOMPLETE, f"the reply has no usable {key!r}", retryable=True)
