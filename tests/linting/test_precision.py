"""What looks like a fault and is none."""

from __future__ import annotations

import pytest
from tests.linting.planting import native

from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import parse_rubric
from rubricate.rubrics.linting import Finding, lint


def alone(text: str, **fields: object) -> set[str]:
    """Codes for one criterion of this text."""
    rubric = Rubric(criteria=(Criterion.model_validate({"id": "c1", "text": text, **fields}),))
    return {finding.code for finding in lint(rubric)}


def together(*texts: str) -> set[str]:
    """Codes for several criteria."""
    listed = [Criterion(id=f"c{at}", text=text) for at, text in enumerate(texts)]
    return {finding.code for finding in lint(Rubric(criteria=tuple(listed)))}


def asked(text: str, prompt: str) -> list[Finding]:
    """Findings for a criterion of a prompt."""
    return lint(parse_rubric(native({"text": text}, prompt=prompt)), select=["Q701"])


@pytest.mark.parametrize(
    "text",
    [
        "The response names aspirin and ibuprofen.",
        "The response identifies and corrects the error in line 3.",
        "The response lists the cities of Rome, Paris, and Berlin.",
        "The response explains how inflation rises and affects savings.",
        "The response recommends a diet that lowers blood pressure and provides vitamins.",
        'The response ends with "Peace and love."',
        "The response states that aspirin thins the blood and that it irritates the stomach.",
        "The response names the year of the treaty. For example, 1648 is right.",
        "The response compares supply and demand.",
        "The response mentions research and development (R&D).",
        "Nennt die Ursache und erklärt die Wirkung.",
    ],
)
def test_lists_and_clauses_are_not_compound(text: str) -> None:
    assert "C501" not in alone(text)


@pytest.mark.parametrize(
    "text",
    [
        "The response explains clearly how the enzyme binds its substrate.",
        'The response contains the phrase "good morning".',
        "The response names at least 3 effective treatments of migraine.",
        "The response quotes a relevant passage of Hamlet's soliloquy.",
    ],
)
def test_a_vague_word_among_concrete_ones_is_not_vague(text: str) -> None:
    assert "C502" not in alone(text)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The response names the dose for adults.", "The response names the dose for children."),
        ("The accuracy on SST2 is reported.", "The accuracy on MNLI is reported."),
        ("The list has 3 entries of fruit.", "The list has 4 entries of fruit."),
        ("Says that coal is cheaper than wind.", "Says that wind is cheaper than coal."),
        ("The matrix $W_{in}$ is defined.", "The matrix $W_{out}$ is defined."),
        ("Explains why the moon is bright at night.", "Explains why the sun is bright in the day."),
        ("Names a cause before 1900.", "Names a cause after 1900."),
    ],
)
def test_variants_are_neither_duplicates_nor_contradictions(first: str, second: str) -> None:
    assert (
        together(first, second) <= {"D104"} if "before" in first else not together(first, second) & {"D101", "D102"}
    )


def test_a_condition_makes_two_texts_two_criteria() -> None:
    criteria = (
        Criterion(id="a", text="The letter uses a formal tone.", condition="It is for an office."),
        Criterion(id="b", text="The letter uses an informal tone.", condition="It is for a friend."),
        Criterion(id="c", text="The letter uses a formal tone.", condition="It is for a judge."),
    )
    assert not {f.code for f in lint(Rubric(criteria=criteria))} & {"D101", "D102", "D104"}


def test_equal_leaves_of_different_groups_are_no_duplicates() -> None:
    record = {
        "criteria": [
            {"id": "a", "text": "The accuracy is reported.", "path": ["small"]},
            {"id": "b", "text": "The accuracy is reported.", "path": ["large"]},
        ],
        "groups": [{"id": "small"}, {"id": "large"}],
    }
    assert lint(parse_rubric(record)) == []


@pytest.mark.parametrize(
    "text",
    [
        "The response is above the average of its kind by at least 10 points.",
        "Asks about any other medical conditions of the patient.",
        "Asks about previous conditions and allergies.",
        "The diagnosis meets other diagnostic criteria of the DSM.",
        "The response names the C4 corpus as the source.",
        "This response cites a study of 2019.",
        "The response explains the criterion of Routh and Hurwitz.",
        "The plan meets the requirement of the building code.",
        "The response points the reader to the reference list of the article.",
    ],
)
def test_words_that_only_look_like_references_are_left_alone(text: str) -> None:
    assert not alone(text) & {"R401", "R402", "R403"}


def test_a_reference_that_is_there_may_be_spoken_of() -> None:
    rubric = parse_rubric(native({"text": "The result equals the reference answer."}, reference_answer="42"))
    assert lint(rubric) == []


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("The response has at most 100 words.", "Explain it in one hundred words or less."),
        ("The response has no more than three sentences.", "Use three sentences."),
        ("The response is written in French.", "Réponds in French, please."),
        ("The response is formatted as valid JSON.", "Return a json object."),
        ("The response names two words that rhyme.", "Write a poem."),
        ("The response names French cuisine.", "What is eaten in Paris?"),
        ('The response contains the phrase "blue sky".', "Use the words Blue Sky somewhere."),
        ("The response shows that the question is written in Thai.", "What does it say?"),
    ],
)
def test_what_the_prompt_asks_for_may_be_demanded(text: str, prompt: str) -> None:
    assert asked(text, prompt) == []


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Recommends an antibiotic.", {"polarity": "penalty"}),
        ("Does not mention the dose.", {"polarity": "penalty"}),
        ("Fails to mention the dose.", {"polarity": "penalty"}),
        ("Explicitly encourages self-harm.", {"polarity": "penalty"}),
        ("The response explains why the claim contains an error.", {}),
        ("The response corrects the false statement.", {}),
        ("Provides the false-positive rate of the test.", {}),
        ("Refuses to answer a harmless question.", {"polarity": "penalty"}),
        ("Does not include a source.", {"polarity": "penalty"}),
        ("Provides an inaccurate dose.", {"polarity": "penalty"}),
    ],
)
def test_signs_that_fit_their_words_are_left_alone(text: str, fields: dict[str, object]) -> None:
    assert not alone(text, **fields) & {"P201", "P202"}


@pytest.mark.parametrize(
    "text",
    [
        "The letter has at least 3 placeholders such as [address].",
        "The sum $\\sum_{ij} x_{ij}$ is derived.",
        "The formula \\mathbf{{x}} is explained by the response.",
        'The response contains the text "TODO".',
        "The list [1, 2, 3] is sorted.",
    ],
)
def test_brackets_and_quotations_are_no_placeholders(text: str) -> None:
    assert "C506" not in alone(text)


def test_names_in_another_script_are_no_other_language() -> None:
    assert "C507" not in together("The response names the cause.", "The answer is সৈয়দ নজরুল ইসলাম, not the other.")


def test_verifiers_that_agree_do_not_conflict() -> None:
    specs = [
        ("words", {"min": 20}),
        ("words", {"max": 20}),
        ("required", {"phrases": ["classical music"]}),
        ("forbidden", {"phrases": ["class"]}),
        ("starts_with", {"phrase": "Dear"}),
        ("starts_with", {"phrase": "Dear Sir"}),
        ("sentences", {"min": 2}),
        ("characters", {"min": 10}),
        ("required", {"phrases": ["a", "b"], "min": 1}),
    ]
    criteria = [
        Criterion.model_validate({"id": f"c{at}", "text": "It is so.", "verifier": {"name": name, "args": args}})
        for at, (name, args) in enumerate(specs)
    ]
    assert not [f for f in lint(Rubric(criteria=tuple(criteria)), select=["V603"])]


def test_a_penalty_or_a_condition_takes_a_verifier_out_of_conflict() -> None:
    long = {"id": "a", "text": "It is long.", "verifier": {"name": "words", "args": {"min": 50}}}
    short = {"id": "b", "text": "It is short.", "verifier": {"name": "words", "args": {"max": 20}}}
    for change in ({"polarity": "penalty"}, {"condition": "The prompt asks for it."}):
        criteria = (Criterion.model_validate(long), Criterion.model_validate({**short, **change}))
        assert not lint(Rubric(criteria=criteria), select=["V603"])
