"""What a run came to: counts over outcomes, in memory that does not grow with them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import Usage

__all__ = ["Report", "usage_of"]

_DISTINCT = 500
"""Different reasons that are counted one by one; what comes after them is counted as `other`."""


def _general(reason: str) -> str:
    """A reason without what it quotes and counts, so that equal ones count together."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+(\.\d+)?", "…", " ".join(reason.split()))[:160]


def usage_of(outcome: Mapping[str, object]) -> Usage:
    """The usage in an outcome."""
    fields = as_object(outcome.get("usage")) or {}
    whole = {
        name: int(as_number(fields.get(name)) or 0) for name in ("calls", "prompt_tokens", "completion_tokens")
    }
    return Usage(**whole, cached_tokens=int(as_number(fields.get("cached_tokens")) or 0), cost=_cost(fields))


def _cost(fields: Mapping[str, object]) -> float:
    return as_number(fields.get("cost")) or 0.0


@dataclass(slots=True)
class Report:
    """Counts of a run.

    Attributes:
        rows, written: rows of the input, and rows with a rubric in the data set.
        lost: rows without one, by step and kind: `reference: unparsable`, `hygiene: near_duplicate`.
        reasons: the same by `step: reason`.
        again: rows that another run may do better on, and rows that were not reached.
        notes: what generators asked again, dropped or changed, by `step: kind: reason`.
        dropped, flagged: criteria that filters took out, or marked, by `step: reason`.
        figures: figures of filters, as sum and number of rows.
        splits: rows written by part.
        criteria: criteria of a rubric to number of rubrics.
        kinds, polarities, importances: of criteria.
        words: words of a criterion to number of criteria.
        prompt_words: words of a prompt, rounded to two digits, to number of rows.
        makers: criteria by generator, model and fingerprint of the prompt.
        usage: cost of all rows.
    """

    rows: int = 0
    written: int = 0
    lost: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    again: int = 0
    notes: Counter[str] = field(default_factory=Counter[str])
    dropped: Counter[str] = field(default_factory=Counter[str])
    flagged: Counter[str] = field(default_factory=Counter[str])
    figures: dict[str, tuple[float, int]] = field(default_factory=dict[str, "tuple[float, int]"])
    splits: Counter[str] = field(default_factory=Counter[str])
    criteria: Counter[int] = field(default_factory=Counter[int])
    kinds: Counter[str] = field(default_factory=Counter[str])
    polarities: Counter[str] = field(default_factory=Counter[str])
    importances: Counter[str] = field(default_factory=Counter[str])
    words: Counter[int] = field(default_factory=Counter[int])
    prompt_words: Counter[int] = field(default_factory=Counter[int])
    makers: Counter[str] = field(default_factory=Counter[str])
    usage: Usage = Usage()

    def add_outcome(self, outcome: Mapping[str, object]) -> None:
        """Take into account what happened to a row, but for its rubric."""
        self.usage += usage_of(outcome)
        for text, count in (as_object(outcome.get("notes")) or {}).items():
            _count(self.notes, _general(text), int(as_number(count) or 0))
        for name, counter in (("dropped", self.dropped), ("flagged", self.flagged)):
            for item in as_array(outcome.get(name)) or ():
                entry = as_object(item) or {}
                if entry.get("criterion"):
                    _count(counter, f"{entry.get('step')}: {_general(str(entry.get('reason')))}", 1)
        for name, value in (as_object(outcome.get("figures")) or {}).items():
            numbers = [as_number(item) for item in as_array(value) or ()]
            if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
                total, count = self.figures.get(name, (0.0, 0))
                self.figures[name] = total + numbers[0] * numbers[1], count + int(numbers[1])

    def lose(self, step: str, kind: str, reason: str, *, again: bool = False) -> None:
        """A row is not in the data set."""
        self.lost[f"{step}: {kind}"] += 1
        _count(self.reasons, f"{step}: {_general(reason)}", 1)
        self.again += again

    def add_rubric(self, rubric: Mapping[str, object], prompt: str, part: str) -> None:
        """A row is written."""
        self.written += 1
        self.splits[part] += 1
        listed = as_array(rubric.get("criteria")) or ()
        self.criteria[len(listed)] += 1
        self.prompt_words[_rounded(len(prompt.split()))] += 1
        for item in listed:
            one = as_object(item) or {}
            self.kinds[str(one.get("kind") or "neither")] += 1
            self.polarities[str(one.get("polarity") or "reward")] += 1
            self.importances[str(one.get("importance") or "none")] += 1
            self.words[len(str(one.get("text")).split())] += 1
            made = as_object(one.get("provenance")) or {}
            shown = [str(made.get(name) or "-") for name in ("generator", "model", "prompt_fingerprint")]
            _count(self.makers, " | ".join(shown), 1)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "rows": self.rows,
            "written": self.written,
            "lost": _sorted(self.lost),
            "reasons": _sorted(self.reasons),
            "worth_another_run": self.again,
            "splits": dict(self.splits),
            "criteria_of_a_rubric": {str(key): self.criteria[key] for key in sorted(self.criteria)},
            "kinds": _sorted(self.kinds),
            "polarities": _sorted(self.polarities),
            "importances": _sorted(self.importances),
            "words_of_a_criterion": {str(key): self.words[key] for key in sorted(self.words)},
            "words_of_a_prompt": {str(key): self.prompt_words[key] for key in sorted(self.prompt_words)},
            "made_by": [
                dict(zip(("generator", "model", "prompt", "criteria"), [*name.split(" | "), count], strict=True))
                for name, count in self.makers.most_common()
                if name.count(" | ") == 2
            ],
            "notes": _sorted(self.notes),
            "dropped_criteria": _sorted(self.dropped),
            "flagged_criteria": _sorted(self.flagged),
            "figures": {name: total / count for name, (total, count) in sorted(self.figures.items()) if count},
            "usage": asdict(self.usage),
        }


def _count(counter: Counter[str], key: str, more: int) -> None:
    if key not in counter and len(counter) >= _DISTINCT:
        key = f"{key.partition(':')[0]}: other"
    counter[key] += more


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def _rounded(number: int) -> int:
    """To two digits, so that there are few different ones."""
    step = 10 ** max(0, len(str(number)) - 2)
    return number // step * step
