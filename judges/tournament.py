"""The tournament: ranks of a group out of pairwise comparisons that both orders must agree on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import combinations
from typing import Literal, get_args

from rubricate.comparisons import Pairing, Ranking
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.base import failure
from rubricate.judges.pairwise import PairJudge
from rubricate.judges.pairwise_base import ids_of
from rubricate.judges.tournament_rating import Game, bradley_terry, components, largest_component, net_win_rates
from rubricate.judges.votes import comparison_reward
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureKind, Usage, fingerprint

__all__ = ["Tournament"]

Rating = Literal["net-win-rate", "bradley-terry"]
Pair = tuple[int, int]


class Tournament:
    """Ranks the responses of a group by comparing them two by two.

    A failed comparison leaves its pair unknown: it is no tie. Responses that no valid comparison connects with
    the others have no rank.

    Args:
        judge: compares in both orders, so that a liking for a position makes ties, not winners.
        rating: `net-win-rate`, (wins - losses) / valid comparisons; or `bradley-terry`, log-strengths with ties as
            half wins, fairer where not everyone met everyone.
        budget: comparisons at most; None compares all pairs. With fewer, rounds of a Swiss tournament: the first
            drawn by `seed`, the others between neighbours in the standing that have not met. n responses need at
            least n - 1 to be connected, and more where some fail.
        seed: of the draw, and of who is named first.
        biased: accept a judge that asks in one order only.

    Raises ConfigError for a judge that asks in one order only, unless `biased`.
    """

    def __init__(
        self,
        judge: PairJudge,
        *,
        rating: Rating = "net-win-rate",
        budget: int | None = None,
        seed: int = 0,
        biased: bool = False,
    ) -> None:
        if rating not in get_args(Rating):
            raise ConfigError(f"rating is {rating!r}", hint=f"use one of: {', '.join(get_args(Rating))}")
        if budget is not None and budget < 1:
            raise ConfigError(f"budget is {budget}", hint="use 1 or more comparisons, or None for all pairs")
        if not judge.both_orders and not biased:
            raise ConfigError(
                f"{judge.name} asks in one order only, so ranks would hold its liking for a position",
                hint="use orders='both', or biased=True",
            )
        self.judge = judge
        self.rating: Rating = rating
        self.budget = budget
        self.seed = seed
        self.name = f"Tournament({judge.name})"

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change a ranking."""
        return fingerprint([self.judge.fingerprint, self.rating, self.budget, self.seed])

    async def rank(self, rollouts: Sequence[Rollout], rubric: Rubric | None = None) -> Ranking:
        """Ratings and ranks of the responses of a group, by rollout id (by place where none has an id).

        Raises ConfigError for ids that repeat, and for a budget that cannot connect all responses.
        """
        ids = ids_of(rollouts)
        if self.budget is not None and self.budget < len(ids) - 1:
            raise ConfigError(
                f"{self.budget} comparisons cannot connect {len(ids)} responses",
                hint=f"use {len(ids) - 1} or more",
            )
        draw = random.Random(fingerprint([self.seed, ids]))
        every = [pair if draw.random() < 0.5 else (pair[1], pair[0]) for pair in combinations(range(len(ids)), 2)]
        if self.budget is None or self.budget >= len(every):
            pairings = await self._play(every, rollouts, ids, rubric)
        else:
            pairings = await self._swiss(rollouts, ids, rubric, self.budget, draw)
        return self._ranking(ids, pairings)

    async def _play(
        self, pairs: Sequence[Pair], rollouts: Sequence[Rollout], ids: Sequence[str], rubric: Rubric | None
    ) -> list[Pairing]:
        comparisons = await asyncio.gather(
            *(self.judge.compare(rollouts[one], rollouts[two], rubric) for one, two in pairs)
        )
        return [
            Pairing(ids[one], ids[two], comparison)
            for (one, two), comparison in zip(pairs, comparisons, strict=True)
        ]

    async def _swiss(
        self,
        rollouts: Sequence[Rollout],
        ids: Sequence[str],
        rubric: Rubric | None,
        budget: int,
        draw: random.Random,
    ) -> list[Pairing]:
        pairings = list[Pairing]()
        met = set[Pair]()
        order = list(range(len(ids)))
        draw.shuffle(order)
        while len(pairings) < budget:
            games = _games(ids, pairings)
            rates = net_win_rates(len(ids), games)
            standing = sorted(order, key=lambda player: -(rates[player] or 0.0))
            linked = [(game.first, game.second) for game in games]
            pairs = [
                pair if draw.random() < 0.5 else (pair[1], pair[0])
                for pair in _next_round(standing, met, linked, budget - len(pairings))
            ]
            met |= {(min(pair), max(pair)) for pair in pairs}
            pairings += await self._play(pairs, rollouts, ids, rubric)
            # Who sat out stands first among equals the next time.
            played = {player for pair in pairs for player in pair}
            order.sort(key=lambda player: player in played)
        return pairings

    def _ranking(self, ids: Sequence[str], pairings: Sequence[Pairing]) -> Ranking:
        games = _games(ids, pairings)
        members = sorted(largest_component(len(ids), games))
        place = {player: n for n, player in enumerate(members)}
        inner = [Game(place[g.first], place[g.second], g.score) for g in games if g.first in place]
        rates = net_win_rates if self.rating == "net-win-rate" else bradley_terry
        ratings = rates(len(members), inner)
        why = failure(FailureKind.INCOMPLETE, "no valid comparison connects this response with the others")
        return Ranking(
            {id: ratings[place[n]] if n in place else None for n, id in enumerate(ids)},
            {id: _cause(id, pairings) or why for n, id in enumerate(ids) if n not in place},
            self.rating,
            tuple(pairings),
            sum((pairing.comparison.usage for pairing in pairings), Usage()),
            self.name,
        )

    async def aclose(self) -> None:
        """Close the judge."""
        await self.judge.aclose()


def _games(ids: Sequence[str], pairings: Sequence[Pairing]) -> list[Game]:
    place = {id: n for n, id in enumerate(ids)}
    scored = [(pairing, comparison_reward(pairing.comparison)) for pairing in pairings]
    return [
        Game(place[pairing.first], place[pairing.second], score) for pairing, score in scored if score is not None
    ]


def _cause(id: str, pairings: Sequence[Pairing]) -> Failure | None:
    """The failure of the first failed comparison of a response."""
    own = [pairing.comparison.failure for pairing in pairings if id in (pairing.first, pairing.second)]
    return next((why for why in own if why is not None), None)


def _next_round(standing: Sequence[int], met: set[Pair], linked: Sequence[Pair], left: int) -> list[Pair]:
    """Pairs of neighbours in the standing that have not met, `left` at most; each player plays once at most.

    Neighbours that no comparison connects yet go first, so that few rounds connect everyone, and others only as far
    as the comparisons that are left can spare them. Who finds no new opponent sits out.
    """
    free, pairs, passed = list(standing), list[Pair](), list[Pair]()
    linked = list(linked)
    connected = components(len(standing), linked)
    spare = left - (len(set(connected)) - 1)
    while free and len(pairs) < left:
        player = free.pop(0)
        new = [one for one in free if (min(player, one), max(player, one)) not in met]
        other = next((one for one in new if connected[one] != connected[player]), None)
        if other is None and new and spare > 0:
            other, spare = new[0], spare - 1
        elif other is None and new:
            passed.append((player, new[0]))
        if other is not None:
            free.remove(other)
            pairs.append((player, other))
            linked.append((player, other))
            connected = components(len(standing), linked)
    return pairs or passed[:1]
