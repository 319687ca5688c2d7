"""The rules behind IFEval: the linear versions equal the official patterns, and the official quirks are there."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verifiers.conftest import met

from rubricate.judges.verifiers import ifeval_rules as rules

MARKED = st.lists(
    st.sampled_from(
        ["*", "**", "***", "-", "a", "x y", " ", "\n", "\n\n", "\t", "\u3000", "\x0c", "[", "]", "<<", ">>", "<"]
    ),
    max_size=24,
).map("".join)  # fmt: skip


@given(MARKED)
def test_bullets_equal_the_official_patterns(text: str) -> None:
    starred = re.findall(r"^\s*\*[^\*].*$", text, flags=re.MULTILINE)
    dashed = re.findall(r"^\s*-.*$", text, flags=re.MULTILINE)
    assert rules.count_bullets(text) == len(starred) + len(dashed)


@given(MARKED)
def test_placeholders_equal_the_official_pattern(text: str) -> None:
    assert rules.count_placeholders(text) == len(re.findall(r"\[.*?\]", text))


@given(MARKED)
def test_titles_equal_the_official_pattern(text: str) -> None:
    titles = re.findall(r"<<[^\n]+>>", text)
    assert rules.has_title(text) == any(title.lstrip("<").rstrip(">").strip() for title in titles)


@given(MARKED)
def test_paragraphs_equal_the_official_rule(text: str) -> None:
    parts = re.split(r"\s?\*\*\*\s?", text)
    count: int | None = len(parts)
    for index, part in enumerate(parts):
        if not part.strip():
            if index in (0, len(parts) - 1):
                count = None if count is None else count - 1
            else:
                count = None
                break
    if len(parts) == 1 and not parts[0].strip():
        count = 0
    assert rules.count_paragraphs(text) == count


@given(st.text(st.sampled_from("ps. \nP"), max_size=14))
def test_postscripts_equal_the_official_patterns(text: str) -> None:
    lower = text.lower()
    single = re.findall(r"\s*p\.\s?s\..*$", lower, flags=re.MULTILINE)
    double = re.findall(r"\s*p\.\s?p\.\s?s.*$", lower, flags=re.MULTILINE)
    assert rules.has_postscript("P.S.", text) == bool(single)
    assert rules.has_postscript("P.P.S", text) == bool(double)


@given(st.lists(st.sampled_from(["section", "Section", " ", "1", "23", "\n", "x"]), max_size=14).map("".join))
def test_sections_equal_the_official_split(text: str) -> None:
    assert rules.count_sections("Section", text) == len(re.split(r"\s?Section\s?\d+\s?", text)) - 1


@given(st.text(st.sampled_from("aA*\n "), max_size=14))
def test_loose_variants_equal_the_official_eight(response: str) -> None:
    lines = response.split("\n")
    cut = ["\n".join(lines[1:]).strip(), "\n".join(lines[:-1]).strip(), "\n".join(lines[1:-1]).strip()]
    official = [response, response.replace("*", ""), *cut, *(text.replace("*", "") for text in cut)]
    assert set(rules.loose_variants(response)) == {text for text in official if text.strip()}


WORDY = st.lists(
    st.sampled_from(
        ["CAN", "CANNOT", "it's", "IT'S", "Mr.", "A", "b", "\n", "!", "?", ".", "...", "“YES”", '"NO"', "(OK)"]
        + ["U.S.", "A-B", "3D"]
    ),
    min_size=1, max_size=16,
).map(" ".join)  # fmt: skip


@given(WORDY)
def test_capital_words_equal_the_word_tokenizer_sentence_by_sentence(text: str) -> None:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    tokenizer = NLTKWordTokenizer()
    splitter = rules.sentence_splitter()
    words = [word for sentence in splitter.tokenize(text) for word in tokenizer.tokenize(sentence)]
    assert rules.capital_words(text) == sum(word.isupper() for word in words)


def test_sentences_are_those_of_punkt_before_it_read_typographic_quotes() -> None:
    assert rules.count_sentences("Dr. Smith came at 5 p.m. and left. Nobody saw him.") == 2
    assert rules.count_sentences('He said "Stop." Then he left.') == 2
    assert rules.count_sentences("He said “Stop.” Then he left.") == 1
    assert rules.count_sentences("What?! No... Yes.") == 3


@pytest.mark.parametrize(
    ("text", "nth", "found"),
    [
        ("One a.\n\nTwo b.", 2, (2, "two")),
        ('\'"Two," he said', 1, (1, "two")),
        ("One\n\n\n\nTwo", 2, None),
        ("One\n\n\n\nTwo\n\nThree", 3, (3, "two")),
        ("One", 2, None),
        ("don't stop", 1, (1, "don")),
    ],
)
def test_the_first_word_of_a_paragraph(text: str, nth: int, found: tuple[int, str] | None) -> None:
    assert rules.first_word_of_paragraph(text, nth) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        ('```json\n{"a": 1}\n```', True),
        ("```\n[1]\n```", True),
        ("```JSON 1 ```", True),
        ("NaN", True),
        ("{'a': 1}", False),
        ("Here: {}", False),
        ("[" * 100_000, False),
    ],
)
def test_json(text: str, expected: bool) -> None:
    assert rules.is_json(text) == expected
    assert met("detectable_format:json_format", text) == expected


@pytest.mark.parametrize(
    ("name", "args", "good", "bad"),
    [
        ("keywords:existence", {"keywords": ["Cat", "dog"]}, "A DOG and concatenation", "a dog"),
        ("keywords:frequency", {"keyword": "ha", "frequency": 3, "relation": "at least"}, "hahaHA", "ha ha"),
        ("keywords:frequency", {"keyword": " ha ", "frequency": 2, "relation": "less than"}, "ha", "ha ha"),
        ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "category", "a CAT!"),
        ("keywords:letter_frequency",
         {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, "# a #", "#"),
        ("keywords:letter_frequency",
         {"letter": "Q", "let_frequency": 1, "let_relation": "less than"}, "a", "queue"),
        ("language:response_language", {"language": "de"}, "Das ist ein deutscher Satz.", "This one is English."),
        ("language:response_language", {"language": "de"}, "1234 !", "Dies nicht, but this is English anyway."),
        ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "two-part", "a b c"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb\n***\n", "a\n***\n\n***\nb"),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b c]", "[a"),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\np. s. more", "PS: more"),
        ("detectable_content:postscript", {"postscript_marker": "N.B."}, "text n.b. more", "nope"),
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b\n** c", "* a"),
        ("detectable_format:constrained_response", {}, "Well. My answer is no. Bye", "My answer is No."),
        ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* **b**", "*a* ** **"),
        ("detectable_format:multiple_sections",
         {"section_spliter": "Day", "num_sections": 2}, "Day 1 a Day 2 b", "day 1 Day 2"),
        ("detectable_format:title", {}, "<<A title>>\ntext", "<< >> <title>"),
        ("combination:two_responses", {}, "a ****** b", "a ****** a"),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi. "}, " say HI. Hi!", "Hi! Say hi."),
        ("startend:end_checker", {"end_phrase": "The end."}, 'Text. THE END."', "The end. Really."),
        ("startend:quotation", {}, ' "All of it." ', '"'),
        ("change_case:capital_word_frequency",
         {"capital_frequency": 2, "capital_relation": "at least"}, "I AM here", "I am here"),
        ("change_case:english_capital", {}, "THIS IS AN ENGLISH SENTENCE.", "THIS is an English sentence."),
        ("change_case:english_lowercase", {}, "this is an english sentence.", "This is an english sentence."),
        ("punctuation:no_comma", {}, "a; b", "a, b"),
    ],
)  # fmt: skip
def test_each_instruction_both_ways(name: str, args: dict[str, object], good: str, bad: str) -> None:
    assert met(name, good, **args)
    assert not met(name, bad, **args)


@pytest.mark.parametrize("unit", ["\n", " \n", "*", "[", "<<", "- a\n", "\t "])
def test_long_runs_take_no_quadratic_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    rules.count_bullets(text)
    rules.count_placeholders(text)
    rules.has_title(text)
    rules.count_highlights(text)
    rules.count_paragraphs(text)
    rules.has_postscript("P.S.", text)
    assert time.process_time() - start < 5, "a quadratic pattern takes minutes"
