"""`rubricate score --cache` and `rubricate cache`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run, Write, records

from rubricate.cli.caching import read_age
from rubricate.errors import ConfigError

ROWS = [{"id": f"r{n}", "prompt": "Greet.", "response": f"Hello {n}."} for n in range(6)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the default cache."""
    monkeypatch.setenv("RUBRICATE_CACHE", str(tmp_path / "home"))
    return tmp_path / "home"


def score(run: Run, data: Path, rubric: Path, out: str, *options: object) -> str:
    result = run(
        "score", data, "--rubric", rubric, "--judge", "mock:p=0.75", "--mode", "logprob", "--out", out, *options
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def said(output: str, label: str) -> str:
    (line,) = [line for line in output.splitlines() if line.strip().startswith(label)]
    return line.strip().removeprefix(label).strip()


def test_a_second_run_is_paid_for_by_the_first(write: Write, rubric: Path, run: Run, home: Path) -> None:
    data = write("d.jsonl", *ROWS, ROWS[0])
    first = score(run, data, rubric, "a.jsonl", "--cache", "--quiet")
    second = score(run, data, rubric, "b.jsonl", "--quiet", "--cache")
    assert said(first, "answers from the cache") == "1 of 7" and said(first, "model calls") == "6"
    assert said(second, "answers from the cache") == "7 of 7" and said(second, "model calls") == "0"
    assert (home / "answers.sqlite").is_file()
    one, two = records(Path("a.jsonl")), records(Path("b.jsonl"))
    assert [{**record, "usage": None} for record in one] == [{**record, "usage": None} for record in two]
    assert "answers from the cache" not in score(run, data, rubric, "c.jsonl", "--quiet")


def test_a_cache_in_a_file_of_ones_own(write: Write, rubric: Path, run: Run, home: Path) -> None:
    data = write("d.jsonl", *ROWS)
    score(run, data, rubric, "a.jsonl", "--cache", "mine.sqlite", "--quiet")
    score(run, data, rubric, "b.jsonl", "--cache=mine.sqlite", "--quiet")
    assert Path("mine.sqlite").is_file() and not home.exists()
    assert said(run("cache", "stats", "--path", "mine.sqlite").stdout, "answers") == "6"


def test_a_file_that_is_no_cache_is_left_alone(write: Write, rubric: Path, run: Run) -> None:
    data = write("d.jsonl", *ROWS)
    before = data.read_bytes()
    result = run("score", data, "--rubric", rubric, "--judge", "mock:yes", "--cache", data, "--quiet")
    assert result.exit_code == 2 and "d.jsonl is damaged, or no answer cache" in result.stderr
    assert data.read_bytes() == before


def test_statistics_export_import_and_clearing(write: Write, rubric: Path, run: Run, home: Path) -> None:
    data = write("d.jsonl", *ROWS)
    score(run, data, rubric, "a.jsonl", "--cache", "--quiet")
    shown = run("cache", "stats").stdout
    assert said(shown, "answers") == "6" and "mock:p=0.75" in shown and str(home) in shown
    assert "6 answers" in run("cache", "export", "e.jsonl", "--model", "mock:p=0.75").stdout
    replayed = run(
        "score", data, "--rubric", rubric, "--judge", "replay:e.jsonl", "--mode", "logprob", "--out", "b.jsonl"
    )
    assert replayed.exit_code == 0, replayed.output
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert "6 answers added" in run("cache", "import", "e.jsonl", "--path", "other.sqlite").stdout
    assert "0 answers added" in run("cache", "import", "e.jsonl", "--path", "other.sqlite").stdout
    assert "0 answers dropped" in run("cache", "clear", "--older-than", "1h").stdout
    assert "6 answers dropped" in run("cache", "clear", "--all").stdout
    assert said(run("cache", "stats").stdout, "answers") == "0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stats",), "there is no answer cache"),
        (("clear",), "nothing says which"),
        (("clear", "--older-than", "soon"), "is no age"),
        (("export", "d.jsonl"), "exists already"),
        (("export", "none/e.jsonl"), "does not exist"),
        (("import", "d.jsonl"), "no recording"),
        (("stats", "--path", "d.jsonl"), "damaged, or no answer cache"),
    ],
)
def test_what_cannot_be_done_is_a_line_and_a_hint(
    write: Write, run: Run, home: Path, arguments: tuple[str, ...], message: str
) -> None:
    write("d.jsonl", *ROWS, *ROWS)
    result = run("cache", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr and "hint:" in result.stderr and "Traceback" not in result.output


def test_a_failed_export_leaves_nothing(write: Write, run: Run, home: Path) -> None:
    assert run("cache", "export", "e.jsonl").exit_code == 2
    assert not Path("e.jsonl").exists()


def test_a_failed_import_makes_no_cache(write: Write, run: Run, home: Path) -> None:
    assert run("cache", "import", write("d.jsonl", *ROWS), "--path", "new.sqlite").exit_code == 2
    assert not Path("new.sqlite").exists()


def test_no_answer_is_older_than_all_time(write: Write, rubric: Path, run: Run, home: Path) -> None:
    run(
        "score",
        write("d.jsonl", *ROWS),
        "--rubric",
        rubric,
        "--judge",
        "mock:p=0.8",
        "--mode",
        "logprob",
        "--cache",
    )
    result = run("cache", "clear", "--older-than", "9" * 400 + "w")
    assert result.exit_code == 0 and "0 answers dropped" in result.output


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200), ("30d", 2592000), ("1w", 604800)]
)
def test_ages(text: str, seconds: float) -> None:
    assert read_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1 d", "1y"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(ConfigError, match="no age"):
        read_age(text)


def test_a_full_disk_ends_the_run(
    write: Write, rubric: Path, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    from rubricate.chat.cache_store import Store

    def full(self: Store, *_: object) -> int:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    data = write("d.jsonl", *ROWS)
    command = ("score", data, "--rubric", rubric, "--judge", "mock:yes", "--mode", "logprob", "--cache", "--quiet")
    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", full)
        result = run(*command, "--concurrency", "1")
    assert result.exit_code == 2 and "disk may be full" in result.stderr
    assert not Path("d.rewards.jsonl").exists()
    resumed = run(*command)
    assert resumed.exit_code == 0
    # what was judged before the disk was full is in the journal, and is not judged again
    assert said(resumed.stdout, "answers from the cache") == "0 of 5"
    assert len(records(Path("d.rewards.jsonl"))) == len(ROWS)
