"""Verdicts aggregated a second: the vectorised core against a Python loop with the same result.

Run: python benchmarks/aggregation.py [--rows 100000] [--criteria 10]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rubricate.rewardmodels import Aggregation, State, aggregate, aggregate_arrays, make_plan, preset
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Verdict

Floats = NDArray[np.float64]


def make_rubric(criteria: int) -> Rubric:
    """Every fifth criterion a penalty, the last one a veto."""
    return Rubric(
        criteria=tuple(
            Criterion(
                id=f"c{index}",
                text="It is so.",
                weight=1.0 + index % 3,
                polarity=Polarity.PENALTY if index % 5 == 4 else Polarity.REWARD,
                veto=index == criteria - 1,
            )
            for index in range(criteria)
        )
    )


def loop(rubric: Rubric, rows: list[list[float]], known: list[list[bool]]) -> list[float | None]:
    """`weighted` with vetoes and masking, as plain Python over plain numbers."""
    signs = [criterion.sign for criterion in rubric.criteria]
    weights = [criterion.weight for criterion in rubric.criteria]
    vetoes = [criterion.veto for criterion in rubric.criteria]
    values: list[float | None] = []
    for scores, there in zip(rows, known, strict=True):
        total = divisor = 0.0
        vetoed = missing = False
        for score, ok, sign, weight, veto in zip(scores, there, signs, weights, vetoes, strict=True):
            if sign > 0:
                divisor += weight
            if not ok:
                missing = True
                continue
            total += sign * weight * score
            vetoed = vetoed or (veto and (score >= 0.5) != (sign > 0))
        values.append(0.0 if vetoed else None if missing else min(max(total / divisor, 0.0), 1.0))
    return values


def best(run: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the fastest of some runs."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print; stops with an error where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--criteria", type=int, default=10)
    args = parser.parse_args()
    rubric = make_rubric(args.criteria)
    rng = np.random.default_rng(0)
    evidence = rng.random((args.rows, args.criteria))
    lost = rng.random(evidence.shape) < 0.02
    states = np.where(lost, State.UNKNOWN, State.OK).astype(np.int8)
    options, plan = preset("weighted"), make_plan(preset("weighted"), rubric)

    check(options, rubric, evidence, states)
    verdicts = args.rows * args.criteria
    core = best(lambda: aggregate_arrays(options, plan, evidence, states))
    rows, known = evidence.tolist(), (~lost).tolist()
    python = best(lambda: loop(rubric, rows, known), 1)
    one = [Verdict(name, float(score)) for name, score in zip(rubric.ids, evidence[0], strict=True)]
    single = best(lambda: [aggregate(options, rubric, one, plan=plan) for _ in range(200)], 1) / 200
    print(f"{args.rows:,} responses x {args.criteria} criteria, 2% of the verdicts unknown")
    print(f"vectorised core     {verdicts / core:14,.0f} verdicts/s, with bounds, coverage and vetoes")
    print(f"Python loop         {verdicts / python:14,.0f} verdicts/s, value alone")
    print(f"one response a call {1e6 * single:14,.0f} microseconds a response")


def check(options: Aggregation, rubric: Rubric, evidence: Floats, states: NDArray[np.int8]) -> None:
    """Both ways agree on the first thousand rows, up to determined values, which the loop masks."""
    few, some = evidence[:1000], states[:1000]
    core = aggregate_arrays(options, make_plan(options, rubric), few, some).value
    plain = loop(rubric, few.tolist(), (some == State.OK).tolist())
    for index, value in enumerate(plain):
        if value is not None and not np.isclose(core[index], value):
            raise SystemExit(f"row {index}: {core[index]} and {value}")


if __name__ == "__main__":
    main()
