"""The hand-written `check` cases of the public judge outputs, each by the verifier that stands for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from rubricate.judges.verifiers import Check, Input, run_verifier
from rubricate.narrow import as_object

Arguments = Mapping[str, object]


def bounds(params: Arguments) -> dict[str, object]:
    """A relation and a number as `min` and `max`; without a relation, exactly that number."""
    n = params["n"]
    return {
        "at_least": {"min": n},
        "at_most": {"max": n},
        "equals": {"min": n, "max": n},
    }[str(params.get("relation", "equals"))]


def verifier_for(check: str, params: Arguments) -> tuple[str, dict[str, object]]:
    """Name and arguments of the verifier that a `check` case asks for."""
    mapping: dict[str, Callable[[], tuple[str, dict[str, object]]]] = {
        "char_count": lambda: ("occurrences", {"text": params["char"], **bounds(params)}),
        "word_count": lambda: ("words", bounds(params)),
        "nth_word": lambda: ("nth_word", {"n": params["n"], "word": params["word"]}),
        "numbered_items": lambda: ("numbered", bounds(params)),
        "ends_with": lambda: ("ends_with", {"phrase": params["phrase"]}),
        "sections": lambda: ("sections", {"divider": params["divider"], **bounds(params)}),
    }
    return mapping[check]()


def run_case(given: Mapping[str, object]) -> Check:
    """The check of one case's `input`."""
    name, args = verifier_for(str(given["check"]), as_object(given["params"]) or {})
    return run_verifier(name, args, Input(str(given["text"])))


def test_every_check_case_has_its_expected_outcome(shared: Callable[[str], Path]) -> None:
    lines = (shared("judge_outputs") / "cases.jsonl").read_text("utf-8").splitlines()
    cases = [case for line in lines if (case := as_object(json.loads(line))) is not None]
    wrong: list[str] = []
    seen = 0
    for case in cases:
        given = as_object(case["input"]) or {}
        if given.get("schema") != "check":
            continue
        seen += 1
        expected = as_object(case["expected"]) or {}
        found = run_case(given)
        if found.met != expected["passed"] or ("value" in expected and found.value != expected["value"]):
            wrong.append(f"{case['id']}: expected {expected}, found {found}")
    assert seen == 7
    assert not wrong, "\n".join(wrong)
