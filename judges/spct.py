"""SPCT: scores of n responses in one critique, k critiques with shuffled responses, summed, the best kept."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from rubricate.chat.base import ChatModel, ChatRequest
from rubricate.comparisons import GroupScores
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ParseError
from rubricate.judges.base import Shown, failure
from rubricate.judges.pairwise_base import Asked, Asker, GroupModelJudge, SharedMaterial, ids_of
from rubricate.judges.parsing import parse_scores, strip_reasoning
from rubricate.judges.parsing.agreed import agreed
from rubricate.judges.spct_critic import Critic, Critique, FunctionCritic, Rating
from rubricate.prompts import Prompt
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureKind, Usage, fingerprint

__all__ = ["SpctJudge", "read_boxed"]

_BOX = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_LABEL = re.compile(r"^[^\w\n]{0,8}scores?[^\w\n]{0,8}:", re.I | re.M)
_NUMBER = re.compile(r"(\d{1,3})(?:\.0+)?")


@dataclass(frozen=True, slots=True)
class _Sample:
    """One sample: the places of the responses in the order shown, and what came of it."""

    order: tuple[int, ...]
    asked: Asked[tuple[int, ...]]


class SpctJudge(GroupModelJudge):
    """Scores a group by critiques that write their own criteria (SPCT, DeepSeek-GRM, 2504.02495).

    Each of k samples sees the responses in another order and gives each a whole number from 1 to 10; the votes of
    a response are summed. A group of one is scored 0 or 1. A critic, where given, rates the critiques, and the
    better half of the k is kept (their meta reward model). Samples that cannot be read after all attempts are
    left out of every sum and counted; since each good sample scores every response, sums stay comparable.

    Args:
        samples: k.
        temperature: None is 0 for one sample and 0.5 for several, as theirs.
        critic: rates critiques: a function of a `Critique`, a `ModelCritic`, a `JudgeCritic`, or another `Critic`.
            A critique that it cannot rate is not kept.
        keep: samples that the critic's filter keeps; None is half of k, at least one.
        min_samples: readable samples that are needed, or the group fails; None is more than half of k.
        seed: of the shuffles.
        seed_model: send a seed with each request as well, counted on sample by sample.
        max_attempts: calls that one sample takes at most, the first included.
        max_tokens: tokens for a critique.
        sample: number of this judge among repeated ones.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        samples: int = 8,
        temperature: float | None = None,
        critic: Critic | Callable[[Critique], float | None] | None = None,
        keep: int | None = None,
        min_samples: int | None = None,
        seed: int = 0,
        seed_model: bool = False,
        prompt: Prompt | None = None,
        max_attempts: int = 2,
        max_tokens: int = 4096,
        sample: int = 0,
        fenced: bool = True,
        **shown: Unpack[Shown],
    ) -> None:
        super().__init__(model, prompt or "spct_judge", fenced=fenced, **shown)
        if samples < 1:
            raise ConfigError(f"samples is {samples}", hint="use 1 or more")
        if samples > 1 and temperature is not None and temperature <= 0:
            raise ConfigError(
                "several samples at temperature 0 differ in order only", hint="raise temperature, or samples=1"
            )
        for name, value in (("keep", keep), ("min_samples", min_samples)):
            if value is not None and not 1 <= value <= samples:
                raise ConfigError(f"{name} is {value}", hint=f"use 1 to {samples}")
        self.samples = samples
        self.temperature = (0.5 if samples > 1 else 0.0) if temperature is None else temperature
        self.critic = critic if critic is None or isinstance(critic, Critic) else FunctionCritic(critic)
        self.keep = max(1, samples // 2) if keep is None else keep
        self.min_samples = samples // 2 + 1 if min_samples is None else min_samples
        self.seed = seed
        self.seed_model = seed_model
        self.asker = Asker(model, max_attempts)
        self.max_tokens = max_tokens
        self.sample = sample

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("samples", "temperature", "keep", "min_samples", "seed", "seed_model", "max_tokens", "sample")
        critic = self.critic
        return (
            super().identity()
            | {name: getattr(self, name) for name in names}
            | {
                "max_attempts": self.asker.max_attempts,
                "critic": None if critic is None else critic.fingerprint,
            }
        )

    async def score_group(self, rollouts: Sequence[Rollout], rubric: Rubric | None = None) -> GroupScores:
        """Summed scores of the responses of a group, by rollout id (by place from 0 where none has an id).

        The ends of the scale are those of the sum over the samples that count. Raises ConfigError for ids that
        repeat and for different prompts.
        """
        ids = ids_of(rollouts)
        if not rollouts:
            return GroupScores({}, samples=0, judge=self.name)
        material = self.material(rollouts)
        fitting = [place for place in range(len(rollouts)) if place not in material.overflows]
        samples = await self._sample(material, rubric, fitting) if fitting else []
        good = [sample for sample in samples if sample.asked.value is not None]
        why = next((sample.asked.failure for sample in samples if sample.asked.failure is not None), None)
        usage = sum((sample.asked.usage for sample in samples), Usage())
        kept = good
        if self.critic is not None and good:
            ratings = await asyncio.gather(*(self.critic.rate(_critique(material, sample)) for sample in good))
            usage = sum((rating.usage for rating in ratings), usage)
            why = why or next((rating.failure for rating in ratings if rating.failure is not None), None)
            kept = _best(good, ratings, self.keep)
        if len(good) < self.min_samples:
            kept = []
        failures = dict(material.overflows)
        if not kept:
            why = why or failure(FailureKind.INCOMPLETE, f"{len(good)} of {self.samples} samples could be read")
            failures |= dict.fromkeys(fitting, why)
        return GroupScores(
            _summed(ids, kept),
            {ids[place]: failures[place] for place in sorted(failures)},
            0.0 if len(fitting) == 1 or not kept else float(len(kept)),
            (1.0 if len(fitting) == 1 else 10.0) * max(1, len(kept)),
            samples=len(kept),
            failed_samples=len(samples) - len(good),
            dropped_samples=len(good) - len(kept),
            usage=usage,
            judge=self.name,
        )

    async def _sample(
        self, material: SharedMaterial, rubric: Rubric | None, fitting: Sequence[int]
    ) -> list[_Sample]:
        orders = list[tuple[int, ...]]()
        for number in range(self.samples):
            drawn = random.Random(fingerprint([self.seed, material.plain_task, self.sample, number]))
            orders.append(tuple(drawn.sample(fitting, len(fitting))))
        makers = [partial(self._request, material, rubric, order, number) for number, order in enumerate(orders)]
        asked = await self.asker.ask(makers, partial(_read, len(fitting), material.quoted))
        return [_Sample(order, one) for order, one in zip(orders, asked, strict=True)]

    def _request(
        self,
        material: SharedMaterial,
        rubric: Rubric | None,
        order: Sequence[int],
        number: int,
        attempt: int,
        why: Failure | None,
    ) -> ChatRequest:
        responses = [material.response(place, f"response_{n}") for n, place in enumerate(order, start=1)]
        complaint = f"it did not close with {len(order)} whole numbers in one box" if why else ""
        index = self.sample * self.samples + number
        return ChatRequest(
            self.request_messages(
                self.shared_values(material, rubric),
                {"responses": responses, "complaint": complaint},
                single=len(order) == 1,
            ),
            max_tokens=self.max_tokens * (2 if why is not None and why.kind is FailureKind.LENGTH else 1),
            temperature=self.temperature,
            seed=self.seed + index if self.seed_model else None,
            sample=index * self.asker.max_attempts + attempt,
        )


def _summed(ids: Sequence[str], kept: Sequence[_Sample]) -> dict[str, float | None]:
    sums: dict[str, float | None] = dict.fromkeys(ids)
    for sample in kept:
        for place, score in zip(sample.order, sample.asked.value or (), strict=True):
            sums[ids[place]] = (sums[ids[place]] or 0.0) + score
    return sums


def _best(good: Sequence[_Sample], ratings: Sequence[Rating], keep: int) -> list[_Sample]:
    """The samples with the highest ratings; of equal ones the earlier. Those without a rating are never kept."""
    rated = [(rating.value, n) for n, rating in enumerate(ratings) if rating.value is not None]
    best = sorted(rated, key=lambda one: (-one[0], one[1]))[:keep]
    return [good[n] for n in sorted(n for _, n in best)]


def _critique(material: SharedMaterial, sample: _Sample) -> Critique:
    responses = tuple(material.responses[place] for place in sample.order)
    return Critique(material.plain_task, responses, sample.asked.value or (), sample.asked.text)


def _read(count: int, quoted: Sequence[str], text: str) -> tuple[int, ...]:
    return read_boxed(text, count, quoted=quoted)


def read_boxed(text: str, count: int, *, quoted: Sequence[str] = ()) -> tuple[int, ...]:
    """The scores of a critique in the order shown: `count` whole numbers from 1 to 10 (0 or 1 for one response).

    The `\\boxed{...}` after the last "Scores:" counts, or where there is no such label the only one, since analyses
    quote boxes of the responses. A box that stands in a response is none of the critique's, unless only the
    critique has it after "Scores:". Without a box, other plain shapes of scores are read.

    Raises ParseError for another number of scores, and for scores off the scale.
    """
    return agreed(lambda said: _boxed(said, count, quoted), text, quoted)


def _boxed(text: str, count: int, quoted: Sequence[str]) -> tuple[int, ...]:
    low, high = (0, 1) if count == 1 else (1, 10)
    visible = strip_reasoning(text)
    labelled, boxes = _closing_boxes(visible)
    if len(boxes) > 1:
        raise ParseError("the critique holds boxes that differ", kind="ambiguous", reply=text)
    foreign = {box for shown in quoted for box in (_closing_boxes(shown)[0] if labelled else _boxes(shown))}
    if boxes and boxes <= foreign:
        raise ParseError("the closing box is one that a response holds", kind="ambiguous", reply=text)
    if not boxes:
        names = [f"Response {n}" for n in range(1, count + 1)]
        found = parse_scores(text, names, low, high, integer=True, quoted=quoted)
        return tuple(int(found[name]) for name in names)
    cells = boxes.pop().split(",")
    numbers = [int(match.group(1)) for cell in cells if (match := _NUMBER.fullmatch(cell))]
    if len(numbers) < len(cells) or len(cells) != count:
        raise ParseError(f"the box does not hold {count} whole numbers", kind="incomplete", reply=text)
    if not all(low <= number <= high for number in numbers):
        raise ParseError(f"a score is outside {low} to {high}", kind="out_of_range", reply=text)
    return tuple(numbers)


def _closing_boxes(text: str) -> tuple[set[str], set[str]]:
    """The boxes after any "Scores:" of a text, and those that close it: after the last "Scores:", or all of them
    where there is none."""
    parts = _LABEL.split(text)
    return {box for part in parts[1:] for box in _boxes(part)}, set(_boxes(parts[-1]))


def _boxes(text: str) -> list[str]:
    return [",".join(" ".join(cell.split()) for cell in box.split(",")) for box in _BOX.findall(text)]
