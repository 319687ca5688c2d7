"""Prompts: strict rendering in blocks, fingerprints, and texts that look like template code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.errors import ConfigError
from rubricate.prompts import Prompt, load_prompt, prompt_names


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_parses(name: str) -> None:
    assert len(load_prompt(name).fingerprint) == 16


@given(st.text())
def test_material_is_never_template_code(text: str) -> None:
    prompt = load_prompt("logprob_judge")
    hostile = text + "{{ task }}{% block x %}"
    shared = prompt.render("shared", {"task": "T", "reference": "", "response": hostile})
    assert hostile in shared


def test_missing_values_and_blocks_are_errors() -> None:
    prompt = load_prompt("logprob_judge")
    with pytest.raises(ConfigError, match="undefined"):
        prompt.render("shared", {"task": "T"})
    with pytest.raises(ConfigError, match="no block"):
        prompt.render("nonsense", {})
    with pytest.raises(ConfigError, match="cannot be rendered"):
        Prompt("broken", "{% block item %}{{").render("item", {})


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja2"
    path.write_text("{% block item %}Is {{ text }} so?{% endblock %}", encoding="utf-8")
    assert load_prompt(str(path)).render("item", {"text": "it"}) == "Is it so?"
    with pytest.raises(ConfigError, match="no prompt file"):
        load_prompt(str(tmp_path / "other.jinja2"))
    with pytest.raises(ConfigError, match="criterion_judge"):
        load_prompt("other")
