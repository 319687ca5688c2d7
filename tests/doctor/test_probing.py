"""What probes find on servers with and without each ability, and how they end on servers that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.doctor.conftest import Body, Front, TimedModel, competent, opened, without_counts

from rubricate.chat import ChatRequest, Completion, Finish, MockModel, Scripted, connect
from rubricate.chat.base import Capabilities
from rubricate.chat.probing import PROBES, ModelReport, Sign, probe_bound, probe_model
from rubricate.chat.testserver import Faults, FaultyServer, Reply
from rubricate.chat.timing import ManualClock
from rubricate.cli.doctor_advice import judge_trial
from rubricate.errors import ConfigError, ContextOverflowError, ServerError
from rubricate.narrow import as_array, as_object

TRIAL = judge_trial()


async def examine(front: Front, *, name: str = "", timeout: float = 20.0) -> ModelReport:
    async with opened(front):
        return await probe_model(connect(name or front.name), timeout=timeout)


def signs(report: ModelReport) -> dict[str, str]:
    return {found.name: found.sign.value for found in report.findings}


async def test_a_server_that_can_do_everything() -> None:
    entry: Body = {"id": "test", "max_model_len": 4096}
    front = Front(FaultyServer(competent, latency=0.003), listing=[entry])
    report = await examine(front)
    found = signs(report)
    del found["concurrency"]  # depends on the machine's load
    assert found == {
        "answers": "yes",
        "served": "yes",
        "latency": "yes",
        "prefix_cache": "yes",
        "prefill": "yes",
        "logprobs": "yes",
        "json_schema": "yes",
        "repeatable": "yes",
    }
    assert report.context == 4096
    assert report.finding("served").details["model"] == "test"
    # the test server knows the whole prefix after the first call, in blocks of 16 tokens
    cached = as_array(report.finding("prefix_cache").details["cached_tokens"]) or ()
    assert len(cached) == 6
    assert all(isinstance(count, int) and count > 1000 for count in cached)
    assert report.finding("logprobs").details["came"] == 2
    assert [dict(token.top).keys() for token in report.first_tokens] == [{"Yes", " no"}] * 2
    assert [text for text in report.contradictions if "prefill" not in text] == []
    json.dumps(report.to_dict())


async def test_calls_and_tokens_stay_within_the_bound_that_is_announced() -> None:
    front = Front(FaultyServer(competent))
    report = await examine(front)
    bound = report.bound
    assert len(front.asked) == report.usage.calls <= bound.calls
    assert report.usage.prompt_tokens <= bound.prompt_tokens
    assert sum(int(str(body["max_tokens"])) for body in front.asked) <= bound.completion_tokens
    assert bound == probe_bound(connect("http://127.0.0.1:1/v1#test"))


async def test_eight_calls_at_once_reach_the_server_at_once() -> None:
    inner = FaultyServer(competent, latency=0.05)
    report = await examine(Front(inner))
    assert inner.counts.max_in_flight == 8
    assert report.finding("concurrency").details["failed"] == 0


async def test_prefill_is_tried_where_the_name_does_not_ask_for_it() -> None:
    report = await examine(Front(FaultyServer(competent)))
    assert "?prefill=true" in report.finding("prefill").text
    assert "capabilities do not say prefill, but it works" in report.contradictions
    front = Front(FaultyServer(competent))
    async with opened(front):
        claimed = await probe_model(connect(f"{front.url}?prefill=true#test"))
    assert claimed.finding("prefill").sign is Sign.YES
    assert claimed.contradictions == ()
    # a log-probability judge begins the answer where it can, and so does the probe
    asked = [body for body in front.asked if body.get("logprobs")]
    assert asked and all(body.get("continue_final_message") for body in asked)


async def test_a_server_that_begins_a_new_turn() -> None:
    front = Front(FaultyServer(lambda body: Reply("The first two days are Monday and Tuesday.")))
    async with opened(front):
        report = await probe_model(connect(f"{front.url}?prefill=true#test"))
    assert report.finding("prefill").sign is Sign.NO
    assert any(text.startswith("capabilities say prefill") for text in report.contradictions)


async def test_no_logprobs_though_asked() -> None:
    def stripped(reply: Body) -> Body:
        (choice,) = map(as_object, as_array(reply["choices"]) or ())
        return {**reply, "choices": [{key: value for key, value in (choice or {}).items() if key != "logprobs"}]}

    report = await examine(Front(FaultyServer(competent), edit=stripped))
    found = report.finding("logprobs")
    assert (found.sign, found.details) == (Sign.NO, {"asked": 20, "came": 0})
    assert report.first_tokens == ()
    assert any(text.startswith("capabilities say logprobs") for text in report.contradictions)


async def test_fewer_logprobs_where_twenty_are_refused() -> None:
    def refuse(body: Body) -> tuple[int, str] | None:
        return (400, "top_logprobs must be at most 5") if body.get("top_logprobs") == 20 else None

    report = await examine(Front(FaultyServer(competent), refuse=refuse))
    assert report.finding("logprobs").sign is Sign.YES
    assert report.finding("logprobs").details["asked"] == 5


@pytest.mark.parametrize(
    ("said", "came"),
    [
        ("Yes, it is four.", "ignored"),
        ("", "empty"),
        ('{"verdict": "perhaps"}', "invalid"),
        ('{"sure": true}', "invalid"),
        ('{"verdict": "met", "why": "sum"}', "invalid"),
        ('{"verdict": "met"}', "valid"),
    ],
)
async def test_what_comes_of_a_schema(said: str, came: str) -> None:
    report = await examine(Front(FaultyServer(lambda body: said if "response_format" in body else competent(body))))
    found = report.finding("json_schema")
    assert found.details["came"] == came
    assert found.sign is (Sign.YES if came == "valid" else Sign.NO)


async def test_a_refused_schema_is_a_finding_and_later_probes_go_on() -> None:
    def refuse(body: Body) -> tuple[int, str] | None:
        return (400, "response_format is not supported") if "response_format" in body else None

    report = await examine(Front(FaultyServer(competent), refuse=refuse))
    found = report.finding("json_schema")
    assert found.sign is Sign.FAILED
    assert found.error == "HTTP 400: response_format is not supported"
    assert report.finding("repeatable").sign is Sign.YES
    assert report.finding("concurrency").sign is not Sign.SKIPPED


async def test_the_other_form_of_schema_is_tried() -> None:
    def refuse(body: Body) -> tuple[int, str] | None:
        form = as_object(body.get("response_format")) or {}
        return (500, "unknown type") if form.get("type") == "json_schema" else None

    report = await examine(Front(FaultyServer(competent), refuse=refuse))
    found = report.finding("json_schema")
    assert found.sign is Sign.NO
    assert found.details["works_as"] == "llama.cpp"
    assert "?schema=llama.cpp" in found.text


async def test_a_wrong_key_is_named_without_the_key_and_costs_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUBRICATE_API_KEY", "sk-not-this-one")
    front = Front(FaultyServer(competent), key="sk-right")
    report = await examine(front)
    found = report.finding("answers")
    assert (found.sign, report.answers) == (Sign.FAILED, False)
    assert "HTTP 401" in found.text and "API key" in found.hint
    assert "sk-not-this-one" not in json.dumps(report.to_dict())
    assert len(front.asked) == 1
    assert report.finding("prefix_cache").sign is Sign.SKIPPED


async def test_the_key_is_used_for_the_list_of_models_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUBRICATE_API_KEY", "sk-right")
    report = await examine(Front(FaultyServer(competent), key="sk-right"))
    assert report.answers
    assert report.finding("served").sign is Sign.YES


async def test_an_unknown_model_is_told_which_there_are() -> None:
    def refuse(body: Body) -> tuple[int, str] | None:
        return None if body["model"] == "test" else (404, f"no model {body['model']}")

    front = Front(FaultyServer(competent), refuse=refuse, listing=[{"id": "test"}, {"id": "other"}])
    async with opened(front):
        report = await probe_model(connect(f"{front.url}#tset"))
    assert "HTTP 404" in report.finding("answers").error
    served = report.finding("served")
    assert served.sign is Sign.NO
    assert "'tset'" in served.text and "test, other" in served.text
    assert len(front.asked) == 1


async def test_a_server_that_hangs_costs_one_timeout() -> None:
    front = Front(FaultyServer(competent, Faults(hang=1.0)))
    report = await examine(front, timeout=0.2)
    assert signs(report) == {"answers": "failed", **dict.fromkeys(PROBES[1:], "skipped")}
    assert "deadline" in report.finding("answers").error
    assert len(front.asked) == 1


async def test_a_server_that_is_not_there() -> None:
    async with FaultyServer(competent) as server:
        name = server.name
    report = await probe_model(connect(name), timeout=5.0)
    assert report.finding("answers").sign is Sign.FAILED
    assert "no connection" in report.finding("answers").error
    assert report.usage.calls == 1


async def test_two_probes_in_a_row_without_a_reply_end_the_examination(clock: ManualClock) -> None:
    calls: list[ChatRequest] = []

    def play(request: ChatRequest) -> str:
        calls.append(request)
        if len(calls) > 4:
            raise ServerError("gone")
        return "fine"

    report = await probe_model(MockModel(play), clock=clock)
    assert signs(report)["prefix_cache"] == signs(report)["prefill"] == "failed"
    assert signs(report)["logprobs"] == signs(report)["concurrency"] == "skipped"
    assert len(calls) == 6


async def test_a_bug_in_a_back_end_is_a_finding(clock: ManualClock) -> None:
    def play(request: ChatRequest) -> str:
        if request.top_logprobs is not None:
            raise ZeroDivisionError("oh")
        return "fine"

    report = await probe_model(MockModel(play), clock=clock)
    assert report.finding("logprobs").error == "ZeroDivisionError: oh"
    assert report.finding("repeatable").sign is Sign.YES


async def test_a_model_that_cannot_start_is_a_finding(clock: ManualClock) -> None:
    def play(request: ChatRequest) -> str:
        raise ConfigError("the weights are torn", hint="get them again")

    report = await probe_model(MockModel(play), clock=clock)
    found = report.finding("answers")
    assert (found.error, found.hint) == ("the weights are torn", "get them again")
    assert signs(report)["served"] == "skipped"


async def test_answers_that_differ_are_not_repeatable(clock: ManualClock) -> None:
    texts = iter(f"answer {n}" for n in range(100))
    report = await probe_model(MockModel(lambda request: next(texts)), clock=clock)
    found = report.finding("repeatable")
    assert found.sign is Sign.NO
    assert "character 7" in found.text or "character 8" in found.text


async def test_some_calls_at_once_are_refused() -> None:
    def play(request: ChatRequest) -> Scripted:
        if request.messages[0].content.startswith(("Say 8", "Say 9")):
            return Scripted(error=ServerError("too busy", status=503))
        return Scripted("fine")

    report = await probe_model(MockModel(play))
    found = report.finding("concurrency")
    assert found.sign is Sign.NO
    assert found.details["failed"] == 2
    assert "too busy" in found.text


async def test_a_model_that_takes_no_sampling_parameters_gets_room_to_reason(clock: ManualClock) -> None:
    class Reasoner(MockModel):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(json_schema=True)

    model = Reasoner("fine")
    report = await probe_model(model, clock=clock)
    assert {request.max_tokens for request in model.requests} == {512}
    assert report.finding("logprobs").sign is Sign.NO
    assert sum(request.max_tokens for request in model.requests) <= report.bound.completion_tokens


async def test_a_prompt_too_long_for_the_context_is_halved(clock: ManualClock) -> None:
    class Short(TimedModel):
        async def complete(self, request: ChatRequest) -> Completion:
            if len(request.text()) > 3000:
                raise ContextOverflowError("too long", status=400)
            return await super().complete(request)

    report = await probe_model(Short(clock, caches=True), clock=clock)
    found = report.finding("prefix_cache")
    assert found.sign is Sign.LIKELY
    length = found.details["prefix_tokens"]
    assert isinstance(length, int) and 500 < length <= 750


async def test_no_cache_of_ours_answers_a_probe(tmp_path: Path) -> None:
    model = MockModel("fine")
    cached = connect(model, cache=tmp_path / "answers.sqlite")
    reports = [await probe_model(cached) for _ in range(2)]
    assert [report.usage.calls for report in reports] == [len(model.requests) // 2] * 2


async def test_connections_are_closed_at_the_end(clock: ManualClock) -> None:
    model = TimedModel(clock, caches=False)
    await probe_model(model, clock=clock)
    assert model.closed == 1


async def test_what_the_probes_cost() -> None:
    report = await probe_model(MockModel("fine"), prices=(2.0, 4.0))
    used = report.usage
    assert used.cost == pytest.approx((used.prompt_tokens * 2 + used.completion_tokens * 4) / 1e6)


async def test_a_server_without_counts_is_judged_by_time() -> None:
    report = await examine(Front(FaultyServer(competent), edit=without_counts))
    assert report.finding("prefix_cache").details["by"] == "time"


def judged(*replies: str) -> MockModel:
    """A model that answers a judge's requests so, and any other with a word."""
    lines = [Scripted(text, match="It says four.", times=1) for text in replies]
    return MockModel([*lines, "ready"], repeat=True)


GOOD = '{"verdicts": [{"id": "C1", "reason": "It does.", "verdict": "met"}], "final": {"C1": "met"}}'


@pytest.mark.parametrize(
    ("replies", "sign", "says"),
    [
        ((GOOD,), Sign.YES, "a readable verdict came"),
        ((GOOD.replace("met", "unmet"),), Sign.YES, "'unmet' where 'met' is right"),
        (("", GOOD), Sign.YES, "a readable verdict came"),  # without the schema
        (("yes", "yes"), Sign.NO, "'yes' came"),
        (("", ""), Sign.NO, "empty"),
    ],
)
async def test_a_real_judgement_is_tried(replies: tuple[str, ...], sign: Sign, says: str) -> None:
    model = judged(*replies)
    report = await probe_model(model, trial=TRIAL)
    found = report.finding("judgement")
    assert found.sign is sign and says in found.text
    bound = probe_bound(model, TRIAL)
    assert report.usage.calls <= bound.calls and report.usage.prompt_tokens <= bound.prompt_tokens
    assert bound.calls == probe_bound(model).calls + 2


async def test_a_judgement_that_is_cut_is_no_verdict_on_the_model() -> None:
    lines = [Scripted("{", match="It says four.", finish=Finish.LENGTH), "ready"]
    report = await probe_model(MockModel(lines, repeat=True), trial=TRIAL)
    assert report.finding("judgement").sign is Sign.UNKNOWN


async def test_without_a_trial_no_judgement_is_asked_for() -> None:
    report = await probe_model(judged(GOOD))
    assert [finding.name for finding in report.findings] == list(PROBES)
