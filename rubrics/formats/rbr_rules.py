"""Rules of Rule-Based Rewards (2411.01111): what follows from the values of simple propositions."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats.base import Place
from rubricate.rubrics.rubric import Rubric

__all__ = ["Derived", "Rules", "Truth", "derived_values", "kind_of", "object_at", "read_rules"]

Truth = bool | float | None
"""What is known of a proposition: true or false, the probability that it is true, or nothing."""

Rule = Mapping[str, bool]
_DERIVED, _CLASSES, _ORDER = "derived_propositions", "completion_classes", "completion_class_order"


def object_at(value: object, place: Place, what: str) -> Mapping[str, object]:
    """The fields of an object, which `what` describes. Raises FormatError for an empty one and anything else."""
    fields = as_object(value)
    if not fields:
        raise place.error(f"expected {what}, got {type(value).__name__ if fields is None else 'an empty one'}")
    return fields


def kind_of(response_type: str) -> str:
    """A response type as the definitions spell it: `Hard Refuse` is hard_refuse."""
    return "_".join(response_type.lower().split())


@dataclass(frozen=True, slots=True)
class Rules:
    """Derived propositions in an order in which they can be evaluated, and classes by response type."""

    derived: dict[str, Rule]
    classes: dict[str, dict[str, Rule]]


def read_rules(record: Mapping[str, object], simple: Collection[str], place: Place) -> Rules:
    """The rules of a record or of metadata; raises FormatError for one that names what is not defined before it."""
    known, derived, classes = set(simple), dict[str, Rule](), dict[str, dict[str, Rule]]()
    for name, rule in _optional(record, _DERIVED, place).items():
        where = place.at(_DERIVED, name)
        if name in known:
            raise where.error("another proposition has this name")
        derived[name] = _rule(rule, where, known)
        known.add(name)
    for name, types in _optional(record, _CLASSES, place).items():
        where = place.at(_CLASSES, name)
        for kind, rule in object_at(types, where, "an object of response types").items():
            classes.setdefault(kind_of(kind), {})[name] = _rule(rule, where.at(kind), known)
    if record.get(_ORDER) is not None:
        where, order = place.at(_ORDER), as_array(record[_ORDER])
        if order is None:
            raise where.error(f"expected a list of classes, got {type(record[_ORDER]).__name__}")
        names = _optional(record, _CLASSES, place)
        for index, name in enumerate(order):
            if not isinstance(name, str) or name not in names:
                raise where.at(index).error(f"no class has the name {name!r}", hint=f"classes: {', '.join(names)}")
    return Rules(derived, classes)


def _optional(record: Mapping[str, object], field: str, place: Place) -> Mapping[str, object]:
    fields = as_object({} if record.get(field) is None else record[field])
    if fields is None:
        raise place.at(field).error(f"expected an object, got {type(record[field]).__name__}")
    return fields


def _rule(value: object, place: Place, known: Collection[str]) -> Rule:
    rule: dict[str, bool] = {}
    for name, wanted in object_at(value, place, "an object of propositions, true or false each").items():
        where = place.at(name)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "define it above"
            raise where.error("no proposition of this name is defined before this rule", hint=hint)
        if not isinstance(wanted, bool):
            raise where.error(f"expected true or false, got {type(wanted).__name__}")
        rule[name] = wanted
    return rule


@dataclass(frozen=True, slots=True)
class Derived:
    """What follows from the values of the simple propositions.

    Attributes:
        derived: the derived propositions.
        classes: for each response type (`hard_refuse`, `comply`, ...) the value of each completion class.
    """

    derived: Mapping[str, Truth]
    classes: Mapping[str, Mapping[str, Truth]]

    def of(self, response_type: str) -> Mapping[str, Truth]:
        """The classes of a response type, spelled as here or as in the data. Raises ConfigError for another."""
        kind = kind_of(response_type)
        if kind not in self.classes:
            hint = f"response types: {', '.join(self.classes) or 'none'}"
            raise ConfigError(f"the rules know no response type {response_type!r}", hint=hint)
        return self.classes[kind]

    def probabilities(self, response_type: str) -> dict[str, float | None]:
        """The values of the classes divided by their sum, so that they add up to 1 (ours).

        All of them are None where one is not known, or where the sum is 0.
        """
        values = self.of(response_type)
        known = [float(value) for value in values.values() if value is not None]
        if len(known) < len(values) or not sum(known):
            return dict.fromkeys(values)
        return {name: value / sum(known) for name, value in zip(values, known, strict=True)}

    def completion_class(self, response_type: str) -> str | None:
        """The class of highest value; None where a value is not known, all are 0, or several are highest."""
        values = self.probabilities(response_type)
        highest = max((value for value in values.values() if value is not None), default=None)
        best = [name for name, value in values.items() if highest is not None and value == highest]
        return best[0] if len(best) == 1 else None


def derived_values(
    rubric: Rubric, values: Mapping[str, Truth], *, combine: Literal["product", "min"] = "product"
) -> Derived:
    """The derived propositions and completion classes that follow from values of the simple propositions.

    Args:
        rubric: one read from the definitions; its metadata holds the rules.
        values: for each criterion true, false, the probability that it is true, or None where it is not known.
        combine: how the probabilities of a conjunction combine: by `product`, as if its parts were independent, or
            by `min`. A part that must be false counts 1 - p. For true and false both are the plain logic. The
            published code starts from features computed before and does not show this step: both are ours.

    A conjunction with a part that is not known is not known, unless another part makes it false. Raises ConfigError
    for values that are missing, too many, or outside [0, 1], FormatError for rules that cannot be followed.
    """
    if combine not in ("product", "min"):
        raise ConfigError(f"probabilities do not combine by {combine!r}", hint="use product or min")
    rules = read_rules(rubric.metadata, rubric.ids, Place("the rubric's metadata"))
    _check_values(rubric, values)
    known: dict[str, Truth] = dict(values)
    for name, rule in rules.derived.items():
        known[name] = _conjunction(rule, known, combine)
    classes = {
        kind: {name: _conjunction(rule, known, combine) for name, rule in members.items()}
        for kind, members in rules.classes.items()
    }
    return Derived({name: known[name] for name in rules.derived}, classes)


def _check_values(rubric: Rubric, values: Mapping[str, Truth]) -> None:
    missing = [name for name in rubric.ids if name not in values]
    if missing:
        raise ConfigError(f"no value for {', '.join(missing)}", hint="give None for what is not known")
    for name, value in values.items():
        if name not in rubric.ids:
            raise ConfigError(f"the rubric has no proposition {name!r}")
        if value is not None and not 0.0 <= value <= 1.0:
            raise ConfigError(f"the value of {name!r} is {value}, no probability")


def _conjunction(rule: Rule, known: Mapping[str, Truth], combine: Literal["product", "min"]) -> Truth:
    parts = [_literal(known[name], wanted) for name, wanted in rule.items()]
    told = [part for part in parts if part is not None]
    result = math.prod(told) if combine == "product" else min(told, default=1.0)
    if len(told) < len(parts) and result != 0:
        return None
    return bool(result) if all(isinstance(part, bool) for part in told) else float(result)


def _literal(value: Truth, wanted: bool) -> Truth:
    if value is None or isinstance(value, bool):
        return None if value is None else value is wanted
    return value if wanted else 1.0 - value
