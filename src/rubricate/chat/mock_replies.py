"""What a mock model of one opinion says to requests for a JSON reply: a value that fits the request's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rubricate.chat.base import ChatRequest
from rubricate.narrow import as_array, as_number, as_object

__all__ = ["fitting", "level_shares", "structured_reply"]

_ESCAPE = "not_applicable"
_RATING = '{"reason": "...", "rating": ...}'
"""The form that prompts for one rating of the whole response, from 1 to 10, end with."""
_LEVELS = ("Answer with ", ": one of them only.")
_WHOLE = ("The scale: a whole number from ", " (lowest) to ", " (highest)")
"""What stands around the labels, and the ends, in our prompt for levels."""
_WHY = "scripted"


def structured_reply(request: ChatRequest, p: float) -> str:
    """The JSON reply of a model that says yes with probability `p`; "" for a request that asks for none.

    Requests with a JSON schema get a value that fits it (see `fitting`), requests that end with our form for a
    rating from 1 to 10 get one of 1 + 9 p, rounded. Where first-token probabilities are asked for, none is given.
    """
    if request.top_logprobs is not None:
        return ""
    if request.json_schema is not None:
        return json.dumps(fitting(request.json_schema, p), ensure_ascii=False)
    if request.messages and _RATING in request.messages[-1].content:
        return json.dumps({"reason": _WHY, "rating": round(1 + 9 * p)})
    return ""


def level_shares(request: ChatRequest, p: float) -> dict[str, float]:
    """First-token probabilities of a model that rates at share `p` of the scale that our prompt for levels names.

    They lie on the two levels around that place, so that their mean is there; empty for another prompt.
    """
    text = request.messages[-1].content if request.messages else ""
    named, found, _ = text.rpartition(_LEVELS[0])[2].partition(_LEVELS[1])
    if found:
        labels = named.split(", ")
    else:
        low, found, rest = text.rpartition(_WHOLE[0])[2].partition(_WHOLE[1])
        high = rest.partition(_WHOLE[2])[0]
        if not (found and low.isdigit() and high.isdigit()):
            return {}
        labels = [str(number) for number in range(int(low), int(high) + 1)]
    place = p * (len(labels) - 1)
    below = min(int(place), max(len(labels) - 2, 0))
    return dict(zip(labels[below : below + 2], (1.0 - place + below, place - below), strict=False))


def fitting(schema: Mapping[str, object], p: float, index: int = 0) -> object:
    """A value that fits a JSON schema of objects, lists, enumerations, numbers, texts and truth values.

    Args:
        schema: the schema; of `anyOf` the first is taken.
        p: in [0, 1], how far up: a number lies at this share of its range, an enumeration gives the value at this
            share of its list (`not_applicable` left out), but `met` and `unmet` go by p >= 0.5.
        index: place in a list: an enumeration called `id` gives each item one of its own.
    """
    choices = as_array(schema.get("enum"))
    if choices:
        return _chosen(choices, p)
    either = as_array(schema.get("anyOf"))
    if either:
        return fitting(as_object(either[0]) or {}, p, index)
    properties = as_object(schema.get("properties"))
    if properties is not None:
        return {name: _member(name, as_object(part) or {}, p, index) for name, part in properties.items()}
    kind = schema.get("type")
    if kind == "array":
        count = int(as_number(schema.get("minItems")) or 1)
        return [fitting(as_object(schema.get("items")) or {}, p, n) for n in range(count)]
    if kind in ("integer", "number"):
        return _number(schema, p, whole=kind == "integer")
    return p >= 0.5 if kind == "boolean" else _WHY


def _member(name: str, schema: Mapping[str, object], p: float, index: int) -> object:
    names = as_array(schema.get("enum"))
    return names[index % len(names)] if name == "id" and names else fitting(schema, p, index)


def _chosen(choices: Sequence[object], p: float) -> object:
    known = [choice for choice in choices if choice != _ESCAPE] or list(choices)
    if set(known) == {"met", "unmet"}:
        return "met" if p >= 0.5 else "unmet"
    return known[round(p * (len(known) - 1))]


def _number(schema: Mapping[str, object], p: float, *, whole: bool) -> float:
    low, high = as_number(schema.get("minimum")), as_number(schema.get("maximum"))
    low = 0.0 if low is None else low
    value = low + p * ((low + 1.0 if high is None else high) - low)
    return round(value) if whole else value
