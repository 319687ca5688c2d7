"""What sharing a prefix saves: on the model in this process, and with `--server` on a vLLM server.

Local: CPU time, memory and score differences of ten criteria on one response: ten prompts, one plain batch, one
shared prefix; and of a group of responses to one prompt: separate prompts, a shared prefix a response, and one tree
of prefixes. Run `python benchmarks/prefix_sharing.py` (half an hour) or with `--quick` (about two minutes).
All figures of a row come from the same run and the same prompts. "Separate" is the prompts one after another.
Nothing that was kept from one way helps another. Memory is what the process holds at most while a way runs, more
than before it (Linux only).

Server: `python scripts/vllm_server.py python benchmarks/prefix_sharing.py --server` is server_sharing.py beside a
server of its own; `--server URL` takes one that runs. Further options are those of server_sharing.py.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import server_sharing
from _measure import peak_mb

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
    """One prefix length in one dtype: CPU seconds and MB of the three ways, how far two of them are from the first,
    and the MB of keys and values that the shared prefix leaves behind for later calls."""

    dtype: str
    prefix: int
    separate: float
    batch: float
    shared: float
    batch_gaps: tuple[float, float]
    shared_gaps: tuple[float, float]
    scores: dict[str, list[float]]
    peaks: dict[str, float]
    kept: float


@dataclass(frozen=True, slots=True)
class Timed:
    """What a way of asking took: CPU seconds, MB at most over what was held before, its answers."""

    cpu: float
    peak: float
    answers: list[Completion]


def ask(engine: Engine, calls: Sequence[Sequence[ChatRequest]], sharing: bool) -> list[Completion]:
    """The answers to calls that wait together, with common prefixes computed once or in plain batches."""
    answers: dict[int, list[Completion | ChatError]] = {}

    def fail(error: Exception) -> None:
        raise error

    engine.store.clear()
    known = engine.sharing
    engine.sharing = known if sharing else False
    engine.run(
        [
            Work(call, lambda: True, lambda given, place=place: answers.update({place: given}), fail)
            for place, call in enumerate(calls)
        ]
    )
    if not sharing:
        engine.sharing = known
    flat = [answer for place in sorted(answers) for answer in answers[place]]
    return [answer for answer in flat if isinstance(answer, Completion)]


def words_of_length(engine: Engine, head: str, tokens: int) -> str:
    """So many words of the story that a prompt of `head` and them has about `tokens` tokens."""
    words = (STORY * 40).split()
    low, high = 0, len(words)
    while low < high:
        middle = (low + high) // 2
        request = ChatRequest((Message("user", head + " ".join(words[:middle])),), max_tokens=1)
        low, high = (middle + 1, high) if len(engine.codec.encode(request)) < tokens + 4 else (low, middle)
    return " ".join(words[:low])


def requests_with_prefix(engine: Engine, tokens: int) -> list[ChatRequest]:
    """Ten requests that share about `tokens` tokens: instructions and response first, the criterion last."""
    head = "Does the response meet the criterion? Answer with one word, yes or no.\n\nResponse: "
    response = words_of_length(engine, head, tokens)
    return [
        ChatRequest(
            (Message("user", f"{head}{response}\n\nCriterion: {criterion}"),), max_tokens=1, top_logprobs=300
        )
        for criterion in CRITERIA
    ]


def timed(work: Callable[[], list[Completion]], repeats: int) -> Timed:
    """CPU seconds of the whole process and its memory (the least of some runs), and the answers."""
    best, peak, answers = math.inf, math.inf, list[Completion]()
    for _ in range(repeats):
        before = forgotten_peak()
        start = time.process_time()
        answers = work()
        best = min(best, time.process_time() - start)
        peak = min(peak, peak_mb() - before)
    return Timed(best, peak, answers)


def forgotten_peak() -> float:
    """Give freed memory back and let the peak begin anew. Returns the MB held now; NaN where not on Linux."""
    try:
        # or memory that one way has left behind would hide what the next one takes
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return math.nan
    return peak_mb()


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
    shared = timed(lambda: ask(engine, [requests], True), repeats)
    kept = engine.store.bytes / 2**20
    batch = timed(lambda: ask(engine, [requests], False), repeats)
    alone = timed(lambda: [ask(engine, [[request]], False)[0] for request in requests], repeats)
    ways = {"separate": alone, "batch": batch, "shared": shared}
    return Row(
        dtype,
        shared.answers[1].usage.cached_tokens,
        alone.cpu,
        batch.cpu,
        shared.cpu,
        gaps(batch.answers, alone.answers),
        gaps(shared.answers, alone.answers),
        {way: [score(answer) for answer in found.answers] for way, found in ways.items()},
        {way: found.peak for way, found in ways.items()},
        kept,
    )


def group_calls(engine: Engine, responses: int, criteria: int, tokens: int) -> list[list[ChatRequest]]:
    """A call a response: a prompt of about `tokens` tokens, responses of about 200, ten criteria at the end."""
    head = "Does the response meet the criterion? Answer with one word, yes or no.\n\nTask: "
    task = words_of_length(engine, head, tokens)
    calls: list[list[ChatRequest]] = []
    for number in range(responses):
        words = (STORY * 3).split()
        reply = f"This is answer number {number}. " + " ".join(words[number:] + words[:number])
        shared = f"{head}{task}\n\nResponse: {reply}\n\nCriterion: "
        calls.append(
            [
                ChatRequest((Message("user", shared + text),), max_tokens=1, top_logprobs=300)
                for text in CRITERIA[:criteria]
            ]
        )
    return calls


def measure_group(engine: Engine, dtype: str, calls: Sequence[Sequence[ChatRequest]]) -> dict[str, list[float]]:
    """Print a group's times and differences. Returns each way's scores."""
    flat = [request for call in calls for request in call]
    ask(engine, [calls[0][:2]], True)
    ways: dict[str, Callable[[], list[Completion]]] = {
        "separate": lambda: [ask(engine, [[request]], False)[0] for request in flat],
        "batch": lambda: ask(engine, calls, False),
        "response": lambda: [answer for call in calls for answer in ask(engine, [call], True)],
        "tree": lambda: ask(engine, calls, True),
    }
    found = {name: timed(way, 1) for name, way in ways.items()}
    alone = found["separate"]
    print(f"\n{dtype}: {len(calls)} responses x {len(calls[0])} criteria, CPU seconds")
    for name, way in found.items():
        computed = sum(answer.usage.prompt_tokens - answer.usage.cached_tokens for answer in way.answers)
        moved, logprob = gaps(way.answers, alone.answers)
        print(
            f"{name:<9} {way.cpu:>8.2f} s, 1/{alone.cpu / way.cpu:<5.1f} {computed:>7} tokens computed, "
            f"{way.peak:.0f} MB, score {moved:.1e}, logprob {logprob:.1e} from separate",
            flush=True,
        )
    return {name: [score(answer) for answer in way.answers] for name, way in found.items()}


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


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """The options, and those that are for the server's half."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--server",
        nargs="?",
        const=os.environ.get(server_sharing.ADDRESS, ""),
        metavar="URL",
        help=f"measure this vLLM server (or the one of ${server_sharing.ADDRESS}) and not the local model",
    )
    parser.add_argument("--model", default="smollm2", help="what rubricate.chat.local.load_local takes")
    parser.add_argument("--prefixes", type=int, nargs="*", default=[64, 250, 500, 1000, 2000])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=1, help="more wait for each other, at full load")
    parser.add_argument("--repeats", type=int, default=1, help="the best of so many runs counts")
    parser.add_argument(
        "--group", type=int, nargs=3, default=[8, 10, 500], help="responses (0: none), criteria, prompt tokens"
    )
    parser.add_argument(
        "--quick", action="store_true", help="prefixes of 64 and 500 tokens, a group of 4 x 5, only"
    )
    options, others = parser.parse_known_args()
    if others and options.server is None:
        parser.error(f"no such option of the local half: {' '.join(others)}")
    return options, others


def main() -> None:
    """Print the table, and what of it reaches the design's figures."""
    options, others = arguments()
    if options.server is not None:
        url = ["--url", options.server] if options.server else []
        server_sharing.main([*url, *(["--quick"] if options.quick else []), *others])
        return
    measure_local(options)


def measure_local(options: argparse.Namespace) -> None:
    """The local model's half."""
    prefixes = [64, 500] if options.quick else options.prefixes
    group = [4, 5, 250] if options.quick else options.group
    groups: dict[str, dict[str, list[float]]] = {}
    print(f"{options.model}, {options.threads} threads, on the CPU, CPU seconds of the process")
    print("differences are the largest from separate prompts in the same dtype")
    if prefixes:
        print(f"\n{len(CRITERIA)} criteria on one response\n\n{HEAD}", flush=True)
    rows: list[Row] = []
    for dtype in options.dtypes if prefixes else ():
        engine = opened(options, dtype)
        for tokens in prefixes:
            ask(engine, [requests_with_prefix(engine, 64)[:2]], True)  # the model's first pass is slower
            rows.append(measure(engine, dtype, tokens, options.repeats))
            print(line(rows[-1]), flush=True)
    for dtype in options.dtypes if group[0] else ():
        engine = opened(options, dtype)
        groups[dtype] = measure_group(engine, dtype, group_calls(engine, *group))
    print()
    for row in rows:
        if row.dtype == "float32":
            exact = "yes" if row.shared_gaps[1] <= 1e-4 else "NO"
            print(f"prefix {row.prefix}: within 1e-4 in fp32: {exact}; CPU time 1/{row.separate / row.shared:.1f}")
    print_memory(rows)
    print_rounding(rows)
    print_flips(groups)


def opened(options: argparse.Namespace, dtype: str) -> Engine:
    """The model in this dtype."""
    settings = LocalOptions(dtype=dtype, device="cpu", threads=options.threads)
    return open_engine(resolve(options.model), settings, f"local:{options.model}")


def print_memory(rows: Sequence[Row]) -> None:
    """What each way holds at most."""
    for row in rows:
        each = ", ".join(f"{way} {peak:.0f}" for way, peak in row.peaks.items())
        print(f"{row.dtype}, prefix {row.prefix}: MB at most: {each}; {row.kept:.1f} MB kept for later calls")


def print_flips(groups: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """How far a group's scores in other dtypes are from separate prompts in fp32, and how many cross 0.5."""
    exact = groups.get("float32", {}).get("separate", [])
    for dtype, ways in groups.items():
        for way, scores in ways.items():
            if exact and dtype != "float32":
                print(f"group, {dtype} {way:<8}: {moved_by(scores, exact)}")


def print_rounding(rows: Sequence[Row]) -> None:
    """How far each way's scores in other dtypes are from separate prompts in fp32: by prefix, and in all."""
    exact = {row.prefix: row.scores["separate"] for row in rows if row.dtype == "float32"}
    for dtype in sorted({row.dtype for row in rows} - {"float32"}):
        found = [row for row in rows if row.dtype == dtype and row.prefix in exact]
        for some in [*([row] for row in found if len(found) > 1), found]:
            name = f"prefix {some[0].prefix}" if len(some) == 1 else f"{len(some)} prefixes"
            for way in ("separate", "batch", "shared") if some else ():
                ours = [score for row in some for score in row.scores[way]]
                theirs = [score for row in some for score in exact[row.prefix]]
                print(f"{name}, {dtype} {way:<8}: {moved_by(ours, theirs)}")


def moved_by(scores: Sequence[float], exact: Sequence[float]) -> str:
    """How far scores are from the exact ones, in words."""
    pairs = list(zip(scores, exact, strict=True))
    moved = [abs(ours - theirs) for ours, theirs in pairs]
    flips = sum((ours >= 0.5) != (theirs >= 0.5) for ours, theirs in pairs)
    mean = sum(moved) / len(moved)
    return f"{mean:.4f} from fp32 in the mean, {max(moved):.4f} at most, {flips} of {len(moved)} verdicts flip"


if __name__ == "__main__":
    main()
