"""What a client costs: 50 responses x 8 criteria against a server that takes 20 ms and knows the right verdicts.

Each contestant has a process of its own and the server another, so CPU seconds are the client's alone. Prompt
tokens are characters / 4; "computed" is what an ideal prefix cache with blocks of 16 tokens still has to compute,
"late" the same where a block is cached only once the request that brought it is answered.

    python benchmarks/client_overhead.py                                  # ours and the bare loop
    python benchmarks/client_overhead.py --setup-peers --peers-venv .venv-peers   # and the other packages
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from _measure import Report, import_cost, run_client, table
from _server import ServerProcess, Stats
from _texts import case_texts
from _workload import Case, cases, exact_score, save_cases

LATENCY = 0.02
PEERS = ("rubric==2.2.0", "autorubric==1.6.1", "openai")
HEAD = (
    "Contestant",
    "right",
    "requests",
    "prompt tok",
    "computed",
    "late",
    "CPU s",
    "spread",
    "+ imports",
    "wall s",
    "peak MB",
    "in flight",
)


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who runs: a script of this folder with arguments (URL and file are put in), and the server's reply shape."""

    name: str
    script: str
    arguments: tuple[str, ...]
    shape: str = "rubricate"
    peer: bool = False


@dataclass(slots=True)
class Result:
    """The runs of one contestant, and the server's counts of the last."""

    contestant: Contestant
    right: int
    stats: Stats
    reports: list[Report] = field(default_factory=list[Report])

    def row(self) -> list[str]:
        """A line of the table; CPU and wall time are the least of the runs."""
        work = [report.cpu_work for report in self.reports]
        return [
            self.contestant.name,
            f"{self.right}/{len(self.reports[0].scores)}",
            str(self.stats["requests"]),
            *(thousands(self.stats[name]) for name in ("prompt_tokens", "computed_tokens", "computed_late")),
            f"{min(work):.2f}",
            f"{min(work):.2f}-{max(work):.2f}",
            f"{min(report.cpu for report in self.reports):.2f}",
            f"{min(report.wall for report in self.reports):.2f}",
            f"{max(report.peak_mb for report in self.reports):.0f}",
            str(self.stats["max_in_flight"]),
        ]

    def record(self) -> dict[str, object]:
        """Everything, for the JSON file."""
        runs = [
            {
                "cpu_work": report.cpu_work,
                "cpu_with_imports": report.cpu,
                "wall": report.wall,
                "peak_mb": report.peak_mb,
            }
            for report in self.reports
        ]
        return {"name": self.contestant.name, "right": self.right, "server": self.stats.record, "runs": runs}


CONTESTANTS = (
    Contestant(
        "bare aiohttp, rubricate's texts, criterion first", "_client_bare.py", ("URL", "TEXTS", "criterion")
    ),
    Contestant("bare aiohttp, rubricate's texts, response first", "_client_bare.py", ("URL", "TEXTS", "response")),
    Contestant("rubricate, reasons, a call a criterion", "_client_ours.py", ("reasoned", "URL", "CASES")),
    Contestant("rubricate, reasons, all in one call", "_client_ours.py", ("one-call", "URL", "CASES")),
    Contestant("rubricate, log-probability", "_client_ours.py", ("logprob", "URL", "CASES")),
    Contestant("rubricate, reasons, openai SDK back end", "_client_ours.py", ("openai", "URL", "CASES")),
    Contestant("rubric, a call a criterion", "_client_peers.py", ("rubric", "URL", "CASES"), "one", True),
    Contestant("rubric, one-shot", "_client_peers.py", ("rubric-one-shot", "URL", "CASES"), "numbered", True),
    Contestant("autorubric, a call a criterion", "_client_peers.py", ("autorubric", "URL", "CASES"), "one", True),
    Contestant(
        "autorubric, the same, 32 parallel", "_client_peers.py", ("autorubric-32", "URL", "CASES"), "one", True
    ),
    Contestant(
        "autorubric, per item", "_client_peers.py", ("autorubric-per-item", "URL", "CASES"), "judgments", True
    ),
)
OURS, CRITERION_FIRST = CONTESTANTS[2], CONTESTANTS[0]


def thousands(tokens: int) -> str:
    """Tokens in thousands."""
    return f"{tokens / 1000:.1f}k"


def peers_python(folder: Path, setup: bool) -> Path | None:
    """The interpreter of the peers' environment, made now if asked for; None where there is none."""
    python = folder / "bin" / "python"
    if setup and not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS], check=True)
    if not python.exists():
        return None
    check = subprocess.run([str(python), "-c", "import rubric"], capture_output=True, check=False)
    return None if check.returncode else python


def race(contestant: Contestant, python: Path, jobs: Sequence[Case], files: dict[str, str], repeat: int) -> Result:
    """Run one contestant `repeat` times, each time with a fresh server."""
    result: Result | None = None
    exact = [exact_score(case.met) for case in jobs]
    for _ in range(repeat):
        with ServerProcess(contestant.shape, latency=LATENCY) as server:
            arguments = [{**files, "URL": server.url}.get(word, word) for word in contestant.arguments]
            report = run_client(python, contestant.script, arguments)
            stats = server.stats()
        close = [s is not None and abs(s - e) < 1e-9 for s, e in zip(report.scores, exact, strict=True)]
        result = result or Result(contestant, sum(close), stats)
        result.right, result.stats = min(result.right, sum(close)), stats
        result.reports.append(report)
    assert result is not None
    return result


def verdicts(results: Sequence[Result], imports: tuple[float, float]) -> list[str]:
    """The figures that the design asks for, each with what was reached."""
    by_name = {result.contestant.name: result for result in results}
    lines = [
        f"import rubricate: {imports[0]:.3f} s, {imports[1]:.1f} MB over a bare interpreter (< 0.3 s, < 50 MB)"
    ]
    ours, other = by_name.get(OURS.name), by_name.get(CRITERION_FIRST.name)
    if ours is not None:
        cpu = min(report.cpu_work for report in ours.reports)
        whole = min(report.cpu for report in ours.reports)
        lines.append(
            f"client CPU, a call a criterion: {cpu:.2f} s, {whole:.2f} s with start and imports (<= 0.4 s)"
        )
    if ours is not None and other is not None:
        share = ours.stats["computed_tokens"] / other.stats["computed_tokens"]
        lines.append(f"computed tokens, ours / the same texts with the criterion first: 1/{1 / share:.1f} (<= 1/5)")
        late = ours.stats["computed_late"] / other.stats["computed_late"]
        lines.append(f"the same where a block is cached only when its request is answered: 1/{1 / late:.1f}")
    return lines


def main() -> None:
    """Run what is there and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each contestant (default 3)")
    parser.add_argument("--responses", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the texts and verdicts")
    parser.add_argument("--only", default="", help="run only contestants whose name contains this")
    parser.add_argument("--peers-venv", type=Path, default=Path(".venv-peers"), help="default .venv-peers")
    parser.add_argument("--setup-peers", action="store_true", help=f"make it, with {', '.join(PEERS)} (830 MB)")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    peers = peers_python(options.peers_venv, options.setup_peers)
    jobs = cases(options.responses, options.seed)
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"CASES": str(Path(folder, "cases.json")), "TEXTS": str(Path(folder, "texts.json"))}
        save_cases(Path(files["CASES"]), jobs)
        Path(files["TEXTS"]).write_text(json.dumps(case_texts(jobs)), encoding="utf-8")
        for contestant in CONTESTANTS:
            python = peers if contestant.peer else Path(sys.executable)
            if python is None or options.only not in contestant.name:
                continue
            print(f"... {contestant.name}", file=sys.stderr, flush=True)
            results.append(race(contestant, python, jobs, files, options.repeat))
    imports = import_cost("rubricate")
    print(table(HEAD, [result.row() for result in results]), end="\n\n")
    print("\n".join(f"- {line}" for line in verdicts(results, imports)))
    if peers is None:
        print(f"- no other packages in {options.peers_venv}: run with --setup-peers to see them")
    if options.json is not None:
        record = {"import": imports, "results": [result.record() for result in results]}
        options.json.write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
