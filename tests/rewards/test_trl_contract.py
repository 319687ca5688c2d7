"""TRL's reward contract, called as TRL calls it, without TRL."""

from __future__ import annotations

import inspect
import json
import logging
import math
import pickle
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from rubricate.data.records import Rollout, Turn
from rubricate.errors import ConfigError, FormatError, UnscoredError
from rubricate.rewardmodels import RubricReward, trl_contract
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Verdict


class EchoJudge:
    """Met when the criterion's id is in the last text of the response; fails on "down"."""

    name = "echo"
    fingerprint = "echo"

    def __init__(self) -> None:
        self.rollouts: list[Rollout] = []

    async def judge(self, rollout: Rollout, rubric: Rubric) -> Judgement:
        self.rollouts.append(rollout)
        text = rollout.response if isinstance(rollout.response, str) else rollout.response[-1].content
        return Judgement(tuple(self._verdict(text, name) for name in rubric.ids))

    def _verdict(self, text: str, name: str) -> Verdict:
        if "down" in text:
            why = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "503")
            return Verdict.failed(name, why, judge=self.name)
        return Verdict(name, float(name in text), judge=self.name)

    def check(self, rubric: Rubric) -> None:
        return None

    async def aclose(self) -> None:
        return None


@dataclass
class Logs:
    """What TRL passes besides the columns."""

    columns: dict[str, list[object]] = field(default_factory=lambda: defaultdict(list))
    metrics: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def log_extra(self, column: str, values: list[object]) -> None:
        self.columns[column].extend(values)

    def log_metric(self, name: str, value: float) -> None:
        self.metrics[name].append(value)


def version_is(text: str) -> Callable[[str], str]:
    def version(name: str) -> str:
        return text

    return version


def rubric(*names: str, channel: str | None = None) -> Rubric:
    return Rubric(criteria=tuple(Criterion(id=name, text=f"It says {name}.", channel=channel) for name in names))


COLOURS = rubric("red", "blue")


def call(reward: RubricReward, completions: list[object], **columns: object) -> list[float | None]:
    return reward(
        prompts=["Say it."] * len(completions),
        completions=completions,
        completion_ids=[[1]] * len(completions),
        trainer_state=None,
        **columns,
    )


def test_plain_texts_in_numbers_or_none_out() -> None:
    assert call(RubricReward(EchoJudge(), COLOURS), ["red", "down", "red blue"]) == [0.5, None, 1.0]


def test_conversations_with_tool_turns() -> None:
    judge = EchoJudge()
    completions: list[object] = [
        [{"role": "assistant", "content": "red"}],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
            {"role": "tool", "name": "look", "content": "blue"},
            {"role": "assistant", "content": [{"type": "text", "text": "red blue"}]},
        ],
    ]
    prompts = [[{"role": "user", "content": "Say it."}]] * 2
    assert RubricReward(judge, COLOURS)(prompts=prompts, completions=completions) == [0.5, 1.0]
    assert judge.rollouts[0].prompt == (Turn("user", "Say it."),)
    assert [turn.role for turn in judge.rollouts[1].response if isinstance(turn, Turn)] == [
        "assistant",
        "tool",
        "assistant",
    ]


def test_rubrics_and_references_come_from_columns() -> None:
    judge = EchoJudge()
    record = {"criteria": [{"id": "red", "text": "It says red."}]}
    column = [rubric("green"), record, json.dumps(record), None]
    found = call(
        RubricReward(judge, COLOURS),
        ["green", "red", "red", "red"],
        rubric=column,
        solution=["4", None, 5, "x"],
    )
    assert found == [pytest.approx(1 / 3), 0.5, 0.5, 0.5]
    assert [r.reference for r in judge.rollouts] == ["4", None, "5", "x"]
    assert call(RubricReward(judge, rubric_column="checks"), ["red"], checks=[json.dumps(record)]) == [1.0]
    call(RubricReward(judge, COLOURS, reference_column="gold"), ["red"], gold=["au"], solution=["no"])
    assert judge.rollouts[-1].reference == "au"


BAD_COLUMNS: list[tuple[dict[str, object], str]] = [
    ({"rubric": [COLOURS]}, "field 'rubric'"),
    ({"rubric": ["no JSON", COLOURS]}, r"rubric\[0\]"),
    ({"reference": ["a", {"a": 1}]}, r"reference\[1\]"),
    ({"reference": "ab"}, "field 'reference'"),
]


@pytest.mark.parametrize(("columns", "message"), BAD_COLUMNS)
def test_columns_that_cannot_be_read(columns: dict[str, object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        call(RubricReward(EchoJudge(), COLOURS), ["red", "blue"], **columns)


def test_unreadable_calls() -> None:
    reward = RubricReward(EchoJudge(), COLOURS, reference_column="gold")
    with pytest.raises(FormatError, match="'gold'"):
        call(reward, ["red"])
    with pytest.raises(FormatError, match=r"completions\[0\]"):
        call(RubricReward(EchoJudge(), COLOURS), [3])
    with pytest.raises(FormatError, match="2 prompts and 1 completions"):
        RubricReward(EchoJudge(), COLOURS)(prompts=["a", "b"], completions=["red"])


def test_logs_have_one_entry_a_completion_under_constant_names() -> None:
    logs = Logs()
    shared = Rubric(criteria=(*rubric("red", channel="warm").criteria, *rubric("blue").criteria))
    reward = RubricReward(EchoJudge(), shared, name="r")
    call(reward, ["red", "down", "blue"], log_extra=logs.log_extra, log_metric=logs.log_metric)
    names = set(logs.columns)
    assert logs.columns["r/criterion/red"] == [1.0, None, 0.0]
    assert logs.columns["r/channel/warm"] == [1.0, None, 0.0]
    assert logs.columns["r/status"] == ["ok", "unscored", "ok"]
    assert "503" in str(logs.columns["r/failure"][1])
    assert all(len(values) == 3 for values in logs.columns.values())
    assert logs.metrics["r/criterion/red"] == [0.5]
    assert logs.metrics["r/criterion/blue"] == [0.5]
    assert logs.metrics["r/unscored"] == [pytest.approx(1 / 3)]
    assert logs.metrics["r/coverage"] == [pytest.approx(2 / 3)]
    call(reward, ["down", "down"], log_extra=logs.log_extra, log_metric=logs.log_metric)
    assert set(logs.columns) == names
    assert logs.metrics["r/unscored"][-1] == 1.0
    assert len(logs.metrics["r/criterion/red"]) == 1
    assert all(math.isfinite(value) for values in logs.metrics.values() for value in values)


def test_criteria_of_row_rubrics_are_not_logged_one_by_one() -> None:
    logs = Logs()
    reward = RubricReward(EchoJudge(), channels=["warm"], name="r")
    call(reward, ["red"], rubric=[rubric("red", channel="warm")], log_extra=logs.log_extra)
    assert set(logs.columns) == {"r/status", "r/coverage", "r/failure", "r/channel/warm", "r/channel/general"}
    both = Logs()
    call(RubricReward(EchoJudge(), COLOURS, name="r"), ["red"], rubric=[rubric("x")], log_extra=both.log_extra)
    assert {name for name in both.columns if "criterion" in name} == {"r/criterion/red", "r/criterion/blue"}
    off = Logs()
    call(RubricReward(EchoJudge(), COLOURS, name="r", log_criteria=False), ["red"], log_extra=off.log_extra)
    assert set(off.columns) == {"r/status", "r/coverage", "r/failure"}


def test_unscored_rows_follow_the_named_policy() -> None:
    assert call(RubricReward(EchoJudge(), COLOURS, unscored=-1), ["down", "red"]) == [-1.0, 0.5]
    with pytest.raises(UnscoredError, match="completion 1 could not be scored: 2 of 2 verdicts failed; 'red': 503"):
        call(RubricReward(EchoJudge(), COLOURS, unscored="raise"), ["red", "down"])


class TestVersions:
    def test_too_old_to_mask(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.setattr(trl_contract, "version", version_is("1.5.2"))
        with pytest.raises(ConfigError, match=r"TRL 1\.5 counts an unscored row as 0; 1\.6"):
            call(RubricReward(EchoJudge(), COLOURS), ["red"])
        assert call(RubricReward(EchoJudge(), COLOURS, unscored=0.0), ["red"]) == [0.5]
        with caplog.at_level(logging.WARNING):
            assert call(RubricReward(EchoJudge(), COLOURS, old_trl="warn"), ["red"]) == [0.5]
        assert "TRL 1.5" in caplog.text

    def test_too_old_to_await_an_instance(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trl_contract, "version", version_is("1.13.0"))
        with pytest.raises(ConfigError, match=r"1\.14"):
            RubricReward(EchoJudge(), COLOURS).as_async()

    def test_without_trl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> str:
            raise trl_contract.PackageNotFoundError(name)

        monkeypatch.setattr(trl_contract, "version", missing)
        assert trl_contract.trl_version() is None
        assert call(RubricReward(EchoJudge(), COLOURS), ["red"]) == [0.5]


async def test_the_async_twin_is_a_coroutine_function() -> None:
    reward = RubricReward(EchoJudge(), COLOURS, name="r")
    twin = reward.as_async()
    assert inspect.iscoroutinefunction(twin.__call__)
    assert not inspect.iscoroutinefunction(reward.__call__)
    assert twin.__name__ == "r"
    assert await twin(prompts=["p"] * 2, completions=["red", "down"]) == [0.5, None]
    assert await reward.acall(prompts=["p"], completions=["blue"]) == [0.5]
    copy = pickle.loads(pickle.dumps(twin))
    assert await copy(prompts=["p"], completions=["red blue"]) == [1.0]


def test_groups_that_straddle_ranks_are_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "1")
    reward = RubricReward(EchoJudge(), COLOURS, num_generations=4)
    with caplog.at_level(logging.WARNING):
        assert call(reward, ["red"] * 6) == [0.5] * 6
    assert "rank 1" in caplog.text and "the groups 1 straddle" in caplog.text
    caplog.clear()
    call(reward, ["red"] * 8)
    assert "straddle" not in caplog.text
    with pytest.raises(ConfigError, match="num_generations"):
        RubricReward(EchoJudge(), COLOURS, num_generations=0)
