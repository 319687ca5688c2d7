"""AdvancedIF (2511.10507): JSON inside JSON inside a row, a list of yes/no questions about the last answer.

A row has `conversation_history` (JSON text of chat messages), `benchmark_name` and `prompt_metadata`: JSON text of
an object whose `rubrics` is, once more, JSON text of a list of questions. Each of the three layers may also be the
value itself. Names and layers as the README, processor.py and sample data of facebookresearch/AdvancedIF describe
them (read in the copy rogerjin72/AdvancedIF, f9d3013).

Every question is a criterion of polarity `reward` and weight 1, since YES to all of them is what passes: the
paper's reward is all or nothing, the aggregation named by `AGGREGATION`. Messages become values in the rubric's
metadata; all other columns, a `response` too, are kept as they are. A layer that has not changed is written back
with its very text; one that has, as JSON text in the layers it came in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubricate.narrow import as_array, as_object
from rubricate.rubrics.criterion import Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import build_criterion, build_rubric, record_id, with_id
from rubricate.rubrics.formats.layers import json_layer, layer_text, same, with_order
from rubricate.rubrics.formats.layout import arranged, check_reserved
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Rubric

__all__ = ["AGGREGATION", "FORMAT"]

AGGREGATION = "all_or_nothing"
"""Name of the aggregation that goes with these rubrics: 1 when every criterion is met, else 0 (2511.10507)."""

_MARK = "advancedif:"
_SOURCE, _MESSAGES, _ORDER = _MARK + "prompt_metadata", _MARK + "conversation_history", _MARK + "order"
_HISTORY, _OUTER, _INNER = "conversation_history", "prompt_metadata", "rubrics"


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_record(record: Mapping[str, object]) -> bool:
    if _OUTER not in record or {"rubric", "rubrics", "criteria", "score_rubric"} & record.keys():
        return False
    value = record[_OUTER]
    inner = as_object(value) or (value if isinstance(value, str) else ())
    return _HISTORY in record or _INNER in inner


def _parse(value: object, place: Place, options: Options) -> Rubric:
    record = as_object(value)
    if record is None:
        raise place.error(f"expected an object, got {type(value).__name__}")
    check_reserved(record, _MARK, place)
    if _OUTER not in record:
        raise place.at(_OUTER).error("this field is missing", hint=f"fields here: {', '.join(record) or 'none'}")
    texts = _questions(record[_OUTER], place.at(_OUTER))
    where = place.at(_OUTER, _INNER)
    criteria = [
        build_criterion({"id": f"c{index + 1}", "text": text}, where.at(index), {})
        for index, text in enumerate(texts)
    ]
    rubric_id, metadata = record_id({name: part for name, part in record.items() if name != _OUTER}, "id")
    if not same(record[_OUTER], _layered(texts)):
        metadata[_SOURCE] = record[_OUTER]
    history = record.get(_HISTORY)
    if history is not None:
        messages = _messages(history, place.at(_HISTORY))
        metadata[_HISTORY] = messages
        if history != layer_text(messages):
            metadata[_MESSAGES] = history if isinstance(history, str) else "list"
    rubric = build_rubric(where, criteria, rubric_id=rubric_id, metadata=metadata)
    return with_order(rubric, record, _dump, _ORDER)


def _opened(value: object, place: Place) -> object:
    """The value of a layer, which is JSON text or the value itself."""
    return json_layer(value, place) if isinstance(value, str) else value


def _questions(value: object, place: Place) -> list[str]:
    outer = as_object(_opened(value, place))
    if outer is None:
        raise place.error("expected an object, or JSON text of one", hint='such as {"rubrics": "[...]"}')
    where = place.at(_INNER)
    if _INNER not in outer:
        raise where.error("this field is missing", hint=f"fields here: {', '.join(outer) or 'none'}")
    listed = as_array(_opened(outer[_INNER], where))
    if listed is None:
        raise where.error("expected a list of questions, or JSON text of one")
    if not listed:
        raise where.error("a rubric needs at least one question")
    texts: list[str] = []
    for index, text in enumerate(listed):
        if not isinstance(text, str) or not text.strip():
            problem = "the text is blank" if isinstance(text, str) else f"expected text, got {type(text).__name__}"
            raise where.at(index).error(problem)
        texts.append(text)
    return texts


def _messages(value: object, place: Place) -> list[object]:
    listed = as_array(_opened(value, place))
    if not listed:
        raise place.error("expected a list of messages, or JSON text of one", hint='[{"role", "content"}, ...]')
    for index, item in enumerate(listed):
        message = as_object(item)
        if message is None:
            raise place.at(index).error(f"expected a message, got {type(item).__name__}")
        for name in ("role", "content"):
            if not isinstance(message.get(name), str):
                problem = f"expected text, got {type(message[name]).__name__}" if name in message else "is missing"
                raise place.at(index, name).error(problem)
    return list(listed)


# Writing


def _layered(texts: Sequence[str], source: object = "") -> object:
    """`prompt_metadata` with these questions: the source where it says the same, or else anew in its layers."""
    if not source:
        return layer_text({_INNER: layer_text(list(texts))})
    outer = as_object(_opened(source, Place())) or {}
    given = outer.get(_INNER)
    if same(_opened(given, Place()), list(texts)):
        return source
    anew = {**outer, _INNER: layer_text(list(texts)) if isinstance(given, str) else list(texts)}
    return layer_text(anew) if isinstance(source, str) else anew


def _history(value: object, source: object, place: Place) -> object:
    """The conversation as it is written: its source's text where it still says the same, or else JSON text."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if value is None:
        return value
    value = _messages(value, place)
    if source == "list":
        return value
    if isinstance(source, str) and same(json_layer(source, Place()), value):
        return source
    return layer_text(value)


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    wrong = [criterion.id for criterion in rubric.criteria if criterion.polarity is Polarity.PENALTY]
    if wrong:
        message = f"advancedif has no penalties, and would reward the errors {', '.join(wrong)}"
        raise place.error(message, hint="word them positively")
    metadata = {name: part for name, part in unmarked(rubric.metadata, _MARK).items() if name != _OUTER}
    if _HISTORY in metadata:
        metadata[_HISTORY] = _history(metadata[_HISTORY], rubric.metadata.get(_MESSAGES), place.at(_HISTORY))
    texts = [criterion.text for criterion in rubric.criteria]
    record = with_id(rubric, "id", metadata) | {_OUTER: _layered(texts, rubric.metadata.get(_SOURCE, ""))}
    return arranged(record, rubric.metadata.get(_ORDER))


def _losses(rubric: Rubric) -> list[str]:
    lost = criterion_losses(rubric, ()) + rubric_losses(rubric, ())
    for number, criterion in enumerate(rubric.criteria, 1):
        if criterion.id != f"c{number}":
            lost.append(f"id ({criterion.id})")
        if criterion.weight != 1.0:
            lost.append(f"weight ({criterion.id})")
        lost += [f"metadata.{name} ({criterion.id})" for name in criterion.metadata]
    if isinstance(rubric.metadata.get(_HISTORY), str):
        lost.append(f"metadata.{_HISTORY} as a text (it becomes a message of the user)")
    return lost + metadata_losses(rubric, {_OUTER}, ())


FORMAT = Format(
    name="advancedif",
    shape='{"conversation_history", "benchmark_name", "prompt_metadata": "{\\"rubrics\\": \\"[...]\\"}"}',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt=_HISTORY,
    messages=True,
    texts=(_HISTORY, _OUTER),
)
