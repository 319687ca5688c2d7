"""Auto-Rubric over many prompts: selection by coding rate, batches that stop, themes with tips."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from filter_cases import RulePairJudge, rubric
from numpy.typing import NDArray

from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.comparisons import Preferred
from rubricate.data.records import Preference
from rubricate.embed.mock import MockEmbedder
from rubricate.errors import ConfigError, FormatError
from rubricate.failures import failure
from rubricate.judges.scripted import ScriptedJudge
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import Criterion, Polarity, Scope
from rubricate.rubrics.generators.auto_rubric_core import CoreRubricGenerator
from rubricate.rubrics.generators.auto_rubric_ready import AutoRubricDataset, AutoRubricScores
from rubricate.rubrics.generators.auto_rubric_themes import ThemesGenerator, theme_tips_text
from rubricate.rubrics.generators.base import Generated, Generator, NoteKind
from rubricate.rubrics.generators.source import Source
from rubricate.types import FailureKind, Usage


class Writer(Generator):
    """Writes a criterion a source, named by its prompt; none for prompts with "none"."""

    name = "writer"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def identity(self) -> dict[str, object]:
        return {}

    async def write(self, source: Source) -> Generated:
        self.asked.append(source.task)
        usage = Usage(calls=1)
        if "none" in source.task:
            return Generated.failed(failure(FailureKind.SERVER, "away"), usage=usage)
        text = f"The response does {source.task}."
        return Generated(rubric(Criterion(id="c", text=text)), None, usage)


def vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """A direction a letter: prompts that begin alike are alike."""
    out = np.zeros((len(texts), 27))
    for row, text in zip(out, texts, strict=True):
        row[ord(text.removeprefix("The response does ")[0]) - ord("a")] = 1.0
        row[26] = 0.05 * (len(text) % 7)
    return out


def sources(*names: str) -> list[Source]:
    return [Source(name, id=name) for name in names]


def greedy(rows: NDArray[np.float64], first: int, eps: float, threshold: float, patience: int) -> list[int]:
    """Written anew: argmax of R(S + r) - R(S), R = 1/2 logdet(I + d/(n eps^2) Z^T Z).

    All unit vectors are equally good to begin with, so the first is given.
    """

    def rate(places: list[int]) -> float:
        z = rows[places] / np.linalg.norm(rows[places], axis=1, keepdims=True)
        d = rows.shape[1]
        return (
            0.5 * float(np.linalg.slogdet(np.eye(d) + d / (len(places) * eps**2) * z.T @ z)[1]) if places else 0.0
        )

    chosen = [first]
    weak = 0
    while len(chosen) < len(rows):
        left = [place for place in range(len(rows)) if place not in chosen]
        gains = [rate([*chosen, place]) - rate(chosen) for place in left]
        chosen.append(left[int(np.argmax(gains))])
        weak = weak + 1 if max(gains) < threshold else 0
        if weak == patience:
            return chosen[:-patience]
    return chosen


async def test_the_chosen_criteria_are_those_of_the_formula() -> None:
    rows = np.random.default_rng(5).normal(size=(12, 4))
    names = [f"thing {n}" for n in range(12)]
    texts = [f"The response does {name}." for name in names]

    def drawn(asked: Sequence[str]) -> NDArray[np.float64]:
        return rows[[texts.index(text) for text in asked]]

    writer = Writer()
    core = CoreRubricGenerator(writer, None, embedder=drawn, min_gain=0.1, patience=2)
    made = await core.generate_from(sources(*names))
    assert made.rubric is not None
    first = texts.index(made.rubric.criteria[0].text)
    wanted = [texts[place] for place in greedy(rows, first, 0.1, 0.1, 2)]
    assert 3 < len(wanted) < len(names)
    assert [one.text for one in made.rubric.criteria] == wanted
    assert made.rubric.scope is Scope.DATASET and made.rubric.ids == tuple(f"c{n + 1}" for n in range(len(wanted)))
    told = made.extra["selection"]
    assert isinstance(told, dict) and told["criteria"] == told["rubrics"] == len(names)
    assert told["ended"] == "patience" and made.usage.calls == len(names)


async def test_sources_with_rubrics_are_not_written_for_and_equal_texts_count_once() -> None:
    ready = rubric(Criterion(id="x", text="The response does zebras."))
    given = [Source("zebras", rubrics=(ready,)), Source("other", rubrics=(ready,)), *sources("apples")]
    writer = Writer()
    made = await CoreRubricGenerator(writer, None, embedder=vectors).generate_from(given)
    assert writer.asked == ["apples"] and made.rubric is not None
    assert [one.text for one in made.rubric.criteria].count("The response does zebras.") == 1


async def test_rubrics_that_could_not_be_had_are_told_and_none_at_all_is_a_failure() -> None:
    made = await CoreRubricGenerator(Writer(), None, embedder=vectors).generate_from(sources("apples", "none here"))
    assert made.rubric is not None
    assert [(note.kind, note.reason) for note in made.notes] == [
        (NoteKind.DROPPED, "no rubric for 'none here': away")
    ]
    made = await CoreRubricGenerator(Writer(), None, embedder=vectors).generate_from(sources("none"))
    assert made.rubric is None and made.failure is not None and made.usage.calls == 1


async def test_batches_end_where_nothing_new_comes_and_the_order_is_that_of_the_seed() -> None:
    """Four directions, sixty prompts: after the batches without a new one it ends, and the rest costs nothing."""
    names = [f"{letter}{'x' * 7}" for letter in "abcd" for _ in range(15)]
    runs: list[list[str]] = []
    for seed in (3, 3, 4):
        writer = Writer()
        core = CoreRubricGenerator(
            writer, None, embedder=vectors, all_at_once=10, batch_size=5, patience=2, seed=seed
        )
        made = await core.generate_from(sources(*names))
        told = made.extra["selection"]
        assert made.rubric is not None and len(made.rubric) == 4
        assert isinstance(told, dict) and told["stopped"] == "patience"
        assert len(writer.asked) < 60 and len(writer.asked) % 5 == 0
        runs.append(writer.asked)
    assert runs[0] == runs[1] != runs[2]
    few = Writer()
    core = CoreRubricGenerator(few, None, embedder=vectors, all_at_once=0, batch_size=5, max_batches=1)
    made = await core.generate_from(sources(*names))
    assert len(few.asked) == 5 and made.extra["selection"] is not None


async def test_an_embedding_that_fails_fails_the_whole_and_makes_no_zero_vector() -> None:
    def zeros(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.zeros((len(texts), 3))

    def broken(texts: Sequence[str]) -> NDArray[np.float64]:
        raise FormatError("no vector", field="texts[1]")

    for embedder in (zeros, broken):
        made = await CoreRubricGenerator(Writer(), None, embedder=embedder).generate_from(
            sources("apples", "boats")
        )
        assert made.rubric is None and made.failure is not None and made.usage.calls == 2


async def test_options_and_sources_are_checked() -> None:
    for options in ({"batch_size": 0}, {"limit": 0}, {"concurrency": 0}, {"eps": 0.0}):
        with pytest.raises(ConfigError):
            CoreRubricGenerator(Writer(), None, embedder=vectors, **options)  # pyright: ignore[reportArgumentType] - mixed
    with pytest.raises(ConfigError, match="at least one source"):
        await CoreRubricGenerator(Writer(), None, embedder=vectors).generate_from([])
    one = CoreRubricGenerator(Writer(), None, embedder="mock")
    assert one.fingerprint == CoreRubricGenerator(Writer(), None, embedder=MockEmbedder()).fingerprint
    assert one.fingerprint != CoreRubricGenerator(Writer(), None, embedder="mock", seed=1).fingerprint
    await one.aclose()


# Themes


def themes(*items: object) -> str:
    return json.dumps({"categories": items})


ACCURATE = {"theme": "The response is accurate.", "tips": ["Its dates are right.", "Its names are right."]}
KIND = {"theme": "The response is kind.", "tips": ["It greets the reader."]}
CRITERIA = (
    Criterion(id="a", text="The response has\nright dates.", polarity=Polarity.REWARD),
    Criterion(id="b", text="The response insults.", polarity=Polarity.PENALTY),
    Criterion(id="c", text="The response has right dates."),
)


async def test_themes_hold_their_tips_and_rest_on_the_criteria() -> None:
    model = MockModel(themes(ACCURATE, KIND))
    made = await ThemesGenerator(model).structure(CRITERIA, rubric_id="set")
    text = model.requests[0].messages[-1].content
    assert "1. The response has right dates.\n2. To avoid: The response insults.\n" in text and "3." not in text
    assert made.rubric is not None and made.rubric.scope is Scope.DATASET and made.rubric.id == "set"
    first = made.rubric.criteria[0]
    assert first.text == "The response is accurate.\n- Its dates are right.\n- Its names are right."
    assert first.metadata == {"theme": ACCURATE["theme"], "tips": ACCURATE["tips"]}
    assert first.provenance is not None and len(first.provenance.evidence) == 2


async def test_tips_can_be_criteria_in_the_groups_of_their_themes() -> None:
    source = Source("all", rubrics=(rubric(*CRITERIA),), id="set")
    made = await ThemesGenerator(MockModel(themes(ACCURATE, KIND)), form="tips").generate(source)
    assert made.rubric is not None and made.rubric.scope is Scope.DATASET
    assert [group.text for group in made.rubric.groups] == ["The response is accurate.", "The response is kind."]
    assert [(one.text, one.path) for one in made.rubric.criteria] == [
        ("Its dates are right.", ("theme-c1",)),
        ("Its names are right.", ("theme-c1",)),
        ("It greets the reader.", ("theme-c2",)),
    ]
    assert all(one.provenance is not None for one in made.rubric.criteria)


async def test_both_forms_are_written_as_the_same_text() -> None:
    wanted = (
        "Theme: The response is accurate.\n- Tip: Its dates are right.\n- Tip: Its names are right.\n\n"
        "Theme: The response is kind.\n- Tip: It greets the reader."
    )
    model = MockModel(themes(ACCURATE, KIND))
    for generator in (ThemesGenerator(model), ThemesGenerator(model, form="tips")):
        made = await generator.structure(CRITERIA)
        assert made.rubric is not None and theme_tips_text(made.rubric) == wanted
    with pytest.raises(ConfigError, match="no theme"):
        theme_tips_text(rubric(*CRITERIA))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"theme": "The response is brief.", "tips": []}, "its tips are no list of texts"),
        ({"theme": "The response is brief.", "tips": ["Short.", 3]}, "its tips are no list of texts"),
        ({"tips": ["Short."]}, "no object with theme and tips"),
        ({"theme": "The response is brief.", "tips": ["a.", "b.", "c."]}, "3 tips, at most 2"),
        ({"theme": "The response is brief.", "tips": ["As criterion 4 says."]}, "other criteria"),
    ],
)
async def test_a_bad_theme_is_asked_for_again_and_then_dropped(bad: object, reason: str) -> None:
    model = MockModel([themes(ACCURATE, bad), themes(bad), themes(KIND)])
    made = await ThemesGenerator(model, tips=2).structure(CRITERIA)
    assert made.rubric is not None and len(made.rubric) == 2
    assert reason in model.requests[1].messages[-1].content


async def test_too_many_themes_are_asked_for_again_and_the_core_ends_in_themes() -> None:
    many = themes(
        *({"theme": f"The response is {name}.", "tips": ["So."]} for name in ("a", "b", "c", "d", "e", "f"))
    )
    model = MockModel([many, themes(ACCURATE, KIND)])
    core = CoreRubricGenerator(Writer(), ThemesGenerator(model), embedder=vectors)
    made = await core.generate_from(sources("apples", "boats"))
    assert made.rubric is not None and len(made.rubric) == 2 and made.usage.calls == 2 + 2
    assert [note.reason for note in made.notes] == ["there are 6 criteria, at most 5 are allowed"]
    told = as_object(made.extra["selection"])
    assert told is not None and sorted(map(str, as_array(told["chosen"]) or ())) == [
        "The response does apples.",
        "The response does boats.",
    ]


async def test_the_whole_method_out_of_a_model_and_a_judge() -> None:
    """One pair whose rubric leads the judge to the label, and one whose rubric does not."""

    def said(request: ChatRequest) -> str:
        text = request.messages[-1].content
        if "The themes, as JSON:" in text:
            return themes(ACCURATE)
        return json.dumps({"rubrics": ["The response is right." if "Apples" in text else "The response is odd."]})

    def by_text(prompt: str, first: str, second: str, text: str) -> Preferred:
        return "second" if "right" in text and "good" in second else "first"

    judge, model = RulePairJudge(by_text), MockModel(said)
    asked = [Source(name, pairs=(Preference(name, "good", "bad"),), id=name) for name in ("Apples?", "Boats?")]
    made = await AutoRubricDataset(model, judge, "mock", max_epochs=2).generate_from(asked)
    assert made.rubric is not None and made.rubric.scope is Scope.DATASET and len(made.rubric) == 1
    told = as_object(made.extra["selection"])
    assert told is not None and told["chosen"] == ["The response is right."] and told["sources"] == 2
    assert made.usage.calls == (1 + 2) + 2 * (1 + 2) + 1
    bare = await AutoRubricDataset(model, judge, "mock", themes=0).generate_from(asked[:1])
    assert bare.rubric is not None and bare.rubric.ids == ("c1",)
    scores = AutoRubricScores(model, ScriptedJudge(lambda response, criterion: response == "good"), max_epochs=1)
    ranked = await scores.generate(Source("Apples?", ranked=("good", "bad")))
    assert ranked.rubric is not None and ranked.rubric.criteria[0].text == "The response is right."
