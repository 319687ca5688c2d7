"""Is a shared prefix computed once? Read from the server's own count of cached tokens, else inferred from times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median

from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.probing_results import Finding, Sign, took
from rubricate.chat.probing_subject import Subject, user
from rubricate.errors import ChatError, ContextOverflowError, DeadlineError
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


@dataclass(slots=True)
class _Seen:
    """Answers and seconds so far, of whole rounds alone: first calls, and further ones or ones sent together."""

    firsts: list[Completion] = field(default_factory=list[Completion])
    others: list[Completion] = field(default_factory=list[Completion])
    first_times: list[float] = field(default_factory=list[float])
    other_times: list[float] = field(default_factory=list[float])

    def figures(self, one: str, other: str) -> dict[str, object]:
        """For the details of a finding."""
        return {
            "prefix_tokens": _middle(self.firsts, lambda answer: answer.usage.prompt_tokens),
            f"{one}_seconds": _rounded(self.first_times),
            f"{other}_seconds": _rounded(self.other_times),
            "cached_tokens": [answer.usage.cached_tokens for answer in self.others],
        }


async def _rounds(measure: Callable[[_Seen], Awaitable[object]], times: int) -> _Seen:
    """Measure so often; where the deadline comes in between, what is there counts, if it is anything."""
    seen = _Seen()
    for _ in range(times):
        try:
            await measure(seen)
        except DeadlineError:
            if not seen.firsts:
                raise
            break
    return seen


async def _one_by_one(subject: Subject, chars: int) -> Finding:
    async def measure(seen: _Seen) -> None:
        nonce = subject.nonce()
        answers = [await subject.timed(_long(subject, nonce, turn, chars)) for turn in range(1 + WARM_CALLS)]
        (first, seconds), *further = answers
        seen.firsts.append(first)
        seen.first_times.append(seconds)
        seen.others += [answer for answer, _ in further]
        seen.other_times += [taken for _, taken in further]

    seen = await _rounds(measure, ROUNDS)
    cold, warm = median(seen.first_times), median(seen.other_times)
    details = {**seen.figures("cold", "warm"), "ratio": _ratio(warm, cold)}
    before, cached = (
        _middle(part, lambda answer: answer.usage.cached_tokens) for part in (seen.firsts, seen.others)
    )
    hits = sum(answer.usage.cached_tokens > before for answer in seen.others)
    if hits:
        sign = Sign.YES if hits * 2 >= len(seen.others) else Sign.LIKELY
        text = f"the server took {cached:,} of {details['prefix_tokens']:,} prompt tokens from its cache"
        text += f" ({hits} of {len(seen.others)} calls)"
        return Finding("prefix_cache", sign, text, {**details, "by": "count"})
    sign, saved = judge_times(subject.short or 0.0, seen.first_times, seen.other_times)
    text = f"first call {took(cold)}, same beginning again {took(warm)}: "
    text += (
        "too little of that is the prompt's to tell" if saved is None else f"{saved:.0%} of the prompt's time saved"
    )
    if len(seen.firsts) < ROUNDS:
        sign = Sign.UNKNOWN
        text += f"; the deadline came after {len(seen.firsts)} of {ROUNDS} rounds"
    text += "; the server counts no cached tokens"
    return Finding("prefix_cache", sign, text, {**details, "by": "time", "saved": _share(saved)})


async def _together(subject: Subject, chars: int) -> Finding:
    """For a back end that shares by itself: one call alone against several together, a new beginning each time."""

    async def measure(seen: _Seen) -> None:
        first, seconds = await subject.timed(_long(subject, subject.nonce(), 0, chars))
        nonce = subject.nonce()
        requests = [_long(subject, nonce, turn, chars) for turn in range(TOGETHER)]
        began = subject.clock.now()
        answers = [_completed(answer) for answer in await subject.model.complete_many(requests)]
        seen.firsts.append(first)
        seen.first_times.append(seconds)
        seen.others += answers[1:]
        seen.other_times.append(subject.clock.now() - began)

    seen = await _rounds(measure, ROUNDS - 1)
    alone, together = median(seen.first_times), median(seen.other_times)
    cached = min(answer.usage.cached_tokens for answer in seen.others)
    details = {**seen.figures("alone", "together"), "ratio": _ratio(together, alone * TOGETHER)}
    text = f"{TOGETHER} calls together take {took(together)}, one alone {took(alone)}; "
    text += f"{cached:,} of {details['prefix_tokens']:,} prompt tokens are computed once"
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
