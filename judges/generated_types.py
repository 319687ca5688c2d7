"""What comes of having a model write checks: examples and their results, verifiers, proposals, and the report."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from rubricate.chat.base import ChatModel
from rubricate.errors import ConfigError
from rubricate.judges.sandbox import MEMORY, SECONDS, CheckResult
from rubricate.judges.verifiers.generated import source_fingerprint
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, Rubric, VerifierSpec
from rubricate.types import Usage

__all__ = [
    "Asked",
    "Example",
    "GeneratedVerifier",
    "Proposal",
    "ProposalOutcome",
    "VerifierOptions",
    "VerifierReport",
]


class VerifierOptions(TypedDict, total=False):
    """Options of asking for a check; `propose_verifier` says what they mean."""

    task: str
    threshold: float
    max_attempts: int
    max_tokens: int
    temperature: float
    seconds: float
    memory: int
    sample: int
    run_key: str
    prompt: Prompt
    unsafe_without_seccomp: bool


def _own_prompt() -> Prompt:
    return load_prompt("code_verifier")


@dataclass(frozen=True, slots=True)
class Asked:
    """Model and options with their defaults. Raises ConfigError for options out of range."""

    model: ChatModel
    task: str = ""
    threshold: float = 1.0
    max_attempts: int = 2
    max_tokens: int = 1500
    temperature: float = 0.0
    seconds: float = SECONDS
    memory: int = MEMORY
    sample: int = 0
    run_key: str = "rubricate"
    prompt: Prompt = field(default_factory=_own_prompt)
    unsafe_without_seccomp: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise ConfigError(f"threshold is {self.threshold}", hint="use a share above 0, 1 at most")
        if self.max_attempts < 1:
            raise ConfigError(f"max_attempts is {self.max_attempts}", hint="use 1 or more")


@dataclass(frozen=True, slots=True)
class Example:
    """A text, whether the criterion holds for it, and what the check said.

    Attributes:
        by_model: a model wrote the text, so that the expectation may be wrong too.
        result: None before the check was tried.
    """

    text: str
    expected: bool
    by_model: bool = False
    result: CheckResult | None = None

    @property
    def right(self) -> bool:
        """Whether the check gave the expected verdict. A failed check is never right."""
        return self.result is not None and self.result.met is self.expected


@dataclass(frozen=True, slots=True)
class GeneratedVerifier:
    """A check that was right on its examples.

    Attributes:
        source, function: the code, and the function in it that is called.
        examples: what it was tried on, with the results.
        model, prompt_fingerprint: who wrote it, and what was asked.
        seconds, memory: its limits.
    """

    source: str
    function: str
    examples: tuple[Example, ...]
    model: str
    prompt_fingerprint: str
    seconds: float
    memory: int

    @property
    def fingerprint(self) -> str:
        """Of source and function; `spec` holds it, and a source that was changed since is refused."""
        return source_fingerprint(self.source, self.function)

    @property
    def passed(self) -> int:
        """Examples on which it was right."""
        return sum(example.right for example in self.examples)

    def spec(self) -> VerifierSpec:
        """As a criterion's verifier, which `VerifierJudge` runs."""
        args = {"source": self.source, "function": self.function, "fingerprint": self.fingerprint}
        return VerifierSpec(name="generated", args=args | {"seconds": self.seconds, "memory": self.memory})

    def attach(self, criterion: Criterion) -> Criterion:
        """The criterion with this verifier."""
        return criterion.model_copy(update={"verifier": self.spec()})


class ProposalOutcome(enum.StrEnum):
    """What became of asking for a check.

    `accepted`; `declined` (the model said that code cannot decide the criterion, or the criterion's scale or
    condition rules that out, or it has a verifier already); `rejected` (no check was right on enough examples);
    `failed` (no usable reply, or no sandbox here).
    """

    ACCEPTED = "accepted"
    DECLINED = "declined"
    REJECTED = "rejected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What became of asking for a check of one criterion.

    Attributes:
        verifier: set when accepted, and only then.
        reason: why there is none.
        source, examples: the last check that was tried, with its results.
        usage: what the calls cost.
    """

    criterion_id: str
    outcome: ProposalOutcome
    verifier: GeneratedVerifier | None = None
    reason: str = ""
    source: str = ""
    examples: tuple[Example, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class VerifierReport:
    """What became of a rubric's criteria.

    Attributes:
        rubric: with the accepted verifiers attached.
        proposals: one a criterion, in order.
    """

    rubric: Rubric
    proposals: tuple[Proposal, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """Outcome to number of criteria; every outcome is there."""
        counted = Counter(proposal.outcome for proposal in self.proposals)
        return {outcome.value: counted[outcome] for outcome in ProposalOutcome}

    def __str__(self) -> str:
        parts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"{len(self.proposals)} criteria: {parts}"
