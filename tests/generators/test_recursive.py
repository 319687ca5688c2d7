"""Recursive decomposition (RRD): what is split, what is rejected and why, when it ends, and the weights."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import MockModel
from rubricate.data.records import Preference
from rubricate.errors import ConfigError, ServerError
from rubricate.judges import ScriptedJudge
from rubricate.rubrics import Criterion, Polarity, Rubric
from rubricate.rubrics.generators.base import Generated, NoteKind
from rubricate.rubrics.generators.cached import PromptRubrics
from rubricate.rubrics.generators.recursive import RecursiveGenerator
from rubricate.rubrics.generators.recursive_checks import Check, read_checks, rejected
from rubricate.rubrics.generators.source import Source
from rubricate.types import Failure, FailureCause, FailureKind

POOL = ("alpha beta gamma", "alpha beta", "alpha delta", "delta gamma")
SOURCE = Source("Name Greek letters.", candidates=POOL, id="g")


def says(word: str) -> dict[str, str]:
    return {"title": word, "criterion": f"The response names {word}."}


def listed(*words: str) -> str:
    return json.dumps({"criteria": [says(word) for word in words]})


def meets(response: str, criterion: Criterion) -> bool:
    """A response meets `names x or y` if it has one of the words."""
    words = criterion.text.removesuffix(".").removeprefix("The response names ").split(" or ")
    return any(word in response.split() for word in words)


JUDGE = ScriptedJudge(meets)


def checks(first: int, *said: tuple[int, int, int]) -> str:
    entries = [
        {"new": first + at, "overlap": overlap, "closest": closest, "conflict": conflict}
        for at, (overlap, closest, conflict) in enumerate(said)
    ]
    return json.dumps({"checks": entries})


def scripted(start: str, splits: dict[str, str], check: Callable[[str], str]) -> MockModel:
    """Answers proposals with `start`, splits by the criterion that is split, checks by a function of the prompt."""

    def answer(request: ChatRequest) -> str:
        text = request.messages[-1].content
        if "The checks, as JSON" in text:
            return check(text)
        if "The two criteria, as JSON" in text:
            between = text[text.index("The criterion to be split") : text.index("A response that meets it")]
            return next(reply for part, reply in splits.items() if part in between)
        return start

    return MockModel(answer)


def clean(text: str) -> str:
    first = int(text[text.index("New criteria") :].split("\n")[2].split(".")[0])
    return checks(first, (0, 0, 0), (0, 0, 0))


NOTHING = {"names": listed("iota", "kappa")}


def made_of(generated: Generated) -> Rubric:
    assert generated.rubric is not None, generated.failure
    return generated.rubric


async def test_what_two_responses_meet_is_split_and_its_parts_replace_it() -> None:
    start = json.dumps({"criteria": [says("gamma"), says("alpha or beta"), says("zeta")]})
    model = scripted(
        start, {"alpha or beta": listed("alpha", "eta"), "gamma": listed("mu", "nu"), **NOTHING}, clean
    )
    made = await RecursiveGenerator(model, JUDGE, max_rounds=1, weights="kept").generate(SOURCE)
    texts = [one.text.split()[-1] for one in made_of(made).criteria]
    assert texts == ["mu.", "nu.", "alpha.", "eta.", "zeta."]  # zeta is met by nobody, and stays
    assert [one.weight for one in made_of(made).criteria] == [0.5, 0.5, 0.5, 0.5, 1.0]
    assert made.extra["recursive"] == {"rejects": 0, "rounds": 1, "stopped": "rounds"}
    shown = next(
        text
        for one in model.requests
        if POOL[0] in (text := one.messages[-1].content)
        and "split:" in text
        and "alpha or beta" in text.partition("A response")[0]
    )
    assert POOL[0] in shown and POOL[1] in shown and POOL[2] in shown and POOL[3] not in shown
    part = made_of(made).criteria[2]
    assert part.metadata["part_of"] == "The response names alpha or beta."
    assert part.provenance is not None and part.provenance.generator == "recursive"
    assert [piece.partition(":")[0] for piece in part.provenance.evidence] == ["criterion", *["response"] * 3]
    assert made.usage.calls == len(model.requests) + 4 * (3 + 2 + 2)  # each criterion judged once a response


async def test_parts_are_split_in_turn_until_no_two_responses_meet_one() -> None:
    splits = {
        "alpha or beta": listed("alpha", "beta"),
        "names alpha.": listed("xi", "pi"),
        "names beta.": listed("rho", "tau"),
    }
    model = scripted(listed("alpha or beta", "zeta", "theta"), splits, clean)
    made = await RecursiveGenerator(model, JUDGE, weights="even").generate(SOURCE)
    assert [one.text.split()[-1] for one in made_of(made).criteria] == [
        "xi.",
        "pi.",
        "rho.",
        "tau.",
        "zeta.",
        "theta.",
    ]
    assert made.extra["recursive"] == {"rejects": 0, "rounds": 2, "stopped": "nothing to split"}


async def test_overlap_conflict_and_misalignment_are_rejected_with_the_reason() -> None:
    def check(text: str) -> str:
        return checks(3, (70, 1, 0), (69, 1, 2)) if "names mu" in text else checks(3, (69, 1, 0), (0, 0, 0))

    source = Source("Name letters.", pairs=(Preference("", "beta strong", "alpha weak"),), candidates=POOL, id="g")
    start = listed("zeta", "gamma", "alpha or beta")
    splits = {"gamma": listed("mu", "nu"), "alpha or beta": listed("beta", "alpha"), **NOTHING}
    model = scripted(start, splits, check)
    made = await RecursiveGenerator(model, JUDGE, max_rounds=1, weights="even").generate(source)
    assert [one.text.split()[-1] for one in made_of(made).criteria] == ["zeta.", "gamma.", "beta."]
    assert [(note.kind, note.text.split()[-1], note.reason) for note in made.notes] == [
        (NoteKind.FILTERED, "mu.", "70% of its meaning is in another criterion: The response names zeta."),
        (NoteKind.FILTERED, "nu.", "it contradicts another criterion: The response names alpha or beta."),
        (NoteKind.FILTERED, "alpha.", "a weak response passes it and a strong one fails"),
    ]


async def test_it_ends_after_so_many_rejections() -> None:
    def check(text: str) -> str:
        first = int(text[text.index("New criteria") :].split("\n")[2].split(".")[0])
        return checks(first, (100, 1, 0), (100, 1, 0))

    model = scripted(listed("alpha", "beta", "gamma", "delta"), NOTHING, check)
    made = await RecursiveGenerator(model, JUDGE, most_rejects=4, weights="even").generate(SOURCE)
    assert len(made_of(made)) == 4  # whose parts are rejected stays
    assert made.extra["recursive"] == {"rejects": 4, "rounds": 1, "stopped": "rejects"}
    assert sum("The two criteria" in one.messages[-1].content for one in model.requests) == 2


def test_of_two_new_ones_that_overlap_the_later_goes_unless_the_earlier_is_rejected() -> None:
    twins = {5: Check(0.9, 6, 0), 6: Check(0.0, 0, 0)}
    assert rejected(twins, 4, 0.7) == {6: ("90% of its meaning is in", 5)}
    assert rejected({5: Check(0.0, 0, 2), 6: Check(0.9, 5, 0)}, 4, 0.7) == {5: ("it contradicts", 2)}
    assert rejected({5: Check(0.7, 4, 0), 6: Check(0.69, 4, 0)}, 4, 0.7) == {5: ("70% of its meaning is in", 4)}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (checks(2, (0, 0, 0)), "criterion 3 is missing"),
        (checks(1, (0, 0, 0), (0, 0, 0)), "no new criterion 1"),
        (checks(2, (101, 1, 0), (0, 0, 0)), "overlap is 101"),
        (checks(2, (80, 0, 0), (0, 0, 0)), "says with none"),
        (checks(2, (80, 2, 0), (0, 0, 0)), "compared with itself"),
        (checks(2, (80, 9, 0), (0, 0, 0)), "closest is 9"),
    ],
)
def test_checks_that_break_the_rules_are_refused(reply: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_checks(reply, existing=1, new=2)


async def test_a_split_into_three_is_asked_for_again_and_a_bad_check_rejects() -> None:
    replies = [
        listed("alpha", "zeta", "eta"),
        listed("mu", "nu", "xi"),
        listed("mu", "nu"),
        "no json",
        "none",
        "{}",
    ]
    made = await RecursiveGenerator(MockModel(replies), JUDGE, weights="even").generate(SOURCE)
    assert [one.text.split()[-1] for one in made_of(made).criteria] == ["alpha.", "zeta.", "eta."]
    assert made.counts()["reasked"] == 3
    assert "at most 2" in made.notes[0].reason
    assert [note.kind for note in made.notes[-2:]] == [NoteKind.FILTERED, NoteKind.FILTERED]
    assert "could not be checked" in made.notes[-1].reason


async def test_a_server_that_is_away_is_a_failure_and_no_half_made_rubric() -> None:
    made = await RecursiveGenerator(
        MockModel([listed("alpha", "beta", "eta"), ServerError("away")]), JUDGE
    ).generate(SOURCE)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.SERVER


async def test_whitened_weights_are_those_of_numpy() -> None:
    words = ("alpha", "beta", "gamma", "delta")
    model = scripted(listed(*words), NOTHING, clean)
    made = await RecursiveGenerator(model, JUDGE, max_rounds=0).generate(SOURCE)
    x = np.array([[float(word in response.split()) for word in words] for response in POOL])
    second = 0.9 * x.T @ x / 4 + 0.1 * np.trace(x.T @ x / 4) / 4 * np.eye(4) + 1e-4 * np.eye(4)
    u, s, _ = np.linalg.svd(second)
    raw = np.clip(u @ np.diag(s**-0.5) @ u.T @ np.ones(4), 0, None)
    assert np.allclose([one.weight for one in made_of(made).criteria], raw / raw.sum())


async def test_failed_judgements_meet_nothing_and_have_no_weight() -> None:
    def half(response: str, criterion: Criterion) -> bool | Failure:
        if "beta" in criterion.text and "gamma" not in response:
            return Failure(FailureKind.UNPARSABLE, FailureCause.RESPONSE, "no verdict")
        return meets(response, criterion)

    model = scripted(listed("zeta", "beta", "eta"), NOTHING, clean)
    made = await RecursiveGenerator(model, ScriptedJudge(half), min_met=3).generate(
        Source("Name letters.", candidates=POOL[:3], id="g")
    )
    assert [one.text.split()[-1] for one in made_of(made).criteria] == ["zeta.", "eta."]
    assert made.notes[-1].kind is NoteKind.FILTERED and "too few responses" in made.notes[-1].reason
    nothing = await RecursiveGenerator(model, ScriptedJudge(failure_rate=1.0)).generate(SOURCE)
    assert nothing.rubric is None and nothing.failure is not None and nothing.failure.kind is FailureKind.SERVER


async def test_a_judge_that_goes_away_on_the_way_fails_the_row() -> None:
    def later(response: str, criterion: Criterion) -> bool | Failure:
        away = Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "away", True)
        return away if "mu" in criterion.text else meets(response, criterion)

    model = scripted(listed("alpha", "zeta", "eta"), {"alpha": listed("mu", "nu")}, clean)
    made = await RecursiveGenerator(model, ScriptedJudge(later)).generate(SOURCE)
    assert made.rubric is None and made.failure is not None and made.failure.retryable
    assert made.usage.calls == 3 + 4 * 5


async def test_a_rubric_to_start_from_keeps_ids_polarity_and_origin() -> None:
    given = Rubric(
        criteria=(
            Criterion(id="first", text="The response names alpha.", weight=3.0),
            Criterion(id="bad", text="The response names delta.", weight=2.0, polarity=Polarity.PENALTY),
        )
    )
    model = scripted("", {"alpha": listed("mu", "nu"), "delta": listed("xi", "pi")}, clean)
    source = Source("Name letters.", candidates=POOL, rubrics=(given,), id="g")
    made = await RecursiveGenerator(model, JUDGE, max_rounds=0, weights="kept").generate(source)
    assert made_of(made).ids == ("first", "bad") and not model.requests
    split = await RecursiveGenerator(model, JUDGE, weights="kept").generate(source)
    assert [(one.polarity.value, one.weight) for one in made_of(split).criteria] == [
        *[("reward", 1.5)] * 2,
        *[("penalty", 1.0)] * 2,
    ]
    assert any("It describes a mistake" in one.messages[0].content for one in model.requests)


async def test_sources_and_options_that_cannot_be_are_errors() -> None:
    with pytest.raises(ConfigError, match="two responses or more"):
        await RecursiveGenerator(MockModel(""), JUDGE).generate(Source("Q", candidates=("one",)))
    with pytest.raises(ConfigError, match="overlap is 0"):
        RecursiveGenerator(MockModel(""), JUDGE, overlap=0.0)


def test_it_pickles_and_its_fingerprint_has_its_options() -> None:
    one = RecursiveGenerator(MockModel("x"), ScriptedJudge())
    assert pickle.loads(pickle.dumps(one)).fingerprint == one.fingerprint
    assert RecursiveGenerator(MockModel("x"), ScriptedJudge(), overlap=0.8).fingerprint != one.fingerprint


def test_sources_with_other_responses_or_rubrics_share_no_rubric() -> None:
    kept = PromptRubrics(RecursiveGenerator(scripted(listed("alpha"), NOTHING, clean), JUDGE))
    rubric = Rubric(criteria=(Criterion(id="a", text="The response names alpha."),))
    sources = [
        SOURCE,
        Source(SOURCE.prompt, candidates=POOL[::-1]),
        Source(SOURCE.prompt, ranked=POOL),
        Source(SOURCE.prompt, candidates=POOL, labels=(1.0, 2.0, 3.0, 4.0)),
        Source(SOURCE.prompt, candidates=POOL, rubrics=(rubric,)),
    ]
    assert len({kept.key(source) for source in sources}) == len(sources)
