"""Juries: rules, ties, quorum, members that are down, agreement, and whose doing a failure is."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import MockModel
from rubricate.chat.timing import deadline
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ServerError
from rubricate.judges import CriterionJudge, LogprobJudge, ScriptedJudge, final_answer
from rubricate.judges.base import CriteriaJudge, failure
from rubricate.judges.jury import RULES, Jury, mean_agreement
from rubricate.rubrics import Criterion, Level, OrdinalScale, Polarity, Rubric
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Status, Verdict

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Criterion(id="a", text="Names a bird.")
PENALTY = Criterion(id="a", text="Is rude.", polarity=Polarity.PENALTY)
DOWN = failure(FailureKind.SERVER, "connection refused", retryable=True)
UNREADABLE = failure(FailureKind.UNPARSABLE, "no verdict in the reply")

Said = float | bool | Failure | None


class Says(CriteriaJudge):
    """A member with a constant answer, which pickles."""

    def __init__(self, said: Said, name: str = "judge", reason: str = "") -> None:
        self.said, self.name, self.reason, self.view = said, name, reason, final_answer

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.said}"

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        return Judgement(tuple(self._verdict(criterion) for criterion in criteria))

    def _verdict(self, criterion: Criterion) -> Verdict:
        if isinstance(self.said, Failure):
            return Verdict.failed(criterion.id, self.said, judge=self.name)
        if self.said is None:
            return Verdict.not_applicable(criterion.id, judge=self.name)
        return Verdict(criterion.id, float(self.said), reason=self.reason, judge=self.name)


class Hangs(Says):
    """A member that keeps no deadline."""

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        await asyncio.Event().wait()
        raise AssertionError("never")


class Breaks(Says):
    """A member with a bug."""

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        raise KeyError("bug")


async def verdict_of(jury: Jury, criterion: Criterion = ONE) -> Verdict:
    (verdict,) = (await jury.judge_criteria(ROLLOUT, [criterion])).verdicts
    return verdict


def members(*said: Said) -> list[CriteriaJudge]:
    return [Says(one, f"j{index}") for index, one in enumerate(said)]


async def test_a_jury_of_three_with_one_down_answers_and_says_so() -> None:
    yes = LogprobJudge(MockModel(p_yes=0.9, name="yes"))
    sure = LogprobJudge(MockModel(p_yes=0.8, name="sure"))
    down = CriterionJudge(MockModel(ServerError("connection refused", status=503), name="down"))
    poll = await Jury([yes, down, sure]).poll(ROLLOUT, [ONE])
    (verdict,), (ballot,) = poll.judgement.verdicts, poll.ballots
    assert verdict.score == 1.0 and verdict.status is Status.OK
    assert "2 of 3 judges voted (without CriterionJudge(down)), 100% agree" in verdict.reason
    assert ballot.votes["CriterionJudge(down)"].failure is not None and ballot.agreement == 1.0
    assert verdict.probability == pytest.approx(0.85)
    assert poll.judgement.usage.calls >= 2


@pytest.mark.parametrize(
    ("rule", "said", "score"),
    [
        ("mean", (0.9, 0.6, 0.0), 0.5),
        ("median", (0.9, 0.6, 0.0), 0.6),
        ("median", (0.9, 0.6, 0.2, 0.0), 0.4),
        ("majority", (0.9, 0.6, 0.0), 1.0),
        ("majority", (0.4, 0.6, 0.0), 0.0),
        ("unanimous", (0.9, 0.6, 1.0), 1.0),
        ("unanimous", (0.1, 0.0), 0.0),
    ],
)
async def test_rules(rule: str, said: tuple[float, ...], score: float) -> None:
    assert (await verdict_of(Jury(members(*said), rule=rule))).score == pytest.approx(score)


async def test_weights_count_in_votes_and_means() -> None:
    voted = Jury(members(1, 0, 0), rule="weighted", weights=[3, 1, 1])
    assert (await verdict_of(voted)).score == 1.0
    assert (await verdict_of(Jury(members(1, 0, 0), rule="mean", weights=[3, 1, 1]))).score == pytest.approx(0.6)
    even = Jury(members(1, 0, 0), rule="weighted", weights=[0.3, 0.1, 0.2])
    assert (await verdict_of(even)).status is Status.FAILED, "0.1 + 0.2 is as much as 0.3"


@pytest.mark.parametrize(
    ("ties", "criterion", "score"),
    [("met", ONE, 1), ("unmet", ONE, 0), ("adverse", ONE, 0), ("adverse", PENALTY, 1)],
)
async def test_ties_by_name(ties: str, criterion: Criterion, score: float) -> None:
    for rule in ("majority", "unanimous"):
        verdict = await verdict_of(Jury(members(1, 0), rule=rule, ties=ties), criterion)
        assert verdict.score == score


async def test_a_tie_is_no_verdict_unless_a_rule_is_chosen() -> None:
    verdict = await verdict_of(Jury(members(1, 0)))
    assert verdict.score is None and verdict.failure is not None
    assert verdict.failure.kind is FailureKind.AMBIGUOUS and "j0: met" in verdict.failure.message


async def test_members_vote_on_whether_the_criterion_applies() -> None:
    assert (await verdict_of(Jury(members(None, None, 1)))).status is Status.NOT_APPLICABLE
    assert (await verdict_of(Jury(members(None, 1, 1)))).score == 1.0
    assert (await verdict_of(Jury(members(None, 1)))).status is Status.FAILED
    assert (await verdict_of(Jury(members(None, 1), ties="unmet"))).score == 1.0
    assert (await verdict_of(Jury(members(None, 1, 1), rule="unanimous"))).status is Status.FAILED


async def test_levels_of_a_scale_are_votes_of_their_own() -> None:
    levels = tuple(Level(label=name, value=value) for name, value in (("poor", 1), ("fair", 2), ("good", 3)))
    criterion = Criterion(id="a", text="Is clear.", scale=OrdinalScale(levels=levels))
    verdict = await verdict_of(Jury(members(0.5, 0.5, 1.0)), criterion)
    assert verdict.score == 0.5 and verdict.probability is None
    assert (await verdict_of(Jury(members(0.0, 0.5, 1.0)), criterion)).status is Status.FAILED


async def test_below_quorum_the_verdict_failed_with_the_members_causes() -> None:
    verdict = await verdict_of(Jury(members(1, DOWN, DOWN)))
    why = verdict.failure
    assert why is not None and why.kind is FailureKind.SERVER and why.retryable
    assert why.cause is FailureCause.INFRASTRUCTURE
    assert "1 of 3 judges could vote, 2 are needed" in why.message
    assert "j1: connection refused" in why.message and "j2: connection refused" in why.message
    assert (await verdict_of(Jury(members(1, DOWN, DOWN), quorum=1))).score == 1.0


async def test_the_response_is_blamed_only_where_the_outage_made_no_difference() -> None:
    broken = (await verdict_of(Jury(members(DOWN, UNREADABLE, UNREADABLE)))).failure
    assert broken is not None and broken.cause is FailureCause.RESPONSE
    outage = (await verdict_of(Jury(members(1, DOWN, UNREADABLE)))).failure
    assert outage is not None and outage.cause is FailureCause.INFRASTRUCTURE


async def test_a_member_with_a_bug_takes_nobody_with_it(caplog: pytest.LogCaptureFixture) -> None:
    verdict = await verdict_of(Jury([*members(1, 1), Breaks(0, "broken")]))
    assert verdict.score == 1.0 and "broken: failed (internal)" in verdict.reason
    assert "bug" in caplog.text


async def test_a_member_that_hangs_is_left_behind_at_the_deadline() -> None:
    with deadline(0.01):
        verdict = await verdict_of(Jury([*members(1, 1), Hangs(0, "slow")]))
    assert verdict.score == 1.0 and "slow: failed (deadline)" in verdict.reason


async def test_members_run_at_the_same_time() -> None:
    model = MockModel(p_yes=0.9, latency=0.001)
    await Jury([LogprobJudge(model), LogprobJudge(model), LogprobJudge(model)]).judge_criteria(ROLLOUT, [ONE])
    assert model.max_in_flight == 3


async def test_a_member_that_leaves_a_criterion_out_has_failed_on_it() -> None:
    class Forgets(Says):
        async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
            return await super().judge_criteria(rollout, criteria[:1])

    two = Rubric(criteria=(ONE, Criterion(id="b", text="Names two.")))
    poll = await Jury([Forgets(1, "f"), *members(0, 0)]).poll(ROLLOUT, two.criteria)
    why = poll.ballots[1].votes["f"].failure
    assert why is not None and why.kind is FailureKind.INCOMPLETE
    assert [v.score for v in poll.judgement.verdicts] == [0.0, 0.0]
    assert poll.ballots[0].agreement == pytest.approx(2 / 3)
    assert mean_agreement(poll.ballots) == (pytest.approx(5 / 6), 2) and mean_agreement([]) == (None, 0)


async def test_juries_nest_pickle_and_tell_equal_names_apart() -> None:
    inner = Jury([Says(1, "x"), Says(0, "x"), Says(1, "x")])
    outer = Jury([inner, Says(1, "y"), Says(0, "z")])
    again = pickle.loads(pickle.dumps(outer))
    verdict = await verdict_of(again)
    assert verdict.score == 1.0 and again.fingerprint == outer.fingerprint
    assert inner.members == ("x#1", "x#2", "x#3")


def test_everything_that_can_change_a_verdict_is_in_the_fingerprint() -> None:
    three = members(1, 0, 1)
    juries = [
        Jury(three),
        Jury(three, rule="mean"),
        Jury(three, rule="mean", weights=[1, 2, 1]),
        Jury(three, ties="met"),
        Jury(three, quorum=1),
        Jury(members(1, 1, 1)),
    ]
    assert len({jury.fingerprint for jury in juries}) == len(juries)


def test_wrong_options() -> None:
    two = members(1, 0)
    with pytest.raises(ConfigError, match="at least one"):
        Jury([])
    with pytest.raises(ConfigError, match="no jury rule"):
        Jury(two, rule="loudest")
    with pytest.raises(ConfigError, match="ties"):
        Jury(two, ties="coin")
    with pytest.raises(ConfigError, match="needs weights"):
        Jury(two, rule="weighted")
    with pytest.raises(ConfigError, match="takes no weights"):
        Jury(two, weights=[1, 1])
    with pytest.raises(ConfigError, match="1 weights for 2"):
        Jury(two, rule="mean", weights=[1])
    with pytest.raises(ConfigError, match="finite"):
        Jury(two, rule="mean", weights=[1, float("nan")])
    with pytest.raises(ConfigError, match="quorum"):
        Jury(two, quorum=3)


@given(
    said=st.lists(st.one_of(st.none(), st.just(DOWN), st.floats(0, 1)), min_size=1, max_size=6),
    rule=st.sampled_from([rule for rule in RULES if rule != "weighted"]),
    ties=st.sampled_from(["fail", "adverse", "met", "unmet"]),
)
async def test_the_order_of_members_never_matters(said: list[Said], rule: str, ties: str) -> None:
    first = await verdict_of(Jury(members(*said), rule=rule, ties=ties))
    second = await verdict_of(Jury(members(*reversed(said)), rule=rule, ties=ties))
    assert first.status is second.status
    assert first.score == pytest.approx(second.score)


async def test_scripted_judges_reach_the_right_verdict_when_one_fails_at_times() -> None:
    flaky = ScriptedJudge(failure_rate=0.5, seed=1)
    criteria = tuple(Criterion(id=f"c{n}", text=f"Says {n}.") for n in range(20))
    judgement = await Jury([flaky, Says(1, "p"), Says(1, "q")]).judge_criteria(ROLLOUT, criteria)
    assert {v.score for v in judgement.verdicts} == {1.0}
    assert sum("without" in v.reason for v in judgement.verdicts) in range(1, 20)


@pytest.mark.parametrize("rule", ["majority", "weighted"])
@pytest.mark.parametrize("ties", ["fail", "adverse", "met", "unmet"])
async def test_a_tie_that_a_missing_vote_would_break_is_the_outages_doing(rule: str, ties: str) -> None:
    weights = [1.0, 1.0, 1.0] if rule == "weighted" else None
    verdict = await verdict_of(Jury(members(1, 0, DOWN), rule=rule, ties=ties, weights=weights))
    assert verdict.score is None
    assert verdict.failure is not None
    assert verdict.failure.cause is FailureCause.INFRASTRUCTURE
    assert verdict.failure.retryable
    assert "connection refused" in verdict.failure.message


async def test_a_tie_beside_an_unreadable_vote_and_one_without_agreement_stay_the_responses() -> None:
    for jury in (Jury(members(1, 0, UNREADABLE)), Jury(members(1, 0, DOWN), rule="unanimous")):
        why = (await verdict_of(jury)).failure
        assert why is not None
        assert (why.kind, why.cause) == (FailureKind.AMBIGUOUS, FailureCause.RESPONSE)


async def test_an_outage_that_decides_nothing_is_only_named() -> None:
    verdict = await verdict_of(Jury(members(1, 1, DOWN)))
    assert verdict.score == 1.0
    assert "without" in verdict.reason
