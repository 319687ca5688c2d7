"""RubricJudge. Fields and rules: verifiers/v1/judges/rubric.py of PrimeIntellect-ai/verifiers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rubrics import changes, extra, record_returns, relaxed, rubric_returns, rubrics, survives, words

from rubricate.errors import FormatError
from rubricate.rewardmodels import aggregate
from rubricate.rubrics import BinaryScale, Criterion, OrdinalScale, Polarity, Rubric
from rubricate.rubrics.formats import detect, dump_rubrics, load_rubric, parse_rubric
from rubricate.types import Verdict

TOML = """\
[[criteria]]
name = "tested"
text = "The patch comes with a test."
weight = 2.0

[[criteria]]
name = "small"
text = "How small is the patch?"
choices = ["sprawling", "fair", "minimal"]

[[criteria]]
name = "polite"
text = "Is the message polite?"
weight = 0
choices = ["no", "yes"]
"""


ONE: list[object] = [{"name": "a", "text": "t"}]


def items(*entries: Mapping[str, object]) -> dict[str, object]:
    return {"criteria": [{"name": f"n{i}", "text": "t"} | dict(entry) for i, entry in enumerate(entries)]}


@pytest.mark.parametrize("as_file", [False, True])
def test_a_toml_file_becomes_a_rubric_and_the_same_record(tmp_path: Path, as_file: bool) -> None:
    record = tomllib.loads(TOML)
    rubric = record_returns(record, "rubricjudge")
    if as_file:
        (tmp_path / "rubric.toml").write_text(TOML, encoding="utf-8")
        assert load_rubric(tmp_path / "rubric.toml") == rubric
    assert rubric.ids == ("tested", "small", "polite")
    assert [c.weight for c in rubric.criteria] == [2.0, 1.0, 0.0]
    assert {c.polarity for c in rubric.criteria} == {Polarity.REWARD}
    scale = rubric["small"].scale
    assert isinstance(scale, OrdinalScale)
    assert [level.label for level in scale.levels] == ["sprawling", "fair", "minimal"]
    assert rubric["polite"].scale == rubric["tested"].scale == BinaryScale()


def test_choices_score_by_rank_and_the_reward_is_the_weighted_mean() -> None:
    rubric = parse_rubric(items({"weight": 3}, {"choices": ["a", "b", "c", "d"]}))
    scale = rubric["n1"].scale
    assert isinstance(scale, OrdinalScale)
    assert [rubric["n1"].normalise(level.value) for level in scale.levels] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    score = aggregate("weighted", rubric, [Verdict("n0", 1.0), Verdict("n1", 1 / 3)])
    assert score.value == pytest.approx((3 * 1 + 1 * (1 / 3)) / 4)


def test_a_list_alone_and_other_fields() -> None:
    record = items({}, {"weight": 2}) | {"title": "A rubric", "id": "r"}
    rubric = record_returns(record, "rubricjudge")
    assert (rubric.id, rubric.metadata["title"]) == ("r", "A rubric")
    assert parse_rubric(record["criteria"]).criteria == rubric.criteria
    record_returns(dict(reversed(record.items())), "rubricjudge")


def test_what_the_native_format_knows_stays_native() -> None:
    assert detect({"criteria": [{"id": "a", "text": "t"}]}) == "native"
    assert detect({"criteria": ["a text"]}) == "native"
    assert detect({"criteria": [{"id": "a", "name": "a", "text": "t"}]}) == "native"
    assert detect({"criteria": [{"name": "a"}]}) == "rubricjudge"
    assert detect([{"name": "a", "text": "t"}]) == "rubricjudge"
    assert detect([{"text": "t", "choices": ["bad", "good"]}]) == "rubricjudge"
    assert parse_rubric(items({"weight": 2}), format="rubricjudge").ids == ("n0",)


def test_penalties_are_written_with_their_choices_turned_round() -> None:
    error = Criterion(id="n0", text="Does it delete tests?", polarity=Polarity.PENALTY)
    with pytest.raises(FormatError, match=r"polarity of penalties.*\(n0\)"):
        dump_rubrics(Rubric(criteria=(error,)), "rubricjudge")
    (record,) = dump_rubrics(Rubric(criteria=(error,)), "rubricjudge", lossy=True)
    assert record == {"criteria": [{"name": "n0", "text": error.text, "choices": ["yes", "no"]}]}
    (again,) = parse_rubric(record).criteria
    assert isinstance(again.scale, OrdinalScale)
    assert again.scale.levels[-1].label == "no"  # the error that was not made is the best answer


def test_what_choices_cannot_say_is_a_loss() -> None:
    levels = [{"label": "1", "value": 1.0}, {"label": "2", "value": 5.0, "description": "d"}]
    fields: dict[str, object] = {"id": "a", "text": "t", "scale": {"type": "ordinal", "levels": levels}}
    rubric = Rubric(criteria=(Criterion.model_validate(fields), Criterion(id="b", text="t", metadata={"note": 1})))
    with pytest.raises(FormatError) as caught:
        dump_rubrics(rubric, "rubricjudge")
    assert "values and descriptions of the levels (a)" in str(caught.value)
    assert "metadata.note (b)" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        (items({}, {"weight": True}), "criteria[1].weight", "'n1' has true"),
        (items({"weight": -1}), "criteria[0].weight", "negative"),
        (items({"weight": float("nan")}), "criteria[0].weight", "NaN"),
        (items({"weight": "1"}), "criteria[0].weight", "the text '1'"),
        (items({"weight": None}), "criteria[0].weight", "null"),
        (items({"weight": 0}), "criteria", "no criterion has a positive weight"),
        (items({"name": ""}), "criteria[0].name", "blank"),
        (items({"name": 3}), "criteria[0].name", "int"),
        ({"criteria": [{"text": "t", "choices": ["a", "b"]}]}, "criteria[0].name", "missing"),
        ({"criteria": [{"name": "n"}]}, "criteria[0].text", "missing"),
        (items({"name": "a"}, {"name": "a"}), "criteria", "more than once: a"),
        (items({"wieght": 1}), "criteria[0].wieght", "did you mean 'weight'"),
        (items({"choices": ["a"]}), "criteria[0].choices", "at least two"),
        (items({"choices": ["a", "a"]}), "criteria[0].choices[1]", "twice"),
        (items({"choices": ["a", ""]}), "criteria[0].choices[1]", "empty"),
        (items({"choices": [False, True]}), "criteria[0].choices[0]", "quote yes and no"),
        (items({"choices": "no,yes"}), "criteria[0].choices", "str"),
        (items({}) | {"rubricjudge:order": "x"}, "rubricjudge:order", "reserved"),
        ({"criteria": [*ONE, "b"]}, "criteria[1]", "str"),
    ],
)
def test_mistakes_are_named(value: object, field: str, words: str) -> None:
    assert detect(value) == "rubricjudge"
    with pytest.raises(FormatError) as caught:
        parse_rubric(value)
    assert caught.value.field == field
    assert words in str(caught.value)


def test_an_empty_list_and_weights_of_nothing() -> None:
    with pytest.raises(FormatError, match="at least one"):
        parse_rubric({"criteria": []}, format="rubricjudge")
    with pytest.raises(FormatError, match="positive weight"):
        dump_rubrics(Rubric(criteria=(Criterion(id="a", text="t", weight=0),)), "rubricjudge", lossy=True)


choices = st.just(["no", "yes"]) | st.lists(words, min_size=2, max_size=4, unique=True)


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    made: list[dict[str, object]] = []
    for name in draw(st.lists(words, min_size=1, max_size=4, unique=True)):
        item: dict[str, object] = {"name": name, "text": draw(words)}
        if draw(st.booleans()):
            item["choices"] = draw(choices)
        if not made or draw(st.booleans()):
            item["weight"] = draw(st.integers(1, 9) | st.floats(0.5, 9).filter(lambda w: not w.is_integer()))
        made.append({key: item[key] for key in draw(st.permutations(list(item)))})
    record = draw(extra) | {"criteria": made}
    return {key: record[key] for key in draw(st.permutations(list(record)))}


@relaxed
@given(records())
def test_made_records_return(record: dict[str, object]) -> None:
    record_returns(record, "rubricjudge")


@relaxed
@given(rubrics())
def test_made_rubrics_return(rubric: Rubric) -> None:
    rubric_returns(rubric, "rubricjudge")


@relaxed
@given(changes(tomllib.loads(TOML)))
def test_no_change_to_a_record_breaks_the_reader(value: object) -> None:
    survives(value, "rubricjudge")
