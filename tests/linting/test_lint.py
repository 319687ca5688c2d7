"""`lint` from Python: order, selection, suppression, prompts, places, embedder and model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.linting.planting import ASKED, leaf, native

from rubricate.chat import MockModel
from rubricate.chat.base import ChatRequest
from rubricate.chat.mock import Scripted
from rubricate.embed import Embedder, MockEmbedder
from rubricate.embed.base import Vectors
from rubricate.errors import ConfigError, ServerError
from rubricate.rubrics import Criterion, Rubric
from rubricate.rubrics.formats import load_rubrics, parse_rubric
from rubricate.rubrics.linting import Finding, Limits, Severity, VerifierFault, alint, lint, rules

TWO_FAULTS = native({"text": "The tone is appropriate."}, {"text": "TODO: the dose."})


def rubric(*texts: str, **metadata: object) -> Rubric:
    """A rubric of these texts."""
    return Rubric(
        criteria=tuple(Criterion(id=f"c{at}", text=words) for at, words in enumerate(texts)), metadata=metadata
    )


def codes(findings: list[Finding]) -> list[str]:
    """The codes, in order."""
    return [finding.code for finding in findings]


def test_findings_come_by_rubric_criterion_and_code() -> None:
    first, second = parse_rubric(TWO_FAULTS), parse_rubric(native({"text": "Good."}))
    found = lint([first, second])
    assert [(f.index, f.criterion_ids, f.code) for f in found] == [
        (0, ("c1",), "C502"),
        (0, ("c2",), "C506"),
        (1, ("c1",), "C504"),
    ]
    assert found == lint([first, second])


def test_rules_are_selected_by_code_family_and_name() -> None:
    subject = parse_rubric(TWO_FAULTS)
    assert codes(lint(subject, select=["C506"])) == ["C506"]
    assert codes(lint(subject, select=["vague"])) == ["C502"]
    assert codes(lint(subject, select=["C"], ignore=["C50"])) == []
    assert codes(lint(subject, ignore=["placeholder"])) == ["C502"]
    with pytest.raises(ConfigError, match="no rule 'C999'"):
        lint(subject, select=["C999"])
    with pytest.raises(ConfigError, match="no rule ''"):
        lint(subject, ignore=[""])


def test_metadata_suppresses_findings_of_a_criterion_or_a_rubric() -> None:
    off = {"lint": {"ignore": ["C506"]}}
    record = native({"text": "TODO: the dose.", "metadata": off}, {"text": "TODO: the price."})
    assert [f.criterion_ids for f in lint(parse_rubric(record))] == [("c2",)]
    whole = native({"text": "TODO: the dose."}, lint={"ignore": "placeholder"})
    assert lint(parse_rubric(whole)) == []


def test_prompts_are_given_or_found_in_the_metadata() -> None:
    plain = rubric("The response has at most 40 words.")
    assert lint(plain) == []
    assert codes(lint(plain, prompts="Why is the sky blue?")) == ["Q701"]
    assert lint(plain, prompts="Say it in 40 words.") == []
    for name in ("prompt", "question", "instruction"):
        assert codes(lint(rubric("The response has at most 40 words.", **{name: ASKED}))) == ["Q701"]
    chat = rubric("The response has at most 40 words.", prompt=[{"role": "user", "content": "40 words, please"}])
    assert lint(chat) == []
    with pytest.raises(ConfigError, match="2 prompts for 1 rubrics"):
        lint(plain, prompts=["a", "b"])


def test_parameters_can_be_set() -> None:
    pair = rubric("Explains how vaccines train cells.", "Explains how new vaccines train cells.")
    assert codes(lint(pair)) == ["D103"]
    assert lint(pair, limits=Limits(similar_share=0.99)) == []
    assert codes(lint(rubric("a b c d e. " * 10), limits=Limits(long_words=20, very_long_words=40))) == ["C503"]
    many = rubric(*(f"TODO number {at} of the list" for at in range(9)))
    found = lint(many, select=["C506"], limits=Limits(shown=4))
    assert len(found) == 5
    assert any("5 more findings" in f.message and f.severity is Severity.INFO for f in found)
    known = set(Limits.__dataclass_fields__)
    assert all(set(one.parameters) <= known for one in rules())


def test_the_caller_says_what_is_wrong_with_a_verifier() -> None:
    spec = {"name": "house_style", "args": {"strict": True}}
    subject = parse_rubric(native({"text": "It follows the style.", "verifier": spec}))
    assert lint(subject) == []
    unknown = lint(subject, verifiers=lambda spec: VerifierFault(f"no {spec.name}", "use words", unknown=True))
    assert [(f.code, f.message, f.fix) for f in unknown] == [("V601", "no house_style", "use words")]
    wrong = lint(subject, verifiers=lambda spec: VerifierFault("strict is not known"))
    assert codes(wrong) == ["V602"]


def test_findings_have_file_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "rubric.json"
    path.write_text(json.dumps(TWO_FAULTS, indent=1), encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = lint(load_rubrics(path))
    assert [f.code for f in found] == ["C502", "C506"]
    for finding, words in zip(found, ("appropriate", "TODO"), strict=True):
        assert finding.source == str(path)
        assert finding.line is not None
        assert words in "".join(lines[finding.line - 1 : finding.line + 4])
    assert found[1].field == "criteria[1]"
    assert str(found[1]).startswith(f"{path}:{found[1].line}: rubric 1 c2: error C506 placeholder: ")


def test_duplicate_ids_are_reported_for_their_own_tree(tmp_path: Path) -> None:
    plain = {
        "id": "r",
        "requirements": "All.",
        "weight": 1,
        "sub_tasks": [leaf("a", "A is done."), leaf("b", "B is done.")],
    }
    twice = {**plain, "sub_tasks": [leaf("a", "A is done."), leaf("a", "B is done.")]}
    path = tmp_path / "trees.jsonl"
    path.write_text(json.dumps(plain) + "\n" + json.dumps(twice) + "\n", encoding="utf-8")
    found = lint(load_rubrics(path), select=["D105"])
    assert [(f.index, f.line, f.criterion_ids) for f in found] == [(1, 2, ("a~2",))]


# Embedder and model


class Planes(Embedder):
    """Two texts mean the same where they share a word of this list; others do not."""

    name = "planes"
    words = ("price", "colour", "place")

    @property
    def fingerprint(self) -> str:
        return "planes"

    @property
    def dimensions(self) -> int:
        return len(self.words) + 1

    async def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        rows = [[1e-3, *(float(word in text) for word in self.words)] for text in texts]
        return np.array(rows, dtype=np.float32)


def test_an_embedder_finds_what_means_the_same() -> None:
    subject = rubric("States the price.", "Says at what price it sells.", "Names a colour.", "Knows the place.")
    assert lint(subject) == []
    found = lint(subject, embedder=Planes())
    assert [(f.code, f.criterion_ids) for f in found] == [("D107", ("c1", "c0"))]
    assert "cosine 1.00" in found[0].message
    strict = lint(rubric("The price is low.", "A price in March."), embedder=Planes())
    assert strict == []  # March is a name: embeddings do not tell such texts apart


def test_an_embedder_is_not_trusted_with_negations_and_numbers() -> None:
    subject = rubric("Says the price.", "Does not say a price.", "Says 3 times which price.")
    assert "D107" not in codes(lint(subject, embedder=Planes()))
    assert lint(rubric("Cites a price."), embedder=MockEmbedder()) == []


def test_a_model_says_what_the_prompt_does_not_ask_for() -> None:
    model = MockModel('Here: [{"criterion": 2, "why": "no dose is asked for"}]')
    subject = rubric("Names the drug.", "Gives a dose for cats.", prompt="Which drug?", reference="Aspirin.")
    found = lint(subject, model=model)
    assert [(f.code, f.criterion_ids) for f in found] == [("Q702", ("c1",))]
    assert "no dose is asked for" in found[0].message
    sent = model.requests[0].text()
    assert all(part in sent for part in ("Which drug?", "Aspirin.", "2. Gives a dose for cats."))
    assert lint(subject, model=MockModel("[]")) == []


@pytest.mark.parametrize(
    "reply",
    ["No idea.", "[9]", '[{"criterion": true}]', "[1", "", Scripted(error=ServerError("the server is away"))],
)
def test_an_answer_that_cannot_be_read_is_unknown_and_said_so(reply: str | Scripted) -> None:
    found = lint(rubric("Names the drug.", prompt="Which drug?"), model=MockModel([reply]))
    assert [(f.code, f.severity) for f in found] == [("Q704", Severity.INFO)]
    assert found[0].criterion_ids == ()


def test_a_rubric_without_prompt_costs_no_call() -> None:
    model = MockModel("[]")
    assert lint([rubric("Names the drug."), rubric("Names the dose.")], model=model) == []
    assert lint(rubric("Names it all.", prompt="Which?"), model=model, ignore=["Q7"]) == []
    assert model.requests == []


async def test_alint_asks_once_for_each_rubric() -> None:
    def answer(request: ChatRequest) -> str:
        return "[1]" if "cats" in request.messages[-1].content else "[]"

    model = MockModel(answer)
    rubrics = [rubric("Names the drug.", prompt="Which?"), rubric("Thinks of cats.", prompt="Which?")]
    found = await alint(rubrics, model=model)
    assert [(f.index, f.code) for f in found] == [(1, "Q702")]
    assert len(model.requests) == 2


# Published rubrics


def share(findings: list[Finding], criteria: int) -> float:
    """Criteria with a finding of severity warning or error, among all."""
    flagged = {(f.index, f.criterion_ids[:1]) for f in findings if f.severity.rank}
    return len(flagged) / criteria


def test_few_of_the_published_rubrics_are_reported(shared: Callable[[str], Path]) -> None:
    imported = load_rubrics(shared("prometheus_biggen") / "biggen_instances.json")
    assert share(lint(imported), sum(map(len, imported.rubrics))) <= 0.005
    flagged = total = 0
    for path in sorted(shared("paperbench").glob("rubric_*.json")):
        tree = load_rubrics(path)
        flagged += sum(finding.severity.rank > 0 for finding in lint(tree))
        total += sum(map(len, tree.rubrics))
    assert total > 4000 and flagged / total <= 0.01


def test_what_is_wrong_in_published_trees_is_found(shared: Callable[[str], Path]) -> None:
    tree = load_rubrics(shared("paperbench") / "rubric_self-composing-policies.json")
    found = lint(tree, select=["C506"])
    assert len(found) == 12 and all('"TODO"' in f.message for f in found)


@pytest.mark.parametrize("words", ["At most " + "1" * 5000 + " words.", "Uses 1" + ",000" * 2000 + " words."])
def test_numbers_without_end_are_no_limits(words: str) -> None:
    found = lint(rubric(words, prompt="In " + "2" * 5000 + " words."))
    assert "Q701" not in codes(found)


def test_long_runs_of_letters_and_digits_are_read_once() -> None:
    start = time.process_time()
    lint(rubric("1" * 100_000, "a" * 100_000 + "-", "a1" * 50_000))
    assert time.process_time() - start < 20.0  # it was minutes


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Does the response name the city?", "The response does name the city."),
        ("Is the response in French?", "The response is in French."),
    ],
)
def test_a_question_is_rewritten_as_a_sentence(question: str, statement: str) -> None:
    (found,) = lint(rubric(question), select=["C505"])
    assert found.fix == f'write "{statement}"'
