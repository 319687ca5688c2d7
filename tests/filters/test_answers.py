"""Validity apart from satisfaction, and criteria that point the wrong way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from filter_cases import OUTAGE, criterion, rubric, table

from rubricate.data import Rollout
from rubricate.errors import ConfigError
from rubricate.judges.scripted import ScriptedJudge
from rubricate.rubrics import Criterion
from rubricate.rubrics.filters import Case, Misalignment, Validity, apply, critic_labels
from rubricate.types import Failure, Judgement


def answer(response: str, one: Criterion) -> bool | Failure | None:
    """Valid is what does not speak of the moon; for other criteria, met is what the response names."""
    if one.id == "valid":
        return OUTAGE if "broken" in response else "moon" not in response
    return OUTAGE if "away" in response else one.id in response


class Seeing(ScriptedJudge):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__(answer)
        self.shown: list[tuple[Rollout, str]] = []

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        self.shown += [(rollout, one.text) for one in criteria]
        return await super().judge_criteria(rollout, criteria)


async def test_a_judge_is_asked_of_each_criterion_in_the_responses_place() -> None:
    judge = Seeing()
    made = rubric(
        criterion("a", "Names the capital.", condition="the prompt asks for one"),
        criterion("b", "Names the phase of the moon."),
        criterion("c", "Invents a capital.", polarity="penalty"),
        criterion("d", "This is broken."),
    )
    found = await apply([Validity(judge)], [Case(made, prompt="What is it?", reference="Paris")])
    assert found.kept[0].rubric.ids == ("a", "c", "d")
    assert found.dropped[0].figures == {"valid": 0.0}
    assert [one.criterion_id for one in found.flagged] == ["d"]
    assert found.usage.calls == 4
    rollout, text = judge.shown[0]
    assert (rollout.prompt, rollout.reference) == ("What is it?", "Paris")
    assert rollout.response == "Names the capital.\n(It applies only where this holds: the prompt asks for one)"
    assert "criterion" in text
    assert "error" in judge.shown[2][1]  # another question for penalties
    strict = await apply([Validity(judge, unknown="drop")], [Case(made)])
    assert strict.kept[0].rubric.ids == ("a", "c")


async def test_the_reference_shows_what_is_valid() -> None:
    made = rubric("paris", "london", criterion("rome", polarity="penalty"), criterion("par", polarity="penalty"))
    case = Case(made, reference="paris")
    found = await apply([Validity(ScriptedJudge(answer), by="reference")], [case])
    assert found.kept[0].rubric.ids == ("paris", "rome")
    assert "the reference fails it" in found.dropped[0].reason
    bare = await apply([Validity(ScriptedJudge(answer), by="reference")], [Case(made)])
    assert len(bare.kept) == 1
    assert bare.flagged[0].what == "rubric"


async def test_valid_and_unsatisfied_is_what_there_is_to_learn() -> None:
    pool = tuple(Rollout("p", text) for text in ("a b", "a", "a away"))
    made = rubric("a", "b", criterion("moon", "Names the moon."))
    found = await apply([Validity(ScriptedJudge(answer), need_unsatisfied=True)], [Case(made, pool=pool)])
    said = {one.criterion_id: one.reason for one in found.dropped}
    assert found.kept[0].rubric.ids == ("b",)
    assert "no response of the pool fails it" in said["a"]
    assert "not valid" in said["moon"]  # no response has it either, and that makes it no better
    assert found.dropped[0].figures == {"failing": 0, "known": 2, "responses": 3}


def test_the_label_of_a_critic_keeps_validity_and_satisfaction_apart() -> None:
    scores = table({"a": [[1.0], [0.0], [None]]})
    good, bad = criterion("a"), criterion("a", polarity="penalty")
    assert critic_labels(good, True, scores) == [False, True, None]
    assert critic_labels(good, False, scores) == [False, False, False]
    assert critic_labels(good, None, scores) == [False, None, None]
    assert critic_labels(bad, True, scores) == [True, False, None]


async def test_what_a_weak_response_passes_and_a_strong_one_fails_goes() -> None:
    made = rubric(
        "weakly", "strongly", "both", criterion("neither"),
        criterion("weakly_bad", polarity="penalty"), criterion("strongly_bad", polarity="penalty"),
    )  # fmt: skip
    case = Case(
        made, weak=Rollout("p", "weakly weakly_bad both"), strong=Rollout("p", "strongly strongly_bad both")
    )
    judge = ScriptedJudge(lambda response, one: one.id in response.split())
    found = await apply([Misalignment(judge)], [case])
    assert [one.criterion_id for one in found.dropped] == ["weakly", "strongly_bad"]
    assert found.dropped[0].figures == {"weak": 1.0, "strong": 0.0}
    assert found.dropped[1].figures == {"weak": 1.0, "strong": 0.0}  # credits: the error is absent, and there


async def test_a_missing_verdict_is_no_misalignment() -> None:
    case = Case(rubric("a", "b"), weak=Rollout("p", "a"), strong=Rollout("p", "away"))
    judge = ScriptedJudge(answer)
    found = await apply([Misalignment(judge)], [case])
    assert found.kept == [case]
    assert [one.criterion_id for one in found.flagged] == ["a"]  # `b` cannot be misaligned: the weak one fails it
    dropping = await apply([Misalignment(judge, unknown="drop")], [case])
    assert dropping.kept[0].rubric.ids == ("b",)
    alone = await apply([Misalignment(judge)], [Case(rubric("a"))])
    assert alone.flagged[0].what == "rubric"


def test_options_outside_their_ranges_are_refused() -> None:
    judge = ScriptedJudge(answer)
    for options in ({"by": "luck"}, {"threshold": 2.0}, {"unknown": "maybe"}, {"concurrency": 0}):
        with pytest.raises(ConfigError):
            Validity(judge, **options)  # type: ignore[arg-type]  # wrong on purpose
