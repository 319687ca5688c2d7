"""Accuracy against tokens: k = 1, 2, 4, ... all criteria a call, with and without an ideal prefix cache.

Two judges see labelled data. A scripted one shows what the machinery does at a stated error model: a verdict is
wrong with the probability `base + slope * log2(k)`, and left out with `omit * log2(k)`; what is left out is
asked for again. That a judge gets worse as k grows is put in, not found out: fit the numbers to your own judge.
Tokens are characters / 4, the cache holds blocks of 16. The local one (`--local N`) is SmolLM2-135M as it is
published, untuned, on N responses of the demo data: it answers at chance and seldom in the form that is asked
for, which is what its rows show; its tokens are its own and the cache is the real one.

Run: python benchmarks/accuracy_tokens.py [--data FOLDER] [--local N] [--svg FILE] [--quick]. FOLDER holds
test.jsonl of https://github.com/openai/safety-rbr-code-and-data (data/rbr_gold_data); without it the bundled
demo data is used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from _measure import table
from _plot import Curve, Point, line_plot
from cascade import criteria_of, read_cases

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.data.bundled import load_demo
from rubricate.data.records import Rollout
from rubricate.judges import CriterionJudge, LogprobJudge
from rubricate.judges.base import CriteriaJudge
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import Criterion
from rubricate.types import Usage

BLOCK = 64  # characters: 16 tokens
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Labelled:
    """A response, the criteria on it, and whether each is met."""

    rollout: Rollout
    criteria: tuple[Criterion, ...]
    gold: tuple[bool, ...]


@dataclass(slots=True)
class Cache:
    """An ideal prefix cache: every block that was ever asked for is there."""

    blocks: set[int] = field(default_factory=set[int])

    def computed(self, text: str) -> int:
        """Tokens of a prompt that are not in the cache yet; they are from now on."""
        known = whole = 0
        state = 0
        for start in range(0, len(text) - BLOCK + 1, BLOCK):
            state = hash((state, text[start : start + BLOCK]))
            known += state in self.blocks and known == whole
            whole += 1
            self.blocks.add(state)
        return len(text) // 4 - known * BLOCK // 4


@dataclass(frozen=True, slots=True)
class Errors:
    """How often the scripted judge is wrong, and leaves out a verdict, with k criteria a call."""

    base: float
    slope: float
    omit: float

    def at(self, k: int) -> tuple[float, float]:
        """Probabilities of a wrong verdict and of none."""
        return min(0.5, self.base + self.slope * math.log2(k)), min(0.9, self.omit * math.log2(k))


class Scripted(ChatModel):
    """Knows the right verdicts on one response and errs as stated. What it says follows from the seed alone."""

    name = "scripted"

    def __init__(self, case: Labelled, errors: Errors, cache: Cache, seed: int) -> None:
        self.gold = {c.text: met for c, met in zip(case.criteria, case.gold, strict=True)}
        self.errors, self.cache, self.seed = errors, cache, f"{seed}:{case.rollout.id}"

    @property
    def fingerprint(self) -> str:
        """A constant: it is never compared."""
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        """None."""
        return Capabilities()

    async def complete(self, request: ChatRequest) -> Completion:
        """Verdicts on the criteria at the end of the prompt."""
        text = request.text()
        asked = [
            (label, said)
            for label, said in re.findall(r"^(C\d+): (.+)$", text[text.rindex("</response-") :], re.M)
            if said in self.gold
        ]
        wrong, omitted = self.errors.at(len(asked))
        entries: list[dict[str, str]] = []
        for label, criterion in asked:
            draw = random.Random(f"{self.seed}:{criterion}:{len(asked)}:{request.sample}")
            if draw.random() >= omitted:
                met = self.gold[criterion] != (draw.random() < wrong)
                entries.append({"id": label, "reason": "x" * 120, "verdict": "met" if met else "unmet"})
        final = {entry["id"]: entry["verdict"] for entry in entries}
        reply = json.dumps({"verdicts": entries, "final": final})
        prompt = len(text) // 4
        usage = Usage(1, prompt, len(reply) // 4, cached_tokens=prompt - self.cache.computed(text))
        return Completion(reply, usage=usage)


@dataclass(frozen=True, slots=True)
class Row:
    """A way of asking, a response a line: verdicts that came, that are right, and tokens."""

    name: str
    came: Sequence[float]
    right: Sequence[float]
    usage: Usage

    def per_response(self, tokens: int) -> float:
        """A count of tokens for one response."""
        return tokens / len(self.came)

    @property
    def computed(self) -> int:
        """Prompt tokens that no cache had."""
        return self.usage.prompt_tokens - self.usage.cached_tokens


def demo_cases(*, principles: bool) -> list[Labelled]:
    """The English responses of the demo data; `principles` leaves out criteria that code checks."""
    cases: list[Labelled] = []
    for number, sample in enumerate(load_demo()):
        items = [as_object(item) or {} for item in as_array(sample.rubric.get("criteria")) or ()]
        kept = [item for item in items if not (principles and "verifier" in item)]
        criteria = tuple(Criterion(id=str(item["id"]), text=str(item["text"])) for item in kept)
        if sample.language == "en" and criteria:
            rollout = Rollout(sample.rollout.prompt, sample.rollout.response, id=f"demo-{number}")
            cases.append(Labelled(rollout, criteria, tuple(sample.gold[c.id] for c in criteria)))
    return cases


def rbr_cases(folder: Path) -> list[Labelled]:
    """Completions with their propositions."""
    return [
        Labelled(case.rollout, tuple(criteria_of(case)), tuple(case.gold.values()))
        for case in read_cases(folder / "test.jsonl")
    ]


async def judge_all(name: str, judges: Mapping[str, CriteriaJudge], cases: Sequence[Labelled]) -> Row:
    """Every case by its judge (by the rollout's id)."""
    judged = await asyncio.gather(
        *(judges[case.rollout.id].judge_criteria(case.rollout, case.criteria) for case in cases)
    )
    came: list[float] = []
    right: list[float] = []
    for case, judgement in zip(cases, judged, strict=True):
        scores = [verdict.score for verdict in judgement.verdicts]
        hits = [s is not None and (s >= 0.5) == met for s, met in zip(scores, case.gold, strict=True)]
        came.append(sum(score is not None for score in scores) / len(scores))
        right.append(sum(hits) / len(hits))
    return Row(name, came, right, sum((judgement.usage for judgement in judged), Usage()))


def sizes(most: int) -> list[int]:
    """1, 2, 4, ... and all."""
    return [*(2**n for n in range(most.bit_length()) if 2**n < most), most]


def scripted_rows(cases: Sequence[Labelled], errors: Errors, attempts: int, seed: int) -> list[Row]:
    """A row for each k."""
    rows: list[Row] = []
    for k in sizes(max(len(case.criteria) for case in cases)):
        cache = Cache()
        judges: dict[str, CriteriaJudge] = {
            case.rollout.id: CriterionJudge(
                Scripted(case, errors, cache, seed), criteria_per_call=k, max_attempts=attempts
            )
            for case in cases
        }
        rows.append(asyncio.run(judge_all(f"k = {k}", judges, cases)))
    return rows


def local_rows(cases: Sequence[Labelled], model: str) -> list[Row]:
    """A row for each k, and one for log-probabilities, from a model in this process."""
    from rubricate.chat.local import load_local

    async def run() -> list[Row]:
        chat = load_local(model, device="cpu")
        ways: dict[str, CriteriaJudge] = {"log-probability": LogprobJudge(chat, max_outside=1.0)}
        for k in sizes(max(len(case.criteria) for case in cases)):
            ways[f"k = {k}"] = CriterionJudge(
                chat, criteria_per_call=k, max_attempts=1, max_tokens=90, tokens_per_criterion=50
            )
        rows: list[Row] = []
        for name, judge in ways.items():
            rows.append(await judge_all(name, {case.rollout.id: judge for case in cases}, cases))
            await chat.aclose()  # what was kept for one way must not help the next
        return rows

    return asyncio.run(run())


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Mean, and the ends of a 95% bootstrap interval over responses."""
    found = np.array(values)
    draws = np.random.default_rng(seed).integers(0, len(found), (DRAWS, len(found)))
    low, high = np.quantile(found[draws].mean(axis=1), [0.025, 0.975])
    return float(found.mean()), float(low), float(high)


def show(title: str, rows: Sequence[Row]) -> None:
    """Print a table, a line a way of asking."""
    print(f"\n{title}: {len(rows[0].came)} responses; tokens are for one response, intervals 95% over responses\n")
    head = ["way", "calls", "prompt tok", "computed, cached", "output tok", "verdicts", "right", "interval"]
    lines: list[list[str]] = []
    for row in rows:
        mean, low, high = interval(row.right)
        counts = (row.usage.prompt_tokens, row.computed, row.usage.completion_tokens)
        cells = [row.name, f"{row.per_response(row.usage.calls):.1f}"]
        cells += [f"{row.per_response(count):.0f}" for count in counts]
        cells += [f"{sum(row.came) / len(row.came):.1%}", f"{mean:.1%}", f"{low:.1%} to {high:.1%}"]
        lines.append(cells)
    print(table(head, lines), flush=True)


def plot(rows: Sequence[Row]) -> str:
    """Share of right verdicts against computed prompt and output tokens, without and with a prefix cache."""

    def curve(name: str, cached: bool) -> Curve:
        points: list[Point] = []
        for row in rows:
            prompt = row.computed if cached else row.usage.prompt_tokens
            tokens = row.per_response(prompt + row.usage.completion_tokens)
            points.append(Point(tokens, *interval(row.right), row.name))
        return Curve(name, tuple(points))

    curves = [curve("no prefix cache", False), curve("ideal prefix cache", True)]
    return line_plot(curves, x="tokens computed for a response, prompt and output", y="right verdicts of all asked")


def main() -> None:
    """Print the tables, draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with test.jsonl of OpenAI's safety RBR gold data")
    parser.add_argument(
        "--errors", type=float, nargs=3, default=[0.08, 0.02, 0.01], metavar=("BASE", "SLOPE", "OMIT")
    )
    parser.add_argument("--attempts", type=int, default=4, help="calls that a criterion takes part in at most")
    parser.add_argument("--local", type=int, default=12, help="responses for the local model, 0 for none")
    parser.add_argument("--model", default="smollm2", help="what rubricate.chat.local.load_local takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--quick", action="store_true", help="60 responses scripted, 4 local")
    options = parser.parse_args()
    cases = rbr_cases(options.data) if options.data else demo_cases(principles=False)
    cases = cases[:60] if options.quick else cases
    errors = Errors(*options.errors)
    rows = scripted_rows(cases, errors, options.attempts, options.seed)
    model = f"wrong {errors.base:g} + {errors.slope:g} log2 k, left out {errors.omit:g} log2 k"
    show(f"Scripted judge ({model}) on {'OpenAI RBR' if options.data else 'the demo data'}", rows)
    if options.svg:
        options.svg.write_text(plot(rows), encoding="utf-8")
    count = min(options.local, 4) if options.quick else options.local
    if count:
        demo = demo_cases(principles=True)
        step = max(1, len(demo) // count)
        show(f"{options.model}, untuned, on the demo data", local_rows(demo[::step][:count], options.model))


if __name__ == "__main__":
    main()
