"""What scores are worth when the judge's server misbehaves: 50 responses x 8 criteria, each score compared with the
exact one.

Faults follow from the seed and from what is asked, not from when it arrives. Damaged replies are meant to mislead:
reasons quote the other verdict, words that are no verdict contain one, lists contradict their closing lists.

    python benchmarks/faults.py                                  # ours
    python benchmarks/faults.py --peers --peers-venv .venv-peers   # the other packages as well
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from _judging import JUDGES, make_reward
from _measure import run_client, table
from _server import ContentFaultServer, ServerProcess
from _texts import rollouts, rubric
from _workload import Case, cases, exact_score, save_cases

from rubricate.chat import Limits
from rubricate.chat.testserver import Faults
from rubricate.types import Reward, Status

LIMITS = Limits(backoff=0.02, max_backoff=0.1, attempt_timeout=10.0, breaker_pause=0.05, seed=0)
RATE = 0.1
DEADLINE = 2.0
HEAD = (
    "Fault",
    "judge",
    "right",
    "wrong, no flag",
    "wrong, flagged",
    "unscored, why",
    "zeros",
    "requests",
    "wall s",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of trouble.

    Attributes:
        faults: rates by request.
        judges: which judges meet it.
        contradict: share of the off-vocabulary faults that are contradictions instead.
        limits: of the client.
        deadline: seconds that scoring everything may take.
        scored: share of the responses that must have a score.
        peers: whether other packages can be held to it (a contradiction needs our closing list).
    """

    name: str
    faults: Faults
    judges: tuple[str, ...] = ("reasoned", "one-call")
    contradict: float = 0.0
    limits: Limits = LIMITS
    deadline: float | None = None
    scored: float = 0.95
    peers: bool = True


_ALL = Faults(
    malformed=0.03, http=0.03, missing=0.03, off_vocabulary=0.06, length=0.02, empty=0.02, disconnect=0.01
)
SCENARIOS = (
    Scenario("none", Faults(), JUDGES, scored=1.0),
    Scenario("malformed 10%", Faults(malformed=RATE)),
    Scenario("HTTP 429 and 500 10%", Faults(http=RATE), JUDGES),
    Scenario("verdict missing 10%", Faults(missing=RATE)),
    Scenario("off vocabulary 10%", Faults(off_vocabulary=RATE)),
    Scenario("HTTP 429 and 500 50%", Faults(http=0.5), JUDGES, scored=0.0),
    Scenario(
        "hang 10%, a time limit a try",
        Faults(hang=RATE),
        JUDGES,
        limits=replace(LIMITS, attempt_timeout=0.3),
        peers=False,
    ),
    Scenario(
        f"hang 10%, deadline {DEADLINE:g} s",
        Faults(hang=RATE),
        JUDGES,
        limits=replace(LIMITS, attempt_timeout=None),
        deadline=DEADLINE,
        scored=0.0,
        peers=False,
    ),
    Scenario("cut at max_tokens 10%", Faults(length=RATE)),
    Scenario("empty 10%", Faults(empty=RATE)),
    Scenario("contradiction 10%", Faults(off_vocabulary=RATE), contradict=1.0, peers=False),
    Scenario("connection lost or body broken 10%", Faults(disconnect=0.04, garbage=0.03, truncated=0.03)),
    Scenario("all of them at once, 20%", _ALL, contradict=0.5, scored=0.9, peers=False),
    Scenario(
        "nothing but HTTP 429 and 500",
        Faults(http=1.0),
        JUDGES,
        limits=replace(LIMITS, breaker_patience=0.5),
        scored=0.0,
        peers=False,
    ),
)


@dataclass(slots=True)
class Outcome:
    """What became of the responses of one scenario under one judge.

    Attributes:
        right: scored, and equal to the exact score, every verdict right.
        wrong: scored otherwise without a flag.
        wrong_flagged: scored otherwise, and said so (status, coverage or failure).
        zeros: 0.0 given where the exact score is not 0.
        untyped: unscored without a typed failure.
        wrong_verdicts: single verdicts that are given as certain and are wrong, in unscored responses too.
        why: kinds of failure of the unscored ones.
    """

    scenario: str
    judge: str
    total: int
    right: int = 0
    wrong: int = 0
    wrong_flagged: int = 0
    zeros: int = 0
    untyped: int = 0
    wrong_verdicts: int = 0
    why: dict[str, int] = field(default_factory=dict[str, int])
    requests: int = 0
    wall: float = 0.0
    deadline: float | None = None

    @property
    def unscored(self) -> int:
        """Responses without a score."""
        return sum(self.why.values()) + self.untyped

    def add(self, value: float | None, exact: float, why: str, flagged: bool) -> None:
        """Count one response."""
        if value is None:
            self.untyped += not why
            if why:
                self.why[why] = self.why.get(why, 0) + 1
        elif abs(value - exact) < 1e-9:
            self.right += 1
        elif flagged:
            self.wrong_flagged += 1
        else:
            self.wrong += 1
        self.zeros += value == 0.0 and exact > 0.0

    def row(self) -> list[str]:
        """A line of the table."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.why.items()))
        kinds = ", ".join(part for part in (kinds, f"{self.untyped} untyped" if self.untyped else "") if part)
        return [
            self.scenario,
            self.judge,
            f"{self.right}/{self.total}",
            str(self.wrong),
            str(self.wrong_flagged),
            kinds or "-",
            str(self.zeros),
            str(self.requests),
            f"{self.wall:.2f}",
        ]

    def faults(self, scenario: Scenario) -> list[str]:
        """What this run should not have shown."""
        name = f"{self.scenario} ({self.judge})"
        found = [
            f"{name}: {count} {what}"
            for count, what in (
                (self.wrong, "wrong scores without a flag"),
                (self.zeros, "zeros for failures"),
                (self.untyped, "unscored without a typed failure"),
                (self.wrong_verdicts, "wrong verdicts"),
            )
            if count
        ]
        if self.total - self.unscored < scenario.scored * self.total:
            found.append(f"{name}: {self.unscored} of {self.total} unscored")
        if scenario.deadline is not None and self.wall > scenario.deadline + 0.5:
            found.append(f"{name}: {self.wall:.2f} s, with a deadline of {scenario.deadline:g} s")
        return found


def tally(outcome: Outcome, jobs: Sequence[Case], rewards: Sequence[Reward]) -> None:
    """Compare rewards and verdicts with the truth."""
    for case, reward in zip(jobs, rewards, strict=True):
        why = reward.failure.kind.value if reward.failure is not None else ""
        flagged = reward.status != "ok" or reward.coverage < 1.0 or reward.failure is not None
        outcome.add(reward.value, exact_score(case.met), why, flagged)
        for verdict in reward.verdicts:
            right = float(verdict.criterion_id in case.met)
            outcome.wrong_verdicts += verdict.status is Status.OK and verdict.score != right


async def run_ours(scenario: Scenario, judge: str, jobs: Sequence[Case], seed: int) -> Outcome:
    """One judge of ours under one scenario."""
    outcome = Outcome(scenario.name, judge, len(jobs), deadline=scenario.deadline)
    faults, contradict = scenario.faults, scenario.contradict
    async with ContentFaultServer("rubricate", faults, seed=seed, latency=0.002, contradict=contradict) as server:
        reward = make_reward(server.name, judge, rubric(), limits=scenario.limits, deadline=scenario.deadline)
        start = time.perf_counter()
        rewards = await reward.ascore_batch(rollouts(jobs))
        outcome.wall = time.perf_counter() - start
        outcome.requests = server.counts.requests
        await reward.aclose()
    tally(outcome, jobs, rewards)
    return outcome


PEERS = (
    ("rubric", "one"),
    ("rubric-one-shot", "numbered"),
    ("autorubric", "one"),
    ("autorubric-per-item", "judgments"),
)


def run_peer(scenario: Scenario, name: str, shape: str, python: Path, jobs: Sequence[Case], seed: int) -> Outcome:
    """Another package under one scenario."""
    outcome = Outcome(scenario.name, name, len(jobs))
    with tempfile.TemporaryDirectory() as folder, ServerProcess(shape, scenario.faults, seed=seed) as server:
        path = Path(folder, "cases.json")
        save_cases(path, jobs)
        report = run_client(python, "_client_peers.py", [name, server.url, str(path)])
        outcome.requests, outcome.wall = server.stats()["requests"], report.wall
    for case, score, flag in zip(jobs, report.scores, report.flags, strict=True):
        outcome.add(score, exact_score(case.met), flag, bool(flag))
    return outcome


def main() -> int:
    """Run the scenarios, print the table, and exit non-zero where one of ours shows what it must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the texts and verdicts")
    parser.add_argument("--fault-seed", type=int, default=1, help="of the faults")
    parser.add_argument("--only", default="", help="run only scenarios whose name contains this")
    parser.add_argument("--peers", action="store_true", help="run the other packages as well")
    parser.add_argument("--peers-venv", type=Path, default=Path(".venv-peers"), help="made by client_overhead.py")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    jobs = cases(options.responses, options.seed)
    outcomes: list[Outcome] = []
    problems: list[str] = []
    for scenario in (scenario for scenario in SCENARIOS if options.only in scenario.name):
        print(f"... {scenario.name}", file=sys.stderr, flush=True)
        seed = options.fault_seed * 100 + SCENARIOS.index(scenario)  # other requests in each scenario
        for judge in scenario.judges:
            outcomes.append(asyncio.run(run_ours(scenario, judge, jobs, seed)))
            problems += outcomes[-1].faults(scenario)
        for name, shape in PEERS if options.peers and scenario.peers else ():
            python = options.peers_venv / "bin" / "python"
            outcomes.append(run_peer(scenario, name, shape, python, jobs, seed))
    print(table(HEAD, [outcome.row() for outcome in outcomes]), end="\n\n")
    print("\n".join(f"- NOT REACHED: {problem}" for problem in problems) or "- every requirement is met")
    if options.json is not None:
        record = {"problems": problems, "outcomes": [asdict(outcome) for outcome in outcomes]}
        options.json.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
