"""Reading of JSON as models write it. It lives in `rubricate.chat.jsonlike`."""

from rubricate.chat.jsonlike import Broken, Conflict, Piece, read_repaired, read_strict

__all__ = ["Broken", "Conflict", "Piece", "read_repaired", "read_strict"]
