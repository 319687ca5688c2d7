"""What a scoring run came to: counts, means with standard errors, causes of failures, cost; as a table."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rubricate.types import Failure, FailureCause, FailureKind, Reward, RewardStatus, Usage

__all__ = ["UNFIT", "UNREADABLE", "Mean", "Tally", "counted", "table"]

REASON = 160
"""Characters of a failure's message or hint that are shown."""

UNREADABLE = frozenset(
    {
        FailureKind.UNPARSABLE,
        FailureKind.INCOMPLETE,
        FailureKind.AMBIGUOUS,
        FailureKind.OUT_OF_RANGE,
        FailureKind.EMPTY,
        FailureKind.LENGTH,
    }
)
"""Failures of replies that came and say nothing a judge can use."""
UNFIT = (
    "this model does not answer in the form that this mode asks for: try --mode logprob, which needs one word, "
    "or --mode reasoned, or another model (rubricate doctor MODEL tries it)"
)


@dataclass(slots=True)
class Mean:
    """Running mean of values that come in clusters, such as the responses to one prompt.

    The standard error is that of the cluster-robust variance: values of a cluster need not be independent. With
    clusters of one it is the usual one.
    """

    count: int = 0
    total: float = 0.0
    clusters: int = 0
    _sums: tuple[float, float, float] = (0.0, 0.0, 0.0)
    _open: tuple[object, float, int] = (None, 0.0, 0)

    def add(self, value: float, cluster: object) -> None:
        """Take a value in. Values of a cluster come one after another."""
        self.count += 1
        self.total += value
        if self.clusters == 0 or cluster != self._open[0]:
            self._close()
            self.clusters += 1
            self._open = (cluster, 0.0, 0)
        self._open = (cluster, self._open[1] + value, self._open[2] + 1)

    def _close(self) -> None:
        _, total, size = self._open
        squares, products, sizes = self._sums
        self._sums = (squares + total * total, products + total * size, sizes + size * size)
        self._open = (None, 0.0, 0)

    @property
    def mean(self) -> float:
        """The mean, NaN without values."""
        return self.total / self.count if self.count else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN with fewer than two clusters."""
        if self.clusters < 2:
            return math.nan
        _, total, size = self._open
        squares, products, sizes = self._sums
        squares, products, sizes = squares + total * total, products + total * size, sizes + size * size
        spread = max(0.0, squares - 2 * self.mean * products + self.mean**2 * sizes)
        return math.sqrt(spread * self.clusters / (self.clusters - 1)) / self.count

    def __str__(self) -> str:
        if not self.count:
            return "none"
        return f"{self.mean:.3f}" + ("" if math.isnan(self.error) else f" ± {self.error:.3f}")


@dataclass(slots=True)
class Tally:
    """Counts and means over rewards."""

    rows: int = 0
    scored: int = 0
    statuses: Counter[str] = field(default_factory=Counter[str])
    unscored: Counter[str] = field(default_factory=Counter[str])
    messages: dict[str, str] = field(default_factory=dict[str, str])
    vetoes: Counter[str] = field(default_factory=Counter[str])
    failed_verdicts: int = 0
    verdicts: int = 0
    reward: Mean = field(default_factory=Mean)
    channels: dict[str, Mean] = field(default_factory=dict[str, Mean])
    usage: Usage = Usage()
    latencies: array[float] = field(default_factory=lambda: array("d"))

    def add(self, reward: Reward, cluster: object) -> None:
        """Take a reward in; rewards of a cluster (a prompt) come one after another."""
        self.rows += 1
        self.statuses[reward.status.value] += 1
        self.verdicts += len(reward.verdicts)
        self.failed_verdicts += sum(verdict.failure is not None for verdict in reward.verdicts)
        self.vetoes.update(reward.vetoed_by)
        self.usage += reward.usage
        self.latencies.append(reward.latency)
        if reward.value is None:
            name = _name(reward.failure)
            self.unscored[name] += 1
            if name not in self.messages:
                self.messages[name] = _message(reward)
        else:
            self.scored += 1
            self.reward.add(reward.value, cluster)
        for name, value in reward.channels.items():
            mean = self.channels.setdefault(name, Mean())
            if value is not None:
                mean.add(value, cluster)

    def lines(self, seconds: float | None = None) -> list[tuple[str, str]]:
        """Label and value of each line of the summary; what the clock says only with `seconds`."""
        lines = [("responses", str(self.rows)), ("scored", str(self.scored))]
        if self.rows > self.scored:
            lines.append(("unscored", str(self.rows - self.scored)))
        lines += [(f"  {cause}", str(count)) for cause, count in sorted(self.unscored.items())]
        lines.append(("mean reward ± standard error", str(self.reward)))
        lines += [(f"  channel {name}", str(mean)) for name, mean in self.channels.items() if mean.count]
        for status in (RewardStatus.VETOED, RewardStatus.FLOORED):
            if count := self.statuses[status.value]:
                lines.append((status.value, str(count)))
        lines += [(f"  by {name}", str(count)) for name, count in sorted(self.vetoes.items())]
        if self.failed_verdicts:
            lines.append(("failed verdicts", f"{self.failed_verdicts} of {self.verdicts}"))
        return lines + self._cost(seconds)

    def reasons(self) -> list[str]:
        """For each cause of rewards that are missing, what the first such failure said, and its hint."""
        lines: list[str] = []
        for name in sorted(self.unscored):
            message = self.messages[name]
            refused = name.endswith(FailureKind.CIRCUIT_OPEN.value)
            if refused:
                message = self.messages.get(_SERVER, message)  # what made the calls fail, before they were refused
            said, _, hint = message.partition(_HINT)
            if refused:
                said = said.partition(_LAST)[2].removesuffix(")") or said
            lines.append(f"{name}: {_shortened(said)}")
            if hint:
                lines.append(f"  hint: {_shortened(hint)}")
            elif not self.scored and name.rpartition(" ")[2] in UNREADABLE:
                lines.append(f"  hint: {UNFIT}")
        return lines

    def _cost(self, seconds: float | None) -> list[tuple[str, str]]:
        used = self.usage
        lines = [("model calls", str(used.calls))]
        if used.calls:
            cached = f" ({used.cached_tokens:,} of them cached)" if used.cached_tokens else ""
            lines.append(("prompt tokens", f"{used.prompt_tokens:,}{cached}"))
            lines.append(("completion tokens", f"{used.completion_tokens:,}"))
        if used.cost:
            lines.append(("cost", f"{used.cost:.4f}"))
        if seconds is not None:
            lines.append(("seconds", f"{seconds:.1f}"))
            lines += self._waits()
        return lines

    def _waits(self) -> list[tuple[str, str]]:
        """Median and 95th percentile of the seconds that a response took (nearest rank)."""
        waits = sorted(self.latencies)
        if not waits:
            return []
        ranks = {"  a response, median": 50, "  a response, 95th percentile": 95}
        return [(label, f"{waits[math.ceil(len(waits) * rank / 100) - 1]:.3f}") for label, rank in ranks.items()]


_LAST = "the last error was: "
"""What follows this in the refusal of a call is why calls are refused."""
_HINT = "\n  hint: "
_SERVER = f"{FailureCause.INFRASTRUCTURE.value}: {FailureKind.SERVER.value}"


def _name(failure: Failure | None) -> str:
    return f"{failure.cause.value}: {failure.kind.value}" if failure else "unknown"


def _message(reward: Reward) -> str:
    """What the failure of the reward's kind said; the judge's own words where there are any."""
    if reward.failure is None:
        return "no reason given"
    told = (*reward.verdicts, *([reward.overall] if reward.overall else []))
    found = (verdict.failure for verdict in told if verdict.failure and verdict.failure.kind is reward.failure.kind)
    return next((failure.message for failure in found if failure.message), reward.failure.message)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= REASON else flat[: REASON - 1].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not 1: `1 response`, `2 responses`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def table(lines: Sequence[tuple[str, str]]) -> str:
    """Labels and values in two columns, labels left and values right."""
    left = max((len(label) for label, _ in lines), default=0)
    right = max((len(value) for _, value in lines), default=0)
    return "\n".join(f"{label.ljust(left)}  {value.rjust(right)}" for label, value in lines)
