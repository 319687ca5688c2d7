"""Criteria at scoring time: CARMO, SPCT's principles, rubrics kept by prompt, and the reward that uses them."""

from __future__ import annotations

import asyncio
import json
import pickle

import pytest

from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import MockModel, Scripted
from rubricate.data.records import Rollout
from rubricate.errors import BudgetError, ConfigError
from rubricate.judges.scripted import ScriptedJudge
from rubricate.rewardmodels.dynamic import DynamicReward
from rubricate.rewardmodels.reward import RubricReward
from rubricate.rubrics import Criterion, NumericScale, Rubric
from rubricate.rubrics.generators.base import Generated, NoteKind
from rubricate.rubrics.generators.cached import PromptRubrics
from rubricate.rubrics.generators.dynamic import CarmoGenerator, PrinciplesGenerator
from rubricate.rubrics.generators.source import Source
from rubricate.types import FailureKind, RewardStatus

QUERY = Source("How do vaccines work?", candidates=("Badly.", "They train the immune system."), id="q")


def carmo(name: str, description: str, *questions: str) -> dict[str, object]:
    return {"name": name, "description": description, "questions": questions or ("Is it so?",)}


MECHANISM = carmo("Mechanism", "The response explains immune memory.", "Is memory named?", "Is its role told?")
EXAMPLE = carmo("Example", "The response gives an example of a vaccine.")


def criteria(*items: object) -> str:
    return json.dumps({"criteria": items})


async def test_carmo_writes_criteria_with_questions_beside_the_three_of_every_query() -> None:
    model = MockModel(criteria(MECHANISM, EXAMPLE))
    made = await CarmoGenerator(model).generate(QUERY)
    assert made.rubric is not None
    assert made.rubric.ids == ("mechanism", "example", "honesty", "helpfulness", "harmlessness")
    first = made.rubric["mechanism"]
    assert first.text.startswith("The response explains immune memory.")
    assert first.text.endswith("Is memory named? Is its role told?")
    assert first.metadata["questions"] == ["Is memory named?", "Is its role told?"]
    assert {one.provenance.generator for one in made.rubric.criteria if one.provenance} == {"carmo"}
    assert "owns up to its limits" in model.requests[0].messages[0].content
    assert "Badly." not in model.requests[0].text()


async def test_carmo_asks_for_no_length_that_the_query_does_not_ask_for() -> None:
    long = carmo("Length", "The response has at most 100 words.")
    model = MockModel([criteria(MECHANISM, EXAMPLE, long), criteria(carmo("Trials", "The response names trials."))])
    made = await CarmoGenerator(model, always=()).generate(QUERY)
    assert made.rubric is not None and made.rubric.ids == ("mechanism", "example", "trials")
    assert "that the prompt does not ask for" in model.requests[1].messages[-1].content
    asked = Source("How do vaccines work? At most 100 words.")
    made = await CarmoGenerator(MockModel(criteria(MECHANISM, EXAMPLE, long)), always=()).generate(asked)
    assert made.rubric is not None and len(made.rubric) == 3 and made.notes == ()


async def test_carmo_drops_what_has_no_questions() -> None:
    bare = {"name": "Tone", "description": "The response is calm."}
    made = await CarmoGenerator(MockModel(criteria(MECHANISM, EXAMPLE, bare)), on_bad="drop").generate(QUERY)
    assert made.rubric is not None
    assert [(note.kind, note.reason) for note in made.notes] == [
        (NoteKind.DROPPED, "it has no questions to go through")
    ]
    scaled = await CarmoGenerator(MockModel(criteria(MECHANISM, EXAMPLE)), scale="1-5").generate(QUERY)
    assert scaled.rubric is not None
    assert {str(one.scale) for one in scaled.rubric.criteria} == {str(NumericScale(low=1, high=5, integer=True))}


def principles(*weights: object) -> str:
    names = ("Accuracy", "Depth", "Plainness")
    items = [
        {"name": name, "description": f"The response has {name.lower()} about vaccines.", "weight": weight}
        for name, weight in zip(names, weights, strict=False)
    ]
    return json.dumps({"principles": items})


async def test_principles_see_the_responses_and_share_the_weight() -> None:
    model = MockModel(principles(60, 30, 30))
    made = await PrinciplesGenerator(model).generate(QUERY)
    text = model.requests[0].messages[-1].content
    assert "They train the immune system." in text and "<responses_2-" in text
    assert made.rubric is not None
    weights = {one.id: one.weight for one in made.rubric.criteria}
    assert weights["accuracy"] == pytest.approx(0.5) and weights["depth"] == pytest.approx(0.25)
    assert weights["usefulness"] == 0.25 and sum(weights.values()) == pytest.approx(2.0)
    blind = MockModel(principles(50, 50))
    await PrinciplesGenerator(blind, most_responses=0, general=()).generate(QUERY)
    assert "Badly." not in blind.requests[0].text()


async def test_principles_with_impossible_weights_fail() -> None:
    made = await PrinciplesGenerator(MockModel(principles(0, "much"))).generate(QUERY)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.INCOMPLETE
    assert sum(note.kind is NoteKind.DROPPED for note in made.notes) == 2


async def test_a_prompt_has_one_rubric_however_often_it_is_asked_for() -> None:
    model = MockModel(criteria(MECHANISM, EXAMPLE))
    rubrics = PromptRubrics(CarmoGenerator(model), size=1)
    made = await asyncio.gather(*(rubrics.get(QUERY) for _ in range(5)))
    assert len(model.requests) == 1 and len({one.rubric.fingerprint for one in made if one.rubric}) == 1
    assert [one.usage.calls for one in made] == [1, 0, 0, 0, 0]
    assert (await rubrics.get(Source(QUERY.prompt, candidates=("other",)))).usage.calls == 0
    await rubrics.get(Source("Another?"))
    assert len(rubrics) == 1
    assert (await rubrics.get(QUERY)).usage.calls == 1
    assert len(pickle.loads(pickle.dumps(rubrics))) == 1


async def test_failures_are_tried_again_and_hanging_ones_end() -> None:
    model = MockModel([BudgetError("none left"), criteria(MECHANISM, EXAMPLE)])
    rubrics = PromptRubrics(CarmoGenerator(model))
    first = await rubrics.get(QUERY)
    assert first.failure is not None and first.failure.kind is FailureKind.BUDGET
    assert (await rubrics.get(QUERY)).rubric is not None
    late = await PromptRubrics(CarmoGenerator(MockModel(Scripted(hang=True))), seconds=0.05).get(QUERY)
    assert late.failure is not None and late.failure.kind is FailureKind.DEADLINE
    with pytest.raises(ConfigError, match="size"):
        PromptRubrics(CarmoGenerator(model), size=0)


def by_query(request: ChatRequest) -> str | BudgetError:
    if "broken" in request.text():
        return BudgetError("the budget is used up")
    return criteria(MECHANISM, EXAMPLE)


def rollouts() -> list[Rollout]:
    return [
        Rollout("How do vaccines work?", "a"),
        Rollout("How do broken things work?", "b"),
        Rollout("How do vaccines work?", "c"),
        Rollout("How do boats float?", "d"),
    ]


async def test_a_reward_scores_by_generated_rubrics_and_leaves_the_rest_unscored() -> None:
    model = MockModel(by_query)
    constant = Rubric(criteria=(Criterion(id="no-praise", text="The response praises nobody."),))
    reward = RubricReward(ScriptedJudge(lambda rollout, criterion: 1.0), constant, name="r")
    dynamic = DynamicReward(reward, CarmoGenerator(model, always=()))
    scored = await dynamic.ascore_batch(rollouts())
    assert [one.value for one in scored] == [1.0, None, 1.0, 1.0]
    assert [verdict.criterion_id for verdict in scored[0].verdicts] == ["no-praise", "mechanism", "example"]
    broken = scored[1]
    assert broken.status is RewardStatus.UNSCORED and broken.failure is not None
    assert broken.failure.kind is FailureKind.BUDGET and broken.channels.keys() == scored[0].channels.keys()
    assert len(model.requests) == 3
    assert [one.usage.calls for one in scored] == [1 + 3, 0, 3, 1 + 3]  # three verdicts each, two rubrics
    own = Rubric(criteria=(Criterion(id="own", text="The response is short."),))
    again = await dynamic.ascore_batch(rollouts()[:1], [own])
    assert "own" in [verdict.criterion_id for verdict in again[0].verdicts] and len(model.requests) == 3
    await dynamic.aclose()


def test_it_is_a_reward_function_of_trl() -> None:
    reward = RubricReward(ScriptedJudge(lambda rollout, criterion: 0.5), name="r", num_generations=2)
    dynamic = DynamicReward(reward, CarmoGenerator(MockModel(by_query)))
    logged: dict[str, float] = {}
    prompts = ["How do vaccines work?"] * 2 + ["How do broken things work?"] * 2
    values = dynamic(prompts, ["a", "b", "c", "d"], log_metric=logged.__setitem__)
    assert values == [0.5, 0.5, None, None] and logged and dynamic.__name__ == "r"


async def test_a_generator_that_sees_responses_makes_a_rubric_a_group() -> None:
    model = MockModel(principles(50, 50))
    dynamic = DynamicReward(RubricReward(ScriptedJudge(lambda rollout, criterion: 1.0)), PrinciplesGenerator(model))
    await dynamic.ascore_batch([Rollout("Q?", "first"), Rollout("Q?", "second")])
    assert "first" in model.requests[0].text() and "second" in model.requests[0].text()
    await dynamic.ascore_batch([Rollout("Q?", "third")])
    assert len(model.requests) == 2


class _Broken(CarmoGenerator):
    async def write(self, source: Source) -> Generated:
        raise KeyError("a bug")


async def test_a_generator_with_a_bug_leaves_rows_unscored(caplog: pytest.LogCaptureFixture) -> None:
    dynamic = DynamicReward(RubricReward(ScriptedJudge(lambda rollout, criterion: 1.0)), _Broken(MockModel("")))
    (scored,) = await dynamic.ascore_batch([Rollout("Q?", "a")])
    assert scored.value is None and scored.failure is not None and scored.failure.kind is FailureKind.INTERNAL
    assert "failed" in caplog.text
