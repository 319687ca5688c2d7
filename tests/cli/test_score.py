"""`rubricate score` in one process: what it writes, says and refuses."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, Start, Write, records

from rubricate.cli import journal as journal_module
from rubricate.cli import score as score_module
from rubricate.cli.journal import Journal, journal_path
from rubricate.cli.scoring import Scored, score_units
from rubricate.data.io import read_rows

YES = ("--judge", "mock:p=0.75", "--mode", "logprob", "--quiet")
ROWS = [{"id": f"r{n}", "prompt": "Greet.", "response": "Hello there." if n % 2 else "Hi " * 9} for n in range(7)]


def value(record: dict[str, object]) -> float | None:
    found = record["value"]
    assert found is None or isinstance(found, float)
    return found


def test_each_response_has_its_record_in_order(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    result = run("score", write("d.jsonl", *ROWS), "--rubric", rubric, "--out", out, *YES)
    assert result.exit_code == 0, result.output
    found = records(out)
    assert [record["id"] for record in found] == [row["id"] for row in ROWS]
    assert [value(record) for record in found] == pytest.approx([0.375, 0.875] * 3 + [0.375])
    assert found[0]["channels"] == {"format": 0.0, "style": 0.75, "general": None}
    assert not journal_path(out).exists()


def test_the_summary_says_what_it_came_to(write: Write, rubric: Path, run: Run) -> None:
    result = run("score", write("d.jsonl", *ROWS[:2]), "--rubric", rubric, *YES)
    lines = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in result.stdout.splitlines() if line}
    assert lines["responses"] == "2" and lines["scored"] == "2"
    assert "0.625 ± 0.250" in result.stdout
    assert lines["model calls"] == "2"
    assert Path("d.rewards.jsonl").exists()


def test_what_nobody_decides_is_unscored_and_the_exit_code_says_so(write: Write, rubric: Path, run: Run) -> None:
    rows = [{**ROWS[0], "id": str(n)} for n in range(30)]
    result = run("score", write("d.jsonl", *rows), "--rubric", rubric, "--judge", "none", "--quiet")
    assert result.exit_code == 1
    assert "30 checks have no verifier" in result.stderr
    assert "30 of 30 responses could not be scored" in result.stderr
    found = records(Path("d.rewards.jsonl"))
    assert [value(record) for record in found] == [None] * 30
    assert all(record["failure"] for record in found)
    assert "again" not in result.stderr and not list(Path().glob("*.journal"))


def test_groups_keep_their_ids_and_lines(write: Write, rubric: Path, run: Run) -> None:
    data = write(
        "d.jsonl",
        {"id": "a", "prompt": "p", "responses": ["one", "two", "three"]},
        {"id": "b", "prompt": "q", "response": "four"},
    )
    assert run("score", data, "--rubric", rubric, *YES).exit_code == 0
    found = records(Path("d.rewards.jsonl"))
    assert [(record["id"], record["line"]) for record in found] == [("a#0", 1), ("a#1", 1), ("a#2", 1), ("b", 2)]


def test_equal_rows_are_each_scored(write: Write, rubric: Path, run: Run) -> None:
    assert (
        run("score", write("d.jsonl", ROWS[0], ROWS[0], ROWS[1], ROWS[0]), "--rubric", rubric, *YES).exit_code == 0
    )
    assert [record["id"] for record in records(Path("d.rewards.jsonl"))] == ["r0", "r0", "r1", "r0"]


def test_parquet_holds_the_same_as_json_lines(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    data = write("d.jsonl", *ROWS)
    for name in ("o.jsonl", "o.parquet"):
        assert run("score", data, "--rubric", rubric, "--out", tmp_path / name, *YES).exit_code == 0
    lines = records(tmp_path / "o.jsonl")
    rows = [row.record for row in read_rows(tmp_path / "o.parquet")]
    for name in ("id", "line", "value", "status", "coverage", "vetoed_by", "judge_fingerprint"):
        assert [row[name] for row in rows] == [record[name] for record in lines]


def test_a_holistic_judge_gives_one_verdict_on_the_whole(
    write: Write, rubric: Path, run: Run, tmp_path: Path
) -> None:
    script = write("judge.jsonl", {"text": '{"reason": "fine", "rating": 7}'})
    result = run(
        "score", write("d.jsonl", *ROWS[:2]), "--rubric", rubric, "--judge", f"mock:{script}", "--mode", "holistic",
        "--page", tmp_path / "p.html", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert [value(record) for record in records(Path("d.rewards.jsonl"))] == pytest.approx([6 / 9, 6 / 9])
    assert "overall" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_a_page_is_written_on_request(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    rows = [*ROWS[:4], {"id": "evil", "prompt": "p", "response": "</script><script>alert(1)</script>"}]
    data = write("d.jsonl", *rows)
    assert run("score", data, "--rubric", rubric, "--page", page, "--page-rows", 5, *YES).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('<tr><th scope="row">') == 5
    assert "<script>alert" not in text


def test_a_dry_run_counts_and_writes_nothing(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    data = write("d.jsonl", *ROWS)
    before = sorted(tmp_path.iterdir())
    result = run("score", data, "--rubric", rubric, "--dry-run", *YES)
    assert result.exit_code == 0
    assert sorted(tmp_path.iterdir()) == before
    counts = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in result.stdout.splitlines()}
    assert (counts["responses"], counts["checks by code"], counts["calls, without retries"]) == ("7", "7", "7")


def test_other_settings_are_refused_until_restart(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    data, out = write("d.jsonl", *ROWS), tmp_path / "o.jsonl"
    first = ("score", data, "--rubric", rubric, "--out", out, "--judge", "none", "--quiet")
    assert run(*first).exit_code == 1
    with Journal(journal_path(out), {}, restart=True):
        pass  # as if a run with other settings had been stopped
    again = run("score", data, "--rubric", rubric, "--out", out, *YES)
    assert again.exit_code == 2
    assert 'judge: not set -> "mock:p=0.75"' in again.stderr and "--restart" in again.stderr
    assert run("score", data, "--rubric", rubric, "--out", out, "--restart", *YES).exit_code == 0
    assert None not in [value(record) for record in records(out)]


def test_a_finished_output_is_not_paid_for_twice(write: Write, rubric: Path, run: Run) -> None:
    arguments = ("score", write("d.jsonl", *ROWS), "--rubric", rubric, *YES)
    assert run(*arguments).exit_code == 0
    second = run(*arguments)
    assert second.exit_code == 2
    assert "exists already" in second.stderr


def test_two_processes_cannot_write_one_output(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    with Journal(journal_path(out), {}):
        result = run("score", write("d.jsonl", *ROWS), "--rubric", rubric, "--out", out, *YES)
    assert result.exit_code == 2
    assert "another process" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("missing.jsonl", "--judge", "none"), "no such file"),
        (("d.jsonl", "--judge", "gtp-5", "--rubric", "rubric.json"), "does not name a model"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--aggregation", "bset"), "bset"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--out", "o.txt"), "o.txt"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--out", "no/o.jsonl"), "folder"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--out", "d.jsonl"), "input file"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--missing", "skip"), "--min-coverage"),
        (
            ("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--missing", "skip", "--min-coverage", "3"),
            "error: --min-coverage: ",
        ),
        (("d.jsonl", "--judge", "mock:yes", "--rubric", "rubric.json", "--budget", "1"), "--prices"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--min-coverage", "0.5"), "--missing skip"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--aggregation", "rar"), "--weight-default"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--import", "no.such"), "--import no.such"),
        (("d.jsonl", "--judge", "none", "--rubric", "rubric.json", "--import", "d.py"), "--import d.py"),
        (("d.jsonl", "--judge", "none"), "no rubric"),
        (("bad.jsonl", "--judge", "none", "--rubric", "rubric.json"), "bad.jsonl:2"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(
    write: Write, rubric: Path, run: Run, arguments: tuple[str, ...], says: str
) -> None:
    write("d.jsonl", *ROWS)
    Path("bad.jsonl").write_text(json.dumps(ROWS[0]) + "\n{oh\n", encoding="utf-8")
    result = run("score", *arguments)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output
    assert not list(Path().glob("*.journal"))


def test_a_pipe_is_refused(run: Run, rubric: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    result = run("score", tmp_path / "pipe.jsonl", "--rubric", rubric, *YES)
    assert result.exit_code == 2
    assert "save it to a file" in result.stderr


def test_data_that_changes_under_the_run_is_found_out(
    write: Write, rubric: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write("d.jsonl", *ROWS)
    whole = score_units

    async def meddling(*arguments: Any, **options: Any) -> Scored:
        scored = await whole(*arguments, **options)
        write("d.jsonl", *ROWS[1:])
        return scored

    with monkeypatch.context() as patch:
        patch.setattr(score_module, "score_units", meddling)
        result = run("score", data, "--rubric", rubric, *YES)
    assert result.exit_code == 2
    assert "changed while it was scored" in result.stderr
    assert run("score", data, "--rubric", rubric, *YES).exit_code == 0
    assert [record["id"] for record in records(Path("d.rewards.jsonl"))] == [row["id"] for row in ROWS[1:]]


def test_a_full_disk_is_an_error_that_says_what_is_kept(
    write: Write, rubric: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module.os, "write", full)
    result = run("score", write("d.jsonl", *ROWS), "--rubric", rubric, *YES)
    assert result.exit_code == 2
    assert "No space left" in result.stderr and "Traceback" not in result.stderr


def test_debug_shows_the_traceback(run: Run) -> None:
    result = run("score", "missing.jsonl", "--judge", "none", "--debug")
    assert isinstance(result.exception, FileNotFoundError | ValueError)


@pytest.mark.parametrize(
    "name", ["d.jsonl", "link.html", "rubric.json", "o.jsonl", "o.jsonl.journal", "sub", "no/p.html"]
)
def test_a_page_takes_the_place_of_nothing_else(
    name: str, write: Write, rubric: Path, run: Run, tmp_path: Path
) -> None:
    data, out = write("d.jsonl", *ROWS), tmp_path / "o.jsonl"
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.html").symlink_to(data)
    before = data.read_bytes(), rubric.read_bytes()
    result = run("score", data, "--rubric", rubric, "--out", out, "--page", tmp_path / name, *YES)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and "hint: " in result.stderr
    assert (data.read_bytes(), rubric.read_bytes()) == before
    assert not out.exists() and not journal_path(out).exists()  # said before anything was scored


@pytest.mark.parametrize("name", ["rubric.jsonl", "sub.jsonl"])
def test_not_even_a_restart_writes_over_the_rubric_or_a_folder(
    name: str, write: Write, rubric: Path, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "sub.jsonl").mkdir()
    copy = rubric.rename(tmp_path / "rubric.jsonl")
    copy.write_text(json.dumps(json.loads(copy.read_text())) + "\n")
    before = copy.read_bytes()
    result = run("score", write("d.jsonl", *ROWS), "--rubric", copy, "--out", tmp_path / name, "--restart", *YES)
    assert result.exit_code == 2
    assert copy.read_bytes() == before
    assert not journal_path(tmp_path / name).exists()


def test_an_output_that_another_process_finishes_meanwhile_is_not_scored_again(
    write: Write, rubric: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process ends while this one reads its input: between the look at the output and the lock."""
    data, out = write("d.jsonl", *ROWS), tmp_path / "o.jsonl"

    def finish(options: object, inputs: object, reward: object) -> dict[str, object]:
        out.write_text("done\n")
        return {}

    monkeypatch.setattr(score_module, "_settings", finish)
    result = run("score", data, "--rubric", rubric, "--out", out, *YES)
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert out.read_text() == "done\n"
    assert not journal_path(out).exists()


def test_why_nothing_was_scored_is_said_on_the_console(
    write: Write, rubric: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = run("score", write("d.jsonl", *ROWS[:1]), "--rubric", rubric, "--judge", "openai:x", "--quiet")
    assert result.exit_code == 1
    assert "1 of 1 response could not be scored" in result.stderr
    assert "infrastructure: request: there is no API key" in result.stderr
    assert "hint: set OPENAI_API_KEY" in result.stderr
    assert "run the same command again" in result.stderr


def test_criteria_without_importance_can_be_given_a_weight(write: Write, rubric: Path, run: Run) -> None:
    data = write("d.jsonl", ROWS[1])
    arguments = ("score", data, "--rubric", rubric, "--aggregation", "rar", "--weight-default", "1", *YES)
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert records(Path("d.rewards.jsonl"))[0]["value"] == 1.0


OWN = """
from rubricate.judges.verifiers import Input, verifier

@verifier("shouts_for_test")
def shouts(given: Input, args: object) -> bool:
    return given.response.isupper()
"""


@pytest.mark.parametrize("name", ["own_checks.py", "own_checks_module"])
def test_verifiers_of_ones_own_can_be_imported(write: Write, start: Start, tmp_path: Path, name: str) -> None:
    (tmp_path / name.removesuffix(".py")).with_suffix(".py").write_text(OWN)
    criterion = {"id": "shouts", "text": "It shouts.", "verifier": {"name": "shouts_for_test"}}
    rubric = {"criteria": [criterion]}
    rows = [{"prompt": "p", "response": text, "rubric": rubric} for text in ("HEY", "hey")]
    with start("score", write("d.jsonl", *rows), "--judge", "none", "--import", name, "--quiet") as process:
        _, errors = process.communicate(timeout=120)  # a process of its own: what is registered stays registered
    assert process.returncode == 0, errors
    assert [value(record) for record in records(Path("d.rewards.jsonl"))] == [1.0, 0.0]


def test_an_import_that_fails_is_one_line(write: Write, rubric: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import sys\nsys.exit('oh no')\n")
    result = run("score", write("d.jsonl", *ROWS), "--rubric", rubric, "--import", "broken.py", *YES)
    assert result.exit_code == 2
    assert "--import broken.py: SystemExit: oh no" in result.stderr
    assert "Traceback" not in result.stderr
