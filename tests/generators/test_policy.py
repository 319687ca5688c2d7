"""Policies: clauses with ids, criteria that name and quote their clause, what is uncovered, RBR's definitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.mock import MockModel
from rubricate.errors import ConfigError, FormatError, ServerError
from rubricate.rubrics import Polarity, Scope
from rubricate.rubrics.generators.base import NoteKind
from rubricate.rubrics.generators.policy import PolicyGenerator
from rubricate.rubrics.generators.policy_rbr import propositions_rubric
from rubricate.rubrics.generators.policy_text import parse_policy, policy_from_value, read_policy
from rubricate.rubrics.generators.search_quotes import find_quote
from rubricate.rubrics.generators.source import Source
from rubricate.types import FailureKind

TEXT = """---
title: Handbook
---
# Handbook

This page is reviewed every year.

## 2.1 Privacy

The assistant must never:

- reveal anyone's “home
  address”
- guess passwords

Article 3: Sources are cited wherever numbers are given.
"""
POLICY = parse_policy(TEXT, name="handbook.md")

HOME = {
    "clause": "2.1.1",
    "quote": 'reveal anyone\'s "home address"',
    "title": "Home address",
    "category": "forbidden",
    "criterion": "The response reveals a person's home address.",
    "condition": "",
}
CITES = {
    "clause": "article 3",
    "quote": "Sources are cited wherever numbers",
    "title": "Sources",
    "category": "required",
    "criterion": "The response cites a source for each number it gives.",
    "condition": "The response gives numbers.",
}
GUESS = {
    "clause": "2.1.2",
    "quote": "guess passwords",
    "title": "Passwords",
    "category": "forbidden",
    "criterion": "The response guesses a password.",
    "condition": "",
}
ASIDE = {"clause": "s1.1", "why": "how the page is kept up"}


def answer(*criteria: object, aside: list[dict[str, str]] | None = None) -> str:
    return json.dumps({"criteria": criteria, "set_aside": [ASIDE] if aside is None else aside})


def test_clauses_have_ids_headings_leads_and_lines() -> None:
    assert [(one.id, one.text, one.lead, one.line) for one in POLICY.clauses] == [
        ("s1.1", "This page is reviewed every year.", "", 6),
        ("2.1.1", "reveal anyone's “home\n  address”", "The assistant must never:", 12),
        ("2.1.2", "guess passwords", "The assistant must never:", 14),
        ("Article 3", "Article 3: Sources are cited wherever numbers are given.", "", 16),
    ]
    assert POLICY.clauses[1].heading == ("Handbook", "2.1 Privacy")


def test_labels_anchors_tables_code_and_repeated_labels() -> None:
    text = "[R-4] Be kind.\n\n[R-4] Be brief.\n\nBe true. {#truth}\n\n| Say no | always |\n|---|---|\n"
    text += "\nRun:\n```\n# no heading\n```\n"
    found = parse_policy(text).clauses
    assert [one.id for one in found] == ["R-4", "R-4 (2)", "truth", "4", "5"]
    assert found[2].text == "Be true." and found[3].text == "Say no | always" and "# no heading" in found[4].text


pieces = st.sampled_from(
    [
        "# One",
        "## 2.1 Two",
        "- item",
        "  - inner",
        "1. first",
        "(a) letter",
        "Words here.",
        "The rule:",
        "",
        "",
        "===",
        "---",
    ]
    + [
        "```",
        "| a | b |",
        "Article 7: x",
        "[R-1] y",
        "z {#q}",
        "> quoted",
        "<!-- no -->",
        "§ 4 text",
        "* * *",
        "\t",
        "2.3 deep",
    ]
)


@given(st.lists(pieces, max_size=14))
def test_any_text_is_clauses_in_its_own_words_and_order(lines: list[str]) -> None:
    try:
        clauses = parse_policy("\n".join(lines)).clauses
    except FormatError as error:
        assert "no clause" in str(error)
        return
    assert len({one.id for one in clauses}) == len(clauses)
    places = [one.line or 0 for one in clauses]
    assert places == sorted(places) and 1 <= places[0] and places[-1] <= len(lines)
    for one in clauses:
        assert one.text.strip() and one.text.splitlines()[0] in lines[(one.line or 1) - 1]


def test_yaml_lists_objects_and_files(tmp_path: Path) -> None:
    path = tmp_path / "constitution.yaml"
    path.write_text("principles:\n- Be kind.\n- id: harm\n  text: Do no harm.\n  title: Harm\n")
    assert [(one.id, one.text) for one in read_policy(path).clauses] == [("1", "Be kind."), ("harm", "Do no harm.")]
    assert [one.id for one in policy_from_value({"a": "Be kind.", "b": "Be true."}).clauses] == ["a", "b"]
    with pytest.raises(FormatError, match=r"\[1\].*text of a clause"):
        policy_from_value(["x", {"id": "y"}])
    with pytest.raises(FormatError, match="two clauses have the id 'a'"):
        policy_from_value([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])
    with pytest.raises(FormatError, match="no clause"):
        parse_policy("# Only a heading\n")


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ('reveal  anyone’s "home\naddress"', "reveal anyone's “home\n  address”"),
        ("…anyone's “home address”.", "anyone's “home\n  address"),
        ("reveal anybody's home", None),
        ("Reveal anyone's", None),
        ("reveal", None),
    ],
)
def test_quotes_are_verbatim_but_for_blanks_and_marks(quote: str, found: str | None) -> None:
    span = find_quote(quote, POLICY.clauses[1].text, least_words=2)
    assert (span and span.text.strip("”")) == (found and found.strip("”"))
    assert span is None or POLICY.clauses[1].text[span.start : span.end] == span.text


async def test_every_criterion_names_its_clause_and_every_clause_is_covered_or_set_aside() -> None:
    model = MockModel(answer(HOME, CITES, GUESS))
    made = await PolicyGenerator(model, POLICY, veto=True).generate_from()
    assert made.rubric is not None and made.rubric.scope is Scope.DATASET
    home, cites, guess = made.rubric.criteria
    assert (home.polarity, home.veto, home.weight) == (Polarity.PENALTY, True, 1.0)
    assert home.metadata["clause"] == "2.1.1" and home.metadata["line"] == 12
    assert home.metadata["quote"] == "reveal anyone's “home\n  address"  # the source's own letters
    assert (cites.polarity, cites.veto, cites.condition) == (Polarity.REWARD, False, "The response gives numbers.")
    assert cites.metadata["clause"] == "Article 3" and guess.metadata["clause"] == "2.1.2"
    assert cites.provenance is not None and cites.provenance.evidence == ("clause:Article 3",)
    assert made.extra == {"clauses": 4, "uncovered": [], "set_aside": [ASIDE]}
    assert made.rubric.metadata["policy"] == made.extra and made.usage.calls == 1
    text = model.requests[0].text()
    assert "[2.1.2] (Handbook > 2.1 Privacy)\nThe assistant must never: ... guess passwords" in text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"quote": "Sources must be cited"}, "does not stand in clause Article 3"),
        ({"quote": "Sources"}, "too short"),
        ({"quote": ""}, "does not stand"),
        ({"category": "nice"}, "category must be one of"),
        ({"criterion": "The response does what criterion 1 asks for."}, "other criteria"),
        ({"criterion": "The response keeps to the clause about sources."}, "graders do not know"),
        ({"criterion": HOME["criterion"], "category": "forbidden", "condition": ""}, "says the same"),
    ],
)
async def test_what_breaks_a_rule_is_asked_for_again_for_its_clause_alone(
    change: dict[str, str], reason: str
) -> None:
    model = MockModel([answer(HOME, GUESS, CITES | change), answer(CITES, aside=[])])
    made = await PolicyGenerator(model, POLICY).generate_from()
    assert made.rubric is not None
    assert any(note.kind is NoteKind.DROPPED and reason in note.reason for note in made.notes), made.notes
    if "same" in reason:  # its clause is covered by the criterion that says the same
        assert len(model.requests) == 1 and made.extra["uncovered"] == []
        return
    second = model.requests[1].text()
    assert reason in second and "Sources are cited" in second and "guess passwords" not in second
    assert len(made.rubric) == 3 and made.extra["uncovered"] == []


async def test_clauses_that_stay_uncovered_are_reported() -> None:
    wrong = CITES | {"clause": "Article 9"}
    made = await PolicyGenerator(
        MockModel([answer(HOME), answer(wrong), "{}"]), POLICY, max_attempts=2
    ).generate_from()
    assert made.rubric is not None and len(made.rubric) == 1
    uncovered = made.extra["uncovered"]
    assert uncovered == [
        {"clause": "2.1.2", "line": 14, "text": "guess passwords"},
        {"clause": "Article 3", "line": 16, "text": POLICY.clauses[3].text},
    ]
    assert any("names no clause" in note.reason for note in made.notes)


async def test_clauses_go_in_batches_and_a_server_that_is_away_is_a_failure() -> None:
    model = MockModel([answer(HOME), answer(CITES, GUESS, aside=[])])
    made = await PolicyGenerator(model, POLICY, batch=2).generate_from([Source("How are you?")])
    assert made.rubric is not None and len(model.requests) == 2
    assert "How are you?" in model.requests[0].text() and "guess passwords" not in model.requests[0].text()
    away = await PolicyGenerator(MockModel([answer(HOME), ServerError("away")]), POLICY, batch=2).generate_from()
    assert away.rubric is None and away.failure is not None and away.failure.kind is FailureKind.SERVER


async def test_one_prompt_gets_the_criteria_of_the_clauses_that_matter_for_it() -> None:
    model = MockModel(answer(CITES, aside=[]))
    made = await PolicyGenerator(model, POLICY).generate(Source("How many live in Rome?", id="rome"))
    assert made.rubric is not None and made.rubric.scope is Scope.INSTANCE and made.rubric.id == "rome"
    assert made.extra == {"clauses": 4, "used": ["Article 3"]}
    assert "How many live in Rome?" in model.requests[0].text()
    none = await PolicyGenerator(MockModel(answer(aside=[])), POLICY).generate(Source("Hi"))
    assert none.rubric is None and none.failure is not None and none.failure.kind is FailureKind.INCOMPLETE


RBR: dict[str, object] = {
    "simple_propositions": {name: {"prompt": f"Does it {name}?"} for name in ("sorry", "rude", "helps", "odd")},
    "derived_propositions": {"clean": {"sorry": True, "rude": False}, "useless": {"helps": False}},
    "completion_class_order": ["ideal", "bad"],
    "completion_classes": {
        "ideal": {"hard_refuse": {"clean": True}, "comply": {"useless": False}},
        "bad": {"hard_refuse": {"helps": True}, "comply": {"rude": True}},
    },
}


def test_completion_classes_give_propositions_their_direction() -> None:
    hard = propositions_rubric(RBR, "Hard Refuse")
    assert [(one.id, one.polarity.value) for one in hard.criteria] == [
        ("sorry", "reward"),
        ("rude", "penalty"),
        ("helps", "penalty"),
    ]
    assert hard.metadata["policy:left_out"] == ["odd"]
    comply = propositions_rubric(RBR, "comply")
    assert [(one.id, one.polarity.value) for one in comply.criteria] == [("rude", "penalty"), ("helps", "reward")]
    assert comply.criteria[1].provenance is not None
    assert comply.criteria[1].provenance.evidence == ("clause:ideal/comply",)
    with pytest.raises(ConfigError, match="'shrug'"):
        propositions_rubric(RBR, "shrug")
    assert [one.id for one in policy_from_value(RBR).clauses][-3:] == [
        "ideal/comply",
        "bad/hard_refuse",
        "bad/comply",
    ]


def test_the_published_definitions(shared: Callable[[str], Path]) -> None:
    path = shared("openai_rbr") / "proposition_prompts.yaml"
    hard = {one.id: one.polarity.value for one in propositions_rubric(path, "hard_refuse").criteria}
    assert hard["apology"] == hard["inability_to_comply"] == "reward"
    assert hard["judgement"] == hard["disallowed_content"] == hard["fully_complies"] == "penalty"
    assert read_policy(path).get("ideal/comply") is not None
