"""Rubicon: tiered rubrics at three scopes, prompts that match a rubric, the central quantile of difficulty."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.mock import MockModel
from rubricate.data import Rollout
from rubricate.data.records import Turn
from rubricate.embed import MockEmbedder
from rubricate.errors import ConfigError, ServerError
from rubricate.judges import ScriptedJudge
from rubricate.rubrics import Criterion, Level, OrdinalScale, Polarity, Rubric, Scope
from rubricate.rubrics.filters import Case, apply
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.synthesis import RubiconGenerator
from rubricate.rubrics.generators.synthesis_difficulty import (
    CentralDifficulty,
    answer_pool,
    central_bounds,
    pool_score,
)
from rubricate.rubrics.generators.synthesis_prompts import PromptSynthesis
from rubricate.types import Failure, FailureCause, FailureKind

TIERS = [
    {"score": 0, "description": "flat"},
    {"score": 2, "description": "some"},
    {"score": 5, "description": "alive"},
]


def dimension(name: str, **changes: object) -> dict[str, object]:
    said = {"name": name, "description": f"The response shows {name} throughout.", "weight": 3, "critical": False}
    return said | {"tiers": TIERS} | changes


def answer(*dimensions: object) -> str:
    return json.dumps({"dimensions": dimensions})


GOOD = (dimension("imagery"), dimension("rhythm", weight=5), dimension("honesty", critical=True))


async def test_dimensions_become_tiered_criteria_and_critical_ones_vetoes() -> None:
    model = MockModel(answer(*GOOD))
    made = await RubiconGenerator(model).generate(Source("Write a poem about rain.", id="rain"))
    assert made.rubric is not None and made.rubric.scope is Scope.INSTANCE
    imagery, rhythm, honesty = made.rubric.criteria
    levels = (("0", 0.0, "flat"), ("2", 2.0, "some"), ("5", 5.0, "alive"))
    assert imagery.scale == OrdinalScale(
        levels=tuple(Level(label=label, value=value, description=said) for label, value, said in levels)
    )
    assert (rhythm.weight, rhythm.veto, honesty.veto, honesty.tags) == (5.0, False, True, ("critical",))
    assert imagery.id == "imagery" and "about rain" in model.requests[0].text()
    soft = await RubiconGenerator(MockModel(answer(*GOOD)), vetoes=False).generate(Source("Q"))
    assert soft.rubric is not None and not soft.rubric["honesty"].veto


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"weight": 6}, "1 to 5"),
        ({"tiers": TIERS[:2]}, "3 to 5 tiers"),
        ({"tiers": [TIERS[0], TIERS[2], TIERS[1]]}, "do not rise"),
        ({"tiers": [*TIERS, {"score": 9}]}, "each with a score and a description"),
        ({"description": ""}, "name and description"),
        ({"description": "The response shows imagery throughout."}, "says the same"),
    ],
)
async def test_a_dimension_that_breaks_a_rule_is_asked_for_again(change: dict[str, object], reason: str) -> None:
    model = MockModel([answer(*GOOD, dimension("voice", **change)), answer(dimension("voice"))])
    made = await RubiconGenerator(model).generate(Source("Q"))
    assert made.rubric is not None and len(made.rubric) == 4
    assert reason in model.requests[1].messages[-1].content


async def test_scopes_say_what_is_shown() -> None:
    model = MockModel(answer(*GOOD))
    task = await RubiconGenerator(model, scope="task").generate(Source("Writing poems", id="poems"))
    assert task.rubric is not None and task.rubric.scope is Scope.TASK
    assert "The task:" in model.requests[0].text() and "before any response" in model.requests[0].text()
    wide = RubiconGenerator(model, scope="dataset", examples=2)
    made = await wide.generate_from([Source(f"prompt {letter}") for letter in "ABCD"])
    assert made.rubric is not None and (made.rubric.scope, made.rubric.id) == (Scope.DATASET, "dataset")
    shown = model.requests[1].text()
    assert [f"prompt {letter}" in shown for letter in "ABCD"] == [True, False, True, False]
    with pytest.raises(ConfigError, match="wider scope"):
        await RubiconGenerator(model).generate_from([Source("a")])
    only = answer(*(one | {"critical": True} for one in GOOD))
    none = await RubiconGenerator(MockModel(only)).generate(Source("Q"))
    assert none.failure is not None and "all dimensions are critical" in none.failure.message
    assert pickle.loads(pickle.dumps(wide)).fingerprint == wide.fingerprint


RUBRIC = Rubric(
    criteria=(
        Criterion(id="imagery", text="The response uses images that appeal to more than one sense."),
        Criterion(id="rhythm", text="The response keeps a steady rhythm."),
    ),
    id="poems",
)


def prompts(*entries: tuple[str, list[int]]) -> str:
    return json.dumps({"prompts": [{"prompt": text, "criteria": numbers} for text, numbers in entries]})


async def test_prompts_match_the_rubric_and_what_cannot_be_used_is_asked_for_again() -> None:
    first = prompts(
        ("Write a poem about rain.", [1]),
        ("write a poem about RAIN!", [1]),
        ("Use images that appeal to more than one sense, about snow.", [1]),
        ("A haiku, please.", [7]),
        ("Existing one", [1]),
    )
    model = MockModel([first, prompts(("Write a march.", [2, 1]), ("A sonnet on tea", [1]))])
    made = await PromptSynthesis(model).synthesise(RUBRIC, 3, task="Poems", existing=["existing one"])
    assert [str(one.prompt) for one in made.sources] == [
        "Write a poem about rain.",
        "Write a march.",
        "A sonnet on tea",
    ]
    assert [one.metadata["criteria"] for one in made.sources] == [["imagery"], ["imagery", "rhythm"], ["imagery"]]
    assert [one.id for one in made.sources] == ["poems-1", "poems-2", "poems-3"]
    assert made.sources[0].rubrics == (RUBRIC,) and made.failure is None and made.unused == ()
    assert [note.reason for note in made.notes] == [
        "it is there already",
        "it quotes criterion 1",
        "it names no criterion of the rubric",
        "it is there already",
    ]
    second = model.requests[1].messages[-1].content
    assert (
        "it quotes criterion 1" in second
        and "write prompts that do: 2" in second
        and "exactly 2" in (model.requests[1].messages[0].content)
    )
    assert model.requests[0].temperature == 1.0 and model.requests[0].sample != model.requests[1].sample


async def test_near_copies_and_prompts_that_cannot_be_had() -> None:
    near = prompts(("Write a long poem about the rain", [1]), ("Write a long poem about the snow", [1]))
    made = await PromptSynthesis(MockModel(near), embedder=MockEmbedder(256), near=0.8, patience=1).synthesise(
        RUBRIC, 2
    )
    assert len(made.sources) == 1 and made.failure is not None and made.failure.kind is FailureKind.INCOMPLETE
    assert made.unused == ("rhythm",) and "nearly one" in made.notes[0].reason
    away = await PromptSynthesis(MockModel(ServerError("away"))).synthesise(RUBRIC, 2)
    assert away.sources == () and away.failure is not None and away.failure.kind is FailureKind.SERVER


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40))
def test_the_central_quantile_is_numpys_and_holds_half(scores: list[float]) -> None:
    low, high = central_bounds([None, *scores])
    ordered, last = sorted(scores), len(scores) - 1
    assert (low, high) == (ordered[round(0.25 * last)], ordered[round(0.75 * last)])
    assert sum(low <= one <= high for one in scores) >= max(len(scores) // 2, 1)


SIGNED = Rubric(
    criteria=(
        Criterion(id="a", text="The response has a.", weight=3.0),
        Criterion(id="b", text="The response has b.", weight=1.0, polarity=Polarity.PENALTY),
    )
)


def has(response: str, criterion: Criterion) -> bool | Failure:
    if "?" in response:
        return Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "away", True)
    return criterion.id in response.split()


JUDGE = ScriptedJudge(has)


async def test_too_hard_and_too_easy_prompts_go() -> None:
    pools = {"hard": ["b", "b"], "mid": ["a b", "x"], "mid2": ["a", "x"], "easy": ["a", "a"], "lost": ["?", "?"]}
    cases = [
        Case(SIGNED, name, id=name, pool=tuple(Rollout(name, text) for text in texts))
        for name, texts in pools.items()
    ]
    done = await apply([CentralDifficulty(JUDGE)], cases)
    # scores by hand: hard 0; mid (3/4 + 1/4) / 2 = .5; mid2 (1 + 1/4) / 2 = .625; easy 1; bounds .5 and .625
    assert [one.name for one in done.kept] == ["mid", "mid2", "lost"]
    assert [(one.name, one.reason.partition(":")[0], one.figures["score"]) for one in done.dropped] == [
        ("hard", "too hard", 0.0),
        ("easy", "too easy", 1.0),
    ]
    assert done.figures == {"central_difficulty.low": 0.5, "central_difficulty.high": 0.625}
    assert [one.name for one in done.flagged] == ["lost"]
    table = done.kept[0].table
    assert table is not None and pool_score(SIGNED, table) == 0.5
    dropped = await apply([CentralDifficulty(JUDGE, unknown="drop")], cases)
    assert "lost" in [one.name for one in dropped.dropped]


async def test_answers_of_the_base_model_make_the_pool() -> None:
    model = MockModel(["one", ServerError("away"), "<think>x</think>three", "<think>only</think>"])
    sources = [Source("Q?", id="q"), Source((Turn("system", "Be kind."), Turn("user", "R?")), id="r")]
    pools, usage = await answer_pool(model, sources, samples=2, concurrency=1)
    assert [[one.response for one in pool] for pool in pools] == [["one"], ["three"]]
    assert pools[1][0].id == "r#0" and usage.calls == 3
    assert [message.role for message in model.requests[2].messages] == ["system", "user"]
    assert [request.sample for request in model.requests] == [0, 1, 0, 1]
    for options in ({"low": 0.8, "high": 0.2}, {"concurrency": 0}):
        with pytest.raises(ConfigError):
            CentralDifficulty(JUDGE, **options)  # pyright: ignore[reportArgumentType]
