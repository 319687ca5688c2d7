"""What the answer cache and a recording cost: CPU time a call, over a model that answers at once.

400 calls as a judge makes them (50 prompts of about 4,000 characters, 8 endings each, answers of 400 characters
with 20 log-probabilities), in batches of 8 and one by one, 32 at a time. CPU seconds are the process's, the writing
thread included; what the same calls cost without cache and recording is taken off.

    python benchmarks/answer_cache.py
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from _measure import table

from rubricate.chat import (
    AnswerCache,
    ChatModel,
    ChatRequest,
    Completion,
    Message,
    Recording,
    TokenLogprob,
    connect,
)
from rubricate.chat.mock import MockModel
from rubricate.types import Usage

PROMPTS, ENDINGS, AT_ONCE = 50, 8, 32
CALLS = PROMPTS * ENDINGS
AIM = 0.1
"""Milliseconds of CPU a call that a cache may cost."""
ANSWER = Completion(
    "because " * 50,
    usage=Usage(1, 1000, 100),
    logprobs=tuple(TokenLogprob(f"t{n}", -0.1234567 * n) for n in range(20)),
)


def answer(request: ChatRequest) -> Completion:
    """The model's script."""
    return ANSWER


def batches() -> list[list[ChatRequest]]:
    """The calls, those with the same beginning together."""
    return [
        [
            ChatRequest((Message("user", f"prompt {n} " + "words " * 660 + f"criterion {k}"),))
            for k in range(ENDINGS)
        ]
        for n in range(PROMPTS)
    ]


async def ask(model: ChatModel, jobs: Sequence[Sequence[ChatRequest]]) -> None:
    """Ask for all, `AT_ONCE` jobs at a time."""
    source = iter(jobs)

    async def lane() -> None:
        for job in source:
            answers = await model.complete_many(job)
            assert all(isinstance(answer, Completion) for answer in answers)

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))


def cpu(make: Callable[[], ChatModel], jobs: Sequence[Sequence[ChatRequest]], repeat: int) -> float:
    """Milliseconds of CPU a call, the least of the runs."""
    found: list[float] = []
    for _ in range(repeat):
        model = make()
        asyncio.run(ask(model, jobs[:1]))  # opens what is to be opened
        start = time.process_time()
        asyncio.run(ask(model, jobs[1:]))
        found.append((time.process_time() - start) * 1000 / (CALLS - len(jobs[0])))
    return min(found)


def rows(jobs: Sequence[Sequence[ChatRequest]], folder: Path, repeat: int) -> list[tuple[str, float]]:
    """What stands in front of the model, and the CPU time a call."""
    count = iter(range(10**6))

    def bare() -> ChatModel:
        return connect(MockModel(answer))

    def empty() -> ChatModel:
        return connect(MockModel(answer), cache=AnswerCache(folder / f"{next(count)}.sqlite"))

    def recorded() -> ChatModel:
        return connect(MockModel(answer), record=Recording(folder / f"{next(count)}.jsonl"))

    full_path = folder / f"full-{len(jobs)}.sqlite"
    asyncio.run(ask(connect(MockModel(answer), cache=AnswerCache(full_path)), jobs))

    def full() -> ChatModel:
        return connect(MockModel(answer), cache=AnswerCache(full_path))

    kinds = [("nothing", bare), ("cache, every call a miss", empty), ("cache, every call a hit", full)]
    return [(name, cpu(make, jobs, repeat)) for name, make in [*kinds, ("recording", recorded)]]


def main() -> int:
    """Print the table; 1 when a cache costs more than it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each kind; the least counts (default 5)")
    options = parser.parse_args()
    together = batches()
    apart = [[request] for job in together for request in job]
    with tempfile.TemporaryDirectory() as folder:
        in_batches = rows(together, Path(folder), options.repeat)
        one_by_one = rows(apart, Path(folder), options.repeat)
    base, single = in_batches[0][1], one_by_one[0][1]
    lines = [
        (name, f"{cost:.3f}", f"{cost - base:+.3f}", f"{alone:.3f}", f"{alone - single:+.3f}")
        for (name, cost), (_, alone) in zip(in_batches, one_by_one, strict=True)
    ]
    print(table(("In front of the model", "batches of 8, ms", "more", "one by one, ms", "more"), lines))
    worst = max(cost - base for name, cost in in_batches if name.startswith("cache"))
    print(f"\n- a cache costs {worst:.3f} ms of CPU a call in a judge's batches (<= {AIM} ms)")
    return int(worst > AIM)


if __name__ == "__main__":
    sys.exit(main())
