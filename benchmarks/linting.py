"""The linter: planted faults found, flags a rule on published rubrics, what an embedder adds, and its speed.

Run: python benchmarks/linting.py [--shared DIR] [--criteria 20000]

Flags are counted a rule for each 100 criteria. The bound is on warnings and errors that are not in the list of
verified findings below: each of them counts as false, right or wrong.
"""

from __future__ import annotations

import argparse
import itertools
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
from embeddings import read_criteria, read_wordings  # noqa: E402
from tests.linting.planted import CLEAN, PLANTED, found, linted  # noqa: E402

from rubricate.cli.linting import verifier_fault  # noqa: E402
from rubricate.embed import connect_embedder  # noqa: E402
from rubricate.rubrics import BinaryScale, Criterion, Rubric  # noqa: E402
from rubricate.rubrics.formats import Imported, load_rubrics  # noqa: E402
from rubricate.rubrics.linting import Finding, Limits, lint, rules  # noqa: E402

SHARED = Path(os.environ.get("RUBRICATE_SHARED", ROOT.parent / "shared" / "data"))
BOUND = 2.0
"""Unverified warnings and errors for each 100 criteria: at most so many."""

VERIFIED = {
    ("PaperBench", "C506"): (12, "the leaf says TODO, mostly `confirm with the author`; self-composing-policies"),
    ("PaperBench", "D101"): (11, "two leaves of one group have the same text, so that it counts twice"),
    ("PaperBench", "D105"): (6, "two nodes of one tree have the same id"),
}
"""Flags that were looked at one by one and are faults of the rubric: how many, and why."""


def planted() -> None:
    """How many planted faults are found, for each rule, and what is found where there is nothing."""
    counts = Counter(one.code for one in PLANTED)
    missed = [one.code for one in PLANTED if not found(one)]
    said = f"{counts.total() - len(missed)} of {counts.total()} found, of {len(counts)} rules"
    print(f"planted faults: {said}; missed: {', '.join(missed) or 'none'}")
    false = sum(len(linted(record, name)) for name, record in CLEAN)
    formats = {name for name, _ in CLEAN}
    print(f"rubrics without fault: {false} findings in {len(CLEAN)} rubrics of {len(formats)} formats")


def flags(name: str, files: Sequence[Path]) -> bool:
    """Print flags a rule; whether the bound holds."""
    read = [load_rubrics(path) for path in files]
    size = sum(len(rubric) for imported in read for rubric in imported.rubrics)
    found = [finding for imported in read for finding in lint(imported, verifiers=verifier_fault)]
    loud = Counter(finding.code for finding in found if finding.severity.rank)
    false = sum(max(0, count - _verified(name, code)) for code, count in loud.items())
    print(f"\n{name}: {size:,} criteria in {sum(len(one.rubrics) for one in read)} rubrics")
    _print_rules(name, found, size)
    print(f"warnings and errors: {100 * loud.total() / size:.2f} for each 100 criteria (verified ones included)")
    holds = 100 * false / size <= BOUND
    print(f"not verified: {100 * false / size:.2f} for each 100; bound {BOUND:g}: {'holds' if holds else 'BROKEN'}")
    _print_flat(read, size)
    return holds


def _verified(name: str, code: str) -> int:
    return VERIFIED.get((name, code), (0, ""))[0]


def _print_rules(name: str, found: Sequence[Finding], size: int) -> None:
    counts = Counter((finding.code, finding.severity) for finding in found)
    names = {one.code: one.name for one in rules()}
    rows = [
        (f"{code} {names[code]}", severity, count, f"{100 * count / size:.2f}", _verified(name, code) or "")
        for (code, severity), count in sorted(counts.items())
    ]
    print(table(("rule", "severity", "flags", "per 100", "verified"), rows or [("none", "", 0, "0.00", "")]))


def _print_flat(read: Sequence[Imported], size: int) -> None:
    """The same texts as binary criteria of flat rubrics, where no described level or group makes a flag an info.

    What the trees' groups keep apart is then compared, and repeats, so that family D is left out; so is C506, whose
    flags are verified.
    """
    flat = [
        rubric.model_copy(
            update={"groups": (), "criteria": tuple(_bare(criterion) for criterion in rubric.criteria)}
        )
        for imported in read
        for rubric in imported.rubrics
    ]
    loud = Counter(f.code for f in lint(flat, ignore=["D", "C506"]) if f.severity.rank)
    listed = ", ".join(f"{code} {100 * count / size:.2f}" for code, count in sorted(loud.items())) or "none"
    print(f"as flat binary criteria, warnings and errors for each 100: {listed}")


def _bare(criterion: Criterion) -> Criterion:
    return criterion.model_copy(update={"path": (), "scale": BinaryScale()})


def meaning(shared: Path) -> None:
    """What D107 reports at several cosines: paraphrases, contradictions, and pairs that are neither.

    The last are criteria of different tasks (BiGGen-Bench), and leaves of one group (PaperBench), where nearly each
    pair is a variant on purpose: the rate of false pairs within one rubric, in rubrics whose texts are much alike.
    """
    embedder, criteria, wordings = connect_embedder("wordllama"), read_criteria(shared), read_wordings()
    texts = {key: text for key, text in criteria.items() if text.strip()}
    tasks = Counter(key.rpartition("_")[0] for key in texts)
    trees = [load_rubrics(path) for path in sorted((shared / "paperbench").glob("rubric_*.json"))]
    leaves = [criterion for one in trees for rubric in one.rubrics for criterion in rubric.criteria]
    told = {
        key: [_pair(criteria[wording["id"]], wording[key]) for wording in wordings if key in wording]
        for key in ("paraphrase", "contradiction")
    }
    whole = Rubric(criteria=tuple(Criterion(id=key, text=text) for key, text in texts.items()))
    print("\nD107 with wordllama, pairs reported")
    rows: list[tuple[object, ...]] = []
    for cosine in (0.5, 0.6, 0.65, 0.7, 0.8):

        def found(rubrics: Sequence[Rubric] | Imported, least: float = cosine) -> list[Finding]:
            limits = Limits(similar_cosine=least, shown=len(leaves) ** 2)
            return lint(rubrics, embedder=embedder, select=["D107"], limits=limits)

        across = [f for f in found([whole]) if len({name.rpartition("_")[0] for name in f.criterion_ids}) > 1]
        siblings = sum(len(found(one)) for one in trees)
        rows.append((f"{cosine:.2f}", *(len(found(pairs)) for pairs in told.values()), len(across), siblings))
    groups = itertools.chain.from_iterable(_groups(rubric) for one in trees for rubric in one.rubrics)
    totals = (_pairs(len(texts)) - sum(map(_pairs, tasks.values())), sum(map(_pairs, groups)))
    heads = [f"{key}s of {len(pairs)}" for key, pairs in told.items()]
    print(table(("cosine", *heads, f"of {totals[0]:,} across tasks", f"of {totals[1]:,} in groups"), rows))


def _pair(first: str, second: str) -> Rubric:
    return Rubric(criteria=(Criterion(id="a", text=first), Criterion(id="b", text=second)))


def _groups(rubric: Rubric) -> list[int]:
    return list(Counter(criterion.path for criterion in rubric.criteria).values())


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


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
    texts = [
        f"The response {draw.choice(verbs)} the {' '.join(draw.choices(words, k=draw.randint(8, 20)))}."
        for _ in range(size)
    ]
    return Rubric(criteria=tuple(Criterion(id=f"c{at}", text=text) for at, text in enumerate(texts)))


def main() -> None:
    """Print all parts; ends with an error where the bound is broken."""
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
    if all((args.shared / name).is_dir() for name in ("prometheus_biggen", "paperbench")):
        meaning(args.shared)
    print()
    speed(args.criteria)
    if not all(held):
        raise SystemExit("the bound on unverified warnings is broken")


if __name__ == "__main__":
    main()
