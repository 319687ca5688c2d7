"""Properties: what is written can be read back, and no value whatever breaks a reader."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spots import put, spots

from rubricate.errors import FormatError
from rubricate.rubrics import Rubric
from rubricate.rubrics.formats import dump_rubrics, formats, load_rubrics, parse_rubric, save_rubrics
from rubricate.rubrics.formats.common import assign_ids

# A loaded machine is no fault of the code.
relaxed = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.text("ab Z.é漢", min_size=1, max_size=12).filter(lambda value: bool(value.strip()))
key = st.text("abcxyz_", min_size=1, max_size=8).map(lambda value: "x_" + value)
weight = st.integers(0, 100) | st.floats(0, 1e6)


def plain() -> st.SearchStrategy[object]:
    """JSON values."""
    leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


extra = st.dictionaries(key, plain(), max_size=2)
signed = st.integers(-10, 10) | st.floats(-10, 10).map(lambda value: value + 0.0)

scales: list[object] = [
    {"type": "binary"},
    {"type": "numeric", "low": 0.0, "high": 10.0, "integer": True},
    {"type": "ordinal", "levels": [{"label": "no", "value": 0.0}, {"label": "yes", "value": 2.0}]},
]
paths: list[object] = [[], ["g:1"], ["g:1", "g:2"]]
optional: dict[str, st.SearchStrategy[object]] = {
    "polarity": st.sampled_from(["reward", "penalty"]),
    "kind": st.sampled_from(["hard_rule", "principle"]),
    "importance": st.sampled_from(["essential", "pitfall"]),
    "scale": st.sampled_from(scales),
    "veto": st.booleans(),
    "verifier": st.fixed_dictionaries({"name": words, "args": extra}),
    "condition": text,
    "channel": text,
    "tags": st.lists(text, max_size=2),
    "path": st.sampled_from(paths),
    "provenance": st.fixed_dictionaries({"model": text, "step": st.none() | st.integers(0, 9)}),
    "metadata": extra,
}
required: dict[str, st.SearchStrategy[object]] = {"text": words, "weight": weight}


@st.composite
def native_rubrics(draw: st.DrawFn) -> Rubric:
    names = draw(st.lists(words, min_size=1, max_size=5, unique=True))
    criteria = [draw(st.fixed_dictionaries(required, optional=optional)) | {"id": name} for name in names]
    record: dict[str, object] = {
        "criteria": criteria,
        "groups": [{"id": "g:1", "text": "one", "weight": 2}, {"id": "g:2", "path": ["g:1"], "metadata": {"a": 1}}],
        "id": draw(text),
        "scope": draw(st.sampled_from(["instance", "task", "dataset"])),
        "version": draw(text),
        "metadata": draw(extra),
    }
    return parse_rubric(record)


@relaxed
@given(native_rubrics())
def test_native_rubrics(rubric: Rubric) -> None:
    (record,) = dump_rubrics(rubric)
    again = parse_rubric(json.loads(json.dumps(record)), format="native")
    assert again == rubric
    assert again.fingerprint == rubric.fingerprint
    assert dump_rubrics(again) == [record]


@settings(
    relaxed, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    found=st.lists(native_rubrics(), min_size=1, max_size=3),
    name=st.sampled_from(["native", "flat"]),
    kind=st.sampled_from(["jsonl", "json", "yaml", "toml", "csv", "tsv", "parquet"]),
)
def test_native_rubrics_in_files(tmp_path: Path, found: list[Rubric], name: str, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    try:
        save_rubrics(found, path, name)
    except FormatError as error:
        assert kind == "toml" and "TOML has no null" in str(error)
        return
    assert list(load_rubrics(path, format=name).rubrics) == found
    assert list(load_rubrics(path).rubrics) == found


PREFIXES = ["", "Essential Criteria: ", "pitfall criterion:  ", "Optional Criteria: "]
TITLES = ["A b", "a-b", "漢", "!", "c2"]


@st.composite
def rar_records(draw: st.DrawFn) -> dict[str, object]:
    items: list[dict[str, object]] = []
    ids = draw(st.lists(words, max_size=4, unique=True))
    for index in range(draw(st.integers(1, 4))):
        item: dict[str, object] = draw(extra)
        if draw(st.booleans()):
            item["title"] = draw(st.sampled_from(TITLES))
        if index < len(ids) and draw(st.booleans()):
            item["id"] = ids[index]
        item["description"] = draw(st.sampled_from(PREFIXES)) + draw(words).strip()
        items.append(item | {"weight": draw(signed)})
    head: dict[str, object] = {"question": draw(text)}
    if draw(st.booleans()):
        head["id"] = draw(text | st.integers())
    return head | draw(extra) | {"rubric": items}


@st.composite
def healthbench_records(draw: st.DrawFn) -> dict[str, object]:
    items: list[dict[str, object]] = []
    for _ in range(draw(st.integers(1, 4))):
        tags = draw(st.lists(st.sampled_from(["axis:a", "axis:b", "level:x"]), max_size=3))
        items.append(draw(extra) | {"criterion": draw(words), "points": draw(signed), "tags": tags})
    return draw(extra) | {"rubrics": items}


@st.composite
def trees(draw: st.DrawFn, depth: int = 0) -> dict[str, object]:
    children = draw(st.lists(trees(depth + 1), max_size=3)) if depth < 3 else []
    node: dict[str, object] = {"id": draw(st.sampled_from(["a", "b", "a~2", "c"])), "weight": draw(weight)}
    node |= {"requirements": draw(words), "sub_tasks": children, "task_category": draw(st.none() | words)}
    return node | draw(extra)


@st.composite
def prometheus_records(draw: st.DrawFn) -> dict[str, object]:
    scores = {f"score{level}_description": draw(text) for level in range(1, 6)}
    body: dict[str, object] = {"criteria": draw(words), **scores}
    if draw(st.booleans()):
        return draw(extra) | body
    return draw(extra) | {"score_rubric": draw(extra) | body}


def check(record: dict[str, object], name: str) -> None:
    rubric = parse_rubric(record)
    (written,) = dump_rubrics(rubric, name)
    assert written == record
    assert parse_rubric(written) == rubric
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric


@relaxed
@given(rar_records())
def test_rar_records(record: dict[str, object]) -> None:
    check(record, "rar")


@relaxed
@given(healthbench_records())
def test_healthbench_records(record: dict[str, object]) -> None:
    check(record, "healthbench")


@relaxed
@given(trees())
def test_paperbench_records(record: dict[str, object]) -> None:
    check(record, "paperbench")


@relaxed
@given(prometheus_records())
def test_prometheus_records(record: dict[str, object]) -> None:
    check(record, "prometheus")


@relaxed
@given(
    st.lists(st.tuples(st.none() | st.sampled_from(["a", "c1", "a-2"]), st.none() | st.sampled_from(["A", "a 2"])))
)
def test_made_ids_are_unique_and_always_the_same(entries: list[tuple[str | None, str | None]]) -> None:
    explicit, titles = [own for own, _ in entries], [title for _, title in entries]
    ids = assign_ids(explicit, titles)
    made = [name for name, own in zip(ids, explicit, strict=True) if own is None]
    assert len(set(made)) == len(made)
    assert not set(made) & {own for own in explicit if own is not None}
    assert ids == assign_ids(explicit, titles)


names = st.sampled_from(
    ["criteria", "rubric", "rubrics", "text", "description", "title", "weight", "points", "tags", "criterion", "id"]
    + [
        "requirements",
        "sub_tasks",
        "task_category",
        "score_rubric",
        "score1_description",
        "instruction",
        "metadata",
    ]
    + ["scale", "type", "levels", "groups", "path", "verifier", "name", "args", "polarity", "scope", "version"]
)
scalars = st.sampled_from(
    [None, True, 0, -1, 3, 10**400, 0.5, float("nan"), float("inf"), "", "t", "binary", "\ud800"]
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | text, inner, max_size=5),
    max_leaves=25,
)


@relaxed
@given(anything, st.sampled_from(["auto", *formats()]))
def test_no_value_breaks_a_reader(value: object, name: str) -> None:
    try:
        found = parse_rubric(value, format=name)
    except FormatError:
        return
    assert isinstance(found, Rubric)
    assert found.fingerprint
    (record,) = dump_rubrics(found)
    assert parse_rubric(record, format="native") == found


@relaxed
@given(
    st.one_of(rar_records(), healthbench_records(), trees(), prometheus_records(), native_rubrics()),
    anything,
    st.randoms(use_true_random=False),
)
def test_no_change_to_a_record_breaks_a_reader(record: object, value: object, random: Random) -> None:
    if isinstance(record, Rubric):
        (record,) = dump_rubrics(record)
    changed = json.loads(json.dumps(record))
    put(*random.choice(spots(changed)), value)
    try:
        rubric = parse_rubric(changed)
    except FormatError:
        return
    assert parse_rubric(dump_rubrics(rubric)[0], format="native") == rubric


@relaxed
@given(st.text(max_size=40) | anything.map(lambda value: json.dumps(value)))
def test_no_text_breaks_a_reader(value: str) -> None:
    try:
        parse_rubric(value)
    except FormatError:
        pass


@pytest.mark.parametrize("name", formats())
def test_values_that_json_lacks_are_refused(name: str) -> None:
    loop: list[object] = []
    loop.append(loop)
    for value in (loop, {"rubric": loop}, [b"x"], {"criteria": [{"text": "t", "metadata": {"p": Path(".")}}]}):
        with pytest.raises(FormatError):
            parse_rubric(value, format=name)
