"""Keys and values of prefixes that may come again: a radix tree over tokens, bounded in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from rubricate.chat.local_torch import KVCache
from rubricate.chat.local_tree import common_length

__all__ = ["Layers", "PrefixStore"]

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, each [heads, tokens, head size]."""

_LEAST = 16  # tokens: shorter pieces are computed as fast as they are looked up


@dataclass(slots=True, eq=False)
class _Segment:
    ids: list[int]
    layers: Layers
    parent: _Segment | None
    used: int = 0
    children: dict[int, _Segment] = field(default_factory=dict[int, "_Segment"])


class PrefixStore:
    """Keeps the keys and values of prefixes. What prefixes begin with together is kept once.

    Args:
        limit: bytes that it may hold at most; 0 to keep nothing.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._clock = 0
        self._root = _Segment([], [], None)

    def match(self, ids: Sequence[int]) -> int:
        """How many of the first tokens of `ids` are here."""
        return sum(length for _, length in self._path(ids))

    def load(self, ids: Sequence[int], start: int) -> Iterator[Layers]:
        """Keys and values of the tokens of `ids` from `start` on, as far as they are here, piece by piece."""
        place = 0
        for segment, length in list(self._path(ids)):
            first = max(start - place, 0)
            if first < length:
                yield [(keys[:, first:length], values[:, first:length]) for keys, values in segment.layers]
            place += length

    def put(self, ids: Sequence[int], cache: KVCache) -> None:
        """Keep a prefix: `ids` are the first tokens of the cache's only row. What has no room is left out."""
        if self.limit <= 0:
            return
        path = list(self._path(ids))
        known = sum(length for _, length in path)
        parent = path[-1][0] if path else self._root
        if path and path[-1][1] < len(parent.ids):
            parent = self._split(parent, path[-1][1])
        if len(ids) - known < _LEAST:
            return
        each = (
            sum(_bytes(layer.keys) + _bytes(layer.values) for layer in cache.layers)
            // cache.layers[0].keys.shape[-2]
        )
        length = min(len(ids) - known, self.limit // each - known)
        if length < _LEAST:
            return
        self._make_room(length * each, parent)
        layers = [
            (layer.keys[0, :, known : known + length].clone(), layer.values[0, :, known : known + length].clone())
            for layer in cache.layers
        ]
        self._hang(parent, _Segment(list(ids[known : known + length]), layers, parent, self._clock))
        self.bytes += length * each

    def clear(self) -> None:
        """Forget everything."""
        self._root = _Segment([], [], None)
        self.bytes = 0

    def _path(self, ids: Sequence[int]) -> Iterator[tuple[_Segment, int]]:
        """Segments that `ids` begins with, and how much of each; they count as used now."""
        self._clock += 1
        segment, place = self._root, 0
        while place < len(ids) and (child := segment.children.get(ids[place])) is not None:
            length = common_length(child.ids, list(ids[place : place + len(child.ids)]))
            child.used = self._clock
            yield child, length
            if length < len(child.ids):
                return
            segment, place = child, place + length

    def _split(self, segment: _Segment, length: int) -> _Segment:
        """Cut a segment in two; the upper one is returned. Both own their memory, so that one can be dropped."""
        upper = _Segment(
            segment.ids[:length],
            [(keys[:, :length].clone(), values[:, :length].clone()) for keys, values in segment.layers],
            segment.parent,
            segment.used,
        )
        segment.layers = [(keys[:, length:].clone(), values[:, length:].clone()) for keys, values in segment.layers]
        segment.ids = segment.ids[length:]
        self._hang(segment.parent or self._root, upper)
        segment.parent = upper
        self._hang(upper, segment)
        return upper

    def _hang(self, parent: _Segment, child: _Segment) -> None:
        parent.children[child.ids[0]] = child

    def _make_room(self, needed: int, parent: _Segment) -> None:
        """Drop what was used longest ago, leaves first, but nothing that leads to `parent`."""
        kept = {id(parent)}
        while parent.parent is not None:
            parent = parent.parent
            kept.add(id(parent))
        while self.bytes + needed > self.limit:
            leaves = [leaf for leaf in self._leaves() if id(leaf) not in kept]
            if not leaves:
                return
            oldest = min(leaves, key=lambda leaf: leaf.used)
            if oldest.parent is not None:
                del oldest.parent.children[oldest.ids[0]]
            self.bytes -= sum(_bytes(keys) + _bytes(values) for keys, values in oldest.layers)

    def _leaves(self) -> Iterator[_Segment]:
        stack = list(self._root.children.values())
        while stack:
            segment = stack.pop()
            if not segment.children:
                yield segment
            stack.extend(segment.children.values())


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
