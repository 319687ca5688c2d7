"""The native format: strict, and every mistake named by line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics import Criterion, Level, OrdinalScale, Polarity, Rubric, VerifierSpec
from rubricate.rubrics.formats import Note, dump_rubrics, load_rubric, load_rubrics, parse_rubric, save_rubrics

YAML = """\
id: travel
scope: task
criteria:
  - text: Names three sights.
    weight: 3
    verifier: {name: items, args: {low: 3}}
  - id: rude
    text: Is rude.
    polarity: penalty
    veto: true
  - text: How vivid is it?
    scale:
      type: ordinal
      levels:
        - {label: dull, value: 1}
        - {label: vivid, value: 3}
"""


def test_yaml_becomes_a_rubric(tmp_path: Path) -> None:
    (tmp_path / "travel.yaml").write_text(YAML)
    rubric = load_rubric(tmp_path / "travel.yaml")
    assert rubric.ids == ("c1", "rude", "c3")
    assert rubric["c1"].verifier == VerifierSpec(name="items", args={"low": 3})
    assert (rubric["rude"].polarity, rubric["rude"].veto, rubric["rude"].weight) == (Polarity.PENALTY, True, 1.0)
    levels = (Level(label="dull", value=1), Level(label="vivid", value=3))
    assert rubric["c3"].scale == OrdinalScale(levels=levels)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.yaml", "a.parquet"])
def test_files_give_back_what_was_saved(tmp_path: Path, name: str) -> None:
    (tmp_path / "travel.yaml").write_text(YAML)
    rubric = load_rubric(tmp_path / "travel.yaml")
    other = Rubric(criteria=(Criterion(id="x", text="Ist höflich. 丁寧"),), metadata={"n": [1, None, {"a": {}}]})
    assert save_rubrics([rubric, other], tmp_path / name) == ()
    found = load_rubrics(tmp_path / name)
    assert (found.rubrics, found.format, found.notes) == ((rubric, other), "native", ())
    assert [row.source for row in found.rows] == [str(tmp_path / name)] * 2


def test_defaults_are_not_written() -> None:
    record = {"criteria": [{"id": "c1", "text": "Is polite."}]}
    assert dump_rubrics(parse_rubric(["Is polite."])) == [record]
    assert dump_rubrics(parse_rubric(record)) == [record]


def test_json_text_and_rubrics_are_taken_as_they_are() -> None:
    rubric = parse_rubric([{"text": "Is polite.", "weight": 2}])
    assert parse_rubric('[{"text": "Is polite.", "weight": 2}]') == rubric
    assert parse_rubric(rubric) is rubric


def test_nulls_of_tables_mean_not_set() -> None:
    item = {"id": "c", "text": "t", "polarity": None, "weight": None, "scale": {"type": "binary", "low": None}}
    assert parse_rubric({"criteria": [item], "id": None}) == parse_rubric({"criteria": [{"id": "c", "text": "t"}]})


def test_other_columns_are_kept_with_a_note() -> None:
    notes: list[Note] = []
    rubric = parse_rubric({"prompt": "p", "criteria": ["t"], "metadata": {"a": 1}}, notes=notes)
    assert rubric.metadata == {"a": 1, "prompt": "p"}
    assert [(note.kind, note.message) for note in notes] == [
        ("unknown_field", "kept in the rubric's metadata: prompt")
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("weight: 3", "weight: -3", 5, "criteria[0].weight", '"polarity": "penalty"'),
        ("weight: 3", "weight: .inf", 5, "criteria[0].weight", "'c1' has Infinity"),
        ("weight: 3", "weight: yes", 5, "criteria[0].weight", "'c1' has true"),
        ("weight: 3", "weight: '3'", 5, "criteria[0].weight", "without quotes"),
        ("weight: 3", "weight: [3]", 5, "criteria[0].weight", "a list"),
        ("weight: 3", "weight: 99999999999999999999", 5, "criteria[0].weight", "too large"),
        ("weight: 3", "wieght: 3", 5, "criteria[0].wieght", "did you mean 'weight'"),
        ("weight: 3", "colour: red", 5, "criteria[0].colour", "goes into metadata"),
        ("scope: task", "scop: task", 2, "scop", "did you mean 'scope'"),
        ("scope: task", "scope: world", 2, "scope", "'instance'"),
        ("polarity: penalty", "polarity: minus", 9, "criteria[1].polarity", "'penalty'"),
        ("veto: true", "veto: 1", 10, "criteria[1].veto", "boolean"),
        ("text: Is rude.", "text: ' '", 8, "criteria[1].text", "blank"),
        ("text: Is rude.", "text: no", 8, "criteria[1].text", "string"),
        ("    text: Is rude.\n", "", 7, "criteria[1].text", "missing"),
        ("id: rude", "id: ''", 7, "criteria[1].id", "not blank"),
        ("label: vivid", "label: dull", 13, "criteria[2].scale", "differ"),
        ("value: 3}", "value: true}", 16, "criteria[2].scale.levels[1].value", "number"),
        ("type: ordinal", "type: likert", 13, "criteria[2].scale", "'ordinal'"),
        ("name: items", "named: items", 6, "criteria[0].verifier.name", "required"),
        ("{low: 3}", "{low: .nan}", 6, "criteria[0].verifier.args.low", "NaN"),
    ],
)
def test_mistakes_are_named_by_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, field: str, words: str
) -> None:
    assert YAML.count(old) == 1
    path = tmp_path / "a.yaml"
    path.write_text(YAML.replace(old, new))
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), line, field)
    assert words in str(caught.value)


def test_made_ids_make_room_for_those_given() -> None:
    assert parse_rubric(["one", {"id": "c1", "text": "two"}, "three"]).ids == ("c1-2", "c1", "c3")


def test_all_bad_weights_are_listed() -> None:
    items: list[object] = [
        {"id": "a", "text": "t", "weight": "1"},
        {"id": "b", "text": "t"},
        {"text": "t", "weight": None},
        {"id": "d", "text": "t", "weight": False},
    ]
    with pytest.raises(FormatError) as caught:
        parse_rubric(items)
    assert "'a' has the text '1', 'd' has false" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({"criteria": []}, "criteria", "at least one"),
        ({"criteria": ["a", 3]}, "criteria[1]", "int"),
        ({"criteria": ["a"], "metadata": 3}, "metadata", "object"),
        ({"criteria": ["a"], "metadata": {"p": 1}, "p": 2}, "p", "metadata too"),
        ({"criteria": ["a"], "groups": [3]}, "groups[0]", "expected a group"),
        ({"criteria": ["a"], "groups": [{"id": "g", "weight": -1}]}, "groups[0].weight", "negative"),
        ({"criteria": ["a"], "groups": [{"id": "g", "wait": 1}]}, "groups[0].wait", "no such field"),
        ({"criteria": ["a"], "groups": "g"}, "groups", "array"),
        ({"criteria": [{"id": "a", "text": "t"}, {"id": "a", "text": "u"}]}, "criteria", "more than once: a"),
        ({"criteria": [{"text": "t", "path": ["g"]}]}, "", "not declared"),
        ([{"text": "t", "scale": {"type": "numeric", "low": 2, "high": 1}}], "[0].scale", "smaller"),
    ],
)
def test_mistakes_in_values(value: object, field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words in str(caught.value)


def test_the_column_a_rubric_comes_from_is_part_of_the_field() -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric(json.dumps([{"text": "t", "weight": -1}]), source="rows.jsonl", line=7, field="rubric")
    assert str(caught.value).startswith("rows.jsonl:7, field 'rubric[0].weight': ")


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="no option 'weights'"):
        parse_rubric(["t"], weights="paper")
