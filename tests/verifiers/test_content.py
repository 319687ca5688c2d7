"""Phrases, edges, words at a position, patterns, language, citations."""

from __future__ import annotations

import pytest
from tests.verifiers.conftest import check, met

from rubricate.errors import VerifierError
from rubricate.judges.verifiers.citations import find_citations


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("cat", "The CAT sat.", True),
        ("cat", "category", False),
        ("cat", "a cat-like thing", True),
        ("cat", "cat\u0301", False),
        ("thank you", "Thank\n  you!", True),
        ("don't", "I don’t know", True),
        ("C++", "I like C++11", True),
        ("straße", "In der STRASSE", True),
        ("东京", "我在东京工作", True),
        ("ねこ", "ここにねこがいる", True),
        ("コーヒー", "コーヒーを飲む", True),
        ("한국", "한국은 아름답다", True),
        ("cafe\u0301", "a café", True),
        ("3", "30", False),
        ("कम", "कमल", False),
    ],
)
def test_phrases(phrase: str, text: str, found: bool) -> None:
    assert met("required", text, phrases=[phrase]) == found
    assert met("forbidden", text, phrases=[phrase]) != found


def test_phrases_with_case_and_inside_words() -> None:
    assert not met("required", "the cat", phrases=["Cat"], case_sensitive=True)
    assert met("required", "category", phrases=["cat"], whole_word=False)


def test_required_counts_and_gives_partial_credit_only_when_asked() -> None:
    assert met("required", "a b", phrases=["a", "b", "c"], min=2)
    found = check("required", "a b", phrases=["a", "b", "c"])
    assert (found.met, found.score, found.value) == (False, None, 2)
    assert "missing 'c'" in found.reason
    assert check("required", "a b", phrases=["a", "b", "c", "d"], partial=True).score == 0.5
    assert check("required", "a b", phrases=["a", "b", "c"], min=1, partial=True).score == 1.0
    with pytest.raises(VerifierError, match="only 1 phrases"):
        check("required", "a", phrases=["a"], min=2)


@pytest.mark.parametrize("phrases", [[], [""], [" "]])
def test_empty_phrases_are_refused(phrases: list[str]) -> None:
    with pytest.raises(VerifierError, match="argument 'phrases"):
        check("forbidden", "a", phrases=phrases)


def test_edges() -> None:
    assert met("ends_with", "The last bus.\nSafe travels!\n\n  ", phrase="Safe travels!")
    assert not met("ends_with", "Safe travels! :)", phrase="Safe travels!")
    assert not met("ends_with", "safe travels!", phrase="Safe travels!")
    assert met("ends_with", "safe travels!", phrase="Safe travels!", case_sensitive=False)
    assert met("starts_with", "\n Dear “Ann”, hello", phrase='Dear "Ann",')
    assert not met("starts_with", "", phrase="Dear")


def test_the_nth_word() -> None:
    text = "Yes, well: the lantern flickered."
    assert met("nth_word", text, n=4, word="Lantern")
    assert not met("nth_word", text, n=4, word="Lantern", case_sensitive=True)
    assert met("nth_word", text, n=-1, word="flickered")
    assert not met("nth_word", text, n=9, word="x")
    assert not met("nth_word", text, n=-9, word="x")
    with pytest.raises(VerifierError, match="argument 'n'"):
        check("nth_word", text, n=0, word="x")


def test_regex_counts_and_modes() -> None:
    assert met("regex", "call 555-1234", pattern=r"\d{3}-\d{4}")
    assert met("regex", "a b a", pattern="a", min=2, max=2)
    assert not met("regex", "a b a a", pattern="a", min=2, max=2)
    assert met("regex", "nothing", pattern="secret", max=0)
    assert not met("regex", "a secret", pattern="secret", max=0)
    assert met("regex", "ABC", pattern="[a-z]+", where="whole", ignore_case=True)
    assert not met("regex", "ABC d", pattern="[a-z]+", where="whole", ignore_case=True)
    assert met("regex", "x\nend", pattern="^end$", multiline=True)
    assert met("regex", "Factory Reset", pattern="(?i)factory reset")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"(a|a)*$", "a" * 60 + "b"), (r"^(\w+\s?)*$", "word " * 40 + "!"), (r"(x+x+)+y", "x" * 60)],
)
def test_catastrophic_patterns_end_in_time(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rubricate.judges.verifiers.patterns.TIME_LIMIT", 0.1)
    try:
        assert not met("regex", text, pattern=pattern)
    except VerifierError as error:
        assert "took more than 0.1 seconds" in str(error)


def test_the_worst_pattern_does_run_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rubricate.judges.verifiers.patterns.TIME_LIMIT", 0.1)
    with pytest.raises(VerifierError, match="nested or adjacent"):
        check("regex", "a" * 60 + "b", pattern="(a|a)*$")


@pytest.mark.parametrize(
    "pattern", ["(", "a" * 5_001, "x{4000000000}", "(?:(?:ab){3000}c){3000}", "(" * 60 + ")" * 60, "[z-a]"]
)  # fmt: skip
def test_patterns_that_cannot_run_are_refused(pattern: str) -> None:
    with pytest.raises(VerifierError, match="argument 'pattern'"):
        check("regex", "text", pattern=pattern)


def test_ordinary_patterns_with_counts_are_not_refused() -> None:
    assert met("regex", "2024-05-01", pattern=r"\d{4}-\d{2}-\d{2}")
    assert met("regex", "a" * 500, pattern=r"^.{1,20000}$")
    assert met("regex", "{100000}", pattern=r"[{]1\d{5}\}|\{100000\}")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Dies ist eine kurze Antwort auf Deutsch.", "de"),
        ("This is a short answer in English.", "en"),
        ("これは日本語の短い答えです。", "ja"),
        ("这是一个简短的中文回答。", "zh"),
        ("Это короткий ответ на русском языке.", "ru"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert met("language", text, language=language)
    assert not met("language", text, language="fr")
    assert met("language", text, language=["fr", language])


def test_language_looks_at_prose_only() -> None:
    code = "```python\nfor item in the_list:\n    print(item)\n```"
    text = f"Das ist der Code, den du brauchst:\n{code}\nhttps://example.org/some/english/words"
    assert met("language", text, language="de")
    assert not met("language", "```\nx = 1\n```", language="en")
    assert not met("language", "1234", language="en")
    assert not met("language", "", language="en")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(VerifierError, match="argument 'language'.*known are zh"):
        check("language", "text", language="german")
    with pytest.raises(VerifierError, match="argument 'language'"):
        check("language", "text", language=[])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("As shown [1], and later [2, 3].", {"[1]", "[2]", "[3]"}),
        ("See [4-6] and 【7】 and [^8].", {"[4]", "[5]", "[6]", "[7]", "[8]"}),
        ("`a[1]` and\n```\nb[2]\n```", set[str]()),
        ("In [2020] and [x].", set[str]()),
        ("Known (Smith, 2020).", {"Smith 2020"}),
        ("Known (Smith & Doe 2020a; Li et al., 2019, p. 4).", {"Smith & Doe 2020a", "Li et al. 2019, p. 4"}),
        ("Smith et al. (2020) and Li and Doe (1999) agree.", {"Smith et al. 2020", "Li and Doe 1999"}),
        ("山田の説（山田、2015）による。", {"山田 2015"}),
        ("In summer (May 2020) and (in 2019) and (2018).", set[str]()),
        ("(January, 2020) Gladiator (2000)", set[str]()),
        ("(see Smith, 2020)", {"see Smith 2020"}),
        ("See https://example.org/a. Or [this](https://example.org/b).", {"https://example.org/a", "https://example.org/b"}),
        ("[1](https://example.org)", {"https://example.org"}),
        ("", set[str]()),
    ],
)  # fmt: skip
def test_citations(text: str, found: set[str]) -> None:
    assert find_citations(text) == found
    assert met("citations", text) == bool(found)


def test_citations_are_counted_once_and_by_kind() -> None:
    text = "One [1]. Again [1]. Another [2] (Smith, 2020)."
    assert met("citations", text, min=3, max=3)
    assert not met("citations", text, min=2, kinds=["author_year"])
    assert met("citations", text, kinds=["numbered"], max_number=2)
    assert not met("citations", text, kinds=["numbered"], max_number=1)
    assert not met("citations", "[0]", max_number=3)
