"""IFEval: every verdict on the recorded GPT-4 responses equals the official one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, cast

import pytest

from rubricate.errors import VerifierError
from rubricate.judges.verifiers import IFEVAL_INSTRUCTIONS, Input, ifeval_check, run_verifier, verifier_names
from rubricate.narrow import as_array, as_object

RANDOM_LETTER = {1122, 1129}
"""Keys whose letter, # and !, the official checker replaces by a random one."""

Row = Mapping[str, object]


def read(path: Path) -> list[Row]:
    rows = [as_object(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    assert all(row is not None for row in rows)
    return [row for row in rows if row is not None]


def texts(value: object) -> list[str]:
    return [str(item) for item in as_array(value) or ()]


def kwargs_of(row: Row) -> list[Mapping[str, object]]:
    return [as_object(item) or {} for item in as_array(row["kwargs"]) or ()]


@pytest.mark.parametrize("mode", ["strict", "loose"])
def test_every_verdict_equals_the_official_one(
    shared: Callable[[str], Path], mode: Literal["strict", "loose"]
) -> None:
    folder = shared("ifeval")
    prompts = {str(row["prompt"]): row for row in read(folder / "input_data.jsonl")}
    compared, skipped, wrong, responses = 0, 0, list[str](), 0
    start = time.perf_counter()
    for official in read(folder / f"eval_results_{mode}.jsonl"):
        row = prompts[str(official["prompt"])]
        responses += 1
        verdicts = cast("list[bool]", as_array(official["follow_instruction_list"]))
        for name, kwargs, verdict in zip(texts(row["instruction_id_list"]), kwargs_of(row), verdicts, strict=True):
            if row["key"] in RANDOM_LETTER and name == "keywords:letter_frequency":
                skipped += 1
                continue
            check = ifeval_check(name, kwargs, str(row["prompt"]), str(official["response"]), mode)
            compared += 1
            if check.met != verdict:
                wrong.append(f"key {row['key']} {name} {kwargs}: official {verdict}, ours {check}")
    seconds = time.perf_counter() - start
    print(f"\nIFEval {mode}: {compared - len(wrong)}/{compared} verdicts equal, {skipped} skipped, "
          f"{responses} responses in {seconds:.1f} s")  # fmt: skip
    assert not wrong, "\n".join(wrong)
    assert (compared, skipped, responses) == (830, 2, 540)


def test_the_row_without_a_response_and_empty_responses_meet_nothing(shared: Callable[[str], Path]) -> None:
    rows = read(shared("ifeval") / "input_data.jsonl")
    missing = next(row for row in rows if row["key"] == 2785)
    for response in ("", " \n\t"):
        for name, kwargs in zip(texts(missing["instruction_id_list"]), kwargs_of(missing), strict=True):
            for mode in ("strict", "loose"):
                assert not ifeval_check(name, kwargs, str(missing["prompt"]), response, mode).met


def test_all_arguments_of_the_data_are_accepted(shared: Callable[[str], Path]) -> None:
    seen: set[str] = set()
    for row in read(shared("ifeval") / "input_data.jsonl"):
        for name, kwargs in zip(texts(row["instruction_id_list"]), kwargs_of(row), strict=True):
            ifeval_check(name, kwargs, str(row["prompt"]), "Some response.", "loose")
            seen.add(name)
    assert seen == set(IFEVAL_INSTRUCTIONS)


def test_there_are_25_instructions_and_each_is_a_verifier() -> None:
    assert len(IFEVAL_INSTRUCTIONS) == 25
    assert set(IFEVAL_INSTRUCTIONS) <= set(verifier_names())


def test_an_unknown_instruction_is_refused() -> None:
    with pytest.raises(VerifierError, match="not an instruction of IFEval"):
        ifeval_check("words", {"min": 1}, "", "text")


def test_null_arguments_are_dropped_as_in_published_data_files() -> None:
    kwargs = {"num_words": 2, "relation": "at least", "keywords": None, "num_bullets": None}
    assert ifeval_check("length_constraints:number_words", kwargs, "", "two words").met
    assert run_verifier("length_constraints:number_words", kwargs, Input("two words")).met


@pytest.mark.parametrize(
    ("name", "kwargs", "argument"),
    [
        ("length_constraints:number_words", {"relation": "at least"}, "num_words"),
        ("length_constraints:number_words", {"num_words": 3, "relation": "around"}, "relation"),
        ("keywords:letter_frequency", {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}, "letter"),
        ("keywords:existence", {"keywords": []}, "keywords"),
        ("keywords:existence", {"keywords": [""]}, "keywords.0"),
        ("language:response_language", {"language": "german"}, "language"),
        ("punctuation:no_comma", {"mode": "medium"}, "mode"),
        ("punctuation:no_comma", {"comma": 1}, "comma"),
        ("length_constraints:nth_paragraph_first_word",
         {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}, "nth_paragraph"),
    ],
)  # fmt: skip
def test_missing_and_wrong_arguments_are_named(name: str, kwargs: Mapping[str, object], argument: str) -> None:
    with pytest.raises(VerifierError, match=argument):
        run_verifier(name, kwargs, Input("text"))


def test_a_keyword_that_is_no_regular_expression_is_an_error_that_says_what_to_use() -> None:
    with pytest.raises(VerifierError, match="regular expression") as caught:
        ifeval_check("keywords:existence", {"keywords": ["f(x"]}, "", "f(x)")
    assert "`required`" in caught.value.hint


def test_loose_mode_forgives_a_first_line_a_last_line_and_asterisks() -> None:
    wanted = {"end_phrase": "Bye."}
    texts_ = [
        "Sure:\nText. Bye.",
        "Text. Bye.\nAnything else?",
        "Sure:\nText. **Bye.**\nAnything else?",
        "Text. *Bye.*",
    ]
    strict = [ifeval_check("startend:end_checker", wanted, "", text).met for text in texts_]
    loose = [ifeval_check("startend:end_checker", wanted, "", text, "loose").met for text in texts_]
    assert strict == [True, False, False, False]
    assert loose == [True, True, True, True]
    assert not ifeval_check("startend:end_checker", wanted, "", "a\nBye.\nb\nc", "loose").met


def test_the_mode_is_an_argument_of_the_verifier_too() -> None:
    given = Input("Sure, here it is:\nno commas at all")
    assert not run_verifier("punctuation:no_comma", {}, given).met
    assert run_verifier("punctuation:no_comma", {"mode": "loose"}, given).met


def test_language_detection_is_seeded() -> None:
    text = "Hallo my friend, wie geht es you today?"
    verdicts = {ifeval_check("language:response_language", {"language": "de"}, "", text).met for _ in range(20)}
    assert len(verdicts) == 1
