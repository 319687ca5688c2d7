"""A real vLLM server behind the http back end: what the client relies on, asked of the server itself."""

from __future__ import annotations

import asyncio
import json
import math
import re
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from rubricate.chat import connect
from rubricate.chat.base import ChatModel, ChatRequest, Completion, Message
from rubricate.chat.limited import innermost
from rubricate.chat.probing import probe_model
from rubricate.chat.probing_results import Sign
from rubricate.chat.server import ServerModel
from rubricate.chat.timing import deadline
from rubricate.data.bundled import load_demo
from rubricate.errors import ChatError, ContextOverflowError, DeadlineError, RequestError
from rubricate.judges import CriterionJudge, LogprobJudge
from rubricate.rubrics.formats import parse_rubric
from rubricate.types import FailureKind

BLOCK = 128
"""Tokens of one cache block of vLLM on CPU: only whole blocks are shared."""
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"verdict": {"enum": ["met", "unmet"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


@pytest.fixture
def model(server_url: str) -> ChatModel:
    return connect(f"{server_url}?prefill=true")


@dataclass(frozen=True)
class Counted:
    """Prompt tokens that the server has taken, and those that it has computed, so far."""

    taken: float
    computed: float

    def __sub__(self, other: Counted) -> Counted:
        return Counted(self.taken - other.taken, self.computed - other.computed)


def counters(server_url: str) -> Counted:
    with urllib.request.urlopen(server_url.removesuffix("/v1") + "/metrics", timeout=30) as reply:
        text = reply.read().decode()

    def total(name: str) -> float:
        return sum(float(value) for value in re.findall(rf"^vllm:{name}\{{[^}}]*\}} (\S+)$", text, re.MULTILINE))

    return Counted(total("prompt_tokens_total"), total("request_prefill_kv_computed_tokens_sum"))


def user(text: str, **options: object) -> ChatRequest:
    return ChatRequest((Message("user", text),), **options)  # type: ignore[arg-type]  # options of any field


def must(answer: Completion | ChatError) -> Completion:
    assert isinstance(answer, Completion), answer
    return answer


def fresh_story(words: int = 500) -> str:
    """A text that the server has not seen, so that its cache cannot help."""
    return f"Story {uuid.uuid4().hex}. " + "The boats lay still in the harbour. " * (words // 7)


async def test_log_probabilities_of_twenty_alternatives(model: ChatModel) -> None:
    answer = await model.complete(user("Is snow white? Answer yes or no.", max_tokens=1, top_logprobs=20))
    assert answer.logprobs is not None
    (entry,) = answer.logprobs
    assert len(entry.top) == 20
    assert 0.5 < sum(math.exp(value) for _, value in entry.top) <= 1.0 + 1e-6
    assert (entry.token, entry.logprob) in entry.top


async def test_more_alternatives_than_the_server_gives_are_an_error_of_the_request(model: ChatModel) -> None:
    with pytest.raises(RequestError, match="20"):
        await model.complete(user("Is snow white?", max_tokens=1, top_logprobs=21))


async def test_schema_holds_the_answer(model: ChatModel) -> None:
    answer = await model.complete(user("Is the snow criterion met?", max_tokens=60, json_schema=SCHEMA))
    assert json.loads(answer.text)["verdict"] in ("met", "unmet")


async def test_a_turn_that_has_begun_is_continued(model: ChatModel) -> None:
    answer = await model.complete(user("Count from one to six.", max_tokens=6, prefill="one, two, three,"))
    assert "four" in answer.text and "one" not in answer.text


async def test_overflow_is_known_by_the_servers_message(model: ChatModel) -> None:
    for request in (user("boat " * 9000, max_tokens=1), user("boat", max_tokens=9000)):
        with pytest.raises(ContextOverflowError):
            await model.complete(request)


async def test_listing_and_name(server_url: str, model: ChatModel) -> None:
    raw = innermost(model)
    assert isinstance(raw, ServerModel)
    (entry,) = await raw.listing()
    assert entry["id"] == "smollm2" and entry["max_model_len"] == 8192
    assert await raw.resolve() == "smollm2"


async def test_a_deadline_ends_a_long_answer(model: ChatModel) -> None:
    with deadline(0.5), pytest.raises(DeadlineError):
        await model.complete(user("Tell a story.", max_tokens=4000, extra={"min_tokens": 4000}))


@pytest.mark.parametrize("warm", [256, None])
async def test_shared_prefix_is_computed_once(server_url: str, warm: int | None) -> None:
    """One call ahead of the others, or all at once: vLLM shares blocks within a step too."""
    model = connect(server_url, warm_tokens=warm)
    story = fresh_story()
    requests = [user(f"{story}\nCriterion {n}: boats.", max_tokens=1) for n in range(8)]
    before = counters(server_url)
    answers = [must(answer) for answer in await model.complete_many(requests)]
    spent = counters(server_url) - before
    assert spent.taken == sum(answer.usage.prompt_tokens for answer in answers)
    assert spent.computed == sum(answer.usage.prompt_tokens - answer.usage.cached_tokens for answer in answers)
    whole = answers[0].usage.prompt_tokens
    assert spent.computed <= whole + 7 * (BLOCK + 20)


async def test_prompts_part_is_computed_once_for_a_group(server_url: str) -> None:
    """Responses to one prompt, each with its criteria: the prompt is shared by all, the response by its own."""
    model = connect(server_url)
    prompt, count = fresh_story(700), 4
    groups = [
        [user(f"{prompt}\nResponse {n}: {'The sea. ' * 60}\nCriterion {k}", max_tokens=1) for k in range(3)]
        for n in range(count)
    ]
    before = counters(server_url)
    answers = await asyncio.gather(*(model.complete_many(group) for group in groups))
    spent = counters(server_url) - before
    whole = must(answers[0][0]).usage.prompt_tokens
    response = 60 * 3  # "The sea." is three tokens
    assert spent.computed <= whole + (count - 1) * (response + BLOCK) + 2 * count * (BLOCK + 20)


async def test_a_vllm_server_is_known_by_its_answers(server_url: str) -> None:
    model = innermost(connect(server_url))
    assert isinstance(model, ServerModel) and model.capabilities.warm_tokens == 256
    await model.complete(user("Say hi.", max_tokens=1))
    assert model.shares_at_once and model.capabilities.warm_tokens is None
    await model.aclose()


async def test_the_doctor_finds_what_the_server_can_do(model: ChatModel) -> None:
    report = await probe_model(model, timeout=120.0)
    for name in ("served", "logprobs", "json_schema", "prefill", "prefix_cache"):
        assert report.finding(name).sign is Sign.YES, report.finding(name)
    assert report.finding("served").details["context"] == 8192
    assert report.contradictions == ()


async def test_log_probability_judge_on_bundled_data(model: ChatModel) -> None:
    samples = [sample for sample in load_demo() if sample.language == "en"][:4]
    judge = LogprobJudge(model, max_outside=1.0)
    for sample in samples:
        rubric = parse_rubric(sample.rubric)
        judgement = await judge.judge(sample.rollout, rubric)
        assert [verdict.criterion_id for verdict in judgement.verdicts] == list(rubric.ids)
        assert all(0.0 < number < 1.0 for number in probabilities([v.probability for v in judgement.verdicts]))


async def test_reasoning_judge_on_bundled_data_gives_verdicts_or_says_why(model: ChatModel) -> None:
    """So small a model seldom keeps the form; what is no verdict is a failure with a cause, and never a number."""
    sample = load_demo()[0]
    rubric = parse_rubric(sample.rubric)
    judgement = await CriterionJudge(model, max_attempts=2, max_tokens=200).judge(sample.rollout, rubric)
    assert [verdict.criterion_id for verdict in judgement.verdicts] == list(rubric.ids)
    expected = {FailureKind.UNPARSABLE, FailureKind.AMBIGUOUS, FailureKind.INCOMPLETE, FailureKind.LENGTH}
    for verdict in judgement.verdicts:
        assert (verdict.score is None) == (verdict.failure is not None)
        assert verdict.failure is None or verdict.failure.kind in expected
    assert any(verdict.score is not None for verdict in judgement.verdicts)


def probabilities(values: Sequence[float | None]) -> list[float]:
    found = [value for value in values if value is not None]
    assert len(found) == len(values)
    return found
