"""Output records: a reward comes back as it was, from JSON Lines and from Parquet, and keys follow the content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rubricate.cli.records import as_text, journal_record, parse_reward, reward_record, row_key, write_records
from rubricate.data.io import read_rows
from rubricate.data.records import Rollout, Turn
from rubricate.errors import FormatError
from rubricate.types import Failure, FailureCause, FailureKind, Reward, RewardStatus, Usage, Verdict

ROLLOUT = Rollout("Say hello.", "Hello.", id="r1")
REWARD = Reward(
    value=0.25,
    status=RewardStatus.FLOORED,
    channels={"style": 0.5, "facts": None},
    coverage=0.75,
    bounds=(0.0, 0.5),
    vetoed_by=("a",),
    verdicts=(
        Verdict("a", 1.0, probability=0.9, raw="yes", reason="gründlich", judge="j"),
        Verdict("b", 0.5, raw=3.0),
        Verdict.failed("c", Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "away", True)),
        Verdict.not_applicable("d"),
    ),
    overall=Verdict("overall", 0.3, raw=4.0),
    failure=Failure(FailureKind.REFUSAL, FailureCause.RESPONSE, "no"),
    rubric_fingerprint="r",
    rubric_version="2",
    judge_fingerprint="j",
    usage=Usage(3, 100, 10, 50, 0.25),
    latency=1.5,
)


def test_a_reward_comes_back_from_json() -> None:
    record = json.loads(json.dumps(journal_record(ROLLOUT, 7, REWARD)))
    assert (record["id"], record["line"]) == ("r1", 7)
    assert parse_reward(record) == REWARD


def test_the_output_holds_nothing_of_the_clock() -> None:
    record = reward_record(ROLLOUT, 7, REWARD)
    assert record == reward_record(ROLLOUT, 7, replace(REWARD, latency=99.0))
    assert parse_reward(record) == replace(REWARD, latency=0.0)


def test_an_empty_reward_comes_back_without_a_number() -> None:
    none = Reward(None, RewardStatus.UNSCORED)
    assert parse_reward(reward_record(ROLLOUT, 1, none)) == none


@pytest.mark.parametrize("change", [{"status": "fine"}, {"verdicts": [{"status": "ok", "score": 3}]}])
def test_what_is_no_record_is_refused(change: Mapping[str, object]) -> None:
    with pytest.raises(FormatError, match="not a record"):
        parse_reward({**reward_record(ROLLOUT, 1, REWARD), **change})


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rewards.parquet"
    none = Reward(None, RewardStatus.UNSCORED, {"style": None})
    write_records(path, [reward_record(ROLLOUT, 1, REWARD), reward_record(ROLLOUT, 2, none)])
    first, second = (row.record for row in read_rows(path))
    assert dict(first["channels"]) == {"style": 0.5, "facts": None}  # type: ignore[call-overload]  # pairs
    back = parse_reward({**first, "channels": REWARD.channels})
    assert back.verdicts[1].raw == "3.0"
    assert replace(back, verdicts=REWARD.verdicts, overall=REWARD.overall) == replace(REWARD, latency=0.0)
    assert second["value"] is None


def test_parquet_files_of_several_runs_have_one_schema(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    for path, reward in zip(paths, (REWARD, Reward(None, RewardStatus.UNSCORED)), strict=True):
        write_records(path, [reward_record(ROLLOUT, 1, reward)])
    assert parquet.read_schema(paths[0]).equals(parquet.read_schema(paths[1]))


@pytest.mark.parametrize(
    "change",
    [{"prompt": "Say bye."}, {"response": "Bye."}, {"reference": "Hi."}, {"id": "r2"}, {"finish": "length"}],
)
def test_the_key_follows_everything_a_judge_may_see(change: dict[str, str]) -> None:
    assert row_key(replace(ROLLOUT, **change), "f") != row_key(ROLLOUT, "f")  # type: ignore[arg-type]  # str fields


def test_the_key_follows_the_rubric_and_not_the_metadata() -> None:
    assert row_key(ROLLOUT, "f") != row_key(ROLLOUT, "g")
    assert row_key(replace(ROLLOUT, metadata={"a": 1}), "f") == row_key(ROLLOUT, "f")


def test_turns_are_shown_with_their_roles() -> None:
    assert as_text((Turn("user", "Hi."), Turn("assistant", "Ho."))) == "[user] Hi.\n\n[assistant] Ho."


def test_half_a_surrogate_pair_is_written_as_an_escape_in_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rewards = [replace(REWARD, channels={"st\udc00yle": 0.5}), REWARD]
    rollouts = [replace(ROLLOUT, id="cut\ud83d"), ROLLOUT]
    lines = [reward_record(rollout, 1, reward) for rollout, reward in zip(rollouts, rewards, strict=True)]
    write_records(tmp_path / "o.parquet", lines)
    found = [row.record for row in read_rows(tmp_path / "o.parquet")]
    assert [record["id"] for record in found] == ["cut\\ud83d", "r1"]
    assert parse_reward({**found[1], "channels": REWARD.channels}).verdicts[1].raw == "3.0"
    assert [record["value"] for record in found] == [0.25, 0.25]
