"""What embeddings cost, and what their cosine tells of two criteria: the same, unrelated or contrary.

Run: python benchmarks/embeddings.py [--embedder wordllama] [--texts 20000] [--data ../shared/data]

Targets: 20,000 short texts in under 5 s on one core with the embedded default; AUC of paraphrases against unrelated
criteria at least 0.95.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# One core: before the libraries that read these are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", RAYON_NUM_THREADS="1")

import numpy as np  # noqa: E402 - after the variables above
from _measure import cpu_seconds, peak_mb  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from rubricate.bridge import run_sync  # noqa: E402
from rubricate.embed import Embedder, connect_embedder, similar_pairs  # noqa: E402
from rubricate.narrow import as_object  # noqa: E402

Floats = NDArray[np.float64]


def read_criteria(data: Path) -> dict[str, str]:
    """The criteria of BiGGen-Bench by instance id."""
    file = data / "prometheus_biggen" / "biggen_instances.json"
    instances = as_object(json.loads(file.read_text(encoding="utf-8"))) or {}
    criteria = dict[str, str]()
    for key, value in instances.items():
        rubric = as_object((as_object(value) or {}).get("score_rubric")) or {}
        criteria[key] = str(rubric.get("criteria", ""))
    return criteria


def first_call(name: str) -> None:
    """Seconds and memory of a fresh process that loads the embedder and embeds one text."""
    before, start = peak_mb(), time.perf_counter()
    run_sync(connect_embedder(name).embed(["a text"]))
    print(f"load and first text: {time.perf_counter() - start:.2f} s, {peak_mb() - before:.0f} MB more, ", end="")
    print(f"{peak_mb():.0f} MB in all")


def speed(embedder: Embedder, criteria: list[str], count: int) -> None:
    """Texts a second, and the close pairs of all of them."""
    texts = [f"{criteria[i % len(criteria)]} ({i})" for i in range(count)]
    run_sync(embedder.embed(texts[:1]))
    start, cpu = time.perf_counter(), cpu_seconds()
    vectors = run_sync(embedder.embed(texts))
    took, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    length = sum(map(len, texts)) / count
    print(
        f"{count:,} texts of {length:.0f} characters: {took:.2f} s, {count / took:,.0f} a second, CPU {cpu:.2f} s"
    )
    start, cpu = time.perf_counter(), cpu_seconds()
    pairs = similar_pairs(vectors, 0.999)
    took, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    print(
        f"close pairs of them (>= .999): {len(pairs):,} in {took:.2f} s, CPU {cpu:.2f} s; peak {peak_mb():.0f} MB"
    )


def auc(positive: Floats, negative: Floats) -> float:
    """P(a positive pair is closer than a negative one), ties count half (Mann-Whitney)."""
    table = positive[:, None] - negative[None, :]
    return (int(np.sum(table > 0)) + int(np.sum(table >= 0))) / (2 * table.size)


def best_threshold(positive: Floats, negative: Floats, precision: float) -> str:
    """The lowest threshold such that it and all above it have that precision, in words."""
    best = "no threshold has it"
    for threshold in sorted(set(positive.tolist()), reverse=True):
        hits, wrong = int(np.sum(positive >= threshold)), int(np.sum(negative >= threshold))
        if hits / (hits + wrong) < precision:
            break
        best = f"from cosine {threshold:.2f} on, recall {hits / len(positive):.2f}"
    return best


def read_wordings() -> list[dict[str, str]]:
    """Criteria by id, said again in other words (`paraphrase`) and, half of them, the other way round
    (`contradiction`). The wordings are our own."""
    lines = Path(__file__).with_name("_paraphrases.jsonl").read_text(encoding="utf-8").splitlines()
    records = [as_object(json.loads(line)) or {} for line in lines]
    return [{key: str(value) for key, value in record.items()} for record in records]


def quality(embedder: Embedder, criteria: dict[str, str]) -> None:
    """AUC and thresholds on pairs written by hand and on all pairs of different tasks."""

    def vectors(texts: list[str]) -> Floats:
        return run_sync(embedder.embed(texts)).astype(np.float64)

    wordings = read_wordings()
    originals = vectors([criteria[wording["id"]] for wording in wordings])
    said_again = vectors([wording["paraphrase"] for wording in wordings])
    denied = [index for index, wording in enumerate(wordings) if "contradiction" in wording]
    contrary = np.asarray(
        np.sum(originals[denied] * vectors([wordings[index]["contradiction"] for index in denied]), axis=1)
    )
    paraphrases = np.asarray(np.sum(originals * said_again, axis=1))
    # the paraphrase of the next criterion of the list: mostly of the same ability, so written alike
    unrelated = np.asarray(np.sum(originals * np.roll(said_again, -1, axis=0), axis=1))
    print("\npairs                      n   min   10%  median   90%   max")
    for label, values in (("paraphrases", paraphrases), ("unrelated", unrelated), ("contradictions", contrary)):
        low, tenth, median, ninth, high = np.quantile(values, [0, 0.1, 0.5, 0.9, 1]).tolist()
        print(f"{label:24} {len(values):3} {low:5.2f} {tenth:5.2f} {median:7.2f} {ninth:5.2f} {high:5.2f}")
    half = np.concatenate([unrelated[::2], contrary])
    for label, negative in (
        ("40 unrelated", unrelated),
        ("20 contradictions", contrary),
        ("20 unrelated and 20 contradictions", half),
    ):
        found = best_threshold(paraphrases, negative, 0.95)
        print(f"40 paraphrases against {label}: AUC {auc(paraphrases, negative):.3f}; precision .95: {found}")
    other_tasks(embedder, criteria, paraphrases, contrary)


def other_tasks(embedder: Embedder, criteria: dict[str, str], paraphrases: Floats, contrary: Floats) -> None:
    """What a threshold finds, beside how many criteria of different tasks, which are no duplicates, it pairs."""
    keys = [key for key in criteria if criteria[key].strip()]
    tasks = [key.rpartition("_")[0] for key in keys]
    vectors = run_sync(embedder.embed([criteria[key] for key in keys]))
    total = sum(1 for i, task in enumerate(tasks) for other in tasks[i + 1 :] if other != task)
    pairs = [value for i, j, value in similar_pairs(vectors, 0.4) if tasks[i] != tasks[j]]
    print(f"\ncosine  paraphrases  contradictions  of {total:,} pairs of criteria of different tasks")
    for threshold in (0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9):
        again, denied = np.mean(paraphrases >= threshold), np.mean(contrary >= threshold)
        count = sum(value >= threshold for value in pairs)
        print(f"{threshold:5.2f}  {again:10.0%}  {denied:13.0%}  {count:,} ({count / total:.4%})")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--texts", type=int, default=20_000)
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RUBRICATE_SHARED", default)))
    parser.add_argument("--first-call", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first_call:
        first_call(arguments.embedder)
        return
    command = [sys.executable, __file__, "--first-call", "--embedder", arguments.embedder]
    subprocess.run(command, check=True)
    embedder = connect_embedder(arguments.embedder)
    criteria = read_criteria(arguments.data)
    speed(embedder, [text for text in criteria.values() if text.strip()], arguments.texts)
    quality(embedder, criteria)


if __name__ == "__main__":
    main()
