"""Rows of prompt trees for training: what prompts begin with alike is there once, and a mask keeps them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rubricate.chat.local_tree import Node, build_tree

__all__ = ["IGNORED", "TreeBatch", "TreeRow", "lay_rows", "lay_tree", "pack", "tree_size"]

IGNORED = -100
"""Label of a position that is not trained on, as torch's cross-entropy has it."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    """Prompts laid out as a tree in one row; the last token of each stands apart, at the end.

    Attributes:
        body: tokens that other tokens follow.
        body_positions: the position of each in its prompt.
        spans: stretches of the body, begin to end, each with the stretches that it follows.
        ends: last token of each prompt, in the prompts' order.
        end_positions: the position of each in its prompt.
        above: the stretches that each of them follows.
    """

    body: list[int]
    body_positions: list[int]
    spans: list[tuple[int, int, tuple[tuple[int, int], ...]]]
    ends: list[int]
    end_positions: list[int]
    above: list[tuple[tuple[int, int], ...]]

    @property
    def size(self) -> int:
        """Tokens to compute."""
        return len(self.body) + len(self.ends)


@dataclass(frozen=True, slots=True)
class TreeBatch:
    """Rows for one forward pass.

    Attributes:
        input_ids, position_ids: int64 [rows, length].
        attention_mask: bool [rows, 1, length, length], true where a token may look.
        labels: int64 [rows, answers]: the answer's token after the last `answers` positions of each row, `IGNORED`
            at padding. Answers of a row are those of its prompts, in order, at the row's end.
        places: for each row, the numbers of its prompts' sheets and of the prompts in them, in that order.
        tokens: tokens computed, padding left out.
    """

    input_ids: Tensor
    position_ids: Tensor
    attention_mask: Tensor
    labels: Tensor
    places: list[list[tuple[int, int]]]
    tokens: int


def tree_size(prompts: Sequence[Sequence[int]]) -> int:
    """Tokens to compute for these prompts when what they begin with alike is computed once."""
    return build_tree(prompts).size


def lay_tree(prompts: Sequence[Sequence[int]]) -> TreeRow:
    """The tree of some prompts, none of which may be empty, as one row."""
    count = len(prompts)
    above: list[tuple[tuple[int, int], ...]] = [()] * count
    row = TreeRow([], [], [], [prompt[-1] for prompt in prompts], [len(prompt) - 1 for prompt in prompts], above)
    stack: list[tuple[Node, tuple[tuple[int, int], ...]]] = [(build_tree(prompts), ())]
    while stack:
        node, before = stack.pop()
        if node.length:
            begin = len(row.body)
            row.body.extend(prompts[node.row][node.start : node.end])
            row.body_positions.extend(range(node.start, node.end))
            row.spans.append((begin, len(row.body), before))
            before = (*before, (begin, len(row.body)))
        for number in node.rows:
            above[number] = before
        stack.extend((child, before) for child in reversed(node.children))
    return row


def lay_rows(
    sheets: Sequence[Sequence[Sequence[int]]], labels: Sequence[Sequence[int]], *, row_tokens: int, pad: int = 0
) -> TreeBatch:
    """Sheets packed into rows of about `row_tokens` tokens, each row one tree.

    Whole sheets go where there is room, the largest first; a sheet that is longer has a row of its own, and 0 gives
    every sheet one. Attention costs the square of a row's length, padding the difference to the longest.

    Args:
        sheets: the prompts of each, as tokens.
        labels: the token that answers each prompt, or `IGNORED`.
        row_tokens: as far as a row is filled.
        pad: token of the padding.
    """
    packed = pack([tree_size(prompts) for prompts in sheets], row_tokens)
    places = [[(sheet, number) for sheet in row for number in range(len(sheets[sheet]))] for row in packed]
    rows = [lay_tree([sheets[sheet][number] for sheet, number in row]) for row in places]
    answers = max(len(row.ends) for row in rows)
    length = max(len(row.body) for row in rows) + answers
    ids = torch.full((len(rows), length), pad, dtype=torch.int64)
    positions = torch.zeros(len(rows), length, dtype=torch.int64)
    mask = torch.zeros(len(rows), 1, length, length, dtype=torch.bool)
    mask[:, 0] |= torch.eye(length, dtype=torch.bool)  # padding sees itself: softmax over nothing is no number
    targets = torch.full((len(rows), answers), IGNORED, dtype=torch.int64)
    for number, row in enumerate(rows):
        end = length - len(row.ends)
        ids[number, : len(row.body)] = torch.tensor(row.body, dtype=torch.int64)
        ids[number, end:] = torch.tensor(row.ends)
        positions[number, : len(row.body)] = torch.tensor(row.body_positions, dtype=torch.int64)
        positions[number, end:] = torch.tensor(row.end_positions)
        _allow(mask[number, 0], row, end)
        targets[number, answers - len(row.ends) :] = torch.tensor([labels[s][n] for s, n in places[number]])
    return TreeBatch(ids, positions, mask, targets, places, sum(row.size for row in rows))


def _allow(mask: Tensor, row: TreeRow, end: int) -> None:
    """Let each token see those that it follows in its own prompt. `end` is where the last tokens begin."""
    for begin, stop, above in row.spans:
        for left, right in above:
            mask[begin:stop, left:right] = True
        mask[begin:stop, begin:stop] = torch.ones(stop - begin, stop - begin, dtype=torch.bool).tril()
    for number, above in enumerate(row.above):
        for left, right in above:
            mask[end + number, left:right] = True


def pack(sizes: Sequence[int], room: int) -> list[list[int]]:
    """First fit, the largest first: the numbers of what goes into each row of `room`, given the sizes."""
    rows: list[list[int]] = []
    free: list[int] = []
    for sheet in sorted(range(len(sizes)), key=lambda number: (-sizes[number], number)):
        row = next((row for row, left in enumerate(free) if sizes[sheet] <= left), None)
        if row is None:
            row = len(rows)
            rows.append([])
            free.append(room)
        rows[row].append(sheet)
        free[row] -= sizes[sheet]
    return rows
