"""Files that `rubricate lint` cannot read, in every output; options of formats, kinds and folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.linting.planting import native, rar
from tests.linting.running import run

from rubricate.cli.lint_command import Kind
from rubricate.data.io import file_kind

BROKEN = {"criteria": [{"text": ""}]}
GOOD = native({"text": "The response names a second cause."})


Write = Callable[..., str]


def test_nothing_read_does_not_look_like_success(write: Write) -> None:
    result = run(write("a.jsonl", BROKEN))
    assert result.exit_code == 2
    assert result.stdout == "1 file could not be read, and no rubric was checked\n"
    result = run("a.jsonl", write("b.jsonl", GOOD), "c.jsonl")
    assert result.stdout == "2 files could not be read; no findings in 1 rubric with 3 criteria in the others\n"


def test_an_annotation_names_file_and_line(write: Write) -> None:
    result = run(write("a.jsonl", BROKEN), "--output", "github")
    assert result.exit_code == 2
    assert result.stdout.startswith("::error file=a.jsonl,line=1,title=cannot be read::field 'criteria[0].text': ")
    assert "::error file=gone.jsonl,line=1," in run("gone.jsonl", "--output", "github").stdout


def test_json_holds_the_errors(write: Write) -> None:
    report = json.loads(run(write("a.jsonl", BROKEN), "gone.jsonl", "--output", "json").stdout)
    assert report["unreadable_files"] == 2 and report["findings"] == []
    first, second = report["errors"]
    assert (first["file"], first["line"], first["field"]) == ("a.jsonl", 1, "criteria[0].text")
    assert first["message"]
    assert (second["file"], second["line"], second["message"]) == ("gone.jsonl", None, "there is no such file")


def test_sarif_has_a_notification_for_each(write: Write) -> None:
    report = json.loads(run(write("a b.jsonl", BROKEN), write("b.jsonl", GOOD), "--output", "sarif").stdout)
    (invocation,) = report["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    (note,) = invocation["toolExecutionNotifications"]
    assert note["level"] == "error" and "criteria[0].text" in note["message"]["text"]
    (location,) = note["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.jsonl"
    assert location["physicalLocation"]["region"]["startLine"] == 1
    clean = json.loads(run("b.jsonl", "--output", "sarif").stdout)
    assert clean["runs"][0]["invocations"] == [{"executionSuccessful": True}]


@pytest.mark.parametrize("output", ["text", "github"])
def test_what_an_unreadable_file_says_is_no_line_of_its_own(write: Write, output: str) -> None:
    record = {"criteria": [{"text": "Names a price.", "x\n::add-mask::y": 1, "weight": "x\n::add-mask::y"}]}
    result = run(write("a.jsonl", record), "--output", output)
    assert result.exit_code == 2
    assert not any(line.startswith("::add-mask") for line in result.output.splitlines())


def test_a_prompt_column_that_one_file_lacks_leaves_the_others(write: Write) -> None:
    rows = {"task": "Use 40 words.", "rubric": [{"text": "The response has at most 40 words."}]}
    result = run(write("a.jsonl", GOOD), write("b.jsonl", rows), "--prompt-column", "task")
    assert result.exit_code == 2
    assert "a.jsonl: no row has a prompt in the column 'task'" in result.stderr
    assert "1 rubric with 1 criterion in the others" in result.stdout


def test_a_folder_is_answered_with_the_patterns_to_give(write: Write) -> None:
    Path("set").mkdir()
    Path("empty").mkdir()
    for name in ("set/a.jsonl", "set/b.jsonl", "set/c.yaml", "set/d.json.gz", "set/e.png"):
        write(name, GOOD)
    result = run("set")
    assert result.exit_code == 2
    assert "set: this is a folder, not a file" in result.stderr
    assert "hint: name the files in it: set/*.jsonl set/*.yaml set/*.json.gz\n" in result.stderr
    write("empty/e.png", GOOD)
    assert "holds none that could be rubrics" in run("empty").stderr


def test_options_of_the_format_are_passed_on(write: Write) -> None:
    row = rar(("Cause", "Essential Criteria: Names aspirin.", 5), ("Dose", "Optional Criteria: Gives a dose.", 7))
    path = write("a.jsonl", row)
    assert "W308" in run(path, "--fail-on", "never").stdout  # 7 for what is optional
    assert "W308" not in run(path, "-o", "weights=paper").stdout
    for wrong in (("-o", "weight=paper"), ("-o", "weights"), ("-o", "weights=nonsense")):
        assert run(path, *wrong).exit_code == 2
    mixed = run(path, write("native.jsonl", GOOD), "-o", "weights=paper")
    assert mixed.exit_code == 2 and "native.jsonl: the format 'native' has no option 'weights'" in mixed.stderr
    assert "in 1 rubric with 2 criteria in the others" in mixed.stdout
    column = write("b.jsonl", {"question": "Which drug?", "mine": row["rubric"]})
    assert "W308" not in run(column, "--rubric-column", "mine", "--from", "rar", "-o", "weights=paper").stdout


def test_kinds_are_listed_and_a_wrong_one_is_told_what_there_is(write: Write) -> None:
    write("a.jsonl", GOOD)
    Path("a.txt").write_text(Path("a.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    assert run("a.txt", "--kind", "jsonl").exit_code == 0
    wrong = run("a.txt", "--kind", "lines")
    assert wrong.exit_code == 2 and "jsonl" in wrong.stderr and "parquet" in wrong.stderr
    assert "jsonl" in run("--help").stdout and "metadata" in run("--help").stdout
    for kind in Kind:
        assert file_kind(f"a.{'txt' if kind is Kind.TEXT else kind}") == kind.value


def test_the_cosine_is_set_on_the_command_line(write: Write) -> None:
    path = write("a.jsonl", native({"text": "The sum of all parts is given."}, {"text": "Names what it costs."}))
    everything = run(path, "--embedder", "mock", "--similarity", "0.001", "--fail-on", "never")
    assert everything.exit_code == 0
    for wrong in ("0", "1.5", "nan", "-0.2"):
        assert run(path, "--embedder", "mock", "--similarity", wrong).exit_code == 2
    alone = run(path, "--similarity", "0.7")
    assert alone.exit_code == 2 and "--embedder wordllama" in alone.stderr
