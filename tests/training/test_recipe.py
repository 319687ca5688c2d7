"""Recipes: names, files, changes, and errors that say what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubricate.errors import ConfigError, FormatError
from rubricate.training.recipe import Recipe, load_recipe, recipe_names


@pytest.mark.parametrize("name", ["paper", "paper-generator", "small", "tiny"])
def test_recipes_that_ship_are_whole_and_say_what_they_are_for(name: str) -> None:
    assert load_recipe(name).about
    assert name in recipe_names()


def test_the_papers_settings() -> None:
    """OpenRubrics (2510.07743 v3): judge 2 epochs, 6144 tokens, batch 64, 5e-6; generator 1, 3072, 128, 8e-6."""
    judge, generator = load_recipe("paper"), load_recipe("paper-generator")
    found = [
        (r.run.epochs, r.data.max_tokens, r.run.batch, r.optimiser.learning_rate, r.optimiser.schedule, r.lora)
        for r in (judge, generator)
    ]
    assert found == [(2.0, 6144, 64, 5e-6, "cosine", None), (1.0, 3072, 128, 8e-6, "cosine", None)]


def test_changes_reach_their_key_and_nothing_else() -> None:
    plain = load_recipe("small")
    changed = load_recipe(
        "small", ["optimiser.learning_rate=2e-5", "lora.targets=[q_proj, v_proj]", "run.max_steps=3"]
    )
    assert changed.optimiser.learning_rate == 2e-5
    assert changed.lora is not None and changed.lora.targets == ("q_proj", "v_proj")
    assert changed.data == plain.data
    assert load_recipe("small", ["lora=null"]).lora is None


def test_a_resolved_recipe_reads_back_as_the_same(tmp_path: Path) -> None:
    from rubricate.data.io import write_yaml

    recipe = load_recipe("small", ["run.seed=4"])
    write_yaml(tmp_path / "r.yaml", recipe.resolved())
    assert load_recipe(tmp_path / "r.yaml") == recipe


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("run.sed=1", "did you mean run.seed?"),
        ("learning_rate=1e-4", "did you mean optimiser.learning_rate?"),
        ("optimizer.learning_rate=1e-4", "did you mean optimiser?"),
        ("run.zzz=1", "there are: epochs"),
        ("run.batch=many", "run.batch"),
        ("run.micro_batch=3", "does not divide"),
        ("run.log_every=7", "does not divide"),
        ("objective=text", "checks are for the objective answer"),
        ("data.too_long=truncate", "cannot be cut"),
        ("run.seed", "write --set key=value"),
        ("run.seed=[", "cannot be read"),
        ("run.seed=-1", "run.seed"),
        ("run.seed=5000000000", "run.seed"),
        ("run.seed=true", "expected a number, not true"),
        ("lora.alpha=yes", "expected a number, not true"),
        ("run.threads=100000000", "run.threads"),
        ("run.epochs=.inf", "finite"),
        ("optimiser.learning_rate=1e400", "finite"),
        ("optimiser.betas=[2, 3]", "optimiser.betas.0"),
        ("lora.r=1000000000", "lora.r"),
        ("data.train=checks", "expected a list, such as [a, b]"),
        ("data.train=[]", "data.train"),
        ("answer.prefill=", "in quotes, if it is to be empty"),
        ("lora=5", "expected keys with values"),
        ("run.batch=[1]", "responses with all their checks"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_meant(change: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe("small", [change])
    assert says in str(caught.value)


def test_what_is_quoted_is_text() -> None:
    changed = load_recipe("small", ["about='1e5'", "answer.prefill=''", "optimiser.learning_rate=1e-5"])
    assert (changed.about, changed.answer.prefill, changed.optimiser.learning_rate) == ("1e5", "", 1e-5)


def test_a_recipe_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="there is no recipe"):
        load_recipe("a" * 5000)
    with pytest.raises(ConfigError, match="did you mean small"):
        load_recipe("smal")


def test_a_file_that_is_no_recipe(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    for text in ("- 1\n- 2\n", "", "# nothing\n"):
        path.write_text(text)
        with pytest.raises(FormatError, match="one mapping"):
            load_recipe(path)


def test_every_field_says_what_it_is() -> None:
    for name, part in Recipe.model_fields.items():
        for key, field in getattr(part.annotation, "model_fields", {}).items():
            assert field.description, f"{name}.{key}"
