"""Few-shot examples: what is shown, to whom, in which order, and from which files."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import all_met, one_token

from rubricate.chat import MockModel
from rubricate.data.records import Rollout, Turn
from rubricate.errors import ConfigError, FormatError
from rubricate.judges import CriterionJudge, LogprobJudge
from rubricate.judges.base import ModelJudge
from rubricate.judges.fewshot import Example, Examples
from rubricate.judges.repeated import Repeated
from rubricate.prompts import Prompt, load_prompt
from rubricate.rubrics import Criterion, Level, NumericScale, OrdinalScale

ROLLOUT = Rollout("Name three birds.", "Robin, wren and owl.")
ONE = Criterion(id="a", text="Names a bird.")
LEVELS = OrdinalScale(levels=(Level(label="poor", value=1), Level(label="good", value=2)))


def example(number: int, verdict: str = "met") -> Example:
    rollout = Rollout(f"Task {number}.", f"Answer {number}.")
    return Example(rollout, Criterion(id="c", text=f"Is number {number}."), verdict, f"It is {number}.")


POOL = [example(n) for n in range(8)] + [example(n, "unmet") for n in range(8, 12)]


async def system_of(judge: ModelJudge, rollout: Rollout = ROLLOUT) -> str:
    """The system message that the judge sends about a rollout."""
    model = judge.model
    assert isinstance(model, MockModel)
    await judge.judge_criteria(rollout, [ONE])
    return model.requests[-1].messages[0].content


def numbers(text: str) -> list[int]:
    return [n for n in range(12) if f"Is number {n}." in text]


async def test_examples_stand_in_the_system_message_as_the_judge_would_be_asked_and_answer() -> None:
    judge = CriterionJudge(MockModel(all_met), examples=Examples(POOL, k=1, seed=1))
    (shown,) = numbers(text := await system_of(judge))
    assert f"Answer {shown}.\n</response-" in text and f"C1: Is number {shown}." in text
    reply = next(line for line in text.splitlines() if line.startswith('{"verdicts": [{"id": "C1", "reason": "It'))
    verdict = "met" if shown < 8 else "unmet"
    assert json.loads(reply) == {
        "verdicts": [{"id": "C1", "reason": f"It is {shown}.", "verdict": verdict}],
        "final": {"C1": verdict},
    }


async def test_a_log_probability_judge_shows_one_word() -> None:
    answer = one_token(("yes", 0.9), ("no", 0.1))
    for prefill, before in (("Answer:", "Answer: "), ("", "")):
        judge = LogprobJudge(MockModel(answer), prefill=prefill, examples=Examples(POOL, k=4))
        text = await system_of(judge)
        for word in ("yes", "no"):
            assert text.count(f"Is it true of the response? Answer yes or no.\n{before}{word}\n") == 2


async def test_without_examples_nothing_changes() -> None:
    for name, judge in (
        ("criterion_judge", CriterionJudge(MockModel(all_met))),
        ("logprob_judge", LogprobJudge(MockModel(p_yes=0.9))),
    ):
        text = await system_of(judge)
        assert "xample" not in text.replace("for example", "").replace("are examples", "")
        assert text == load_prompt(name).render("system", {}).strip()


async def test_all_items_share_one_prefix_but_those_that_are_examples_themselves() -> None:
    judge = CriterionJudge(MockModel(all_met), examples=Examples(POOL, k=4))
    usual = await system_of(judge)
    assert await system_of(judge, Rollout("Another.", "Other.")) == usual
    own = numbers(usual)[0]
    item = POOL[own].rollout
    assert await system_of(judge, Rollout(item.prompt, "Another answer.")) == usual
    others = numbers(await system_of(judge, Rollout(item.prompt, f"<think>hm</think>\n{item.response}")))
    assert own not in others and len(others) == 4 and len(set(others) & set(numbers(usual))) == 3


async def test_an_item_that_is_the_only_example_sees_none() -> None:
    judge = CriterionJudge(MockModel(all_met), examples=Examples(POOL[:1], k=1))
    assert await system_of(judge, POOL[0].rollout) == load_prompt("criterion_judge").render("system", {}).strip()


@given(k=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_choice_is_balanced_and_goes_by_the_seed_alone(k: int, seed: int) -> None:
    examples = Examples(POOL, k=k, seed=seed)
    counts = Counter(POOL[index].verdict for index in examples.order[:k])
    assert abs(counts["met"] - counts["unmet"]) <= 1 or counts["unmet"] == 4
    assert Examples(POOL, k=k, seed=seed).order == examples.order
    assert sorted(examples.order) == list(range(12))


def test_another_seed_chooses_others() -> None:
    assert len({Examples(POOL, k=4, seed=seed).order[:4] for seed in range(10)}) > 5


def test_examples_are_part_of_the_fingerprint() -> None:
    model = MockModel("yes")
    judges = [
        CriterionJudge(model),
        CriterionJudge(model, examples=Examples(POOL)),
        CriterionJudge(model, examples=Examples(POOL, k=5)),
        CriterionJudge(model, examples=Examples(POOL, seed=1)),
        CriterionJudge(model, examples=Examples(POOL[:-1])),
        LogprobJudge(model),
        LogprobJudge(model, examples=Examples(POOL)),
    ]
    assert len({judge.fingerprint for judge in judges}) == len(judges)


async def test_judges_with_examples_pickle_and_repeat() -> None:
    judge = CriterionJudge(MockModel(all_met), examples=Examples(POOL), temperature=1.0)
    text = await system_of(judge)
    again = pickle.loads(pickle.dumps(judge))
    assert again.fingerprint == judge.fingerprint and await system_of(again) == text
    (verdict,) = (await Repeated(judge, n=2).judge_criteria(ROLLOUT, [ONE])).verdicts
    assert verdict.score == 1.0


async def test_scales_and_conditions_are_shown_in_their_own_words() -> None:
    pool = [
        Example(ROLLOUT, Criterion(id="o", text="Is clear.", scale=LEVELS), "poor"),
        Example(ROLLOUT, Criterion(id="n", text="Counts.", scale=NumericScale(low=1, high=5, integer=True)), 3.0),
        Example(ROLLOUT, Criterion(id="c", text="Cites.", condition="Sources are asked for."), "not_applicable"),
    ]
    text = await system_of(CriterionJudge(MockModel(all_met), examples=Examples(pool, k=3)), Rollout("P", "R"))
    for verdict in ('"poor"', "3", '"not_applicable"'):
        assert f'"final": {{"C1": {verdict}}}' in text


@pytest.mark.parametrize(
    ("criterion", "verdict"),
    [
        (ONE, "yes"),
        (ONE, 1.0),
        (ONE, "not_applicable"),
        (Criterion(id="o", text="Is clear.", scale=LEVELS), "fair"),
        (Criterion(id="n", text="Counts.", scale=NumericScale(low=1, high=5)), 6.0),
        (Criterion(id="n", text="Counts.", scale=NumericScale(low=1, high=5, integer=True)), 2.5),
    ],
)
def test_a_verdict_that_the_criterion_does_not_allow(criterion: Criterion, verdict: str | float) -> None:
    with pytest.raises(ConfigError, match="none that its criterion"):
        Example(ROLLOUT, criterion, verdict)


def test_what_cannot_be_shown_is_refused() -> None:
    model = MockModel("yes")
    with pytest.raises(ConfigError, match="13 examples are to be shown of 12"):
        Examples(POOL, k=13)
    with pytest.raises(ConfigError, match="shows no examples"):
        mine = Prompt("mine", "{% block system %}Judge.{% endblock %}")
        CriterionJudge(model, prompt=mine, examples=Examples(POOL))
    with pytest.raises(ConfigError, match="example 1 cannot be shown"):
        CriterionJudge(model, max_chars=3, examples=Examples(POOL))
    with pytest.raises(ConfigError, match="yes/no judge"):
        graded = Example(ROLLOUT, Criterion(id="o", text="Is clear.", scale=LEVELS), "poor")
        LogprobJudge(model, examples=Examples([graded], k=1))


def test_a_pool_in_a_file(tmp_path: Path) -> None:
    turns = (
        Turn("user", "Hi"),
        Turn("assistant", "", tool_calls=(("find", '{"q": 1}'),)),
        Turn("tool", "x", name="f"),
    )
    pool = [
        *POOL[:2],
        Example(
            Rollout(turns[:1], turns[1:], "Ref"), Criterion(id="example", text="Is clear.", scale=LEVELS), "good"
        ),
    ]
    Examples(pool, k=2).save(path := tmp_path / "examples.jsonl")
    again = Examples.load(path, k=2)
    assert again.fingerprint == Examples(pool, k=2).fingerprint
    assert again.pool[2].rollout == pool[2].rollout and again.pool[2].criterion == pool[2].criterion
    path.write_text('{"prompt": "P", "response": "R", "criterion": "Is so.", "verdict": "met"}\n', encoding="utf-8")
    assert Examples.load(path, k=1).pool[0].criterion.text == "Is so."


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"prompt": 3}, "prompt"),
        ({"response": None}, "response"),
        ({"reference": 3}, "reference"),
        ({"criterion": 3}, "criterion"),
        ({"criterion": {"text": "x", "weight": -1}}, "criterion.weight"),
        ({"verdict": "yes"}, "verdict"),
        ({"verdict": True}, "verdict"),
        ({"reason": 3}, "reason"),
        ({"label": "met"}, "label"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, change: dict[str, object], field: str) -> None:
    good: dict[str, object] = {"prompt": "P", "response": "R", "criterion": "Is so.", "verdict": "met"}
    path = tmp_path / "examples.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in (good, {**good, **change})), encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        Examples.load(path, k=1)
    assert (caught.value.line, caught.value.field) == (2, field)
