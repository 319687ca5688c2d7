"""Prefix caching: by the server's count, by times, and by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.doctor.conftest import TimedModel

from rubricate.chat import ChatRequest, Completion, connect
from rubricate.chat.probing import Sign, probe_model
from rubricate.chat.probing_prefix import judge_times
from rubricate.chat.timing import ManualClock
from rubricate.errors import ChatError, DeadlineError
from rubricate.types import Usage

SECONDS = st.floats(0.001, 10.0)


@pytest.mark.parametrize(
    ("short", "cold", "warm", "sign"),
    [
        (0.05, [1.0, 1.1, 1.2], [0.1, 0.12, 0.1, 0.1, 0.15, 0.1], Sign.LIKELY),
        (0.05, [1.0, 1.1, 1.2], [1.0, 1.1, 1.2, 0.95, 1.0, 1.1], Sign.UNLIKELY),
        (0.05, [1.0, 1.1, 1.2], [0.7, 0.7, 0.7, 0.7, 0.7, 0.7], Sign.UNKNOWN),  # something is saved, not half
        (0.05, [1.0, 1.1, 1.2], [0.1, 0.1, 0.1, 0.1, 0.1, 1.05], Sign.UNKNOWN),  # the two overlap
        (0.50, [0.52, 0.53, 0.51], [0.50, 0.5, 0.5, 0.5, 0.5, 0.5], Sign.UNKNOWN),  # the network takes all the time
        (0.0001, [0.001, 0.001, 0.001], [0.0001] * 6, Sign.UNKNOWN),  # too quick to trust the clock
    ],
)
def test_the_rule(short: float, cold: list[float], warm: list[float], sign: Sign) -> None:
    assert judge_times(short, cold, warm)[0] is sign


@given(SECONDS, st.lists(SECONDS, min_size=3, max_size=3), st.lists(SECONDS, min_size=6, max_size=6))
def test_never_likely_when_a_further_call_was_as_slow_as_a_first(
    short: float, cold: list[float], warm: list[float]
) -> None:
    sign, saved = judge_times(short, cold, warm)
    if max(warm) >= min(cold):
        assert sign is not Sign.LIKELY
    assert (saved is None) <= (sign is Sign.UNKNOWN)


async def test_a_cache_shows_in_times(clock: ManualClock) -> None:
    report = await probe_model(TimedModel(clock, caches=True), clock=clock)
    found = report.finding("prefix_cache")
    assert found.sign is Sign.LIKELY
    assert found.details["by"] == "time"
    assert report.finding("latency").details["median_seconds"] == pytest.approx(0.05, abs=0.005)


async def test_no_cache_contradicts_a_claim_of_one(clock: ManualClock) -> None:
    report = await probe_model(TimedModel(clock, caches=False), clock=clock)
    assert report.finding("prefix_cache").sign is Sign.UNLIKELY
    assert any("warm_tokens=256" in text for text in report.contradictions)


async def test_every_first_call_has_a_beginning_of_its_own(clock: ManualClock) -> None:
    """Else the second round would find the first one's prefix, and caching would look the same in all calls."""
    model = TimedModel(clock, caches=True)
    await probe_model(model, clock=clock)
    await probe_model(model, clock=clock)
    long = [text for text in model.known if len(text) > 1000]
    assert len({text[:40] for text in long}) == 6


async def test_a_deadline_in_the_middle_leaves_what_was_measured(clock: ManualClock) -> None:
    class Late(TimedModel):
        long = 0

        async def complete(self, request: ChatRequest) -> Completion:
            self.long += len(request.text()) > 1000
            if len(request.text()) > 1000 and self.long > 4:
                raise DeadlineError("late")
            return await super().complete(request)

    report = await probe_model(Late(clock, caches=True), clock=clock)
    found = report.finding("prefix_cache")
    assert found.sign is Sign.UNKNOWN  # one round says too little
    assert "after 1 of 3 rounds" in found.text
    assert found.details["cold_seconds"] != []


class Sharing(TimedModel):
    """Computes a common prefix once for requests that come together, and only then."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock, caches=False)

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        first = await self.complete(requests[0])
        size = first.usage.prompt_tokens
        return [first, *(Completion("fine", usage=Usage(1, size, 1, size - 10)) for _ in requests[1:])]


async def test_a_back_end_that_shares_by_itself_is_asked_together(clock: ManualClock) -> None:
    report = await probe_model(Sharing(clock), clock=clock)
    found = report.finding("prefix_cache")
    assert (found.sign, found.details["by"]) == (Sign.YES, "construction")
    assert found.details["ratio"] == pytest.approx(0.25)
    assert report.usage.calls <= report.bound.calls


async def test_a_tiny_local_model(models: Callable[[str], Path]) -> None:
    report = await probe_model(connect(f"local:{models('llama')}?dtype=float32&device=cpu"))
    assert report.answers
    assert report.context == 4096
    # a byte-level tokenizer takes several times the tokens: the prompt was halved until it fitted
    found = report.finding("prefix_cache")
    assert found.sign is Sign.YES, found
    assert report.finding("logprobs").details["came"] == 20
    assert report.finding("repeatable").sign in (Sign.YES, Sign.UNKNOWN)
    assert report.finding("json_schema").sign is Sign.NO
    assert not [text for text in report.contradictions if "json_schema" in text]
