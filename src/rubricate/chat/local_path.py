"""One growing row of keys and values: a prefix, and trees of suffixes that are computed behind it in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rubricate.chat.local_forward import Batch, prefill
from rubricate.chat.local_room import Room
from rubricate.chat.local_store import Layers, PrefixStore
from rubricate.chat.local_torch import KVCache, Network
from rubricate.chat.local_tree import Node, Pass, build_tree, common_length, passes

__all__ = ["Held", "Path", "assemble", "sharing_is_exact", "telling"]

_SAMPLE = 24  # tokens of a prompt on which sharing is tried
_KINDS = 4  # different ones among them: what a model makes of equal tokens is the same at all positions


@dataclass(frozen=True, slots=True)
class _Span:
    """Tokens that lie together in a pass: `begin` to `end` there, `depth` tokens behind the prefix; `above` are the
    spans that they follow."""

    begin: int
    end: int
    depth: int
    above: tuple[tuple[int, int], ...]

    @property
    def below(self) -> tuple[tuple[int, int], ...]:
        """What a span that follows this one follows."""
        return (*self.above, (self.begin, self.end))


@dataclass(slots=True)
class Held:
    """Keys and values of one whole prompt, from which an answer can go on.

    Attributes:
        length: tokens.
        layers: emptied by `assemble`.
    """

    length: int
    layers: Layers


class Path:
    """A prefix whose keys and values are computed once, for any number of suffixes, which may share parts as well.

    The suffixes are laid one after another in a single row. Each token sees the prefix and the tokens that it
    follows in its own prompt, and has the position that it has there: the arithmetic of separate prompts, without
    a copy of the prefix for each, and without padding (ours; tree attention of speculative decoding is alike).

    Args:
        network: a model with `free_mask`.
        prompts: all prompts; passes name them by number.
        room: says how many tokens of a prefix are computed in one pass.
        store: keeps prefixes for later; None to keep nothing.
    """

    def __init__(
        self,
        network: Network,
        prompts: Sequence[Sequence[int]],
        *,
        room: Room | None = None,
        store: PrefixStore | None = None,
    ) -> None:
        self.network = network
        #: tokens that were computed for each prompt; what several share counts for the first of them
        self.charged: dict[int, int] = {}
        self._prompts = prompts
        self._room = room
        self._store = store
        self._cache: KVCache = network.new_cache()
        self._tokens: list[int] = []
        self._grown = 0
        self._ends: dict[int, _Span] = {}

    def run(self, work: Pass) -> tuple[list[int], Tensor]:
        """Compute a pass. Returns its prompts' numbers and the log-probabilities of the token after each, fp32
        [prompts, vocabulary]."""
        self._charge(work.first, self._move(self._prompts[work.row], work.length))
        ids: list[int] = []
        spans: list[_Span] = []
        self._ends = {}
        nothing = _Span(0, 0, 0, ())
        for row in work.rows:
            self._end(row, nothing, ids, spans)
        for part in work.parts:
            self._lay(part, nothing, ids, spans)
        rows = list(self._ends)
        device = self.network.device
        offsets = torch.cat([torch.arange(span.depth, span.depth + span.end - span.begin) for span in spans])
        self._grown = len(ids)
        logprobs = self.network.forward(
            torch.tensor([ids], device=device),
            self._cache,
            mask=self._mask(spans, len(ids)).to(device),
            positions=(offsets + work.length).unsqueeze(0).to(device),
            keep=torch.tensor([self._ends[row].end - 1 for row in rows], device=device),
        )
        return rows, logprobs[0]

    def hold(self, row: int) -> Held:
        """Keys and values of a prompt of the last pass, copied."""
        span = self._ends[row]
        length = len(self._tokens)
        places = list(range(length))
        for begin, end in span.below:
            places += range(length + begin, length + end)
        index = torch.tensor(places, device=self.network.device)
        layers = [(layer.keys[0][:, index], layer.values[0][:, index]) for layer in self._cache.layers]
        return Held(len(places), layers)

    def _move(self, prompt: Sequence[int], length: int) -> int:
        """Make the first `length` tokens of `prompt` the prefix. Returns how many had to be computed."""
        wanted = list(prompt[:length])
        known = common_length(self._tokens, wanted)
        self._crop(len(self._tokens) + self._grown - known)
        self._grown = 0
        if self._store is not None and known < length:
            for layers in self._store.load(wanted, known):
                for number, (keys, values) in enumerate(layers):
                    self._cache.update(keys.unsqueeze(0), values.unsqueeze(0), number)
                known += layers[0][0].shape[1]
        step = length if self._room is None else self._room.tokens(length)
        for start in range(known, length, max(step, 1)):
            piece = wanted[start : min(start + step, length)]
            self.network.forward(torch.tensor([piece], device=self.network.device), self._cache)
        self._tokens = wanted
        if self._store is not None and known < length:
            self._store.put(wanted, self._cache)
        return length - known

    def _crop(self, count: int) -> None:
        if count and count == len(self._tokens) + self._grown:
            self._cache = self.network.new_cache()
        elif count:
            self._cache.crop(-count)

    def _lay(self, part: Node, above: _Span, ids: list[int], spans: list[_Span]) -> None:
        """Lay a node and all below it into the pass."""
        stack = [(part, above)]
        while stack:
            node, before = stack.pop()
            span = self._add(self._prompts[node.row][node.start : node.end], before, ids, spans)
            self._charge(node.first, node.length)
            for row in node.rows:
                self._end(row, span, ids, spans)
            stack.extend((child, span) for child in reversed(node.children))

    def _end(self, row: int, above: _Span, ids: list[int], spans: list[_Span]) -> None:
        self._ends[row] = self._add(self._prompts[row][-1:], above, ids, spans)
        self._charge(row, 1)

    def _charge(self, row: int, tokens: int) -> None:
        self.charged[row] = self.charged.get(row, 0) + tokens

    def _add(self, tokens: Sequence[int], above: _Span, ids: list[int], spans: list[_Span]) -> _Span:
        begin = len(ids)
        ids.extend(tokens)
        depth = above.depth + above.end - above.begin
        span = _Span(begin, len(ids), depth, above.below if above.end > above.begin else above.above)
        spans.append(span)
        return span

    def _mask(self, spans: Sequence[_Span], count: int) -> Tensor:
        """Additive mask [1, 1, n, prefix + n]: 0 where a token may look, the lowest number elsewhere."""
        before = len(self._tokens)
        dtype = self.network.dtype
        mask = torch.full((count, before + count), torch.finfo(dtype).min, dtype=dtype)
        mask[:, :before] = 0
        for span in spans:
            for begin, end in span.above:
                mask[span.begin : span.end, before + begin : before + end] = 0
            own = mask[span.begin : span.end, before + span.begin : before + span.end]
            own.triu_(1)
        return mask[None, None]


def assemble(network: Network, rows: Sequence[Held]) -> Batch:
    """Held prompts as a left-padded batch that can go on. Their keys and values move into it, layer by layer."""
    longest = max(row.length for row in rows)
    gaps = [longest - row.length for row in rows]
    cache = network.new_cache()
    for number in range(len(rows[0].layers)):
        sides: list[Tensor] = []
        for side in (0, 1):
            parts = [row.layers[number][side] for row in rows]
            heads, _, size = parts[0].shape
            whole = parts[0].new_zeros(len(rows), heads, longest, size)
            for place, (gap, part) in enumerate(zip(gaps, parts, strict=True)):
                whole[place, :, gap:] = part
            sides.append(whole)
        cache.update(sides[0], sides[1], number)
        for row in rows:
            row.layers[number] = (sides[0][:0], sides[1][:0])
    device = network.device
    padding = torch.tensor(gaps, device=device).unsqueeze(1)
    mask = (torch.arange(longest, device=device).unsqueeze(0) >= padding).long()
    return Batch(network, cache, mask, mask.sum(dim=1))


def telling(prompt: Sequence[int]) -> bool:
    """Whether `sharing_is_exact` can tell anything by this prompt."""
    return len(set(prompt[:_SAMPLE])) >= _KINDS


def sharing_is_exact(network: Network, prompt: Sequence[int]) -> bool:
    """Try a tree of prompts on a few tokens of one and compare it with separate prompts.

    A model may take positions and masks and still use them in a way of its own. False for those, and for models
    that cannot do it at all, and where the prompt is not `telling`.
    """
    if not network.free_mask or not telling(prompt):
        return False
    sample = list(prompt[:_SAMPLE])
    cut = len(sample) // 2
    middle = sample[cut : cut + 4]
    suffixes = [sample[cut:], sample[:1], sample[cut:][::-1], middle + sample[:2], middle + sample[:2][::-1]]
    whole = [sample[:cut] + suffix for suffix in suffixes]
    shared: dict[int, Tensor] = {}
    try:
        path = Path(network, whole)
        root = build_tree(whole)
        # so small a bound that the prefix is computed first, and what follows it as one or more trees
        for work in passes(root, tokens=max(root.size - cut + 1, 1), rows=len(whole)):
            shared.update(zip(*path.run(work), strict=True))
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    moved: list[float] = []
    for row, ids in enumerate(whole):
        separate = prefill(network, [ids])[1][0]
        likely = separate > separate.max() - 8.0  # rounding grows where nothing is likely
        moved.append(float(((shared[row] - separate).abs() * likely).sum() / likely.sum()))
    # measured on SmolLM2: rounding moves log-probabilities by 1e-5 in fp32 and 0.1 in bf16 in the mean, plain
    # batching too; wrong positions or masks by 2.5 in either
    return max(moved) <= (1e-3 if network.dtype == torch.float32 else 0.4)
