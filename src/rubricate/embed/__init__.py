"""Embeddings behind one interface, for redundancy checks: embedded, hosted, self-hosted or in this process."""

from __future__ import annotations

from rubricate.embed.base import Embedder, Vectors
from rubricate.embed.connecting import connect_embedder
from rubricate.embed.mock import MockEmbedder
from rubricate.embed.similarity import cosine, similar_pairs

__all__ = ["Embedder", "MockEmbedder", "Vectors", "connect_embedder", "cosine", "similar_pairs"]
