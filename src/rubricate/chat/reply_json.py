"""Finding the JSON in a reply: whole, fenced, between prose, or several of them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rubricate.chat.cleaning import clean
from rubricate.chat.jsonlike import Broken, Piece, read_repaired, read_strict
from rubricate.chat.reasoning import strip_reasoning
from rubricate.narrow import as_array, as_object

__all__ = ["JsonSpan", "find_json", "find_spans", "whole_value"]

_EDGES = " \t\r\n\ufeff\u200b\u200c\u200d\u2060"
_RUN = re.compile(r"(?:[\[{]\s*)+")
_OPENING = re.compile(r"\{(?=\s*[\"'\u201c\u201d\u201e\u2018}\w/#,])|\[(?=\s*(?:\[\s*)?\{)")
_ATTEMPT = 40


@dataclass(frozen=True, slots=True)
class JsonSpan:
    """A JSON object, or a list that holds one, and its place in the text.

    Attributes:
        value: plain Python values; a key that occurs twice with different values holds a `Conflict`.
        start, end: slice of the text it was read from.
        complete: it was closed; a cut one holds what stood before the cut.
    """

    value: object
    start: int
    end: int
    complete: bool = True


def whole_value(text: str) -> Piece | None:
    """The value when the text as it stands is one JSON value, strictly read."""
    bare = text.strip(_EDGES)
    try:
        piece = read_strict(bare)
    except Broken:
        return None
    return piece if piece.end == len(bare) else None


def find_spans(text: str) -> tuple[str, list[JsonSpan]]:
    """The JSON objects of a text, outermost ones, in order, and the text that they were found in.

    That is the text itself, or when it holds no object the text with typographic signs, HTML entities or escaped
    quotes replaced. Work is bounded by a multiple of the text's length.
    """
    for variant in _variants(text):
        spans = list(_scan(variant))
        if spans:
            return variant, spans
    return text, []


def find_json(text: str) -> object | None:
    """The JSON value of a reply, or None when there is none.

    The whole text if that is JSON (encoded twice or not); otherwise the last object in the visible text, reasoning
    removed and the usual faults repaired. Says nothing about whether that object is a verdict.
    """
    whole = whole_value(text)
    for _ in range(2):
        if whole is None or not isinstance(whole.value, str):
            break
        text = whole.value
        whole = whole_value(text)
    if whole is not None and not isinstance(whole.value, str):
        return whole.value
    spans = find_spans(strip_reasoning(text))[1]
    return spans[-1].value if spans else None


def _variants(text: str) -> Iterator[str]:
    yield text
    if not text.isascii():
        yield clean(text)
    if "&quot;" in text or "&#34;" in text or "&#x22;" in text:
        yield html.unescape(text)
    if '\\"' in text:
        yield text.replace("\\n", "\n").replace('\\"', '"')


def _scan(text: str) -> Iterator[JsonSpan]:
    budget = 6 * len(text) + 20_000
    at = 0
    while budget > 0:
        match = _OPENING.search(text, at)
        if match is None:
            return
        start = match.start()
        piece, at, cost = _read(text, start)
        budget -= cost
        if piece is not None and _holds_object(piece.value):
            yield JsonSpan(piece.value, start, piece.end, piece.complete)


def _read(text: str, start: int) -> tuple[Piece | None, int, int]:
    """What is at `start`, where to go on, and how much text was looked at."""
    cost = 0
    for read in (read_strict, read_repaired):
        try:
            piece = read(text, start)
        except Broken as broken:
            cost += max(broken.position - start, _ATTEMPT)
            if broken.deep:
                cost += 5_000
                # Nested beyond any answer: go on behind the run of brackets.
                run = _RUN.match(text, start)
                return None, max(run.end() if run else 0, start + 1), cost
        else:
            return piece, max(piece.end, start + 1), cost + piece.end - start
    return None, start + 1, cost


def _holds_object(value: object, depth: int = 0) -> bool:
    record = as_object(value)
    if record is not None:
        return bool(record) or depth == 0
    items = as_array(value)
    return items is not None and depth < 4 and any(_holds_object(item, depth + 1) for item in items)
