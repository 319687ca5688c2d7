"""What a draft is going to be, while it is put together."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from rubricate.training.checks.banks import Topic
from rubricate.training.checks.layout import Frame, Piece

__all__ = ["Plan", "insert"]


@dataclass(slots=True)
class Plan:
    """The pieces of a draft, and what follows from them; see `Draft` for the names."""

    topic: Topic
    source: Topic
    layout: str
    clean: bool
    frame: Frame = field(default_factory=Frame)
    stated: list[str] = field(default_factory=list[str])
    missed: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])
    traits: dict[str, bool] = field(default_factory=dict[str, bool])
    muted: set[str] = field(default_factory=set[str])
    marks: set[str] = field(default_factory=set[str])
    asides: int = 0

    @property
    def on_topic(self) -> bool:
        """Whether the response is to this request."""
        return self.topic is self.source


def insert(pieces: list[Piece], piece: Piece, rng: random.Random) -> None:
    """Put a piece at a random place."""
    pieces.insert(rng.randint(0, len(pieces)), piece)
