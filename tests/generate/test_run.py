"""Whole runs of `rubricate generate`: what is written, what is left out and why, and what is said about it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.generate.conftest import Run, arguments, calls, lines, make_rows, records, write

from rubricate.data.io import read_rows
from rubricate.narrow import as_array, as_object
from rubricate.rubrics.formats import parse_rubric

REPORT = Path("out") / "report.json"


def report(folder: Path = Path("out")) -> dict[str, object]:
    return json.loads((folder / "report.json").read_text())


def rubric_ids(record: dict[str, object]) -> tuple[str, ...]:
    return parse_rubric(record["rubric"], format="native").ids


def recipe(path: Path, *steps: object, **more: object) -> Path:
    model = f"logged:{Path('calls').absolute()}"
    path.write_text(json.dumps({"model": model, "steps": list(steps), **more}))
    return path


REFERENCE = {"generate": "reference", "options": {"least": 3, "max_attempts": 2}}


def test_rows_with_their_rubrics_a_card_and_why_others_have_none(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 60, topic="sky")
    result = run(*arguments(rows))
    assert result.exit_code == 0, result.output
    written = records(tmp_path / "out")
    assert [row["id"] for row in written] == [str(n + 1) for n in range(60) if n != 49]
    assert all(row["topic"] == "sky" and row["reference"] for row in written)
    assert rubric_ids(written[0]) == ("cause", "colour", "sea")
    first = parse_rubric(written[0]["rubric"], format="native").criteria[0]
    assert first.provenance is not None
    assert first.provenance.generator == "reference"
    (lost,) = lines(tmp_path / "out" / "dropped.jsonl")
    assert (lost["id"], lost["row"], lost["step"]) == ("50", 50, "reference")
    found = report()
    assert (found["rows"], found["written"], found["worth_another_run"]) == (60, 59, 0)
    assert found["criteria_of_a_rubric"] == {"3": 59}
    assert found["polarities"] == {"reward": 118, "penalty": 59}
    assert (as_object(found["usage"]) or {})["calls"] == len(calls()) == 60 + 6 + 1
    card = (tmp_path / "out" / "README.md").read_text()
    for said in ("59 of 60 rows of `rows.jsonl`", "penalty | 59 | 33.3%", "<svg", "data/train-*.jsonl", "topic"):
        assert said in card
    (made_by,) = as_array(found["made_by"]) or [None]
    assert str((as_object(made_by) or {})["prompt"]) in card
    assert "calls, at least 60" in " ".join(result.stderr.split())
    assert "60 of 60 rows" in result.stderr
    assert "1 without a rubric" in result.stderr


def test_a_dry_run_says_what_it_would_cost_and_asks_nothing(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 500)
    result = run(*arguments(rows, "--dry-run", "--prices", "10,100", "--option", "max_tokens=1000"))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())  # from a sample of 200 rows
    assert "calls, at least 500" in said
    assert "answer tokens, at most 500,000" in said
    low, high = result.stdout.split("cost of these")[1].split()[0:3:2]
    assert float(high) - float(low) == pytest.approx(50.0)
    assert not calls()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logged_model.py", "rows.jsonl"]


def test_filters_take_criteria_and_rubrics_out_and_say_why(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 5)
    form = {"filter": "form", "options": {"max_words": 7}}
    chain = recipe(tmp_path / "r.json", REFERENCE, form)
    usual = ["--in", rows, "--out", "out", "--recipe", chain, "--import", "logged_model.py", "--quiet"]
    assert run(*usual).exit_code == 0
    assert {rubric_ids(row) for row in records(tmp_path / "out")} == {("cause", "sea")}
    dropped = as_object(report()["dropped_criteria"]) or {}
    assert dropped == {"form: more than … words": 5}
    asked = len(calls())
    stricter = run(*usual, "--restart", "--set", "steps.1.options.min_criteria=3")
    assert stricter.exit_code == 1  # nothing is left
    assert len(calls()) == 2 * asked
    assert [lost["step"] for lost in lines(tmp_path / "out" / "dropped.jsonl")] == ["form"] * 5
    assert report()["lost"] == {"form: filtered": 5}


def test_answers_that_are_kept_pay_for_a_run_with_other_filters(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 5)
    assert run(*arguments(rows, "--answers", "a.sqlite", "--quiet")).exit_code == 0
    asked = len(calls())
    again = run(*arguments(rows, "--answers", "a.sqlite", "--quiet", "--filter", "form", "--restart"))
    assert again.exit_code == 0, again.output
    assert len(calls()) == asked
    assert len(records(tmp_path / "out")) == 5


def test_hygiene_before_saves_calls_and_splits_by_prompt(run: Run, tmp_path: Path) -> None:
    rows = [{"prompt": f"Explain thing {n}: why is the sky blue there?", "reference": "r"} for n in range(40)]
    path = write(tmp_path / "rows.jsonl", [*rows, *rows[:5]])
    bench = write(tmp_path / "bench.jsonl", [{"prompt": "Explain thing 7: why is the sky blue there?"}])
    hygiene = {
        "splits": {"train": 0.7, "test": 0.3},
        "benchmarks": {"mine": str(bench)},
        "licence": "MIT",
        "source": "hand",
    }
    chain = recipe(tmp_path / "r.json", {"hygiene": hygiene}, REFERENCE, output={"rows_per_shard": 10})
    result = run("--in", path, "--out", "out", "--recipe", chain, "--import", "logged_model.py", "--quiet")
    assert result.exit_code == 0, result.output
    assert {number for number, _ in calls()} == set(range(40)) - {7}
    lost = {int(str(one["row"])): one["kind"] for one in lines(tmp_path / "out" / "dropped.jsonl")}
    assert lost[8] == "contaminated"
    assert {lost[row] for row in (41, 42, 43, 44, 45)} == {"exact_duplicate"}
    assert "it has the prompt of row 1" in (tmp_path / "out" / "dropped.jsonl").read_text()
    written = records(tmp_path / "out")
    assert len(written) + len(lost) == 45
    assert {row["license"] for row in written} == {"MIT"}
    files = sorted(path.name for path in (tmp_path / "out" / "data").iterdir())
    assert {name.split("-")[0] for name in files} == {"train", "test"}
    for name in files:
        shard = lines(tmp_path / "out" / "data" / name)
        assert {row["split"] for row in shard} == {name.split("-")[0]}
        assert len(shard) <= 10
    assert 'license: "MIT"' in (tmp_path / "out" / "README.md").read_text()


def test_hygiene_after_takes_a_row_that_repeats_one_with_a_rubric(run: Run, tmp_path: Path) -> None:
    rows = [{"prompt": f"Explain thing {n}: why?", "reference": "r"} for n in (1, 2, 1, 2, 3)]
    path = write(tmp_path / "rows.jsonl", rows)
    chain = recipe(tmp_path / "r.json", REFERENCE, {"hygiene": {"duplicates": "exact"}})
    assert run("--in", path, "--out", "out", "--recipe", chain, "--import", "logged_model.py").exit_code == 0
    assert [row["id"] for row in records(tmp_path / "out")] == ["1", "2", "5"]
    assert len(calls()) == 3  # the same question is asked once
    assert report()["lost"] == {"hygiene: exact_duplicate": 2}
    assert (as_object(report()["hygiene_after"]) or {})["kept"] == 3


def test_rows_without_what_the_method_needs_are_left_out_and_cost_nothing(run: Run, tmp_path: Path) -> None:
    rows = [{"prompt": "Explain thing 1: why?", "reference": "r"}, {"prompt": "Explain thing 2: why?"}]
    result = run(*arguments(write(tmp_path / "rows.jsonl", rows)))
    assert result.exit_code == 0
    assert "1 row cannot have a rubric: reference needs a reference answer" in result.stderr
    assert [row["id"] for row in records(tmp_path / "out")] == ["1"]
    assert calls() == [(1, 0)]
    assert report()["lost"] == {"reference: unfit": 1}
    none = run(*arguments(write(tmp_path / "none.jsonl", rows[1:]), "--restart"))
    assert none.exit_code == 2
    assert "no row of" in none.stderr


def test_a_row_that_cannot_be_read_is_named_before_anything_is_asked(run: Run, tmp_path: Path) -> None:
    rows = [{"prompt": "Explain thing 1: why?", "reference": "r"}, {"reference": "r"}]
    result = run(*arguments(write(tmp_path / "rows.jsonl", rows)))
    assert result.exit_code == 2
    assert "rows.jsonl:2" in result.stderr
    assert not calls()


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "datasets"])
def test_every_format_holds_the_same_rows_and_is_read_again(kind: str, run: Run, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"r{n}",
            "prompt": f"Explain thing {n}: why?",
            "reference": "r",
            "n": n,
            "tags": [{"a": n}] if n % 2 else [],
        }
        for n in range(1, 8)
    ]
    path = write(tmp_path / "rows.jsonl", rows)
    result = run(*arguments(path, "--format", kind, "--rows-per-shard", 3, "--quiet"))
    assert result.exit_code == 0, result.output
    if kind != "datasets":
        files = sorted((tmp_path / "out" / "data").iterdir())
        assert [file.name for file in files] == [f"train-0000{n}-of-00003.{kind}" for n in range(3)]
        read = [row.record for file in files for row in read_rows(file)]
        assert [{key: row[key] for key in rows[0]} for row in read] == rows
        assert as_object(read[0]["rubric"])
    # What was written is input again: its rubrics are filtered, and no model is asked.
    before = len(calls())
    chain = tmp_path / "r.json"
    chain.write_text(json.dumps({"steps": [{"filter": "form", "options": {"max_words": 7}}]}))
    again = run("--in", "out", "--out", "filtered", "--recipe", chain, "--quiet")
    assert again.exit_code == 0, again.output
    assert {rubric_ids(row) for row in records(tmp_path / "filtered")} == {("cause", "sea")}
    assert [row["id"] for row in records(tmp_path / "filtered")] == [row["id"] for row in rows]
    assert len(calls()) == before


def test_label_consistency_keeps_traces_and_prints_its_figures(run: Run, tmp_path: Path) -> None:
    rows = [
        {
            "prompt": f"Explain thing {n}: why?",
            "reference": "r",
            "chosen": "scattering of light",
            "rejected": "the sea",
        }
        for n in range(1, 5)
    ]
    model = f"logged:{Path('calls').absolute()}"
    steps = [REFERENCE, {"filter": "label_consistency", "options": {"control": 0}}]
    chain = tmp_path / "r.json"
    chain.write_text(json.dumps({"model": model, "judge": "mock:p=0.9", "steps": steps}))
    result = run(
        "--in",
        write(tmp_path / "rows.jsonl", rows),
        "--out",
        "out",
        "--recipe",
        chain,
        "--import",
        "logged_model.py",
    )
    assert result.exit_code in (0, 1), result.output
    figures = as_object(report()["figures"]) or {}
    assert "label_consistency.keep_rate" in figures
    assert "label_consistency.keep_rate" in result.stdout
    assert "not estimated" in result.stderr
    assert report()["rows"] == 4


def test_a_folder_that_is_there_is_replaced_only_if_it_is_a_data_set(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 3)
    assert run(*arguments(rows, "--quiet")).exit_code == 0
    again = run(*arguments(rows, "--quiet"))
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert run(*arguments(rows, "--quiet", "--restart", "--limit", 2)).exit_code == 0
    assert len(records(tmp_path / "out")) == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    command = arguments(rows, "--restart")
    command[command.index("out")] = "mine"
    other = run(*command)
    assert other.exit_code == 2
    assert "no data set that was written here" in other.stderr
    command[command.index("mine")] = "rubrics.jsonl"
    named = run(*command)
    assert named.exit_code == 2
    assert "a data set is a folder: use rubrics" in named.stderr


def test_a_push_without_a_token_is_refused_before_anything_is_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    result = run(*arguments(make_rows(tmp_path / "rows.jsonl", 3), "--push", "me/rubrics"))
    assert result.exit_code == 2
    assert "--push needs a token" in result.stderr
    assert not calls()


def test_a_method_without_a_model_and_rows_of_a_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("Q,answer\nWhy is the sky blue?,Scattering\nWhy is it red?,Long paths\n")
    result = run("--in", "rows.csv", "--out", "out", "--method", "predefined", "--column", "prompt=Q", "--quiet")
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in records(tmp_path / "out")] == ["2", "3"]
    assert (as_object(report()["usage"]) or {})["calls"] == 0


def test_a_rubric_of_all_rows(run: Run, tmp_path: Path) -> None:
    """Criteria of the rows' rubrics are gathered; nothing is written for rows that have rubrics already."""
    rows = [
        {
            "prompt": f"Explain thing {n}: why?",
            "chosen": "scattering",
            "rejected": "sea",
            "rubric": {"criteria": [{"id": "a", "text": text}]},
        }
        for n, text in enumerate(
            ("The response names scattering.", "The response is short.", "The response is kind."), 1
        )
    ]
    chain = tmp_path / "r.json"
    gather = {"gather": "auto_rubric_core", "options": {"themes": 0, "min_gain": 0.0}}
    keep = {"filter": "form"}
    fields = {"model": "mock:no", "judge": "mock:no", "embedder": "mock", "steps": [keep, gather]}
    chain.write_text(json.dumps(fields))
    result = run("--in", write(tmp_path / "rows.jsonl", rows), "--out", "out", "--recipe", chain, "--quiet")
    assert result.exit_code == 0, result.output
    found = parse_rubric(json.loads((tmp_path / "out" / "rubric.json").read_text()), format="native")
    assert 1 <= len(found) <= 3
    assert found.scope.value == "dataset"
    assert len(records(tmp_path / "out")) == 3
    assert "Rubrics of all rows" in (tmp_path / "out" / "README.md").read_text()


def test_rubrics_of_two_models_are_merged(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 3)
    merge = {"generate": "merge", "model": "mock:no", "options": {"cosine": 1.0}}
    free = {
        "generate": "reference",
        "options": {"least": 3, "max_attempts": 2, "reference": "none", "weights": "v1"},
    }
    chain = recipe(tmp_path / "r.json", REFERENCE, free, merge, embedder="mock")
    result = run("--in", rows, "--out", "out", "--recipe", chain, "--import", "logged_model.py", "--quiet")
    assert result.exit_code == 0, result.output
    assert all(len(rubric_ids(row)) in (3, 6) for row in records(tmp_path / "out"))
    assert Counter(number for number, _ in calls()) == {0: 4, 1: 2, 2: 2}  # row 0 is asked again by both
