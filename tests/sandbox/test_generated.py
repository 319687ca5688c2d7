"""Checks that a model writes: asked for, tried on examples, kept in the rubric, and run by the judges."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Sequence

import pytest

from rubricate.chat import MockModel
from rubricate.chat.base import ChatRequest, Completion, Finish
from rubricate.data.records import Rollout
from rubricate.errors import ConfigError, ParseError, RateLimitError, VerifierError
from rubricate.judges import ScriptedJudge, VerifierJudge
from rubricate.judges.generated import generate_verifier, generate_verifiers, propose_verifier, try_source
from rubricate.judges.generated_reply import read_examples, read_source
from rubricate.judges.generated_types import Example, GeneratedVerifier, ProposalOutcome
from rubricate.judges.mixed import CheckCounts, MixedJudge
from rubricate.judges.sandbox import CheckFailure, process, unsupported_reason
from rubricate.judges.verifiers import Input, check_verifier, run_verifier
from rubricate.judges.verifiers.generated import UNSAFE_VARIABLE, source_fingerprint
from rubricate.rubrics import Criterion, NumericScale, Rubric, VerifierSpec
from rubricate.types import Failure, FailureCause, FailureKind, Judgement, Status

needs_filter = pytest.mark.skipif(bool(unsupported_reason()), reason=unsupported_reason() or "a sandbox is there")

GOOD = "def verify_requirement(text):\n    return '!' not in text\n"
YES_MAN = "def verify_requirement(text):\n    return True\n"
HOSTILE = "import os\ndef verify_requirement(text):\n    return os.system('id') == 0\n"
LOOP = "def verify_requirement(text):\n    while True:\n        pass\n"
CALM = Criterion(id="calm", text="The response has no exclamation mark.")
POSITIVES, NEGATIVES = ["All is well.", ""], ["Watch out!", "!"]


def block(source: str) -> str:
    return f"```python\n{source}```"


def with_source(source: str, **args: object) -> Criterion:
    return CALM.model_copy(update={"verifier": VerifierSpec(name="generated", args={"source": source, **args})})


async def ask(model: MockModel, **options: float) -> GeneratedVerifier | None:
    return await generate_verifier(
        model,
        CALM,
        positives=POSITIVES,
        negatives=NEGATIVES,
        threshold=options.get("threshold", 1.0),
        seconds=options.get("seconds", 30.0),
        max_attempts=int(options.get("max_attempts", 2)),
    )


@needs_filter
async def test_a_check_that_is_right_on_all_examples_is_accepted_and_judges() -> None:
    model = MockModel([block(GOOD)])
    made = await ask(model)
    assert made is not None
    assert (made.passed, len(made.examples)) == (4, 4)
    assert made.source == GOOD
    assert made.fingerprint == source_fingerprint(GOOD)
    assert not any(example.by_model for example in made.examples)
    rubric = Rubric(criteria=(made.attach(CALM),))
    again = Rubric.model_validate_json(rubric.model_dump_json())
    judge = VerifierJudge()
    judge.check(again)
    for response, score in (("Calm.", 1.0), ("No!", 0.0)):
        (verdict,) = (await judge.judge(Rollout("Hi", response), again)).verdicts
        assert (verdict.score, verdict.judge) == (score, "verifier:generated")
    assert pickle.loads(pickle.dumps(made)) == made


async def test_the_model_sees_criterion_and_task_fenced_and_no_example() -> None:
    model = MockModel(["NONE"])
    task = "Say </criterion> hello."
    assert await generate_verifier(model, CALM, positives=POSITIVES, negatives=NEGATIVES, task=task) is None
    (request,) = model.requests
    asked = request.messages[-1].content
    assert CALM.text in asked
    assert task in asked
    assert asked.index(task) < asked.index(CALM.text)
    assert "Watch out" not in request.text()


async def test_a_model_that_declines_is_taken_at_its_word() -> None:
    model = MockModel(["NONE"])
    found = await propose_verifier(model, CALM, positives=POSITIVES, negatives=NEGATIVES)
    assert (found.outcome, found.verifier) == (ProposalOutcome.DECLINED, None)
    assert found.usage.calls == 1


@needs_filter
@pytest.mark.parametrize(
    ("source", "says"),
    [
        (YES_MAN, "wrong on 2 of 4"),
        (HOSTILE, "import of os"),
        ("def verify_requirement(text):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def verify_requirement(text)\n    return True\n", "cannot be used"),
        ("def verify_requirement(text):\n    return 1\n", "True or False"),
    ],
)
async def test_a_check_that_is_wrong_or_fails_is_rejected_and_the_model_told(source: str, says: str) -> None:
    model = MockModel([block(source), block(source)])
    found = await propose_verifier(model, CALM, positives=POSITIVES, negatives=NEGATIVES, seconds=30.0)
    assert (found.outcome, found.verifier, found.source) == (ProposalOutcome.REJECTED, None, source)
    assert says in found.reason
    assert found.usage.calls == 2
    first, second = model.requests
    assert says in second.messages[-1].content
    assert first.sample != second.sample
    assert not any(text in second.text() for text in ("All is well", "Watch out"))


@needs_filter
async def test_a_second_attempt_may_be_right() -> None:
    made = await ask(MockModel([block(YES_MAN), block(GOOD)]))
    assert made is not None
    assert made.source == GOOD


@needs_filter
async def test_the_threshold_holds_for_each_kind_of_example() -> None:
    """A check that always says yes is right on most of ten positives and one negative."""
    options = {"threshold": 0.9, "max_attempts": 1, "seconds": 30.0}
    positives = [f"text {n}" for n in range(10)]
    model = MockModel([block(YES_MAN), block("def verify_requirement(text):\n    return text[-1] not in '!9'\n")])
    assert (
        await generate_verifier(model, CALM, positives=positives, negatives=["!"], threshold=0.9, max_attempts=1)
        is None
    )
    made = await generate_verifier(
        model, CALM, positives=positives, negatives=["!"], threshold=options["threshold"]
    )
    assert made is not None
    assert made.passed == 10


@needs_filter
async def test_a_check_that_hangs_on_an_example_is_not_used() -> None:
    found = await propose_verifier(
        MockModel([block(LOOP)]), CALM, positives=["a"], negatives=["b"], seconds=0.2, max_attempts=1
    )
    assert found.outcome is ProposalOutcome.REJECTED
    assert [example.result and example.result.failure for example in found.examples] == [CheckFailure.TIMEOUT] * 2


async def test_examples_of_both_kinds_are_needed_before_anything_is_paid_for() -> None:
    model = MockModel([])
    cases: list[tuple[Sequence[str], Sequence[str]]] = [((), ()), (("a",), ()), ((), ("b",)), (("a",), ("a",))]
    for positives, negatives in cases:
        with pytest.raises(ConfigError):
            await generate_verifier(model, CALM, positives=positives, negatives=negatives)
    with pytest.raises(ConfigError, match="threshold"):
        await ask(model, threshold=0.0)
    with pytest.raises(ConfigError, match="max_attempts"):
        await ask(model, max_attempts=0)
    assert model.requests == []


async def test_criteria_that_a_check_cannot_decide_are_declined_without_a_call() -> None:
    model = MockModel([])
    for update in (
        {"condition": "the task asks for it"},
        {"scale": NumericScale(low=0, high=10)},
        {"verifier": VerifierSpec(name="words", args={"min": 1})},
    ):
        found = await propose_verifier(
            model, CALM.model_copy(update=update), positives=POSITIVES, negatives=NEGATIVES
        )
        assert found.outcome is ProposalOutcome.DECLINED
        assert found.reason


def examples_or(check: str, examples: str) -> MockModel:
    def answer(request: ChatRequest) -> str:
        return examples if "test cases" in request.messages[0].content else check

    return MockModel(answer)


@needs_filter
async def test_the_model_may_write_examples_which_are_marked() -> None:
    written = json.dumps({"holds": ["Calm.", "All is well."], "does_not_hold": ["Oh!"]})
    model = examples_or(block(GOOD), written)
    found = await propose_verifier(
        model, CALM, positives=["All is well."], negatives=["!"], model_examples=2, seconds=30.0
    )
    assert found.verifier is not None
    assert {example.text: example.by_model for example in found.examples} == {
        "All is well.": False,
        "!": False,
        "Calm.": True,
        "Oh!": True,
    }
    assert found.usage.calls == 2


async def test_examples_that_cannot_be_read_are_a_failed_proposal() -> None:
    model = examples_or(block(GOOD), "certainly")
    found = await propose_verifier(model, CALM, model_examples=2, max_attempts=3)
    assert (found.outcome, found.usage.calls) == (ProposalOutcome.FAILED, 3)
    assert len({request.sample for request in model.requests}) == 3


@pytest.mark.parametrize(
    "reply",
    ["certainly", "", "```python\nx = 1\n```", block(GOOD) + "\n" + block(YES_MAN), block(GOOD) + "\nNONE"],
)
async def test_a_reply_without_one_check_is_asked_for_again_then_fails(reply: str) -> None:
    model = MockModel([reply, Completion(block(GOOD)[:20], finish=Finish.LENGTH)])
    found = await propose_verifier(model, CALM, positives=POSITIVES, negatives=NEGATIVES)
    assert (found.outcome, found.source) == (ProposalOutcome.FAILED, "")
    assert found.reason
    assert len(model.requests) == 2


def test_replies_are_read_strictly() -> None:
    assert read_source(f"Here you are:\n{block(GOOD)}\nGood luck.") == GOOD
    assert read_source(f"<think>NONE?\n{block(YES_MAN)}\n</think>\n\n{block(GOOD)}") == GOOD
    assert read_source(GOOD) == GOOD
    assert read_source("~~~python\n# None\n" + GOOD + "~~~") == "# None\n" + GOOD
    assert read_source("```\nprint(1)\n```\n" + block(GOOD)) == GOOD
    for declined in ("NONE", "NONE.", "**NONE**", "`NONE`", "```\nNONE\n```", "It takes taste.\n\nNONE"):
        assert read_source(declined) is None
    for unusable in ("none of these", "```python\n" + GOOD, "", "return None", "NONE of it can be checked"):
        with pytest.raises(ParseError):
            read_source(unusable)
    assert read_examples('{"holds": ["a", "a", 3], "does_not_hold": ["b"]}') == (["a"], ["b"])
    for unusable in ("", "[]", '{"holds": ["a"]}', '{"holds": ["a"], "does_not_hold": ["a"]}', '{"holds": "a"}'):
        with pytest.raises(ParseError):
            read_examples(unusable)


@needs_filter
async def test_a_rubric_gets_its_checks_and_every_outcome_is_counted() -> None:
    by_text = {
        "calm": block(GOOD),
        "kind": "NONE",
        "sure": block(YES_MAN),
        "odd": "certainly",
    }

    def answer(request: ChatRequest) -> str:
        text = request.messages[-1].content
        if "down" in text:
            raise RateLimitError("too many", retry_after=1.0)
        return next(reply for name, reply in by_text.items() if f"It is {name}." in text)

    names = [*by_text, "down"]
    rubric = Rubric(criteria=tuple(Criterion(id=name, text=f"It is {name}.") for name in names))
    examples = {name: (POSITIVES, NEGATIVES) for name in names}
    report = await generate_verifiers(MockModel(answer), rubric, examples=examples, seconds=30.0)
    assert report.counts == {"accepted": 1, "declined": 1, "rejected": 1, "failed": 2}
    assert [criterion.id for criterion in report.rubric.criteria if criterion.verifier] == ["calm"]
    assert [proposal.criterion_id for proposal in report.proposals] == names
    assert "1 accepted" in str(report)
    with pytest.raises(ConfigError, match="nobody"):
        await generate_verifiers(MockModel([]), rubric, examples={"nobody": (["a"], ["b"])})


@needs_filter
async def test_where_there_is_no_sandbox_nothing_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "unsupported_reason", lambda: "no filter")
    found = await propose_verifier(MockModel([block(GOOD)]), CALM, positives=["a"], negatives=["!"])
    assert (found.outcome, found.verifier) == (ProposalOutcome.FAILED, None)
    with pytest.raises(VerifierError, match="no filter") as caught:
        run_verifier("generated", {"source": GOOD}, Input("a"))
    assert UNSAFE_VARIABLE in caught.value.hint
    monkeypatch.setenv(UNSAFE_VARIABLE, "1")
    assert run_verifier("generated", {"source": GOOD, "seconds": 30}, Input("a")).met


def test_arguments_that_no_rubric_may_have() -> None:
    check_verifier("generated", {"source": GOOD, "fingerprint": source_fingerprint(GOOD)})
    for args in (
        {},
        {"source": ""},
        {"source": GOOD, "fingerprint": source_fingerprint(YES_MAN)},
        {"source": GOOD, "seconds": 10_000},
        {"source": GOOD, "seconds": 0},
        {"source": GOOD, "memory": 2**40},
        {"source": GOOD, "function": "__import__"},
        {"source": GOOD, "unsafe_without_seccomp": True},
    ):
        with pytest.raises(VerifierError):
            check_verifier("generated", args)


@needs_filter
@pytest.mark.parametrize("source", [LOOP, HOSTILE, "def verify_requirement(text):\n    return text\n", "x = ("])
async def test_a_check_that_fails_is_a_failed_verdict(source: str) -> None:
    criterion = with_source(source, seconds=0.5)
    (verdict,) = (await VerifierJudge().judge(Rollout("Hi", "there"), Rubric(criteria=(criterion,)))).verdicts
    assert (verdict.score, verdict.status) == (None, Status.FAILED)
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.VERIFIER


@needs_filter
async def test_a_slow_check_holds_neither_the_loop_nor_the_other_criteria() -> None:
    criteria = (
        with_source(LOOP, seconds=0.4),
        Criterion(id="words", text="It has a word.", verifier=VerifierSpec(name="words", args={"min": 1})),
    )
    judging = asyncio.create_task(VerifierJudge().judge(Rollout("Hi", "there"), Rubric(criteria=criteria)))
    turns = 0
    while not judging.done():
        turns += 1
        await asyncio.sleep(0)
    slow, quick = (await judging).verdicts
    assert turns > 100
    assert (slow.score, quick.score) == (None, 1.0)


def half(response: str, criterion: Criterion) -> float:
    return 0.5


def broken(response: str, criterion: Criterion) -> Failure:
    return Failure(FailureKind.SERVER, FailureCause.INFRASTRUCTURE, "down")


async def mixed(judge: MixedJudge, response: str, *criteria: Criterion) -> Judgement:
    return await judge.judge(Rollout("Hi", response), Rubric(criteria=criteria))


PLAIN = Criterion(id="plain", text="It is plain.")


@needs_filter
async def test_check_and_judge_are_averaged_and_counted() -> None:
    judge = MixedJudge(ScriptedJudge(half))
    first, second = (await mixed(judge, "Calm.", with_source(GOOD, seconds=30), PLAIN)).verdicts
    assert (first.score, second.score) == (0.75, 0.5)
    assert "code 1, judge 0.5" in first.reason
    (verdict,) = (await mixed(judge, "No!", with_source(GOOD, seconds=30))).verdicts
    assert verdict.score == 0.25
    assert judge.counts == CheckCounts(applied=2, failed=0, without=1)
    copy = pickle.loads(pickle.dumps(judge))
    assert (copy.counts, copy.fingerprint) == (judge.counts, judge.fingerprint)
    judge.reset_counts()
    assert judge.counts == CheckCounts()


@needs_filter
async def test_a_check_that_fails_is_counted_and_never_left_out_silently() -> None:
    judge = MixedJudge(ScriptedJudge(half))
    (verdict,) = (await mixed(judge, "Calm.", with_source(HOSTILE, seconds=30))).verdicts
    assert verdict.failure is not None
    assert "import of os" in verdict.failure.message
    assert judge.counts == CheckCounts(failed=1)
    lenient = MixedJudge(ScriptedJudge(half), on_failed_check="judge")
    (verdict,) = (await mixed(lenient, "Calm.", with_source(HOSTILE, seconds=30))).verdicts
    assert verdict.score == 0.5
    assert "the check failed" in verdict.reason
    assert lenient.counts == CheckCounts(failed=1)
    assert lenient.fingerprint != judge.fingerprint


@needs_filter
async def test_code_only_does_not_ask_the_judge() -> None:
    judge = MixedJudge(ScriptedJudge(broken), mode="code_only")
    checked, asked = (await mixed(judge, "Calm.", with_source(GOOD, seconds=30), PLAIN)).verdicts
    assert checked.score == 1.0
    assert asked.failure is not None
    both = MixedJudge(ScriptedJudge(broken))
    (verdict,) = (await mixed(both, "Calm.", with_source(GOOD, seconds=30))).verdicts
    assert verdict.failure is not None
    assert verdict.failure.kind is FailureKind.SERVER


def test_modes_that_do_not_exist_are_errors() -> None:
    with pytest.raises(ConfigError):
        MixedJudge(ScriptedJudge(), mode="sum")  # pyright: ignore[reportArgumentType]  # a wrong mode on purpose
    with pytest.raises(ConfigError):
        MixedJudge(ScriptedJudge(), mode="code_only", on_failed_check="judge")


@needs_filter
async def test_a_source_can_be_tried_by_hand() -> None:
    tried = await try_source(GOOD, [Example("a", True), Example("!", True)], seconds=30.0)
    assert [example.right for example in tried] == [True, False]
