"""The linter: planted faults found, flags a rule on published rubrics, and seconds for 20,000 criteria.

Run: python benchmarks/linting.py [--shared DIR] [--criteria 20000]

Flags are counted a rule for each 100 criteria. The bound is on criteria with a warning or an error that is not in
the list of verified findings below; every other flag counts as false, right or wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _measure import table  # noqa: E402 - needs the path above
from tests.linting.planted import CLEAN, PLANTED, found, linted  # noqa: E402

from rubricate.cli.linting import verifier_fault  # noqa: E402
from rubricate.rubrics import BinaryScale, Criterion, Rubric  # noqa: E402
from rubricate.rubrics.formats import Imported, load_rubrics  # noqa: E402
from rubricate.rubrics.linting import Finding, lint, rules  # noqa: E402

SHARED = Path(os.environ.get("RUBRICATE_SHARED", ROOT.parent / "shared" / "data"))
BOUND = 2.0
"""Criteria with an unverified warning or error, for each 100: at most so many."""

VERIFIED = {
    "C506": "the leaf says TODO, mostly `TODO: confirm with the author`; rubric_self-composing-policies",
    "D101": "two leaves of one group have the same text, so that it counts twice",
    "D105": "two nodes of one tree have the same id",
}
"""Rules of which every flag on these two data sets was looked at and is a fault of the rubric, with the reason."""


def planted() -> None:
    """How many planted faults are found, for each rule, and what is found where there is nothing."""
    counts = Counter(one.code for one in PLANTED)
    hits = Counter(one.code for one in PLANTED if found(one))
    missed = [one.code for one in PLANTED if not found(one)]
    print(
        f"planted faults: {hits.total()} of {counts.total()} found, of {len(counts)} rules; missed: {missed or 'none'}"
    )
    false = sum(len(linted(record, name)) for name, record in CLEAN)
    print(
        f"rubrics without fault: {false} findings in {len(CLEAN)} rubrics of {len({name for name, _ in CLEAN})} formats"
    )


def flags(name: str, files: Sequence[Path]) -> bool:
    """Print flags a rule; whether the bound holds."""
    read = [load_rubrics(path) for path in files]
    size = sum(len(rubric) for imported in read for rubric in imported.rubrics)
    found = [
        (at, finding) for at, imported in enumerate(read) for finding in lint(imported, verifiers=verifier_fault)
    ]
    loud = {_criterion(at, finding) for at, finding in found if finding.severity.rank}
    false = {
        _criterion(at, finding) for at, finding in found if finding.severity.rank and finding.code not in VERIFIED
    }
    print(f"\n{name}: {size:,} criteria in {sum(len(one.rubrics) for one in read)} rubrics")
    _print_rules([finding for _, finding in found], size)
    print(f"criteria with a warning or an error: {100 * len(loud) / size:.2f} of 100 (verified ones included)")
    holds = 100 * len(false) / size <= BOUND
    print(f"not verified: {100 * len(false) / size:.2f} of 100; bound {BOUND:g}: {'holds' if holds else 'BROKEN'}")
    _print_flat(read, size)
    return holds


def _criterion(at: int, finding: Finding) -> tuple[object, ...]:
    return at, finding.index, finding.criterion_ids[:1]


def _print_rules(found: Sequence[Finding], size: int) -> None:
    counts = Counter((finding.code, finding.severity) for finding in found)
    names = {one.code: one.name for one in rules()}
    rows = [
        (f"{code} {names[code]}", severity, count, f"{100 * count / size:.2f}", "yes" if code in VERIFIED else "")
        for (code, severity), count in sorted(counts.items())
    ]
    print(table(("rule", "severity", "flags", "per 100", "verified"), rows or [("none", "", 0, "0.00", "")]))


def _print_flat(read: Sequence[Imported], size: int) -> None:
    """The same texts as binary criteria of flat rubrics, where no described level or group makes a flag an info.

    What the trees' groups keep apart is then compared, and repeats, so that family D is left out.
    """
    flat = [
        rubric.model_copy(
            update={"groups": (), "criteria": tuple(_bare(criterion) for criterion in rubric.criteria)}
        )
        for imported in read
        for rubric in imported.rubrics
    ]
    loud = Counter(f.code for f in lint(flat, ignore=["D"]) if f.severity.rank and f.code not in VERIFIED)
    listed = ", ".join(f"{code} {100 * count / size:.2f}" for code, count in sorted(loud.items())) or "none"
    print(f"as flat binary criteria, warnings and errors for each 100: {listed}")


def _bare(criterion: Criterion) -> Criterion:
    return criterion.model_copy(update={"path": (), "scale": BinaryScale()})


def speed(criteria: int) -> None:
    """Seconds for so many criteria: rubrics of ten, one rubric of all, and one of few different words."""
    for name, size, vocabulary in (
        ("in rubrics of 10", 10, 3000),
        ("in one rubric", criteria, 3000),
        ("in one, of 60 words", criteria, 60),
    ):
        rubrics = [_random(size, vocabulary, at) for at in range(criteria // size)]
        wall, cpu = time.perf_counter(), time.process_time()
        count = len(lint(rubrics))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{criteria:,} criteria {name:<20} {cpu:6.2f} s CPU {wall:6.2f} s wall, {count} findings")


def _random(size: int, vocabulary: int, seed: int) -> Rubric:
    draw, shared = random.Random(seed), random.Random(0)
    words = [
        "".join(shared.choices("abcdefghijklmnopqrstuvwxyz", k=shared.randint(4, 10))) for _ in range(vocabulary)
    ]
    verbs = ("mentions", "explains", "states", "includes")
    texts = (
        f"The response {draw.choice(verbs)} the {' '.join(draw.choices(words, k=draw.randint(8, 20)))}."
        for _ in range(size)
    )
    return Rubric(criteria=tuple(Criterion(id=f"c{at}", text=text) for at, text in enumerate(texts)))


def main() -> None:
    """Print all three parts; ends with an error where the bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--criteria", type=int, default=20_000)
    args = parser.parse_args()
    planted()
    sets = {
        "BiGGen-Bench": [args.shared / "prometheus_biggen" / "biggen_instances.json"],
        "PaperBench": sorted((args.shared / "paperbench").glob("rubric_*.json")),
    }
    held = [flags(name, files) for name, files in sets.items() if files and files[0].exists()]
    print()
    speed(args.criteria)
    if not all(held):
        raise SystemExit("the bound on unverified warnings is broken")


if __name__ == "__main__":
    main()
