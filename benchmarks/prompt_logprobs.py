"""Several criteria in one prefill against a call each: how far verdicts move, and what is computed.

Run: python benchmarks/prompt_logprobs.py [--model smollm2] [--adapter DIR] [--responses 16] [--fillers "-,?"]

SlotsJudge judges the bundled demo data's criteria that have no verifier, k questions a call, on a local model that
gives its prompts' log-probabilities. k = 1 is a call each in the same words, so that what moves at larger k is the
other criteria's doing. LogprobJudge, in its own words, is the yardstick for use. Accuracy is against the demo's
gold labels; AUC is the probability that a met criterion has the higher P(met).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

sys.path[:0] = [str(Path(__file__).parent)]

from _measure import table  # noqa: E402 - needs the path above

from rubricate.chat import Capabilities, ChatModel, ChatRequest, Completion, TokenLogprob  # noqa: E402
from rubricate.chat.local import load_local  # noqa: E402
from rubricate.chat.local_engine import Engine, open_engine  # noqa: E402
from rubricate.chat.local_host import LocalOptions  # noqa: E402
from rubricate.chat.local_source import resolve  # noqa: E402
from rubricate.chat.local_torch import floats, ints  # noqa: E402
from rubricate.data.bundled import Sample, load_demo  # noqa: E402
from rubricate.judges import CriteriaJudge, LogprobJudge  # noqa: E402
from rubricate.judges.slots import SlotsJudge  # noqa: E402
from rubricate.rubrics import Criterion, Rubric  # noqa: E402
from rubricate.types import Usage  # noqa: E402

CHUNK = 128
"""Tokens of a prompt whose log-probabilities over the vocabulary are held at once."""


class Scorer(ChatModel):
    """A local model that gives what vLLM's server gives for `prompt_logprobs`, and generates nothing."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = f"scorer:{name}"
        self._engine = engine

    @property
    def fingerprint(self) -> str:
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(logprobs=True)

    async def complete(self, request: ChatRequest) -> Completion:
        import torch

        network, codec = self._engine.network, self._engine.codec
        ids = codec.encode(request)
        cache = network.new_cache()
        tokens = [TokenLogprob("", 0.0)]
        with torch.inference_mode():
            for low in range(0, len(ids) - 1, CHUNK):
                part = ids[low : min(low + CHUNK, len(ids) - 1)]
                keep = torch.arange(len(part), device=network.device)
                lines = network.forward(torch.tensor([part], device=network.device), cache, keep=keep)[0]
                best = lines.topk(request.prompt_logprobs or 1, dim=-1)
                for at in range(len(part)):
                    own = ids[low + at + 1]
                    places, values = ints(best.indices[at]), floats(best.values[at])
                    top = [(codec.piece(place), value) for place, value in zip(places, values, strict=True)]
                    tokens.append(TokenLogprob(codec.piece(own), float(lines[at, own]), tuple(top)))
        return Completion("-", usage=Usage(1, len(ids), 0), prompt_logprobs=tuple(tokens))


@dataclass(slots=True)
class Result:
    """P(met) of every criterion of every sample, None for failures, and what they cost."""

    name: str
    scores: list[float | None] = field(default_factory=list[float | None])
    tokens: int = 0
    seconds: float = 0.0


def criteria_of(sample: Sample) -> tuple[Criterion, ...]:
    """The criteria that a model must judge."""
    rubric = Rubric.model_validate(sample.rubric)
    return tuple(criterion for criterion in rubric.criteria if criterion.verifier is None)


async def judged(name: str, judge: CriteriaJudge, samples: Sequence[Sample]) -> Result:
    """All samples, one after another."""
    result, started = Result(name), time.process_time()
    for sample in samples:
        judgement = await judge.judge_criteria(sample.rollout, criteria_of(sample))
        result.scores += [verdict.score for verdict in judgement.verdicts]
        result.tokens += judgement.usage.prompt_tokens - judgement.usage.cached_tokens
    result.seconds = time.process_time() - started
    return result


def auc(scores: Sequence[float | None], gold: Sequence[bool]) -> float:
    """P(a met criterion has the higher score), ties counting half."""
    known = [(score, label) for score, label in zip(scores, gold, strict=True) if score is not None]
    met = [score for score, label in known if label]
    unmet = [score for score, label in known if not label]
    wins = sum((one > other) + 0.5 * (one == other) for one in met for other in unmet)
    return wins / (len(met) * len(unmet)) if met and unmet else float("nan")


def order(scores: Sequence[float]) -> list[float]:
    """Ranks, ties sharing their mean: the correlation of two of these is Spearman's."""
    return [sum((other < score) + 0.5 * (other == score) for other in scores) for score in scores]


def row(result: Result, alone: Result, gold: Sequence[bool]) -> tuple[object, ...]:
    """One line of the table: agreement with k = 1, and accuracy."""
    pairs = [
        (one, other)
        for one, other in zip(result.scores, alone.scores, strict=True)
        if one is not None and other is not None
    ]
    moved = [abs(one - other) for one, other in pairs]
    flips = sum((one >= 0.5) != (other >= 0.5) for one, other in pairs) / max(len(pairs), 1)
    ranked = [order(side) for side in zip(*pairs, strict=True)]
    right = [(score >= 0.5) == label for score, label in zip(result.scores, gold, strict=True) if score is not None]
    failed = sum(score is None for score in result.scores)
    return (
        result.name,
        f"{statistics.mean(moved):.3f}" if moved else "-",
        f"{flips:.1%}",
        f"{statistics.correlation(*ranked):.2f}" if len(pairs) > 2 else "-",
        f"{sum(right) / max(len(right), 1):.1%}",
        f"{auc(result.scores, gold):.3f}",
        failed,
        f"{result.tokens:,}",
        f"{result.seconds:.1f}",
    )


HEAD = ("judge", "mean move", "flips", "rank corr.", "accuracy", "AUC", "failed", "tokens", "CPU s")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a local model, without `local:`")
    parser.add_argument("--adapter", default=None)
    parser.add_argument("--responses", type=int, default=16)
    parser.add_argument("--fillers", default="-")
    args = parser.parse_args()
    adapter = cast("str | None", args.adapter)
    options = LocalOptions(adapter=adapter)
    engine = open_engine(resolve(args.model, adapter), options, args.model)
    scorer = Scorer(engine, args.model)
    samples = [sample for sample in load_demo() if sample.language == "en"][: args.responses]
    gold = [sample.gold[criterion.id] for sample in samples for criterion in criteria_of(sample)]
    print(f"{args.model}: {len(gold)} criteria of {len(samples)} responses, {sum(gold)} of them met")
    local = load_local(args.model, adapter=adapter)
    plain = await judged("LogprobJudge", LogprobJudge(local, max_outside=1.0), samples)
    await local.aclose()
    for filler in str(args.fillers).split(","):
        alone = await judged(f"k = 1, {filler!r}", slots(scorer, filler, 1), samples)
        rows = [row(alone, alone, gold)]
        for count in (2, 16):
            rows.append(
                row(await judged(f"k = {count}, {filler!r}", slots(scorer, filler, count), samples), alone, gold)
            )
        rows.append(row(plain, alone, gold))
        print("\nagainst a call each:\n" + table(HEAD, rows), flush=True)


def slots(model: ChatModel, filler: str, count: int) -> SlotsJudge:
    """The judge, which here takes what little mass there is."""
    return SlotsJudge(model, filler=filler, questions_per_call=count, max_outside=1.0)


if __name__ == "__main__":
    asyncio.run(main())
