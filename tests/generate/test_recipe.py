"""Recipes: what is wrong is named by its key, with the nearest right one, before anything is asked."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.generate.conftest import Run, make_rows

from rubricate.chat.mock import MockModel
from rubricate.cli.backing import Bounds
from rubricate.cli.generating_parts import Workshop
from rubricate.data.records import Rollout
from rubricate.embed import Embedder, MockEmbedder
from rubricate.errors import ConfigError
from rubricate.judges import PairwiseJudge, ScriptedJudge
from rubricate.rubrics import Rubric
from rubricate.rubrics.filters import Form, LabelConsistency, PairJudgeLike, Redundancy
from rubricate.rubrics.generators.base import DatasetGenerator, Generator
from rubricate.rubrics.generators.reference import ReferenceGenerator
from rubricate.rubrics.pipeline import FILTERS, METHODS, Chain, WorkRow, build_method, load_generate_recipe
from rubricate.rubrics.pipeline.building import Names, options_model
from rubricate.rubrics.pipeline.filtering import build_filter
from rubricate.types import Judge

CRITERIA = [{"title": "Cause", "description": "Essential Criteria: The response names scattering as the cause."}]
ALL = Names("m", "j", "e")


class Mocks:
    """Mock models, judges and embedders; remembers what was asked for."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []

    def model(self, name: str) -> MockModel:
        self.given.append(("model", name))
        return MockModel("no", name=name)

    def judge(self, name: str) -> Judge[Rollout, Rubric]:
        self.given.append(("judge", name))
        return ScriptedJudge()

    def pair_judge(self, name: str) -> PairJudgeLike:
        self.given.append(("pair_judge", name))
        return PairwiseJudge(MockModel("no"))

    def embedder(self, name: str) -> Embedder:
        self.given.append(("embedder", name))
        return MockEmbedder()

    def check(self) -> None:
        return None

    async def aclose(self) -> None:
        return None


def steps(*given: Mapping[str, object], **more: object) -> dict[str, object]:
    return {"model": "mock:no", "steps": list(given), **more}


REFERENCE: dict[str, object] = {"generate": "reference"}


@pytest.mark.parametrize(
    ("fields", "key", "hint"),
    [
        (steps({"generate": "reference", "modle": "x"}), "steps.0.modle", "did you mean steps.0.model?"),
        (steps(REFERENCE, outptu={}), "outptu", "did you mean output?"),
        (steps(REFERENCE, format="jsonl"), "format", "did you mean output.format?"),
        (steps(REFERENCE, output={"rows_per_shrad": 2}), "output.rows_per_shrad", "output.rows_per_shard?"),
        (steps(REFERENCE, models={"w": {"nam": "x"}}), "models.w.nam", "did you mean models.w.name?"),
        (steps({"hygiene": {"split": {}}}, REFERENCE), "steps.0.hygiene.split", "steps.0.hygiene.splits?"),
    ],
)
def test_a_wrong_key_is_answered_by_the_nearest_right_one(fields: dict[str, object], key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_generate_recipe(fields, source="r.yaml")
    assert f"r.yaml: there is no key {key!r}" in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (steps({"generate": "reference", "filter": "form"}), "a step has one of"),
        (steps({}), "a step has one of"),
        (steps({"hygiene": {}}), "no step that generates"),
        (steps(REFERENCE, {"hygiene": {}}, REFERENCE), "hygiene is the first step or the last"),
        (steps({"gather": "auto_rubric_core"}, REFERENCE), "gather comes last"),
        (steps({"hygiene": {}, "model": "x"}, REFERENCE), "hygiene takes no model"),
        (steps(REFERENCE, output={"rows_per_shard": 0}), "output.rows_per_shard"),
        (steps(REFERENCE, output={"format": "csv"}), "output.format"),
        ({"steps": []}, "steps"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_generate_recipe(fields)


def test_a_recipe_is_read_from_yaml_and_changed_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("model: mock:no\nsteps:\n- generate: reference\n  options: {least: 3}\n- filter: form\n")
    recipe = load_generate_recipe(path, ["steps.0.options.least=5", "output.format=parquet", "columns.prompt=q"])
    assert recipe.steps[0].options == {"least": 5}
    assert recipe.output.format == "parquet"
    assert recipe.columns == {"prompt": "q"}
    for change, said in (("steps.9.judge=x", "no element '9'"), ("nonsense", "changes nothing")):
        with pytest.raises(ConfigError, match=said):
            load_generate_recipe(path, [change])


@pytest.mark.parametrize(
    ("step", "said", "hint"),
    [
        ({"generate": "referense"}, "no method 'referense'", "did you mean reference?"),
        ({"filter": "froms"}, "no filter 'froms'", "did you mean form?"),
        ({"generate": "reference", "options": {"lest": 3}}, "steps.0.options.lest", "steps.0.options.least?"),
        ({"generate": "reference", "options": {"least": "many"}}, "steps.0.options.least", ""),
        ({"generate": "reference", "options": {"weights": "odd"}}, "steps.0.options.weights", ""),
        ({"generate": "reference", "options": {"least": 0}}, "steps.0.options", ""),
        ({"generate": "reference", "options": {"model": "x"}}, "options.model is no option", "beside the options"),
        ({"generate": "auto_rubric_core"}, "makes one rubric of all rows", "use gather"),
        ({"gather": "reference"}, "makes a rubric a row", "use generate"),
    ],
)
def test_a_wrong_method_or_option_is_named(step: dict[str, object], said: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Chain(load_generate_recipe(steps(step)), Mocks(), source="r.yaml")
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_step_without_the_model_that_it_needs_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"steps.0: a model is needed and none is named"):
        Chain(load_generate_recipe({"steps": [REFERENCE]}), Mocks())


def test_two_rubrics_a_row_need_a_step_that_makes_one_of_them() -> None:
    two = steps(REFERENCE, {"generate": "carmo"})
    with pytest.raises(ConfigError, match="several steps write a rubric for the same row"):
        Chain(load_generate_recipe(two), Mocks())
    for refines in ("tail", "recursive"):  # they start from the first one
        Chain(load_generate_recipe(steps(REFERENCE, {"generate": refines})), Mocks())


# Needed besides model, judge and embedder.
MUST = {"policy": {"policy": "policy.md"}, "search": {"search": "bm25:docs"}}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_made_from_its_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("# Rules\n\n1. Never insult anyone.\n2. Always name a source.\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.txt").write_text("The sky is blue because short waves scatter most.")
    generator = build_method(name, MUST.get(name, {}), Mocks(), ALL)
    assert isinstance(generator, Generator | DatasetGenerator)
    assert len(generator.fingerprint) == 16
    assert pickle.loads(pickle.dumps(generator)).fingerprint == generator.fingerprint
    with pytest.raises(ConfigError, match="there is no key 'options.nonsense'"):
        build_method(name, MUST.get(name, {}) | {"nonsense": 1}, Mocks(), ALL)


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_every_filter_is_made_from_its_line(name: str) -> None:
    made = build_filter(name, {"name": "mine"}, Mocks(), ALL)
    assert made.name == "mine"
    assert made.fingerprint


def test_options_keep_the_defaults_of_the_constructor() -> None:
    """`max_tokens` of this method is 4096 unless given, which its signature does not say."""
    made = build_method("reference", {"least": 2, "temperature": 1}, Mocks(), ALL)
    assert isinstance(made, ReferenceGenerator)
    assert (made.rules.least, made.rules.most) == (2, 20)
    assert (made.asking.options.max_tokens, made.asking.options.temperature) == (4096, 1.0)
    assert "model" not in options_model(ReferenceGenerator).model_fields


def test_a_prompt_of_ones_own_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja2"
    path.write_text(
        "{% block system %}S{% endblock %}{% block shared %}{{ task }}{% endblock %}{% block item %}{% endblock %}"
    )
    made = build_method("reference", {"prompt": str(path)}, Mocks(), ALL)
    assert isinstance(made, ReferenceGenerator)
    assert made.prompt.render("system", {}) == "S"


def test_parts_are_given_where_they_are_needed_or_named() -> None:
    mocks = Mocks()
    assert isinstance(build_filter("label_consistency", {"tau": 0.7}, mocks, ALL), LabelConsistency)
    form = build_filter("form", {"min_criteria": 5}, mocks, ALL)
    assert isinstance(form, Form)
    assert form.rules.min_criteria == 5
    plain = build_filter("redundancy", {}, mocks, ALL)
    assert isinstance(plain, Redundancy)
    assert not plain.verdicts  # a judge that the recipe names for other steps does not make it judge
    judged = build_filter("redundancy", {}, mocks, Names("m", "j", "e", frozenset({"judge"})))
    assert isinstance(judged, Redundancy)
    assert judged.verdicts
    assert mocks.given == [("pair_judge", "j"), ("embedder", "e"), ("embedder", "e"), ("judge", "j")]


async def test_a_chain_pickles_with_what_the_command_supplies(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": json.dumps({"criteria": CRITERIA})}) + "\n")
    fields = steps({"generate": "reference", "options": {"least": 1}}, {"filter": "form"})
    fields["model"] = f"mock:{script}"
    read = load_generate_recipe(fields)
    chain = Chain(read, Workshop(read, Bounds(concurrency=2), tmp_path / "answers.sqlite"))
    copy = pickle.loads(pickle.dumps(chain))
    assert chain.identity() == copy.identity()
    row = WorkRow(0, "rows", 1, "1", {"prompt": "Why is the sky blue?", "reference": "r"})
    (outcome,) = await copy([row])
    assert json.loads(json.dumps(outcome))["rubric"]["criteria"][0]["id"] == "cause"
    await copy.aclose()


def test_what_is_wrong_is_said_before_anything_is_asked(run: Run, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.jsonl", 3)
    usual = ["--in", rows, "--out", "out"]
    for more, said in (
        (["--method", "referense"], "did you mean reference?"),
        ([], "give a method or a recipe"),
        (["--method", "reference", "--recipe", "r.yaml"], "give a method or a recipe"),
        (["--method", "reference", "--model", "mock:no", "-o", "lest=2"], "did you mean steps.0.options.least?"),
        (["--method", "reference", "--model", "mock:no", "--filter", "frm"], "did you mean form?"),
        (["--method", "reference"], "a model is needed"),
        (["--method", "reference", "--model", "mock:no", "--engine", "spark"], "no engine 'spark'"),
        (["--method", "predefined", "--column", "promt=q"], "no role 'promt'"),
    ):
        result = run(*usual, *more)
        assert result.exit_code == 2, result.output
        assert said in result.stderr
    assert not (tmp_path / "out").exists()
