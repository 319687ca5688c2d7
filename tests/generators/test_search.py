"""Rubrics from search: what is searched and shown, quotations checked, evidence kept, DR Tulu's record."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.errors import ConfigError, ServerError
from rubricate.rubrics.formats import parse_rubric
from rubricate.rubrics.generators.base import NoteKind
from rubricate.rubrics.generators.search import SearchGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.search import Bm25Retriever, Passage, Retriever
from rubricate.types import FailureKind

INDEX = Bm25Retriever(
    [
        Passage(
            "Oseltamivir shortens the flu by\nabout one day if begun within 48 hours.", "nice.md", "Flu drugs", 3
        ),
        Passage("Rest and fluids are enough for most people with flu.", "nhs.md", "", 1),
        Passage("The moon is 384,400 km away.", "moon.md", "Moon", 1),
    ]
)
SOURCE = Source("How is flu treated?", id="flu")
QUERIES = json.dumps({"queries": ["flu oseltamivir", "flu rest fluids"]})

QUOTED = {"Text": "shortens the flu by about one day", "Citation": "P1"}
DRUG: dict[str, object] = {
    "Ingredient": "State that oseltamivir shortens flu by about a day.",
    "Handle": "Drug",
    "Specifics": [QUOTED],
}
REST: dict[str, object] = {
    "Ingredient": "Mention rest and fluids.",
    "Handle": "Rest",
    "Specifics": [{"Text": "Rest and fluids are enough", "Citation": "[P2]"}],
}


def answer(
    critical: list[object], valuable: list[object] | None = None, context: list[object] | None = None
) -> str:
    return json.dumps(
        {"Question": "q", "Answer Critical": critical, "Valuable": valuable or [], "Context": context or []}
    )


def asking(*rubrics: str) -> MockModel:
    left = list(rubrics)

    def reply(request: ChatRequest) -> str:
        return QUERIES if "The queries, as JSON" in request.messages[-1].content else left.pop(0)

    return MockModel(reply)


async def test_evidence_is_found_shown_checked_and_kept() -> None:
    model = asking(answer([DRUG], [REST]))
    made = await SearchGenerator(model, INDEX, least_critical=1).generate(SOURCE)
    assert made.rubric is not None, made.failure
    shown = model.requests[1].messages[-1].content
    assert "Passage P1 (Flu drugs):" in shown and "Rest and fluids" in shown and "384,400" not in shown
    drug, rest = made.rubric.criteria
    assert (drug.id, drug.weight, rest.weight) == ("drug", 1.0, 0.0)
    assert drug.metadata["evidence"] == [
        {
            "source": "nice.md",
            "place": "nice.md#L3",
            "title": "Flu drugs",
            "passage": INDEX.passages[0].text,
            "quote": "shortens the flu by\nabout one day",  # the passage's own letters
        }
    ]
    assert drug.provenance is not None and drug.provenance.evidence == ("passage:nice.md#L3",)
    assert made.extra["queries"] == ["flu oseltamivir", "flu rest fluids"]
    assert made.extra["passages"] == ["nice.md#L3", "nhs.md#L1"]
    cited = [{"Text": "shortens the flu by\nabout one day", "Citation": "nice.md"}]
    rests = [{"Text": "Rest and fluids are enough", "Citation": "nhs.md"}]
    assert made.extra["record"] == {
        "Question": "How is flu treated?",
        "Answer Critical": [DRUG | {"Specifics": cited}],
        "Valuable": [REST | {"Specifics": rests}],
        "Context": [],
    }
    again = parse_rubric(made.extra["record"], format="drtulu")
    assert [(one.text, one.weight) for one in again.criteria] == [
        (one.text, one.weight) for one in made.rubric.criteria
    ]
    json.dumps(made.extra)


@pytest.mark.parametrize(
    ("specifics", "reason"),
    [
        ([{"Text": "shortens the flu by two days", "Citation": "P1"}], "does not stand in passage P1"),
        ([{"Text": "shortens the flu by about one day", "Citation": "P2"}], "does not stand in passage P2"),
        ([{"Text": "shortens the flu", "Citation": "P7"}], "'P7' is no passage"),
        ([{"Text": "flu", "Citation": "P1"}], "too short"),
        ([], "0 of 0 quotations"),
    ],
)
async def test_an_ingredient_whose_quotations_are_not_there_is_asked_for_again(
    specifics: list[object], reason: str
) -> None:
    model = asking(answer([REST, DRUG | {"Specifics": specifics}]), answer([DRUG]))
    made = await SearchGenerator(model, INDEX, least_critical=2).generate(SOURCE)
    assert made.rubric is not None and len(made.rubric) == 2
    assert reason in model.requests[2].messages[-1].content
    assert any(note.kind is NoteKind.REASKED and reason in note.reason for note in made.notes)


async def test_one_good_quotation_of_two_is_enough_but_for_context() -> None:
    mixed = DRUG | {"Specifics": [QUOTED, {"Text": "made up words here", "Citation": "P1"}]}
    model = asking(answer([mixed], [], [REST]), answer([], [], [REST]), answer([], [], [REST]))
    made = await SearchGenerator(model, INDEX, least_critical=1).generate(SOURCE)
    assert made.rubric is not None and made.rubric.ids == ("drug",)
    dropped = [note for note in made.notes if note.kind is NoteKind.DROPPED]
    assert [("a quotation" in note.reason, note.text) for note in dropped] == [
        (False, REST["Ingredient"]),
        (True, DRUG["Ingredient"]),
    ]
    assert "Context needs 2" in dropped[0].reason


async def test_uncited_ingredients_may_be_kept_and_are_marked() -> None:
    bare: dict[str, object] = {"Ingredient": "Explain when to see a doctor.", "Handle": "Doctor", "Specifics": []}
    model = asking(answer([DRUG, bare]))
    made = await SearchGenerator(model, INDEX, least_critical=2, uncited="keep", weights="graded").generate(SOURCE)
    assert made.rubric is not None
    assert [("uncited" in one.tags, one.metadata["evidence"] == []) for one in made.rubric.criteria] == [
        (False, False),
        (True, True),
    ]


async def test_too_few_critical_ingredients_are_a_failure() -> None:
    model = asking(*[answer([DRUG], [REST])] * 3)
    made = await SearchGenerator(model, INDEX, least_critical=2).generate(SOURCE)
    assert made.rubric is None and made.failure is not None
    assert "1 ingredients are answer-critical, at least 2" in made.failure.message


async def test_nothing_found_fails_or_asks_without_passages() -> None:
    source = Source("zzz", id="z")
    made = await SearchGenerator(MockModel([]), INDEX, queries=0).generate(source)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.INCOMPLETE
    bare: dict[str, object] = {"Ingredient": "State what zzz is.", "Handle": "Zzz", "Specifics": []}
    model = MockModel([answer([bare])])
    generator = SearchGenerator(model, INDEX, queries=0, nothing_found="ask", least_critical=1)
    closed = await generator.generate(source)
    assert closed.rubric is not None and "uncited" in closed.rubric.criteria[0].tags
    assert "Nothing was found" in model.requests[0].messages[0].content


async def test_unreadable_queries_fall_back_to_the_prompt_and_say_so() -> None:
    model = MockModel(["none", "none", "none", answer([DRUG])])
    made = await SearchGenerator(model, INDEX, least_critical=1).generate(SOURCE)
    assert made.rubric is not None and made.extra["queries"] == ["How is flu treated?"]
    assert any("no search queries could be had" in note.reason for note in made.notes)


class Away(Retriever):
    name = "away"

    @property
    def fingerprint(self) -> str:
        return "away"

    async def _search(self, query: str, k: int) -> list[Passage]:
        raise ServerError("the search is away", provider=self.name)


async def test_a_search_that_fails_is_a_typed_failure() -> None:
    made = await SearchGenerator(asking(), Away()).generate(SOURCE)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.SERVER
    assert made.usage.calls == 1  # the queries were paid for


def test_it_pickles_and_takes_a_retrievers_name(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Some text.")
    one = SearchGenerator(MockModel("x"), search=f"bm25:{tmp_path}")
    assert pickle.loads(pickle.dumps(one)).fingerprint == one.fingerprint
    with pytest.raises(ConfigError, match="give a retriever"):
        SearchGenerator(MockModel("x"))
