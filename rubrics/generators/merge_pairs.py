"""What two criteria are to each other: candidates by embedding, and the decisions of a model about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rubricate.errors import ParseError
from rubricate.narrow import as_number, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.generators.asking import read_items
from rubricate.rubrics.generators.model import list_schema
from rubricate.rubrics.generators.synthesis_asking import text_field

__all__ = [
    "Decision",
    "Member",
    "Relation",
    "alike",
    "conflict_of",
    "groups_of",
    "read_decisions",
    "report",
    "schema",
]

Relation = Literal["same", "a_wider", "b_wider", "opposed", "different"]


@dataclass(frozen=True, slots=True)
class Member:
    """A criterion of one of the rubrics that are merged.

    Attributes:
        criterion: the criterion.
        rubric: place of its rubric.
        name: the rubric's name, and the criterion's id in it, as in `gpt/accuracy`.
        weight: its weight on the scale that all rubrics are brought to.
    """

    criterion: Criterion
    rubric: int
    name: str
    weight: float

    @property
    def text(self) -> str:
        """The criterion's text, with its condition."""
        condition = self.criterion.condition
        return self.criterion.text + (f" (only where: {condition})" if condition else "")

    @property
    def form(self) -> tuple[object, ...]:
        """What two criteria must share to be one: condition, scale and verifier."""
        one = self.criterion
        return (one.condition, one.scale, one.verifier)

    def described(self) -> dict[str, object]:
        """What a report says of it, JSON-ready."""
        one = self.criterion
        return {"name": self.name, "text": one.text, "polarity": one.polarity.value, "weight": one.weight}


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model says of two members, by their places.

    Attributes:
        first, second: places of the members, first < second.
        cosine: how alike their texts are.
        relation: None where no answer could be had.
        keep: place of the one that is worded better.
    """

    first: int
    second: int
    cosine: float
    relation: Relation | None = None
    keep: int = -1


def schema(count: int) -> dict[str, object]:
    """JSON schema of the answer for so many pairs."""
    fields = {
        "pair": {"type": "integer", "minimum": 1, "maximum": count},
        "relation": {"type": "string", "enum": list(get_args(Relation))},
        "keep": {"type": "string", "enum": ["A", "B"]},
    }
    return list_schema("decisions", fields, count, count)


def read_decisions(text: str, count: int) -> list[tuple[Relation, bool]]:
    """For each pair its relation, and whether B is worded better.

    Raises ParseError for a pair that is missing, named twice with different decisions, or unknown, and for another
    relation.
    """
    found: dict[int, tuple[Relation, bool]] = {}
    for value in read_items(text, "decisions"):
        fields = as_object(value) or {}
        number = as_number(fields.get("pair"))
        said = text_field(fields, "relation").casefold()
        relation: Relation | None = next((one for one in _RELATIONS if one == said), None)
        if number is None or not number.is_integer() or not 1 <= number <= count:
            raise ParseError(f"there is no pair {fields.get('pair')!r}", kind="out_of_range", reply=text)
        if relation is None:
            raise ParseError(
                f"relation is {said[:20]!r}; use {', '.join(_RELATIONS)}", kind="out_of_range", reply=text
            )
        decided = (relation, text_field(fields, "keep").strip("\"' .").upper() == "B")
        if found.setdefault(int(number), decided)[0] != relation:
            raise ParseError(f"pair {int(number)} is decided twice, differently", kind="ambiguous", reply=text)
    missing = [number for number in range(1, count + 1) if number not in found]
    if missing:
        raise ParseError(f"the decision on pair {missing[0]} is missing", kind="incomplete", reply=text)
    return [found[number] for number in range(1, count + 1)]


_RELATIONS: tuple[Relation, ...] = ("same", "a_wider", "b_wider", "opposed", "different")


def groups_of(members: Sequence[Member], decisions: Sequence[Decision]) -> tuple[list[list[int]], list[Decision]]:
    """Members that are one criterion, and the decisions for `same` that were not followed.

    The closest pairs first; two groups are joined only where no pair between them was decided otherwise, and where
    all have one polarity and one form. Every member is in one group; groups and members are in order.
    """
    of: dict[int, set[int]] = {place: {place} for place in range(len(members))}
    apart = {(one.first, one.second) for one in decisions if one.relation not in ("same", None)}
    refused: list[Decision] = []
    for one in sorted(decisions, key=lambda d: (-d.cosine, d.first, d.second)):
        a, b = of[one.first], of[one.second]
        if one.relation != "same" or a is b or not alike(members[one.first], members[one.second]):
            continue
        if any((min(i, j), max(i, j)) in apart for i in a for j in b):
            refused.append(one)
            continue
        joined = a | b
        of |= dict.fromkeys(joined, joined)
    groups = {min(group): sorted(group) for group in of.values()}
    return [groups[first] for first in sorted(groups)], refused


def alike(a: Member, b: Member) -> bool:
    """Whether two criteria that say the same may become one."""
    return a.criterion.polarity is b.criterion.polarity and a.form == b.form


def conflict_of(one: Decision, members: Sequence[Member], tolerance: float) -> str:
    """What two members disagree about: `contradiction`, `polarity`, `form`, `weight`, or "" for nothing.

    Two rewards of which no response can earn both contradict each other, and so do a reward and a wider penalty:
    whatever earns the one brings the other. Two penalties whose errors exclude each other do not.
    """
    a, b = members[one.first], members[one.second]
    same_sign = a.criterion.polarity is b.criterion.polarity
    rewards = [member.criterion.polarity is Polarity.REWARD for member in (a, b)]
    if one.relation == "opposed":
        return "contradiction" if all(rewards) else ""
    if (one.relation == "a_wider" and rewards == [False, True]) or (
        one.relation == "b_wider" and rewards == [True, False]
    ):
        return "contradiction"
    if one.relation != "same":
        return ""
    if not same_sign:
        return "polarity"
    if a.form != b.form:
        return "form"
    differ = abs(a.weight - b.weight) > tolerance or a.criterion.veto != b.criterion.veto
    return "weight" if differ else ""


def report(kind: str, one: Decision, members: Sequence[Member]) -> dict[str, object]:
    """A line of a report about two members, JSON-ready."""
    told: Mapping[str, object] = {"kind": kind, "cosine": round(one.cosine, 4)}
    return {**told, "criteria": [members[one.first].described(), members[one.second].described()]}
