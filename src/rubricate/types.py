"""Types that every layer shares: verdicts, failures, usage, rewards, and the protocols between layers."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeVar

__all__ = [
    "RESPONSE_KINDS",
    "Failure",
    "FailureCause",
    "FailureKind",
    "Judge",
    "Judgement",
    "Reward",
    "RewardStatus",
    "Status",
    "Usage",
    "Verdict",
    "fingerprint",
]


def fingerprint(value: object) -> str:
    """Content fingerprint of a JSON-like value: 16 hex digits of SHA-256 over canonical JSON.

    Equal content gives equal fingerprints in every process and on every machine. Raises TypeError for a value
    that JSON cannot hold and ValueError for NaN or infinity.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Status(enum.StrEnum):
    """What became of one criterion."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


class FailureCause(enum.StrEnum):
    """Whose doing a failure is. It decides how a reward may treat it."""

    INFRASTRUCTURE = "infrastructure"
    RESPONSE = "response"


class FailureKind(enum.StrEnum):
    """Why a judgement failed."""

    SERVER = "server"
    RATE_LIMIT = "rate_limit"
    REQUEST = "request"
    DEADLINE = "deadline"
    BUDGET = "budget"
    CIRCUIT_OPEN = "circuit_open"
    OVERFLOW = "overflow"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    EMPTY = "empty"
    LENGTH = "length"
    UNPARSABLE = "unparsable"
    AMBIGUOUS = "ambiguous"
    OUT_OF_RANGE = "out_of_range"
    INCOMPLETE = "incomplete"
    LOW_MASS = "low_mass"
    NO_LOGPROBS = "no_logprobs"
    VERIFIER = "verifier"
    INTERNAL = "internal"


RESPONSE_KINDS = frozenset(
    {
        FailureKind.OVERFLOW,
        FailureKind.REFUSAL,
        FailureKind.CONTENT_FILTER,
        FailureKind.EMPTY,
        FailureKind.LENGTH,
        FailureKind.UNPARSABLE,
        FailureKind.AMBIGUOUS,
        FailureKind.OUT_OF_RANGE,
        FailureKind.INCOMPLETE,
        FailureKind.LOW_MASS,
    }
)
"""Failures that a response can bring about: by its length, by what it makes the judge say, or by silencing it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no number.

    Attributes:
        kind: what happened.
        cause: `infrastructure` (server, timeout, budget) or `response` (too long, refused, unreadable after
            retries while its siblings were judged).
        message: one sentence for people.
        retryable: whether scoring the same row again may help.
    """

    kind: FailureKind
    cause: FailureCause
    message: str = ""
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a piece of work cost. Adds up with `+`.

    Attributes:
        calls: requests that a model answered or failed to answer, retries included.
        prompt_tokens, completion_tokens: as reported by the server, or counted by the local tokenizer.
        cached_tokens: part of prompt_tokens that the server took from its prefix cache.
        cost: money, in the currency of the price table, 0.0 where no price is known.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one criterion. It says whether the criterion *is met*, never whether that is good.

    Attributes:
        criterion_id: the criterion's id.
        score: in [0, 1] (0 not met, 1 met, between for ordinal and numeric scales), None unless status is `ok`.
        status: `ok`, `not_applicable` or `failed`.
        probability: P(met) in [0, 1] where the judge gives one.
        raw: the verdict as the judge gave it, in the scale's own units or label.
        reason: the judge's reason, or what a verifier found.
        failure: set when status is `failed`, and only then.
        judge: name of the judge or verifier that spoke.
        spread: standard deviation of the score over the levels that the judge held possible, in [0, 0.5] (0 sure of
            one, 0.5 torn between the ends), where it knows their probabilities. Yes/no verdicts say it by
            `probability`: sqrt(P (1 - P)).
    """

    criterion_id: str
    score: float | None
    status: Status = Status.OK
    probability: float | None = None
    raw: str | float | None = None
    reason: str = ""
    failure: Failure | None = None
    judge: str = ""
    spread: float | None = None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.score is not None):
            raise ValueError(f"criterion {self.criterion_id!r}: a score goes with status ok and with no other")
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"criterion {self.criterion_id!r}: score {self.score} is outside [0, 1]")
        if (self.status is Status.FAILED) != (self.failure is not None):
            raise ValueError(f"criterion {self.criterion_id!r}: a failure goes with status failed and no other")

    @classmethod
    def failed(cls, criterion_id: str, failure: Failure, *, judge: str = "", reason: str = "") -> Verdict:
        """A verdict that could not be had."""
        return cls(criterion_id, None, Status.FAILED, failure=failure, judge=judge, reason=reason)

    @classmethod
    def not_applicable(cls, criterion_id: str, *, judge: str = "", reason: str = "") -> Verdict:
        """A criterion whose condition does not hold for this response."""
        return cls(criterion_id, None, Status.NOT_APPLICABLE, judge=judge, reason=reason)


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a judge says of one response.

    Attributes:
        verdicts: one for each criterion asked for, in that order. Holistic judges give none.
        overall: the judge's single verdict on the whole rubric (implicit aggregation), where it gives one.
        usage: what it cost.
    """

    verdicts: tuple[Verdict, ...] = ()
    overall: Verdict | None = None
    usage: Usage = Usage()


class RewardStatus(enum.StrEnum):
    """What became of a reward."""

    OK = "ok"
    UNSCORED = "unscored"
    VETOED = "vetoed"
    FLOORED = "floored"


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of one response.

    Attributes:
        value: the reward, or None when it could not be had.
        status: `ok`; `vetoed` (value is the veto floor); `floored` (a failure caused by the response, where the
            caller chose `floor`); `unscored` (value is None).
        channels: channel name to value or None. The names are the same for every reward of one reward model.
        coverage: share of the criteria's weight with a known verdict (not applicable ones left out), in [0, 1].
        bounds: lowest and highest value that the unknown verdicts allow, None where nothing is known.
        vetoed_by: ids of the veto criteria that fired.
        verdicts: every verdict, in rubric order.
        overall: the verdict on the whole rubric in implicit mode.
        failure: why value is None, or why the floor applies.
        rubric_fingerprint, rubric_version, judge_fingerprint: identify what was asked and who answered.
        usage: calls, tokens, cost.
        latency: seconds of wall time.
    """

    value: float | None
    status: RewardStatus = RewardStatus.OK
    channels: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    coverage: float = 1.0
    bounds: tuple[float, float] | None = None
    vetoed_by: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    overall: Verdict | None = None
    failure: Failure | None = None
    rubric_fingerprint: str = ""
    rubric_version: str = ""
    judge_fingerprint: str = ""
    usage: Usage = Usage()
    latency: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values, enums as strings."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return record


RolloutT_contra = TypeVar("RolloutT_contra", contravariant=True)
RubricT_contra = TypeVar("RubricT_contra", contravariant=True)


class Judge(Protocol[RolloutT_contra, RubricT_contra]):
    """Scores one response against a rubric. Never raises for a judgement that failed: it returns the failure.

    `name` is for people; `fingerprint` changes whenever prompts, models or options that can change an answer do.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def judge(self, rollout: RolloutT_contra, rubric: RubricT_contra) -> Judgement:
        """Verdicts for every criterion of `rubric`, in rubric order."""
        ...

    def check(self, rubric: RubricT_contra) -> None:
        """Raises a RubricateError for a rubric that this judge can never judge, before anything is paid for."""
        ...

    async def aclose(self) -> None:
        """Release clients and models."""
        ...


def only(verdicts: Sequence[Verdict], status: Status) -> list[Verdict]:
    """The verdicts with that status, in order."""
    return [verdict for verdict in verdicts if verdict.status is status]
