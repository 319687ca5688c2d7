"""The tournament: ranks, failed comparisons, budgets, ratings."""

from __future__ import annotations

import math
import pickle
from itertools import combinations

import pytest
from comparing import ours, prefers
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import MockModel
from rubricate.comparisons import Comparison
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.pairwise import PairJudge, PairwiseJudge
from rubricate.judges.tournament import Tournament
from rubricate.judges.tournament_rating import Game, bradley_terry, largest_component, net_win_rates
from rubricate.rubrics import Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Usage

DOWN = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "down")


class Longer(PairJudge):
    """Prefers the longer response. Fails for pairs of ids in `fails`."""

    both_orders = True

    def __init__(self, fails: frozenset[frozenset[str]] = frozenset()) -> None:
        self.name = "longer"
        self.fails = fails
        self.asked = list[tuple[str, str]]()

    @property
    def fingerprint(self) -> str:
        return "longer"

    async def compare(self, first: Rollout, second: Rollout, rubric: Rubric | None = None) -> Comparison:
        self.asked.append((first.id, second.id))
        if frozenset((first.id, second.id)) in self.fails:
            return Comparison.failed(DOWN, usage=Usage(calls=2))
        one, two = len(first.response), len(second.response)
        winner = "tie" if one == two else "first" if one > two else "second"
        return Comparison(winner, usage=Usage(calls=2))


def group(*lengths: int) -> list[Rollout]:
    return [Rollout("Write.", "x" * length, id=f"r{n}") for n, length in enumerate(lengths)]


def pairs(*names: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(name.split("-")) for name in names)


@pytest.mark.parametrize("rating", ["net-win-rate", "bradley-terry"])
async def test_all_pairs_rank_the_group(rating: str) -> None:
    judge = Longer()
    ranking = await Tournament(judge, rating=rating).rank(group(3, 9, 5, 5))  # pyright: ignore[reportArgumentType] - parametrised
    assert ranking.ranks == {"r0": 4.0, "r1": 1.0, "r2": 2.5, "r3": 2.5}
    assert len(judge.asked) == len(ranking.pairings) == 6
    assert ranking.usage.calls == 12 and ranking.rating == rating and not ranking.failures
    if rating == "net-win-rate":
        assert ranking.scores == {"r0": -1.0, "r1": 1.0, "r2": 0.0, "r3": 0.0}


async def test_a_failed_comparison_is_no_tie() -> None:
    ranking = await Tournament(Longer(pairs("r0-r1"))).rank(group(3, 9, 5))
    assert ranking.scores == {"r0": -1.0, "r1": 1.0, "r2": 0.0}
    assert len(ranking.pairings) == 3


async def test_who_is_not_connected_has_no_rank() -> None:
    ranking = await Tournament(Longer(pairs("r0-r1", "r0-r2", "r0-r3"))).rank(group(99, 9, 5, 7))
    assert ranking.ranks == {"r0": None, "r1": 1.0, "r2": 3.0, "r3": 2.0}
    assert ranking.failures == {"r0": DOWN}
    halves = await Tournament(Longer(pairs("r0-r2", "r0-r3", "r1-r2", "r1-r3"))).rank(group(1, 2, 3, 4))
    assert set(halves.ranks.values()) == {None}
    alone = await Tournament(Longer()).rank(group(5))
    assert alone.ranks == {"r0": None} and alone.failures["r0"].kind is FailureKind.INCOMPLETE


@given(st.permutations(range(1, 9)), st.integers(7, 28), st.integers(0, 5))
async def test_a_budget_is_kept_and_connects_everyone(lengths: list[int], budget: int, seed: int) -> None:
    judge = Longer()
    ranking = await Tournament(judge, budget=budget, seed=seed, rating="bradley-terry").rank(group(*lengths))
    assert len(judge.asked) == budget
    met = [frozenset(pair) for pair in judge.asked]
    assert len(set(met)) == len(met)
    if budget >= 12:  # three rounds of four
        assert None not in ranking.ranks.values()
        best = lengths.index(8)
        assert ranking.ranks[f"r{best}"] == 1.0


async def test_the_draw_follows_the_seed() -> None:
    asked = list[list[tuple[str, str]]]()
    for seed in (1, 1, 2):
        judge = Longer()
        await Tournament(judge, budget=6, seed=seed).rank(group(1, 2, 3, 4, 5))
        asked.append(judge.asked)
    assert asked[0] == asked[1] != asked[2]


async def test_with_a_model_that_likes_the_first_place_everyone_ties() -> None:
    judge = PairwiseJudge(MockModel(lambda request: ours("A", request)))
    ranking = await Tournament(judge).rank(group(1, 2, 3))
    assert set(ranking.ranks.values()) == {2.0}
    fair = PairwiseJudge(MockModel(prefers("xxx")))
    ranking = await Tournament(fair, budget=2).rank([Rollout("Write.", text, id=text) for text in ("x", "xxx")])
    assert ranking.ranks == {"x": 2.0, "xxx": 1.0}


async def test_what_is_refused() -> None:
    one_order = PairwiseJudge(MockModel("x"), orders="given")
    with pytest.raises(ConfigError, match="one order"):
        Tournament(one_order)
    assert Tournament(one_order, biased=True)
    with pytest.raises(ConfigError, match="cannot connect"):
        await Tournament(Longer(), budget=2).rank(group(1, 2, 3, 4))
    with pytest.raises(ConfigError, match="ids"):
        await Tournament(Longer()).rank([Rollout("p", "a", id="x"), Rollout("p", "b", id="x")])
    with pytest.raises(ConfigError):
        Tournament(Longer(), rating="elo")  # pyright: ignore[reportArgumentType] - on purpose
    with pytest.raises(ConfigError):
        Tournament(Longer(), budget=0)
    copy = pickle.loads(pickle.dumps(Tournament(PairwiseJudge(MockModel("x")), budget=5)))
    assert copy.fingerprint == Tournament(PairwiseJudge(MockModel("x")), budget=5).fingerprint


def test_net_win_rates_count_valid_games_only() -> None:
    games = [Game(0, 1, 1.0), Game(0, 2, 0.5), Game(1, 2, 0.0)]
    assert net_win_rates(4, games) == [0.5, -1.0, 0.5, None]


def test_bradley_terry_without_a_prior_is_maximum_likelihood() -> None:
    # Two players, 3 wins to 1: the odds are the ratio of the wins.
    games = [Game(0, 1, 1.0)] * 3 + [Game(0, 1, 0.0)]
    one, two = bradley_terry(2, games, prior=0.0)
    assert one - two == pytest.approx(math.log(3), abs=1e-6)
    assert one + two == pytest.approx(0.0, abs=1e-9)
    half = bradley_terry(2, [Game(0, 1, 0.5)] * 5)
    assert half == pytest.approx([0.0, 0.0], abs=1e-9)


def test_bradley_terry_recovers_strengths() -> None:
    true = [-1.0, -0.2, 0.3, 0.9]
    games = [
        Game(i, j, 1.0 / (1.0 + math.exp(true[j] - true[i])))
        for i, j in combinations(range(4), 2)
        for _ in range(500)
    ]
    assert bradley_terry(4, games) == pytest.approx(true, abs=0.01)


def test_the_largest_set_must_be_larger_than_all_others() -> None:
    assert largest_component(5, [Game(0, 1, 1.0), Game(1, 2, 1.0), Game(3, 4, 1.0)]) == {0, 1, 2}
    assert largest_component(4, [Game(0, 1, 1.0), Game(2, 3, 1.0)]) == set()
    assert largest_component(2, []) == set()
