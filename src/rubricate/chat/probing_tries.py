"""The short probes: answers, latency, log-probabilities, JSON schemas, turns begun, repeatability, concurrency."""

from __future__ import annotations

import asyncio
import copy
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Outcome, TokenLogprob
from rubricate.chat.limited import Limited
from rubricate.chat.probing_results import Finding, Sign, took
from rubricate.chat.probing_subject import Question, Subject, Trial, user
from rubricate.chat.server import ServerModel
from rubricate.errors import ChatError, ParseError, RequestError

__all__ = [
    "AT_ONCE",
    "SHORT_CALLS",
    "probe_answers",
    "probe_concurrency",
    "probe_judgement",
    "probe_latency",
    "probe_logprobs",
    "probe_prefill",
    "probe_repeat",
    "probe_schema",
]

SHORT_CALLS = 3
AT_ONCE = 8
TOP = 20
"""Alternatives that judges ask for, and the most that OpenAI and vLLM give by default."""
FEWER = 5
"""Alternatives that servers with a lower bound allow."""
REPEATED = 32
"""Tokens of an answer that is asked for twice."""
JUDGE_PREFILL = "Answer:"
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["met", "unmet"]}, "sure": {"type": "boolean"}},
    "required": ["verdict"],
    "additionalProperties": False,
}
BEGUN, CONTINUED = "The first two days of the week are Monday and Tues", "day"
ANEW = ("The ", "Monday", "Tuesday", "**", "1")
"""A word broken off: whoever continues the turn completes it, and whoever begins a new one does not start so."""


async def probe_answers(subject: Subject) -> Finding:
    """One short call, which also opens the connection, or loads a model in this process."""
    answer, seconds = await subject.timed(user("Reply with the word ready.", max_tokens=subject.room))
    if answer.reasoning or "<think>" in answer.text:
        subject.reasons = True
    text = f"after {took(seconds)} (first call)"
    if answer.outcome is not Outcome.OK:
        text += f", but with no usable text: {answer.outcome.value}"
    if subject.reasons and answer.reasoning:
        text += "; it reasons before it answers"
    details = {"first_call_seconds": round(seconds, 4), "reply": answer.text[:80], "outcome": answer.outcome.value}
    return Finding("answers", Sign.YES, text, details)


async def probe_latency(subject: Subject) -> Finding:
    """A few calls with next to nothing in them, one after another."""
    times = [(await subject.timed(_short(n, subject)))[1] for n in range(SHORT_CALLS)]
    subject.short = median(times)
    details = {"median_seconds": round(subject.short, 4), "seconds": [round(value, 4) for value in times]}
    return Finding("latency", Sign.YES, f"{took(subject.short)} for a short call", details)


async def probe_concurrency(subject: Subject) -> Finding:
    """As many short calls at once as a small rubric has criteria, against one."""
    began = subject.clock.now()
    calls = [subject.model.complete(_short(SHORT_CALLS + n, subject)) for n in range(AT_ONCE)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    seconds = subject.clock.now() - began
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    if any(not isinstance(error, ChatError) for error in errors) or len(errors) == AT_ONCE:
        raise errors[0]
    one = subject.short or 0.0
    gain = one * AT_ONCE / seconds if seconds > 0 else None
    details: dict[str, object] = {
        "calls": AT_ONCE,
        "failed": len(errors),
        "seconds": round(seconds, 4),
        "one_call_seconds": round(one, 4),
        "speedup": None if gain is None else round(gain, 2),
    }
    text = f"{AT_ONCE} calls at once take {took(seconds)}, one {took(one)}"
    if errors:
        text = f"{len(errors)} of {AT_ONCE} calls at once failed: {errors[0]}".partition("\n")[0]
        return Finding("concurrency", Sign.NO, text, details)
    if gain is None or one < 0.001:
        return Finding("concurrency", Sign.UNKNOWN, f"{text}: too quick to tell", details)
    return Finding("concurrency", Sign.YES if gain >= 2 else Sign.NO, f"{text}: {gain:.1f} times as fast", details)


async def probe_logprobs(subject: Subject) -> Finding:
    """Ask two trivial questions for their first token, as a log-probability judge asks."""
    if not subject.raw.capabilities.logprobs:
        return Finding("logprobs", Sign.NO, "this back end does not ask this model for them")
    asked = TOP
    try:
        tokens = [await _first_token(subject, question, asked) for question in subject.questions]
    except RequestError as error:
        asked = FEWER
        try:
            tokens = [await _first_token(subject, question, asked) for question in subject.questions]
        except RequestError:
            raise error from None
    seen = [token for token in tokens if token is not None]
    details: dict[str, object] = {"asked": asked, "came": min((len(token.top) for token in seen), default=0)}
    if len(seen) < len(tokens):
        return Finding("logprobs", Sign.NO, "asked for, and none came", details)
    subject.first_tokens = tuple(seen)
    details["first_tokens"] = [_shares(token) for token in seen]
    details["prefill"] = JUDGE_PREFILL if subject.continues else ""
    text = f"{details['came']} alternatives of {asked} asked for"
    return Finding("logprobs", Sign.YES, text, details)


async def _first_token(subject: Subject, question: Question, top: int) -> TokenLogprob | None:
    prefill = JUDGE_PREFILL if subject.continues else ""
    answer = await subject.model.complete(ChatRequest(question, max_tokens=1, top_logprobs=top, prefill=prefill))
    return answer.logprobs[0] if answer.logprobs else None


def _shares(token: TokenLogprob) -> list[list[object]]:
    """The likeliest alternatives and their probabilities."""
    ranked = sorted(token.top or ((token.token, token.logprob),), key=lambda item: -item[1])
    return [[text, round(math.exp(logprob), 4)] for text, logprob in ranked[:5]]


async def probe_schema(subject: Subject) -> Finding:
    """Ask for an answer that fits a JSON schema, without a word of JSON in the prompt."""
    if not subject.raw.capabilities.json_schema:
        return Finding("json_schema", Sign.NO, "this back end sends no schema")
    request = user("Is two plus two equal to four? Give your verdict.", max_tokens=subject.room, json_schema=SCHEMA)
    try:
        answer = await subject.model.complete(request)
    except ChatError as error:
        other = await _by_other_schema(subject, request)
        if other is None:
            raise
        said = error.message.partition("\n")[0]
        text = f"{said}; it works with ?schema={other} in the name"
        return Finding("json_schema", Sign.NO, text, {"came": "error", "works_as": other})
    return _schema_finding(answer, request.max_tokens)


async def _by_other_schema(subject: Subject, request: ChatRequest) -> str | None:
    """The form of schemas that the server takes in place of the one that it refused, None where there is none."""
    raw = subject.raw
    if not isinstance(raw, ServerModel) or raw.dialect.schema != "openai":
        return None
    trial = copy.copy(raw)
    trial.dialect = replace(raw.dialect, schema="llama.cpp")
    try:
        answer = await _ask_once(trial, request, subject)
    except ChatError:
        return None
    return "llama.cpp" if _against_schema(answer)[0] == "valid" else None


def _schema_finding(answer: Completion, max_tokens: int) -> Finding:
    came, why = _against_schema(answer)
    said = answer.text.strip()[:80]
    texts = {
        "valid": f"a fitting answer came: {said}",
        "invalid": f"JSON came that does not fit: {why}",
        "ignored": f"ignored: {said!r} came",
        "empty": "the answer came back empty",
        "cut": f"the answer was cut at {max_tokens} tokens: {said!r}",
        "refused": f"no usable answer: {answer.outcome.value}",
    }
    sign = Sign.YES if came == "valid" else Sign.NO
    return Finding("json_schema", sign, texts[came], {"reply": said, "came": came})


def _against_schema(answer: Completion) -> tuple[str, str]:
    """What came of the schema in a word, and what does not fit."""
    if answer.outcome is Outcome.LENGTH:
        return "cut", ""
    if answer.outcome is Outcome.EMPTY:
        return "empty", ""
    if answer.outcome is not Outcome.OK:
        return "refused", ""
    try:
        value: object = json.loads(answer.text)
    except ValueError:
        return "ignored", ""
    import jsonschema

    try:
        jsonschema.validate(value, SCHEMA)
    except jsonschema.ValidationError as error:
        return "invalid", error.message
    return "valid", ""


async def probe_prefill(subject: Subject) -> Finding:
    """Begin the model's turn in the middle of a word, and see whether it completes the word."""
    request = user("What are the first two days of the week?", max_tokens=8, prefill=BEGUN)
    claimed = subject.raw.capabilities.prefill
    if claimed:
        answer = await subject.model.complete(request)
    else:
        trial = _with_prefill(subject.raw)
        if trial is None:
            return Finding("prefill", Sign.NO, "this back end cannot ask for it")
        answer = await _ask_once(trial, request, subject)
    subject.continues = claimed  # a judge will ask so, whatever comes of it here
    said = answer.text
    start = said.lstrip()
    anew = start.startswith(ANEW)
    sign = Sign.YES if start.startswith(CONTINUED) else Sign.NO if anew else Sign.UNKNOWN
    text = f"a turn broken off in 'Tues' was followed by {said[:30]!r}"
    if sign is Sign.YES and not claimed:
        text += "; ?prefill=true in the name makes use of it"
    elif sign is Sign.NO:
        text += ": a new turn"
    return Finding("prefill", sign, text, {"reply": said[:80], "tried_by": "claim" if claimed else "trial"})


def _with_prefill(model: ChatModel) -> ChatModel | None:
    """The same server, asked to continue turns; None for a back end that has no way to ask."""
    if not isinstance(model, ServerModel):
        return None
    trial = copy.copy(model)
    trial.dialect = replace(model.dialect, prefill=True)
    return trial


async def _ask_once(model: ChatModel, request: ChatRequest, subject: Subject) -> Completion:
    try:
        return await Limited(model, subject.limiter).complete(request)
    finally:
        await model.aclose()


async def probe_judgement(subject: Subject) -> Finding:
    """Send one real request of the judge and have the judge read the reply; as a judge does, ask again without the
    schema where nothing can be read."""
    trial = subject.trial
    if trial is None:
        return Finding("judgement", Sign.SKIPPED, "no judge was given")
    request = replace(trial.request, json_schema=None, sample=trial.request.sample + 1)
    if subject.raw.capabilities.json_schema and trial.request.json_schema is not None:
        first = _judged(await subject.model.complete(trial.request), trial)
        if first.sign is Sign.YES:
            return first
    return _judged(await subject.model.complete(request), trial)


def _judged(answer: Completion, trial: Trial) -> Finding:
    said = " ".join(answer.text.split())[:80]
    if answer.outcome is Outcome.LENGTH:
        text = f"the reply was cut at {trial.request.max_tokens} tokens; a judge asks again, with more room"
        return Finding("judgement", Sign.UNKNOWN, text, {"reply": said})
    if answer.outcome is not Outcome.OK:
        return Finding("judgement", Sign.NO, f"no usable reply: {answer.outcome.value}", {"reply": said})
    try:
        read = trial.read(answer.text)
    except ParseError as error:
        return Finding("judgement", Sign.NO, f"{error.message}: {said!r} came", {"reply": said})
    return Finding("judgement", Sign.YES, read, {"reply": said})


async def probe_repeat(subject: Subject) -> Finding:
    """Send one greedy request twice."""
    text = "Name three colours of the rainbow and say what is seen in each."
    room = subject.room if subject.reasons else REPEATED
    first, second = [
        await subject.model.complete(user(text, max_tokens=room, sample=n)) for n in range(2)
    ]  # another sample, so that no cache on this side answers the second
    alike = first.text == second.text
    if not first.text and not second.text:
        return Finding("repeatable", Sign.UNKNOWN, "both answers are empty")
    at = next((n for n, (a, b) in enumerate(zip(first.text, second.text, strict=False)) if a != b), None)
    at = min(len(first.text), len(second.text)) if at is None else at
    said = (
        "the same greedy request gave the same text twice"
        if alike
        else f"two greedy answers part at character {at}"
    )
    return Finding("repeatable", Sign.YES if alike else Sign.NO, said, {"characters": len(first.text)})


def _short(number: int, subject: Subject) -> ChatRequest:
    """A request that costs next to nothing, none like another."""
    return user(f"Say {number}. {subject.nonce()[:8]}", max_tokens=subject.least)
