"""Cascades: what goes on and what does not, the report, and honesty when the last stage fails."""

from __future__ import annotations

import asyncio
import math
import pickle
import threading
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from judging import one_token

from rubricate.chat import ChatRequest, Completion, MockModel, TokenLogprob, connect
from rubricate.chat.timing import deadline
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ServerError
from rubricate.judges import CriterionJudge, LogprobJudge, VerifierJudge, final_answer
from rubricate.judges.arrow import ArrowJudge
from rubricate.judges.base import CriteriaJudge, failure
from rubricate.judges.cascade import Cascade
from rubricate.judges.geval import ExpectationJudge
from rubricate.judges.jury import Jury
from rubricate.rubrics import Criterion, Level, OrdinalScale, VerifierSpec
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Usage, Verdict

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
SURE = Criterion(id="sure", text="Names a bird.")
OPEN = Criterion(id="open", text="Is a good answer.")
CODED = Criterion(id="coded", text="Is short.", verifier=VerifierSpec(name="words", args={"max": 9}))
DOWN = failure(FailureKind.SERVER, "connection refused", retryable=True)


class Prices(CriteriaJudge):
    """P(met) by criterion id, at a price a criterion."""

    def __init__(self, name: str, said: Mapping[str, float | Failure | None], cost: float = 0.0) -> None:
        self.name, self.said, self.cost, self.view = name, said, cost, final_answer
        self.asked: list[str] = []

    @property
    def fingerprint(self) -> str:
        return self.name

    async def judge_criteria(self, rollout: Rollout, criteria: Sequence[Criterion]) -> Judgement:
        self.asked += [criterion.id for criterion in criteria]
        verdicts = tuple(self._verdict(criterion.id) for criterion in criteria)
        return Judgement(verdicts, usage=Usage(len(criteria), cost=self.cost * len(criteria)))

    def _verdict(self, name: str) -> Verdict:
        said = self.said.get(name)
        if isinstance(said, Failure):
            return Verdict.failed(name, said, judge=self.name)
        if said is None:
            return Verdict.not_applicable(name, judge=self.name)
        return Verdict(name, said, probability=said, judge=self.name, reason="because")


def penalties_go_on(criterion: Criterion, verdict: Verdict) -> bool:
    return criterion.id == "open"


async def test_code_then_small_then_large() -> None:
    def p_yes(request: ChatRequest) -> float:
        return 0.6 if "good answer" in request.text() else 0.97

    small = LogprobJudge(MockModel(p_yes=p_yes, name="small"))
    large = LogprobJudge(MockModel(p_yes=0.1, name="large"))
    cascade = Cascade([VerifierJudge(), small, large])
    judgement = await cascade.judge_criteria(ROLLOUT, [OPEN, CODED, SURE])
    assert [round(v.score or 0.0, 2) for v in judgement.verdicts] == [0.1, 1.0, 0.97]
    assert [v.judge for v in judgement.verdicts] == ["LogprobJudge(large)", "verifier:words", small.name]
    assert judgement.verdicts[0].reason.startswith("[stage 3 of 3; stage 1, verifiers: failed (request); stage 2,")
    assert "met 0.60" in judgement.verdicts[0].reason
    report = cascade.report()
    assert [(s.asked, s.decided, s.uncertain, s.failed) for s in report.stages] == [
        (3, 1, 0, 2),
        (2, 1, 1, 0),
        (1, 1, 0, 0),
    ]
    assert report.share_escalated == pytest.approx(1 / 3)
    assert report.share_reaching(1) == pytest.approx(2 / 3)
    assert judgement.usage.calls == 3


async def test_share_escalated_and_cost_saved() -> None:
    small = Prices("small", {"sure": 0.95, "open": 0.55}, cost=0.1)
    cascade = Cascade([small, Prices("large", {"open": 0.9}, cost=1.0)])
    for _ in range(10):
        await cascade.judge_criteria(ROLLOUT, [SURE, OPEN])
    report = cascade.report()
    assert report.criteria == 20 and report.share_escalated == 0.5
    assert report.usage.cost == pytest.approx(12.0)
    assert report.saved() == pytest.approx(1 - 12 / 20)
    assert report.saved("tokens") is None
    assert "20 criteria, 50.0% escalated, 40.0% of the cost saved" in str(report)
    with pytest.raises(ConfigError, match="no unit"):
        report.saved("hours")
    assert cascade.reset() == report and cascade.report().criteria == 0
    assert cascade.report().share_escalated is None and cascade.report().saved() is None


async def test_margins_by_stage_and_rules_of_ones_own() -> None:
    said = {"sure": 0.7, "open": 0.95}
    for escalate, asked in [(0.15, []), (0.25, ["sure"]), ([0.5], ["sure", "open"]), (penalties_go_on, ["open"])]:
        large = Prices("large", {"sure": 0.9, "open": 0.9})
        await Cascade([Prices("small", said), large], escalate=escalate).judge_criteria(ROLLOUT, [SURE, OPEN])
        assert large.asked == asked


async def test_a_margin_of_zero_sends_on_failures_alone() -> None:
    large = Prices("large", {"open": 1.0})
    cascade = Cascade([Prices("small", {"sure": 0.5, "open": DOWN}), large], escalate=0.0)
    await cascade.judge_criteria(ROLLOUT, [SURE, OPEN])
    assert large.asked == ["open"]


async def test_does_not_apply_is_a_decision() -> None:
    large = Prices("large", {"open": 1.0})
    judgement = await Cascade([Prices("small", {"open": None}), large]).judge_criteria(ROLLOUT, [OPEN])
    assert judgement.verdicts[0].score is None and judgement.verdicts[0].failure is None and not large.asked


async def test_when_the_last_stage_fails_the_verdict_failed() -> None:
    stages = [Prices("small", {"open": 0.6}), CriterionJudge(MockModel(ServerError("down", status=503)))]
    judgement = await Cascade(stages).judge_criteria(ROLLOUT, [OPEN])
    (verdict,) = judgement.verdicts
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.SERVER
    assert verdict.failure.cause is FailureCause.INFRASTRUCTURE
    assert "the last stage failed: down" in verdict.failure.message and "small: met 0.60" in verdict.reason


async def test_a_stage_that_hangs_leaves_time_to_the_next() -> None:
    large = LogprobJudge(MockModel(p_yes=0.9))
    with deadline(0.4):
        judgement = await Cascade([LogprobJudge(connect("mock:hang")), large]).judge_criteria(ROLLOUT, [OPEN])
    assert judgement.verdicts[0].score == pytest.approx(0.9)
    assert "failed (deadline)" in judgement.verdicts[0].reason


async def test_falling_back_is_asked_for_by_name_and_said() -> None:
    stages = [Prices("small", {"open": 0.6, "sure": DOWN}), Prices("large", {"open": DOWN, "sure": DOWN})]
    cascade = Cascade(stages, fallback="last_answer")
    judgement = await cascade.judge_criteria(ROLLOUT, [OPEN, SURE])
    kept, lost = judgement.verdicts
    assert kept.score == 0.6 and "stage 1 of 2, kept because the later ones failed" in kept.reason
    assert kept.reason.endswith("because")
    assert lost.failure is not None and cascade.report().fallbacks == 1


async def test_cascades_nest_and_pickle_without_their_counts() -> None:
    jury = Jury([Prices("x", {"open": 1.0}), Prices("y", {"open": 1.0}), Prices("z", {"open": 0.0})])
    cascade = Cascade([Prices("small", {"open": 0.5}), jury], escalate=penalties_go_on)
    await cascade.judge_criteria(ROLLOUT, [OPEN])
    again = pickle.loads(pickle.dumps(cascade))
    assert again.fingerprint == cascade.fingerprint and again.report().criteria == 0
    assert (await again.judge_criteria(ROLLOUT, [OPEN])).verdicts[0].score == 1.0
    assert again.report().criteria == 1


def test_counts_from_several_threads_add_up() -> None:
    cascade = Cascade([Prices("small", {"sure": 0.9, "open": 0.5}), Prices("large", {"open": 0.9})])

    async def many() -> None:
        for _ in range(50):
            await cascade.judge_criteria(ROLLOUT, [SURE, OPEN])

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [stage.asked for stage in cascade.report().stages] == [400, 200]


def test_everything_that_can_change_a_verdict_is_in_the_fingerprint() -> None:
    two = [Prices("a", {}), Prices("b", {})]
    cascades = [
        Cascade(two),
        Cascade(two[::-1]),
        Cascade(two, escalate=0.1),
        Cascade(two, escalate=penalties_go_on),
        Cascade(two, fallback="last_answer"),
    ]
    assert len({cascade.fingerprint for cascade in cascades}) == len(cascades)


def test_wrong_options() -> None:
    two = [Prices("a", {}), Prices("b", {})]
    with pytest.raises(ConfigError, match="at least two"):
        Cascade(two[:1])
    with pytest.raises(ConfigError, match="fallback"):
        Cascade(two, fallback="guess")
    with pytest.raises(ConfigError, match="margin is 0.6"):
        Cascade(two, escalate=0.6)
    with pytest.raises(ConfigError, match="2 rules to escalate by for 2 stages"):
        Cascade(two, escalate=[0.1, 0.1])


RATED = Criterion(
    id="rated",
    text="How clear.",
    scale=OrdinalScale(levels=tuple(Level(label=str(n), value=n) for n in range(1, 6))),
)


def levels(**shares: float) -> Completion:
    return one_token(*((name[1:], share) for name, share in shares.items()))


@pytest.mark.parametrize(
    ("answer", "goes_on"),
    [
        (levels(n4=1.0), False),
        (levels(n3=0.98, n4=0.02), False),
        (levels(n1=0.5, n5=0.5), True),
        (levels(n1=0.2, n2=0.2, n3=0.2, n4=0.2, n5=0.2), False),  # spread 0.354, a coin's at P = 0.85
        (levels(n1=0.45, n3=0.1, n5=0.45), True),
    ],
)
async def test_an_expectation_goes_on_where_its_levels_lie_far_apart(answer: Completion, goes_on: bool) -> None:
    small = ExpectationJudge(MockModel(answer))
    large = Prices("large", {"rated": 0.75})
    cascade = Cascade([small, large], escalate=0.25)
    (verdict,) = (await cascade.judge_criteria(ROLLOUT, [RATED])).verdicts
    assert large.asked == (["rated"] if goes_on else [])
    assert (verdict.spread is None) is goes_on  # the large one's verdict has none
    assert cascade.report().stages[0].uncertain == goes_on


@given(st.floats(0.01, 0.99), st.floats(0.0, 0.49))
def test_two_ends_of_a_scale_are_as_sure_as_yes_and_no(p: float, margin: float) -> None:
    assume(abs(abs(p - 0.5) - margin) > 1e-6)
    asked: list[list[str]] = []
    for first in (LogprobJudge(MockModel(p_yes=p)), ExpectationJudge(MockModel(levels(n5=p, n1=1.0 - p)))):
        large = Prices("large", {"sure": 0.75, "rated": 0.75})
        criterion = SURE if isinstance(first, LogprobJudge) else RATED
        asyncio.run(Cascade([first, large], escalate=margin).judge_criteria(ROLLOUT, [criterion]))
        asked.append(large.asked)
    assert bool(asked[0]) is bool(asked[1]) is (abs(p - 0.5) < margin)


async def test_arrow_says_how_sure_it_is_where_it_has_log_probabilities() -> None:
    pieces = ('{"explanation_1": "x", "criteria_met_1": ', "true", "}")
    top = (("true", math.log(0.6)), ("false", math.log(0.4)))
    tokens = tuple(TokenLogprob(piece, top[0][1], top if piece == "true" else ()) for piece in pieces)
    for logprobs, asked in ((tokens, ["sure"]), (None, [])):
        arrow = ArrowJudge(MockModel(Completion("".join(pieces), logprobs=logprobs)), text_verdicts=True)
        large = Prices("large", {"sure": 1.0})
        await Cascade([arrow, large]).judge_criteria(ROLLOUT, [SURE])
        assert large.asked == asked
