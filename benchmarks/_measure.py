"""What one client process reports of itself, and how a benchmark starts it. Standard library only."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

__all__ = ["Meter", "Report", "import_cost", "run_client", "table"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Report:
    """What a client says of its run.

    Attributes:
        scores: a score a case, None where there is none.
        cpu: seconds of user and system time of the whole process, start of the interpreter included.
        cpu_import: part of it that had passed when everything was imported.
        wall: seconds of wall time of the work after the imports.
        peak_mb: highest resident memory in MB.
        flags: for each case, what the client itself said was wrong, "" where nothing.
    """

    scores: list[float | None]
    cpu: float
    cpu_import: float
    wall: float
    peak_mb: float
    flags: list[str] = field(default_factory=list[str])

    @property
    def cpu_work(self) -> float:
        """CPU seconds without start and imports."""
        return self.cpu - self.cpu_import


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mb() -> float:
    """Highest resident memory of this program. `ru_maxrss` would count what the parent had when it forked."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Meter:
    """Made when a client has imported what it needs; `finish` prints the report as the last line."""

    def __init__(self) -> None:
        self.cpu_import = cpu_seconds()
        self.start = time.perf_counter()

    def finish(self, scores: Sequence[float | None], flags: Sequence[str] = ()) -> None:
        """Print the report."""
        wall = time.perf_counter() - self.start
        report = Report(list(scores), cpu_seconds(), self.cpu_import, wall, peak_mb(), list(flags))
        print("\n" + json.dumps(asdict(report)), flush=True)


def run_client(python: Path, script: str, arguments: Sequence[str], timeout: float = 300.0) -> Report:
    """Run a client script of this folder and read its report. Raises RuntimeError with its errors when it fails."""
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    command = [str(python), str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{script} {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    record = cast("Mapping[str, object]", json.loads(lines[-1]))
    return Report(**record)  # type: ignore[arg-type]


_IMPORT = """
import sys, time
start = time.perf_counter()
if sys.argv[1]:
    __import__(sys.argv[1])
wall = time.perf_counter() - start
memory = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(wall, memory)
"""


def import_cost(module: str, runs: int = 5) -> tuple[float, float]:
    """Seconds (least of `runs`) that an import takes, and MB of memory over an interpreter that imports nothing."""

    def once(name: str) -> tuple[float, float]:
        command = [sys.executable, "-c", _IMPORT, name]
        wall, memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(wall), float(memory)

    bare = min(once("")[1] for _ in range(runs))
    costs = [once(module) for _ in range(runs)]
    return min(wall for wall, _ in costs), min(memory for _, memory in costs) - bare


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, the first column to the left and the others to the right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]

    def line(row: Sequence[str]) -> str:
        first, *rest = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        numbers = [cell.strip().rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        return "| " + " | ".join([first, *numbers]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([line(cells[0]), rule, *(line(row) for row in cells[1:])])


if __name__ == "__main__":
    sys.exit("a helper of the other scripts; run those")
