"""Several criteria in one prefill: slots found among any tokens, what the server sends, caches and recordings."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat import ChatRequest, Completion, Message, MockModel, TokenLogprob, connect, request_key
from rubricate.chat.recording_lines import answer_of, answer_record
from rubricate.chat.wire import Dialect, parse_completion, request_body
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ServerError
from rubricate.judges.slots import SlotsJudge
from rubricate.prompts import Prompt
from rubricate.rubrics import Criterion, NumericScale, Rubric
from rubricate.types import FailureKind, Status

ROLLOUT = Rollout("Vögel?", "Robin. 日本語 Statement: x\nAnswer: -\nAnswer: - 🐦")
TEXTS = ("Says 1. Answer: -", "Sagt, daß „Answer: -“ 日本", "Says 3.")
THREE = Rubric(criteria=tuple(Criterion(id=f"c{n}", text=text) for n, text in enumerate(TEXTS)))


def scored(request: ChatRequest, cuts: Sequence[int] = (), shares: Sequence[float] = (0.9, 0.2, 0.6)) -> Completion:
    """The prompt in tokens, by default words with the blank before them; its n-th slot has the n-th P(yes)."""
    text = f"<|im_start|>{request.text()}<|im_end|>\n<|im_start|>assistant\n"
    slots = [match.end(1) for match in re.finditer(r"(Answer yes or no\.\nAnswer: )-", text)][-len(shares) :]
    edges = {match.start() for match in re.finditer(r"\s?\S+", text)} | {slot - 1 for slot in slots}
    if cuts:
        edges = {cut for cut in cuts if cut < len(text) and cut not in slots} | {slot - 1 for slot in slots}
    tokens = [TokenLogprob("", 0.0)]
    for low, high in pairwise(sorted({0, len(text), *edges})):
        piece = text[low:high].encode()[:1000].decode("utf-8", "replace")
        at = next((n for n, slot in enumerate(slots) if slot - 1 == low), None)
        top = [(piece, -9.0)]
        if at is not None:
            top += [(" yes", math.log(0.8 * shares[at])), ("No", math.log(0.8 * (1 - shares[at])))]
        tokens.append(TokenLogprob(piece, -9.0, tuple(top)))
    return Completion("y", prompt_logprobs=tuple(tokens))


async def test_all_criteria_from_one_prompt() -> None:
    model = MockModel(scored)
    judgement = await SlotsJudge(model).judge(ROLLOUT, THREE)
    assert [v.score for v in judgement.verdicts] == [pytest.approx(p) for p in (0.9, 0.2, 0.6)]
    (request,) = model.requests
    assert request.max_tokens == 1 and request.prompt_logprobs == 20 and request.top_logprobs is None
    assert judgement.usage.calls == 1


@given(st.lists(st.integers(1, 900), min_size=1, max_size=200))
async def test_however_the_prompt_is_tokenised(cuts: list[int]) -> None:
    judge = SlotsJudge(MockModel(lambda request: scored(request, cuts)))
    judgement = await judge.judge(ROLLOUT, THREE)
    assert [v.score for v in judgement.verdicts] == [pytest.approx(p) for p in (0.9, 0.2, 0.6)]


async def test_long_rubrics_are_split_on_one_prefix() -> None:
    model = MockModel(lambda request: scored(request, (), (0.9, 0.2) if "Says 1" in request.text() else (0.6,)))
    judgement = await SlotsJudge(model, questions_per_call=2).judge(ROLLOUT, THREE)
    assert [v.raw for v in judgement.verdicts] == ["yes", "no", "yes"] and judgement.usage.calls == 2


async def test_conditions_and_scales() -> None:
    criteria = (
        Criterion(id="a", text="Cites.", condition="Sources are asked for."),
        Criterion(id="n", text="How clear.", scale=NumericScale()),
        Criterion(id="b", text="Is kind."),
    )
    model = MockModel(lambda request: scored(request, (), (0.9, 0.1, 0.7)))
    judgement = await SlotsJudge(model).judge(ROLLOUT, Rubric(criteria=criteria))
    assert [v.status for v in judgement.verdicts] == [Status.NOT_APPLICABLE, Status.FAILED, Status.OK]
    assert "Is it true of the task and the response?" in model.requests[0].text()


def _lose(request: ChatRequest) -> Completion:
    logprobs = scored(request).prompt_logprobs or ()
    return Completion("y", prompt_logprobs=logprobs[: len(logprobs) // 4])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Completion("yes"), FailureKind.NO_LOGPROBS),
        (_lose, FailureKind.NO_LOGPROBS),
        (ServerError("down"), FailureKind.SERVER),
    ],
)
async def test_what_was_not_scored_is_no_number(answer: Completion | ServerError, kind: FailureKind) -> None:
    judgement = await SlotsJudge(MockModel(answer)).judge(ROLLOUT, THREE)
    assert [v.score for v in judgement.verdicts] == [None] * 3
    assert {v.failure.kind for v in judgement.verdicts if v.failure} == {kind}


async def test_little_mass_fails_alone() -> None:
    judgement = await SlotsJudge(MockModel(scored), max_outside=0.1).judge(ROLLOUT, THREE)
    assert {v.failure.kind for v in judgement.verdicts if v.failure} == {FailureKind.LOW_MASS}


async def test_a_prompt_without_slots_and_signs_that_are_answers() -> None:
    source = "{% block system %}{% endblock %}{% block shared %}{% endblock %}{% block item %}Is it?{% endblock %}"
    judgement = await SlotsJudge(MockModel("yes"), prompt=Prompt("mine", source), filler="-").judge(ROLLOUT, THREE)
    failure = judgement.verdicts[0].failure
    assert failure is not None and "no slot" in failure.message
    for filler in ("Yes", " "):
        with pytest.raises(ConfigError, match="neutral"):
            SlotsJudge(MockModel("yes"), filler=filler)
    with pytest.raises(ConfigError, match="questions_per_call"):
        SlotsJudge(MockModel("yes"), questions_per_call=0)
    judge = SlotsJudge(MockModel("yes"))
    assert pickle.loads(pickle.dumps(judge)).fingerprint == judge.fingerprint
    assert SlotsJudge(MockModel("yes"), filler="?").fingerprint != judge.fingerprint


REPLY: dict[str, object] = {
    "choices": [{"message": {"content": "y"}, "finish_reason": "length"}],
    "prompt_token_ids": [1, 7, 9],
    "prompt_logprobs": [
        None,
        {
            "5": {"logprob": -0.1, "rank": 1, "decoded_token": " a"},
            "7": {"logprob": -3.5, "rank": 40, "decoded_token": " b"},
        },
        {"9": {"logprob": None, "rank": 1, "decoded_token": None}},
    ],
}


def test_vllms_form() -> None:
    first = TokenLogprob("", 0.0)
    own = TokenLogprob(" b", -3.5, ((" a", -0.1), (" b", -3.5)))
    found = parse_completion(REPLY, "p").prompt_logprobs
    assert found is not None and found[:2] == (first, own) and found[2].logprob == -9999.0
    # without the ids, the prompt's own token is the first one listed
    plain = parse_completion({**REPLY, "prompt_token_ids": None}, "p").prompt_logprobs
    assert plain is not None and plain[1].token == " a"
    assert parse_completion({"choices": REPLY["choices"]}, "p").prompt_logprobs is None
    broken_parts: list[dict[str, object]] = [
        {"prompt_token_ids": [1]},
        {"prompt_token_ids": [1, 8, 9]},
        {"prompt_logprobs": [None, {}, {}]},
    ]
    for broken in broken_parts:
        with pytest.raises(ServerError, match="broken"):
            parse_completion({**REPLY, **broken}, "p")


def test_the_body_the_key_and_the_recording() -> None:
    plain = ChatRequest((Message("user", "Hi"),))
    asked = ChatRequest((Message("user", "Hi"),), prompt_logprobs=20)
    body = request_body(asked, "m", Dialect())
    assert body["prompt_logprobs"] == 20 and body["return_token_ids"] is True
    assert "prompt_logprobs" not in request_body(plain, "m", Dialect())
    assert request_key("m", plain) != request_key("m", asked)
    answer = parse_completion(REPLY, "p")
    assert answer_of(answer_record(answer)) == answer


async def test_answers_with_prompt_logprobs_are_cached(tmp_path: Path) -> None:
    model = MockModel(scored)
    kept = connect(model, cache=tmp_path / "c.sqlite")
    first = await SlotsJudge(kept).judge(ROLLOUT, THREE)
    again = await SlotsJudge(kept).judge(ROLLOUT, THREE)
    await kept.aclose()
    assert len(model.requests) == 1 and first.verdicts == again.verdicts
