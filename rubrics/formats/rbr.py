"""Rule-Based Rewards (2411.01111): propositions about a completion, rules that combine them, and fitted weights.

Two records are read, with the names of openai/safety-rbr-code-and-data (7f489fa): the definitions in
config/proposition_prompts.yaml (`simple_propositions`, `derived_propositions`, `completion_classes`, ...), and a
row of data/rbr_gold_data (`response_type`, `prompt`, `completion`, `propositions`: a person's true or false for
each).

Every simple proposition is a binary criterion. Whether it is good depends on the response type and is known only
once weights are fitted: they are real numbers, a negative one is a penalty, and without them every weight is 0, as
before the first step of the fit. Weights come from a column or an option `weights`: an object of numbers by
proposition, or one such object for each response type, of which the option or the row's `response_type` takes one
(rbr_weight_fitter.py fits a table for each type). Rules stay in the rubric's metadata as they are, and
`derived_values` evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubricate.data.io import read_values
from rubricate.errors import ConfigError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.rubrics.criterion import Criterion, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    build_criterion,
    build_rubric,
    record_id,
    signed,
    text_at,
    with_id,
)
from rubricate.rubrics.formats.layers import json_layer, same, with_order
from rubricate.rubrics.formats.layout import arranged, check_reserved, order_mark
from rubricate.rubrics.formats.losses import (
    criterion_losses,
    metadata_losses,
    rubric_losses,
    signed_losses,
    unmarked,
)
from rubricate.rubrics.formats.rbr_rules import Derived, Truth, derived_values, kind_of, object_at, read_rules
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT", "Derived", "Truth", "derived_values", "gold_values"]

_MARK = "rbr:"
_WEIGHTS, _TYPE, _LABEL, _ORDER = _MARK + "weights", _MARK + "response_type", _MARK + "label", _MARK + "order"
_SIMPLE, _GOLD = "simple_propositions", "propositions"


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_record(record: Mapping[str, object]) -> bool:
    return _SIMPLE in record or as_object(record.get(_GOLD)) is not None or {_GOLD, "completion"} <= record.keys()


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        raise place.error(f"expected an object, got {type(value).__name__}")
    check_reserved(record, _MARK, place)
    field = _SIMPLE if _SIMPLE in record else _GOLD
    entries = object_at(record.get(field), place.at(field), "an object of propositions")
    make = _defined if field == _SIMPLE else _labelled
    criteria = [make(name, entry, place.at(field, name)) for name, entry in entries.items()]
    read_rules(record, entries, place)
    metadata: dict[str, object] = {}
    given, where = _given(record, place, options)
    if given is not None:
        table, chosen = _table(given, options.get("response_type", record.get("response_type")), where)
        criteria = _weighted(criteria, table, where)
        metadata |= {_WEIGHTS: given} | ({_TYPE: chosen} if chosen else {})
    elif field == _SIMPLE:
        place.note("weights", "there are no weights: every proposition counts 0 until some are given (weights=...)")
    rest = {name: part for name, part in record.items() if name not in (field, "weights")}
    rubric_id, columns = record_id(rest, "id")
    rubric = build_rubric(place.at(field), criteria, rubric_id=rubric_id, metadata=columns | metadata)
    return with_order(_without_copy(rubric), record, _dump, _ORDER)


def _defined(name: str, entry: object, place: Place) -> Criterion:
    """The criterion of a proposition that is defined by a prompt."""
    fields = object_at(entry, place, 'an object with a "prompt"')
    check_reserved(fields, _MARK, place)
    extra = {key: part for key, part in fields.items() if key != "prompt"}
    extra |= order_mark(_ORDER, fields, ["prompt", *extra])
    made = {"id": name, "text": text_at(fields, "prompt", place), "weight": 0.0, "metadata": extra}
    return build_criterion(made, place, {"text": "prompt"})


def _labelled(name: str, label: object, place: Place) -> Criterion:
    """The criterion of a proposition that has a label; its text is its name in words."""
    if label is not None and not isinstance(label, bool) and not 0.0 <= (as_number(label) or 0.0) <= 1.0:
        raise place.error("a probability is in [0, 1]")
    if label is not None and as_number(label) is None and not isinstance(label, bool):
        raise place.error(f"expected true, false or a probability, got {type(label).__name__}")
    made = {"id": name, "text": _words(name), "weight": 0.0, "metadata": {_LABEL: label}}
    return build_criterion(made, place, {})


def _words(name: str) -> str:
    words = name.replace("_", " ")
    return words if words.strip() else name


# Weights


def _given(record: Mapping[str, object], place: Place, options: Options) -> tuple[object, Place]:
    """The weights of the option, or else of the column, and where they stand."""
    option = options.get("weights", "").strip()
    if not option:
        return record.get("weights"), place.at("weights")
    if option.startswith("{"):
        return json_layer(option, Place("the option weights")), Place("the option weights", notes=place.notes)
    return next(iter(read_values(option))).value, Place(option, notes=place.notes)


def _table(given: object, wanted: object, place: Place) -> tuple[Mapping[str, object], str]:
    """The weights by proposition, and the response type they are for, "" where there is only one table."""
    table = object_at(given, place, "an object of weights")
    if not any(as_object(part) is not None for part in table.values()):
        return table, ""
    types = ", ".join(table)
    if not isinstance(wanted, str):
        place.note("weights", f"no response type chooses among {types}: every proposition counts 0")
        return {}, ""
    for name, part in table.items():
        if kind_of(name) == kind_of(wanted):
            return object_at(part, place.at(name), "an object of weights"), name
    raise place.error(f"there are no weights for the response type {wanted!r}", hint=f"types here: {types}")


def _weighted(criteria: Sequence[Criterion], table: Mapping[str, object], place: Place) -> list[Criterion]:
    weights: dict[str, float] = {}
    for name, value in table.items():
        weight = as_number(value)
        if weight is None:
            raise place.at(name).error(f"expected a finite number, got {type(value).__name__}")
        weights[name] = weight
    others = [name for name in weights if name not in {criterion.id for criterion in criteria}]
    if others:
        place.note("weights", f"kept, but the weights of no simple propositions: {', '.join(others)}")
    return [
        c.model_copy(
            update={
                "weight": abs(weights.get(c.id, 0.0)),
                "polarity": Polarity.PENALTY if weights.get(c.id, 0.0) < 0 else Polarity.REWARD,
            }
        )
        for c in criteria
    ]


def _written_weights(rubric: Rubric) -> object:
    """The table to write: the source's with what has changed, or the weights by proposition; None for none."""
    now: dict[str, object] = {criterion.id: signed(criterion) for criterion in rubric.criteria}
    source = as_object(rubric.metadata.get(_WEIGHTS)) or {}
    chosen = rubric.metadata.get(_TYPE)
    if not any(now.values()) and not chosen and any(as_object(part) is not None for part in source.values()):
        return source
    table = as_object(source.get(chosen)) if isinstance(chosen, str) else source
    if not table or any(as_object(part) is not None for part in table.values()):
        return now if any(now.values()) else None
    new = {name: weight for name, weight in now.items() if as_number(table.get(name, 0)) != weight}
    if not new:
        return source
    return {**source, chosen: {**table, **new}} if isinstance(chosen, str) else {**table, **new}


def _options_of(rubric: Rubric) -> Options:
    chosen = rubric.metadata.get(_TYPE)
    return {"response_type": chosen} if isinstance(chosen, str) else {}


def _without_copy(rubric: Rubric) -> Rubric:
    """The rubric without the source's table of weights, where its own weights say the same."""
    bare = {name: part for name, part in rubric.metadata.items() if name != _WEIGHTS}
    plain = rubric.model_copy(update={"metadata": bare})
    return plain if same(_written_weights(plain), rubric.metadata.get(_WEIGHTS)) else rubric


def gold_values(rubric: Rubric) -> dict[str, Truth]:
    """The labels of a row of gold data, by proposition, for `derived_values`. Raises ConfigError without labels."""
    labels: dict[str, Truth] = {}
    for criterion in rubric.criteria:
        if _LABEL not in criterion.metadata:
            raise ConfigError(f"{criterion.id!r} has no label", hint="read a row that has `propositions`")
        label = criterion.metadata[_LABEL]
        labels[criterion.id] = label if isinstance(label, bool) else as_number(label)
    return labels


# Writing


def _labels(rubric: Rubric) -> list[str]:
    return [criterion.id for criterion in rubric.criteria if _LABEL in criterion.metadata]


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    gold = len(_labels(rubric)) == len(rubric)
    field = _GOLD if gold else _SIMPLE
    entries: dict[str, object] = {}
    for criterion in rubric.criteria:
        entry = {"prompt": criterion.text} | unmarked(criterion.metadata, _MARK) | {"prompt": criterion.text}
        order = criterion.metadata.get(_ORDER)
        entries[criterion.id] = criterion.metadata[_LABEL] if gold else arranged(entry, order)
    metadata = {k: part for k, part in unmarked(rubric.metadata, _MARK).items() if k not in (field, "weights")}
    record = with_id(rubric, "id", metadata) | {field: entries}
    weights, order = _written_weights(rubric), as_array(rubric.metadata.get(_ORDER)) or ()
    if weights is not None or "weights" in order:
        record["weights"] = weights
    return arranged(record, order)


def _losses(rubric: Rubric) -> list[str]:
    labels = _labels(rubric)
    gold = len(labels) == len(rubric)
    lost = signed_losses(rubric) + criterion_losses(rubric, ()) + rubric_losses(rubric, ())
    if gold:
        lost += [f"text ({c.id})" for c in rubric.criteria if c.text != _words(c.id)]
        lost += [f"metadata.{name} ({c.id})" for c in rubric.criteria for name in unmarked(c.metadata, _MARK)]
    elif labels:
        lost.append(f"labels, which not all have ({', '.join(labels)})")
    return lost + metadata_losses(rubric, {_GOLD if gold else _SIMPLE, "weights"}, () if gold else {"prompt"})


FORMAT = Format(
    name="rbr",
    shape='{"simple_propositions": {name: {"prompt"}}, ...}, or {"propositions": {name: true or false}, ...}',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    options=("response_type", "weights"),
    options_of=_options_of,
    prompt="prompt",
    messages=True,
)
