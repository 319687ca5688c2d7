"""What a check in the sandbox costs: wall and CPU time of a process, of a further text in it, and of many at once.

Run: python benchmarks/sandbox.py [--checks 40] [--characters 4000]
Target: 0.06 to 0.09 s for a check in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time
from collections.abc import Callable

from rubricate.judges.sandbox import run_check, run_checks, run_checks_async

SOURCE = """
import re

def verify_requirement(text: str) -> bool:
    words = re.findall(r"[A-Za-z']+", text)
    return len(words) >= 100 and not re.search(r"\\bI\\b", text)
"""
FLOOD = "def verify_requirement(text):\n    while True:\n        print(text)\n"


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, used = time.perf_counter(), cpu()
    run()
    return time.perf_counter() - wall, cpu() - used


def show(name: str, wall: float, used: float, note: str = "") -> None:
    """One line of the table."""
    print(f"{name:<44}{wall * 1e3:>9.1f}{used * 1e3:>9.1f}  {note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--characters", type=int, default=4000)
    options = parser.parse_args()
    count = options.checks
    text = ("The quick brown fox jumps over the lazy dog. " * options.characters)[: options.characters]
    run_check(SOURCE, text)  # the first one compiles the sandbox's own modules
    print(f"{'milliseconds a check':<44}{'wall':>9}{'CPU':>9}")
    each = [timed(lambda: run_check(SOURCE, text)) for _ in range(count)]
    walls = sorted(wall for wall, _ in each)
    spread = f"from {walls[0] * 1e3:.0f} to {walls[-1] * 1e3:.0f}"
    show("a process for one text, median", statistics.median(walls), statistics.median(c for _, c in each), spread)
    wall, used = timed(lambda: run_checks(SOURCE, [text] * count))
    show(f"one process for {count} texts", wall / count, used / count)

    async def at_once() -> None:
        await asyncio.gather(*(run_checks_async(SOURCE, [text]) for _ in range(count)))

    wall, used = timed(lambda: asyncio.run(at_once()))
    show(f"{count} processes from one event loop", wall / count, used / count)
    wall, used = timed(lambda: run_check(FLOOD, text, seconds=0.5))
    show("a flood of output, cut after 0.5 s", wall, used, "once")


if __name__ == "__main__":
    main()
