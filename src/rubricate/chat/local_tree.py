"""What queued prompts have in common: a tree of their token prefixes, and the passes in which to compute it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["Node", "Pass", "build_tree", "common_length", "paying", "passes", "walk"]

_SAVES = 0.2  # sharing must spare this part of all prompt tokens, else plain batches are as good
_LEAST = 8  # tokens that sharing must spare
_OWN_PASS = 64  # tokens from which a shared stretch is computed by itself, so that it can be kept


@dataclass(slots=True, eq=False)
class Node:
    """A stretch of tokens that prompts share, and what follows it.

    The last token of every prompt is left out of the tree: it is run for its prompt alone, since the answer is read
    behind it. Equal prompts are rows of one node.

    Attributes:
        start, end: the stretch is the tokens `start` to `end` of the prompt number `row`.
        row: a prompt that has it.
        rows: prompts that end here, but for their last token.
        children: what follows, in the order in which the prompts came.
        first: the lowest number of a prompt below.
        count: prompts below.
        size: tokens to compute for this node and all below.
        whole: tokens of the prompts below, each counted from its beginning.
    """

    start: int
    end: int
    row: int
    rows: list[int] = field(default_factory=list[int])
    children: list[Node] = field(default_factory=list["Node"])
    first: int = 0
    count: int = 0
    size: int = 0
    whole: int = 0

    @property
    def length(self) -> int:
        """Tokens of the stretch."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass: parts of the tree behind a prefix that has been computed before.

    Attributes:
        row: the prefix is the first `length` tokens of this prompt.
        length: in tokens, 0 for none.
        first: the lowest number of a prompt that has the prefix.
        rows: prompts of which only the last token is left to run.
        parts: nodes to run as a whole, with everything below.
    """

    row: int
    length: int
    first: int
    rows: tuple[int, ...]
    parts: tuple[Node, ...]

    def prompts(self) -> list[int]:
        """Numbers of all prompts of the pass."""
        return [*self.rows, *(row for part in self.parts for node in walk(part) for row in node.rows)]


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of tokens with which both begin."""
    if left[: len(right)] == right[: len(left)]:
        return min(len(left), len(right))
    return next(place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)


def build_tree(prompts: Sequence[Sequence[int]]) -> Node:
    """The tree of the prompts' tokens (a radix tree); its root is an empty stretch. No prompt may be empty."""
    bodies = [list(prompt[:-1]) for prompt in prompts]
    root = Node(0, 0, 0)
    stack = [root]
    before: list[int] = []
    for row in sorted(range(len(bodies)), key=bodies.__getitem__):
        body = bodies[row]
        shared = common_length(before, body)
        below = root
        while stack[-1].end > shared:
            below = stack.pop()
        if stack[-1].end < shared:  # the stretch that was just left is shared in part
            upper = Node(stack[-1].end, shared, below.row, children=[below])
            stack[-1].children[-1] = upper
            below.start = shared
            stack.append(upper)
        if len(body) > shared:
            leaf = Node(shared, len(body), row)
            stack[-1].children.append(leaf)
            stack.append(leaf)
        stack[-1].rows.append(row)
        before = body
    _measure(root, [len(prompt) for prompt in prompts])
    return root


def _measure(root: Node, lengths: Sequence[int]) -> None:
    """Fill in what nodes say of all that is below them, and order children by arrival."""
    for node in reversed(list(walk(root))):
        node.rows.sort()
        node.children.sort(key=lambda child: child.first)
        node.first = min([*node.rows[:1], *(child.first for child in node.children[:1])], default=0)
        node.count = len(node.rows) + sum(child.count for child in node.children)
        node.size = node.length + len(node.rows) + sum(child.size for child in node.children)
        node.whole = sum(lengths[row] for row in node.rows) + sum(child.whole for child in node.children)


def walk(root: Node) -> Iterator[Node]:
    """Every node, parents first. Without recursion: prompts that grow by a token each make a deep tree."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def paying(root: Node) -> tuple[list[Node], list[int]]:
    """The subtrees in which sharing pays, and the prompts that are outside them all.

    What leads to a subtree becomes part of it: a subtree begins with its prompts.
    """
    subtrees: list[Node] = []
    alone: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        spared = node.whole - node.size - node.start
        only = not node.rows and len(node.children) == 1  # the empty root of prompts that all begin alike
        if not only and spared >= max(_LEAST, _SAVES * node.whole):
            node.size += node.start
            node.start = 0
            subtrees.append(node)
        else:
            alone += node.rows
            stack.extend(reversed(node.children))
    return subtrees, sorted(alone)


def passes(root: Node, *, tokens: int, rows: int) -> Iterator[Pass]:
    """The passes that compute a subtree, in an order in which each prefix grows out of the one before.

    Args:
        root: of a subtree from `paying`.
        tokens: bound on the tokens of one pass. The prefixes may be longer; how they are cut is not said here.
        rows: bound on the prompts of one pass.
    """
    if not _apart(root, tokens, rows):
        yield Pass(root.row, 0, root.first, (), (root,))
        return
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        pack = _Pack(node, tokens, rows)
        deeper: list[Node] = []
        for row in node.rows:
            yield from pack.add(1, 1, row, None)
        for child in node.children:
            if _apart(child, tokens, rows):
                deeper.append(child)
            else:
                yield from pack.add(child.size, child.count, None, child)
        yield from pack.flush()
        stack.extend(reversed(deeper))


def _apart(node: Node, tokens: int, rows: int) -> bool:
    """Whether a node is a prefix of its own: too much for one pass, or shared and worth keeping."""
    return node.size > tokens or node.count > rows or (node.count > 1 and node.length >= _OWN_PASS)


class _Pack:
    """Collects what goes into one pass."""

    def __init__(self, node: Node, tokens: int, rows: int) -> None:
        self._node = node
        self._room = (tokens, rows)
        self._used = (0, 0)
        self._rows: list[int] = []
        self._parts: list[Node] = []

    def add(self, size: int, count: int, row: int | None, part: Node | None) -> Iterator[Pass]:
        used = self._used[0] + size, self._used[1] + count
        if used[0] > self._room[0] or used[1] > self._room[1]:
            yield from self.flush()
            used = size, count
        self._used = used
        if row is not None:
            self._rows.append(row)
        if part is not None:
            self._parts.append(part)

    def flush(self) -> Iterator[Pass]:
        if self._rows or self._parts:
            yield Pass(self._node.row, self._node.end, self._node.first, tuple(self._rows), tuple(self._parts))
        self._used, self._rows, self._parts = (0, 0), [], []
