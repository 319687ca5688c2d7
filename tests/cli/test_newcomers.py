"""What somebody meets who runs `rubricate score` for the first time: formats, columns, notes, unfit models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Write, records

from rubricate.cli.journal import journal_path
from rubricate.rubrics.formats import formats

ROWS = [{"id": f"r{n}", "prompt": "Greet.", "response": f"Hello {n}."} for n in range(30)]
LEVELS = {
    "criteria": [
        {
            "id": "warm",
            "text": "How warm it is.",
            "scale": {
                "type": "ordinal",
                "levels": [{"label": f"L{n}", "value": n, "description": f"level {n}"} for n in range(5)],
            },
        }
    ]
}


def test_a_mock_model_scores_without_a_mode(write: Write, rubric: Path, run: Run) -> None:
    result = run("score", write("d.jsonl", *ROWS[:2]), "--rubric", rubric, "--judge", "mock:p=0.8", "--quiet")
    assert result.exit_code == 0, result.output
    assert records(Path("d.rewards.jsonl"))[0]["channels"] == {
        "format": 1.0,
        "style": pytest.approx(0.8),
        "general": None,
    }


@pytest.mark.parametrize("mode", ["logprob", "reasoned", "holistic", "likert"])
def test_a_mock_model_scores_levels_in_every_mode(write: Write, run: Run, mode: str) -> None:
    path = Path("levels.json")
    path.write_text(json.dumps(LEVELS), encoding="utf-8")
    data = write("d.jsonl", *ROWS[:2])
    result = run("score", data, "--rubric", path, "--judge", "mock:p=0.8", "--mode", mode, "--quiet")
    assert result.exit_code == 0, result.output
    assert all(record["value"] == pytest.approx(7 / 9, abs=0.03) for record in records(Path("d.rewards.jsonl")))


def test_a_model_that_never_answers_in_form_ends_the_run(write: Write, rubric: Path, run: Run) -> None:
    command = ("score", write("d.jsonl", *ROWS), "--rubric", rubric, "--quiet", "--concurrency", "1", "--judge")
    result = run(*command, "mock:echo")
    assert result.exit_code == 2
    for part in ("first 20 responses", "no usable verdict", "--mode logprob", "another model"):
        assert part in result.stderr, part
    out = Path("d.rewards.jsonl")
    assert not out.exists()
    assert len(journal_path(out).read_bytes().splitlines()) == 21  # what was tried is kept
    assert "going on" in run(*[word for word in command if word != "--quiet"], "mock:echo").stderr


def test_a_model_that_answered_once_is_asked_to_the_end(write: Write, rubric: Path, run: Run) -> None:
    reply = {"verdicts": [{"id": "C1", "reason": "so", "verdict": "met"}], "final": {"C1": "met"}}
    lines = [{"match": "Hello 3.", "text": json.dumps(reply)}, {"text": "I would say yes."}]
    script = write("script.jsonl", *lines)
    data = write("d.jsonl", *ROWS)
    judge = ("--judge", f"mock:{script}", "--concurrency", "1")
    result = run("score", data, "--rubric", rubric, "--quiet", *judge)
    assert result.exit_code == 1
    assert "29 of 30 responses could not be scored" in result.stderr
    assert "none of 1 responses" not in result.output


def test_no_row_by_row_warning(write: Write, rubric: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run("score", write("d.jsonl", *ROWS[:2]), "--rubric", rubric, "--quiet", "--judge", "mock:echo")
    assert "could be scored" not in caplog.text


def test_the_format_of_the_rubrics_and_its_options_can_be_named(write: Write, run: Run) -> None:
    item = {"title": "Kind", "description": "Essential Criteria: It is kind.", "weight": 5}
    data = write("d.jsonl", *({**row, "mine": [item]} for row in ROWS[:2]))
    common = ("score", data, "--judge", "mock:p=0.8", "--quiet", "--rubric-column", "mine", "--out")
    assert run(*common, "a.jsonl", "--from", "rar", "-o", "weights=paper").exit_code == 0
    assert run(*common, "b.jsonl", "--from", "rar").exit_code == 0
    prints = [records(Path(name))[0]["rubric_fingerprint"] for name in ("a.jsonl", "b.jsonl")]
    assert prints[0] != prints[1]
    for wrong, says in (
        (("--from", "rra"), "rra"),
        (("-o", "weihgts=paper"), "weihgts"),
        (("-o", "x"), "NAME=VALUE"),
    ):
        result = run(*common, "c.jsonl", *wrong)
        assert result.exit_code == 2 and says in result.stderr
    assert run(*common, "c.jsonl", "--from", "healthbench").exit_code == 2


def test_the_format_holds_for_a_rubric_file_too(write: Write, run: Run) -> None:
    items = [{"title": "Kind", "description": "Essential Criteria: It is kind.", "weight": 5}]
    Path("rar.json").write_text(json.dumps(items), encoding="utf-8")
    common = ("score", write("d.jsonl", *ROWS[:1]), "--judge", "mock:p=0.8", "--rubric", "rar.json", "--quiet")
    assert run(*common, "--from", "rar", "-o", "weights=paper").exit_code == 0
    assert run(*common, "--from", "rbr", "--out", "o.jsonl").exit_code == 2


def test_a_column_that_is_not_read_is_named(write: Write, rubric: Path, run: Run) -> None:
    rows = [{**row, "rubric": [{"text": "It is long."}]} for row in ROWS[:1]]
    command = ("score", write("d.jsonl", *rows), "--rubric", rubric, "--judge", "mock:yes", "--quiet", "--dry-run")
    assert "the column rubric is not read" in run(*command).stderr
    assert "not read" not in run(*command, "--rubric-column", "rubric").stderr


def test_an_id_that_comes_twice_is_named(write: Write, rubric: Path, run: Run) -> None:
    data = write("d.jsonl", ROWS[0], ROWS[1], ROWS[0])
    result = run("score", data, "--rubric", rubric, "--judge", "mock:yes", "--quiet")
    assert result.exit_code == 0
    assert "the id 'r0' is on line 1 and on line 3" in result.stderr


def test_a_group_has_one_id_a_response(write: Write, rubric: Path, run: Run) -> None:
    data = write("d.jsonl", {"id": "g", "prompt": "p", "responses": ["a", "b"]})
    assert "the id" not in run("score", data, "--rubric", rubric, "--judge", "mock:yes", "--quiet").stderr


def test_data_that_was_taken_for_the_cache_is_named(run: Run, rubric: Path) -> None:
    result = run("score", "--cache", "data.jsonl", "--rubric", rubric, "--judge", "mock:yes")
    assert result.exit_code == 2
    assert "'data.jsonl' was read as the file of --cache" in result.stderr
    assert "--cache" not in run("score", "--rubric", rubric, "--judge", "mock:yes").stderr


def test_rows_of_advancedif_and_multichallenge_are_scored(write: Write, run: Run) -> None:
    talk = [{"role": "user", "content": "Greet."}]
    metadata = {"rubrics": json.dumps(["Is it kind?"])}
    rows = {
        "a.jsonl": {
            "conversation_history": json.dumps(talk),
            "benchmark_name": "x",
            "prompt_metadata": json.dumps(metadata),
        },
        "m.jsonl": {
            "QUESTION_ID": "q1",
            "AXIS": "x",
            "CONVERSATION": talk,
            "TARGET_QUESTION": "Is it kind?",
            "PASS_CRITERIA": "YES",
        },
    }
    for name, row in rows.items():
        result = run("score", write(name, {**row, "response": "Hello."}), "--judge", "mock:p=0.8", "--quiet")
        assert result.exit_code == 0, (name, result.output)
    assert records(Path("m.rewards.jsonl"))[0]["id"] == "q1"


def test_the_help_of_convert_lists_every_format(run: Run) -> None:
    text = run("convert", "--help").stdout
    assert set(formats()) <= set(text.replace(",", " ").replace(".", " ").split())
    for kind in (".csv", ".tsv", ".toml", ".txt", ".md"):
        assert kind in text


def test_a_small_file_gets_the_same_advice(write: Write, rubric: Path, run: Run) -> None:
    result = run("score", write("d.jsonl", *ROWS[:2]), "--rubric", rubric, "--judge", "mock:echo", "--quiet")
    assert result.exit_code == 1
    assert "no usable verdict" in result.stderr and "hint: this model does not answer in the form" in result.stderr
