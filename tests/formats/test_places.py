"""Where criteria stand: every format says it, in every kind of file, and a file is read again once at most."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubricate.data.io import write_jsonl, write_toml, write_yaml
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import dump_rubrics, load_rubrics


def write(path: Path, record: dict[str, object]) -> None:
    """A document of one record, over as many lines as its kind takes."""
    if path.suffix == ".json":
        path.write_text(json.dumps(record, indent=1))
    elif path.suffix == ".yaml":
        write_yaml(path, record)
    else:
        write_toml(path, record)


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.toml"])
def test_lines_of_many_criteria_are_found_with_one_reading(tmp_path: Path, name: str) -> None:
    many = Rubric(criteria=tuple(Criterion(id=f"x{n}", text="Is polite.", weight=n) for n in range(2000)))
    path = tmp_path / name
    write(path, dump_rubrics(many)[0])
    (places,) = load_rubrics(path).places
    assert list(places) == list(many.ids)
    first = places["x0"].exact_line()
    path.unlink()  # nothing is left to read a second time
    lines = [places[name].exact_line() for name in many.ids]
    assert lines[0] == first
    assert lines == sorted({line for line in lines if line is not None})
    assert len(lines) == 2000


def test_lines_of_parts_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        'id = "r"\n\n[[criteria]]\ntext = "A"\nweight = 2\n[[criteria]]\nid = "b"\ntext = """\nB\n"""\n'
    )
    (places,) = load_rubrics(path).places
    assert {name: place.exact_line() for name, place in places.items()} == {"c1": 3, "b": 6}
    assert (places["c1"].at("weight").exact_line(), places["b"].at("text").exact_line()) == (5, 8)


RECORDS: dict[str, object] = {
    "native": {"criteria": [{"text": "A."}, {"text": "B."}]},
    "rar": {"question": "q", "rubric": [{"title": name, "description": "A.", "weight": 1} for name in ("a", "b")]},
    "healthbench": {"prompt": [], "rubrics": [{"criterion": "A.", "points": 1}, {"criterion": "B.", "points": 2}]},
    "prometheus": {"score_rubric": {"criteria": "A."} | {f"score{n}_description": str(n) for n in range(1, 6)}},
    "paperbench": {
        "id": "root",
        "requirements": "R.",
        "weight": 1,
        "sub_tasks": [{"id": "c1", "requirements": "A.", "weight": 1, "sub_tasks": []}],
    },
}
PATHS: dict[str, list[tuple[str | int, ...]]] = {
    "native": [("criteria", 0), ("criteria", 1)],
    "rar": [("rubric", 0), ("rubric", 1)],
    "healthbench": [("rubrics", 0), ("rubrics", 1)],
    "prometheus": [("score_rubric",)],
    "paperbench": [("sub_tasks", 0)],
}


@pytest.mark.parametrize("name", RECORDS)
def test_every_format_says_where_its_criteria_stand(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n" + json.dumps(RECORDS[name]) + "\n")
    found = load_rubrics(path)
    (places,) = found.places
    assert found.format == name
    assert list(places) == list(found.rubrics[0].ids)
    assert [place.line for place in places.values()] == [2] * len(places)
    assert [place.path for place in places.values()] == PATHS[name]


def test_criteria_that_are_rows_have_their_own_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "A."}\n\n{"id": "b", "text": "B."}\n')
    (places,) = load_rubrics(path).places
    assert {name: place.exact_line() for name, place in places.items()} == {"c1": 1, "b": 3}
    (tmp_path / "a.json").write_text('["A.",\n"B.",\n{"text":\n"C."}]')
    (places,) = load_rubrics(tmp_path / "a.json").places
    assert [place.exact_line() for place in places.values()] == [1, 2, 3]
    assert places["c3"].at("text").exact_line() == 4


def test_criteria_in_a_column_have_the_line_of_their_row_and_a_path(tmp_path: Path) -> None:
    rubric = [{"text": "A."}, {"text": "B."}]
    write_jsonl(tmp_path / "a.jsonl", [{"prompt": "p", "rubric": json.dumps(rubric)}] * 2)
    found = load_rubrics(tmp_path / "a.jsonl")
    assert [[place.exact_line() for place in places.values()] for places in found.places] == [[1, 1], [2, 2]]
    assert [place.field for place in found.places[1].values()] == ["rubric[0]", "rubric[1]"]


def test_keyed_rubrics_have_exact_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": {"criteria":\n["A."]},\n"y": {"criteria": [\n"B."]}}')
    found = load_rubrics(tmp_path / "a.json")
    assert [place.exact_line() for places in found.places for place in places.values()] == [2, 4]
