"""Is a shared prefix computed once? Read from the server's own count of cached tokens, else inferred from times."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.probing_results import Finding, Sign, took
from rubricate.chat.probing_subject import Subject, user
from rubricate.errors import ChatError, ContextOverflowError
from rubricate.types import Usage

__all__ = ["judge_times", "prefix_bound", "probe_prefix"]

PREFIX_CHARS = 5200  # some 1,300 to 1,800 tokens by tokenizer: above the 1,024 from which OpenAI caches
ROUNDS = 3
WARM_CALLS = 2  # a round
SHRINKS = 3  # a prompt that does not fit the context is halved so often
TOGETHER = 4  # requests at once, for a back end that shares by itself
_TOKENS = 1800  # of one long prompt, at most, for a tokenizer that takes 2.9 characters a token

_LEAST_OWED = 0.005  # seconds: below it a prompt's own time drowns in the clock and the scheduler
_THINGS = ("lantern", "bicycle", "teapot", "ladder", "compass", "violin", "umbrella", "typewriter")
_PLACES = ("by the old harbour", "in the north hall", "under the stone bridge", "near the mill", "at the station")


def prefix_bound(subject: Subject) -> Usage:
    """Calls and tokens of this probe at most."""
    calls = (ROUNDS - 1) * (1 + TOGETHER) if subject.shares else ROUNDS * (1 + WARM_CALLS)
    calls += SHRINKS
    return Usage(calls, calls * _TOKENS, calls * subject.least)


def judge_times(short: float, cold: list[float], warm: list[float]) -> tuple[Sign, float | None]:
    """Infer prefix caching from the seconds of calls (rule: ours).

    With medians, the share saved is (cold - warm) / (cold - short): of the time that the long prompt itself takes,
    what part the further calls do without. `likely`: at least half is saved, and every warm call was faster than
    every cold one (which 3 cold and 6 warm calls would show by chance once in 84 times). `unlikely`: less than a
    quarter. `unknown`: between, or the prompt's own time cannot be told from the rest of a call, being under 5 ms
    or under a quarter of a short call.

    Args:
        short: of a call with next to nothing in it.
        cold: of calls whose prefix is new.
        warm: of calls with another end to the same prefix.

    Returns the sign, and the share saved, None where it cannot be told.
    """
    owed = median(cold) - short
    if owed < _LEAST_OWED or owed < short / 4:
        return Sign.UNKNOWN, None
    saved = (median(cold) - median(warm)) / owed
    if saved >= 0.5 and max(warm) < min(cold):
        return Sign.LIKELY, saved
    return (Sign.UNLIKELY if saved < 0.25 else Sign.UNKNOWN), saved


async def probe_prefix(subject: Subject) -> Finding:
    """Send long prompts that begin alike, each beginning being new, and compare first and further calls."""
    measure = _together if subject.shares else _one_by_one
    chars = PREFIX_CHARS
    for _ in range(SHRINKS):
        try:
            return await measure(subject, chars)
        except ContextOverflowError:  # comes of the first call
            chars //= 2
    return await measure(subject, chars)


async def _one_by_one(subject: Subject, chars: int) -> Finding:
    colds, warms = list[Completion](), list[Completion]()
    cold_times, warm_times = list[float](), list[float]()
    for _ in range(ROUNDS):
        nonce = subject.nonce()
        for turn in range(1 + WARM_CALLS):
            answer, seconds = await subject.timed(_long(subject, nonce, turn, chars))
            (warms if turn else colds).append(answer)
            (warm_times if turn else cold_times).append(seconds)
    details: dict[str, object] = {
        "prefix_tokens": _middle(colds, lambda answer: answer.usage.prompt_tokens),
        "cold_seconds": _rounded(cold_times),
        "warm_seconds": _rounded(warm_times),
        "ratio": _ratio(median(warm_times), median(cold_times)),
        "cached_tokens": [answer.usage.cached_tokens for answer in warms],
    }
    before, cached = (_middle(part, lambda answer: answer.usage.cached_tokens) for part in (colds, warms))
    hits = sum(answer.usage.cached_tokens > before for answer in warms)
    if hits:
        sign = Sign.YES if hits * 2 >= len(warms) else Sign.LIKELY
        text = f"the server took {cached:,} of {details['prefix_tokens']:,} prompt tokens from its cache"
        text += f" ({hits} of {len(warms)} calls)"
        return Finding("prefix_cache", sign, text, {**details, "by": "count"})
    sign, saved = judge_times(subject.short or 0.0, cold_times, warm_times)
    text = f"first call {took(median(cold_times))}, same beginning again {took(median(warm_times))}: "
    text += (
        "too little of that is the prompt's to tell" if saved is None else f"{saved:.0%} of the prompt's time saved"
    )
    text += "; the server counts no cached tokens"
    return Finding("prefix_cache", sign, text, {**details, "by": "time", "saved": _share(saved)})


async def _together(subject: Subject, chars: int) -> Finding:
    """For a back end that shares by itself: one call alone against several together, a new beginning each time."""
    alone, together = list[float](), list[float]()
    cached, length = 0, 0
    for _ in range(ROUNDS - 1):
        answer, seconds = await subject.timed(_long(subject, subject.nonce(), 0, chars))
        alone.append(seconds)
        length = answer.usage.prompt_tokens
        nonce = subject.nonce()
        requests = [_long(subject, nonce, turn, chars) for turn in range(TOGETHER)]
        began = subject.clock.now()
        answers = await subject.model.complete_many(requests)
        together.append(subject.clock.now() - began)
        cached = min(_completed(answer).usage.cached_tokens for answer in answers[1:])
    ratio = _ratio(median(together), median(alone) * TOGETHER)
    details: dict[str, object] = {
        "prefix_tokens": length,
        "alone_seconds": _rounded(alone),
        "together_seconds": _rounded(together),
        "calls_together": TOGETHER,
        "ratio": ratio,
        "cached_tokens": cached,
    }
    text = (
        f"{TOGETHER} calls together take {took(median(together))}, one alone {took(median(alone))}; {cached:,} of "
        f"{length:,} prompt tokens are computed once"
    )
    return Finding("prefix_cache", Sign.YES if cached else Sign.NO, text, {**details, "by": "construction"})


def _completed(answer: Completion | ChatError) -> Completion:
    if isinstance(answer, ChatError):
        raise answer
    return answer


def _long(subject: Subject, nonce: str, turn: int, chars: int) -> ChatRequest:
    lines = [f"Log {nonce}."]
    left = chars - len(lines[0])
    while left > 0:
        n = len(lines)
        lines.append(f"Note {n}: a {_THINGS[n * 5 % 8]} with the mark {n * 37 % 101} stood {_PLACES[n * 3 % 5]}.")
        left -= len(lines[-1]) + 1
    lines.append(f"What stood in note {turn + 2}? Answer with one word.")
    return user("\n".join(lines), max_tokens=subject.least)


def _middle(answers: list[Completion], figure: Callable[[Completion], int]) -> int:
    return int(median(figure(answer) for answer in answers))


def _rounded(seconds: list[float]) -> list[float]:
    return [round(value, 4) for value in seconds]


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 3) if whole > 0 else None


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
