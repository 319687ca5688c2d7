"""PaperBench trees: nothing is lost, repeated ids are told apart and reported, grades are read.

Fields as the rubric files of openai/frontier-evals have them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rubricate.errors import FormatError
from rubricate.rubrics import Criterion, Group, Polarity, Rubric
from rubricate.rubrics.formats import (
    Note,
    dump_rubrics,
    graded_scores,
    graded_verdicts,
    load_rubrics,
    parse_rubric,
)
from rubricate.types import Status


def node(name: str, *children: object, weight: object = 1, **more: object) -> dict[str, object]:
    category = None if children else "Code Development"
    fields = {"id": name, "requirements": f"{name} is done.", "weight": weight, "sub_tasks": list(children)}
    return fields | {"task_category": category} | more


TREE = node("root", node("a", weight=2), node("b", node("b1"), node("a"), weight=3), node("c", weight=0))


def test_leaves_become_criteria_and_inner_nodes_groups() -> None:
    notes: list[Note] = []
    rubric = parse_rubric(TREE, notes=notes)
    assert rubric.ids == ("a", "b1", "a~2", "c")
    assert [(g.id, g.path, g.weight) for g in rubric.groups] == [("root", (), 1.0), ("b", ("root",), 3.0)]
    assert rubric["a~2"].path == ("root", "b")
    assert {c.channel for c in rubric.criteria} == {"Code Development"}
    assert all(c.polarity is Polarity.REWARD for c in rubric.criteria)
    assert [(note.kind, note.criterion_id, note.field) for note in notes] == [
        ("duplicate_id", "a~2", "sub_tasks[1].sub_tasks[1].id")
    ]
    assert dump_rubrics(rubric, "paperbench") == [TREE]


def test_a_made_id_takes_no_real_one() -> None:
    rubric = parse_rubric(node("root", node("a"), node("a"), node("a~2"), node("a")))
    assert rubric.ids == ("a", "a~3", "a~2", "a~4")


def test_grades_become_verdicts() -> None:
    graded = node(
        "root",
        node("a", score=1.0, valid_score=True, explanation="done"),
        node("b", score=0.0, valid_score=False, explanation="no answer"),
        score=0.5,
        valid_score=True,
    )
    verdicts = graded_verdicts(graded)
    assert (verdicts["a"].score, verdicts["a"].reason) == (1.0, "done")
    assert (verdicts["b"].score, verdicts["b"].status) == (None, Status.FAILED)
    assert graded_scores(graded) == {"root": 0.5}
    assert dump_rubrics(parse_rubric(graded), "paperbench") == [graded]
    with pytest.raises(FormatError, match="no grade"):
        graded_verdicts(TREE)
    with pytest.raises(FormatError, match="from 0 to 1"):
        graded_verdicts(node("a", score=2))


@pytest.mark.parametrize(
    ("tree", "field", "words"),
    [
        (node("r", node("a", weight=-1)), "sub_tasks[0].weight", "'a' has -1"),
        (node("r", node("a", weight=float("nan"))), "sub_tasks[0].weight", "'a' has NaN"),
        (node("r", node("a", requirements=None)), "sub_tasks[0].requirements", "NoneType"),
        (node("r", node("a", task_category=3)), "sub_tasks[0].task_category", "int"),
        (node("r", 3), "sub_tasks[0]", "int"),
        (node("r", sub_tasks="x"), "sub_tasks", "list of nodes"),
        (node(""), "id", "blank"),
        ({"sub_tasks": []}, "id", "missing"),
        (node("r", node("a", **{"paperbench:id": 1})), "sub_tasks[0].paperbench:id", "reserved"),
    ],
)
def test_mistakes_are_named(tree: object, field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric(tree)
    assert caught.value.field == field
    assert words in str(caught.value)


def test_a_tree_that_is_too_deep_is_refused() -> None:
    tree = node("leaf")
    for depth in range(60):
        tree = node(f"n{depth}", tree)
    with pytest.raises(FormatError, match="deep"):
        parse_rubric(tree)


def test_other_rubrics_get_a_root() -> None:
    rubric = parse_rubric({"id": "r", "criteria": [{"text": "A."}, {"text": "B.", "channel": "style"}]})
    notes: list[Note] = []
    with pytest.raises(FormatError, match="2 nodes at the top"):
        dump_rubrics(rubric, "paperbench")
    (record,) = dump_rubrics(rubric, "paperbench", lossy=True, notes=notes)
    again = parse_rubric(record)
    assert (again.ids, [group.id for group in again.groups]) == (("c1", "c2"), ["r"])
    assert [note.kind for note in notes] == ["layout", "lossy"]


def test_what_a_tree_cannot_say_is_refused() -> None:
    penalty = Criterion(id="p", text="Is rude.", polarity=Polarity.PENALTY)
    with pytest.raises(FormatError, match="would reward the errors: p"):
        dump_rubrics(Rubric(criteria=(penalty,)), "paperbench", lossy=True)
    empty = Rubric(criteria=(Criterion(id="c", text="t"),), groups=(Group(id="g"),))
    with pytest.raises(FormatError, match="'g' is empty"):
        dump_rubrics(empty, "paperbench", lossy=True)


def test_all_public_trees(shared: Callable[[str], Path]) -> None:
    files = sorted(shared("paperbench").glob("*.json"))
    repeated: dict[str, int] = {}
    for path in files:
        original = json.loads(path.read_text(encoding="utf-8"))
        found = load_rubrics(path)
        assert found.format == "paperbench"
        assert dump_rubrics(found.rubrics, "paperbench") == [original], path.name
        if found.notes:
            assert {note.kind for note in found.notes} == {"duplicate_id"}
            repeated[path.name] = len(found.notes)
        if path.name.startswith("graded"):
            assert tuple(graded_verdicts(original)) == found.rubrics[0].ids
            assert list(graded_scores(original)) == [group.id for group in found.rubrics[0].groups]
    assert sum(path.name.startswith("rubric") for path in files) == 19
    assert repeated == {"rubric_bbox.json": 3, "rubric_bridging-data-gaps.json": 3}


def test_notes_and_errors_give_the_line_of_the_node(shared: Callable[[str], Path], tmp_path: Path) -> None:
    path = shared("paperbench") / "rubric_bbox.json"
    lines = path.read_text(encoding="utf-8").split("\n")
    for note in load_rubrics(path).notes:
        assert note.line is not None
        assert note.criterion_id.removesuffix("~2") in lines[note.line - 1]
    number = max(index for index, line in enumerate(lines) if '"weight"' in line)
    lines[number] = '"weight": "heavy",'
    (tmp_path / "broken.json").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(FormatError, match="heavy") as caught:
        load_rubrics(tmp_path / "broken.json")
    assert caught.value.line == number + 1
