"""Rubrics as Rewards: polarity from the sign, categories from the prefix.

Fields as the cards of ScaleAI/RaR-Medicine and RaR-Science list them; prefixes as in the paper's generation prompt
(2507.17746).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics import Criterion, Importance, Polarity, Rubric
from rubricate.rubrics.formats import Note, dump_rubrics, parse_rubric

ITEMS: list[object] = [
    {"title": "Names Drug", "description": "Essential Criteria: Names aspirin as the drug of choice.", "weight": 5},
    {"title": "Gives Dose", "description": "Important Criteria: States a dose of 100 mg.", "weight": 3},
    {"title": "Names Drug", "description": "Optional criteria: names a second drug.", "weight": 1},
    {"title": "Omits Bleeding", "description": "Pitfall Criteria: Does not mention bleeding.", "weight": -2},
    {"title": "Avoids Jargon", "description": "Pitfall Criteria: Avoids jargon.", "weight": 1},
    {"description": "No category and no title.", "weight": 0.5},
]
RECORD: dict[str, object] = {
    "question": "Which drug?",
    "reference_answer": "Aspirin.",
    "question_source": "made up",
    "rubric": ITEMS,
    "rubric_list": ["Essential Criteria: ..."],
    "rubric_count": 6,
}


def items(*entries: Mapping[str, object]) -> Sequence[object]:
    return [{"title": "t", "description": "d", "weight": 1} | dict(entry) for entry in entries]


def test_a_row_becomes_a_rubric_and_a_row_again() -> None:
    rubric = parse_rubric(RECORD)
    assert rubric.ids == ("names-drug", "gives-dose", "names-drug-2", "omits-bleeding", "avoids-jargon", "c6")
    assert [c.importance for c in rubric.criteria] == [
        Importance.ESSENTIAL,
        Importance.IMPORTANT,
        Importance.OPTIONAL,
        Importance.PITFALL,
        Importance.PITFALL,
        None,
    ]
    assert rubric["names-drug"].text == "Names aspirin as the drug of choice."
    assert rubric.metadata["reference_answer"] == "Aspirin."
    assert dump_rubrics(rubric, "rar") == [RECORD]


def test_the_sign_decides_polarity_not_the_category() -> None:
    rubric = parse_rubric(RECORD)
    error, avoided = rubric["omits-bleeding"], rubric["avoids-jargon"]
    assert (error.polarity, error.weight) == (Polarity.PENALTY, 2.0)
    assert (avoided.polarity, avoided.weight) == (Polarity.REWARD, 1.0)


def test_texts_that_contradict_their_sign_are_noted() -> None:
    notes: list[Note] = []
    parse_rubric(RECORD, notes=notes)
    assert notes == []
    given = items(
        {"description": "Pitfall Criteria: Avoids recommending surgery.", "weight": -1},
        {"description": "Pitfall Criteria: Does not mention surgery.", "weight": 1},
        {"description": "Does not mention surgery.", "weight": -1},
    )
    parse_rubric(given, notes=notes)
    assert [(note.kind, note.criterion_id, note.field) for note in notes] == [
        ("polarity", "t", "[0].description"),
        ("polarity", "t-2", "[1].description"),
    ]


@pytest.mark.parametrize(("name", "pitfall"), [("paper", 0.9), ("v1", 0.8)])
def test_weights_by_category(name: str, pitfall: float) -> None:
    record = RECORD | {"rubric": ITEMS[:5]}
    notes: list[Note] = []
    rubric = parse_rubric(record, weights=name, notes=notes)
    assert [c.weight for c in rubric.criteria] == [1.0, 0.7, 0.3, pitfall, pitfall]
    assert rubric["omits-bleeding"].polarity is Polarity.PENALTY
    assert [note.kind for note in notes] == ["weights"]
    with pytest.raises(FormatError, match="no category in the description of 'c6'"):
        parse_rubric(RECORD, weights=name)
    with pytest.raises(ConfigError, match="numeric, paper, v1"):
        parse_rubric(RECORD, weights="papers")


def test_importance_is_written_as_prefix() -> None:
    criterion = Criterion(id="sources", text="Cites sources.", importance=Importance.IMPORTANT)
    assert dump_rubrics(Rubric(criteria=(criterion,)), "rar") == [
        {"rubric": [{"title": "sources", "description": "Important Criteria: Cites sources.", "weight": 1}]}
    ]
    (first, *_) = parse_rubric(RECORD).criteria
    changed = first.model_copy(update={"importance": Importance.OPTIONAL})
    ((record,),) = [dump_rubrics(Rubric(criteria=(changed,)), "rar")]
    assert parse_rubric(record).criteria[0].importance is Importance.OPTIONAL


def test_ids_survive_when_they_are_not_made_of_titles() -> None:
    rubric = parse_rubric(items({"id": "x"}, {}, {"id": 7}, {"title": "T"}))
    assert rubric.ids == ("x", "t", "7", "t-2")
    shuffled = Rubric(criteria=rubric.criteria[::-1])
    assert parse_rubric(dump_rubrics(shuffled, "rar")[0]).ids == ("t-2", "7", "t", "x")


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        (items({}, {"weight": True}), "[1].weight", "'t' has true"),
        (items({}, {"id": "a", "weight": "5"}), "[1].weight", "'a' has the text '5'"),
        (
            items({"weight": float("nan")}, {"title": "u", "weight": float("-inf")}),
            "[0].weight",
            "'u' has -Infinity",
        ),
        ([{"description": "d"}], "[0].weight", "none"),
        (items({}, {"description": " "}), "[1].description", "blank"),
        (items({}, {"description": 5}), "[1].description", "int"),
        ([{"title": "t", "weight": 1}], "[0].description", "missing"),
        (items({"title": 5}), "[0].title", "int"),
        (items({"id": [1]}), "[0].id", "id"),
        (items({"id": "a"}, {"id": "a"}), "criteria", "more than once: a"),
        (items({"rar:prefix": "x"}), "[0].rar:prefix", "reserved"),
        ({"rubric": []}, "rubric", "at least one"),
        ({"rubric": [items({})[0], "text"]}, "rubric[1]", "str"),
    ],
)
def test_mistakes_are_named(value: object, field: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words in str(caught.value)
