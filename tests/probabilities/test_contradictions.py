"""Probabilities that do not tell, contradict each other or the answer: no judge makes a number of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import one_token

from rubricate.chat import ChatRequest, Completion, Finish, MockModel, TokenLogprob
from rubricate.data.records import Rollout
from rubricate.judges.arrow import ArrowJudge
from rubricate.judges.base import CriteriaJudge
from rubricate.judges.geval import ExpectationJudge, HolisticExpectationJudge
from rubricate.judges.logprob import LogprobJudge
from rubricate.judges.mass import label_mass
from rubricate.judges.pairwise_cheap import LogprobPairJudge
from rubricate.judges.slots import SlotsJudge
from rubricate.judges.spelling import says_alone, spells
from rubricate.rubrics import Criterion, Level, NumericScale, OrdinalScale
from rubricate.types import FailureKind, Verdict

ROLLOUT = Rollout("Name a bird.", "Robin.")
BINARY = Criterion(id="a", text="Names a bird.")
TEN = Criterion(id="a", text="How clear.", scale=NumericScale(low=0, high=10, integer=True))
LETTERS = Criterion(
    id="a",
    text="How clear.",
    scale=OrdinalScale(levels=(Level(label="poor", value=0), Level(label="good", value=1))),
)


def token(*top: tuple[str, float], own: float | None = None) -> TokenLogprob:
    """A token with alternatives by probability, the generated one first; `own` is what it says of itself."""
    made = tuple((text, math.log(p)) for text, p in top)
    return TokenLogprob(made[0][0], made[0][1] if own is None else math.log(own), made)


def answer(text: str, *tokens: TokenLogprob, finish: Finish = Finish.STOP) -> Completion:
    return Completion(text, finish, logprobs=tokens)


def sure(*pieces: str, finish: Finish = Finish.STOP) -> Completion:
    """An answer of certain tokens."""
    return answer("".join(pieces), *(token((piece, 1.0)) for piece in pieces), finish=finish)


async def verdict(judge: CriteriaJudge, criterion: Criterion) -> Verdict:
    return (await judge.judge_criteria(ROLLOUT, [criterion])).verdicts[0]


async def kind(judge: CriteriaJudge, criterion: Criterion) -> tuple[FailureKind | None, str]:
    """Why a verdict failed: its kind, and the message."""
    said = await verdict(judge, criterion)
    assert (said.score is None) == (said.failure is not None)
    return (None, "") if said.failure is None else (said.failure.kind, said.failure.message)


def prompt_with(slot: TokenLogprob) -> MockModel:
    def prompt(request: ChatRequest) -> Completion:
        before, _, behind = request.text().rpartition("-")
        tokens = (TokenLogprob(before, -1.0), slot, TokenLogprob(behind, -1.0))
        return Completion("y", prompt_logprobs=tokens)

    return MockModel(prompt)


@pytest.mark.parametrize("top", [(("yes", 0.55),), ()])
async def test_what_is_not_listed_may_all_be_the_other_answer(top: Sequence[tuple[str, float]]) -> None:
    yes = TokenLogprob("yes", math.log(0.55), tuple((text, math.log(p)) for text, p in top))
    found = [await kind(LogprobJudge(MockModel(answer("yes", yes)), max_outside=1.0), BINARY)]
    found.append(await kind(SlotsJudge(prompt_with(token(("-", 0.001), ("yes", 0.55))), max_outside=1.0), BINARY))
    reply = answer(
        '{"criteria_met_1": true}', token(('{"criteria_met_1":', 1.0)), token((" true", 0.55)), token(("}", 1.0))
    )
    found.append(await kind(ArrowJudge(MockModel(reply), text_verdicts=True), BINARY))
    seven = replace(yes, token="7", top=tuple(("7", value) for _, value in yes.top))
    found.append(await kind(ExpectationJudge(MockModel(answer("7", seven))), TEN))
    letter = replace(yes, token="A", top=tuple(("A", value) for _, value in yes.top))
    compared = await LogprobPairJudge(MockModel(answer("A", letter))).compare(
        ROLLOUT, Rollout("Name a bird.", "Wren.")
    )
    assert compared.failure is not None and compared.probability is None
    found.append((compared.failure.kind, compared.failure.message))
    for what, message in found:
        assert (
            what is FailureKind.LOW_MASS
            and "top_logprobs" in message
            and ("45.0%" in message or "44.9%" in message)
        )


async def test_a_little_that_is_not_listed_is_no_failure() -> None:
    for p, outcome in ((0.96, None), (0.95, None), (0.94, FailureKind.LOW_MASS)):
        assert (await kind(LogprobJudge(MockModel(one_token(("yes", p)))), BINARY))[0] is outcome
        assert (await kind(ExpectationJudge(MockModel(one_token(("7", p)))), TEN))[0] is outcome
    both = await verdict(LogprobJudge(MockModel(one_token(("yes", 0.5), ("no", 0.1)))), BINARY)
    assert both.score == pytest.approx(0.5 / 0.6)  # what is not listed is less likely than either
    condition = TEN.model_copy(update={"condition": "Birds are asked for."})
    asked = MockModel(
        lambda request: one_token(("yes", 0.6), ("no", 0.3)) if "Birds" in request.text() else sure("7")
    )
    assert (await verdict(ExpectationJudge(asked), condition)).raw == 7.0


async def test_a_level_of_which_its_first_digit_alone_is_told() -> None:
    split = answer("9", token(("9", 0.8), ("1", 0.2)))
    scale = Criterion(id="a", text="How clear.", scale=NumericScale(low=1, high=10, integer=True))
    what, message = await kind(ExpectationJudge(MockModel(split)), scale)
    assert what is FailureKind.LOW_MASS and "1, 10" in message and "20.0%" in message
    nine = Criterion(id="a", text="How clear.", scale=NumericScale(low=1, high=9, integer=True))
    assert (await verdict(ExpectationJudge(MockModel(split)), nine)).raw == pytest.approx(0.8 * 9 + 0.2)


@pytest.mark.parametrize(
    "odd",
    [
        token(("yes", 0.9), ("no", 0.6)),
        token(("yes", 1.0), ("Yes", 1.0), ("no", 1.0)),
        token(("yes", 0.9), ("no", 0.1), own=0.1),
        TokenLogprob("yes", -9999.0, (("yes", math.log(0.9)), ("no", math.log(0.1)))),
        TokenLogprob("maybe", math.log(0.9), (("yes", math.log(0.9)), ("no", math.log(0.1)))),
    ],
)
async def test_probabilities_that_contradict_each_other(odd: TokenLogprob) -> None:
    model = MockModel(answer(odd.token, odd))
    assert (await kind(LogprobJudge(model, max_outside=1.0), BINARY))[0] is FailureKind.NO_LOGPROBS
    compared = await LogprobPairJudge(model).compare(ROLLOUT, Rollout("Name a bird.", "Wren."))
    assert compared.failure is not None and compared.failure.kind is FailureKind.NO_LOGPROBS


async def test_a_slot_whose_probabilities_add_up_to_more_than_one() -> None:
    slot = token(("-", 0.001), ("yes", 0.9), ("no", 0.6))
    assert (await kind(SlotsJudge(prompt_with(slot)), BINARY))[0] is FailureKind.NO_LOGPROBS


async def test_rounding_and_tokens_that_read_alike_contradict_nothing() -> None:
    alike = token(("yes", 0.3), ("yes", 0.2), ("no", 0.5), own=0.2)
    rounded = token(("yes", 0.7), ("no", 0.305), own=0.702)
    for listed, score in ((alike, 0.5), (rounded, 0.7 / 1.005)):
        assert (await verdict(LogprobJudge(MockModel(answer("yes", listed))), BINARY)).score == pytest.approx(score)


@pytest.mark.parametrize("text", ["No", "banana", "", "yesterday", "no, yes"])
async def test_tokens_of_another_answer(text: str) -> None:
    reply = answer(text, token(("yes", 0.9), ("no", 0.1)))
    assert (await kind(LogprobJudge(MockModel(reply)), BINARY))[0] is FailureKind.NO_LOGPROBS
    levels = answer(text.replace("yes", "3"), token(("7", 0.9), ("3", 0.1)))
    assert (await kind(ExpectationJudge(MockModel(levels)), TEN))[0] is FailureKind.NO_LOGPROBS
    letter = answer(text, token(("A", 0.9), ("B", 0.1)))
    compared = await LogprobPairJudge(MockModel(letter)).compare(ROLLOUT, Rollout("Name a bird.", "Wren."))
    assert compared.failure is not None and compared.failure.kind is FailureKind.NO_LOGPROBS


async def test_reasoning_among_the_tokens_and_tokens_that_are_missing() -> None:
    thought = replace(sure("Yes", " it", " is", "</think>", "no"), text="no", reasoning="Yes it is")
    what, message = await kind(LogprobJudge(MockModel(thought)), BINARY)
    assert what is FailureKind.NO_LOGPROBS and "reasons first" in message
    for finish in (Finish.STOP, Finish.LENGTH):
        lost = answer("10", token(("1", 1.0)), finish=finish)
        assert (await kind(ExpectationJudge(MockModel(lost)), TEN))[0] is FailureKind.NO_LOGPROBS
    holistic = HolisticExpectationJudge(MockModel(answer("10", token(("1", 1.0)))))
    overall = (await holistic.judge_criteria(ROLLOUT, [BINARY])).overall
    assert overall is not None and overall.failure is not None and overall.failure.kind is FailureKind.NO_LOGPROBS


async def test_an_empty_answer_is_read_by_its_first_token_up_to_the_limit() -> None:
    for end in ("<|im_end|>", "</s>", ""):
        for p, score in ((0.5, 0.6), (0.5001, None)):
            rest = 1.0 - p
            empty = answer("", token((end, p), ("yes", 0.6 * rest), ("no", 0.4 * rest)))
            said = await verdict(LogprobJudge(MockModel(empty)), BINARY)
            assert said.score == (None if score is None else pytest.approx(score))
            assert score is not None or (said.failure is not None and said.failure.kind is FailureKind.LOW_MASS)
    third = one_token(("The", 0.3), ("yes", 0.4), ("no", 0.3))
    for limit, outcome in ((0.3, None), (0.2999, FailureKind.LOW_MASS)):
        assert (await kind(LogprobJudge(MockModel(third), max_outside=limit), BINARY))[0] is outcome


@pytest.mark.parametrize("finish", [Finish.OTHER, Finish.LENGTH, Finish.STOP])
async def test_why_generation_ended_does_not_change_the_first_tokens_probability(finish: Finish) -> None:
    said = await verdict(
        LogprobJudge(MockModel(answer("yes", token(("yes", 0.9), ("no", 0.1)), finish=finish))), BINARY
    )
    assert said.score == pytest.approx(0.9)
    # but one more digit could have followed where it was not the end
    one = await verdict(ExpectationJudge(MockModel(sure("1", finish=finish))), TEN)
    assert (one.raw == 1.0) is (finish is Finish.STOP) and (one.failure is None) is (finish is Finish.STOP)


@pytest.mark.parametrize(
    "pieces",
    [
        ("7", " or", " 3"), ("7", "-", "8"), ("7", " out", " of"), ("7", " ", "000"), ("7", "e", "1"), ("7", "%"),
        (".", "7"), ("7", " /", " 10"), ("7", " thousand"), ("7", ", or"), ("7", "\n", "3"), ("7", " –"),
        ("7", "½"), ("7", "_", "000"), ("07",), ("-", "3"), ("7", " point", " five"),
    ],
)  # fmt: skip
async def test_an_answer_that_says_more_than_its_level(pieces: Sequence[str]) -> None:
    assert (await kind(ExpectationJudge(MockModel(sure(*pieces))), TEN))[0] is FailureKind.LOW_MASS


@pytest.mark.parametrize("behind", ["", ".", "\n\nBecause", ": good", " - good", ". It", "**", "</s>", ")"])
async def test_an_answer_whose_level_stands_apart(behind: str) -> None:
    reply = sure("7", *([behind] if behind else []))
    reply = replace(reply, text="7") if behind == "</s>" else reply
    assert (await verdict(ExpectationJudge(MockModel(reply)), TEN)).raw == 7.0


async def test_letters_that_begin_a_sentence_and_answers_that_are_both() -> None:
    for text in ("A good", "A, B", "A/B", "A or"):
        made = answer(text, token(("A", 1.0)), token((text[1:], 1.0)))
        assert (await kind(ExpectationJudge(MockModel(made)), LETTERS))[0] is FailureKind.LOW_MASS
    for text in ("yes or no", "yes/no", "yes, no", "yes and no"):
        made = answer(text, token(("yes", 1.0)), token((text[3:], 1.0)))
        assert (await kind(LogprobJudge(MockModel(made)), BINARY))[0] is FailureKind.LOW_MASS
    for text in ("yes, it does", "yes it does", "Yes.", "yes. No commas are used"):
        made = answer(text, token((text[:3], 1.0)), token((text[3:], 1.0)))
        assert (await verdict(LogprobJudge(MockModel(made)), BINARY)).score == 1.0


def test_alternatives_that_hold_a_level_and_more_are_none_of_it() -> None:
    listed = token(("7", 0.4), ("3.5", 0.1), ("3/10", 0.1), ("3%", 0.1), (" .3", 0.1), ("3.", 0.1), ("3)", 0.1))
    mass = label_mass([listed], ("3", "7"))
    assert mass.shares == pytest.approx({"3": 0.2, "7": 0.4})
    words = label_mass([token(("yes/no", 0.5), ("yes,", 0.3), ('true,"x', 0.2))], ("yes", "true", "no"))
    assert words.shares == pytest.approx({"yes": 0.3, "true": 0.2, "no": 0.0})


@given(st.text("yesno 71.\n▁", max_size=12), st.lists(st.integers(0, 12), max_size=5))
def test_any_cut_of_a_text_spells_it_and_what_is_lost_does_not(text: str, cuts: Sequence[int]) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    tokens = [TokenLogprob(text[low:high], 0.0) for low, high in zip(edges, edges[1:], strict=False)]
    assert spells(tokens, text) and spells([*tokens, TokenLogprob("<|im_end|>", 0.0)], text)
    assert not spells(tokens, text + "x") and not spells([*tokens, TokenLogprob("x", 0.0)], text)


def test_parts_of_characters_spell_what_is_not_ascii() -> None:
    for part in ("\ufffd", "bytes:\\xc3", "\\xc3"):
        tokens = [TokenLogprob("7 ", 0.0), TokenLogprob(part, 0.0), TokenLogprob(part, 0.0)]
        assert spells(tokens, "7 é") and not spells(tokens, "70")


@given(st.sampled_from(["7", "yes", "A"]), st.text(" .,:\n*", max_size=6))
def test_signs_behind_a_label_leave_it_alone(label: str, behind: str) -> None:
    assert says_alone(f" **{label}{behind}", label, ("no", "3", "B"))
