"""RubricHub (2601.08430; sojuL/RubricHub_v1): `criterion` and `points`, in rows laid out as verl wants them.

Read in teqkilla/RubricHub (data_synthesis_final at d21dc07 and 40dfd1f) and in code that reads the data set
(EnvCommons/RubricHub at 00f711f and others; the data set's card could not be seen):

- rows of RuRL: `prompt` (messages), `data_source`, `ability`, and one list of `{"criterion", "points", "tags"}` in
  three places, `Rubrics`, `reward_model` (beside `ground_truth` and `style`) and `extra_info.reward_model`;
- rows of the fine-tuning half (`query`, `answer`, `rubrics`, `rubric_score`, ...) and the pipeline's own export
  (`question`, `id`, `rubrics`), which have the list in `rubrics`;
- the pipeline's steps, with `merged_rubrics` and `augmented_rubrics` of `{"title", "description", "weight"}`.

`rubrics` of `criterion` and `points` is HealthBench's shape, and taken for that, unless the entries' tags are an
object; a bare list of `title`, `description` and `weight` is taken for RaR's. Named, this format reads both.

Points and weights are 0 to 10; a negative one, which the paper allows, is a penalty. Where an entry's tags say
`"verifier": "rule"`, code decides: their `function` and `parameters` become the criterion's verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Criterion, Polarity, VerifierSpec
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import (
    Item,
    assign_ids,
    build_criterion,
    build_rubric,
    check_weights,
    holds_items,
    note_polarity,
    objects_at,
    optional_text,
    own_id,
    record_id,
    signed,
    text_at,
    with_id,
    written_ids,
)
from rubricate.rubrics.formats.layout import arranged, check_reserved, order_mark
from rubricate.rubrics.formats.losses import (
    criterion_losses,
    metadata_losses,
    rubric_losses,
    signed_losses,
    unmarked,
)
from rubricate.rubrics.formats.tulu import without_ids
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT"]

_MARK = "rubrichub:"
_LISTS, _LIST, _ORDER = _MARK + "lists", _MARK + "list", _MARK + "order"
_TEXT, _TAGS, _FLOAT = _MARK + "text", _MARK + "tags", _MARK + "float"
_KEYS = {"criterion": "points", "description": "weight"}
"""The names of an entry's text, each with the name of its weight."""

Path = tuple[str, ...]
_RUBRICS, _VERL = ("Rubrics",), ("reward_model", "rubrics")
_PATHS: tuple[Path, ...] = (_RUBRICS, _VERL, ("extra_info", "reward_model", "rubrics"), ("rubrics",))
_STEPS = ("merged_rubrics", "augmented_rubrics")
_ITEM_FIELDS = ("criterion", "points")
_PLAIN_MODEL: dict[str, object] = {"ground_truth": "", "rubrics": None, "style": "rubric"}
"""The `reward_model` of a row without a reference answer; null stands for the list."""


def _is_item(item: Item) -> bool:
    return "points" in item and as_object(item.get("tags")) is not None


def _is_record(record: Item) -> bool:
    if record.get("Rubrics") is not None or _at(record, _VERL) is not None:
        return True
    steps = any(as_array(record.get(name)) is not None for name in _STEPS)
    return steps or (bool(record.get("rubrics")) and holds_items(record, "rubrics", _is_item))


def _at(record: Item, path: Path) -> object:
    """The value at a path of fields; None where there is none."""
    value: object = record
    for key in path:
        fields = as_object(value)
        value = None if fields is None else fields.get(key)
    return value


def _put(record: Item, path: Path, value: object) -> dict[str, object]:
    """A copy of a record with another value at a path, as far as the path is there."""
    key, rest = path[0], path[1:]
    inner = as_object(record.get(key))
    if rest and inner is None:
        return dict(record)
    return {**record, key: value if inner is None or not rest else _put(inner, rest, value)}


# Reading


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        return build_rubric(place, _criteria([(value, place, "")]), metadata={_LISTS: ["rubrics"]})
    check_reserved(record, _MARK, place)
    paths = [path for path in _PATHS if _at(record, path) is not None]
    if not paths:
        return _parse_steps(record, place)
    where, listed = place.at(*paths[0]), _at(record, paths[0])
    criteria = _criteria([(listed, where, "")])
    same = [path for path in paths if _at(record, path) == listed]
    for path in paths:
        if path not in same:
            place.at(*path).note("layout", f"differs from {where.field}, which is read; it stays as it is")
    rubric_id, metadata = _rest(record, same)
    return build_rubric(where, criteria, rubric_id=rubric_id, metadata=metadata)


def _parse_steps(record: Item, place: Place) -> Rubric:
    lists = [name for name in _STEPS if record.get(name) is not None]
    if not lists:
        hint = f"fields here: {', '.join(record) or 'none'}"
        raise place.at("Rubrics").error("this field is missing", hint=hint)
    parts = [(record[name], place.at(name), name) for name in lists]
    # A step without anything to add leaves its list empty.
    criteria = _criteria([part for part in parts if part[0] != []] or parts[:1])
    rubric_id, metadata = _rest(record, [(name,) for name in lists])
    return build_rubric(place, criteria, rubric_id=rubric_id, metadata=metadata)


def _rest(record: Item, paths: Sequence[Path]) -> tuple[str, dict[str, object]]:
    """A row's id and metadata: all but the list of entries, and marks for where that stood."""
    rest = {key: part for key, part in record.items() if (key,) not in paths}
    for path in paths:
        rest = _put(rest, path, None) if len(path) > 1 else rest
    rubric_id, metadata = record_id(rest, "id")
    if _VERL in paths and _RUBRICS in paths and _same(metadata.get("reward_model"), _PLAIN_MODEL):
        del metadata["reward_model"]  # written again for every row that has none
    marks = {} if list(paths) == _usual_paths(metadata) else {_LISTS: [".".join(path) for path in paths]}
    head = ({"id": rubric_id} if rubric_id else {}) | metadata
    usual = list(_laid_out(head, [(path, None) for path in paths]))
    return rubric_id, metadata | marks | order_mark(_ORDER, record, usual)


def _usual_paths(metadata: Item) -> list[Path]:
    """Where the list is written when no mark says so: in the trainer's field too, unless that is taken."""
    return [_RUBRICS] if "reward_model" in metadata else [_RUBRICS, _VERL]


def _criteria(parts: Sequence[tuple[object, Place, str]]) -> list[Criterion]:
    """The criteria of lists of entries, each with its place and its name where there are several."""
    found = [
        (item, where.at(index), name)
        for value, where, name in parts
        for index, item in enumerate(objects_at(value, where))
    ]
    items, places = [item for item, _, _ in found], [place for _, place, _ in found]
    weights = _weights(items, places)
    titles = [optional_text(item, "title", place) for item, place in zip(items, places, strict=True)]
    ids = assign_ids([own_id(item, place) for item, place in zip(items, places, strict=True)], titles)
    criteria = [
        _criterion(item, place, own, weight, name)
        for (item, place, name), own, weight in zip(found, ids, weights, strict=True)
    ]
    rules = [criterion.verifier.name for criterion in criteria if criterion.verifier is not None]
    if rules:
        names = ", ".join(dict.fromkeys(rules))
        parts[0][1].note("layout", f"decided by code, not by a judge; register verifiers named {names}")
    return without_ids(criteria, titles, items)


def _text_key(item: Item) -> str:
    return "description" if "description" in item and "criterion" not in item else "criterion"


def _weights(items: Sequence[Item], places: Sequence[Place]) -> list[float]:
    """The weights of entries, whichever of the two names they have."""
    weights: dict[int, float] = {}
    for text, key in _KEYS.items():
        chosen = [index for index, item in enumerate(items) if _text_key(item) == text]
        found = check_weights([items[i] for i in chosen], [places[i] for i in chosen], key, negative=True)
        weights |= zip(chosen, found, strict=True)
    return [weights[index] for index in range(len(items))]


def _criterion(item: Item, place: Place, name: str, weight: float, listed: str) -> Criterion:
    check_reserved(item, _MARK, place)
    text = _text_key(item)
    given = item[_KEYS[text]]
    usual = [key for key in ("id", "title", text, _KEYS[text], "tags") if key in item]
    marks: dict[str, object] = order_mark(_ORDER, item, [*usual, *(key for key in item if key not in usual)])
    marks |= {_TEXT: text} if text != "criterion" else {}
    marks |= {_LIST: listed} if listed else {}
    marks |= {_FLOAT: True} if isinstance(given, float) and given.is_integer() else {}
    tags, verifier = _tags(item.get("tags"), place.at("tags"))
    if "tags" in item and not tags and not (verifier is not None and _same(item["tags"], _rule(verifier))):
        marks[_TAGS] = item["tags"]
    fields = {
        "id": name,
        "text": text_at(item, text, place),
        "weight": abs(weight),
        "polarity": Polarity.PENALTY if weight < 0 else Polarity.REWARD,
        "verifier": verifier,
        "tags": tags,
        "metadata": {key: part for key, part in item.items() if key not in (text, _KEYS[text], "tags")} | marks,
    }
    criterion = build_criterion(fields, place, {"text": text})
    note_polarity(criterion, place.at(text))
    return criterion


def _tags(value: object, place: Place) -> tuple[tuple[str, ...], VerifierSpec | None]:
    """Tags that are a list of texts, or the verifier that an object of tags names."""
    fields, listed = as_object(value), as_array(value)
    if fields is not None:
        return (), _verifier(fields, place)
    if value is not None and listed is None:
        raise place.error(f"expected a list of tags or an object, got {type(value).__name__}")
    tags: list[str] = []
    for index, tag in enumerate(listed or ()):
        if not isinstance(tag, str):
            raise place.at(index).error(f"a tag is text, not {type(tag).__name__}")
        tags.append(tag)
    return tuple(tags), None


def _verifier(tags: Item, place: Place) -> VerifierSpec | None:
    """The code that decides an entry; None where a judge does. Parquet fills unused parameters with null."""
    if tags.get("verifier") != "rule":
        return None
    parameters = tags.get("parameters")
    fields = as_object({} if parameters is None else parameters)
    if fields is None:
        raise place.at("parameters").error(f"expected an object, got {type(parameters).__name__}")
    args = {key: part for key, part in fields.items() if part is not None}
    return VerifierSpec(name=text_at(tags, "function", place), args=args)


def _rule(verifier: VerifierSpec) -> dict[str, object]:
    """The tags that name a verifier."""
    return {"function": verifier.name, "parameters": dict(verifier.args), "verifier": "rule"}


def _same(tags: object, usual: Item) -> bool:
    fields = as_object(tags)
    return fields is not None and list(fields.items()) == list(usual.items())


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    metadata = unmarked(rubric.metadata, _MARK)
    paths = _paths(rubric)
    steps = [name for name in _STEPS if (name,) in paths]
    items = _items(rubric, rubric.criteria)
    lists: list[tuple[Path, object]] = [(path, deepcopy(items)) for path in paths]  # YAML would link what is shared
    if steps:
        split = _split(rubric) if len(steps) > 1 else len(rubric) if steps == [_STEPS[0]] else 0
        parts = {_STEPS[0]: rubric.criteria[:split], _STEPS[1]: rubric.criteria[split:]}
        lists = [((name,), _items(rubric, parts[name])) for name in steps]
    return arranged(_laid_out(with_id(rubric, "id", metadata), lists), rubric.metadata.get(_ORDER))


def _paths(rubric: Rubric) -> list[Path]:
    """Where the list of entries is written."""
    marked = as_array(rubric.metadata.get(_LISTS))
    if marked is None:
        return _usual_paths(rubric.metadata)
    return [tuple(name.split(".")) for name in marked if isinstance(name, str)]


def _laid_out(head: Item, lists: Sequence[tuple[Path, object]]) -> dict[str, object]:
    """A record of some fields, with lists put at their paths."""
    record = dict(head)
    if "reward_model" not in record and any(path == _VERL for path, _ in lists):
        record["reward_model"] = dict(_PLAIN_MODEL)
    for path, listed in lists:
        record = _put(record, path, listed)
    return record


def _split(rubric: Rubric) -> int:
    """Where the last run of criteria from the augmenting step begins."""
    split = len(rubric)
    while split and rubric.criteria[split - 1].metadata.get(_LIST) == _STEPS[1]:
        split -= 1
    return split


def _items(rubric: Rubric, criteria: Sequence[Criterion]) -> list[dict[str, object]]:
    titles = [title if isinstance(title := c.metadata.get("title"), str) else None for c in rubric.criteria]
    names = dict(zip(rubric.ids, written_ids(rubric, titles), strict=True))
    return [_item(criterion, names[criterion.id]) for criterion in criteria]


def _written_key(criterion: Criterion) -> str:
    return "description" if criterion.metadata.get(_TEXT) == "description" else "criterion"


def _item(criterion: Criterion, name: object) -> dict[str, object]:
    metadata, key, weight = criterion.metadata, _written_key(criterion), signed(criterion)
    extra = unmarked(metadata, _MARK)
    item: dict[str, object] = {} if name is None else {"id": name}
    item |= {"title": extra["title"]} if "title" in extra else {}
    item |= {key: criterion.text, _KEYS[key]: float(weight) if metadata.get(_FLOAT) else weight}
    item |= _written_tags(criterion)
    item |= {key: part for key, part in extra.items() if key not in item and key != "id"}
    return arranged(item, metadata.get(_ORDER))


def _written_tags(criterion: Criterion) -> dict[str, object]:
    """The tags as the source had them, while they say the same; empty where there are none."""
    given = criterion.metadata.get(_TAGS)
    fields, verifier = as_object(given), criterion.verifier
    if fields is not None and _verifier(fields, Place()) == verifier:
        return {"tags": dict(fields)}
    if verifier is not None:
        return {"tags": _rule(verifier)}
    if criterion.tags:
        return {"tags": list(criterion.tags)}
    if fields is not None:
        return {"tags": {**fields, "verifier": "llm"}}
    return {"tags": given} if _TAGS in criterion.metadata else {}


def _losses(rubric: Rubric) -> list[str]:
    both = [c.id for c in rubric.criteria if c.tags and (c.verifier or as_object(c.metadata.get(_TAGS)))]
    nulls = [c.id for c in rubric.criteria if c.verifier and None in c.verifier.args.values()]
    taken = [c.id for c in rubric.criteria if {key := _written_key(c), _KEYS[key], "tags"} & c.metadata.keys()]
    return [
        *signed_losses(rubric),
        *criterion_losses(rubric, {"tags", "verifier"}),
        *([f"tags beside a verifier ({', '.join(both)})"] if both else []),
        *([f"arguments of verifiers that are null ({', '.join(nulls)})"] if nulls else []),
        *rubric_losses(rubric, ()),
        *metadata_losses(rubric, {path[0] for path in _paths(rubric) if len(path) == 1}, ()),
        *([f"metadata that has the name of a field ({', '.join(taken)})"] if taken else []),
    ]


FORMAT = Format(
    name="rubrichub",
    shape='{"prompt", "Rubrics": [{"criterion", "points"}, ...], "reward_model": {"rubrics", ...}, ...}, or '
    '{"question", "merged_rubrics": [{"title", "description", "weight"}, ...], "augmented_rubrics"}',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="prompt",
    prompts=("question", "query"),
    messages=True,
)
