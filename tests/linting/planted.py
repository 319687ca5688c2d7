"""All rubrics with a fault put in on purpose, and rubrics without fault."""

from __future__ import annotations

from collections.abc import Sequence

from tests.linting.planted_numbers import DUPLICATES, SIGNS, WEIGHTS
from tests.linting.planted_second import SECOND
from tests.linting.planted_words import PROMPTS, REFERENCES, SCALES, SETTINGS, VERIFIERS, WORDING
from tests.linting.planting import ASKED, Planted, Record, leaf, rar

from rubricate.cli.linting import verifier_fault
from rubricate.data.io import Row
from rubricate.narrow import as_object
from rubricate.rubrics.formats import Imported, Note, parse_rubric
from rubricate.rubrics.linting import Finding, lint

__all__ = ["CLEAN", "PLANTED", "found", "linted"]

PLANTED = (*DUPLICATES, *SIGNS, *WEIGHTS, *REFERENCES, *WORDING, *VERIFIERS, *PROMPTS, *SCALES, *SETTINGS, *SECOND)


def linted(record: object, format: str = "native") -> list[Finding]:
    """What the linter finds in a record, as the command line runs it."""
    notes: list[Note] = []
    rubric = parse_rubric(record, format=format, notes=notes)
    row = Row("planted.jsonl", 1, dict(as_object(record) or {}))
    return lint(Imported((rubric,), tuple(notes), format, (row,)), verifiers=verifier_fault)


def found(planted: Planted) -> bool:
    """Whether the fault is found, by its rule and at its place."""
    at = (planted.at,) if planted.at else ()
    return any(
        finding.code == planted.code and finding.criterion_ids[:1] == at
        for finding in linted(planted.record, planted.format)
    )


CLEAN: Sequence[tuple[str, Record]] = (
    (
        "native",
        {
            "criteria": [
                {"id": "cause", "text": "The response names Rayleigh scattering as the cause.", "weight": 5},
                {
                    "id": "inverse",
                    "text": "The response says that scattering falls with the fourth power of the wavelength.",
                },
                {"id": "sunset", "text": "The response explains why sunsets are red and orange.", "weight": 2},
                {"id": "myth", "text": "Claims that the sky reflects the sea.", "polarity": "penalty", "weight": 2},
                {
                    "id": "short",
                    "text": "The response has at most 100 words.",
                    "verifier": {"name": "words", "args": {"max": 100}},
                },
                {
                    "id": "tongue",
                    "text": "The response is written in English.",
                    "verifier": {"name": "language", "args": {"language": "en"}},
                },
            ],
            "metadata": {"prompt": ASKED, "reference": "Because of Rayleigh scattering."},
        },
    ),
    (
        "rar",
        rar(
            ("Drug", "Essential Criteria: Names aspirin as the drug of choice.", 5),
            ("Dose", "Important Criteria: States a daily dose between 75 and 100 mg.", 3),
            ("Why", "Important Criteria: Explains that aspirin inhibits platelets and thus clotting.", 4),
            ("Allergy", "Optional Criteria: Asks about an allergy to salicylates or NSAIDs.", 2),
            ("Bleeding", "Pitfall Criteria: Does not mention the risk of bleeding.", -2),
            ("Antibiotic", "Pitfall Criteria: Recommends an antibiotic.", -1),
        ),
    ),
    (
        "healthbench",
        {
            "prompt": [{"role": "user", "content": "My child has a fever of 40 °C."}],
            "rubrics": [
                {
                    "criterion": "Advises calling a doctor if the fever lasts longer than three days.",
                    "points": 7,
                },
                {"criterion": "Asks for the age of the child.", "points": 6},
                {"criterion": "States that paracetamol and ibuprofen both lower a fever.", "points": 4},
                {"criterion": "Recommends aspirin for the child.", "points": -9},
                {"criterion": "Fails to ask about drinking.", "points": -3},
            ],
        },
    ),
    (
        "native",
        {
            "criteria": [
                {"id": "a", "text": "Die Antwort nennt die Rayleigh-Streuung als Ursache."},
                {"id": "b", "text": "Die Antwort nennt eine Wellenlänge in Nanometern."},
                {
                    "id": "c",
                    "text": "Der Text hat höchstens drei Absätze.",
                    "verifier": {"name": "paragraphs", "args": {"max": 3}},
                },
            ],
        },
    ),
    (
        "paperbench",
        {
            "id": "root",
            "requirements": "The paper is reproduced.",
            "weight": 1,
            "sub_tasks": [
                {
                    "id": f"model-{size}",
                    "requirements": f"The {size} model is trained.",
                    "weight": 2,
                    "sub_tasks": [
                        leaf(f"{size}-load", "The weights have been loaded into memory."),
                        leaf(f"{size}-sst2", "The accuracy on SST2 has been computed."),
                        leaf(f"{size}-mnli", "The accuracy on MNLI has been computed."),
                    ],
                }
                for size in ("small", "large")
            ],
        },
    ),
    (
        "openrubrics",
        {
            "instruction": "Write a haiku about rain in English.",
            "rubric": "1. The response has three lines. [Hard Rule]\n"
            "2. The response is a haiku about rain. [Hard Rule]\n"
            "3. The response uses an image of sound or smell. [Principle]",
        },
    ),
)
