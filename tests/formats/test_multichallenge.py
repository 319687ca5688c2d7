"""MultiChallenge. Fields: benchmark_questions.jsonl and evaluator.py of zhendong-nexusflow/MultiChallengeBench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rubrics import changes, extra, record_returns, relaxed, rubric_returns, rubrics, survives, texts, words

from rubricate.errors import FormatError
from rubricate.rewardmodels import aggregate, preset_names
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.formats import Note, convert, dump_rubrics, load_rubrics, parse_rubric
from rubricate.rubrics.formats.multichallenge import NO_PREFIX
from rubricate.types import Verdict

CONVERSATION = [
    {"role": "user", "content": "I am allergic to nuts."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "Suggest a dessert."},
]
ROW: dict[str, object] = {
    "QUESTION_ID": "674552683acc",
    "AXIS": "INFERENCE_MEMORY",
    "CONVERSATION": CONVERSATION,
    "TARGET_QUESTION": "Does the dessert contain nuts?",
    "PASS_CRITERIA": "NO",
}


def test_a_row_becomes_a_rubric_and_a_row_again() -> None:
    rubric = record_returns(ROW, "multichallenge")
    (criterion,) = rubric.criteria
    assert rubric.id == "674552683acc"
    assert rubric.metadata == {"CONVERSATION": CONVERSATION}
    assert (criterion.channel, criterion.weight, criterion.metadata) == ("INFERENCE_MEMORY", 1.0, {})
    assert criterion.text == NO_PREFIX + "Does the dessert contain nuts?"
    other = record_returns(ROW | {"PASS_CRITERIA": "YES"}, "multichallenge")
    assert other.criteria[0].text == "Does the dessert contain nuts?"


# The implicit presets take one rating of the whole rubric; those by importance or kind need fields not there.
PRESETS = [name for name in preset_names() if name not in ("rar", "rar_implicit", "rar_v1")]
SIGNED = ("rubric_arrow_judge", "rubric_arrow_policy")  # of kind, from -1 to 1


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in SIGNED])
@pytest.mark.parametrize("passes", ["YES", "NO"])
@pytest.mark.parametrize("answer", ["YES", "NO"])
def test_only_the_passing_answer_earns(name: str, passes: str, answer: str) -> None:
    rubric = parse_rubric(ROW | {"PASS_CRITERIA": passes})
    (criterion,) = rubric.criteria
    # A judge of the text: it holds the question, or says that the answer to it is no.
    met = (answer == "NO") if criterion.text.startswith(NO_PREFIX) else (answer == "YES")
    score = aggregate(name, rubric, [Verdict("c1", float(met))])
    assert score.value == (1.0 if answer == passes else 0.0)


def test_rows_of_both_kinds_are_worth_the_same_beside_other_criteria() -> None:
    other = Rubric(criteria=(Criterion(id="style", text="Is polite.", weight=1),))
    for passes in ("YES", "NO"):
        rubric = parse_rubric(ROW | {"PASS_CRITERIA": passes}) + other
        score = aggregate("weighted", rubric, [Verdict("c1", 1.0), Verdict("style", 0.0)])
        assert score.value == 0.5


def test_other_spellings_are_read_noted_and_kept() -> None:
    notes: list[Note] = []
    row = ROW | {"PASS_CRITERIA": " yes"}
    rubric = parse_rubric(row, notes=notes)
    assert rubric.criteria[0].text == ROW["TARGET_QUESTION"]
    assert [(note.kind, note.field) for note in notes] == [("layout", "PASS_CRITERIA")]
    assert record_returns(row, "multichallenge") == rubric
    (changed,) = rubric.criteria
    turned = rubric.model_copy(
        update={"criteria": (changed.model_copy(update={"text": NO_PREFIX + "Is it?", "metadata": {}}),)}
    )
    (written,) = dump_rubrics(turned, "multichallenge")
    assert (written["TARGET_QUESTION"], written["PASS_CRITERIA"]) == ("Is it?", "NO")


def test_a_question_that_speaks_of_its_answer_stays_as_it_is() -> None:
    row = ROW | {"TARGET_QUESTION": NO_PREFIX + "is that said?", "PASS_CRITERIA": "YES"}
    assert record_returns(row, "multichallenge").criteria[0].text == row["TARGET_QUESTION"]
    assert record_returns(row | {"PASS_CRITERIA": "NO"}, "multichallenge").criteria[0].text.count(NO_PREFIX) == 2


def test_lower_case_names_and_other_orders_come_back() -> None:
    lower = {name.lower(): part for name, part in ROW.items()}
    assert record_returns(lower, "multichallenge").criteria == parse_rubric(ROW).criteria
    record_returns(dict(reversed(ROW.items())), "multichallenge")
    record_returns(ROW | {"AXIS": None, "QUESTION_ID": 7}, "multichallenge")
    record_returns({"TARGET_QUESTION": "Is it?", "PASS_CRITERIA": "YES"}, "multichallenge")


def test_penalties_become_questions_that_pass_with_no() -> None:
    error = Criterion(id="c1", text="Does it contain nuts?", polarity=Polarity.PENALTY)
    with pytest.raises(FormatError, match="polarity"):
        dump_rubrics(Rubric(criteria=(error,)), "multichallenge")
    (row,) = dump_rubrics(Rubric(criteria=(error,)), "multichallenge", lossy=True)
    assert row == {"TARGET_QUESTION": "Does it contain nuts?", "PASS_CRITERIA": "NO"}
    turned = error.model_copy(update={"text": NO_PREFIX + "Is it safe?"})
    (row,) = dump_rubrics(Rubric(criteria=(turned,)), "multichallenge", lossy=True)
    assert row == {"TARGET_QUESTION": "Is it safe?", "PASS_CRITERIA": "YES"}


@pytest.mark.parametrize(
    ("row", "field", "words"),
    [
        (ROW | {"PASS_CRITERIA": "Maybe"}, "PASS_CRITERIA", "expected YES or NO, got 'Maybe'"),
        (ROW | {"PASS_CRITERIA": True}, "PASS_CRITERIA", "bool"),
        (ROW | {"PASS_CRITERIA": ""}, "PASS_CRITERIA", "blank"),
        (ROW | {"TARGET_QUESTION": " "}, "TARGET_QUESTION", "blank"),
        (ROW | {"TARGET_QUESTION": ["q"]}, "TARGET_QUESTION", "list"),
        (ROW | {"AXIS": 3}, "AXIS", "int"),
        ({k: v for k, v in ROW.items() if k != "PASS_CRITERIA"}, "PASS_CRITERIA", "missing"),
        ({k: v for k, v in ROW.items() if k != "TARGET_QUESTION"}, "TARGET_QUESTION", "missing"),
        ({"target_question": "q", "pass_criteria": "No!"}, "pass_criteria", "expected YES or NO"),
        (ROW | {"multichallenge:pass": "YES"}, "multichallenge:pass", "reserved"),
        (ROW | {"x": float("nan")}, "x", "not a number"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, row: dict[str, object], field: str, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        load_rubrics(path)
    assert (caught.value.field, caught.value.line) == (field, 2)
    assert words in str(caught.value)


def test_several_criteria_need_several_rows() -> None:
    with pytest.raises(FormatError, match="this rubric has 2"):
        dump_rubrics(Rubric(criteria=(Criterion(id="a", text="t"), Criterion(id="b", text="u"))), "multichallenge")


def test_a_prompt_becomes_the_conversation(tmp_path: Path) -> None:
    native = {"criteria": [{"id": "c1", "text": "Is it short?"}], "metadata": {"prompt": "Say hi."}}
    (tmp_path / "in.jsonl").write_text(json.dumps(native) + "\n", encoding="utf-8")
    convert(tmp_path / "in.jsonl", tmp_path / "out.jsonl", to_format="multichallenge")
    assert json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8")) == {
        "CONVERSATION": [{"role": "user", "content": "Say hi."}],
        "TARGET_QUESTION": "Is it short?",
        "PASS_CRITERIA": "YES",
    }


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    row: dict[str, object] = {"QUESTION_ID": draw(texts | st.integers()), "AXIS": draw(texts | st.none())}
    row |= draw(extra) | {"TARGET_QUESTION": draw(st.sampled_from(["", NO_PREFIX])) + draw(words)}
    row["PASS_CRITERIA"] = draw(st.sampled_from(["YES", "NO", "no", "Yes "]))
    names = draw(st.permutations(list(row)))
    return {name: row[name] for name in names}


@relaxed
@given(rows())
def test_made_rows_return(row: dict[str, object]) -> None:
    record_returns(row, "multichallenge")


@relaxed
@given(rubrics(most=1))
def test_made_rubrics_return(rubric: Rubric) -> None:
    rubric_returns(rubric, "multichallenge")


@relaxed
@given(changes(ROW))
def test_no_change_to_a_record_breaks_the_reader(value: object) -> None:
    survives(value, "multichallenge")
