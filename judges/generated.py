"""Generated verifiers (RLCF, 2507.18624): a model writes a check for a hard rule, which counts once it was tried.

A check that is not right on the examples is not used; one that is goes into the criterion's `verifier` and runs in
the sandbox. What became of every criterion is counted, so that checks that are never applied cannot go unnoticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest, Completion, Message
from rubricate.errors import AnswerError, ChatError, ConfigError, ParseError
from rubricate.judges.fence import fence, make_nonce
from rubricate.judges.generated_reply import examples_schema, read_examples, read_source
from rubricate.judges.generated_types import (
    Asked,
    Example,
    GeneratedVerifier,
    Proposal,
    ProposalOutcome,
    VerifierOptions,
    VerifierReport,
)
from rubricate.judges.sandbox import FUNCTION, MEMORY, SECONDS, run_checks_async
from rubricate.rubrics import BinaryScale, Criterion, Rubric
from rubricate.types import Usage

__all__ = ["generate_verifier", "generate_verifiers", "propose_verifier", "try_source"]


async def try_source(
    source: str,
    examples: Sequence[Example],
    *,
    function: str = FUNCTION,
    seconds: float = SECONDS,
    memory: int = MEMORY,
    unsafe_without_seccomp: bool = False,
) -> tuple[Example, ...]:
    """The examples with what the check says of each, run in the sandbox."""
    results = await run_checks_async(
        source,
        [example.text for example in examples],
        function=function,
        seconds=seconds,
        memory=memory,
        unsafe_without_seccomp=unsafe_without_seccomp,
    )
    return tuple(replace(example, result=result) for example, result in zip(examples, results, strict=True))


async def generate_verifier(
    model: ChatModel,
    criterion: Criterion,
    *,
    positives: Sequence[str] = (),
    negatives: Sequence[str] = (),
    model_examples: int = 0,
    **options: Unpack[VerifierOptions],
) -> GeneratedVerifier | None:
    """Have a model write a check for a criterion. None where there is no check to be trusted.

    Arguments and errors are those of `propose_verifier`, which also says why there is none.
    """
    found = await propose_verifier(
        model, criterion, positives=positives, negatives=negatives, model_examples=model_examples, **options
    )
    return found.verifier


async def propose_verifier(
    model: ChatModel,
    criterion: Criterion,
    *,
    positives: Sequence[str] = (),
    negatives: Sequence[str] = (),
    model_examples: int = 0,
    **options: Unpack[VerifierOptions],
) -> Proposal:
    """Ask for a check of one criterion and try it in the sandbox on examples that the model does not get to see.

    RLCF asks and applies; that a check must first be right on examples of both kinds is ours.

    Args:
        model: writes the check.
        criterion: a binary criterion without a condition; others are declined without a call.
        positives: texts for which the criterion holds.
        negatives: texts for which it does not.
        model_examples: further examples of each kind that the model writes before the check, marked as its own.
        task: the prompt that responses answer, where the criterion belongs to one.
        threshold: least share of right verdicts, in (0, 1], among positives and among negatives alike (1).
        max_attempts: replies asked for at most, for the check and for the examples each (2).
        max_tokens, temperature: of a reply (1500, 0).
        seconds, memory: limits of the check, in the trial and later.
        sample: index among repeated proposals, so that caches keep them apart.
        run_key: key of the hash that fences untrusted text.
        prompt: a template of one's own.
        unsafe_without_seccomp: as in `run_checks`.

    Raises ConfigError without examples of both kinds, for a text that is given as both, and for options out of
    range; ChatError when the model could not be asked; MissingExtraError without RestrictedPython.
    """
    asked = Asked(model, **options)
    examples = _given(positives, negatives)
    if model_examples < 1 and len({example.expected for example in examples}) < 2:
        raise ConfigError(
            "a check must be tried on texts that meet the criterion and on texts that do not",
            hint="give positives and negatives, or let the model write some with model_examples=4",
        )
    why = _undecidable(criterion)
    if why:
        return Proposal(criterion.id, ProposalOutcome.DECLINED, reason=why)
    usage = Usage()
    if model_examples > 0:
        written, why, usage = await _written_examples(asked, criterion, model_examples)
        if why:
            return Proposal(criterion.id, ProposalOutcome.FAILED, reason=why, usage=usage)
        known = {example.text for example in examples}
        examples += [example for example in written if example.text not in known]
    found = await _written_check(asked, criterion, examples)
    return replace(found, usage=usage + found.usage)


async def generate_verifiers(
    model: ChatModel,
    rubric: Rubric,
    *,
    examples: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    model_examples: int = 0,
    **options: Unpack[VerifierOptions],
) -> VerifierReport:
    """Ask for a check of every criterion that has none, all at the same time.

    Args:
        examples: criterion id to (positives, negatives).
        model_examples: examples of each kind that the model writes for each criterion; needed where none are given.
        options: as in `propose_verifier`.

    Raises what `propose_verifier` raises, but for a model that cannot be asked: that is a failed proposal.
    """
    named = examples or {}
    unknown = sorted(set(named) - set(rubric.ids))
    if unknown:
        raise ConfigError(f"examples for {unknown[0]!r}, which is no criterion of this rubric")

    async def one(criterion: Criterion) -> Proposal:
        positives, negatives = named.get(criterion.id, ((), ()))
        try:
            return await propose_verifier(
                model, criterion, positives=positives, negatives=negatives, model_examples=model_examples, **options
            )
        except ChatError as error:
            return Proposal(criterion.id, ProposalOutcome.FAILED, reason=error.message)

    proposals = tuple(await asyncio.gather(*(one(criterion) for criterion in rubric.criteria)))
    criteria = tuple(
        proposal.verifier.attach(criterion) if proposal.verifier else criterion
        for criterion, proposal in zip(rubric.criteria, proposals, strict=True)
    )
    return VerifierReport(rubric.model_copy(update={"criteria": criteria}), proposals)


def _given(positives: Sequence[str], negatives: Sequence[str]) -> list[Example]:
    both = set(positives) & set(negatives)
    if both:
        raise ConfigError(f"the text {min(both)[:60]!r} is given as a positive and as a negative example")
    return [Example(text, True) for text in positives] + [Example(text, False) for text in negatives]


def _undecidable(criterion: Criterion) -> str:
    """Why a check cannot give this criterion's verdict, empty where it can."""
    if criterion.verifier is not None:
        return f"it has the verifier {criterion.verifier.name!r}"
    if criterion.condition is not None:
        return "it applies under a condition, and a check says only whether it holds"
    if not isinstance(criterion.scale, BinaryScale):
        return "its scale is not met or not met"
    return ""


async def _written_check(asked: Asked, criterion: Criterion, examples: Sequence[Example]) -> Proposal:
    """Ask until a check is right on the examples, the model declines, or the attempts are used up."""
    usage, complaint = Usage(), ""
    last = Proposal(criterion.id, ProposalOutcome.FAILED)
    for attempt in range(asked.max_attempts):
        reply = await _ask(asked, criterion, "", attempt, complaint=complaint)
        usage += reply.usage
        try:
            source = read_source(reply.require_text(asked.model.name))
        except (AnswerError, ParseError) as error:
            complaint = error.message
            last = replace(last, reason=last.reason or complaint)
            continue
        if source is None:
            reason = "the model says that code cannot decide it exactly"
            return Proposal(criterion.id, ProposalOutcome.DECLINED, reason=reason, usage=usage)
        last, complaint = await _tried(asked, criterion, source, examples)
        if not complaint:
            break
    return replace(last, usage=usage)


async def _tried(
    asked: Asked, criterion: Criterion, source: str, examples: Sequence[Example]
) -> tuple[Proposal, str]:
    """The proposal with this source, and what to tell the model about it, empty where there is no use in that."""
    try:
        tried = await try_source(
            source,
            examples,
            seconds=asked.seconds,
            memory=asked.memory,
            unsafe_without_seccomp=asked.unsafe_without_seccomp,
        )
    except ConfigError as error:  # a source that is too long
        return Proposal(criterion.id, ProposalOutcome.REJECTED, reason=error.message, source=source), error.message
    results = [example.result for example in tried if example.result is not None]
    broken = next((result for result in results if result.failure), None)
    if broken is not None and broken.failure in {"unsupported", "start"}:
        return Proposal(criterion.id, ProposalOutcome.FAILED, reason=broken.message, source=source), ""
    shares = {kind: _share_right(tried, kind) for kind in (True, False)}
    if min(shares.values()) >= asked.threshold:
        model, limits = asked.model.fingerprint, (asked.seconds, asked.memory)
        verifier = GeneratedVerifier(source, FUNCTION, tried, model, asked.prompt.fingerprint, *limits)
        accepted = ProposalOutcome.ACCEPTED
        return Proposal(criterion.id, accepted, verifier, source=source, examples=tried), ""
    wrong = sum(not example.right for example in tried)
    reason = f"wrong on {wrong} of {len(tried)} examples" + (f"; {broken.message}" if broken else "")
    return Proposal(criterion.id, ProposalOutcome.REJECTED, None, reason, source, tried), reason


def _share_right(examples: Sequence[Example], expected: bool) -> float:
    right = [example.right for example in examples if example.expected is expected]
    return sum(right) / len(right)


async def _written_examples(asked: Asked, criterion: Criterion, count: int) -> tuple[list[Example], str, Usage]:
    """Examples by the model, why there are none, and what they cost."""
    usage, complaint = Usage(), ""
    for attempt in range(asked.max_attempts):
        reply = await _ask(asked, criterion, "examples_", attempt, complaint=complaint, count=count)
        usage += reply.usage
        try:
            positives, negatives = read_examples(reply.require_text(asked.model.name))
        except (AnswerError, ParseError) as error:
            complaint = error.message
            continue
        written = [Example(text, True, by_model=True) for text in positives]
        return written + [Example(text, False, by_model=True) for text in negatives], "", usage
    return [], f"no examples could be had of the model: {complaint}", usage


async def _ask(
    asked: Asked, criterion: Criterion, kind: str, attempt: int, *, complaint: str, count: int = 0
) -> Completion:
    prompt, text = asked.prompt, criterion.text
    nonce = make_nonce(asked.run_key, asked.task, text)
    values: dict[str, object] = {
        "task": fence("task", asked.task, nonce) if asked.task else "",
        "criterion": fence("criterion", text, nonce),
        "complaint": complaint,
        "count": count,
    }
    user = prompt.render("shared", values) + prompt.render(f"{kind}item", values).rstrip()
    constrain = bool(kind) and attempt == 0 and asked.model.capabilities.json_schema
    request = ChatRequest(
        (Message("system", prompt.render(f"{kind}system", values).strip()), Message("user", user)),
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        json_schema=examples_schema(count) if constrain else None,
        sample=asked.sample * asked.max_attempts + attempt,
    )
    return await asked.model.complete(request)
