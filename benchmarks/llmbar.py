"""LLMBar's recorded completions (2310.07641): read by our parser, and replayed through the pairwise judge.

Every completion is read and the verdict compared with the authors' `winner`; each disagreement is printed. Then
each pair is judged in both orders by a PairwiseJudge whose model gives the completion recorded for that order.

    python benchmarks/llmbar.py [--data ../shared/data]

Targets: no disagreement with `winner`; what is unreadable is a failure, never a winner or a tie; a verdict that
flips with the order is a tie that says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _measure import table

from rubricate.chat import ChatRequest, MockModel
from rubricate.cli.agreement import wilson
from rubricate.comparisons import Comparison
from rubricate.errors import ParseError
from rubricate.judges.fence import unfence
from rubricate.judges.pairwise import PairwiseJudge
from rubricate.judges.parsing import parse_preference
from rubricate.narrow import as_array, as_object

LABELS = ("Output (a)", "Output (b)")
JUDGMENTS = "judgments.compact.jsonl"
_BLOCK = re.compile(r"^<response_A-(\w+)>$", re.M)


@dataclass(frozen=True, slots=True)
class Row:
    """A recorded completion. `winner` is the authors' reading and `label` gold; both name output 1 or 2, whatever
    the order in which the outputs were shown."""

    subset: str
    index: int
    judge: str
    swapped: bool
    label: str
    completion: str
    winner: str | None

    @property
    def pair(self) -> tuple[str, int]:
        return self.subset, self.index


@dataclass(frozen=True, slots=True)
class Pair:
    """An instruction with its two outputs."""

    instruction: str
    outputs: tuple[str, str]


def read_rows(folder: Path) -> list[Row]:
    """The recorded completions."""
    rows = list[Row]()
    for line in (folder / JUDGMENTS).read_text(encoding="utf-8").splitlines():
        row = as_object(json.loads(line)) or {}
        winner = row["winner"]
        rows.append(
            Row(
                str(row["subset"]),
                int(str(row["idx"])),
                f"{row['evaluator']} {row['method']}",
                row["swap"] is True,
                str(row["label"]),
                str(row["completion"]),
                None if winner is None else str(winner),
            )
        )
    return rows


def read_pairs(folder: Path, subsets: Sequence[str]) -> dict[tuple[str, int], Pair]:
    """Instructions and outputs by subset and index."""
    pairs = dict[tuple[str, int], Pair]()
    for subset in subsets:
        items = as_array(json.loads((folder / f"dataset_{subset}.json").read_text(encoding="utf-8"))) or ()
        for index, item in enumerate(items):
            record = as_object(item) or {}
            outputs = (str(record["output_1"]), str(record["output_2"]))
            pairs[subset, index] = Pair(str(record["input"]), outputs)
    return pairs


def read_winner(row: Row) -> str | None:
    """Our reading of a completion, as output 1 or 2; None where it cannot be read."""
    try:
        said = parse_preference(row.completion, LABELS, ties=False)
    except ParseError:
        return None
    return "1" if (said == LABELS[0]) != row.swapped else "2"


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Completions that we read otherwise than the authors, one line each, with what was written."""
    lines = list[str]()
    for row in rows:
        ours = read_winner(row)
        if ours != row.winner:
            order = "swapped" if row.swapped else "given"
            lines.append(
                f"{row.subset} {row.index} {row.judge} ({order}): authors {row.winner}, ours {ours}: "
                f"{row.completion[-200:]!r}"
            )
    return lines


async def replay(pair: Pair, by_order: Mapping[bool, Row]) -> Comparison:
    """The comparison of a pair by a judge whose model says what was recorded for the order in which it is asked."""

    def script(request: ChatRequest) -> str:
        text = request.messages[-1].content
        nonce = _BLOCK.findall(text)[-1]
        return by_order[unfence(text, "response_A", nonce) == pair.outputs[1]].completion

    judge = PairwiseJudge(MockModel(script), ties=False, max_attempts=1)
    return await judge.compare_texts(pair.instruction, *pair.outputs)


def share(hits: int, total: int) -> str:
    """A share in per cent with its 95% Wilson interval."""
    found = wilson(hits, total)
    if math.isnan(found.value):
        return "-"
    return f"{100 * found.value:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def figures(name: str, rows: Sequence[Row], compared: Sequence[tuple[str, Comparison]]) -> list[str]:
    """One line of the table: a judge's recorded completions, and the comparisons made of them."""
    read = [(row, winner) for row in rows if (winner := read_winner(row)) is not None]
    right = sum(winner == row.label for row, winner in read)
    first = sum((winner == "1") != row.swapped for row, winner in read)
    both = [(label, comparison) for label, comparison in compared if comparison.consistent is not None]
    consistent = [(label, comparison) for label, comparison in both if comparison.consistent]
    sides = {"first": "1", "second": "2"}
    agreed = sum(sides.get(str(comparison.winner)) == label for label, comparison in consistent)
    return [
        name,
        share(right, len(read)),
        share(agreed, len(consistent)),
        share(len(consistent), len(both)),
        share(first, len(read)),
        share(len(rows) - len(read), len(rows)),
        f"{len(compared) - len(both)}/{len(compared)}",
    ]


async def main() -> int:
    """Print the tables; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with llmbar/")
    folder: Path = parser.parse_args().data / "llmbar"
    if not (folder / JUDGMENTS).is_file():
        print(f"no {folder / JUDGMENTS}: see --data", file=sys.stderr)
        return 2
    rows = read_rows(folder)
    pairs = read_pairs(folder, sorted({row.subset for row in rows}))
    differing = disagreements(rows)
    known = sum(row.winner is not None for row in rows)
    unread = sum(row.winner is None for row in rows)
    print(
        f"{len(rows)} completions ({len({row.completion for row in rows})} different texts): {known} with the "
        f"authors' winner, {unread} without, {len(differing)} read otherwise"
    )
    print(*(f"  {line}" for line in differing), sep="\n" if differing else "")
    by_judge = defaultdict[str, dict[tuple[str, int], dict[bool, Row]]](dict)
    for row in rows:
        by_judge[row.judge].setdefault(row.pair, {})[row.swapped] = row
    lines, wrong = list[list[str]](), 0
    for name, recorded in sorted(by_judge.items()):
        compared = list[tuple[str, Comparison]]()
        for key, by_order in recorded.items():
            comparison = await replay(pairs[key], by_order)
            compared.append((by_order[False].label, comparison))
            wrong += not as_recorded(comparison, by_order)
        lines.append(figures(name, [row for orders in recorded.values() for row in orders.values()], compared))
    head = (
        "Judge",
        "right, one order %",
        "right where consistent %",
        "consistent %",
        "first place %",
        "unreadable %",
    )
    print(table((*head, "failed pairs"), lines))
    print(f"comparisons that are not what both completions come to: {wrong}")
    return int(bool(differing) or wrong > 0)


def as_recorded(comparison: Comparison, by_order: Mapping[bool, Row]) -> bool:
    """Whether a comparison is what the authors' two readings come to: a winner, a tie for a flip, or a failure."""
    winners = {row.winner for row in by_order.values()}
    if None in winners:
        return comparison.winner is None and comparison.failure is not None
    if len(winners) == 2:
        return comparison.winner == "tie" and comparison.consistent is False
    return comparison.winner == {"1": "first", "2": "second"}[str(winners.pop())] and comparison.consistent is True


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
