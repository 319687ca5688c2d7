"""Log-probabilities that are none (NaN, above 0): each judge that reads them fails with a type, not a number."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping

import pytest

from rubricate.chat import ChatModel, ChatRequest, Completion, MockModel, TokenLogprob
from rubricate.chat.wire import parse_completion
from rubricate.data.records import Rollout
from rubricate.judges.arrow import ArrowJudge
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.decisions import DecisionsJudge
from rubricate.judges.geval import ExpectationJudge, HolisticExpectationJudge
from rubricate.judges.logprob import LogprobJudge, answer_mass
from rubricate.judges.mass import label_mass
from rubricate.judges.pairwise_cheap import LogprobPairJudge
from rubricate.judges.slots import SlotsJudge
from rubricate.rubrics import Criterion, Level, OrdinalScale
from rubricate.types import Failure, FailureKind

ROLLOUT = Rollout("Name a bird.", "Robin.")
BINARY = Criterion(id="a", text="Names a bird.")
RATED = Criterion(
    id="a", text="Names a bird.", scale=OrdinalScale(levels=tuple(Level(label=str(n), value=n) for n in (1, 2)))
)
Made = Callable[[float, float], Completion]
"""A reply whose chosen token and whose alternative have these log-probabilities."""


def one(word: str, other: str) -> Made:
    def made(chosen: float, alternative: float) -> Completion:
        return Completion(word, logprobs=(TokenLogprob(word, chosen, ((word, chosen), (other, alternative))),))

    return made


def arrow(chosen: float, alternative: float) -> Completion:
    pieces = ('{"explanation_1": "x", "criteria_met_1": ', "true", "}")
    tops: list[tuple[tuple[str, float], ...]] = [((piece, 0.0),) for piece in pieces]
    tops[1] = (("true", chosen), ("false", alternative))
    tokens = tuple(TokenLogprob(piece, top[0][1], top) for piece, top in zip(pieces, tops, strict=True))
    return Completion("".join(pieces), logprobs=tokens)


async def overall(judge: CriteriaJudge, criterion: Criterion) -> tuple[float | None, Failure | None]:
    judgement = await judge.judge_criteria(ROLLOUT, [criterion])
    verdict = judgement.overall or judgement.verdicts[0]
    return verdict.score, verdict.failure


async def compared(model: ChatModel) -> tuple[float | None, Failure | None]:
    said = await LogprobPairJudge(model).compare(ROLLOUT, Rollout("Name a bird.", "Wren."))
    return said.probability, said.failure


async def slots(made: Made, chosen: float, alternative: float) -> tuple[float | None, Failure | None]:
    def prompt(request: ChatRequest) -> Completion:
        tokens = [TokenLogprob(piece, -1.0, ((piece, -1.0),)) for piece in request.text().rpartition("-")[::2]]
        tokens[1:] = [TokenLogprob("-", -9.0, (("-", -9.0), ("no", alternative), ("yes", chosen))), tokens[1]]
        return Completion("y", prompt_logprobs=tuple(tokens))

    return await overall(SlotsJudge(MockModel(prompt)), BINARY)


Asked = Callable[[float, float], Awaitable[tuple[float | None, Failure | None]]]
READERS: Mapping[str, Asked] = {
    "logprob": lambda c, a: overall(LogprobJudge(MockModel(one("yes", "no")(c, a))), BINARY),
    "expectation": lambda c, a: overall(ExpectationJudge(MockModel(one("1", "2")(c, a))), RATED),
    "holistic": lambda c, a: overall(HolisticExpectationJudge(MockModel(one("1", "2")(c, a))), RATED),
    "arrow": lambda c, a: overall(ArrowJudge(MockModel(arrow(c, a)), text_verdicts=True), BINARY),
    "pair": lambda c, a: compared(MockModel(one("A", "B")(c, a))),
    "slots": lambda c, a: slots(arrow, c, a),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("wrong", [math.nan, math.inf, 0.5, 1000.0])
async def test_what_is_no_log_probability_fails(name: str, wrong: float) -> None:
    for chosen, alternative in ((wrong, math.log(0.2)), (math.log(0.8), wrong)):
        number, why = await READERS[name](chosen, alternative)
        assert number is None and why is not None and why.kind is FailureKind.NO_LOGPROBS, (chosen, alternative)


@pytest.mark.parametrize("name", READERS)
async def test_a_probability_of_zero_and_rounding_are_read(name: str) -> None:
    for chosen, alternative in ((math.log(0.96), -math.inf), (1e-6, -9999.0), (math.log(0.8), math.log(0.2))):
        number, why = await READERS[name](chosen, alternative)
        assert number is not None and 0.0 <= number <= 1.0 and why is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 3.0])
def test_masses_leave_out_what_is_none(wrong: float) -> None:
    token = TokenLogprob("yes", wrong, (("yes", wrong), ("no", math.log(0.2))))
    mass = answer_mass(token)
    assert (mass.yes, mass.no) == (0.0, pytest.approx(0.2))
    assert label_mass([token], ("yes", "no")).shares == {"yes": 0.0, "no": pytest.approx(0.2)}


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "2.5"])
async def test_a_servers_reply_with_one_fails_too(wrong: str) -> None:
    entry = f'{{"token": "yes", "logprob": -0.01, "top_logprobs": [{{"token": "no", "logprob": {wrong}}}]}}'
    choice = f'{{"message": {{"content": "yes"}}, "finish_reason": "stop", "logprobs": {{"content": [{entry}]}}}}'
    reply = parse_completion(json.loads(f'{{"choices": [{choice}]}}'), "test")
    number, why = await overall(LogprobJudge(MockModel(reply)), BINARY)
    assert number is None and why is not None and why.kind is FailureKind.NO_LOGPROBS
    zero = json.loads(f'{{"choices": [{choice}]}}'.replace(wrong, "-Infinity"))
    assert (await overall(LogprobJudge(MockModel(parse_completion(zero, "test"))), BINARY))[0] == 1.0


@pytest.mark.parametrize("shares", ["[NaN, 0.5]", "[-0.5, 1.5]", "[0.0, 0.0]", "[1e400, 0]", "[true, false]"])
async def test_decisions_that_are_no_probabilities_fail(shares: str) -> None:
    for criterion in (BINARY, RATED):
        text = f'{{"answers": {{"C1": {{"probabilities": {shares}}}}}}}'
        number, why = await overall(DecisionsJudge(MockModel(text)), criterion)
        assert number is None and why is not None
