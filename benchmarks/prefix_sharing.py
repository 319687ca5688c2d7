"""CPU time and score differences of ten criteria on one response: ten prompts, one plain batch, one shared prefix.

Run `python benchmarks/prefix_sharing.py` (about ten minutes) or with `--quick` (about one).
All figures of a row come from the same run and the same prompts. "Separate" is ten prompts one after another.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rubricate.chat.base import ChatRequest, Completion, Message
from rubricate.chat.local_engine import Engine, open_engine
from rubricate.chat.local_host import LocalOptions, Work
from rubricate.chat.local_source import resolve
from rubricate.errors import ChatError

CRITERIA = (
    "The response answers the question that was asked.",
    "The response names at least one concrete example.",
    "The response is written in complete sentences.",
    "The response mentions the weather, the sea or the sky at some point.",
    "The response avoids unexplained technical terms, so that a newcomer can follow it without looking things up.",
    "The response ends with a summary.",
    "The response says where its facts come from.",
    "The response does not praise itself.",
    "The response is polite.",
    "The response gives at least two reasons for its main claim, and each of them supports it.",
)
STORY = (
    "The harbour was quiet that morning, and the boats lay still. A woman carried two baskets of fish up the steps "
    "and counted the coins in her hand. Later the wind turned to the north, as it often does in spring, and "
    "the fishermen mended their nets in the shade of the old customs house. "
)
YES = ("yes", "true")
NO = ("no", "false")


@dataclass(frozen=True, slots=True)
class Row:
    """One prefix length in one dtype: CPU seconds of the three ways, and how far two of them are from the first."""

    dtype: str
    prefix: int
    separate: float
    batch: float
    shared: float
    batch_gaps: tuple[float, float]
    shared_gaps: tuple[float, float]
    scores: dict[str, list[float]]


def ask(engine: Engine, requests: Sequence[ChatRequest], shared: bool) -> list[Completion]:
    """The answers to requests with a shared prefix, or to a burst of single ones."""
    answers: dict[int, list[Completion | ChatError]] = {}

    def fail(error: Exception) -> None:
        raise error

    groups = [list(requests)] if shared else [[request] for request in requests]
    engine.run(
        [
            Work(group, shared, lambda: True, lambda given, place=place: answers.update({place: given}), fail)
            for place, group in enumerate(groups)
        ]
    )
    flat = [answer for place in sorted(answers) for answer in answers[place]]
    return [answer for answer in flat if isinstance(answer, Completion)]


def requests_with_prefix(engine: Engine, tokens: int) -> list[ChatRequest]:
    """Ten requests that share about `tokens` tokens: instructions and response first, the criterion last."""
    head = "Does the response meet the criterion? Answer with one word, yes or no.\n\nResponse: "
    words = (STORY * 40).split()
    low, high = 0, len(words)
    while low < high:  # the number of words whose prompt is as long as wanted
        middle = (low + high) // 2
        request = ChatRequest((Message("user", head + " ".join(words[:middle])),), max_tokens=1)
        low, high = (middle + 1, high) if len(engine.codec.encode(request)) < tokens + 4 else (low, middle)
    response = " ".join(words[:low])
    return [
        ChatRequest(
            (Message("user", f"{head}{response}\n\nCriterion: {criterion}"),), max_tokens=1, top_logprobs=300
        )
        for criterion in CRITERIA
    ]


def timed(work: Callable[[], list[Completion]], repeats: int) -> tuple[float, list[Completion]]:
    """CPU seconds of the whole process (the best of some runs), and the answers."""
    best, answers = math.inf, list[Completion]()
    for _ in range(repeats):
        start = time.process_time()
        answers = work()
        best = min(best, time.process_time() - start)
    return best, answers


def score(answer: Completion) -> float:
    """P(yes) over P(yes) + P(no), all spellings summed."""
    top = answer.logprobs[0].top if answer.logprobs else ()
    mass = {
        words: sum(math.exp(value) for token, value in top if token.strip().lower() in words) for words in (YES, NO)
    }
    return mass[YES] / (mass[YES] + mass[NO])


def by_piece(answer: Completion) -> dict[str, float]:
    """Log-probabilities of the pieces of text that stand for one token alone, likeliest first."""
    top = answer.logprobs[0].top if answer.logprobs else ()
    count = Counter(piece for piece, _ in top)
    return {piece: value for piece, value in top if count[piece] == 1}


def gaps(answers: Sequence[Completion], separate: Sequence[Completion]) -> tuple[float, float]:
    """Largest difference of a score, and of a log-probability among the twenty likeliest tokens of an answer."""
    pairs = list(zip(answers, separate, strict=True))
    scores = [abs(score(left) - score(right)) for left, right in pairs]
    tables = [(by_piece(left), by_piece(right)) for left, right in pairs]
    logprobs = [abs(ours[piece] - theirs[piece]) for ours, theirs in tables for piece in list(theirs)[:20]]
    return max(scores), max(logprobs)


def measure(engine: Engine, dtype: str, tokens: int, repeats: int) -> Row:
    """One row of the table."""
    requests = requests_with_prefix(engine, tokens)
    shared, together = timed(lambda: ask(engine, requests, True), repeats)
    batch, batched = timed(lambda: ask(engine, requests, False), repeats)
    separate, alone = timed(lambda: [ask(engine, [request], False)[0] for request in requests], repeats)
    prefix = together[1].usage.cached_tokens
    ways = {"separate": alone, "batch": batched, "shared": together}
    scores = {way: [score(answer) for answer in answers] for way, answers in ways.items()}
    return Row(dtype, prefix, separate, batch, shared, gaps(batched, alone), gaps(together, alone), scores)


HEAD = (
    f"{'dtype':<9} {'prefix':>6} | {'separate':>8} {'batch':>7} {'shared':>7} | {'separate/shared':>15} "
    f"{'batch/shared':>12} | {'score: batch':>12} {'shared':>9} | {'logprob: batch':>14} {'shared':>9}"
)


def line(row: Row) -> str:
    """A row of the table."""
    return (
        f"{row.dtype:<9} {row.prefix:>6} | {row.separate:>8.2f} {row.batch:>7.2f} {row.shared:>7.2f} | "
        f"{row.separate / row.shared:>15.1f} {row.batch / row.shared:>12.1f} | {row.batch_gaps[0]:>12.1e} "
        f"{row.shared_gaps[0]:>9.1e} | {row.batch_gaps[1]:>14.1e} {row.shared_gaps[1]:>9.1e}"
    )


def main() -> None:
    """Print the table, and what of it reaches the design's figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="what rubricate.chat.local.load_local takes")
    parser.add_argument("--prefixes", type=int, nargs="+", default=[64, 250, 500, 1000, 2000])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=1, help="more wait for each other, at full load")
    parser.add_argument("--repeats", type=int, default=1, help="the best of so many runs counts")
    parser.add_argument("--quick", action="store_true", help="prefixes of 64 and 500 tokens only")
    options = parser.parse_args()
    prefixes = [64, 500] if options.quick else options.prefixes
    print(f"{len(CRITERIA)} criteria on one response, {options.model}, {options.threads} threads, on the CPU")
    print("CPU seconds of the process; differences are the largest from separate prompts in the same dtype\n")
    print(HEAD)
    rows: list[Row] = []
    for dtype in options.dtypes:
        settings = LocalOptions(dtype=dtype, device="cpu", threads=options.threads)
        engine = open_engine(resolve(options.model), settings, f"local:{options.model}")
        for tokens in prefixes:
            ask(engine, requests_with_prefix(engine, 64)[:2], True)  # the model's first pass is slower
            rows.append(measure(engine, dtype, tokens, options.repeats))
            print(line(rows[-1]), flush=True)
    print()
    for row in rows:
        if row.dtype == "float32":
            exact = "yes" if row.shared_gaps[1] <= 1e-4 else "NO"
            print(f"prefix {row.prefix}: within 1e-4 in fp32: {exact}; CPU time 1/{row.separate / row.shared:.1f}")
    print_rounding(rows)


def print_rounding(rows: Sequence[Row]) -> None:
    """How far each way's scores in other dtypes are from the scores of separate prompts in fp32."""
    exact = {row.prefix: row for row in rows if row.dtype == "float32"}
    for dtype in sorted({row.dtype for row in rows} - {"float32"}):
        found = [(exact[row.prefix], row) for row in rows if row.dtype == dtype and row.prefix in exact]
        for way in ("separate", "batch", "shared"):
            moved = [
                abs(ours - theirs)
                for true, row in found
                for ours, theirs in zip(row.scores[way], true.scores["separate"], strict=True)
            ]
            if not moved:
                continue
            mean, most = sum(moved) / len(moved), max(moved)
            print(f"{dtype} {way:<8}: scores differ from fp32 by {mean:.4f} in the mean, {most:.4f} at most")


if __name__ == "__main__":
    main()
