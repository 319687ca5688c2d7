"""`rubricate doctor`: its screen, its JSON, its exit codes, and its advice."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import typer
from tests.doctor.conftest import competent
from typer.testing import CliRunner, Result

from rubricate.chat import TokenLogprob
from rubricate.chat.base import Capabilities
from rubricate.chat.probing import Finding, ModelReport, Sign
from rubricate.chat.testserver import Faults, FaultyServer, prompt_text
from rubricate.cli import doctor as command
from rubricate.cli.doctor_advice import advise, mode_costs
from rubricate.cli.doctor_command import doctor
from rubricate.cli.installed import Extra, Install, Lack

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`run("mock:yes", "--json")` runs the command in this process."""
    monkeypatch.setenv("RUBRICATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-topsecret")
    app = typer.Typer()
    app.command()(doctor)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    return call


def test_without_models_nothing_is_asked(run: Run, tmp_path: Path) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    for part in (
        "python",
        "memory",
        "free",
        "OPENAI_API_KEY set",
        "local",
        "rubricate doctor http://localhost:8000/v1",
    ):
        assert part in result.stdout
    assert "sk-topsecret" not in result.output
    assert "probing" not in result.stderr
    assert len(result.stdout.splitlines()) <= 30
    assert not (tmp_path / "cache").exists()


def test_no_heavy_library_is_imported() -> None:
    code = (
        "import sys; from rubricate.cli.doctor import DoctorOptions, run_doctor; run_doctor(DoctorOptions());"
        "heavy = {'torch', 'transformers', 'trl', 'openai', 'aiohttp', 'jsonschema'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_json_holds_all_of_it(run: Run) -> None:
    result = run("mock:p=0.8", "--json", "--prices", "1,2")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert {"rubricate", "machine", "gpu", "variables", "cache", "extras", "models", "seconds"} <= record.keys()
    assert record["variables"]["OPENAI_API_KEY"] == "set"
    (model,) = record["models"]
    assert model["answers"] is True
    assert model["findings"]["logprobs"]["came"] == 2
    assert model["answer_mass"][0]["yes"] == pytest.approx(0.8)
    assert model["usage"]["cost"] > 0
    assert {cost["mode"] for cost in record["costs_of_10_criteria"]} == {
        "logprob",
        "reasoned",
        "holistic",
        "likert",
    }
    assert "at most" in result.stderr and "in money" in result.stderr


def test_a_real_server_on_the_screen(run: Run) -> None:
    with FaultyServer(competent) as server:
        result = run(server.name)
    assert result.exit_code == 0, result.output
    for part in ("where yes is right: yes 0.90", "?prefill=true", "=> --mode", "one response, 10 criteria"):
        assert part in result.stdout, part
    assert "of 1,3" in result.stdout and "prompt tokens from its cache" in result.stdout


def test_log_probabilities_are_asked_for_as_our_judge_asks(run: Run) -> None:
    with FaultyServer(competent, record=True) as server:
        run(server.name)
        asked = [prompt_text(body) for body in server.bodies if body.get("logprobs")]
    assert len(asked) == 2
    assert all("You check statements" in text and "Two plus two is four." in text for text in asked)
    assert "Statement: It says four." in asked[0] and "Statement: It names an animal." in asked[1]


def test_one_model_that_does_not_answer_is_code_1_and_the_others_are_probed(run: Run) -> None:
    with FaultyServer(competent, Faults(hang=1.0)) as server:
        result = run(server.name, "mock:yes", "mock:error", "--timeout", "0.3", "--json")
    assert result.exit_code == 1, result.output
    models = json.loads(result.stdout)["models"]
    assert [model["answers"] for model in models] == [False, True, False]
    assert models[0]["advice"]["mode"] is None


def test_a_missing_package_is_a_finding_with_its_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without_torch(name: str) -> ModuleSpec | None:
        return None if name == "torch" else real(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_torch)
    result = run("local:smollm2")
    assert result.exit_code == 1
    assert "'torch' is needed" in result.stdout
    assert "pip install 'rubricate[local]'" in result.stdout


def test_needed_extras(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("--need", "base").exit_code == 0
    lack = Lack("trl", ">=1.6", "1.0")
    train = Extra("train", {"trl": "1.0"}, (lack,), "pip install 'rubricate[train]'")

    def extras(install: Install) -> dict[str, Extra]:
        return {"train": train}

    monkeypatch.setattr(command, "read_extras", extras)
    result = run("--need", "train")
    assert result.exit_code == 1
    assert "trl 1.0, needs >=1.6" in result.stdout
    assert result.stdout.splitlines()[-1] == "needed and not there: train -> pip install 'rubricate[train]'"
    assert json.loads(run("--need", "train", "--json").stdout)["lacking"] == ["train"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("gpt-5-mini",), "openai:gpt-5-mini"),
        (("mock:sometimes",), "mock:sometimes"),
        (("mock:yes", "--need", "trian"), "trian"),
        (("mock:yes", "--prices", "cheap"), "--prices"),
        (("mock:yes", "--prices", "-1,2"), "prompt_price"),
        (("http://user:pw@host/v1",), "password"),
    ],
)
def test_bad_input_is_code_2_before_anything_is_asked(run: Run, arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


def report(*findings: Finding, yes: float = 0.9, no: float = 0.1, **fields: object) -> ModelReport:
    """A report of a model that answers, with P(yes) of the two questions and no other mass."""
    tokens = tuple(_token(p) for p in (yes, no))
    known = (Finding("answers", Sign.YES), *findings)
    return ModelReport("http://h/v1#m", known, Capabilities(True, True), first_tokens=tokens, **fields)  # pyright: ignore[reportArgumentType] -- test


def _token(p: float) -> TokenLogprob:
    return TokenLogprob("yes", math.log(p), (("yes", math.log(p)), ("No", math.log(1 - p))))


def test_advice_follows_what_was_found() -> None:
    cached = advise(report(Finding("prefix_cache", Sign.YES)))
    assert (cached.mode, cached.criteria_per_call, cached.logprob) == ("reasoned", 1, True)
    assert advise(report(Finding("prefix_cache", Sign.UNLIKELY))).criteria_per_call == 5
    assert advise(report(Finding("prefix_cache", Sign.UNKNOWN))).criteria_per_call == 1
    refused = advise(report(Finding("json_schema", Sign.FAILED, "HTTP 400")))
    assert any("?schema=none" in reason for reason in refused.reasons)
    assert not any("?schema" in reason for reason in advise(report(Finding("json_schema", Sign.YES))).reasons)
    assert any("does not tell" in reason for reason in advise(report(yes=0.6, no=0.6)).reasons)
    assert any("calibrating" in reason for reason in advise(report(yes=0.7, no=0.6)).reasons)
    assert advise(ModelReport("m", (Finding("answers", Sign.FAILED),))).mode is None


def test_no_log_probability_judge_where_yes_and_no_have_no_mass() -> None:
    think = TokenLogprob("<think>", -0.01, (("<think>", -0.01), ("yes", -5.0)))
    found = ModelReport("m", (Finding("answers", Sign.YES),), first_tokens=(think, think))
    advice = advise(found)
    assert advice.logprob is False
    assert any("enable_thinking" in reason for reason in advice.reasons)


def test_costs_are_those_of_the_prompts_that_judges_send() -> None:
    costs = {(cost.mode, cost.criteria_per_call): cost for cost in mode_costs((1.0, 0.0))}
    assert [costs["reasoned", n].calls for n in (1, 5, None)] == [10, 2, 1]
    one, whole = costs["reasoned", 1], costs["reasoned", None]
    assert whole.prompt_tokens < one.computed_tokens < one.prompt_tokens / 5
    assert costs["logprob", 1].completion_tokens == 10
    assert one.money == pytest.approx(one.prompt_tokens / 1e6)


def test_a_mode_that_was_tried_and_failed_is_not_advised() -> None:
    unread = Finding("judgement", Sign.NO, "no JSON: 'yes' came")
    advice = advise(report(unread))
    assert advice.mode == "logprob" and any("reasoned: not possible" in reason for reason in advice.reasons)
    neither = advise(ModelReport("m", (Finding("answers", Sign.YES), unread)))
    assert neither.mode is None and "another model" in neither.reasons[0]
    assert advise(report(Finding("judgement", Sign.YES))).mode == "reasoned"
    assert advise(report(Finding("judgement", Sign.FAILED))).mode == "reasoned"


def test_the_judgement_that_was_tried_is_on_the_screen(run: Run) -> None:
    assert "judgement    yes" in run("mock:p=0.8").stdout
    said = run("mock:echo").stdout
    assert "judgement    no" in said and "take another model" in said and "--mode reasoned" not in said
