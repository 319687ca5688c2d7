"""Rubrics and parts of records made by hypothesis, and the two round trips that every format owes."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from rubricate.errors import FormatError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import dump_rubrics, get_format, parse_rubric
from rubricate.rubrics.formats.base import Place, candidates

__all__ = [
    "changes",
    "extra",
    "record_returns",
    "relaxed",
    "rubric_returns",
    "rubrics",
    "survives",
    "texts",
    "words",
]

relaxed = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.text("ab Z.é漢?\"'\\", min_size=1, max_size=12).filter(lambda value: bool(value.strip()))
_keys = st.text("abcxyz_", min_size=1, max_size=8).map(lambda value: "x_" + value)
_leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1e6, 1e6) | texts
_values = st.recursive(_leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=4)

extra: st.SearchStrategy[dict[str, object]] = st.dictionaries(_keys, _values, max_size=2)
"""Columns that no format knows."""

_PLAIN: dict[str, st.SearchStrategy[object]] = {"text": words}
_LEVELS: list[object] = [{"label": label, "value": float(rank)} for rank, label in enumerate(["low", "mid", "top"])]
_OPTIONAL: dict[str, st.SearchStrategy[object]] = {
    "weight": st.integers(0, 9) | st.floats(0, 9),
    "polarity": st.sampled_from(["reward", "penalty"]),
    "channel": texts,
    "scale": st.sampled_from([{"type": "ordinal", "levels": _LEVELS}, {"type": "numeric", "high": 10.0}]),
    "metadata": extra,
    "veto": st.booleans(),
}


@st.composite
def rubrics(draw: st.DrawFn, *, most: int = 4) -> Rubric:
    """Rubrics of which many are plain, so that most formats hold some of them without loss."""
    count = draw(st.integers(1, most))
    made = [f"c{index + 1}" for index in range(count)]
    ids = draw(st.just(made) | st.lists(words, min_size=count, max_size=count, unique=True))
    chosen = draw(st.lists(st.sampled_from(sorted(_OPTIONAL)), max_size=2, unique=True))
    shape = st.fixed_dictionaries(_PLAIN | {name: _OPTIONAL[name] for name in chosen})
    criteria = tuple(Criterion.model_validate(draw(shape) | {"id": name}) for name in ids)
    metadata = draw(st.just(dict[str, object]()) | extra)
    return Rubric(criteria=criteria, id=draw(st.just("") | words), metadata=metadata)


_ODD = st.sampled_from([None, True, 0, -1, 10**400, 0.5, float("nan"), "", "t", "[", "{}", "[1]", "\ud800", b"b"])
_odd_values = st.recursive(
    _ODD, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2), max_leaves=5
)


@st.composite
def changes(draw: st.DrawFn, record: dict[str, object]) -> object:
    """The record with something odd in one spot, whether that breaks it or not."""

    def put(value: object, odd: object) -> object:
        fields, listed = as_object(value), as_array(value)
        if fields and draw(st.integers(0, 4)):
            name = draw(st.sampled_from(sorted(fields)))
            return {**fields, name: put(fields[name], odd)}
        if listed and draw(st.integers(0, 4)):
            index = draw(st.integers(0, len(listed) - 1))
            return [*listed[:index], put(listed[index], odd), *listed[index + 1 :]]
        return odd

    return put(record, draw(_odd_values))


def survives(value: object, name: str) -> None:
    """Check that a value is read, written the same and held by the native format, or refused with our error."""
    try:
        rubric = parse_rubric(value, format=name)
    except FormatError:
        return
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric
    assert as_object(value) is None or _exact(dump_rubrics(rubric, name)[0]) == _exact(value)


def _exact(value: object) -> str:
    """JSON text that tells values apart, the order of keys included, but not 2 and 2.0."""

    def plain(part: object) -> object:
        fields, listed = as_object(part), as_array(part)
        if fields is not None:
            return {name: plain(item) for name, item in fields.items()}
        if listed is not None:
            return [plain(item) for item in listed]
        return int(part) if isinstance(part, float) and part.is_integer() else part

    return json.dumps(plain(value))


def record_returns(record: dict[str, object], name: str) -> Rubric:
    """Read a record, by detection too, and check that it is written the same, the order of its fields included."""
    assert candidates(record) == [name]
    rubric = parse_rubric(record)
    (written,) = dump_rubrics(rubric, name)
    assert _exact(written) == _exact(record)
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric
    return rubric


def rubric_returns(rubric: Rubric, name: str) -> bool:
    """Write a rubric and check that it is read as it was, unless the format says what it cannot hold.

    Whether it was held without loss.
    """
    chosen = get_format(name)
    try:
        record = chosen.dump(rubric, Place())
    except FormatError:
        return False
    again = parse_rubric(json.loads(json.dumps(record)), format=name)
    if chosen.losses(rubric):
        assert len(again) == len(rubric)
        return False
    assert candidates(record) == [name]
    assert again == rubric
    return True
