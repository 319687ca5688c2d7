"""Probes a chat model: does it answer, and which of the things that judges build on does it really do."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from rubricate.chat.base import Capabilities, ChatModel
from rubricate.chat.probing_listing import probe_served
from rubricate.chat.probing_prefix import prefix_bound, probe_prefix
from rubricate.chat.probing_results import Finding, ModelReport, Sign
from rubricate.chat.probing_subject import QUESTIONS, REASONING_ROOM, Question, Subject, Trial
from rubricate.chat.probing_tries import (
    AT_ONCE,
    SHORT_CALLS,
    probe_answers,
    probe_concurrency,
    probe_judgement,
    probe_latency,
    probe_logprobs,
    probe_prefill,
    probe_repeat,
    probe_schema,
)
from rubricate.chat.server import ServerModel
from rubricate.chat.timing import SYSTEM_CLOCK, Clock, deadline
from rubricate.errors import ChatError, DeadlineError, RubricateError, ServerError
from rubricate.types import Usage

__all__ = ["PROBES", "Finding", "ModelReport", "Sign", "Trial", "probe_bound", "probe_model"]

Probe = Callable[[Subject], Awaitable[Finding]]

# Later probes build on earlier ones: log-probabilities are asked for behind a prefill where that works.
_PROBES: tuple[tuple[str, Probe], ...] = (
    ("answers", probe_answers),
    ("served", probe_served),
    ("latency", probe_latency),
    ("prefix_cache", probe_prefix),
    ("prefill", probe_prefill),
    ("logprobs", probe_logprobs),
    ("json_schema", probe_schema),
    ("repeatable", probe_repeat),
    ("concurrency", probe_concurrency),
)
PROBES = tuple(name for name, _ in _PROBES)
"""Names of the probes, in the order in which they run; `judgement` comes last, where there is a trial."""

_LOST_AT_MOST = 2
"""So many probes in a row may get no answer at all before the rest are not tried."""
_SHORT_PROMPT = 64  # tokens of a short probe's prompt at most, chat template included
_WORDY = (
    5  # calls that ask for an answer in words: whether it answers, the schema in two forms, and two that repeat
)
_FIRST_TOKENS = 4  # two questions, and again with fewer alternatives
_QUESTION = 256  # tokens of each
_PREFILL_TOKENS = 8


def probe_bound(model: ChatModel, trial: Trial | None = None) -> Usage:
    """Calls and tokens that `probe_model` uses at most: counted from what it sends, not asked of the model."""
    subject = Subject(model)
    short = SHORT_CALLS + AT_ONCE
    small = short + _WORDY + _FIRST_TOKENS + 1
    words = short * subject.least + _WORDY * REASONING_ROOM + _FIRST_TOKENS + _PREFILL_TOKENS
    prompts = (small - _FIRST_TOKENS) * _SHORT_PROMPT + _FIRST_TOKENS * _QUESTION
    bound = Usage(small, prompts, words) + prefix_bound(subject)
    if trial is not None:
        prompt = _SHORT_PROMPT + len(trial.request.text()) // 2
        bound += Usage(2, 2 * prompt, 2 * trial.request.max_tokens)  # with the schema and without
    return bound


async def probe_model(
    model: ChatModel,
    *,
    prices: tuple[float, float] | None = None,
    questions: tuple[Question, Question] = QUESTIONS,
    trial: Trial | None = None,
    timeout: float = 60.0,
    clock: Clock = SYSTEM_CLOCK,
    step: Callable[[str], object] | None = None,
) -> ModelReport:
    """Probe a model. A probe that fails is a finding; nothing is raised for what the model does.

    Nothing is tried twice. A model that does not answer the first call costs that one call: the other probes are
    skipped, but for the server's list of models where the server did reply. After two probes in a row that got no
    reply at all, the rest are skipped too. The model's connections are closed at the end.

    Args:
        model: any model. Limiters, caches and recorders in front of it are left aside.
        prices: money for a million prompt and completion tokens, for `usage.cost`.
        questions: messages whose right answer is yes, and such whose right answer is no, for the probe of
            log-probabilities; those of the judge that is to be used say most.
        trial: one real request of the judge that is to be used, and how that judge reads the reply.
        timeout: seconds for each probe.
        clock: what time it is.
        step: told the name of each probe before it runs.
    """
    subject = Subject(model, prices=prices, questions=questions, trial=trial, clock=clock)
    bound = probe_bound(model, trial)
    probes = _PROBES if trial is None else (*_PROBES, ("judgement", probe_judgement))
    began = clock.now()
    findings: list[Finding] = []
    silent, stopped = 0, ""
    try:
        for name, probe in probes:
            if stopped:
                findings.append(Finding(name, Sign.SKIPPED, stopped))
                continue
            if step is not None:
                step(name)
            finding, reply = await _run(name, probe, subject, timeout)
            findings.append(finding)
            silent = silent + 1 if reply is _Reply.NONE else 0
            dead = findings[0].sign is not Sign.YES
            if dead and (name == "served" or reply is not _Reply.ERROR):
                stopped = "not tried: the model does not answer"
            elif silent >= _LOST_AT_MOST:
                stopped = "not tried: the probes before it got no reply"
    finally:
        await subject.raw.aclose()
    claimed = subject.raw.capabilities
    report = ModelReport(subject.raw.name, tuple(findings), claimed)
    return replace(
        report,
        contradictions=tuple(_contradictions(report, claimed, at_once=_shares_at_once(subject))),
        first_tokens=subject.first_tokens,
        bound=bound,
        usage=subject.limiter.stats.usage,
        seconds=clock.now() - began,
    )


class _Reply(enum.Enum):
    """What came back from the model's server during a probe."""

    ANSWER = enum.auto()
    ERROR = enum.auto()  # a status that says so
    NONE = enum.auto()
    UNASKED = enum.auto()  # it failed on this side: no key, no weights


async def _run(name: str, probe: Probe, subject: Subject, timeout: float) -> tuple[Finding, _Reply]:
    """The finding, and what the server had to do with it."""
    began, reply = subject.clock.now(), _Reply.ANSWER
    try:
        with deadline(timeout, clock=subject.clock):
            finding = await probe(subject)
    except RubricateError as error:
        finding = Finding(name, Sign.FAILED, _said(error), error=error.message, hint=error.hint)
        lost = isinstance(error, DeadlineError | ServerError)
        replied = isinstance(error, ChatError) and error.status is not None
        reply = _Reply.ERROR if replied else _Reply.NONE if lost else _Reply.UNASKED
    except Exception as error:  # a bug in a back end is a finding about that back end
        said = f"{type(error).__name__}: {error}"
        finding, reply = Finding(name, Sign.FAILED, said, error=said), _Reply.UNASKED
    return replace(finding, seconds=subject.clock.now() - began), reply


def _said(error: RubricateError) -> str:
    status = error.status if isinstance(error, ChatError) else None
    told = status is None or str(status) in error.message
    return error.message if told else f"{error.message} (HTTP {status})"


def _shares_at_once(subject: Subject) -> bool:
    return isinstance(subject.raw, ServerModel) and subject.raw.shares_at_once


def _contradictions(report: ModelReport, claimed: Capabilities, *, at_once: bool) -> Sequence[str]:
    """Where the probes do not bear out what the back end's capabilities say."""
    found: list[str] = []
    for name, claim in (
        ("logprobs", claimed.logprobs),
        ("json_schema", claimed.json_schema),
        ("prefill", claimed.prefill),
    ):
        seen = report.finding(name)
        if claim and seen.sign in (Sign.NO, Sign.FAILED):
            found.append(f"capabilities say {name}, but the probe did not bear it out: {seen.text}")
        elif not claim and seen.sign is Sign.YES:
            found.append(f"capabilities do not say {name}, but it works")
    served = report.finding("served").details.get("context")
    if isinstance(served, int) and claimed.context is not None and claimed.context > served:
        found.append(f"capabilities say a context of {claimed.context:,} tokens, the server says {served:,}")
    cache = report.finding("prefix_cache")
    if claimed.warm_tokens is not None and cache.sign in (Sign.NO, Sign.UNLIKELY):
        found.append(f"capabilities say warm_tokens={claimed.warm_tokens}, but no prefix cache shows: {cache.text}")
    by_construction = cache.details.get("by") == "construction"
    if claimed.warm_tokens is None and cache.holds and not by_construction and not at_once:
        found.append("capabilities say no prefix cache to warm, but there is one")
    return found
