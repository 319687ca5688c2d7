"""Length in characters, words, sentences, paragraphs, lines and tokens."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verifiers.conftest import check, met, value

from rubricate.errors import ConfigError, VerifierError
from rubricate.judges.verifiers import register_tokenizer
from rubricate.judges.verifiers.text import fold, paragraphs, sentences, snippet, words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("A well-known baker's dozen: 13 rolls!", 6),
        ("don’t stop", 2),
        ("one\ttwo\r\nthree", 3),
        ("3.5 snake_case", 4),
        ("— - ' ... 🎉 ❤️", 0),
        ("हिन्दी में लिखो", 3),
        ("한국어 단어", 2),
        ("今日は晴れ", 5),
        ("コーヒーを2杯", 7),
        ("café cafe\u0301", 2),
        ("שלום עולם", 2),
        ("الكلمة الثانية", 2),
        ("rock 'n' roll", 3),
    ],
)
def test_words(text: str, count: int) -> None:
    assert len(words(text)) == count
    assert value("words", text, min=0) == count


@pytest.mark.parametrize(
    ("text", "language", "count"),
    [
        ("", "en", 0),
        ("Dr. Smith left at 5 p.m. on Monday. Nobody saw him!", "en", 2),
        ("One line\nwrapped over two. Second.", "en", 2),
        (
            "# A heading\n\nOne sentence.\n\n- item one\n- item two. And more.\n\n| a | b |\n|---|---|\n| 1 | 2 |",
            "en",
            4,
        ),
        ("```python\nx = 1. \ny = 2.\n```\nDone.", "en", 1),
        ("Title\n=====\nText.", "en", 1),
        ("Das ist z. B. gut. Er kam am 3. Mai.", "de", 2),
        ("„Das ist gut.“ Er ging.", "de", 2),
        ("今日は晴れ。明日は雨！本当？", "en", 3),
        ("「はい。」と言った。そして帰った。", "en", 2),
        ("「はい。」\n「いいえ。」", "en", 2),
        ("「今日は晴れ。明日は雨。」と言った。", "en", 1),
        ("यह एक वाक्य है। यह दूसरा है।", "en", 2),
        ("... !!! ???", "en", 0),
        ("No final stop", "en", 1),
        ("A.\r\n\r\nB.", "en", 2),
    ],
)
def test_sentences(text: str, language: str, count: int) -> None:
    assert len(sentences(text, language)) == count
    assert value("sentences", text, min=0, language=language) == count


def test_an_unknown_sentence_language_is_refused() -> None:
    with pytest.raises(VerifierError, match="argument 'language'"):
        check("sentences", "text", min=1, language="xx")
    with pytest.raises(VerifierError, match="no sentence model"):
        sentences("text", "xx")


def test_paragraphs_and_lines() -> None:
    text = "a\nb\r\n\r\n \t\r\nc\n\n\n"
    assert paragraphs(text) == ["a\nb", "c"]
    assert value("paragraphs", text, min=0) == 2
    assert value("lines", text, min=0) == 3


@pytest.mark.parametrize(
    ("text", "count"),
    [("  ab c ", 4), ("👨‍👩‍👧‍👦", 1), ("cafe\u0301", 4), ("🇩🇪🇯🇵", 2), ("が", 1), ("か\u3099", 1), ("a\r\nb", 3)],
)
def test_characters_are_those_a_reader_sees(text: str, count: int) -> None:
    assert value("characters", text, min=0) == count


def test_characters_without_blanks() -> None:
    assert value("characters", " a b\nc ", min=0, spaces=False) == 3


def test_tokens_by_the_default_that_needs_no_download() -> None:
    assert value("tokens", "Hello, world! 今日は", min=0) == 7
    assert value("tokens", "", min=0) == 0


def test_tokens_by_a_tokenizer_of_the_user() -> None:
    register_tokenizer("test-bytes", lambda text: len(text.encode()))
    assert value("tokens", "é", min=0, tokenizer="test-bytes") == 2
    for taken in ("simple", "hf:x", " "):
        with pytest.raises(ConfigError):
            register_tokenizer(taken, len)


def test_an_unknown_tokenizer_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(VerifierError, match="no tokenizer named 'nope'") as caught:
        check("tokens", "a", min=1, tokenizer="nope")
    assert "simple, hf:NAME" in caught.value.hint


class Letters:
    """Stands for a transformers tokenizer: a token a letter."""

    @classmethod
    def from_pretrained(cls, name: str) -> Letters:
        if name != "letters":
            raise OSError(f"{name} is not a local folder")
        return cls()

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [ord(char) for char in text]


def test_a_transformers_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("transformers")
    monkeypatch.setattr(module, "AutoTokenizer", Letters, raising=False)
    monkeypatch.setitem(sys.modules, "transformers", module)
    assert value("tokens", "abc", min=0, tokenizer="hf:letters") == 3
    with pytest.raises(VerifierError, match="'hf:nothing' cannot be loaded: nothing is not a local folder"):
        check("tokens", "a", min=1, tokenizer="hf:nothing")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(VerifierError, match="needs the package transformers") as caught:
        check("tokens", "a", min=1, tokenizer="hf:other")
    assert "pip install 'rubricate[local]'" in caught.value.hint


@pytest.mark.parametrize("name", ["words", "sentences", "paragraphs", "lines", "characters", "tokens"])
def test_bounds_are_included_and_needed(name: str) -> None:
    assert met(name, "One.", min=1)
    assert met(name, "One.", max=4)
    assert not met(name, "One.", min=9)
    assert not met(name, "One.", max=0)
    assert met(name, "", max=0)
    with pytest.raises(VerifierError, match="'min' or 'max'"):
        check(name, "One.")
    with pytest.raises(VerifierError, match="'min' is larger than 'max'"):
        check(name, "One.", min=3, max=2)
    with pytest.raises(VerifierError, match="argument 'min'"):
        check(name, "One.", min=-1)


def test_the_reason_says_what_was_counted() -> None:
    assert check("words", "a b", min=3, max=5).reason == "2 words, wanted at least 3 and at most 5"
    assert check("words", "a b", min=3, max=3).reason == "2 words, wanted exactly 3"


def test_occurrences_are_literal_and_normalised() -> None:
    assert value("occurrences", "café and cafe\u0301", text="é", min=0) == 2
    assert value("occurrences", "a.b.c", text=".", min=0) == 2
    assert value("occurrences", "Aa", text="a", min=0) == 1
    assert value("occurrences", "Aa", text="a", min=0, case_sensitive=False) == 2
    assert value("occurrences", "aaaa", text="aa", min=0) == 2


@given(st.text())
def test_words_are_in_the_text_and_joining_them_changes_nothing(text: str) -> None:
    found = words(text)
    assert all(word in text and not any(map(str.isspace, word)) for word in found)
    assert words(" ".join(found)) == found


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_snippets_can_always_be_encoded(text: str) -> None:
    assert snippet(text + "\ud800\x00").encode("utf-8")
    assert "\n" not in snippet(text)
