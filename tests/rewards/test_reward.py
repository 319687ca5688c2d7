"""RubricReward: order, deadlines, judges that misbehave, composition of rubrics, channels, streaming, pickling."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from rubricate.chat.timing import remaining
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ServerError, UnscoredError
from rubricate.rewardmodels import Aggregation, RubricReward, preset
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, RewardStatus, Usage, Verdict, fingerprint


class WordJudge:
    """A criterion is met when its id occurs in the response. Words in the response make it misbehave."""

    name = "words"

    def __init__(self, seen: list[str] | None = None) -> None:
        self.seen = [] if seen is None else seen
        self.closed = False
        self.time_left: float | None = None

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.name)

    async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
        text = str(rollout.response)
        self.seen.append(text)
        if "crash" in text:
            raise RuntimeError("bug")
        if "down" in text:
            raise ServerError("503")
        if "hang" in text:
            await asyncio.Event().wait()
        if "late" in text:
            await asyncio.sleep(0)
        if "partial" in text:  # as a judge whose calls keep the deadline that the reward sets
            self.time_left = remaining()
            await asyncio.sleep(self.time_left or 0.0)
            return self._said(text, rubric, late=1)
        return self._said(text, rubric)

    def _said(self, text: str, rubric: Rubric, late: int = 0) -> Judgement:
        deadline = Failure(FailureKind.DEADLINE, FailureCause.INFRASTRUCTURE, "too late", True)
        verdicts = [
            Verdict.failed(c.id, deadline, judge=self.name)
            if index >= len(rubric) - late
            else Verdict(c.id, float(c.id in text), judge=self.name)
            for index, c in enumerate(rubric.criteria)
        ]
        return Judgement(tuple(verdicts), usage=Usage(calls=len(verdicts), prompt_tokens=7))

    def check(self, rubric: Rubric) -> None:
        return None

    async def aclose(self) -> None:
        self.closed = True


class ScriptJudge(WordJudge):
    """Says what it is told for each (response, criterion id); a FailureKind is a failed verdict."""

    def __init__(self, script: dict[tuple[str, str], float | FailureKind | None]) -> None:
        super().__init__()
        self.script = script

    async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
        return Judgement(tuple(self._verdict(str(rollout.response), c.id) for c in rubric.criteria))

    def _verdict(self, response: str, criterion_id: str) -> Verdict:
        said = self.script.get((response, criterion_id), 1.0)
        if isinstance(said, FailureKind):
            return Verdict.failed(criterion_id, Failure(said, FailureCause.INFRASTRUCTURE), judge=self.name)
        if said is None:
            return Verdict.not_applicable(criterion_id, judge=self.name)
        return Verdict(criterion_id, said, judge=self.name)


class HolisticJudge(WordJudge):
    name = "holistic"

    async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
        if "crash" in str(rollout.response):
            raise RuntimeError("bug")
        return Judgement(overall=Verdict("overall", 2 / 3, raw=7, judge=self.name))


def criterion(name: str, weight: float = 1.0, **fields: object) -> Criterion:
    return Criterion.model_validate({"id": name, "text": f"The response says {name}.", "weight": weight, **fields})


def rollout(response: str, prompt: str = "Say something.") -> Rollout:
    return Rollout(prompt, response)


RUBRIC = Rubric(criteria=(criterion("red", 3), criterion("blue", 1)), version="2")


def test_one_response_fills_every_field() -> None:
    judge = WordJudge()
    reward = RubricReward(judge, RUBRIC).score(rollout("red"))
    assert reward.value == 0.75
    assert reward.status is RewardStatus.OK
    assert reward.bounds == (0.75, 0.75)
    assert reward.coverage == 1.0
    assert [v.criterion_id for v in reward.verdicts] == ["red", "blue"]
    assert reward.rubric_fingerprint == RUBRIC.fingerprint
    assert reward.rubric_version == "2"
    assert reward.judge_fingerprint == judge.fingerprint
    assert reward.usage == Usage(calls=2, prompt_tokens=7)
    assert reward.latency >= 0.0
    assert reward.to_dict()["value"] == 0.75


def test_a_batch_keeps_its_order_and_each_row_stands_alone(caplog: pytest.LogCaptureFixture) -> None:
    reward = RubricReward(WordJudge(), RUBRIC, deadline=5)
    with caplog.at_level(logging.ERROR):
        found = reward.score_batch([rollout(text) for text in ("late red", "crash", "blue", "down", "red blue")])
    assert [r.value for r in found] == [0.75, None, 0.25, None, 1.0]
    crashed, down = found[1], found[3]
    assert crashed.failure is not None and down.failure is not None
    assert crashed.failure.kind is FailureKind.INTERNAL
    assert crashed.failure.cause is FailureCause.INFRASTRUCTURE
    assert "RuntimeError: bug" in crashed.failure.message
    assert (crashed.failure.retryable, down.failure.retryable) == (False, True)
    assert crashed.bounds == (0.0, 1.0)
    assert crashed.coverage == 0.0
    assert "judge words failed" in caplog.text
    assert reward.score_batch([]) == []


def test_the_deadline_holds_and_keeps_what_is_done() -> None:
    judge = WordJudge()
    reward = RubricReward(judge, RUBRIC, deadline=0.2)
    start = time.monotonic()
    found = reward.score_batch([rollout(text) for text in ("red", "hang", "partial red", "blue")])
    assert time.monotonic() - start < 2.0
    assert [r.value for r in found] == [0.75, None, None, 0.25]
    hung, partial = found[1], found[2]
    assert hung.failure is not None and hung.failure.kind is FailureKind.DEADLINE
    assert "0.2 s" in hung.failure.message
    assert partial.failure is not None and partial.failure.kind is FailureKind.DEADLINE
    assert [v.score for v in partial.verdicts] == [1.0, None]
    assert partial.bounds == (0.75, 1.0)
    # The judge's calls end before the reward's deadline, or there would be no time to hand over what it has.
    assert judge.time_left is not None and judge.time_left < 0.19


def test_rows_that_wait_for_their_turn_end_with_the_deadline_too() -> None:
    judge = WordJudge()
    reward = RubricReward(judge, RUBRIC, deadline=0.1, concurrency=1)
    found = reward.score_batch([rollout("hang"), rollout("red"), rollout("blue")])
    assert [r.value for r in found] == [None, None, None]
    assert judge.seen == ["hang"]


class TestCauses:
    def test_the_response_if_the_same_question_was_judged_elsewhere(self) -> None:
        script: dict[tuple[str, str], float | FailureKind | None] = {
            ("long", "red"): FailureKind.OVERFLOW,
            ("long", "blue"): FailureKind.OVERFLOW,
            ("a", "blue"): FailureKind.SERVER,
        }
        found = RubricReward(ScriptJudge(script), RUBRIC).score_batch([rollout("a"), rollout("long"), rollout("b")])
        assert [r.value for r in found] == [None, None, 1.0]
        assert found[1].failure is not None and found[1].failure.cause is FailureCause.RESPONSE
        assert found[0].failure is not None and found[0].failure.cause is FailureCause.INFRASTRUCTURE

    def test_the_infrastructure_if_nothing_was_judged(self) -> None:
        script: dict[tuple[str, str], float | FailureKind | None] = {
            (text, name): FailureKind.UNPARSABLE for text in "ab" for name in RUBRIC.ids
        }
        found = RubricReward(ScriptJudge(script), RUBRIC).score_batch([rollout("a"), rollout("b")])
        assert {r.failure.cause for r in found if r.failure is not None} == {FailureCause.INFRASTRUCTURE}

    def test_a_criterion_that_fails_everywhere_is_not_the_responses_doing(self) -> None:
        script: dict[tuple[str, str], float | FailureKind | None] = {
            (text, "blue"): FailureKind.UNPARSABLE for text in "ab"
        }
        found = RubricReward(ScriptJudge(script), RUBRIC).score_batch([rollout("a"), rollout("b")])
        assert {r.failure.cause for r in found if r.failure is not None} == {FailureCause.INFRASTRUCTURE}

    def test_other_criteria_decide_for_a_single_response(self) -> None:
        judge = ScriptJudge({("a", "blue"): FailureKind.REFUSAL})
        reward = RubricReward(judge, RUBRIC, aggregation=preset("weighted", response_failures="floor"))
        found = reward.score(rollout("a"))
        assert (found.value, found.status) == (0.0, RewardStatus.FLOORED)
        broken = ScriptJudge({("a", "blue"): FailureKind.REFUSAL, ("a", "red"): FailureKind.REFUSAL})
        masked = RubricReward(broken, RUBRIC, aggregation=preset("weighted", response_failures="floor"))
        assert masked.score(rollout("a")).value is None

    async def test_a_stream_settles_them_as_a_batch_does(self) -> None:
        script: dict[tuple[str, str], float | FailureKind | None] = {
            ("long", "red"): FailureKind.OVERFLOW,
            ("long", "blue"): FailureKind.OVERFLOW,
        }
        reward = RubricReward(
            ScriptJudge(script), RUBRIC, aggregation=preset("weighted", response_failures="floor")
        )
        rows = [rollout("long"), rollout("a"), rollout("b")]
        found = [pair async for pair in reward.as_scored(rows)]
        assert sorted(index for index, _ in found) == [0, 1, 2]
        assert found[-1][0] == 0
        assert found[-1][1].status is RewardStatus.FLOORED
        together = await reward.ascore_batch(rows)
        assert [r.value for r in together] == [dict(found)[index].value for index in range(3)]


class TestRubrics:
    def test_a_rows_own_rubric_adds_up_with_the_constant_one(self) -> None:
        own = Rubric(criteria=(criterion("green", 4),))
        reward = RubricReward(WordJudge(), RUBRIC)
        found = reward.score_batch([rollout("red green"), rollout("red")], [own, None])
        assert [r.value for r in found] == [7 / 8, 0.75]
        assert [v.criterion_id for v in found[0].verdicts] == ["red", "blue", "green"]
        assert found[0].rubric_fingerprint != found[1].rubric_fingerprint == RUBRIC.fingerprint

    def test_without_any_rubric(self) -> None:
        judge = WordJudge()
        with pytest.raises(ConfigError, match="no rubric"):
            RubricReward(judge).score_batch([rollout("red"), rollout("blue")], [RUBRIC, None])
        assert judge.seen == []
        with pytest.raises(ConfigError, match="1 rubrics"):
            RubricReward(judge).score_batch([rollout("red"), rollout("blue")], [RUBRIC])

    def test_a_group_shares_a_prompt(self) -> None:
        reward = RubricReward(WordJudge())
        assert [r.value for r in reward.score_group([rollout("red"), rollout("")], RUBRIC)] == [0.75, 0.0]
        with pytest.raises(ConfigError, match="one prompt"):
            reward.score_group([rollout("red"), rollout("red", "Else.")], RUBRIC)

    def test_a_rubric_that_does_not_fit_the_aggregation_fails_early(self) -> None:
        with pytest.raises(ConfigError, match="importance"):
            RubricReward(WordJudge(), RUBRIC, aggregation="rar")
        veto = Rubric(criteria=(criterion("red", veto=True), criterion("rude", polarity="penalty")))
        judge = WordJudge()
        with pytest.raises(ConfigError, match="floor"):
            RubricReward(judge, veto, aggregation=Aggregation(floor=0.0)).score(rollout("red"))
        assert judge.seen == []


class TestChannels:
    RUBRIC = Rubric(
        criteria=(
            criterion("red", channel="style"),
            criterion("blue", channel="style"),
            criterion("right", 2, channel="accuracy"),
            criterion("kind"),
        )
    )

    def test_those_of_the_constant_rubric(self) -> None:
        reward = RubricReward(WordJudge(), self.RUBRIC)
        assert reward.channels == ("style", "accuracy", "general")
        found = reward.score(rollout("red right"))
        assert found.value == pytest.approx(3 / 5)
        assert dict(found.channels) == {"style": 0.5, "accuracy": 1.0, "general": 0.0}
        assert RubricReward(WordJudge(), RUBRIC).channels == ()

    def test_declared_names_are_the_same_for_every_rubric(self) -> None:
        reward = RubricReward(WordJudge(), channels=["accuracy", "style"])
        plain = reward.score(rollout("red"), RUBRIC)
        assert dict(plain.channels) == {"accuracy": None, "style": None, "general": 0.75}
        full = reward.score(rollout("red"), self.RUBRIC)
        assert list(full.channels) == list(plain.channels)

    def test_undeclared_ones(self) -> None:
        with pytest.raises(ConfigError, match="'red' has the channel 'style'"):
            RubricReward(WordJudge(), channels=["accuracy"]).score(rollout("red"), self.RUBRIC)
        reward = RubricReward(WordJudge(), channels=["accuracy"], undeclared_channels="other")
        found = reward.score(rollout("red"), self.RUBRIC)
        assert dict(found.channels) == {"accuracy": 0.0, "general": 0.0, "other": 0.5}
        with pytest.raises(ConfigError, match="differ"):
            RubricReward(WordJudge(), channels=["a", "a"])

    def test_unknown_verdicts_and_vetoes_stay_in_their_channel(self) -> None:
        rubric = Rubric(
            criteria=(
                criterion("red", channel="style"),
                criterion("safe", channel="safety", veto=True),
                criterion("right", channel="accuracy"),
                criterion("rude", 0.5, channel="style", polarity="penalty"),
            )
        )
        judge = ScriptJudge({("a", "safe"): 0.0, ("a", "right"): FailureKind.SERVER, ("a", "rude"): 1.0})
        found = RubricReward(judge, rubric, aggregation=Aggregation(floor=-3.0)).score(rollout("a"))
        assert (found.value, found.vetoed_by) == (-3.0, ("safe",))
        assert dict(found.channels) == {"style": 0.5, "safety": 0.0, "accuracy": None}


class TestImplicit:
    def test_overall_verdicts(self) -> None:
        found = RubricReward(HolisticJudge(), RUBRIC, aggregation="rar_implicit").score_batch(
            [rollout("a"), rollout("crash")]
        )
        assert found[0].value == pytest.approx(2 / 3)
        assert found[0].overall is not None and found[0].verdicts == ()
        assert found[1].value is None
        assert found[1].overall is not None and found[1].failure is not None
        assert found[1].failure.kind is FailureKind.INTERNAL

    def test_a_holistic_judge_needs_it(self) -> None:
        with pytest.raises(ConfigError, match="rar_implicit"):
            RubricReward(HolisticJudge(), RUBRIC).score(rollout("a"))


class TestRaising:
    def test_after_the_whole_batch(self) -> None:
        judge = WordJudge()
        reward = RubricReward(judge, RUBRIC, aggregation=preset("weighted", missing="raise"))
        with pytest.raises(UnscoredError, match="2 of 3 responses"):
            reward.score_batch([rollout("down"), rollout("red"), rollout("down")])
        assert len(judge.seen) == 3

    async def test_at_the_row_of_a_stream(self) -> None:
        reward = RubricReward(WordJudge(), RUBRIC, aggregation=preset("weighted", missing="raise"), concurrency=1)
        with pytest.raises(UnscoredError, match="1 of 1"):
            _ = [pair async for pair in reward.as_scored([rollout("red"), rollout("down"), rollout("blue")])]


class TestStreams:
    async def test_rows_are_read_as_they_are_needed(self) -> None:
        read: list[int] = []

        def rows() -> Iterator[Rollout]:
            for index in range(100):
                read.append(index)
                yield rollout("red" if index % 2 else "blue")

        reward = RubricReward(WordJudge(), RUBRIC, concurrency=4)
        stream = reward.as_scored(rows())
        first = await anext(stream)
        assert first[1].value in (0.25, 0.75)
        assert len(read) < 20
        rest = [pair async for pair in stream]
        assert sorted([first[0], *(index for index, _ in rest)]) == list(range(100))

    async def test_each_row_has_the_deadline_for_itself(self) -> None:
        reward = RubricReward(WordJudge(), RUBRIC, concurrency=1, deadline=0.05)
        found = dict([pair async for pair in reward.as_scored([rollout("hang"), rollout("red")])])
        assert [found[0].value, found[1].value] == [None, 0.75]

    async def test_closing_early_cancels_what_runs(self) -> None:
        reward = RubricReward(WordJudge(), RUBRIC, deadline=None)
        async with aclosing(reward.as_scored([rollout("red"), rollout("hang")])) as stream:
            assert (await anext(stream))[0] == 0
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_unequal_lengths_are_an_error(self) -> None:
        reward = RubricReward(WordJudge())
        with pytest.raises(ConfigError, match="equally many"):
            _ = [pair async for pair in reward.as_scored(iter([rollout("red")]), iter([RUBRIC, RUBRIC]))]


async def test_from_inside_a_running_loop() -> None:
    reward = RubricReward(WordJudge(), RUBRIC)
    assert reward.score(rollout("red")).value == 0.75
    assert (await reward.ascore(rollout("red"))).value == 0.75
    assert [r.value for r in await reward.ascore_group([rollout("red"), rollout("blue")])] == [0.75, 0.25]


async def test_cancelling_the_call_cancels_the_judge() -> None:
    reward = RubricReward(WordJudge(), RUBRIC, deadline=None)
    task = asyncio.create_task(reward.ascore(rollout("hang")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    done, pending = await asyncio.wait(others, timeout=1) if others else (set[object](), set[object]())
    assert not pending and len(done) == len(others)


def test_it_pickles_and_names_differ() -> None:
    first, second = RubricReward(WordJudge(), RUBRIC), RubricReward(WordJudge(), RUBRIC)
    assert first.__name__ != second.__name__
    assert RubricReward(WordJudge(), RUBRIC, name="mine").__name__ == "mine"
    first.score(rollout("red"))
    copy = pickle.loads(pickle.dumps(first))
    assert isinstance(copy, RubricReward)
    assert copy.__name__ == first.__name__
    assert copy.score(rollout("red")).value == 0.75


def test_closing() -> None:
    judge = WordJudge()
    RubricReward(judge, RUBRIC).close()
    assert judge.closed


@pytest.mark.parametrize(
    "options",
    [{"deadline": 0}, {"deadline": float("inf")}, {"concurrency": 0}, {"unscored": "zero"}, {"unscored": True}],
)
def test_wrong_options(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        RubricReward(WordJudge(), RUBRIC, **options)  # type: ignore[arg-type] # wrong on purpose


def test_extra_and_missing_verdicts_of_a_judge() -> None:
    class Sloppy(WordJudge):
        async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
            return Judgement((Verdict("blue", 1.0), Verdict("unknown", 1.0)))

    found = RubricReward(Sloppy(), RUBRIC).score(rollout("a"))
    assert found.value is None
    assert [v.criterion_id for v in found.verdicts] == ["red", "blue"]
    assert found.failure is not None and found.failure.kind is FailureKind.INCOMPLETE


def test_polarity_is_the_aggregations_alone() -> None:
    rubric = Rubric(criteria=(criterion("red"), criterion("rude", polarity=Polarity.PENALTY)))
    found = RubricReward(WordJudge(), rubric, aggregation="healthbench").score(rollout("red rude"))
    assert (found.value, [v.score for v in found.verdicts]) == (0.0, [1.0, 1.0])
