"""Preference rows (DPO) from a judge that names the same winner in both orders, with one rubric (2602.01511)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from rubricate.data.records import Rollout, Turn
from rubricate.errors import ConfigError
from rubricate.rubrics.filters.base import Case, each
from rubricate.rubrics.filters.consistency import PairJudgeLike
from rubricate.rubrics.generators.contrastive_pairs import BothOrders, compare_both
from rubricate.rubrics.generators.source import text_of
from rubricate.types import Usage

__all__ = ["PreferenceRows", "preference_rows"]


@dataclass(frozen=True, slots=True)
class PreferenceRows:
    """Pairs whose winner does not depend on the order, and what became of the others.

    Attributes:
        rows: `prompt`, `chosen` and `rejected` as messages, as TRL's DPO trainer takes them; `id`,
            `rubric_fingerprint`, `judge` and its `reason`.
        dropped: `tie`, `order` (the orders disagree) and `failed`, with their numbers.
        usage: what the judging cost.
    """

    rows: tuple[dict[str, object], ...]
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    usage: Usage = Usage()


async def preference_rows(
    judge: PairJudgeLike, cases: Sequence[Case], *, most: int = 1, concurrency: int = 16
) -> PreferenceRows:
    """Judge responses of each case's pool in both orders by the case's rubric, and keep the consistent pairs.

    Args:
        judge: compares two responses by a rubric.
        cases: rubrics with prompt and pool; a pool of fewer than two responses makes no row.
        most: pairs of a pool at most, in the order (0, 1), (0, 2), (1, 2), ... (1: two rollouts a prompt, as
            Rubric-ARM takes them).
        concurrency: pairs that are judged at the same time.

    Raises ConfigError for a `most` or a concurrency below 1.
    """
    if most < 1 or concurrency < 1:
        raise ConfigError(f"most is {most}, concurrency {concurrency}", hint="use 1 or more")
    work = [(case, pair) for case in cases for pair in _pairs(case.pool, most)]

    async def compare(item: tuple[Case, tuple[Rollout, Rollout]]) -> BothOrders:
        case, (first, second) = item
        return await compare_both(judge, first, second, case.rubric)

    rows, dropped = list[dict[str, object]](), Counter[str]()
    found = await each(compare, work, concurrency)
    for (case, (first, second)), said in zip(work, found, strict=True):
        if said.winner in ("first", "second"):
            better, worse = (first, second) if said.winner == "first" else (second, first)
            rows.append(_row(case, better, worse, judge.name, said.reason))
        else:
            dropped["failed" if said.winner is None else "order" if said.consistent is False else "tie"] += 1
    return PreferenceRows(tuple(rows), dict(dropped), sum((said.usage for said in found), Usage()))


def _pairs(pool: Sequence[Rollout], most: int) -> list[tuple[Rollout, Rollout]]:
    by_place = sorted(combinations(range(len(pool)), 2), key=lambda pair: (pair[1], pair[0]))
    differ = [(pool[a], pool[b]) for a, b in by_place if pool[a].response != pool[b].response]
    return differ[:most]


def _row(case: Case, better: Rollout, worse: Rollout, judge: str, reason: str) -> dict[str, object]:
    return {
        "prompt": _messages(better.prompt, "user"),
        "chosen": _messages(better.response, "assistant"),
        "rejected": _messages(worse.response, "assistant"),
        "id": case.name,
        "rubric_fingerprint": case.rubric.fingerprint,
        "judge": judge,
        "reason": reason,
    }


def _messages(text: str | tuple[Turn, ...], role: str) -> list[dict[str, str]]:
    """Messages of a text or of turns. Turns with tool calls become text, since their form depends on the model."""
    if isinstance(text, str):
        return [{"role": role, "content": text}]
    plain = all(not turn.tool_calls and turn.role in ("system", "user", "assistant") for turn in text)
    if plain:
        return [{"role": turn.role, "content": turn.content} for turn in text]
    return [{"role": role, "content": text_of(text)}]
