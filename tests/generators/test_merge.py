"""Merging rubrics: candidates by embedding, decisions by the model, conflicts told, origins kept."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Mapping, Sequence

import pytest

from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.embed import MockEmbedder
from rubricate.errors import ConfigError, ServerError
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import Criterion, Group, Polarity, Provenance, Rubric
from rubricate.rubrics.generators.base import Generated, NoteKind
from rubricate.rubrics.generators.merge import MergeGenerator
from rubricate.rubrics.generators.merge_pairs import read_decisions
from rubricate.rubrics.generators.source import Source
from rubricate.types import FailureKind

PENALTY = {"polarity": Polarity.PENALTY}


def criterion(id: str, text: str, weight: float = 1.0, **fields: object) -> Criterion:
    made = {"id": id, "text": text, "weight": weight, "provenance": Provenance(generator="reference", model="m")}
    return Criterion.model_validate(made | fields)


def source(*rubrics: Sequence[Criterion]) -> Source:
    named = [Rubric(criteria=tuple(one), id=f"r{place}") for place, one in enumerate(rubrics, start=1)]
    return Source("How is flu treated?", rubrics=tuple(named), id="flu")


def deciding(relations: Mapping[tuple[str, str], str], keep: str = "A") -> MockModel:
    """Decides pairs by words of their texts; everything else is different."""

    def reply(request: ChatRequest) -> str:
        text = request.messages[-1].content
        shown = re.findall(r"<A-\w+>\n(.*)\n</A-\w+>\n<B-\w+>\n(.*)\n</B-\w+>", text)
        entries = [
            {"pair": number, "relation": relation_of(a, b, relations), "keep": keep}
            for number, (a, b) in enumerate(shown, start=1)
        ]
        return json.dumps({"decisions": entries})

    return MockModel(reply)


def relation_of(a: str, b: str, relations: Mapping[tuple[str, str], str]) -> str:
    return next((said for (x, y), said in relations.items() if x in a and y in b), "different")


def everything(texts: Sequence[str]) -> list[list[float]]:
    """An embedding by which all texts are alike."""
    return [[1.0, 0.0] for _ in texts]


def rows(made: Generated, name: str) -> list[Mapping[str, object]]:
    listed = as_array(made.extra[name]) or ()
    return [as_object(one) or {} for one in listed]


def names(made: Generated, name: str) -> list[tuple[object, list[object]]]:
    found: list[tuple[object, list[object]]] = []
    for row in rows(made, name):
        pair = [(as_object(one) or {})["name"] for one in as_array(row["criteria"]) or ()]
        found.append((row["kind"], pair))
    return found


async def test_duplicates_become_one_with_the_mean_of_the_weights_and_all_origins() -> None:
    given = source(
        [criterion("drug", "The response names oseltamivir.", 10), criterion("rest", "It advises rest.", 5)],
        [
            criterion("med", "The response mentions the drug oseltamivir.", 4),
            criterion("doc", "It says see a doctor.", 2),
        ],
    )
    model = deciding({("names oselt", "mentions the drug"): "same"}, keep="B")
    made = await MergeGenerator(model, everything).generate(given)
    assert made.rubric is not None
    assert [(one.id, one.weight) for one in made.rubric.criteria] == [("med", 1.0), ("rest", 0.5), ("doc", 0.5)]
    med = made.rubric["med"]
    assert med.text == "The response mentions the drug oseltamivir."
    origins = [as_object(one) or {} for one in as_array(med.metadata["merged_from"]) or ()]
    assert [(one["name"], one["weight"], one["text"]) for one in origins] == [
        ("r1/drug", 10.0, "The response names oseltamivir."),
        ("r2/med", 4.0, "The response mentions the drug oseltamivir."),
    ]
    assert (as_object(origins[0]["provenance"]) or {})["model"] == "m"
    assert med.provenance is not None and med.provenance.generator == "merge"
    assert med.provenance.evidence == ("merged:r1/drug", "merged:r2/med")
    assert med.metadata["support"] == [2, 2] and made.rubric["doc"].metadata["support"] == [1, 2]
    assert [(note.kind, note.text) for note in made.notes] == [
        (NoteKind.CHANGED, "The response names oseltamivir.")
    ]
    assert made.extra == {"conflicts": [], "overlaps": [], "undecided": []} == made.rubric.metadata["merge"]
    assert "How is flu treated?" in model.requests[0].text()


async def test_only_alike_texts_are_asked_about() -> None:
    given = source(
        [criterion("a", "The response names oseltamivir as a drug.")],
        [criterion("b", "The response names oseltamivir as a medicine."), criterion("c", "Zebras gallop at noon.")],
    )
    model = deciding({})
    made = await MergeGenerator(model, MockEmbedder(256), cosine=0.5).generate(given)
    assert made.rubric is not None and len(made.rubric) == 3
    assert len(model.requests) == 1 and "Zebras" not in model.requests[0].text()


@pytest.mark.parametrize(
    ("relation", "first", "second", "kind"),
    [
        ("opposed", {}, {}, "contradiction"),
        ("same", {}, PENALTY, "polarity"),
        ("b_wider", {}, PENALTY, "contradiction"),  # whatever earns the reward brings the penalty
        ("a_wider", {}, PENALTY, ""),
        ("opposed", {}, PENALTY, ""),
        ("opposed", PENALTY, PENALTY, ""),
        ("same", {}, {"condition": "The user is a child."}, "form"),
        ("same", {"veto": True}, {}, "weight"),
        ("different", {}, {}, ""),
    ],
)
async def test_conflicts_are_told_and_both_stay(
    relation: str, first: dict[str, object], second: dict[str, object], kind: str
) -> None:
    given = source([criterion("a", "Alpha.", 1.0, **first)], [criterion("b", "Beta.", 1.0, **second)])
    made = await MergeGenerator(deciding({("Alpha", "Beta"): relation}), everything).generate(given)
    assert made.rubric is not None
    assert names(made, "conflicts") == ([(kind, ["r1/a", "r2/b"])] if kind else [])
    assert len(made.rubric) == (1 if kind == "weight" else 2)
    serious = kind in ("contradiction", "polarity")
    assert all(("conflict" in one.tags) == serious for one in made.rubric.criteria)
    if kind == "weight":
        assert made.rubric.criteria[0].veto


async def test_weights_that_differ_are_told_and_averaged() -> None:
    given = source(
        [criterion("a", "Alpha.", 100), criterion("x", "Xi.", 100)],
        [criterion("b", "Beta.", 1), criterion("y", "Y.", 4)],
    )
    made = await MergeGenerator(deciding({("Alpha", "Beta"): "same"}), everything, tolerance=0.5).generate(given)
    assert made.rubric is not None and made.rubric["a"].weight == pytest.approx((1 + 0.25) / 2)
    assert names(made, "conflicts") == [("weight", ["r1/a", "r2/b"])]
    plain = await MergeGenerator(
        deciding({("Alpha", "Beta"): "same"}), everything, tolerance=0.8, normalise="none"
    ).generate(given)
    assert plain.rubric is not None and plain.rubric["a"].weight == pytest.approx(50.5)


async def test_serious_conflicts_may_be_dropped_or_fail() -> None:
    given = source([criterion("a", "Alpha."), criterion("c", "Gamma.")], [criterion("b", "Beta.")])
    model: Callable[[], MockModel] = lambda: deciding({("Alpha", "Beta"): "opposed"})  # noqa: E731
    dropped = await MergeGenerator(model(), everything, on_conflict="drop").generate(given)
    assert dropped.rubric is not None and dropped.rubric.ids == ("c",)
    assert dropped.counts()["filtered"] == 2 and len(rows(dropped, "conflicts")) == 1
    failed = await MergeGenerator(model(), everything, on_conflict="fail").generate(given)
    assert failed.failure is not None and failed.failure.kind is FailureKind.AMBIGUOUS
    assert len(rows(failed, "conflicts")) == 1


async def test_wider_ones_stay_and_a_chain_whose_ends_differ_is_not_one() -> None:
    given = source([criterion("a", "Alpha.")], [criterion("b", "Beta.")], [criterion("c", "Gamma.")])
    wide = await MergeGenerator(deciding({("Alpha", "Beta"): "a_wider"}), everything).generate(given)
    assert wide.rubric is not None and len(wide.rubric) == 3
    assert names(wide, "overlaps") == [("a_wider", ["r1/a", "r2/b"])]
    chain = {("Alpha", "Beta"): "same", ("Beta", "Gamma"): "same"}
    made = await MergeGenerator(deciding(chain), everything).generate(given)
    assert made.rubric is not None and made.rubric.ids == ("a", "c")
    assert names(made, "conflicts") == [("inconsistent", ["r2/b", "r3/c"])]


async def test_support_keeps_what_several_rubrics_have() -> None:
    given = source([criterion("a", "Alpha."), criterion("x", "Xi.")], [criterion("b", "Beta.")])
    made = await MergeGenerator(deciding({("Alpha", "Beta"): "same"}), everything, min_support=2).generate(given)
    assert made.rubric is not None and made.rubric.ids == ("a",)
    assert made.notes[-1].reason == "1 of 2 rubrics have it, 2 are needed"


async def test_what_is_not_decided_stays_and_is_told() -> None:
    given = source([criterion("a", "Alpha."), criterion("x", "Xi.")], [criterion("b", "Beta.")])
    made = await MergeGenerator(MockModel("no json"), everything).generate(given)
    assert made.rubric is not None and len(made.rubric) == 3 and made.usage.calls == 3
    assert len(rows(made, "undecided")) == 3
    few = await MergeGenerator(deciding({}), everything, most_pairs=1, batch=1).generate(given)
    assert len(rows(few, "undecided")) == 2
    away = await MergeGenerator(MockModel(ServerError("away")), everything).generate(given)
    assert away.rubric is None and away.failure is not None and away.failure.kind is FailureKind.SERVER


@pytest.mark.parametrize(
    ("decisions", "reason"),
    [
        ([{"pair": 1, "relation": "same", "keep": "A"}], "pair 2 is missing"),
        ([{"pair": 3, "relation": "same", "keep": "A"}], "no pair 3"),
        ([{"pair": 1, "relation": "equal", "keep": "A"}], "relation is 'equal'"),
        ([{"pair": 1, "relation": "same"}, {"pair": 1, "relation": "opposed"}], "decided twice"),
    ],
)
def test_decisions_that_break_the_rules_are_refused(decisions: list[object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_decisions(json.dumps({"decisions": decisions}), 2)


async def test_nested_rubrics_and_wrong_options_are_errors() -> None:
    nested = Rubric(criteria=(criterion("a", "Alpha.", path=("g",)),), groups=(Group(id="g"),))
    with pytest.raises(ConfigError, match="flat"):
        await MergeGenerator(MockModel("x"), everything).generate(Source("Q", rubrics=(nested,)))
    with pytest.raises(ConfigError, match="needs rubrics"):
        await MergeGenerator(MockModel("x"), everything).generate(Source("Q"))
    with pytest.raises(ConfigError, match="cosine"):
        MergeGenerator(MockModel("x"), everything, cosine=2.0)


def test_it_pickles() -> None:
    one = MergeGenerator(MockModel("x"), "mock")
    assert pickle.loads(pickle.dumps(one)).fingerprint == one.fingerprint
