"""Decisions: the exact bodies and replies of three dialects, finding the dialect, and what is no verdict."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from decisions_server import DecisionsServer, serving

from rubricate.chat import ChatModel, ChatRequest, Limits, Message, MockModel, connect
from rubricate.chat.decisions import DecisionsModel
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, RequestError
from rubricate.judges.decisions import DecisionsJudge
from rubricate.rubrics import Criterion, Level, NumericScale, OrdinalScale, Rubric
from rubricate.types import FailureKind, Status

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
SCALE = OrdinalScale(
    levels=(
        Level(label="poor", value=0, description="Useless."),
        Level(label="fair", value=1),
        Level(label="good", value=4),
    )
)
TWO = Rubric(
    criteria=(Criterion(id="a", text="Names a bird."), Criterion(id="b", text="How clear it is.", scale=SCALE))
)
ONCE = Limits(max_attempts=1)


def shares(text: str, count: int) -> list[float]:
    return [0.2, 0.8] if count == 2 else [0.2, 0.3, 0.5]


def model(
    server: DecisionsServer,
    *,
    dialect: str = "auto",
    with_mass: bool = False,
    extra: dict[str, object] | None = None,
) -> ChatModel:
    name = f"decisions:{server.url}"
    return connect(name, limits=ONCE, dialect=dialect, with_mass=with_mass, extra=extra or {})


@pytest.mark.parametrize("dialect", ["openai", "sglang", "systemone"])
async def test_a_rubric_in_one_call(dialect: str) -> None:
    async with serving(DecisionsServer(dialect, shares)) as server:
        judge = DecisionsJudge(model(server, dialect=dialect))
        judgement = await judge.judge(ROLLOUT, TWO)
        await judge.aclose()
    first, second = judgement.verdicts
    assert first.score == first.probability == pytest.approx(0.8) and first.raw == "yes"
    assert second.raw == pytest.approx(0.3 + 2.0) and second.score == pytest.approx(2.3 / 4)
    assert len(server.bodies) == 1 and judgement.usage.calls == 1 and judgement.usage.prompt_tokens == 120
    assert judgement.usage.cached_tokens == (96 if dialect == "openai" else 0)


async def test_the_body_of_openais_dialect() -> None:
    async with serving(DecisionsServer("openai", shares)) as server:
        await DecisionsJudge(model(server, dialect="openai")).judge(ROLLOUT, TWO)
        await DecisionsJudge(model(server, dialect="openai", with_mass=True)).judge(ROLLOUT, TWO)
    body, checked = server.bodies
    assert body["model"] == "tiny" and "Robin, wren and owl." in body["input"] and "<response-" in body["input"]
    assert body["questions"] == [
        {
            "type": "predicate",
            "name": "C1",
            "instructions": "This statement is true of the response: Names a bird.",
        },
        {
            "type": "score",
            "name": "C2",
            "instructions": "Rate the response on this: How clear it is.",
            "levels": [{"label": "poor", "description": "Useless."}, {"label": "fair"}, {"label": "good"}],
        },
    ]
    assert checked["questions"][0]["choices"] == [{"value": False}, {"value": True}]


async def test_the_body_of_sglangs_dialect() -> None:
    async with serving(DecisionsServer("sglang", shares)) as server:
        await DecisionsJudge(model(server, dialect="sglang", extra={"temperature": 2})).judge(ROLLOUT, TWO)
    (body,) = server.bodies
    assert body.pop("input") and body.pop("path") == "/v1/decisions"
    assert body == {
        "temperature": 2,
        "questions": [
            {"id": "C1", "type": "yes_no", "question": "This statement is true of the response: Names a bird."},
            {
                "id": "C2",
                "type": "score",
                "question": "Rate the response on this: How clear it is.",
                "levels": ["poor: Useless.", "fair", "good"],
            },
        ],
    }


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_the_dialect_is_found_once(status: int) -> None:
    async with serving(DecisionsServer("sglang", shares, refused=status)) as server:
        judge = DecisionsJudge(model(server))
        for _ in range(2):
            judgement = await judge.judge(ROLLOUT, TWO)
            assert [v.status for v in judgement.verdicts] == [Status.OK, Status.OK]
        await judge.aclose()
    assert ["id" in body["questions"][0] for body in server.bodies] == [False, True, True]


async def test_a_server_that_takes_neither_says_why() -> None:
    async with serving(DecisionsServer("systemone")) as server:
        with pytest.raises(RequestError, match=r"neither dialect.*404.*404") as raised:
            await model(server).complete(ChatRequest((Message("user", "x"),), extra={"questions": [["C1", "y"]]}))
        assert "LogprobJudge" in raised.value.hint and len(server.bodies) == 2
        judgement = await DecisionsJudge(model(server)).judge(ROLLOUT, TWO)
    assert {v.failure.kind for v in judgement.verdicts if v.failure} == {FailureKind.REQUEST}


async def test_a_model_that_cannot_is_not_asked_again() -> None:
    async with serving(DecisionsServer("openai", status=501)) as server:
        judge = DecisionsJudge(connect(f"decisions:{server.url}", limits=Limits(max_attempts=3)))
        judgement = await judge.judge(ROLLOUT, TWO)
        await judge.aclose()
    failure = judgement.verdicts[0].failure
    assert failure is not None and failure.kind is FailureKind.SERVER and "another model" in failure.message
    assert len(server.bodies) == 1


def _refusal(reply: dict[str, Any]) -> dict[str, Any]:
    reply["answers"][0] = {"type": "refusal", "name": "C1"}
    return reply


async def test_a_refused_question_fails_alone() -> None:
    async with serving(DecisionsServer("openai", shares, damage=_refusal)) as server:
        judgement = await DecisionsJudge(model(server)).judge(ROLLOUT, TWO)
    first, second = judgement.verdicts
    assert first.score is None and first.failure is not None and first.failure.kind is FailureKind.REFUSAL
    assert second.score is not None


@pytest.mark.parametrize(
    ("dialect", "with_mass", "failed"),
    [
        ("openai", False, [False, True]),  # predicates say nothing of the mass
        ("openai", True, [True, True]),
        ("sglang", False, [True, True]),
        ("systemone", False, [True, True]),
    ],
)
async def test_mass_outside_the_answers_fails(dialect: str, with_mass: bool, failed: list[bool]) -> None:
    async with serving(DecisionsServer(dialect, shares, mass=0.3)) as server:
        judge = DecisionsJudge(model(server, dialect=dialect, with_mass=with_mass))
        judgement = await judge.judge(ROLLOUT, TWO)
        lenient = await DecisionsJudge(judge.model, max_outside=0.8).judge(ROLLOUT, TWO)
    assert [v.status is Status.FAILED for v in judgement.verdicts] == failed
    assert all("70.0%" in v.failure.message for v in judgement.verdicts if v.failure)
    assert all(v.status is Status.OK for v in lenient.verdicts)


def _set(path: str, value: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def damage(reply: dict[str, Any]) -> dict[str, Any]:
        *way, last = path.split("/")
        place: Any = reply
        for step in way:
            place = place[int(step) if step.isdigit() and "C1" not in place else step]
        key: Any = int(last) if isinstance(place, list) else last
        if value is None:
            del place[key]
        else:
            place[key] = value
        return reply

    return damage


BROKEN = [
    ("openai", _set("answers", None)),
    ("openai", _set("answers/1", None)),
    ("openai", _set("answers/0/name", "C2")),
    ("openai", _set("answers/0/probability", 1.2)),
    ("openai", _set("answers/0/probability", "0.5")),
    ("openai", _set("answers/0/type", "score")),
    ("openai", _set("answers/1/score", 0.2)),
    ("openai", _set("answers/1/probabilities/0/probability", 0.9)),
    ("openai", _set("answers/1/probabilities/2", None)),
    ("openai", _set("answers/1/probabilities/0/value", 2)),
    ("openai", _set("answers/1/confidence", None)),
    ("sglang", _set("answers/C2", None)),
    ("sglang", _set("answers/C9", {"type": "yes_no"})),
    ("sglang", _set("answers/C1/label_mass", None)),
    ("sglang", _set("answers/C1/probabilities/yes", True)),
    ("sglang", _set("answers/C1/probabilities/no", 0.9)),
    ("sglang", _set("answers/C2/probabilities/1", None)),
    ("sglang", _set("answers/C2/score", 2)),
    ("systemone", _set("answers/C1/noul", None)),
    ("systemone", _set("answers/C1/type", "score")),
]


@pytest.mark.parametrize(("dialect", "damage"), BROKEN, ids=[f"{n}-{name}" for n, (name, _) in enumerate(BROKEN)])
async def test_a_reply_that_is_not_right_is_no_verdict(
    dialect: str, damage: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    async with serving(DecisionsServer(dialect, shares, damage=damage)) as server:
        judgement = await DecisionsJudge(model(server, dialect=dialect)).judge(ROLLOUT, TWO)
    assert [v.score for v in judgement.verdicts] == [None, None]
    failure = judgement.verdicts[0].failure
    assert failure is not None and failure.kind is FailureKind.SERVER and failure.retryable


async def test_long_rubrics_are_split_and_conditions_asked_with_them() -> None:
    def answer(text: str, count: int) -> list[float]:
        return [0.9, 0.1] if "task and the response" in text else [0.2, 0.8]

    criteria = [Criterion(id=f"c{n}", text=f"Says {n}.") for n in range(5)]
    criteria.append(Criterion(id="if", text="Cites.", condition="Sources are asked for."))
    async with serving(DecisionsServer("openai", answer)) as server:
        judge = DecisionsJudge(model(server), questions_per_call=3)
        judgement = await judge.judge(ROLLOUT, Rubric(criteria=tuple(criteria)))
    assert sorted(len(body["questions"]) for body in server.bodies) == [1, 3, 3]
    assert [v.status for v in judgement.verdicts] == [Status.OK] * 5 + [Status.NOT_APPLICABLE]
    assert judgement.usage.calls == 3


async def test_scales_that_the_api_cannot_rate() -> None:
    ten = Criterion(id="ten", text="How clear.", scale=NumericScale(low=1, high=10, integer=True))
    eleven = Criterion(id="eleven", text="How clear.", scale=NumericScale(low=0, high=10, integer=True))
    real = Criterion(id="real", text="How clear.", scale=NumericScale())
    async with serving(DecisionsServer("sglang")) as server:
        judgement = await DecisionsJudge(model(server)).judge(ROLLOUT, Rubric(criteria=(ten, eleven, real)))
    assert judgement.verdicts[0].raw == pytest.approx(5.5) and judgement.verdicts[0].score == pytest.approx(0.5)
    assert [v.failure.kind for v in judgement.verdicts if v.failure] == [FailureKind.REQUEST] * 2
    assert server.bodies[-1]["questions"][0]["levels"][-1] == "10"


async def test_too_many_questions_are_refused_before_they_are_sent() -> None:
    async with serving(DecisionsServer("systemone")) as server:
        judge = DecisionsJudge(model(server, dialect="systemone"), questions_per_call=200)
        many = Rubric(criteria=tuple(Criterion(id=f"c{n}", text="x") for n in range(65)))
        judgement = await judge.judge(ROLLOUT, many)
    failure = judgement.verdicts[0].failure
    assert failure is not None and "takes 64" in failure.message and not server.bodies


async def test_answers_are_cached_recorded_and_replayed(tmp_path: Path) -> None:
    async with serving(DecisionsServer("openai", shares)) as server:
        kept = connect(f"decisions:{server.url}", cache=tmp_path / "c.sqlite", record=tmp_path / "r.jsonl")
        first = await DecisionsJudge(kept).judge(ROLLOUT, TWO)
        again = await DecisionsJudge(kept).judge(ROLLOUT, TWO)
        other = await DecisionsJudge(kept, sample=1).judge(ROLLOUT, TWO)
        await kept.aclose()
    assert len(server.bodies) == 2 and first.verdicts == again.verdicts == other.verdicts
    replayed = await DecisionsJudge(connect(f"replay:{tmp_path / 'r.jsonl'}")).judge(ROLLOUT, TWO)
    assert [v.score for v in replayed.verdicts] == [v.score for v in first.verdicts]


async def test_what_does_not_answer_decisions() -> None:
    judgement = await DecisionsJudge(MockModel("yes")).judge(ROLLOUT, TWO)
    failure = judgement.verdicts[0].failure
    assert failure is not None and failure.kind is FailureKind.INCOMPLETE and "decisions:" in failure.message
    with pytest.raises(ConfigError, match="chats"):
        DecisionsJudge(connect("http://localhost:1/v1#m"))
    with pytest.raises(ConfigError, match="dialect"):
        connect("decisions:http://localhost:1/v1#m?dialect=vllm")
    with pytest.raises(ConfigError, match="questions_per_call"):
        DecisionsJudge(MockModel("yes"), questions_per_call=0)
    with pytest.raises(RequestError, match="has none"):
        await DecisionsModel("http://localhost:1/v1", "m").complete(ChatRequest((Message("user", "Hi"),)))


def test_names_copies_and_fingerprints() -> None:
    one = DecisionsModel("http://localhost:1/v1", "m")
    assert one.name == "decisions:http://localhost:1/v1#m"
    assert pickle.loads(pickle.dumps(one)).fingerprint == one.fingerprint
    others = [
        DecisionsModel("http://localhost:1/v1", "m", dialect="sglang"),
        DecisionsModel("http://localhost:1/v1", "m", with_mass=True),
        DecisionsModel("http://localhost:1/v1", "m", extra={"temperature": 2}),
        connect("http://localhost:1/v1#m"),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert DecisionsJudge(others[0]).fingerprint != DecisionsJudge(one).fingerprint
