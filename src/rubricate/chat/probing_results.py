"""What probes of a chat model found, as data: one finding a probe, and the report that holds them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rubricate.chat.base import Capabilities, TokenLogprob
from rubricate.types import Usage

__all__ = ["Finding", "ModelReport", "Sign", "took"]


class Sign(enum.StrEnum):
    """What a probe came to.

    `yes` and `no` were seen; `likely` and `unlikely` are inferred from times; `unknown` could not be told apart;
    `failed` ended in an error; `skipped` was not tried.
    """

    YES = "yes"
    NO = "no"
    LIKELY = "likely"
    UNLIKELY = "unlikely"
    UNKNOWN = "unknown"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one probe found.

    Attributes:
        name: the probe; see `rubricate.chat.probing.PROBES`.
        sign: what it came to.
        text: one line for people.
        details: JSON-ready figures; times in seconds, lengths in tokens.
        error, hint: the error that ended the probe, and what can be done about it.
        seconds: what the probe took.
    """

    name: str
    sign: Sign
    text: str = ""
    details: Mapping[str, object] = field(default_factory=dict[str, object])
    error: str = ""
    hint: str = ""
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether a judge may build on it: seen, or inferred."""
        return self.sign in (Sign.YES, Sign.LIKELY)


@dataclass(frozen=True, slots=True)
class ModelReport:
    """All findings on one model.

    Attributes:
        model: its name.
        findings: one a probe, in the order in which they ran.
        claimed: the back end's capabilities, after the probes.
        contradictions: a sentence for each capability that the probes do not bear out.
        first_tokens: first answer token to a question whose answer is yes, and to one whose answer is no, with the
            alternatives that the server listed; empty without log-probabilities.
        bound: calls and tokens that the probes may use at most.
        usage: what they used.
        seconds: what they took in all.
    """

    model: str
    findings: tuple[Finding, ...]
    claimed: Capabilities = Capabilities()
    contradictions: tuple[str, ...] = ()
    first_tokens: tuple[TokenLogprob, ...] = ()
    bound: Usage = Usage()
    usage: Usage = Usage()
    seconds: float = 0.0

    def finding(self, name: str) -> Finding:
        """The finding of that probe; one with sign `skipped` where it did not run."""
        return next((found for found in self.findings if found.name == name), Finding(name, Sign.SKIPPED))

    @property
    def answers(self) -> bool:
        """Whether the model answered at all."""
        return self.finding("answers").sign is Sign.YES

    @property
    def context(self) -> int | None:
        """Context length in tokens, as the back end or the server says; the shorter one where they differ."""
        served = self.finding("served").details.get("context")
        known = [length for length in (self.claimed.context, served) if isinstance(length, int)]
        return min(known, default=None)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "model": self.model,
            "answers": self.answers,
            "context": self.context,
            "findings": {found.name: _plain(found) for found in self.findings},
            "claimed": asdict(self.claimed),
            "contradictions": list(self.contradictions),
            "bound": _tokens(self.bound),
            "usage": {**_tokens(self.usage), "cached_tokens": self.usage.cached_tokens, "cost": self.usage.cost},
            "seconds": round(self.seconds, 3),
        }


def _plain(found: Finding) -> dict[str, object]:
    record: dict[str, object] = {"sign": found.sign.value, "text": found.text, **found.details}
    if found.error:
        record |= {"error": found.error, "hint": found.hint}
    return record | {"seconds": round(found.seconds, 3)}


def _tokens(usage: Usage) -> dict[str, object]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def took(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 0.001:
        return "under 1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
