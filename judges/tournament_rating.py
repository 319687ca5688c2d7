"""Ratings out of pairwise outcomes: net win rates, Bradley-Terry strengths, and what is connected with what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Game", "bradley_terry", "components", "largest_component", "net_win_rates"]


@dataclass(frozen=True, slots=True)
class Game:
    """A valid comparison of two players, by place: `score` is 1 where the first won, 0 where it lost, 0.5 a tie."""

    first: int
    second: int
    score: float


def components(players: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each player a player that stands for all that pairs connect it with: equal for connected ones."""
    root = list(range(players))

    def find(player: int) -> int:
        while root[player] != player:
            root[player] = root[root[player]]
            player = root[player]
        return player

    for one, two in pairs:
        root[find(one)] = find(two)
    return [find(player) for player in range(players)]


def largest_component(players: int, games: Sequence[Game]) -> set[int]:
    """The players that valid games connect, of the largest such set.

    Empty where no set is larger than all others, or none has two players: ratings of sets that no game connects
    cannot be compared, and choosing one of two would be arbitrary.
    """
    sets = dict[int, set[int]]()
    for player, root in enumerate(components(players, [(game.first, game.second) for game in games])):
        sets.setdefault(root, set()).add(player)
    ordered = sorted(sets.values(), key=len, reverse=True)
    if not ordered or len(ordered[0]) < 2 or (len(ordered) > 1 and len(ordered[0]) == len(ordered[1])):
        return set()
    return ordered[0]


def net_win_rates(players: int, games: Sequence[Game]) -> list[float | None]:
    """(wins - losses) / games of each player, in [-1, 1]; ties count in the denominator. None without a game."""
    net, played = [0.0] * players, [0] * players
    for game in games:
        for player, score in ((game.first, game.score), (game.second, 1.0 - game.score)):
            net[player] += 2.0 * score - 1.0
            played[player] += 1
    return [total / count if count else None for total, count in zip(net, played, strict=True)]


def bradley_terry(players: int, games: Sequence[Game], prior: float = 0.5, rounds: int = 10_000) -> list[float]:
    """Natural log-strengths with mean 0: P(i beats j) = 1 / (1 + exp(s_j - s_i)) (Bradley and Terry 1952).

    A tie is half a win for each. Fitted by the minorise-maximise steps of Hunter (2004).

    Args:
        players: their number; every one of them should be connected with the others.
        prior: games that each player is taken to have won, and to have lost, against one of strength 1; ours. It
            keeps the strengths of the unbeaten finite; 0 is plain maximum likelihood.
        rounds: steps at most; it stops earlier when no log-strength moves by more than 1e-10.
    """
    wins = [prior] * players
    met = dict[tuple[int, int], float]()
    for game in games:
        wins[game.first] += game.score
        wins[game.second] += 1.0 - game.score
        for pair in ((game.first, game.second), (game.second, game.first)):
            met[pair] = met.get(pair, 0.0) + 1.0
    opponents = [[(j, n) for (i, j), n in met.items() if i == player] for player in range(players)]
    strength = [1.0] * players
    for _ in range(rounds):
        updated = list[float]()
        for player, own in enumerate(strength):
            weight = 2.0 * prior / (own + 1.0)
            weight += sum(n / (own + strength[other]) for other, n in opponents[player])
            updated.append(wins[player] / weight if weight else own)
        moved = max(
            (abs(math.log(a / b)) for a, b in zip(updated, strength, strict=True) if a > 0 and b > 0), default=0
        )
        strength = updated
        if moved < 1e-10:
            break
    logs = [math.log(max(value, 1e-300)) for value in strength]
    mean = math.fsum(logs) / players if players else 0.0
    return [value - mean for value in logs]
