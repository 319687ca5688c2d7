"""How well a small pointwise judge judges: its own held-out checks, public sets it never saw, and what chance,
length and leaks would give.

    python benchmarks/small_judge.py --judge local:smollm2 --judge bundle:DIR ... [--data ../shared/data] [-o FILE]
    python benchmarks/small_judge.py --table FILE...

The first form measures and adds a line a judge and set to FILE; the second prints the lines as the table of
docs/results.md, seeds of one judge side by side. Sets: `held_out` (checks on topics and phrases that no training
set holds), `unseen_kinds` (kinds of criteria that no training set holds), `pairs` (held-out pairs, judged by their
rubric point by point), `no_criterion` and `no_response` (held-out checks with one of the two hidden: 0.50 unless
the set leaks), `rbr` (human yes/no labels), `llmbar` and `hhh` (pairs with human preferences). Intervals are 95%
bootstrap intervals over responses, or Wilson's for pairs. All labels met by P(met) of the judge; pairs by the mean
P(met), equal means as half.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from _labelled_sets import Pair, hhh, llmbar, propositions
from _measure import table

from rubricate.chat import connect
from rubricate.cli import agreement as agree
from rubricate.data.records import Rollout
from rubricate.judges import LogprobJudge
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.bundle import load_judge
from rubricate.judges.calibrated import Labelled
from rubricate.judges.calibration import auc, quality
from rubricate.narrow import as_object
from rubricate.training.checks import Pair as MadePair
from rubricate.training.checks import make_pairs, make_sheets, masked_sheets
from rubricate.types import Verdict

CHECKS = ("held_out", "unseen_kinds", "no_criterion", "no_response", "rbr")
PAIRS = ("pairs", "llmbar", "hhh")


@dataclass(frozen=True, slots=True)
class Line:
    """One judge on one set.

    Attributes:
        judge, set: names.
        n: verdicts, or pairs.
        failed: verdicts without a score, or pairs in which a response has none.
        value, low, high: AUC, or for pairs the share of right ones, with the 95% interval.
        accuracy: share of verdicts on the right side of 0.5; for pairs, what taking the longer response gives.
        ece: expected calibration error; NaN for pairs.
        macro: mean AUC within the criteria that have at least 5 labels of each kind; NaN where there are none.
        seconds: wall time.
    """

    judge: str
    set: str
    n: int
    failed: int
    value: float
    low: float
    high: float
    accuracy: float
    ece: float
    macro: float
    seconds: float


def judge_of(name: str) -> CriteriaJudge:
    """A bundle's judge, or a log-probability judge on a model. Any probability outside yes and no is let pass."""
    return load_judge(name) if name.startswith("bundle:") else LogprobJudge(connect(name), max_outside=1.0)


def checks(name: str, n: int, seed: int, data: Path) -> list[Labelled]:
    """The labelled checks of a set."""
    if name == "rbr":
        return propositions(data)
    items = make_sheets(n, seed=seed, split="unseen_kinds" if name == "unseen_kinds" else "held_out")
    if name == "no_criterion":
        return masked_sheets(items, "criterion")
    return masked_sheets(items, "response") if name == "no_response" else items


async def verdicts_of(judge: CriteriaJudge, items: Sequence[Labelled]) -> list[tuple[int, Verdict, bool]]:
    """Number of the response, verdict and label of each check. A response's criteria are asked about together."""
    parts: dict[object, list[Labelled]] = defaultdict(list)
    for item in items:
        parts[item.rollout.prompt, item.rollout.response, item.rollout.reference].append(item)
    found: list[tuple[int, Verdict, bool]] = []
    for number, group in enumerate(parts.values()):
        criteria = [item.criterion.model_copy(update={"id": f"c{n}"}) for n, item in enumerate(group)]
        judged = await judge.judge_criteria(group[0].rollout, criteria)
        found += [(number, verdict, item.met) for verdict, item in zip(judged.verdicts, group, strict=True)]
    return found


def macro_auc(items: Sequence[Labelled], found: Sequence[tuple[int, Verdict, bool]]) -> float:
    """Mean AUC within a criterion, so that knowing how often each is met is worth nothing."""
    by_text: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for item, (_, verdict, met) in zip(items, found, strict=True):
        if verdict.score is not None:
            by_text[item.criterion.text].append((verdict.score, met))
    areas = [
        auc(np.array([s for s, _ in rows]), np.array([m for _, m in rows]))
        for rows in by_text.values()
        if min(sum(m for _, m in rows), sum(not m for _, m in rows)) >= 5
    ]
    return float(np.mean(areas)) if areas else math.nan


async def measure_checks(name: str, judge: str, items: Sequence[Labelled]) -> Line:
    """AUC, accuracy and calibration on labelled checks."""
    start = time.perf_counter()
    found = await verdicts_of(judge_of(judge), items)
    agreed = agree.agreement([agree.Labelled(str(number), v.score, met) for number, v, met in found])
    known = [(v.probability, met) for _, v, met in found if v.probability is not None]
    ece = quality([p for p, _ in known], [met for _, met in known]).ece if known else math.nan
    area = agreed.auc
    macro = macro_auc(items, found) if name == "rbr" else math.nan
    seconds = time.perf_counter() - start
    shown = (area.value, area.low, area.high, agreed.accuracy.value, ece, macro)
    return Line(judge, name, agreed.verdicts, agreed.failed, *shown, seconds)


async def measure_pairs(name: str, judge: str, pairs: Sequence[Pair]) -> Line:
    """Share of pairs whose better response has the higher mean P(met)."""
    start = time.perf_counter()
    asked = judge_of(judge)
    points: list[float] = []
    longer: list[float] = []
    failed = 0
    for both, criteria, _ in pairs:
        means: list[float | None] = []
        for rollout in both:
            scores = [verdict.score for verdict in (await asked.judge_criteria(rollout, criteria)).verdicts]
            known = [score for score in scores if score is not None]
            means.append(sum(known) / len(known) if len(known) == len(scores) else None)
        longer.append(_point(*(float(len(str(rollout.response))) for rollout in both)))
        if means[0] is None or means[1] is None:
            failed += 1
        else:
            points.append(_point(means[0], means[1]))
    share = agree.wilson(round(sum(points)), len(points))
    by_length = sum(longer) / len(longer)
    value = sum(points) / len(points) if points else math.nan
    seconds = time.perf_counter() - start
    return Line(
        judge, name, len(points), failed, value, share.low, share.high, by_length, math.nan, math.nan, seconds
    )


def _point(better: float, worse: float) -> float:
    return 0.5 if better == worse else float(better > worse)


def pairs_of(name: str, n: int, seed: int, data: Path) -> list[Pair]:
    """The pairs of a set."""
    if name == "llmbar":
        return llmbar(data)
    if name == "hhh":
        return hhh(data)
    return [own_pair(number, made) for number, made in enumerate(make_pairs(n, seed=seed, split="held_out"))]


def own_pair(number: int, made: MadePair) -> Pair:
    """A pair of the check generator's."""
    pair = made.preference
    both = tuple(
        Rollout(pair.prompt, text, pair.reference, id=f"pair-{number}-{name}")
        for name, text in (("chosen", pair.chosen), ("rejected", pair.rejected))
    )
    return (both[0], both[1]), made.rubric.criteria, ""


async def measure(args: argparse.Namespace) -> None:
    """Every judge on every set, each line written when it is known."""
    for judge in args.judge:
        for name in args.sets.split(","):
            if name in PAIRS:
                line = await measure_pairs(name, judge, pairs_of(name, args.pairs, args.seed, args.data))
            else:
                line = await measure_checks(name, judge, checks(name, args.sheets, args.seed, args.data))
            print(line, flush=True)
            if args.output:
                with args.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(line)) + "\n")


def print_table(paths: Sequence[Path]) -> None:
    """Lines of earlier runs as a table."""
    rows: list[Mapping[str, object]] = []
    for path in paths:
        rows += [as_object(json.loads(line)) or {} for line in path.read_text(encoding="utf-8").splitlines()]
    shown = [
        [str(row["judge"]), str(row["set"]), str(row["n"]), str(row["failed"])]
        + [f"{float(str(row['value'])):.3f} [{float(str(row['low'])):.3f}, {float(str(row['high'])):.3f}]"]
        + ["-" if math.isnan(x := float(str(row[name]))) else f"{x:.3f}" for name in ("accuracy", "ece", "macro")]
        + [f"{float(str(row['seconds'])):.0f}"]
        for row in rows
    ]
    heads = ["judge", "set", "n", "failed", "AUC or share right", "accuracy / by length", "ECE", "macro AUC", "s"]
    print(table(heads, shown))


def main() -> None:
    """Measure, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="append", default=[])
    parser.add_argument("--sets", default=",".join((*CHECKS, *PAIRS)))
    parser.add_argument("--sheets", type=int, default=200, help="responses of each set of our own")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--table", type=Path, nargs="+")
    args = parser.parse_args()
    if args.table:
        print_table(args.table)
    else:
        asyncio.run(measure(args))


if __name__ == "__main__":
    main()
