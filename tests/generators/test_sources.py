"""Sources out of rows: prompts, references, pairs in every usual shape, rankings, candidates and labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rubricate.data.records import Preference, Turn
from rubricate.errors import ConfigError, FormatError
from rubricate.rubrics.generators.source import Source, read_sources, source_from_record, text_of


def test_a_row_with_a_reference() -> None:
    source = source_from_record({"question": "Q?", "reference_answer": 4, "id": 7, "topic": "sums"}, default_id="x")
    assert source == Source("Q?", "4", id="7", metadata={"topic": "sums"})
    assert source.task == "Q?" and source.responses == ()
    assert source_from_record({"prompt": "Q?", "reference": None}, default_id="row 3").id == "row 3"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Q?", "chosen": "good", "rejected": "bad"},
        {"prompt": "Q?", "response_a": "good", "response_b": "bad", "winner": "A"},
        {"prompt": "Q?", "response_a": "bad", "response_b": "good", "winner": "Response B"},
        {"prompt": "Q?", "response_a": "bad", "response_b": "good", "winner": "response_b"},
        {"input": "Q?", "output_1": "bad", "output_2": "good", "label": 2},
        {"prompt": "Q?", "response_1": "good", "response_2": "bad", "winner": "1"},
        {
            "prompt": "Q?",
            "chosen": [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "good"}],
            "rejected": [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "bad"}],
        },
    ],
)
def test_preference_pairs(row: dict[str, object]) -> None:
    source = source_from_record(row)
    assert source.pairs == (Preference("Q?", "good", "bad"),)
    assert source.responses == ("good", "bad")


def test_a_pair_of_conversations_brings_its_prompt() -> None:
    asked = {"role": "user", "content": "Q?"}
    source = source_from_record(
        {
            "chosen": [asked, {"role": "assistant", "content": "good"}],
            "rejected": [asked, {"role": "assistant", "content": "bad"}],
        }
    )
    assert source.prompt == (Turn("user", "Q?"),) and source.task == "Q?"
    assert source.pairs[0].chosen == "good"


def test_a_tie_makes_no_pair() -> None:
    assert source_from_record({"prompt": "Q?", "response_a": "a", "response_b": "b", "winner": "tie"}).pairs == ()


def test_rankings_candidates_and_labels() -> None:
    source = source_from_record({"prompt": "Q?", "ranked": ["best", "worst"]})
    assert source.ranked == ("best", "worst")
    source = source_from_record({"prompt": "Q?", "responses": '["a", "b"]', "label_rank": [2, 1]})
    assert source.candidates == ("a", "b") and source.labels == (-2.0, -1.0)
    source = source_from_record({"prompt": "Q?", "responses": [{"text": "a", "model": "m"}], "scores": [0.5]})
    assert source.candidates == ("a",) and source.labels == (0.5,)
    assert source_from_record({"prompt": "Q?", "response": "only"}).candidates == ("only",)
    chat = [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "A."}]
    source = source_from_record({"messages": chat})
    assert source.task == "Q?" and source.candidates == ("A.",)
    assert source_from_record({"messages": chat[:1]}).candidates == ()


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ({"answer": "x"}, "", "no prompt"),
        ({"prompt": " "}, "prompt", "empty"),
        ({"prompt": "Q?", "chosen": "a"}, "rejected", "no rejected"),
        ({"prompt": "Q?", "chosen": "a", "rejected": " "}, "rejected", "empty"),
        ({"prompt": "Q?", "response_a": "a", "response_b": "b"}, "winner", "which response"),
        ({"prompt": "Q?", "response_a": "a", "response_b": "b", "winner": "C++"}, "winner", "C++"),
        ({"prompt": "Q?", "candidates": "a"}, "candidates", "list"),
        ({"prompt": "Q?", "candidates": ["a", {"model": "m"}]}, "candidates[1]", "without one"),
        ({"prompt": "Q?", "candidates": ["a"], "labels": [1, 2]}, "labels", "2 labels for 1"),
        ({"prompt": "Q?", "candidates": ["a"], "labels": ["x"]}, "labels[0]", "numbers"),
        ({"prompt": "Q?", "reference": ["a"]}, "reference", "expected text"),
    ],
)
def test_faults_name_their_field(row: dict[str, object], field: str, message: str) -> None:
    with pytest.raises(FormatError, match=message.replace("+", r"\+")) as caught:
        source_from_record(row)
    assert caught.value.field == field


def test_columns_can_be_chosen() -> None:
    row = {"prompt": "Q?", "a": "good", "b": "bad"}
    source = source_from_record(row, columns={"chosen": "a", "rejected": "b"})
    assert source.pairs[0].chosen == "good" and source.metadata == {}
    with pytest.raises(ConfigError, match="no role"):
        source_from_record(row, columns={"nonsense": "a"})


def test_labels_and_candidates_must_be_as_many() -> None:
    with pytest.raises(ConfigError, match="1 labels for 2"):
        Source("Q?", candidates=("a", "b"), labels=(1.0,))


def test_rollouts_and_trajectories_as_text() -> None:
    source = Source("Q?", "R", candidates=("a", (Turn("assistant", "b"),)), id="s")
    first, second = source.rollouts()
    assert (first.prompt, first.response, first.reference, first.id) == ("Q?", "a", "R", "s#0")
    assert text_of(second.response) == "b"
    acted = (Turn("assistant", "", tool_calls=(("search", "{}"),)), Turn("tool", "found"))
    assert "search" in text_of(acted) and "found" in text_of(acted)


def test_a_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "Q?"}\n{"prompt": "R?", "id": "r"}\n', encoding="utf-8")
    assert [source.id for _, source in read_sources(path)] == ["1", "r"]
    path.write_text('{"prompt": "Q?"}\n{"prompt": "R?", "chosen": "c"}\n', encoding="utf-8")
    with pytest.raises(FormatError, match="no rejected response") as caught:
        list(read_sources(path))
    assert (caught.value.line, caught.value.field) == (2, "rejected")


def test_public_data(shared: Callable[[str], Path]) -> None:
    rows = list(read_sources(shared("llmbar") / "dataset_Natural.json"))
    assert len(rows) == 100
    row, source = rows[0]
    assert source.pairs[0].chosen == row.record[f"output_{row.record['label']}"]
