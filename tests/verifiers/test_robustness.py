"""Every built-in verifier decides, or raises VerifierError, on whatever a response may hold."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubricate.errors import VerifierError
from rubricate.judges.verifiers import Input, run_verifier, verifier_names

ARGUMENTS: dict[str, Mapping[str, object]] = {
    **{
        name: {"min": 1}
        for name in ("words", "sentences", "paragraphs", "lines", "characters", "tokens", "sections")
    },
    "occurrences": {"text": "a", "min": 1},
    "required": {"phrases": ["cat", "ねこ"]},
    "forbidden": {"phrases": ["cat", "aa"]},
    "starts_with": {"phrase": "x"},
    "ends_with": {"phrase": "x"},
    "nth_word": {"n": 3, "word": "x"},
    "regex": {"pattern": r"\bcat\b"},
    "language": {"language": "en"},
    "schema": {"schema": {"type": "object"}},
    "number": {"value": 3},
    "exact": {"answers": ["a"]},
    "fuzzy": {"answers": ["abc"]},
    "keywords:existence": {"keywords": ["cat"]},
    "keywords:frequency": {"keyword": "cat", "frequency": 1, "relation": "at least"},
    "keywords:forbidden_words": {"forbidden_words": ["cat"]},
    "keywords:letter_frequency": {"letter": "a", "let_frequency": 1, "let_relation": "less than"},
    "language:response_language": {"language": "en"},
    "length_constraints:number_sentences": {"num_sentences": 1, "relation": "less than"},
    "length_constraints:number_paragraphs": {"num_paragraphs": 1},
    "length_constraints:number_words": {"num_words": 1, "relation": "less than"},
    "length_constraints:nth_paragraph_first_word": {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "a"},
    "detectable_content:number_placeholders": {"num_placeholders": 1},
    "detectable_content:postscript": {"postscript_marker": "P.S."},
    "detectable_format:number_bullet_lists": {"num_bullets": 1},
    "detectable_format:number_highlighted_sections": {"num_highlights": 1},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 1},
    "combination:repeat_prompt": {"prompt_to_repeat": "a"},
    "startend:end_checker": {"end_phrase": "a"},
    "change_case:capital_word_frequency": {"capital_frequency": 1, "capital_relation": "at least"},
}
# `generated` starts a process for each text; tests/sandbox has it.
BUILT_IN = [name for name in verifier_names() if not name.startswith("test") and name != "generated"]

ODD = [
    "",
    " \n\t\r",
    "\ud800",
    "a\x00b\x1b[0m",
    "\ufeff\u200b\u200e\u202e",
    "שלום עולם! זה טקסט.",
    "👨‍👩‍👧‍👦🏳️‍🌈 5️⃣ ❤️",
    "a\r\n\r\nb\rc\u2028d\x85e",
    "e\u0301\u0301\u0301",
    "İıẞßǅﬁ",
    "```",
    "|\n|-\n",
    "<<>>[]((",
    "٣٤٥ ½ ① ²",
    "＊全角！？",
]


@pytest.mark.parametrize("name", BUILT_IN)
def test_odd_texts(name: str) -> None:
    for text in ODD:
        for finish in ("", "stop", "length"):
            found = run_verifier(name, ARGUMENTS.get(name, {}), Input(text, text, text, finish))
            assert isinstance(found.met, bool)
            assert found.reason.encode("utf-8") or not found.reason


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
@given(
    st.text(st.characters(codec=None), max_size=60)
    | st.text(st.sampled_from("*-#|`\n .,:\"'()[]<>{}1aA。あ\r\t\\"), max_size=60)
)
def test_any_text(text: str) -> None:
    for name in BUILT_IN:
        found = run_verifier(name, ARGUMENTS.get(name, {}), Input(text, text, text))
        assert found == run_verifier(name, ARGUMENTS.get(name, {}), Input(text, text, text)), "the same every time"


@given(st.text(max_size=40))
@settings(max_examples=30, deadline=None)
def test_any_text_as_an_argument(text: str) -> None:
    """A rubric may hold anything too: it works, or the error is ours."""
    cases: dict[str, dict[str, object]] = {
        "required": {"phrases": [text]},
        "regex": {"pattern": text},
        "keywords:existence": {"keywords": [text]},
        "detectable_format:multiple_sections": {"section_spliter": text, "num_sections": 1},
        "detectable_content:postscript": {"postscript_marker": text},
        "number": {"value": text},
        "exact": {"answers": [text]},
        "sections": {"min": 1, "divider": text},
        "schema": {"schema": {text: text, "pattern": text}},
        "occurrences": {"text": text, "min": 1},
    }
    for name, args in cases.items():
        try:
            run_verifier(name, args, Input("Some ordinary response, with 1 number."))
        except VerifierError:
            pass


SLOW = {"change_case:capital_word_frequency", "length_constraints:number_sentences", "sentences", "no_repetition"}
"""These run Punkt: linear, but up to ten times slower than the others."""

UNITS = [
    "The quick brown fox jumps over the lazy dog. ",
    "\n",
    "a",
    "- [x] (A, 2000) **b** 1,000\n",
    "今日は晴れ。「はい。」",
]


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in SLOW])
def test_a_megabyte_is_decided_in_seconds(name: str) -> None:
    for unit in UNITS:
        text = unit * (1_000_000 // len(unit))
        start = time.process_time()
        run_verifier(name, ARGUMENTS.get(name, {}), Input(text, "a", "a"))
        assert time.process_time() - start < 30, f"{unit!r}: a quadratic check takes minutes"


@pytest.mark.parametrize("name", sorted(SLOW))
def test_punkt_is_linear(name: str) -> None:
    for unit in UNITS:
        text = unit * (100_000 // len(unit))
        start = time.process_time()
        run_verifier(name, ARGUMENTS.get(name, {}), Input(text))
        assert time.process_time() - start < 30
