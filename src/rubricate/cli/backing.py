"""The model behind a scoring run: limits, answer cache, recording or replay, and what ends the run early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rubricate.chat import AnswerCache, ChatModel, Limited, Limiter, Recording, ReplayModel, connect
from rubricate.errors import ConfigError
from rubricate.judges import MODES, CriteriaJudge, build_judge, default_mode, shipped_bundle
from rubricate.judges.bundle import Bundle, read_bundle

__all__ = ["Backing", "Bounds", "connect_judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds that the command's options set, None where they leave it to the back end."""

    concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    token_budget: int | None = None
    budget: float | None = None
    prices: tuple[float, float] | None = None


@dataclass(slots=True)
class Backing:
    """A judge's model with what stands around it.

    Attributes:
        model: the model to judge with, None where code alone decides.
        bundle: the folder that the judge comes from, where it does.
        cache, recording: set by `keep`.
    """

    model: ChatModel | None = None
    bundle: Bundle | None = None
    cache: AnswerCache | None = None
    recording: Recording | None = None

    @property
    def name(self) -> str:
        """The model's name; a replay has that of the recorded model."""
        return "none" if self.model is None else self.model.name

    @property
    def replay(self) -> ReplayModel | None:
        """The model, where it is a replay."""
        return self.model if isinstance(self.model, ReplayModel) else None

    @property
    def default_mode(self) -> str:
        """How to judge where nobody says: as the bundle does, or as goes with the model."""
        if self.bundle is not None:
            return self.bundle.kind if self.bundle.kind in MODES else "reasoned"
        return default_mode(self.name)

    @property
    def exact(self) -> bool:
        """Whether rows with equal content must be told apart, because what became of each is recorded."""
        return self.recording is not None or self.replay is not None

    def judge(
        self, model: ChatModel | None, *, mode: str, criteria_per_call: int | None, view: str
    ) -> CriteriaJudge:
        """The judge, with a model in place of its own: the same behind a cache, or one that stands in for it."""
        if self.bundle is not None and view == "final":  # seen otherwise, a shipped judge is its model alone
            return self.bundle.judge(model, verifiers=True)
        return build_judge(model, mode=mode, criteria_per_call=criteria_per_call, view=view)

    def keep(self, *, cache: str | None, record: Path | None, restart: bool) -> None:
        """Put the answer cache ("" for the default place) and the recording in front of the model, opened.

        Raises ConfigError, FormatError where one of them cannot be used.
        """
        if self.model is None:
            return
        if cache is not None:
            self.cache = AnswerCache(cache or None)
            self.model = connect(self.model, cache=self.cache)
            self.cache.open()
        if record is not None:
            self.recording = Recording(record, restart=restart)
            self.recording.open()
            self.model = connect(self.model, record=self.recording)

    def check(self) -> None:
        """Raises ConfigError for what must end the run: answers that cannot be kept, or that were not recorded."""
        for keeper in (self.cache, self.recording):
            if keeper is not None and keeper.failure is not None:
                raise keeper.failure
        if self.replay is not None and (lacking := self.replay.lacking) is not None:
            raise ConfigError(lacking.message, hint=lacking.hint)

    def warnings(self) -> Sequence[str]:
        """What is amiss although the run is complete."""
        return [] if self.cache is None or self.cache.failure is None else [self.cache.failure.message]

    def lines(self) -> Sequence[tuple[str, str]]:
        """Lines for the summary."""
        if self.cache is None:
            return []
        stats = self.cache.stats
        found = stats.hits + stats.shared
        lines = [("answers from the cache", f"{found} of {found + stats.misses}")]
        if stats.dropped:
            lines.append(("  not kept, as it was locked", str(stats.dropped)))
        return lines


def connect_judge(judge: str, bounds: Bounds, *, mode: str | None = None) -> Backing:
    """The model of that name, or of that bundle's judge, within these bounds; no model for `none`.

    A model with a judge that ships for it is that judge, where the mode is `logprob` or left open.

    Nothing is loaded, opened or asked. Raises ConfigError, MissingExtraError, FormatError for a bundle's file.
    """
    if judge == "none":
        return Backing()
    if bounds.budget is not None and not any(bounds.prices or ()):
        raise ConfigError(
            "--budget needs prices", hint="give --prices P,C: money for a million prompt and completion tokens"
        )
    shipped = shipped_bundle(judge) if mode in (None, "logprob") else None
    named = judge if judge.startswith("bundle:") else shipped
    bundle = None if named is None else read_bundle(named)
    model = connect(judge) if bundle is None else bundle.connect()
    prompt_price, completion_price = bounds.prices or (0.0, 0.0)
    given = {
        "concurrency": bounds.concurrency,
        "requests_per_minute": bounds.rpm,
        "tokens_per_minute": bounds.tpm,
        "max_tokens_total": bounds.token_budget,
        "max_cost": bounds.budget,
        "prompt_price": prompt_price or None,
        "completion_price": completion_price or None,
    }
    changed = {key: value for key, value in given.items() if value is not None}
    if changed and isinstance(model, Limited):
        model = Limited(model.model, Limiter(replace(model.limiter.limits, **changed)))
    return Backing(model, bundle)
