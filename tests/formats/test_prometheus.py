"""Prometheus: one criterion on a scale of five described scores, in four layouts.

Fields as the public files of prometheus-eval have them (BiGGen-Bench, Feedback-Collection, judge prompts).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rubricate.errors import FormatError
from rubricate.rubrics import OrdinalScale
from rubricate.rubrics.formats import detect, dump_rubrics, load_rubrics, parse_rubric

SCORES = {f"score{level}_description": f"Level {level}." for level in range(1, 6)}
FLAT: dict[str, object] = {"criteria": "Is it vivid?", **SCORES}
TEXT = "[Is it vivid?]\n" + "\n".join(f"Score {level}: Level {level}." for level in range(1, 6))

LAYOUTS: list[dict[str, object]] = [
    {"id": "x_0", "input": "Tell.", "score_rubric": FLAT | {"author": "me"}},
    FLAT | {"reference_answer": "r"},
    {f"orig_{name}": part for name, part in FLAT.items()} | {"orig_instruction": "Tell.", "orig_score": "3"},
    {"instruction": f"Judge.\n\n###Score Rubrics:\n{TEXT}\n\n###Feedback: ", "idx": "7"},
    {"score_rubric": TEXT + "\n"},
]


@pytest.mark.parametrize("record", LAYOUTS)
def test_every_layout_is_read_and_written_back(record: dict[str, object]) -> None:
    assert detect(record) == "prometheus"
    rubric = parse_rubric(record)
    (criterion,) = rubric.criteria
    assert (criterion.text, criterion.weight) == ("Is it vivid?", 1.0)
    assert isinstance(criterion.scale, OrdinalScale)
    assert [(level.value, level.description) for level in criterion.scale.levels] == [
        (float(level), f"Level {level}.") for level in range(1, 6)
    ]
    assert dump_rubrics(rubric, "prometheus") == [record]


def test_the_text_of_a_rubric_column() -> None:
    assert parse_rubric(TEXT).criteria[0].scale == parse_rubric(FLAT).criteria[0].scale


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({name: part for name, part in FLAT.items() if "3" not in name}, "score3_description", "all five"),
        (FLAT | {"score2_description": 2}, "score2_description", "int"),
        (FLAT | {"criteria": " "}, "criteria", "blank"),
        (SCORES, "criteria", "missing"),
        ({"score_rubric": ["x"]}, "score_rubric", "list"),
        ({"score_rubric": "good or bad"}, "score_rubric", "Score 1:"),
        ({"instruction": "###Score Rubrics:\nfree text"}, "instruction", "no rubric in this text"),
    ],
)
def test_mistakes_are_named(value: object, field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["one", "two"], "this rubric has 2"),
        (["one"], "values 1 to 5"),
        ([{"text": "Is rude.", "polarity": "penalty"}], "no penalties"),
    ],
)
def test_what_it_cannot_say_is_refused(value: object, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        dump_rubrics(parse_rubric(value), "prometheus", lossy=True)


def test_an_object_of_rubrics_is_read_by_key(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"x": {"id": "x", "score_rubric": FLAT}, "y": {"score_rubric": FLAT}}))
    found = load_rubrics(path)
    assert [rubric.id for rubric in found.rubrics] == ["x", "y"]
    assert [note.kind for note in found.notes] == ["layout"]
    path.write_text(json.dumps({"x": {"id": "z", "score_rubric": FLAT}}))
    with pytest.raises(FormatError, match="differ"):
        load_rubrics(path)
    path.write_text(
        json.dumps({"x": {"score_rubric": FLAT}, "y": {"score_rubric": FLAT | {"criteria": 1}}}, indent=1)
    )
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.field, caught.value.line) == ("y.score_rubric.criteria", 14)


def test_all_of_biggen(shared: Callable[[str], Path]) -> None:
    path = shared("prometheus_biggen") / "biggen_instances.json"
    original = json.loads(path.read_text(encoding="utf-8"))
    found = load_rubrics(path)
    assert len(found.rubrics) == 765
    records = dump_rubrics(found.rubrics, "prometheus")
    assert {rubric.id: record for rubric, record in zip(found.rubrics, records, strict=True)} == original


@pytest.mark.parametrize("name", ["mt_bench_eval.json", "vicuna_eval.json"])
def test_rubrics_inside_judge_prompts(shared: Callable[[str], Path], name: str) -> None:
    path = shared("prometheus_biggen") / name
    found = load_rubrics(path)
    assert len(found.rubrics) == 320
    assert dump_rubrics(found.rubrics, found.format) == json.loads(path.read_text(encoding="utf-8"))
