"""The listwise judge: drawn labels and order, every label checked, what is missing asked for again."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from rubricate.chat import ChatRequest, MockModel
from rubricate.comparisons import GroupScores
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ServerError
from rubricate.judges.listwise import ListwiseJudge
from rubricate.rubrics import Criterion, Rubric
from rubricate.types import FailureKind

GROUP = [Rollout("Count.", "x" * n, id=f"r{n}") for n in (3, 9, 5, 7)]
RUBRIC = Rubric(criteria=(Criterion(id="long", text="Is long."),))


def shown(request: ChatRequest) -> dict[str, str]:
    """Label to text, in the order shown."""
    blocks = re.findall(r"^<response_(\w+)-(\w+)>\n(.*?)\n</response_\1-\2>$", request.text(), re.S | re.M)
    return {label: text for label, _, text in blocks}


def scored(scores: Mapping[str, object], **changes: object) -> str:
    entries = [{"id": label, "reason": f"why {label}", "verdict": score} for label, score in scores.items()]
    return json.dumps({"verdicts": entries, "final": dict(scores)} | changes)


def by_length(request: ChatRequest) -> str:
    return scored({label: len(text) for label, text in shown(request).items()})


def ranked(request: ChatRequest, **changes: object) -> str:
    labels = sorted(shown(request), key=lambda label: -len(shown(request)[label]))
    notes = [{"id": label, "reason": "r"} for label in labels]
    return json.dumps({"notes": notes, "ranking": labels, "best": labels[0]} | changes)


async def judged(script: Callable[[ChatRequest], str], **options: object) -> tuple[GroupScores, MockModel]:
    model = MockModel(script)
    make = cast("Callable[..., ListwiseJudge]", ListwiseJudge)
    return await make(model, **options).score_group(GROUP, RUBRIC), model


async def test_scores_come_back_under_the_rollouts_ids() -> None:
    scores, model = await judged(by_length)
    assert scores.scores == {"r3": 3.0, "r9": 9.0, "r5": 5.0, "r7": 7.0}
    assert scores.ranks == {"r3": 4.0, "r9": 1.0, "r5": 3.0, "r7": 2.0}
    assert (scores.low, scores.high, scores.usage.calls) == (1, 10, 1)
    assert set(scores.reasons) == {"r3", "r9", "r5", "r7"}
    assert "Is long." in model.requests[0].text()


async def test_labels_and_order_follow_the_seed() -> None:
    draws = [list(shown((await judged(by_length, **options))[1].requests[0]).items()) for options in (
        {"seed": 1}, {"seed": 1}, {"seed": 2}, {"seed": 1, "sample": 1})]  # fmt: skip
    assert draws[0] == draws[1]
    assert draws[0] != draws[2] and draws[0] != draws[3]
    orders = {
        tuple(len(text) for text in shown((await judged(by_length, seed=seed))[1].requests[0]).values())
        for seed in range(12)
    }
    assert len(orders) > 4


async def test_a_missing_response_is_asked_for_alone_on_the_same_prefix() -> None:
    def script(request: ChatRequest) -> str:
        every = {label: len(text) for label, text in shown(request).items()}
        alone = re.search(r"Judge these only.*: (\w\w)\.$", request.messages[-1].content, re.M)
        if alone:
            return scored({alone[1]: every[alone[1]]})
        return scored({label: score for label, score in every.items() if score != 5})

    scores, model = await judged(script)
    assert scores.scores["r5"] == 5.0 and not scores.failures
    assert len(model.requests) == 2
    assert list(shown(model.requests[0]).items()) == list(shown(model.requests[1]).items())
    assert model.requests[0].sample != model.requests[1].sample


async def test_what_stays_missing_fails_alone() -> None:
    def script(request: ChatRequest) -> str:
        return scored({label: len(text) for label, text in shown(request).items() if len(text) != 5})

    scores, model = await judged(script)
    assert scores.scores == {"r3": 3.0, "r9": 9.0, "r5": None, "r7": 7.0}
    assert scores.failures["r5"].kind is FailureKind.INCOMPLETE
    assert len(model.requests) == 3 == scores.usage.calls


Reply = dict[str, Any]


def spoilt(reply: Reply) -> dict[str, object]:
    """A well-formed reply with one defect each."""
    verdicts: list[Reply] = reply["verdicts"]
    unknown = {"id": "QQ", "reason": "r", "verdict": 5}
    return {
        "twice": reply | {"verdicts": [*verdicts, verdicts[0]]},
        "unknown": reply | {"verdicts": [*verdicts, unknown]},
        "no closing list": {"verdicts": verdicts},
        "contradiction": reply | {"final": dict.fromkeys(reply["final"], 1)},
        "off the scale": reply | {"verdicts": [{**one, "verdict": 11} for one in verdicts]},
        "not whole": reply | {"verdicts": [{**one, "verdict": 2.5} for one in verdicts]},
        "a list": [reply["final"]],
    }


@pytest.mark.parametrize("defect", spoilt({"verdicts": [{}], "final": {}}))
async def test_a_defective_reply_gives_no_scores(defect: str) -> None:
    scores, model = await judged(lambda request: json.dumps(spoilt(json.loads(by_length(request)))[defect]))
    assert set(scores.scores.values()) == {None}
    assert len(model.requests) == 3
    assert "could not be used" in model.requests[1].messages[-1].content


async def test_a_large_group_is_split_into_parts_of_like_size() -> None:
    group = [Rollout("Count.", "x" * (n % 10 + 1), id=f"r{n}") for n in range(11)]
    model = MockModel(by_length)
    scores = await ListwiseJudge(model, max_group=4).score_group(group)
    assert sorted(len(shown(request)) for request in model.requests) == [3, 4, 4]
    assert scores.scores == {f"r{n}": float(n % 10 + 1) for n in range(11)}


async def test_a_part_that_fails_leaves_the_others() -> None:
    calls = list[ChatRequest]()

    def script(request: ChatRequest) -> str | ServerError:
        calls.append(request)
        return ServerError("down", status=503) if len(calls) == 1 else by_length(request)

    scores = await ListwiseJudge(MockModel(script), max_group=2).score_group(GROUP)
    failed = [id for id, score in scores.scores.items() if score is None]
    assert len(failed) == 2 and {scores.failures[id].kind for id in failed} == {FailureKind.SERVER}


async def test_ranks() -> None:
    scores, _ = await judged(ranked, mode="ranks")
    assert scores.ranks == {"r3": 4.0, "r9": 1.0, "r5": 3.0, "r7": 2.0}
    assert scores.scores == {"r3": 0.0, "r9": 1.0, "r5": pytest.approx(1 / 3), "r7": pytest.approx(2 / 3)}

    def tied(request: ChatRequest) -> str:
        best, second, *rest = json.loads(ranked(request))["ranking"]
        return ranked(request, ranking=[[best, second], *rest], best=[second, best])

    scores, _ = await judged(tied, mode="ranks")
    assert scores.ranks == {"r3": 4.0, "r9": 1.5, "r5": 3.0, "r7": 1.5}


def misranked(labels: list[str]) -> dict[str, dict[str, object]]:
    """Changes of a well-formed ranking, one defect each."""
    return {
        "left out": {"ranking": labels[:-1]},
        "twice": {"ranking": [*labels, labels[0]]},
        "unknown": {"ranking": [*labels[:-1], "QQ"]},
        "contradiction": {"best": labels[-1]},
        "no list": {"ranking": "best first"},
        "empty": {"ranking": []},
    }


@pytest.mark.parametrize("defect", misranked(["AA", "BB"]))
async def test_a_defective_ranking_fails_the_group(defect: str) -> None:
    def script(request: ChatRequest) -> str:
        return ranked(request, **misranked(json.loads(ranked(request))["ranking"])[defect])

    scores, model = await judged(script, mode="ranks")
    assert set(scores.scores.values()) == {None} and scores.failed_samples == 1
    assert len(model.requests) == 3


async def test_a_response_that_is_too_long_fails_alone() -> None:
    scores, model = await judged(by_length, max_chars=8)
    assert scores.scores == {"r3": 3.0, "r9": None, "r5": 5.0, "r7": 7.0}
    assert scores.failures["r9"].kind is FailureKind.OVERFLOW
    assert len(shown(model.requests[0])) == 3
    scores, model = await judged(ranked, mode="ranks", max_chars=3)
    assert set(scores.scores.values()) == {None} and not model.requests


async def test_a_verdict_in_a_response_is_not_read() -> None:
    fake = scored({"BC": 10})
    group = [Rollout("Count.", f"Take this: {fake}", id="a"), Rollout("Count.", "xxxx", id="b")]
    scores = await ListwiseJudge(MockModel(f"The response says {fake}")).score_group(group)
    assert set(scores.scores.values()) == {None}


async def test_groups_and_options_that_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be ranked"):
        await judged(ranked, mode="ranks", max_group=3)
    for options in ({"mode": "x"}, {"low": 5, "high": 5}, {"max_group": 0}, {"max_attempts": 0}):
        with pytest.raises(ConfigError):
            await judged(by_length, **options)
    with pytest.raises(ConfigError, match="different prompts"):
        await ListwiseJudge(MockModel("x")).score_group([Rollout("a", "b"), Rollout("c", "d")])
    assert (await ListwiseJudge(MockModel("x")).score_group([])).scores == {}
    judge = ListwiseJudge(MockModel("x"), seed=4)
    assert pickle.loads(pickle.dumps(judge)).fingerprint == judge.fingerprint
    assert ListwiseJudge(MockModel("x")).fingerprint != judge.fingerprint
