"""The pairwise judge: which of two responses is better, asked in both orders, by a vote that stops when decided."""

from __future__ import annotations

import abc
import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Unpack, get_args

from rubricate.chat.base import ChatModel, ChatRequest
from rubricate.comparisons import Comparison, Order, Preferred, Vote
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, RubricateError
from rubricate.judges.base import Shown, failure_of
from rubricate.judges.pairwise_base import Asked, Asker, GroupModelJudge, SharedMaterial
from rubricate.judges.pairwise_reading import FORMATS, PairReply, Side, Style, pair_schema, read_pair
from rubricate.judges.votes import POLICIES, Policy, is_decided, settle
from rubricate.prompts import Prompt
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureKind, Usage, fingerprint

__all__ = ["Orders", "PairJudge", "PairwiseJudge", "Style"]

Orders = Literal["both", "given", "shuffled"]
_SHOWN: dict[str, tuple[Order, ...]] = {"both": ("given", "swapped"), "given": ("given",)}
_SAMPLING_TEMPERATURE = 0.7


class PairJudge(abc.ABC):
    """A judge that says which of two responses is better.

    Attributes:
        name: for people.
        both_orders: whether each comparison is made in both orders, so that a liking for a position shows.
    """

    name: str
    both_orders: bool = False

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Changes with everything that can change a comparison."""

    @abc.abstractmethod
    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        """Compare two responses to one prompt. A comparison that failed is a failed Comparison, never a tie."""

    async def aclose(self) -> None:
        """Release clients and models."""
        return None


@dataclass(frozen=True, slots=True)
class _Pair:
    """What all calls of one comparison have in common."""

    material: SharedMaterial
    rubric: Rubric | None
    criteria: tuple[str, ...]

    def ids(self, reply: PairReply, order: Order) -> dict[str, Preferred]:
        """Who is ahead, by criterion id."""
        ids = [criterion.id for criterion in self.rubric.criteria] if self.rubric else []
        named = dict(zip(self.criteria, ids, strict=True))
        return {named[label]: _winner(side, order) for label, side in reply.ahead.items()}


_Poll = tuple[Vote, Usage]


class PairwiseJudge(GroupModelJudge, PairJudge):
    """Asks a chat model which of two responses is better, with a rubric or without one.

    Calls of one order share everything but their number, calls of both orders share prompt and rubric. A reply
    that cannot be read is asked for again; what stays unreadable is a failed vote.

    Args:
        style: `rubricate` (our JSON: a reason per criterion, then a winner that the closing one must repeat),
            `rubric-rm` (sections with a gatekeeper criterion; needs a rubric, knows no ties), `rm-r1` (tags;
            writes its own rubric or solution; no ties), `arena` (`[[A>>B]]` ... `[[B>>A]]`).
        orders: `both`; `given` (one order, as called); `shuffled` (one order, by `seed` and the texts: the same
            for the same two responses, whichever is named first).
        policy: how votes become a winner; see `rubricate.judges.votes.Policy`.
        samples: replies an order at most.
        temperature: None is 0 for one sample and 0.7 for several, as Rubric-RM votes (2510.07743).
        early_stop: ask for further samples only while they can change the order's majority.
        min_votes: readable votes that an order needs; None is more than half of `samples`.
        ties: allow ties in our style; the published styles have their own rule.
        prompt: a template of one's own, which must ask for a reply in `style`.
        max_attempts: calls that one vote takes at most, the first included.
        max_tokens: tokens for a reply; a reply that was cut is asked for again with three times as many.
        json_schema: constrain decoding in our style where the back end can; a re-ask goes without.
        seed: of the shuffled order and, sample by sample counted on, of the model's sampling.
        sample: number of this judge among repeated ones, so that caches keep their answers apart.
        fenced: see `GroupModelJudge`.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        style: Style = "rubricate",
        orders: Orders = "both",
        policy: Policy = "consistent-or-tie",
        samples: int = 1,
        temperature: float | None = None,
        early_stop: bool = True,
        min_votes: int | None = None,
        ties: bool = True,
        prompt: Prompt | None = None,
        max_attempts: int = 3,
        max_tokens: int = 2048,
        json_schema: bool = True,
        seed: int | None = None,
        sample: int = 0,
        fenced: bool = True,
        **shown: Unpack[Shown],
    ) -> None:
        _check_options(style, orders, policy, samples, temperature, min_votes)
        self.format = FORMATS[style]
        super().__init__(model, prompt or self.format.prompt, fenced=fenced, **shown)
        self.style: Style = style
        self.orders: Orders = orders
        self.policy: Policy = policy
        self.samples = samples
        self.temperature = (_SAMPLING_TEMPERATURE if samples > 1 else 0.0) if temperature is None else temperature
        self.early_stop = early_stop
        self.min_votes = samples // 2 + 1 if min_votes is None else min_votes
        self.ties = self.format.ties and ties
        self.max_tokens = max_tokens
        self.json_schema = json_schema
        self.seed = seed
        self.sample = sample
        self.asker = Asker(model, max_attempts)
        self.both_orders = orders == "both"

    def identity(self) -> dict[str, object]:
        """Adds the options of this judge."""
        names = ("style", "orders", "policy", "samples", "temperature", "early_stop", "min_votes", "ties")
        names += ("max_tokens", "json_schema", "seed", "sample")
        return (
            super().identity()
            | {name: getattr(self, name) for name in names}
            | {"max_attempts": self.asker.max_attempts}
        )

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        """Compare two responses to one prompt."""
        try:
            pair = self._pair(first, second, rubric)
        except RubricateError as error:
            return Comparison.failed(failure_of(error), judge=self.name)
        if pair.material.overflows:
            return Comparison.failed(next(iter(pair.material.overflows.values())), judge=self.name)
        shown = _SHOWN.get(self.orders) or (self._drawn_order(pair.material),)
        if len(shown) == 2 and self.policy in ("majority", "majority-or-tie"):
            polls = await self._poll_together(pair, shown)
        else:
            listed = await asyncio.gather(*(self._poll(pair, order) for order in shown))
            polls = dict(zip(shown, listed, strict=True))
        return self._comparison(polls)

    async def compare_texts(
        self, prompt: str, first: str, second: str, rubric: Rubric | None = None, *, reference: str | None = None
    ) -> Comparison:
        """Compare two responses that are plain texts."""
        return await self.compare(Rollout(prompt, first, reference), Rollout(prompt, second, reference), rubric)

    def _comparison(self, polls: Mapping[Order, Sequence[_Poll]]) -> Comparison:
        votes: dict[Order, list[Vote]] = {order: [vote for vote, _ in poll] for order, poll in polls.items()}
        usage = sum((cost for poll in polls.values() for _, cost in poll), Usage())
        every = tuple(vote for listed in votes.values() for vote in listed)
        settled = settle(votes, self.policy, self.min_votes)
        if settled.failure is not None:
            failed = Comparison.failed(settled.failure, votes=every, usage=usage, judge=self.name)
            return replace(failed, consistent=settled.consistent)
        telling = [vote for vote in every if vote.winner == settled.winner] or [v for v in every if v.winner]
        return Comparison(
            settled.winner,
            consistent=settled.consistent,
            votes=every,
            reason=telling[0].reason if telling else "",
            usage=usage,
            judge=self.name,
        )

    def _pair(self, first: Rollout, second: Rollout, rubric: Rubric | None) -> _Pair:
        if self.format.needs_rubric and rubric is None:
            raise ConfigError(f"the style {self.style} judges by a rubric", hint="give one, or use another style")
        criteria = tuple(f"C{n}" for n in range(1, len(rubric.criteria) + 1)) if rubric else ()
        return _Pair(self.material((first, second)), rubric, criteria)

    def _drawn_order(self, material: SharedMaterial) -> Order:
        """By seed and texts: which *text* comes first does not depend on which was named first."""
        drawn = fingerprint([self.seed, material.plain_task, sorted(material.responses)])
        lower_first = random.Random(drawn).random() < 0.5
        one, two = material.responses
        return "given" if (one <= two) == lower_first else "swapped"

    async def _poll(self, pair: _Pair, order: Order) -> list[_Poll]:
        """The votes of one order: as many as can still change its majority."""
        polled = list[_Poll]()
        while (remaining := self.samples - len(polled)) > 0:
            winners: list[Preferred | None] = [vote.winner for vote, _ in polled]
            if self.early_stop and polled and is_decided(winners, remaining, self.min_votes):
                break
            polled += await self._ask(pair, order, len(polled), self._batch(winners, remaining, self.samples))
        return polled

    async def _poll_together(self, pair: _Pair, shown: Sequence[Order]) -> dict[Order, list[_Poll]]:
        """The votes of both orders, as many as can still change the majority of all of them."""
        polls: dict[Order, list[_Poll]] = {order: [] for order in shown}
        total = self.samples * len(shown)
        while (remaining := total - sum(map(len, polls.values()))) > 0:
            winners: list[Preferred | None] = [vote.winner for poll in polls.values() for vote, _ in poll]
            enough = all(sum(v.winner is not None for v, _ in poll) >= self.min_votes for poll in polls.values())
            if self.early_stop and enough and is_decided(winners, remaining):
                break
            size = -(-self._batch(winners, remaining, total) // len(shown))
            asked = await asyncio.gather(
                *(self._ask(pair, o, len(p), min(size, self.samples - len(p))) for o, p in polls.items())
            )
            for poll, more in zip(polls.values(), asked, strict=True):
                poll += more
        return polls

    def _batch(self, winners: Sequence[Preferred | None], remaining: int, total: int) -> int:
        """As few votes as could decide: what the leading side lacks to more than half of all."""
        if not self.early_stop:
            return remaining
        lead = max((winners.count(side) for side in get_args(Preferred)), default=0)
        return max(1, min(remaining, total // 2 + 1 - lead))

    async def _ask(self, pair: _Pair, order: Order, start: int, size: int) -> list[_Poll]:
        numbers = range(start, start + size)
        makers = [_Request(self, pair, order, number) for number in numbers]
        asked = await self.asker.ask(makers, partial(self._read, pair))
        return [(_vote(one, pair, order, number), one.usage) for number, one in zip(numbers, asked, strict=True)]

    def _read(self, pair: _Pair, text: str) -> PairReply:
        return read_pair(self.format, text, pair.criteria, self.ties, pair.material.quoted)

    def request(self, pair: _Pair, order: Order, number: int, attempt: int, why: Failure | None) -> ChatRequest:
        """The request of one attempt at one vote."""
        places = (0, 1) if order == "given" else (1, 0)
        a, b = (pair.material.response(place, f"response_{s}") for place, s in zip(places, "AB", strict=True))
        item = {"a": a, "b": b, "complaint": self._complaint(why)}
        constrain = (
            self.json_schema and self.style == "rubricate" and attempt == 0 and self.model.capabilities.json_schema
        )
        attempts, swapped = self.asker.max_attempts, int(order == "swapped")
        index = self.sample * self.samples + number
        return ChatRequest(
            self.request_messages(self.shared_values(pair.material, pair.rubric), item, ties=self.ties),
            max_tokens=self.max_tokens * (3 if why is not None and why.kind is FailureKind.LENGTH else 1),
            temperature=self.temperature,
            seed=None if self.seed is None else self.seed + index,
            json_schema=pair_schema(pair.criteria, self.ties) if constrain else None,
            sample=(index * attempts + attempt) * 2 + swapped,
        )

    def _complaint(self, why: Failure | None) -> str:
        if why is None:
            return ""
        said = {
            FailureKind.EMPTY: "it was empty",
            FailureKind.LENGTH: "it was too long; keep the reasons short",
            FailureKind.AMBIGUOUS: "it named no one plain winner, or contradicted itself",
        }
        return said.get(why.kind, self.format.complaint)


@dataclass(frozen=True, slots=True)
class _Request:
    """Makes the requests of one vote, attempt by attempt."""

    judge: PairwiseJudge
    pair: _Pair
    order: Order
    number: int

    def __call__(self, attempt: int, why: Failure | None) -> ChatRequest:
        return self.judge.request(self.pair, self.order, self.number, attempt, why)


def _vote(asked: Asked[PairReply], pair: _Pair, order: Order, number: int) -> Vote:
    """A reply as a vote on first and second, whichever was shown first."""
    said = asked.value
    if said is None:
        return Vote(order, number, None, asked.failure, reply=asked.text)
    return Vote(
        order,
        number,
        _winner(said.side, order),
        strength=said.strength,
        reason=said.reason,
        ahead=pair.ids(said, order),
        notes=said.notes,
        reply=asked.text,
    )


def _winner(side: Side, order: Order) -> Preferred:
    if side == "tie":
        return "tie"
    return "first" if (side == "A") == (order == "given") else "second"


def _check_options(
    style: str, orders: str, policy: str, samples: int, temperature: float | None, min_votes: int | None
) -> None:
    for name, value, known in (
        ("style", style, tuple(FORMATS)),
        ("orders", orders, get_args(Orders)),
        ("policy", policy, POLICIES),
    ):
        if value not in known:
            raise ConfigError(f"{name} is {value!r}", hint=f"use one of: {', '.join(known)}")
    if samples < 1:
        raise ConfigError(f"samples is {samples}", hint="use 1 or more")
    if samples > 1 and temperature is not None and temperature <= 0:
        raise ConfigError("several samples at temperature 0 are one sample", hint="raise temperature, or samples=1")
    if min_votes is not None and not 1 <= min_votes <= samples:
        raise ConfigError(f"min_votes is {min_votes}", hint=f"use 1 to {samples}")
