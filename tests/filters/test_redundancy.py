"""Criteria that ask for the same twice, by text, by verdicts, or by both."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from filter_cases import criterion, rubric, table

from rubricate.embed import MockEmbedder
from rubricate.errors import ConfigError
from rubricate.rubrics.filters import Case, Redundancy, apply

SAME = {"a": "The response cites its sources.", "b": "Its sources the response cites."}
VARIES = [[1.0], [0.0], [1.0], [0.0], [1.0]]
OTHER = [[1.0], [1.0], [1.0], [0.0], [0.0]]


async def test_the_later_of_two_alike_texts_goes_or_the_lighter() -> None:
    equal = rubric(criterion("a", SAME["a"]), criterion("b", SAME["b"]), criterion("c", "It is friendly in tone."))
    found = await apply([Redundancy(MockEmbedder())], [Case(equal)])
    assert found.kept[0].rubric.ids == ("a", "c")
    assert found.dropped[0].reason == "it says the same as 'a'"
    assert found.dropped[0].figures["cosine"] == 1.0
    heavier = rubric(criterion("a", SAME["a"]), criterion("b", SAME["b"], weight=3))
    assert (await apply([Redundancy(MockEmbedder())], [Case(heavier)])).kept[0].rubric.ids == ("b",)
    veto = rubric(criterion("a", SAME["a"], veto=True), criterion("b", SAME["b"], weight=3))
    assert (await apply([Redundancy(MockEmbedder())], [Case(veto)])).kept[0].rubric.ids == ("a",)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("The response cites its sources.", "The response never cites its sources."),
        ("The response has at most 50 words.", "The response has at most 60 words."),
        ("The response speaks of life in Paris.", "The response speaks of life in London."),
    ],
)
async def test_texts_that_embeddings_cannot_tell_apart_stay(one: str, two: str) -> None:
    def alike(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    made = rubric(criterion("a", one), criterion("b", two))
    assert (await apply([Redundancy(alike)], [Case(made)])).kept == [Case(made)]


@pytest.mark.parametrize("fields", [{"polarity": "penalty"}, {"condition": "asked for"}])
async def test_only_criteria_of_one_sign_and_condition_are_compared(fields: dict[str, object]) -> None:
    made = rubric(criterion("a", SAME["a"]), criterion("b", SAME["b"], **fields))
    assert (await apply([Redundancy(MockEmbedder())], [Case(made)])).kept == [Case(made)]


async def test_of_a_chain_the_ends_stay() -> None:
    def vectors(texts: Sequence[str]) -> list[list[float]]:
        places = {"a": (1.0, 0.0), "b": (0.8, 0.6), "c": (0.28, 0.96)}  # ab .8, bc .8, ac .28
        return [list(places[text.split()[-1]]) for text in texts]

    named = rubric(*(criterion(id, f"It is like {id}") for id in "abc"))
    found = await apply([Redundancy(vectors, cosine=0.79)], [Case(named)])
    assert found.kept[0].rubric.ids == ("a", "b", "c")  # one-letter words are names, which tell them apart
    lower = rubric(*(criterion(id, f"It is about {word}") for id, word in zip("abc", WORDS, strict=True)))

    def by_word(texts: Sequence[str]) -> list[list[float]]:
        return vectors([f"x {'abc'[WORDS.index(text.split()[-1])]}" for text in texts])

    chain = await apply([Redundancy(by_word, cosine=0.79)], [Case(lower)])
    assert chain.kept[0].rubric.ids == ("a", "c")


WORDS = ["tone", "style", "length"]


async def test_verdicts_alone_and_both_and_either() -> None:
    made = rubric(
        criterion("a", SAME["a"]),
        criterion("b", SAME["b"]),
        criterion("c", "It is friendly in tone."),
        criterion("d", "It greets whoever reads."),
    )
    scores = table({"a": VARIES, "b": OTHER, "c": VARIES, "d": OTHER})
    case = Case(made, table=scores)
    verdicts = await apply([Redundancy(verdicts=True)], [case])
    assert verdicts.kept[0].rubric.ids == ("a", "b")  # c as a, d as b
    assert verdicts.dropped[0].figures["correlation"] == pytest.approx(1.0)
    both = await apply([Redundancy(MockEmbedder(), verdicts=True)], [case])
    assert both.kept == [case]
    either = await apply([Redundancy(MockEmbedder(), verdicts=True, require="either")], [case])
    assert either.kept[0].rubric.ids == ("a", "d")  # what `d` is like, `b`, is gone


async def test_with_too_few_known_verdicts_alike_texts_stay_and_are_flagged() -> None:
    made = rubric(criterion("a", SAME["a"]), criterion("b", SAME["b"]))
    holed = [[1.0], [None], [None], [0.0], [1.0]]
    for scores in (table({"a": VARIES, "b": holed}), table({"a": VARIES, "b": [[1.0]] * 5}), None):
        case = Case(made, table=scores)
        found = await apply([Redundancy(MockEmbedder(), verdicts=True)], [case])
        assert found.kept == [case]
        assert [one.criterion_id for one in found.flagged] == ["b"]


def test_something_must_be_looked_at() -> None:
    with pytest.raises(ConfigError, match="texts or verdicts"):
        Redundancy()
    with pytest.raises(ConfigError):
        Redundancy(MockEmbedder(), cosine=1.5)
