"""Prometheus and BiGGen-Bench: one criterion with descriptions of the scores 1 to 5.

Four layouts are read and written back as they were: BiGGen's `score_rubric` object among the fields of an
instance, the flat `criteria` and `score1_description` ..., Feedback-Collection's `orig_` names, and the text of a
judge prompt (`[criteria]`, then `Score 1: ...` lines).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rubricate.narrow import as_object
from rubricate.rubrics.criterion import Criterion, OrdinalScale, Polarity
from rubricate.rubrics.formats.base import Format, Options, Place
from rubricate.rubrics.formats.common import build_criterion, build_rubric, record_id, text_at, with_id
from rubricate.rubrics.formats.losses import criterion_losses, metadata_losses, rubric_losses, unmarked
from rubricate.rubrics.rubric import Rubric

__all__ = ["FORMAT", "is_score_text", "parse_score_text"]

_MARK = "prometheus:"
_LAYOUT, _BEFORE, _AFTER = _MARK + "layout", _MARK + "before", _MARK + "after"
_LEVELS = range(1, 6)
_FLAT = ("criteria", *(f"score{level}_description" for level in _LEVELS))
_ORIG = tuple(f"orig_{name}" for name in _FLAT)
_TEXT = re.compile(
    r"\[(?P<criteria>[^\n]*)\]\nScore 1: (?P<s1>.*?)\nScore 2: (?P<s2>.*?)\nScore 3: (?P<s3>.*?)"
    r"\nScore 4: (?P<s4>.*?)\nScore 5: (?P<s5>.*?)(?P<after>\n\n###.*|\s*)\Z",
    re.S,
)
_HEADING = re.compile(r"###Score Rubrics?:\n")


def is_score_text(text: str) -> bool:
    """Whether a text is a rubric in brackets followed by the five scores, as in Prometheus' judge prompt."""
    return _TEXT.match(text) is not None


def _is_item(item: Mapping[str, object]) -> bool:
    return False


def _is_record(record: Mapping[str, object]) -> bool:
    if "score_rubric" in record or any(name in record for name in (*_FLAT[1:], *_ORIG[1:])):
        return True
    prompt = record.get("instruction")
    return isinstance(prompt, str) and _HEADING.search(prompt) is not None


def _parse(value: object, place: Place, options: Options) -> Rubric:
    if isinstance(value, str):
        return parse_score_text(value, place)
    record = as_object(value)
    if record is None:
        raise place.error(f"expected an object, got {type(value).__name__}")
    if "score_rubric" in record:
        return _nested(record, place)
    if any(name in record for name in _ORIG[1:]):
        return _flat(record, place, "orig", _ORIG)
    if isinstance(record.get("instruction"), str) and not any(name in record for name in _FLAT[1:]):
        return _prompt(record, place)
    return _flat(record, place, "flat", _FLAT)


def _nested(record: Mapping[str, object], place: Place) -> Rubric:
    where = place.at("score_rubric")
    given = record["score_rubric"]
    rubric_id, metadata = record_id({k: v for k, v in record.items() if k != "score_rubric"}, "id")
    if isinstance(given, str):
        found = _TEXT.match(given)
        if found is None:
            raise where.error("expected [criteria] and the lines Score 1: to Score 5:")
        criterion = _text_criterion(found, where, {_LAYOUT: "column", _AFTER: found["after"]})
    else:
        inner = as_object(given)
        if inner is None:
            raise where.error(f"expected an object, got {type(given).__name__}")
        extra = {key: part for key, part in inner.items() if key not in _FLAT}
        criterion = _criterion(inner, where, _FLAT, extra | {_LAYOUT: "nested"})
    return build_rubric(place, [criterion], rubric_id=rubric_id, metadata=metadata)


def _flat(record: Mapping[str, object], place: Place, layout: str, names: tuple[str, ...]) -> Rubric:
    rest = {key: part for key, part in record.items() if key not in names}
    rubric_id, metadata = record_id(rest, "id")
    criterion = _criterion(record, place, names, {_LAYOUT: layout})
    return build_rubric(place, [criterion], rubric_id=rubric_id, metadata=metadata)


def _prompt(record: Mapping[str, object], place: Place) -> Rubric:
    where = place.at("instruction")
    text = text_at(record, "instruction", place)
    heading = _HEADING.search(text)
    found = _TEXT.match(text, heading.end()) if heading is not None else None
    if heading is None or found is None:
        raise where.error("no rubric in this text", hint="expected ###Score Rubrics:, [criteria], Score 1: ...")
    marks = {_LAYOUT: "prompt", _BEFORE: text[: heading.end()], _AFTER: found["after"]}
    rest = {key: part for key, part in record.items() if key != "instruction"}
    rubric_id, metadata = record_id(rest, "idx" if "idx" in rest and "id" not in rest else "id")
    return build_rubric(place, [_text_criterion(found, where, marks)], rubric_id=rubric_id, metadata=metadata)


def parse_score_text(text: str, place: Place) -> Rubric:
    """The rubric of a text in brackets followed by the five scores. Raises FormatError for any other text."""
    found = _TEXT.match(text)
    if found is None:
        raise place.error("expected [criteria] and the lines Score 1: to Score 5:")
    return build_rubric(place, [_text_criterion(found, place, {})])


def _text_criterion(found: re.Match[str], place: Place, marks: Mapping[str, object]) -> Criterion:
    item = {"criteria": found["criteria"]} | {f"score{level}_description": found[f"s{level}"] for level in _LEVELS}
    return _criterion(item, place, _FLAT, marks)


def _criterion(
    item: Mapping[str, object], place: Place, names: tuple[str, ...], metadata: Mapping[str, object]
) -> Criterion:
    levels: list[dict[str, object]] = []
    for level, name in zip(_LEVELS, names[1:], strict=True):
        text = item.get(name)
        if not isinstance(text, str):
            problem = "this field is missing" if name not in item else f"expected text, got {type(text).__name__}"
            raise place.at(name).error(problem, hint="all five scores need a description")
        levels.append({"label": str(level), "value": float(level), "description": text})
    fields = {
        "id": "c1",
        "text": text_at(item, names[0], place),
        "scale": {"type": "ordinal", "levels": levels},
        "metadata": dict(metadata),
    }
    return build_criterion(fields, place, {"text": names[0]})


# Writing


def _dump(rubric: Rubric, place: Place) -> dict[str, object]:
    criterion = rubric.criteria[0]
    if len(rubric) > 1:
        message = f"prometheus holds one criterion, this rubric has {len(rubric)}"
        raise place.error(message, hint="write one rubric for each criterion")
    if criterion.polarity is Polarity.PENALTY:
        raise place.error("prometheus has no penalties, and would reward the error", hint="word it positively")
    texts = (criterion.text, *_descriptions(criterion, place))
    marks = criterion.metadata
    layout = marks.get(_LAYOUT, "nested")
    metadata = {key: part for key, part in rubric.metadata.items() if key not in _taken(layout)}
    key = "idx" if layout == "prompt" and "id" not in metadata else "id"
    if layout == "orig":
        return with_id(rubric, key, metadata) | dict(zip(_ORIG, texts, strict=True))
    if layout == "flat":
        return with_id(rubric, key, metadata) | dict(zip(_FLAT, texts, strict=True))
    if layout == "nested":
        body = dict[str, object](zip(_FLAT, texts, strict=True))
        extra = unmarked(criterion.metadata, _MARK)
        body |= {name: part for name, part in extra.items() if name not in body}
        return with_id(rubric, key, metadata) | {"score_rubric": body}
    text = f"[{texts[0]}]" + "".join(f"\nScore {level}: {texts[level]}" for level in _LEVELS)
    text = f"{marks.get(_BEFORE, '')}{text}{marks.get(_AFTER, '')}"
    return with_id(rubric, key, metadata) | {"instruction" if layout == "prompt" else "score_rubric": text}


def _taken(layout: object) -> tuple[str, ...]:
    """The fields that a layout writes itself."""
    if layout in ("orig", "flat"):
        return _ORIG if layout == "orig" else _FLAT
    return ("instruction",) if layout == "prompt" else ("score_rubric",)


def _descriptions(criterion: Criterion, place: Place) -> list[str]:
    scale = criterion.scale
    if isinstance(scale, OrdinalScale) and [level.value for level in scale.levels] == list(_LEVELS):
        return [level.description for level in scale.levels]
    raise place.error(
        f"prometheus needs an ordinal scale with the values 1 to 5; {criterion.id!r} has a {scale.type} one",
        hint="give the criterion five levels",
    )


def _losses(rubric: Rubric) -> list[str]:
    criterion = rubric.criteria[0]
    layout = criterion.metadata.get(_LAYOUT, "nested")
    lost = criterion_losses(rubric, {"scale"}) + rubric_losses(rubric, ())
    if criterion.id != "c1":
        lost.append(f"id ({criterion.id})")
    if criterion.weight != 1.0:
        lost.append(f"weight ({criterion.weight:g})")
    if isinstance(criterion.scale, OrdinalScale):
        labels = [level.label for level in criterion.scale.levels]
        lost += [f"labels of the levels ({', '.join(labels)})"] if labels != [str(n) for n in _LEVELS] else []
    if layout != "nested":
        lost += [f"metadata.{name} ({criterion.id})" for name in unmarked(criterion.metadata, _MARK)]
    return lost + metadata_losses(rubric, _taken(layout), _FLAT)


FORMAT = Format(
    name="prometheus",
    shape='{"score_rubric": {"criteria", "score1_description", ..., "score5_description"}}, or these fields alone',
    is_record=_is_record,
    is_item=_is_item,
    parse=_parse,
    dump=_dump,
    losses=_losses,
    prompt="input",
    prompts=("orig_instruction",),
    is_text=is_score_text,
)
