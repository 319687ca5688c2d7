"""The criterion judge: k criteria a call, reasons before verdicts, a closing list that must agree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion
from rubricate.data.records import Rollout
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError, RubricateError
from rubricate.judges.base import ModelJudge, Shown, failure, failure_of
from rubricate.judges.fewshot import Example, Examples, Prefix, Shots
from rubricate.judges.reply import Answer, Question, question_of, read_reply, reply_schema
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Failure, FailureKind, Judgement, Usage, Verdict

__all__ = ["CriterionJudge"]


@dataclass(frozen=True, slots=True)
class _Round:
    """What one call brought: answers by label, why the others are missing, and what it cost."""

    answers: Mapping[str, Answer]
    failures: Mapping[str, Failure]
    usage: Usage


class CriterionJudge(ModelJudge):
    """Asks a chat model about k criteria a call and reads reasoned verdicts.

    All calls of one response share the prompt up to the criteria. Every verdict set is checked: each criterion
    once, vocabulary, and agreement with the closing list. What is missing, unreadable or contradictory is asked
    again, alone, on the same prefix; what was answered is kept. What stays unreadable is a failed verdict.

    Args:
        shown: what the judge sees and how; see `Shown`.
        criteria_per_call: k, or None for all criteria in one call. One call a criterion discriminates best and, on
            a shared prefix, costs little more.
        max_attempts: calls that one criterion takes part in at most, the first included.
        max_tokens: tokens for a reply with one criterion; each further criterion adds `tokens_per_criterion`.
        json_schema: constrain decoding to the reply's schema where the back end can. The reply is parsed and
            checked all the same, and a re-ask goes without.
        closing_list: a reply must close with its verdicts once more, or it counts as cut and is asked for again.
            Turn it off for a prompt of your own that asks for another reply.
        temperature, seed: sampling parameters of the judge.
        sample: index of this judge among repeated ones, so that caches keep their answers apart.
        examples: right verdicts to show it beforehand.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        criteria_per_call: int | None = 1,
        max_attempts: int = 4,
        max_tokens: int = 400,
        tokens_per_criterion: int = 150,
        json_schema: bool = True,
        closing_list: bool = True,
        temperature: float = 0.0,
        seed: int | None = None,
        sample: int = 0,
        examples: Examples | None = None,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or load_prompt("criterion_judge"), **shown)
        if criteria_per_call is not None and criteria_per_call < 1:
            raise ConfigError(f"criteria_per_call is {criteria_per_call}", hint="use 1 or more, or None for all")
        if max_attempts < 1:
            raise ConfigError(f"max_attempts is {max_attempts}", hint="use 1 or more")
        self.criteria_per_call = criteria_per_call
        self.max_attempts = max_attempts
        self.max_tokens = max_tokens
        self.tokens_per_criterion = tokens_per_criterion
        self.json_schema = json_schema
        self.closing_list = closing_list
        self.temperature = temperature
        self.seed = seed
        self.sample = sample
        self.examples = examples
        self._shots: Shots | None = None
        if examples is not None:
            self._shots = Shots(self, examples, item=self._example_item, reply=_example_reply)

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("criteria_per_call", "max_attempts", "max_tokens", "tokens_per_criterion")
        names += ("json_schema", "closing_list", "temperature", "seed", "sample")
        identity = super().identity() | {name: getattr(self, name) for name in names}
        return identity | ({"examples": self.examples.fingerprint} if self.examples is not None else {})

    def check(self, rubric: Rubric) -> None:
        """Raises ConfigError for a criterion whose scale has a level that is called like "does not apply"."""
        for n, criterion in enumerate(rubric.criteria, start=1):
            question_of(criterion, f"C{n}")

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        """One verdict a criterion, in order."""
        try:
            material = self.material(rollout)
            system = self._shots.system(rollout) if self._shots is not None else None
            prefix = Prefix(self.prompt.render("shared", material.values()), system)
            batches = self._batches(criteria)
        except RubricateError as error:
            return self.fail_all(criteria, failure_of(error))
        requests = [self._request(prefix, batch) for batch in batches]
        replies = await self.model.complete_many(requests) if requests else []
        rounds = [self._read(batch, reply, material.quoted) for batch, reply in zip(batches, replies, strict=True)]
        again = [
            self._ask_again(prefix, question, first.failures[question.label], material.quoted)
            for batch, first in zip(batches, rounds, strict=True)
            for question in batch
            if question.label in first.failures
        ]
        rounds += await asyncio.gather(*again)
        usage = sum((r.usage for r in rounds), Usage())
        answers = {label: answer for r in rounds for label, answer in r.answers.items()}
        failures = {label: why for r in rounds for label, why in r.failures.items()}
        verdicts = [
            self._verdict(criterion, answers.get(f"C{n}"), failures.get(f"C{n}"))
            for n, criterion in enumerate(criteria, start=1)
        ]
        return Judgement(tuple(verdicts), usage=usage)

    def _batches(self, criteria: Sequence[Criterion]) -> list[list[Question]]:
        """Questions k by k, in order. Only criteria that are answered in the same words share a call."""
        size = self.criteria_per_call or len(criteria)
        batches: list[list[Question]] = []
        open_batches: dict[object, list[Question]] = {}
        for n, criterion in enumerate(criteria, start=1):
            question = question_of(criterion, f"C{n}")
            batch = open_batches.get(question.answer_form)
            if batch is None or len(batch) >= size:
                batch = open_batches[question.answer_form] = []
                batches.append(batch)
            batch.append(question)
        return batches

    def _request(
        self,
        prefix: Prefix,
        batch: Sequence[Question],
        *,
        complaint: str = "",
        attempt: int = 0,
        longer: bool = False,
    ) -> ChatRequest:
        item = self.prompt.render("item", {"criteria": batch, "complaint": complaint})
        tokens = self.max_tokens + self.tokens_per_criterion * (len(batch) - 1)
        constrain = self.json_schema and attempt == 0 and self.model.capabilities.json_schema
        return ChatRequest(
            prefix.messages(self, item),
            max_tokens=tokens * 3 if longer else tokens,
            temperature=self.temperature,
            seed=self.seed,
            json_schema=reply_schema(batch) if constrain else None,
            sample=self.sample * self.max_attempts + attempt,
        )

    def _read(self, batch: Sequence[Question], reply: Completion | ChatError, quoted: Sequence[str]) -> _Round:
        if isinstance(reply, ChatError):
            return _Round({}, {question.label: failure_of(reply) for question in batch}, Usage())
        try:
            answers, failures = read_reply(
                reply.require_text(self.model.name), batch, quoted, closing_list=self.closing_list
            )
        except (AnswerError, ParseError) as error:
            why = failure_of(error)
            return _Round({}, {question.label: why for question in batch}, reply.usage)
        return _Round(answers, failures, reply.usage)

    async def _ask_again(self, prefix: Prefix, question: Question, why: Failure, quoted: Sequence[str]) -> _Round:
        """Ask for one criterion, alone, until it is answered, the attempts are used up, or asking is no use."""
        usage = Usage()
        for attempt in range(1, self.max_attempts):
            if not _worth_asking(why):
                break
            longer = why.kind is FailureKind.LENGTH
            request = self._request(prefix, [question], complaint=_complaint(why), attempt=attempt, longer=longer)
            (reply,) = await self.model.complete_many([request])
            read = self._read([question], reply, quoted)
            usage += read.usage
            if question.label in read.answers:
                return replace(read, usage=usage)
            why = read.failures[question.label]
        return _Round({}, {question.label: why}, usage)

    def _example_item(self, example: Example) -> str:
        question = question_of(example.criterion, "C1")
        return self.prompt.render("item", {"criteria": [question], "complaint": ""})

    def _verdict(self, criterion: Criterion, answer: Answer | None, why: Failure | None) -> Verdict:
        if answer is None:
            missing = why or failure(FailureKind.INCOMPLETE, "the judge gave no verdict on this criterion")
            return Verdict.failed(criterion.id, missing, judge=self.name)
        if answer.score is None:
            return Verdict.not_applicable(criterion.id, judge=self.name, reason=answer.reason)
        return Verdict(criterion.id, answer.score, raw=answer.raw, reason=answer.reason, judge=self.name)


def _example_reply(example: Example) -> str:
    """The reply that an example's verdict would have been."""
    verdict = example.verdict
    if isinstance(verdict, float) and verdict.is_integer():
        verdict = int(verdict)
    entry = {"id": "C1", "reason": example.reason, "verdict": verdict}
    return json.dumps({"verdicts": [entry], "final": {"C1": verdict}}, ensure_ascii=False)


def _worth_asking(why: Failure) -> bool:
    """Unreadable replies, cut and empty ones may be better the next time. The limiter has retried the rest."""
    return why.kind in {
        FailureKind.UNPARSABLE,
        FailureKind.AMBIGUOUS,
        FailureKind.OUT_OF_RANGE,
        FailureKind.INCOMPLETE,
        FailureKind.EMPTY,
        FailureKind.LENGTH,
    }


def _complaint(why: Failure) -> str:
    return {
        FailureKind.EMPTY: "it was empty",
        FailureKind.LENGTH: "it was too long; keep the reason to one sentence",
        FailureKind.AMBIGUOUS: "its verdicts contradicted one another",
        FailureKind.OUT_OF_RANGE: "its verdict was not one of the allowed ones",
        FailureKind.INCOMPLETE: 'it left out this criterion, or did not close with "final"',
    }.get(why.kind, "it was not the JSON object that was asked for")
