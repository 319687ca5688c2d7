"""Damage to a judge's reply, meaner than a cut: it tempts a reader into the opposite verdict.

Knows the reply shapes of `_workload`. A reader that guesses gets wrong verdicts out of these; one that refuses what
it cannot be sure of gets none.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import cast

__all__ = ["KINDS", "damage"]

Json = dict[str, object]
_LISTS = ("verdicts", "criteria_evaluations", "judgments")
_KEYS = ("verdict", "criterion_status")
_OPPOSITE = {"met": "unmet", "unmet": "met", "MET": "UNMET", "UNMET": "MET"}
# Words that are no verdict, some of which contain one.
_OFF: tuple[str | float | None, ...] = (
    "perhaps",
    "partially met",
    "neither met nor unmet",
    "cannot say",
    "almost unmet",
    "N/A",
    "",
    None,
    0.7,
)


def _entries(reply: Json) -> list[Json]:
    """The entries of a reply, the reply itself where it is about one criterion."""
    for name in _LISTS:
        if isinstance(reply.get(name), list):
            return cast("list[Json]", reply[name])
    return [reply]


def _key(entry: Json) -> str:
    return next((key for key in _KEYS if key in entry), "verdict")


def _closing(reply: Json) -> Json:
    return cast("Json", reply.get("final", {}))


def _malformed(text: str, rng: random.Random) -> str:
    cut = text[: rng.randrange(len(text) // 4, len(text) - 12)]
    broken_quote = text.replace('\\"', '"')  # the other verdict now stands outside of any string
    no_comma = text.replace('", "verdict"', '" "verdict"').replace('", "explanation"', '" "explanation"')
    return rng.choice((cut, cut, broken_quote[:-1], no_comma[:-2], f"I would say the following. {cut}", "{" + cut))


def _missing(reply: Json, rng: random.Random) -> None:
    entries = _entries(reply)
    entry = rng.choice(entries)
    label = str(entry.get("id", ""))
    how = rng.randrange(3)
    if how == 0 or entry is reply:  # the verdict alone; the closing list may still have it
        entry.pop(_key(entry))
    elif how == 1:  # the entry and its line in the closing list
        entries.remove(entry)
        _closing(reply).pop(label, None)
    else:  # the verdict, here and there
        entry.pop(_key(entry))
        _closing(reply).pop(label, None)


def _off_vocabulary(reply: Json, rng: random.Random) -> None:
    entry = rng.choice(_entries(reply))
    word = rng.choice(_OFF)
    entry[_key(entry)] = word
    label = str(entry.get("id", ""))
    if label in _closing(reply):
        _closing(reply)[label] = word


def _contradiction(reply: Json, rng: random.Random) -> None:
    entries = _entries(reply)
    entry = rng.choice(entries)
    opposite = _OPPOSITE[str(entry[_key(entry)])]
    label = str(entry.get("id", ""))
    how = rng.randrange(3)
    if how == 0 and label in _closing(reply):  # the closing list says otherwise
        _closing(reply)[label] = opposite
    elif how == 1 and entry is not reply:  # the criterion is judged twice, both ways
        entries.append({**entry, _key(entry): opposite})
    else:  # the list says otherwise than the closing list (a plain error where there is none)
        entry[_key(entry)] = opposite


_CHANGES: dict[str, Callable[[Json, random.Random], None]] = {
    "missing": _missing,
    "off_vocabulary": _off_vocabulary,
    "contradiction": _contradiction,
}
KINDS = ("malformed", *_CHANGES)


def damage(kind: str, text: str, rng: random.Random) -> str:
    """The reply `text`, damaged as `kind` (one of `KINDS`) says. Text that is no JSON object becomes "perhaps"."""
    try:
        reply: object = json.loads(text)
    except ValueError:
        return "perhaps"
    if not isinstance(reply, dict):
        return "perhaps"
    if kind == "malformed":
        return _malformed(text, rng)
    record = cast("Json", reply)
    _CHANGES[kind](record, rng)
    return json.dumps(record, ensure_ascii=False)
