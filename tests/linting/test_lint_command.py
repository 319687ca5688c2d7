"""`rubricate lint`: exit codes, outputs, reading of rows, rules by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.linting.planting import ASKED, native
from tests.linting.running import run

Record = Mapping[str, object]
BAD = native({"text": "TODO: the dose, 50% of it."}, {"text": "Is the tone warm?"})
GOOD = native({"text": "The response names a second cause."})


def test_exit_codes_follow_fail_on(write: Callable[..., str]) -> None:
    good, bad = write("good.jsonl", GOOD), write("bad.jsonl", BAD)
    clean = run(good)
    assert clean.exit_code == 0
    assert clean.stdout == "no findings in 1 rubric with 3 criteria\n"
    assert run(good, bad).exit_code == 1
    assert run(bad, "--ignore", "C506,C505").exit_code == 0
    only_info = ("--select", "not-a-statement")
    assert run(bad, *only_info).exit_code == 0
    assert run(bad, *only_info, "--fail-on", "info").exit_code == 1
    assert run(bad, "--fail-on", "never").exit_code == 0


def test_bad_input_is_exit_code_2_and_the_other_files_are_linted(write: Callable[..., str]) -> None:
    broken, bad = write("broken.jsonl", {"criteria": [{"text": ""}]}), write("bad.jsonl", BAD)
    result = run(broken, bad, "missing.jsonl")
    assert result.exit_code == 2
    assert "broken.jsonl:1, field 'criteria[0].text'" in result.stderr
    assert "missing.jsonl" in result.stderr
    assert "bad.jsonl:1" in result.stdout
    assert "Traceback" not in result.output
    assert run().exit_code == 2
    assert "--list-rules" in run().stderr
    assert run(bad, "--select", "C999").exit_code == 2
    assert run(bad, "--from", "nonsense").exit_code == 2


def test_text_gives_line_code_and_fix(write: Callable[..., str]) -> None:
    lines = run(write("bad.jsonl", GOOD, BAD)).stdout.splitlines()
    assert lines[0] == 'bad.jsonl:2: rubric 2 c1: error C506 placeholder: "TODO" was meant to be replaced'
    assert lines[1] == "    fix: fill it in, or remove the criterion"
    assert lines[-1] == "2 findings (1 error, 1 info) in 2 rubrics with 7 criteria"


def test_json_holds_every_finding(write: Callable[..., str]) -> None:
    report = json.loads(run(write("bad.jsonl", BAD), "--output", "json").stdout)
    assert (report["rubrics"], report["criteria"], report["unreadable_files"]) == (1, 4, 0)
    first = report["findings"][0]
    assert (first["code"], first["severity"], first["line"], first["criterion_ids"]) == ("C506", "error", 1, ["c1"])


def test_annotations_escape_what_github_reads(write: Callable[..., str]) -> None:
    path = write("a,b.jsonl", native({"text": "The response mentions scattering, 50% of it, etc."}))
    lines = run(path, "--output", "github", "--fail-on", "info").stdout.splitlines()
    assert lines[0].startswith("::notice file=a%2Cb.jsonl,line=1,title=C502 vague::")
    assert "%0Afix: " in lines[0] and "(c1)" in lines[0]


def test_sarif_has_rules_results_and_places(write: Callable[..., str]) -> None:
    report = json.loads(run(write("my rubrics.jsonl", GOOD, BAD), "--output", "sarif").stdout)
    assert report["version"] == "2.1.0"
    (only,) = report["runs"]
    listed = only["tool"]["driver"]["rules"]
    assert only["tool"]["driver"]["name"] == "rubricate"
    assert len({one["id"] for one in listed}) == len(listed) >= 40
    for result in only["results"]:
        assert listed[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "my%20rubrics.jsonl"
        assert location["physicalLocation"]["region"]["startLine"] == 2
        assert location["logicalLocations"][0]["name"] in ("c1", "c2")


def test_rules_are_listed_and_explained() -> None:
    listed = run("--list-rules")
    assert listed.exit_code == 0
    assert "C501  warning  compound" in listed.stdout
    explained = run("--explain", "c501")
    assert explained.stdout.startswith("C501 compound (warning)")
    assert "Fix: " in explained.stdout and "requirements" in explained.stdout
    assert run("--explain", "V604").exit_code == run("--explain", "compound").exit_code == 0
    assert run("--explain", "C999").exit_code == 2


def test_rubrics_in_a_column_of_rows(write: Callable[..., str]) -> None:
    rows = [
        {"question": ASKED, "response": "…", "mine": [{"text": "The response has at most 40 words."}]},
        {"question": ASKED, "response": "…", "mine": None},
        {"question": ASKED, "response": "…", "mine": json.dumps([{"text": "TODO"}])},
    ]
    path = write("rows.jsonl", *rows)
    result = run(path, "--rubric-column", "mine", "--output", "json")
    found = json.loads(result.stdout)["findings"]
    assert [(finding["code"], finding["line"]) for finding in found] == [("Q701", 1), ("C506", 3)]
    missing = run(path, "--rubric-column", "yours")
    assert missing.exit_code == 2 and "columns here: question, response, mine" in missing.stderr
    usual = [{**row, "rubric": row["mine"]} for row in rows[::2]]
    assert "Q701" in run(write("usual.jsonl", *usual)).stdout


def test_the_prompt_column_can_be_named(write: Callable[..., str]) -> None:
    row = {"task": "Use 40 words.", "prompt": "ignored", "rubric": [{"text": "The response has at most 40 words."}]}
    path = write("rows.jsonl", row)
    assert run(path).exit_code == 1
    assert run(path, "--prompt-column", "task").exit_code == 0
    assert run(path, "--prompt-column", "nothing").exit_code == 2


def test_verifiers_are_checked_and_can_be_imported(write: Callable[..., str], tmp_path: Path) -> None:
    spec = {"name": "lint_house_style"}
    path = write("own.jsonl", native({"text": "It follows the style.", "verifier": spec}))
    result = run(path)
    assert result.exit_code == 1
    assert "V601" in result.stdout and "--import" in result.stdout
    (tmp_path / "house.py").write_text(
        "from rubricate.judges.verifiers import Check, Input, VerifierArgs, verifier\n\n\n"
        "@verifier('lint_house_style')\n"
        "def house(given: Input, args: VerifierArgs) -> Check:\n    return Check(True)\n",
        encoding="utf-8",
    )
    assert run(path, "--import", "house.py").exit_code == 0


def test_embedder_and_model_come_by_name(write: Callable[..., str]) -> None:
    row = native(
        {"text": "The sum of the parts is given."}, {"text": "What the parts come to is given."}, prompt="Why?"
    )
    path = write("rubrics.jsonl", row)
    asked = run(path, "--embedder", "mock", "--model", "mock:yes")
    assert "Q704" in asked.stdout  # `yes` is no list of numbers: what is asked for stays unknown
    assert asked.exit_code == 0
    assert run(path, "--model", "nonsense:x").exit_code == 2
    assert run(path, "--embedder", "nonsense:x").exit_code == 2


def test_what_a_file_says_is_no_line_of_its_own(write: Callable[..., str]) -> None:
    record = {
        "criteria": [
            {"id": "a\n::error::x", "text": "The response names the drug and gives its\n::add-mask::dose."}
        ]
    }
    result = run(write("r.jsonl", record))
    assert "C501" in result.output and "\\n::error::x" in result.output
    assert not any(line.startswith("::") for line in result.output.splitlines())
