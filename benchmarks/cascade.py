"""What a cascade costs and how often it is right, margin by margin, on OpenAI RBR's gold labels.

Completions and propositions are real, labelled by people; both judges are mocks of a stated quality, so that the
curve shows the cascade and not some model. The small judge says P(met) drawn from Beta(a, 1) where the proposition
holds and from 1 minus that where it does not, with a such that P >= 0.5 is right at its stated accuracy. The large
judge gives plain verdicts and is wrong at its stated error rate. What each says of a proposition follows from the
seed alone, so all margins see the same answers. The calibration is fitted on the train split, all else is the test
split.

Run: python benchmarks/cascade.py --data FOLDER [--svg FILE], where FOLDER holds train.jsonl and test.jsonl of
https://github.com/openai/safety-rbr-code-and-data (data/rbr_gold_data). Takes some seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _plot import Curve, Point, line_plot
from numpy.typing import NDArray

from rubricate.data.io import read_rows
from rubricate.data.records import Rollout, parse_turns
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.calibrated import Calibrated, Labelled, gather_probabilities
from rubricate.judges.calibration import Calibration, fit_calibration
from rubricate.judges.cascade import Cascade
from rubricate.judges.view import final_answer
from rubricate.narrow import as_object
from rubricate.rubrics import Criterion
from rubricate.types import Judgement, Usage, Verdict

Bools = NDArray[np.bool_]
MARGINS = (0.0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.48, 0.49, 0.5)


@dataclass(frozen=True, slots=True)
class Case:
    """A completion with its gold labels by proposition."""

    rollout: Rollout
    gold: Mapping[str, bool]


class Small(CriteriaJudge):
    """Cheap, and tells how sure it is."""

    def __init__(self, gold: Mapping[str, Mapping[str, bool]], accuracy: float, price: float, seed: int) -> None:
        self.name, self.view = "small", final_answer
        self.gold, self.price, self.seed = gold, price, seed
        self.shape = -math.log2(1.0 - accuracy)

    @property
    def fingerprint(self) -> str:
        return f"small:{self.shape}:{self.seed}"

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        verdicts = tuple(self._verdict(rollout.id, criterion) for criterion in criteria)
        return Judgement(verdicts, usage=Usage(len(criteria), cost=self.price * len(criteria)))

    def _verdict(self, row: str, criterion: Criterion) -> Verdict:
        rng = random.Random(f"small:{self.seed}:{row}:{criterion.text}")
        p = rng.betavariate(self.shape, 1.0)
        p = p if self.gold[row][criterion.text] else 1.0 - p
        return Verdict(criterion.id, p, probability=p, judge=self.name)


class Large(CriteriaJudge):
    """Dear, and wrong at a rate."""

    def __init__(self, gold: Mapping[str, Mapping[str, bool]], error: float, seed: int) -> None:
        self.name, self.view = "large", final_answer
        self.gold, self.error, self.seed = gold, error, seed

    @property
    def fingerprint(self) -> str:
        return f"large:{self.error}:{self.seed}"

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        verdicts = tuple(self._verdict(rollout.id, criterion) for criterion in criteria)
        return Judgement(verdicts, usage=Usage(len(criteria), cost=float(len(criteria))))

    def _verdict(self, row: str, criterion: Criterion) -> Verdict:
        wrong = random.Random(f"large:{self.seed}:{row}:{criterion.text}").random() < self.error
        return Verdict(criterion.id, float(self.gold[row][criterion.text] != wrong), judge=self.name)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Costs are in prices of the large judge, a criterion."""

    margin: float
    escalated: float
    cost: float
    right: Bools  # completions x propositions
    f1: float


def read_cases(path: Path) -> list[Case]:
    """The labelled completions of one split."""
    cases: list[Case] = []
    for number, row in enumerate(read_rows(path)):
        prompt = parse_turns(row.record["prompt"], "prompt")
        response = parse_turns(row.record["completion"], "completion")
        labels = as_object(row.record["propositions"]) or {}
        gold = {name: value for name, value in labels.items() if isinstance(value, bool)}
        cases.append(Case(Rollout(prompt, response, id=f"{path.stem}-{number}"), gold))
    return cases


def criteria_of(case: Case) -> list[Criterion]:
    """The propositions as criteria."""
    return [Criterion(id=name, text=name) for name in case.gold]


async def calibrate(judge: CriteriaJudge, cases: Sequence[Case]) -> Calibration:
    """Platt's calibration on one split."""
    labelled = [
        Labelled(case.rollout, criterion, case.gold[criterion.text])
        for case in cases
        for criterion in criteria_of(case)
    ]
    told = await gather_probabilities(judge, labelled)
    return fit_calibration(judge, told.probabilities, told.labels, groups=told.groups)


async def run(stages: Sequence[CriteriaJudge], margin: float, cases: Sequence[Case]) -> Row:
    """One cascade over all cases."""
    cascade = Cascade(stages, escalate=margin)
    said = np.array(
        [
            [
                (verdict.score or 0.0) >= 0.5
                for verdict in (await cascade.judge_criteria(case.rollout, criteria)).verdicts
            ]
            for case in cases
            for criteria in [criteria_of(case)]
        ]
    )
    gold = np.array([list(case.gold.values()) for case in cases])
    report = cascade.report()
    hits = int((said & gold).sum())
    f1 = 2 * hits / int(said.sum() + gold.sum())
    return Row(margin, report.share_escalated or 0.0, report.usage.cost / report.criteria, said == gold, f1)


def interval(values: NDArray[np.float64], draws: NDArray[np.int64]) -> tuple[float, float]:
    """95% bootstrap interval of the mean of the completions' values."""
    means = values[draws].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def print_table(title: str, rows: Sequence[Row], large: Row, draws: NDArray[np.int64]) -> None:
    """One curve as a table."""
    print(f"\n{title}\n")
    print("| margin | escalated | cost | saved | accuracy (95%) | to large alone (95%) | F1 of met |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        right = row.right.mean(axis=1)
        low, high = interval(right, draws)
        below, above = interval(right - large.right.mean(axis=1), draws)
        print(
            f"| {row.margin:g} | {row.escalated:.1%} | {row.cost:.3f} | {1 - row.cost / large.cost:.0%} "
            f"| {row.right.mean():.2%} ({low:.2%} to {high:.2%}) "
            f"| {row.right.mean() - large.right.mean():+.2%} ({below:+.2%} to {above:+.2%}) | {row.f1:.3f} |"
        )


def curve(name: str, rows: Sequence[Row], draws: NDArray[np.int64]) -> Curve:
    """One curve for the plot."""
    points = [
        Point(row.cost, float(row.right.mean()), *interval(row.right.mean(axis=1), draws), label=f"{row.margin:g}")
        for row in rows
    ]
    return Curve(name, tuple(points))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.jsonl and test.jsonl")
    parser.add_argument("--svg", type=Path, help="write the curves there")
    parser.add_argument("--accuracy", type=float, default=0.85, help="of the small judge (default 0.85)")
    parser.add_argument("--price", type=float, default=0.05, help="of the small judge, the large one's is 1 (0.05)")
    parser.add_argument("--error", type=float, default=0.03, help="rate of the large judge (0.03)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=2000, help="of the bootstrap (2000)")
    args = parser.parse_args()
    train, test = (read_cases(args.data / f"{split}.jsonl") for split in ("train", "test"))
    gold = {case.rollout.id: case.gold for case in (*train, *test)}
    small = Small(gold, args.accuracy, args.price, args.seed)
    large = Large(gold, args.error, args.seed)
    calibration = await calibrate(small, train)
    draws = np.random.default_rng(args.seed).integers(0, len(test), size=(args.draws, len(test)))
    alone = await run([large, large], 0.0, test)  # it never fails, so its second asking never comes
    print(
        f"{len(test)} completions x {len(test[0].gold)} propositions; small: accuracy {args.accuracy:g}, price "
        f"{args.price:g}; large: error {args.error:g}, price 1; seed {args.seed}"
    )
    print(f"calibration: {calibration}")
    print(f"large alone: accuracy {alone.right.mean():.2%}, F1 of met {alone.f1:.3f}, cost 1")
    curves: list[Curve] = []
    for name, stage in (("calibrated", Calibrated(small, calibration)), ("as it says", small)):
        rows = [await run([stage, large], margin, test) for margin in MARGINS]
        print_table(f"Small judge {name}, then large", rows, alone, draws)
        curves.append(curve(f"small judge {name}, then large", rows, draws))
    if args.svg:
        right = float(alone.right.mean())
        curves.append(Curve("large judge alone", (Point(1.0, right, *interval(alone.right.mean(axis=1), draws)),)))
        text = line_plot(curves, x="cost, in prices of the large judge", y="share of verdicts that are right")
        args.svg.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
