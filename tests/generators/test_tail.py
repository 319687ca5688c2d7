"""Chasing the Tail: the best unused pair, rounds, unknown verdicts that are no "no", fallbacks by name."""

from __future__ import annotations

import json
import pickle

import pytest
from filter_cases import OUTAGE, rubric
from hypothesis import given
from hypothesis import strategies as st

from rubricate.chat.mock import MockModel, Scripted
from rubricate.data.records import Preference
from rubricate.errors import BudgetError, ConfigError
from rubricate.judges.scripted import ScriptedJudge
from rubricate.narrow import as_array, as_object
from rubricate.rubrics import Criterion, Polarity
from rubricate.rubrics.formats import dump_rubrics
from rubricate.rubrics.generators.base import Generated, NoteKind
from rubricate.rubrics.generators.source import Source
from rubricate.rubrics.generators.tail import TailGenerator, tail_fallback
from rubricate.rubrics.generators.tail_scoring import weighted_score
from rubricate.types import Failure, FailureKind, Judgement, Verdict

NAMES = ("alpha", "beta", "gamma", "delta", "omega", "sigma")


def item(number: int, name: str, weight: object = 1) -> dict[str, object]:
    """A criterion that a response meets by having the word."""
    return {"criterion": f"The response tells about {name} in version {number}.", "weight": weight}


def answer(number: int, *names: str) -> str:
    return json.dumps({"rubrics": [item(number, name) for name in names or NAMES[:4]]})


def has_word(response: str, criterion: Criterion) -> bool:
    return criterion.text.split(" about ")[1].split()[0] in response


JUDGE = ScriptedJudge(has_word)
POOL = ("alpha", "alpha beta", "alpha beta gamma", "alpha beta gamma delta", "beta gamma", "none")
SOURCE = Source("Tell me about Greek.", candidates=POOL, id="greek")


def shown(model: MockModel, call: int) -> list[str]:
    """The two responses in a request."""
    text = model.requests[call].messages[-1].content
    return [text.split(f"<response_{n}-")[1].split("\n")[1] for n in (1, 2)]


def rounds(made: Generated) -> list[dict[str, object]]:
    told = as_object(made.extra["tail"])
    assert told is not None
    return [dict(as_object(one) or {}) for one in as_array(told["rounds"]) or ()]


async def test_each_round_shows_the_two_best_that_were_not_used_and_rewrites_the_rubric() -> None:
    model = MockModel([answer(n) for n in range(5)])
    made = await TailGenerator(model, JUDGE, quote_words=None).generate(SOURCE)
    assert "alpha" not in model.requests[0].text()  # the initial rubric comes from the prompt alone
    assert shown(model, 1) == ["alpha beta gamma delta", "alpha beta gamma"]
    assert "1. (1) The response tells about alpha in version 0." in model.requests[1].messages[-1].content
    assert set(shown(model, 2)) == {"alpha beta", "beta gamma"}  # both meet two of four
    assert shown(model, 3) == ["alpha", "none"]
    assert len(model.requests) == 4  # three pairs are six responses: nothing is left for a fourth round
    assert made.rubric is not None and made.rubric.criteria[0].text.endswith("version 3.")
    assert [one["pair"] for one in rounds(made)][0] == ["greek#3", "greek#2"]
    assert [one["scores"] for one in rounds(made)] == [[1.0, 0.75], [0.5, 0.5], [None, None]]
    assert made.usage.calls == 4 + 6 * 4 + 4 * 4  # the last two need no scores
    provenance = made.rubric.criteria[0].provenance
    assert provenance is not None and provenance.generator == "tail" and len(provenance.evidence) == 6
    (row,) = dump_rubrics([made.rubric], "tail", lossy=True)
    assert row["number_of_criteria"] == 4 and row["total_weight"] == 4


async def test_the_number_of_rounds_and_the_pool_are_options() -> None:
    model = MockModel([answer(n) for n in range(3)])
    made = await TailGenerator(model, JUDGE, rounds=1, pool=3, quote_words=None).generate(SOURCE)
    assert len(rounds(made)) == 1 and shown(model, 1) == ["alpha beta gamma", "alpha beta"]
    assert made.usage.calls == 2 + 3 * 4
    twins = Source("q?", candidates=("same", "same", "other"))
    only = await TailGenerator(MockModel([answer(0), answer(1)]), JUDGE).generate(twins)
    assert [one["pair"] for one in rounds(only)] == [["#0", "#1"]]


async def test_equal_scores_are_told_apart_by_the_seed_and_the_same_each_time() -> None:
    pool = tuple(f"alpha number {n}" for n in range(8))
    source = Source("q?", candidates=pool)
    pairs: list[object] = []
    for seed in (0, 0, *range(1, 8)):
        model = MockModel([answer(0), answer(1)])
        made = await TailGenerator(model, JUDGE, rounds=1, tie_seed=seed).generate(source)
        pairs.append(rounds(made)[0]["pair"])
    assert pairs[0] == pairs[1] and len({str(pair) for pair in pairs}) > 1


async def test_an_unknown_verdict_is_no_no() -> None:
    """gamma fails for the best response: what is known of it is all met. Taken for "no" it would come third."""
    pool = ("alpha beta gamma delta x", "alpha beta gamma delta", "alpha beta gamma", "none")

    def judged(response: str, criterion: Criterion) -> bool | Failure:
        return OUTAGE if "x" in response.split() and "gamma" in criterion.text else has_word(response, criterion)

    model = MockModel([answer(0), answer(1)])
    source = Source("q?", candidates=pool)
    made = await TailGenerator(model, ScriptedJudge(judged), rounds=1, quote_words=None).generate(source)
    assert set(shown(model, 1)) == set(pool[:2]) and rounds(made)[0]["scores"] == [1.0, 1.0]


async def test_a_response_of_which_too_little_is_known_is_not_chosen() -> None:
    pool = ("alpha beta gamma delta x", "alpha beta", "alpha", "none")

    def judged(response: str, criterion: Criterion) -> bool | Failure:
        return (
            OUTAGE if "x" in response.split() and "alpha" not in criterion.text else has_word(response, criterion)
        )

    model = MockModel([answer(0), answer(1)])
    source = Source("q?", candidates=pool)
    made = await TailGenerator(model, ScriptedJudge(judged), rounds=1).generate(source)
    assert shown(model, 1) == ["alpha beta", "alpha"]
    assert [note.reason for note in made.notes] == ["1 of 4 responses have no score: verdicts failed"]


async def test_a_judge_that_is_away_leaves_no_rubric_that_passes_for_refined() -> None:
    away = ScriptedJudge(failure_rate=1.0)
    for least in (1, 0):
        made = await TailGenerator(MockModel([answer(0)]), away, least_rounds=least).generate(SOURCE)
        assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.SERVER
    odd = ScriptedJudge(failure_rate=1.0, failure_kind=FailureKind.UNPARSABLE)
    made = await TailGenerator(MockModel([answer(0)]), odd).generate(SOURCE)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.UNPARSABLE
    asked_for = await TailGenerator(MockModel([answer(0)]), odd, least_rounds=0).generate(SOURCE)
    assert asked_for.rubric is not None and rounds(asked_for) == []
    assert [note.kind for note in asked_for.notes] == [NoteKind.FILTERED, NoteKind.FILTERED]


async def test_a_budget_that_runs_out_between_rounds_leaves_no_rubric_that_is_half_refined() -> None:
    spent = Scripted(error=BudgetError("the budget is used up"))
    model = MockModel([answer(0), answer(1), spent])
    made = await TailGenerator(model, JUDGE, quote_words=None).generate(SOURCE)
    assert made.rubric is None and made.failure is not None and made.failure.kind is FailureKind.BUDGET
    assert len(model.requests) == 3 and made.usage.calls == 2 + 6 * 4 + 4 * 4


async def test_single_mode_takes_two_responses_and_no_judge() -> None:
    pair = Source("q?", pairs=(Preference("q?", "one", "two"),), id="s")
    model = MockModel([answer(0), answer(1)])
    made = await TailGenerator(model, mode="single").generate(pair)
    assert shown(model, 1) == ["one", "two"] and made.usage.calls == 2
    assert made.rubric is not None and made.rubric.criteria[0].provenance is not None
    assert made.rubric.criteria[0].provenance.generator == "tail-single"
    with pytest.raises(ConfigError, match="no judge to choose two"):
        await TailGenerator(model, mode="single").generate(SOURCE)
    with pytest.raises(ConfigError, match="two responses that differ"):
        await TailGenerator(model, mode="single").generate(Source("q?", candidates=("a", "a")))
    with pytest.raises(ConfigError, match="needs a judge"):
        TailGenerator(model)


async def test_it_can_start_from_a_rubric_and_penalties_are_refused() -> None:
    given_rubric = rubric(*(Criterion(id=name, text=f"The response tells about {name}.") for name in NAMES[:4]))
    source = Source("q?", candidates=POOL, rubrics=(given_rubric,))
    model = MockModel([answer(1)])
    made = await TailGenerator(model, JUDGE, rounds=1, quote_words=None).generate(source)
    assert made.rubric is not None and len(model.requests) == 1
    penalty = rubric(Criterion(id="p", text="The response insults.", polarity=Polarity.PENALTY))
    with pytest.raises(ConfigError, match="penalties"):
        await TailGenerator(model, JUDGE).generate(Source("q?", candidates=POOL, rubrics=(penalty,)))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (item(9, "omega", 4), "its weight is 4; it must be 1, 2 or 3"),
        (item(9, "omega", 1.5), "its weight is 1.5"),
        (item(9, "omega", True), "its weight is True"),
        ({"criterion": "The response tells about omega."}, "its weight is missing"),
        ({"weight": 1}, "no object with criterion and weight"),
        ({"criterion": "The response beats the other response.", "weight": 1}, "points at a response"),
        ({"criterion": "The response is like the first, see criterion 2.", "weight": 1}, "other criteria"),
    ],
)
async def test_a_bad_criterion_is_asked_for_again_at_another_temperature(bad: object, reason: str) -> None:
    mixed = json.dumps({"rubrics": [*(item(1, name) for name in NAMES[:4]), bad]})
    model = MockModel([answer(0), mixed, json.dumps({"rubrics": [bad]}), json.dumps({"rubrics": [bad]})])
    pair = Source("q?", candidates=("one", "two"))
    made = await TailGenerator(model, mode="single").generate(pair)
    assert made.rubric is not None and len(made.rubric) == 4
    assert reason in model.requests[2].messages[-1].content and reason in made.notes[-1].reason
    assert [request.temperature for request in model.requests] == [0.0, 0.0, 1.0, 1.0]


async def test_a_round_that_brings_nothing_leaves_the_rubric_as_it_was() -> None:
    model = MockModel([answer(0), "no", "no", "no", answer(2)])
    made = await TailGenerator(model, JUDGE, rounds=2, quote_words=None).generate(SOURCE)
    assert [one["rewritten"] for one in rounds(made)] == [False, True]
    assert "version 0" in model.requests[4].messages[-1].content
    assert any("round 1: the rubric stays as it was" in note.reason for note in made.notes)


async def test_the_fallback_comes_only_by_name() -> None:
    pair = Source("q?", candidates=("one", "two"))
    none = await TailGenerator(MockModel("no"), mode="single").generate(pair)
    assert none.rubric is None and none.failure is not None and none.failure.kind is FailureKind.UNPARSABLE
    model = MockModel(["no", "no", "no", answer(1)])
    made = await TailGenerator(model, mode="single", fallback="generic").generate(pair)
    assert made.rubric is not None and made.rubric.criteria[0].text.endswith("version 1.")
    assert tail_fallback().criteria[0].text in model.requests[3].messages[-1].content
    assert any("fallback" in note.reason for note in made.notes)
    assert len(tail_fallback()) == 10 and {one.weight for one in tail_fallback().criteria} == {1.0, 2.0, 3.0}


async def test_verified_rounds_keep_only_rubrics_that_separate_the_pair() -> None:
    pair = Source("q?", candidates=("alpha beta", "alpha gamma"))
    alike, apart = answer(1, "alpha", "delta", "omega", "sigma"), answer(1, "alpha", "beta", "omega", "sigma")
    made = await TailGenerator(MockModel([answer(0), apart]), JUDGE, mode="single", verify=True).generate(pair)
    assert made.rubric is not None and made.usage.calls == 2 + 2 * 4
    made = await TailGenerator(MockModel([answer(0), alike]), JUDGE, mode="single", verify=True).generate(pair)
    assert made.rubric is None and made.failure is not None
    assert made.failure.message == "0 of 1 rounds changed the rubric, 1 are needed"


def test_a_generator_pickles_and_its_fingerprint_has_judge_and_options() -> None:
    made = TailGenerator(MockModel("x"), JUDGE)
    assert pickle.loads(pickle.dumps(made)).fingerprint == made.fingerprint
    others = [TailGenerator(MockModel("x"), JUDGE, rounds=2), TailGenerator(MockModel("x"), ScriptedJudge(seed=1))]
    assert len({made.fingerprint, *(one.fingerprint for one in others)}) == 3
    for options in ({"rounds": 0}, {"pool": 1}, {"min_coverage": 0.0}, {"least_rounds": 5}, {"fallback": "ten"}):
        with pytest.raises(ConfigError):
            TailGenerator(MockModel("x"), JUDGE, **options)  # pyright: ignore[reportArgumentType] - wrong on purpose


# Scores


verdicts = st.sampled_from([0.0, 0.5, 1.0, None, "absent", "missing"])


@given(st.lists(st.tuples(st.integers(1, 3), verdicts, st.booleans()), min_size=1, max_size=6))
def test_the_score_is_the_weighted_mean_of_what_is_known(rows: list[tuple[int, float | str | None, bool]]) -> None:
    criteria = [
        Criterion(
            id=f"c{n}", text=f"The c{n}.", weight=weight, polarity=Polarity.PENALTY if bad else Polarity.REWARD
        )
        for n, (weight, _, bad) in enumerate(rows)
    ]
    said: list[Verdict] = []
    for n, (_, verdict, _) in enumerate(rows):
        if verdict is None:
            said.append(Verdict.failed(f"c{n}", OUTAGE))
        elif verdict == "absent":
            said.append(Verdict.not_applicable(f"c{n}"))
        elif isinstance(verdict, float):
            said.append(Verdict(f"c{n}", verdict))
    found = weighted_score(rubric(*criteria), Judgement(tuple(reversed(said))))
    known = [(w, v, bad) for w, v, bad in rows if isinstance(v, float)]
    rewards = sum(w for w, _, bad in known if not bad)
    applicable = sum(w for w, v, _ in rows if v != "absent")
    assert found.coverage == pytest.approx(sum(w for w, _, _ in known) / applicable if applicable else 0.0)
    if rewards == 0:
        assert found.score is None
    else:
        assert found.score == pytest.approx(sum(-w * v if bad else w * v for w, v, bad in known) / rewards)
