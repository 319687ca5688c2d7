"""Faults of a chat server, chosen by seed and number of the request, and the damage they do to an answer's text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, fields

from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_object

__all__ = ["Faults", "Mutate", "mutate_json"]

Mutate = Callable[[str, str, random.Random], str]


@dataclass(frozen=True, slots=True)
class Faults:
    """Share of the requests, in [0, 1], that meet each fault. A request meets one at most.

    Attributes:
        malformed: the answer's text is cut in the middle (the HTTP body is sound).
        http: by turns 429 with `Retry-After`, and 500.
        missing: a verdict is left out of the answer's text.
        off_vocabulary: a verdict is replaced by "perhaps".
        hang: no answer ever comes.
        disconnect: the connection is closed without an answer.
        garbage: status 200 with an HTML page for a body.
        truncated: the HTTP body ends early.
        empty, length, refusal, content_filter: that outcome in place of an answer.
        retry_after: seconds, sent with 429.
    """

    malformed: float = 0.0
    http: float = 0.0
    missing: float = 0.0
    off_vocabulary: float = 0.0
    hang: float = 0.0
    disconnect: float = 0.0
    garbage: float = 0.0
    truncated: float = 0.0
    empty: float = 0.0
    length: float = 0.0
    refusal: float = 0.0
    content_filter: float = 0.0
    retry_after: float = 0.02

    def __post_init__(self) -> None:
        shares = self.shares()
        if any(not 0.0 <= share <= 1.0 for share in shares.values()) or sum(shares.values()) > 1.0 + 1e-9:
            raise ConfigError("fault rates must lie in [0, 1] and add up to 1 at most", hint=f"given: {shares}")

    def shares(self) -> dict[str, float]:
        """The rate of each kind of fault."""
        return {f.name: float(getattr(self, f.name)) for f in fields(self) if f.name != "retry_after"}

    def pick(self, seed: int, index: int) -> str:
        """The fault of request number `index` (from 0), or "" for none. Depends on nothing else."""
        draw = random.Random(f"{seed}:{index}").random()
        for kind, share in self.shares().items():
            draw -= share
            if draw < 0:
                return kind
        return ""


def mutate_json(kind: str, text: str, rng: random.Random) -> str:
    """Damage an answer's text as fault `kind` says. Understands JSON with one verdict or a list or map of them.

    `malformed` cuts the text. `missing` leaves out one entry of the list of verdicts, or the verdict's key.
    `off_vocabulary` puts "perhaps" in place of a verdict. Text that is not JSON becomes empty or "perhaps".
    """
    if kind == "malformed":
        return text[: len(text) // 2] if len(text) > 8 else '{"verdict": '
    try:
        value: object = json.loads(text)
    except ValueError:
        return "" if kind == "missing" else "perhaps"
    return json.dumps(_damage(value, kind, rng), ensure_ascii=False)


def _damage(value: object, kind: str, rng: random.Random) -> object:
    items = as_array(value)
    if items:
        at = rng.randrange(len(items))
        if kind == "missing":
            return [item for index, item in enumerate(items) if index != at]
        return [_damage(item, kind, rng) if index == at else item for index, item in enumerate(items)]
    record = as_object(value)
    if not record:
        return None if kind == "missing" else "perhaps"
    inner = next((key for key, item in record.items() if as_array(item) or as_object(item)), None)
    if inner is not None:
        return {**record, inner: _damage(record[inner], kind, rng)}
    known = ("verdict", "met", "criteria_met", "label", "answer", "score")
    chosen = next((key for key in known if key in record), None) or rng.choice(sorted(record))
    if kind == "missing":
        return {key: item for key, item in record.items() if key != chosen}
    return {**record, chosen: "perhaps"}
