"""Runs that are killed, stopped or fail half-way go on: each row once, what was committed is not paid again."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Start, Write, records

from rubricate.chat.testserver import Faults, FaultyServer, Reply, prompt_text
from rubricate.cli.inputs import Unit
from rubricate.cli.journal import Journal, journal_path
from rubricate.cli.scoring import score_units, worth_retrying
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Reward, RewardStatus, Verdict

COUNT, AT_ONCE, ANSWERED = 30, 4, 11
ROWS = [{"id": f"r{n:02d}", "prompt": "Greet.", "response": f"marker-{n:02d}"} for n in range(COUNT)]


class HangAfter(Faults):
    """The first requests are answered, all later ones hang; `reached` is set when one of these arrives."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "reached", threading.Event())

    def pick(self, seed: int, index: int) -> str:
        if index < ANSWERED:
            return ""
        self.reached.set()  # type: ignore[attr-defined]  # set above, around the frozen dataclass
        return "hang"

    def wait(self) -> None:
        assert self.reached.wait(120)  # type: ignore[attr-defined]  # as above


def asked(server: FaultyServer) -> Counter[str]:
    """How often each response was sent to the server."""
    counts: Counter[str] = Counter()
    for body in server.bodies:
        text = prompt_text(body)
        counts[next(str(row["id"]) for row in ROWS if str(row["response"]) in text)] += 1
    return counts


def committed(out: Path) -> list[str]:
    lines = journal_path(out).read_bytes().split(b"\n")[1:-1]
    return [json.loads(line)["record"]["id"] for line in lines]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_run_that_is_ended_goes_on_where_it_was(
    how: str, write: Write, rubric: Path, start: Start, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    faults = HangAfter()
    with FaultyServer(lambda body: Reply(top={"Yes": 0.8, "No": 0.2}), faults, record=True) as server:
        command = (
            "score", write("d.jsonl", *ROWS), "--rubric", rubric, "--out", out, "--judge", server.name,
            "--mode", "logprob", "--concurrency", AT_ONCE,
        )  # fmt: skip
        with start(*command) as first:
            faults.wait()
            first.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
            _, errors = first.communicate(timeout=120)
        assert first.returncode == (-signal.SIGKILL if how == "kill" else 130)
        if how == "stop":
            assert errors.index("stopping, waiting for calls in flight") < errors.index(
                "Run the same command again"
            )
        assert "Traceback" not in errors
        assert not out.exists()
        done = committed(out)
        assert ANSWERED - AT_ONCE <= len(done) <= ANSWERED
        server.faults = Faults()
        with start(*command) as second:
            _, errors = second.communicate(timeout=120)
        assert second.returncode == 0, errors
        assert f"{len(done)} responses done" in errors
        counts = asked(server)
    assert [record["id"] for record in records(out)] == [row["id"] for row in ROWS]
    assert all(record["value"] == pytest.approx(0.9) for record in records(out))
    assert {counts[name] for name in done} == {1}
    assert sum(counts.values()) - COUNT <= AT_ONCE
    assert not journal_path(out).exists()


def test_rows_that_failed_by_the_server_are_tried_again_and_only_they(
    write: Write, rubric: Path, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"

    class HangEach(Faults):
        def pick(self, seed: int, index: int) -> str:
            return "hang" if index % 3 == 0 else ""

    with FaultyServer(lambda body: Reply(top={"Yes": 0.8, "No": 0.2}), HangEach(), record=True) as server:
        command = (
            "score", write("d.jsonl", *ROWS[:9]), "--rubric", rubric, "--out", out, "--judge", server.name,
            "--mode", "logprob", "--concurrency", 1, "--deadline", 0.3, "--quiet",
        )  # fmt: skip
        first = run(*command)
        assert first.exit_code == 1
        assert "infrastructure: deadline" in first.stdout
        assert "try 3 of them again" in first.stderr
        assert [record["value"] is None for record in records(out)].count(True) == 3
        server.faults = Faults()
        server.reset()
        second = run(*command)
        assert second.exit_code == 0, second.output
        assert sum(asked(server).values()) == 3
    assert [record["id"] for record in records(out)] == [row["id"] for row in ROWS[:9]]
    assert not journal_path(out).exists()


RUBRIC = Rubric(criteria=(Criterion(id="c", text="C."),))


def units(count: int) -> list[Unit]:
    return [Unit(n, n + 1, Rollout("p", f"r{n}", id=str(n)), RUBRIC) for n in range(count)]


async def fine(rollout: Rollout, rubric: Rubric) -> Reward:
    return Reward(float(rollout.id))


async def test_rows_are_read_only_as_there_is_room_for_them(tmp_path: Path) -> None:
    read = finished = most = 0

    def source() -> Iterator[Unit]:
        nonlocal read, most
        for unit in units(500):
            read += 1
            most = max(most, read - finished)
            yield unit

    def step(count: int, *, before: bool = False) -> None:
        nonlocal finished
        finished += count

    with Journal(tmp_path / "j", {}) as journal:
        scored = await score_units(source(), journal, fine, at_once=7, step=step)
        assert [record["value"] for record in journal.read_many(scored.places)] == [float(n) for n in range(500)]
    assert finished == 500
    assert most <= 7


async def test_places_follow_the_input_whatever_the_order_of_the_answers(tmp_path: Path) -> None:
    async def backwards(rollout: Rollout, rubric: Rubric) -> Reward:
        for _ in range(20 - int(rollout.id)):
            await asyncio.sleep(0)
        return await fine(rollout, rubric)

    with Journal(tmp_path / "j", {}) as journal:
        scored = await score_units(units(20), journal, backwards, at_once=20)
        assert list(scored.places) != sorted(scored.places)
        assert [record["id"] for record in journal.read_many(scored.places)] == [str(n) for n in range(20)]


@pytest.mark.parametrize("change", ["insert", "remove", "swap"])
async def test_rows_that_moved_are_known_again(tmp_path: Path, change: str) -> None:
    before = units(6)
    moved = {
        "insert": [before[0], units(9)[8], *before[1:]],
        "remove": before[2:],
        "swap": [before[5], *before[1:5], before[0]],
    }[change]
    after = [Unit(n, n + 1, unit.rollout, RUBRIC) for n, unit in enumerate(moved)]
    calls: list[str] = []

    async def counting(rollout: Rollout, rubric: Rubric) -> Reward:
        calls.append(rollout.id)
        return await fine(rollout, rubric)

    with Journal(tmp_path / "j", {}) as journal:
        await score_units(before, journal, fine, at_once=2)
    with Journal(tmp_path / "j", {}) as journal:
        scored = await score_units(after, journal, counting, at_once=2)
        found = [record["id"] for record in journal.read_many(scored.places)]
    assert found == [unit.rollout.id for unit in after]
    assert calls == (["8"] if change == "insert" else [])


async def test_an_edited_row_is_scored_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", {}) as journal:
        await score_units(units(3), journal, fine, at_once=2)
    edited = units(3)
    edited[1] = Unit(1, 2, Rollout("p", "another response", id="1"), RUBRIC)
    calls: list[object] = []

    async def counting(rollout: Rollout, rubric: Rubric) -> Reward:
        calls.append(rollout.response)
        return await fine(rollout, rubric)

    with Journal(tmp_path / "j", {}) as journal:
        await score_units(edited, journal, counting, at_once=2)
    assert calls == ["another response"]


def failed(kind: FailureKind, cause: FailureCause, retryable: bool = False) -> Reward:
    return Reward(None, RewardStatus.UNSCORED, failure=Failure(kind, cause, "why", retryable))


async def test_a_judge_that_refuses_everything_ends_the_run(tmp_path: Path) -> None:
    calls = 0

    async def refusing(rollout: Rollout, rubric: Rubric) -> Reward:
        nonlocal calls
        calls += 1
        return failed(FailureKind.REQUEST, FailureCause.INFRASTRUCTURE)

    with Journal(tmp_path / "j", {}) as journal:
        with pytest.raises(ConfigError, match="refused each of the first 20"):
            await score_units(units(1000), journal, refusing, at_once=4)
    assert calls < 30


async def test_a_scorer_that_breaks_ends_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    async def breaking(rollout: Rollout, rubric: Rubric) -> Reward:
        if rollout.id == "5":
            raise RuntimeError("a bug")
        return await fine(rollout, rubric)

    with Journal(tmp_path / "j", {}) as journal:
        with pytest.raises(RuntimeError, match="a bug"):
            await score_units(units(10), journal, breaking, at_once=1)
    with Journal(tmp_path / "j", {}) as journal:
        assert len(journal) == 5


@pytest.mark.parametrize(
    ("reward", "again"),
    [
        (failed(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, True), True),
        (failed(FailureKind.BUDGET, FailureCause.INFRASTRUCTURE), True),
        (failed(FailureKind.REQUEST, FailureCause.INFRASTRUCTURE), True),
        (failed(FailureKind.REFUSAL, FailureCause.RESPONSE), False),
        (failed(FailureKind.UNPARSABLE, FailureCause.RESPONSE, True), True),
        (failed(FailureKind.VERIFIER, FailureCause.INFRASTRUCTURE), False),
        (Reward(0.5), False),
    ],
)
def test_what_is_tried_again(reward: Reward, again: bool) -> None:
    assert worth_retrying(reward) is again


def test_units_are_an_iterable_that_can_be_gone_through_twice(write: Write, rubric: Path) -> None:
    from rubricate.cli.inputs import Inputs

    inputs: Iterable[Unit] = Inputs(write("d.jsonl", *ROWS), rubric=rubric)
    assert [unit.key for unit in inputs] == [unit.key for unit in inputs]


def test_rows_beyond_a_limit_stay_for_a_run_without_it(
    write: Write, rubric: Path, run: Run, tmp_path: Path
) -> None:
    data, out = write("d.jsonl", *ROWS), tmp_path / "o.jsonl"
    with FaultyServer(lambda body: Reply(top={"Yes": 0.8, "No": 0.2}), Faults(), record=True) as server:
        command = (
            "score", data, "--rubric", rubric, "--out", out, "--judge", server.name, "--mode", "logprob", "--quiet",
        )  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rubricate.cli.score.write_records", _die)  # all rows are committed by then
            assert isinstance(run(*command).exception, _DiedError)
        some = run(*command, "--limit", 3)
        assert some.exit_code == 0
        assert f"{COUNT - 3} responses beyond --limit stay" in some.stderr
        assert [record["id"] for record in records(out)] == ["r00", "r01", "r02"]
        assert run(*command).exit_code == 0
        assert set(asked(server).values()) == {1}
    assert [record["id"] for record in records(out)] == [row["id"] for row in ROWS]
    assert not journal_path(out).exists()


class _DiedError(Exception):
    pass


def _die(*arguments: object) -> None:
    raise _DiedError


def unread() -> Reward:
    why = Failure(FailureKind.UNPARSABLE, FailureCause.INFRASTRUCTURE, "the reply is no JSON", retryable=True)
    return replace(failed(why.kind, why.cause), verdicts=(Verdict.failed("c", why, judge="j"),))


async def test_replies_that_cannot_be_read_end_the_run_unless_one_could_be(tmp_path: Path) -> None:
    async def never(rollout: Rollout, rubric: Rubric) -> Reward:
        return unread()

    async def at_first(rollout: Rollout, rubric: Rubric) -> Reward:
        return Reward(1.0, RewardStatus.OK)

    with Journal(tmp_path / "j", {}) as journal:
        with pytest.raises(ConfigError, match="first 20 responses could be read: unparsable: the reply is no JSON"):
            await score_units(units(1000), journal, never, at_once=1)
    assert len((tmp_path / "j").read_bytes().splitlines()) == 1 + 20  # what was tried is kept
    with Journal(tmp_path / "k", {}) as journal:
        await score_units(units(1), journal, at_first, at_once=1)
    with Journal(tmp_path / "k", {}) as journal:  # what an earlier run scored shows that the judge can
        scored = await score_units(units(40), journal, never, at_once=4)
    assert scored.to_retry == 39


@pytest.mark.parametrize("judge", ["code", "j"])
async def test_only_the_verdicts_of_the_judge_that_fails_count(tmp_path: Path, judge: str) -> None:
    """Checks by code say nothing about a model; another verdict of the model shows that it can be read."""

    async def mixed(rollout: Rollout, rubric: Rubric) -> Reward:
        given = unread()
        return replace(given, verdicts=(Verdict("d", 1.0, judge=judge), *given.verdicts))

    with Journal(tmp_path / "j", {}) as journal:
        if judge == "code":
            with pytest.raises(ConfigError, match="could be read"):
                await score_units(units(30), journal, mixed, at_once=1)
        else:
            assert (await score_units(units(30), journal, mixed, at_once=1)).to_retry == 30
