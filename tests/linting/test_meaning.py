"""Criteria that an embedder finds alike: what is reported, how loudly, and what is left to other rules."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from tests.linting.planting import leaf, tree

from rubricate.embed import Embedder, connect_embedder
from rubricate.embed.base import Vectors
from rubricate.errors import ConfigError, MissingExtraError
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import parse_rubric
from rubricate.rubrics.linting import Finding, Limits, Severity, lint


class Angle(Embedder):
    """Two texts have the cosine that it is made with; a text and itself 1."""

    name = "angle"

    def __init__(self, cosine: float) -> None:
        super().__init__()
        self.cosine = cosine

    @property
    def fingerprint(self) -> str:
        return f"angle {self.cosine}"

    @property
    def dimensions(self) -> int:
        return 2

    async def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        second = [self.cosine, (1 - self.cosine**2) ** 0.5]
        return np.array([[1.0, 0.0], second][: len(texts)], dtype=np.float32)


def alike(first: str, second: str, embedder: Embedder, limits: Limits | None = None) -> list[Finding]:
    """What rule D107 says of two criteria."""
    listed = (Criterion(id="a", text=first), Criterion(id="b", text=second))
    return lint(Rubric(criteria=listed), embedder=embedder, select=["D107"], limits=limits)


DOSE = ("States the recommended daily dose.", "Says how much to take each day.")


def severities(findings: Sequence[Finding]) -> list[Severity]:
    """The severity of each finding."""
    return [finding.severity for finding in findings]


def test_a_candidate_is_information_and_a_near_certain_one_a_warning() -> None:
    assert severities(alike(*DOSE, Angle(0.59))) == []
    assert severities(alike(*DOSE, Angle(0.61))) == [Severity.INFO]
    assert severities(alike(*DOSE, Angle(0.81))) == [Severity.WARNING]
    assert severities(alike(*DOSE, Angle(0.7), Limits(similar_cosine=0.75))) == []
    assert severities(alike(*DOSE, Angle(0.7), Limits(same_cosine=0.65))) == [Severity.WARNING]


def test_the_finding_does_not_claim_more_than_a_cosine_tells() -> None:
    (found,) = alike(*DOSE, Angle(0.7))
    assert "may say the same" in found.message and "or the opposite" in found.message
    assert "cosine 0.70" in found.message and found.fix.startswith("read both")


def test_in_a_nested_rubric_it_is_never_more_than_information() -> None:
    nested = parse_rubric(tree("", "", *map(leaf, "ab", DOSE)).record)
    assert severities(lint(nested, embedder=Angle(0.95), select=["D107"])) == [Severity.INFO]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Mentions the price of the hotel.", "Mentions the location of the hotel."),
        ("Explains how the vaccine works.", "Explains how the vaccine is stored."),
        ("Says that the drug is sold in three strengths.", "Says that the drug is sold in 4 strengths."),
        ("Recommends rest.", "Does not tell the patient to lie down."),
    ],
)
def test_what_cosines_do_not_tell_apart_is_left_to_other_rules(first: str, second: str) -> None:
    assert alike(first, second, Angle(0.95)) == []


def test_the_embedder_without_a_download_finds_plain_paraphrases() -> None:
    try:
        embedder = connect_embedder("wordllama")
    except MissingExtraError as error:
        pytest.skip(error.message)
    same = ("The response names the capital of France.", "The answer identifies France's capital city.")
    assert severities(alike(*same, embedder)) == [Severity.INFO]
    assert alike("The code compiles without warnings.", "The tone is warm.", embedder) == []


def test_a_cosine_that_is_none_is_an_error() -> None:
    with pytest.raises(ConfigError, match="threshold"):
        alike(*DOSE, Angle(0.7), Limits(similar_cosine=float("nan")))


def test_ignored_rules_are_named_rightly_or_reported() -> None:
    off = {"lint": {"ignore": ["c506", "compound", "V6"]}}
    good = Rubric(criteria=(Criterion(id="a", text="TODO: the dose.", metadata=off),))
    assert lint(good) == []
    typo = json.loads(json.dumps(off).replace("compound", "compuond"))
    (found,) = lint(Rubric(criteria=(Criterion(id="a", text="TODO: the dose.", metadata=typo),)))
    assert (found.code, found.severity, found.criterion_ids) == ("L901", Severity.WARNING, ("a",))
    assert "'compuond'" in found.message and found.fix == "write 'compound', or remove it"
    other = {"lint": {"by": "hand"}}  # of some other tool
    assert lint(Rubric(criteria=(Criterion(id="a", text="Names a price.", metadata=other),))) == []
