"""Search behind one interface, for rubrics that rest on evidence: an embedded index of files, or a server."""

from __future__ import annotations

from rubricate.search.base import Passage, Retriever
from rubricate.search.bm25 import Bm25Retriever
from rubricate.search.connecting import connect_retriever
from rubricate.search.server import ServerRetriever

__all__ = ["Bm25Retriever", "Passage", "Retriever", "ServerRetriever", "connect_retriever"]
