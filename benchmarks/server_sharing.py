"""Ten criteria a response on a vLLM server, criterion first against response first: computed tokens and wall time.

Run it beside a server, `python scripts/vllm_server.py python benchmarks/server_sharing.py` (`make test-vllm` makes
the environment), or with `--quick` for a few minutes. The same judge asks the same questions in both orders. Every
arm begins with an empty prefix cache; arms alternate, block by block. "Computed" is what the server itself counts
(vllm:request_prefill_kv_computed_tokens), and the ratio of a block is that of its own arms.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import median

import numpy as np
from _measure import table
from numpy.typing import NDArray

from rubricate.chat import Limits, connect
from rubricate.chat.base import ChatModel, ChatRequest, Completion, Message
from rubricate.chat.limited import Layer
from rubricate.data.bundled import load_demo
from rubricate.data.records import Rollout
from rubricate.errors import ChatError
from rubricate.judges import LogprobJudge
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import parse_rubric
from rubricate.types import Verdict

CRITERIA = (
    "It answers the question.",
    "It names a concrete example.",
    "It is written in complete sentences.",
    "It mentions the weather.",
    "It avoids technical terms.",
    "It ends with a summary.",
    "It says where its facts come from.",
    "It does not praise itself.",
    "It is polite.",
    "It gives two reasons for its main claim.",
)
RUBRIC = Rubric(id="benchmark", criteria=tuple(Criterion(id=f"c{n}", text=text) for n, text in enumerate(CRITERIA)))
WORDS = (
    "the a harbour boat woman basket fish step coin hand wind north spring shade house old quiet carried counted "
    "turned mended under over near with and but while every small grey later"
).split()
ARMS = ("criterion first", "response first, at once", "response first, warmed")
REASON_TOKENS = 60
ADDRESS = "RUBRICATE_VLLM_URL"  # where scripts/vllm_server.py says what the server's address is


class CriterionFirst(Layer):
    """The model behind it, asked with the criterion ahead of what all criteria share. The words are the same."""

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        return await self.model.complete_many([turned(request) for request in requests])


def turned(request: ChatRequest) -> ChatRequest:
    """The request with its last paragraph, which asks about the criterion, moved to the front."""
    *before, last = request.messages
    shared, _, item = last.content.rpartition("\n\nStatement:")
    return replace(request, messages=(*before, Message(last.role, f"Statement:{item.rstrip()}\n\n{shared}")))


class Recorder(Layer):
    """Keeps requests instead of sending them."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model)
        self.requests: list[ChatRequest] = []

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        self.requests += requests
        return [ChatError("not sent", provider=self.name) for _ in requests]


@dataclass(frozen=True, slots=True)
class Run:
    """One arm on one block of responses."""

    prompt: float
    computed: float
    wall: float
    cpu: float


class Server:
    """The server's counters and its cache."""

    def __init__(self, url: str) -> None:
        self.root = url.removesuffix("/v1")

    def cpu_seconds(self) -> float:
        """CPU time of all its processes so far, 0 where it runs elsewhere. Other programs disturb it less."""
        group, total = os.environ.get("RUBRICATE_VLLM_PID", ""), 0
        for stat in Path("/proc").glob("[0-9]*/stat") if group else ():
            with contextlib.suppress(OSError):  # a process that has just ended
                fields = stat.read_text().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12]) if fields[2] == group else 0
        return total / os.sysconf("SC_CLK_TCK")

    def block(self) -> str:
        """Tokens of a cache block: only whole ones are shared."""
        found = re.search(r'block_size="(\d+)"', self._metrics())
        return found[1] if found else "an unknown number of"

    def _metrics(self) -> str:
        with urllib.request.urlopen(f"{self.root}/metrics", timeout=60) as reply:
            return reply.read().decode()

    def counted(self) -> tuple[float, float]:
        """Prompt tokens taken and computed since it started."""
        text = self._metrics()
        names = ("prompt_tokens_total", "request_prefill_kv_computed_tokens_sum")
        totals = [
            sum(float(value) for value in re.findall(rf"^vllm:{name}\{{[^}}]*\}} (\S+)$", text, re.MULTILINE))
            for name in names
        ]
        return totals[0], totals[1]

    def forget(self) -> None:
        """Empty the prefix cache (the server must run in vLLM's dev mode, as scripts/vllm_server.py starts it)."""
        request = urllib.request.Request(f"{self.root}/reset_prefix_cache", method="POST")
        with urllib.request.urlopen(request, timeout=60):
            return


def story(seed: int, tokens: int) -> str:
    """Sentences of common words, about that many tokens."""
    draw = random.Random(seed)
    sentences = [" ".join(draw.choices(WORDS, k=12)).capitalize() + "." for _ in range(round(tokens / 13.2))]
    return " ".join(sentences)


async def asked(model: ChatModel, rollouts: Sequence[Rollout]) -> list[list[ChatRequest]]:
    """What the log-probability judge asks of each response."""
    groups: list[list[ChatRequest]] = []
    for rollout in rollouts:
        recorder = Recorder(model)
        await LogprobJudge(recorder, prefill="").judge(rollout, RUBRIC)
        groups.append(recorder.requests)
    return groups


def with_reasons(request: ChatRequest) -> ChatRequest:
    """The request, answered with a text of fixed length."""
    return replace(request, max_tokens=REASON_TOKENS, top_logprobs=None, extra={"min_tokens": REASON_TOKENS})


async def run_arm(server: Server, model: ChatModel, groups: Sequence[Sequence[ChatRequest]]) -> Run:
    """Send all groups at once through the model's limiter; every request must be answered."""
    server.forget()
    before, cpu, start = server.counted(), server.cpu_seconds(), time.perf_counter()
    answers = await asyncio.gather(*(model.complete_many(group) for group in groups))
    wall, after = time.perf_counter() - start, server.counted()
    for answer in (answer for group in answers for answer in group):
        if isinstance(answer, ChatError):
            raise answer
    return Run(after[0] - before[0], after[1] - before[1], wall, server.cpu_seconds() - cpu)


async def compare(url: str, responses: int, block: int, tokens: int, *, reasons: bool) -> None:
    """Print the table of one kind of answer."""
    server, limits = Server(url), Limits(concurrency=64)
    print(f"cache blocks of {server.block()} tokens", flush=True)
    models = [connect(url, limits=limits, warm_tokens=warm) for warm in (None, None, 256)]
    runs: list[list[Run]] = [[] for _ in ARMS]
    for number, first in enumerate(range(0, responses, block)):
        rollouts = [
            Rollout("Tell me of a harbour.", story(at, tokens))
            for at in range(first, min(first + block, responses))
        ]
        groups = await asked(models[0], rollouts)
        if reasons:
            groups = [[with_reasons(request) for request in group] for group in groups]
        orders = ([[turned(request) for request in group] for group in groups], groups, groups)
        for arm in [(number + turn) % len(ARMS) for turn in range(len(ARMS))]:  # no arm is always the first
            runs[arm].append(await run_arm(server, models[arm], orders[arm]))
            done = runs[arm][-1]
            text = f"{done.computed:,.0f} tokens, {done.wall:.1f} s, CPU {done.cpu:.1f} s"
            print(f"  block {number}, {ARMS[arm]}: {text}", flush=True)
    kind = f"reasons of {REASON_TOKENS} tokens" if reasons else "one-token verdicts"
    print(f"\n{responses} responses of about {tokens} tokens x {len(CRITERIA)} criteria, {kind}\n")
    print(summary(runs), "\n", flush=True)
    for model in models:
        await model.aclose()


def summary(runs: Sequence[Sequence[Run]]) -> str:
    """Totals of each arm, and how much less than criterion first it took; wall time also block by block."""
    rows: list[list[object]] = []
    for name, found in zip(ARMS, runs, strict=True):
        walls = [base.wall / run.wall for base, run in zip(runs[0], found, strict=True)]
        row: list[object] = [name, f"{sum(run.prompt for run in found):,.0f}"]
        for figure, unit in (("computed", ""), ("cpu", " s"), ("wall", " s")):
            base, own = (sum(map(attrgetter(figure), some), 0.0) for some in (runs[0], found))
            row += [f"{own:,.0f}{unit}", f"{base / own:.1f}x" if own else ""]
        rows.append([*row, f"{min(walls):.1f}-{median(walls):.1f}-{max(walls):.1f}x"])
    return table(["", "prompt tokens", "computed", "fewer", "CPU", "less", "wall", "less", "by block"], rows)


async def accuracy(url: str, samples: int | None) -> None:
    """Print how often each order agrees with the gold labels of the bundled data, and the paired difference."""
    model = connect(url)
    right: list[list[float]] = [[], []]
    said: list[list[bool]] = [[], [], []]  # response first, criterion first, the gold label
    clusters: list[str] = []
    failed: Counter[str] = Counter()
    for sample in load_demo()[:samples]:
        rubric = parse_rubric(sample.rubric)
        asked_of = [criterion for criterion in rubric.criteria if criterion.verifier is None]
        judges = [LogprobJudge(order, max_outside=1.0, prefill="") for order in (model, CriterionFirst(model))]
        found = [await judge.judge_criteria(sample.rollout, asked_of) for judge in judges]
        for criterion, ours, theirs in zip(asked_of, found[0].verdicts, found[1].verdicts, strict=True):
            if ours.score is None or theirs.score is None:
                named = zip(("response first", "criterion first"), (ours, theirs), strict=True)
                failed.update(f"{name}: {no_score(verdict)}" for name, verdict in named if verdict.score is None)
                continue
            gold = sample.gold[criterion.id]
            met = (ours.score >= 0.5, theirs.score >= 0.5)
            for hits, verdict in zip(right, met, strict=True):
                hits.append(float(verdict == gold))
            for found_met, verdict in zip(said, (*met, bool(gold)), strict=True):
                found_met.append(verdict)
            clusters.append(rubric.id)
    await model.aclose()
    ours, theirs = (np.array(hits) for hits in right)
    low, high = paired_interval(ours - theirs, clusters)
    prompts = len(set(clusters))
    print(f"bundled data, {len(ours)} verdicts on {prompts} prompts; log-probability judge, threshold 0.5")
    for why, times in failed.most_common():
        print(f"left out, {times}: {why}")
    print(f"accuracy: response first {ours.mean():.3f}, criterion first {theirs.mean():.3f}")
    shares = [float(np.mean(found_met)) for found_met in said]
    print(f"met: gold {shares[2]:.3f}, response first {shares[0]:.3f}, criterion first {shares[1]:.3f}")
    print(f"difference {(ours - theirs).mean():+.3f}, 95% [{low:+.3f}, {high:+.3f}] (bootstrap over prompts)")


def no_score(verdict: Verdict) -> str:
    """Why a verdict has no score."""
    return verdict.failure.message if verdict.failure is not None else verdict.status.value


def paired_interval(differences: NDArray[np.float64], clusters: Sequence[str]) -> tuple[float, float]:
    """95% percentile interval of the mean difference; prompts are drawn, since verdicts on one hang together."""
    sums: Mapping[str, list[float]] = {name: [] for name in clusters}
    for name, value in zip(clusters, differences, strict=True):
        sums[name].append(float(value))
    totals = np.array([sum(values) for values in sums.values()])
    counts = np.array([len(values) for values in sums.values()])
    draws = np.random.default_rng(0).integers(0, len(totals), (4000, len(totals)))
    means = totals[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default=os.environ.get(ADDRESS), help="the server, ending in /v1")
    parser.add_argument("--responses", type=int, default=20)
    parser.add_argument("--block", type=int, default=4, help="responses in flight together")
    parser.add_argument("--tokens", type=int, default=1000, help="length of a response")
    parser.add_argument("--reasoned", type=int, default=8, help="responses that are also judged with reasons")
    parser.add_argument(
        "--samples", type=int, default=None, help="bundled samples for the accuracy; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="4 responses, 2 with reasons, 12 samples")
    options = parser.parse_args(arguments)
    if not options.url:
        sys.exit("give --url, or run it by scripts/vllm_server.py")
    if options.quick:
        options.responses, options.block, options.reasoned, options.samples = 4, 2, 2, 12
    if options.responses:
        asyncio.run(compare(options.url, options.responses, options.block, options.tokens, reasons=False))
    if options.reasoned:
        block = min(options.block, options.reasoned)
        asyncio.run(compare(options.url, options.reasoned, block, options.tokens, reasons=True))
    asyncio.run(accuracy(options.url, options.samples))


if __name__ == "__main__":
    main()
