"""`rubricate generate` over many prompts: memory, rate, and what two kills in the middle cost.

A mock model answers each prompt with seven criteria after 20 ms. The run is killed (SIGKILL) at a third and two
thirds of its calls and started again. Then every row must be there once, and calls that were made more often than
needed must be no more than those in flight. Memory is the highest of all processes, that of a small run beside it.

    python benchmarks/generate.py            # 100,000 prompts, some ten minutes
    python benchmarks/generate.py --rows 5000
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from _measure import table

AT_ONCE = 64
HERE = Path(__file__).resolve().parent
CODE = "import typer; from rubricate.cli.generate_command import generate; typer.run(generate)"


@dataclass(slots=True)
class Run:
    """What a process came to: how it ended, seconds, CPU seconds, and highest memory in MB."""

    code: int
    wall: float
    cpu: float
    peak: float
    errors: str


def make_rows(path: Path, count: int) -> None:
    """Prompts of about 60 words with references."""
    filler = (
        "with the sun low and the air clear over the hills, as people there have long been used to see it, " * 2
    )
    with open(path, "w") as file:
        for n in range(count):
            prompt = f"For item {n}, {filler}why is the sky blue, and why is it red at {n % 24} o'clock?"
            file.write(json.dumps({"prompt": prompt, "reference": f"Short waves scatter most (case {n})."}) + "\n")


def run(folder: Path, log: Path, out: str, kill_at: int | None = None) -> Run:
    """Run the command to its end, or until so many calls are logged."""
    command = [
        sys.executable, "-c", CODE, "--in", "rows.jsonl", "--out", out, "--method", "reference",
        "--model", f"bench:{log}", "--import", str(HERE / "_generate_model.py"), "--concurrency", str(AT_ONCE),
    ]  # fmt: skip
    began = time.monotonic()
    with open(folder / "errors.txt", "w+") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
        while kill_at is not None and process.poll() is None and _lines(log) < kill_at:
            time.sleep(min(0.2, 2e-6 * kill_at + 0.02))
        if kill_at is not None:
            process.send_signal(signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read()
    cpu = usage.ru_utime + usage.ru_stime
    return Run(process.returncode, time.monotonic() - began, cpu, usage.ru_maxrss / 1024, said)


def _lines(log: Path) -> int:
    return sum(chunk.count(b"\n") for chunk in [log.read_bytes()]) if log.exists() else 0


def check(folder: Path, log: Path, count: int) -> tuple[int, int]:
    """Rows that are not there once, and calls beyond one a row."""
    files = sorted((folder / "out" / "data").glob("*.jsonl"))
    seen: Counter[str] = Counter()
    for file in files:
        with open(file) as rows:
            seen.update(str(json.loads(row)["id"]) for row in rows)
    wrong = sum(seen[str(n + 1)] != 1 for n in range(count)) + sum(seen.values()) - count
    calls = Counter(log.read_text().split())
    return wrong, sum(calls.values()) - len(calls)


def main() -> int:
    """Print the table; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    count: int = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_rows(folder / "rows.jsonl", min(1000, count))
        small = run(folder, folder / "small.log", "small")
        make_rows(folder / "rows.jsonl", count)
        log = folder / "calls.log"
        runs = [
            run(folder, log, "out", count // 3),
            run(folder, log, "out", 2 * count // 3),
            run(folder, log, "out"),
        ]
        if small.code or runs[-1].code:
            print(small.errors, runs[-1].errors)
            return 1
        wrong, repeated = check(folder, log, count)
        head = ["run", "ended", "wall s", "CPU s", "peak MB"]
        rows = [["1,000 rows", str(small.code), f"{small.wall:.1f}", f"{small.cpu:.1f}", f"{small.peak:.0f}"]]
        for name, one in zip(("until the first kill", "until the second", "to the end"), runs, strict=True):
            rows.append([name, str(one.code), f"{one.wall:.1f}", f"{one.cpu:.1f}", f"{one.peak:.0f}"])
        print(table(head, rows))
        wall, cpu = sum(one.wall for one in runs), sum(one.cpu for one in runs)
        print(
            f"\n{count:,} rows: {count / wall:.0f} a second, {1000 * cpu / count:.2f} ms of CPU a row, all included"
        )
        print(f"rows not there exactly once: {wrong}; repeated calls: {repeated} (two kills, {AT_ONCE} in flight)")
        print(f"memory over the small run: {max(one.peak for one in runs) - small.peak:+.0f} MB")
        print("last line of progress: " + next(line for line in reversed(runs[-1].errors.splitlines()) if line))
        return int(wrong != 0 or repeated > 2 * AT_ONCE)


if __name__ == "__main__":
    sys.exit(main())
