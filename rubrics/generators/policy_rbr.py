"""The criteria of one response type out of the definitions of Rule-Based Rewards (2411.01111), without a model."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Polarity, Provenance
from rubricate.rubrics.formats import load_rubric, parse_rubric
from rubricate.rubrics.formats.rbr_rules import kind_of
from rubricate.rubrics.rubric import Rubric, Scope

__all__ = ["propositions_rubric"]


def propositions_rubric(definitions: Mapping[str, object] | str | os.PathLike[str], response_type: str) -> Rubric:
    """The simple propositions that the completion classes of a response type speak of, with a sign each.

    RBR fits weights to data, and until then a proposition has no direction. The classes give one (ours): what the
    best class wants is a reward, and what it rules out a penalty; what any other class wants and the best does not
    is a penalty. A derived proposition stands for its parts, with the opposite signs where it is ruled out. All
    weigh 1. Propositions without a direction are left out, and listed in the metadata under `policy:left_out`.

    Args:
        definitions: the record, or the path of its file.
        response_type: such as `hard_refuse`, or as the data spell it, `Hard Refuse`.

    Raises FormatError for definitions that break the format's rules, ConfigError for a response type that has no
    classes, or whose classes give no proposition a direction.
    """
    if isinstance(definitions, Mapping):
        rubric = parse_rubric(definitions, format="rbr")
    else:
        rubric = load_rubric(definitions, format="rbr")
    record = rubric.metadata
    kind = kind_of(response_type)
    rules = {
        name: rule
        for name, types in (as_object(record.get("completion_classes")) or {}).items()
        for spelled, rule in (as_object(types) or {}).items()
        if kind_of(spelled) == kind
    }
    order = [str(name) for name in as_array(record.get("completion_class_order")) or list(rules)]
    ranked = [name for name in order if name in rules]
    if not ranked:
        types = {
            kind_of(one)
            for part in (as_object(record.get("completion_classes")) or {}).values()
            for one in as_object(part) or {}
        }
        raise ConfigError(
            f"no class is for the response type {response_type!r}", hint=f"types: {', '.join(sorted(types))}"
        )
    signs: dict[str, Polarity] = {}
    classes: dict[str, list[str]] = {}
    for name in ranked:
        for part, wanted in _simple(as_object(rules[name]) or {}, record, rubric).items():
            classes.setdefault(part, []).append(f"{name}/{kind}")
            if name == ranked[0]:
                signs[part] = Polarity.REWARD if wanted else Polarity.PENALTY
            elif wanted:
                signs.setdefault(part, Polarity.PENALTY)
    criteria = tuple(_signed(one, signs[one.id], classes[one.id]) for one in rubric.criteria if one.id in signs)
    if not criteria:
        raise ConfigError(f"the classes of {response_type!r} give no proposition a direction")
    left = [one.id for one in rubric.criteria if one.id not in signs]
    metadata = {"response_type": kind, "policy:left_out": left}
    return Rubric(criteria=criteria, id=f"rbr-{kind}", scope=Scope.TASK, metadata=metadata)


def _simple(rule: Mapping[str, object], record: Mapping[str, object], rubric: Rubric) -> dict[str, bool]:
    """The simple propositions that a rule speaks of, and whether each being true helps; its own words go first."""
    derived = as_object(record.get("derived_propositions")) or {}
    found: dict[str, bool] = {}
    for name, wanted in rule.items():
        if name in rubric.ids:
            found[name] = wanted is True
        else:
            parts = _simple(as_object(derived.get(name)) or {}, record, rubric)
            found = {part: value is (wanted is True) for part, value in parts.items()} | found
    return found


def _signed(one: Criterion, polarity: Polarity, classes: list[str]) -> Criterion:
    evidence = tuple(f"clause:{name}" for name in classes)
    made = Provenance(generator="rbr-classes", evidence=evidence)
    return one.model_copy(update={"weight": 1.0, "polarity": polarity, "provenance": made})
