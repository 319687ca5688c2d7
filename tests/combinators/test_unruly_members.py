"""Members that hang, are cancelled inside, or give what is no probability, in every combinator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pytest

from rubricate.chat import MockModel
from rubricate.chat.timing import deadline
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError
from rubricate.judges import final_answer
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.calibrated import Calibrated
from rubricate.judges.calibration import fit_calibration
from rubricate.judges.cascade import Cascade
from rubricate.judges.jury import Jury
from rubricate.judges.rating import RatingJudge
from rubricate.judges.repeated import Repeated
from rubricate.rubrics import Criterion
from rubricate.types import FailureKind, Judgement, Verdict

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Criterion(id="a", text="Names a bird.")


class Says(CriteriaJudge):
    """A member with a constant answer."""

    def __init__(self, score: float = 1.0, probability: float | None = None, name: str = "says") -> None:
        self.score, self.probability, self.name, self.view = score, probability, name, final_answer

    @property
    def fingerprint(self) -> str:
        return self.name

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        return Judgement(tuple(Verdict(c.id, self.score, probability=self.probability) for c in criteria))


class Hangs(Says):
    """A member that keeps no deadline."""

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        await asyncio.Event().wait()
        raise AssertionError("never")


class Cancels(Says):
    """A member within which something is cancelled."""

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        raise asyncio.CancelledError


async def judged(judge: CriteriaJudge, seconds: float | None = 0.02) -> Verdict:
    with deadline(seconds):
        judgement = await asyncio.wait_for(judge.judge_criteria(ROLLOUT, [ONE]), timeout=20)
    return judgement.verdicts[0]


def hanging_sample(index: int) -> CriteriaJudge:
    return Hangs() if index == 2 else Says(name=f"sample {index}")


async def test_every_combinator_answers_by_the_deadline_with_what_it_has() -> None:
    assert (await judged(Cascade([Hangs(), Says()]))).score == 1.0
    last = await judged(Cascade([Says(1.0, 0.5), Hangs()]))
    assert last.failure is not None and last.failure.kind is FailureKind.DEADLINE
    kept = await judged(Cascade([Says(1.0, 0.5), Hangs()], fallback="last_answer"))
    assert kept.score == 1.0
    sampled = await judged(Repeated(hanging_sample, n=5))
    assert sampled.score == 1.0 and "1 failed" in sampled.reason


async def test_what_an_inner_jury_has_at_the_deadline_reaches_the_outer_one() -> None:
    jury = Jury([Jury([Says(), Says(), Hangs()]), Cascade([Hangs(), Says()]), Says()], quorum=3)
    assert (await judged(jury, 0.5)).score == 1.0


async def test_a_member_that_is_cancelled_inside_takes_nobody_with_it() -> None:
    for seconds in (None, 5.0):
        assert (await judged(Jury([Says(), Says(), Cancels()]), seconds)).score == 1.0
        assert (await judged(Cascade([Cancels(), Says()]), seconds)).score == 1.0


@pytest.mark.parametrize("seconds", [None, 5.0])
async def test_who_cancels_a_combinator_cancels_it(seconds: float | None) -> None:
    task = asyncio.ensure_future(judged(Jury([Says(), Hangs()]), seconds))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nan_is_sure_of_nothing() -> None:
    assert (await judged(Cascade([Says(1.0, math.nan), Says(0.0)], escalate=0.25))).score == 0.0
    labels = [n % 2 == 0 for n in range(60)]
    calibration = fit_calibration("says", [0.6 + 0.3 * label for label in labels], labels)
    verdict = await judged(Calibrated(Says(1.0, math.nan), calibration))
    assert verdict.score is None and verdict.failure is not None
    for wrong in (math.nan, -0.1, 1.1):
        with pytest.raises(ConfigError, match="no probability"):
            calibration(wrong)


def test_no_calibrated_probability_is_certain() -> None:
    labels = [n >= 30 for n in range(60)]
    steep = fit_calibration("says", [0.5 + 1e-9 * label for label in labels], labels)
    assert all(0.0 < steep(probability) < 1.0 for probability in (0.0, 1e-300, 0.5, 1.0))


@pytest.mark.parametrize("answer", ["0.85", "84.5"])
async def test_a_fraction_is_no_rating(answer: str) -> None:
    verdict = await judged(RatingJudge(MockModel(answer)), None)
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.OUT_OF_RANGE
